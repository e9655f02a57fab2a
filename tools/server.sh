# Starts and stops a server with its workers on loopback: sourced.
# shellcheck shell=bash disable=SC2154

# start_server BIN FOLDER [FLAG...]: free ports; sets server_pid, GRIDCLOCK_SERVER, metrics_address.
start_server() {
  local bin=$1 folder=$2
  shift 2
  "$bin/gridclock-server" --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0 \
    --worker "$bin/gridclock-worker" --devices cpu --ready-file "$folder/ready" "$@" \
    > "$folder/server.log" 2>&1 &
  server_pid=$!
  wait_ready "$folder" 60 || { cat "$folder/server.log" >&2; die "the server did not start"; }
  GRIDCLOCK_SERVER=$(sed -n 's/^grpc=//p' "$folder/ready")
  metrics_address=$(sed -n 's/^metrics=//p' "$folder/ready")
  export GRIDCLOCK_SERVER metrics_address
}

wait_ready() {
  local i
  for ((i = 0; i < $2 * 10; i++)); do
    [ ! -s "$1/ready" ] || return 0
    kill -0 "$server_pid" 2>/dev/null || return 1
    sleep 0.1
  done
  return 1
}

# Processes whose parent is $1.
children() {
  local stat fields
  for stat in /proc/[0-9]*/stat; do
    fields=$(cat "$stat" 2>/dev/null) || continue
    # After the name in parentheses come the state and the parent.
    read -r _ ppid _ <<< "${fields##*) }"
    [ "$ppid" != "$1" ] || basename "$(dirname "$stat")"
  done
}

# Ends the server as an operator would, and fails if it or a worker of it lives on.
stop_server() {
  local workers pid code=0
  workers=$(children "$server_pid")
  kill -TERM "$server_pid"
  wait "$server_pid" || code=$?
  [ "$code" = 0 ] || die "the server ended with $code"
  for pid in $workers; do
    [ ! -d "/proc/$pid" ] || [ "$(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$pid/status")" = Z ] ||
      die "process $pid outlived its server"
  done
}
