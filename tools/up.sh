#!/usr/bin/env bash
# up.sh BIN [--detach] [--folder FOLDER] [SERVER FLAG...]: a server that keeps running. FOLDER
# (build/up) gets its log. The lines that begin with `export` are for the reader's shell.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
bin=$(cd "$1" && pwd)
shift
detach='' folder=$root/build/up
while true; do
  case ${1:-} in
  --detach) detach=1 && shift ;;
  --folder) folder=${2:?--folder: want a folder} && shift 2 ;;
  *) break ;;
  esac
done
command=("$bin/gridclock-server" --worker "$bin/gridclock-worker" --ready-file "$folder/ready")

fact() { sed -n "s/^$1=//p" "$folder/ready"; }

# A second server would take the first one's ready file and log.
refuse_second() {
  local pid
  [ -s "$folder/ready" ] || return 0
  pid=$(fact pid)
  # Another program may have the number by now; the kernel cuts names to 15 letters.
  [ "$(cat "/proc/${pid:-none}/comm" 2>/dev/null)" = gridclock-serve ] || return 0
  die "a server runs already: pid $pid, address $(fact grpc); stop it with: kill $pid; or have another: ./dev up --folder FOLDER --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0"
}

wait_ready() {
  local i
  for ((i = 0; i < 600; i++)); do
    [ ! -s "$folder/ready" ] || return 0
    kill -0 "$1" 2>/dev/null || not_started
    sleep 0.1
  done
  kill -TERM "$1"
  die "the server is not ready after 60 s, so it was stopped; see $folder/server.log"
}

# In the foreground the log is on the terminal already.
not_started() {
  if [ -n "$detach" ]; then cat "$folder/server.log" >&2; else wait "$tee" || true; fi
  if grep -q 'Address already in use' "$folder/server.log"; then
    die "another server may run there; stop it, or ./dev up --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0"
  fi
  die "the server did not start"
}

# What a client needs besides the address: by the server's flags, or by their environment.
tell_secrets() {
  local cert=${GRIDCLOCK_TLS_CERT:-} tokens=${GRIDCLOCK_TOKEN_FILE:-}
  while [ $# -gt 0 ]; do
    case $1 in
      --tls-cert=*) cert=${1#*=} ;;
      --tls-cert) cert=${2:-} ;;
      --token-file=*) tokens=${1#*=} ;;
      --token-file) tokens=${2:-} ;;
    esac
    shift
  done
  if [ -n "$cert" ]; then
    printf 'export GRIDCLOCK_TLS_CA=%q\n' "$(realpath "$cert")"
    note "GRIDCLOCK_TLS_CA is the authority of the server's certificate; as above if it signed itself"
  fi
  [ -z "$tokens" ] || note "each call needs a token: put yours into a file and export GRIDCLOCK_TOKEN_FILE=FILE"
}

tell() {
  local address metrics
  address=$(fact grpc)
  metrics=$(fact metrics)
  say "Gridclock listens on $address${metrics:+, metrics on http://$metrics/metrics}"
  note "paste these lines where you want to use it:"
  # The reader's shell expands its own PATH.
  # shellcheck disable=SC2016
  printf 'export PATH=%q:%q:"$PATH"\n' "$bin" "$venv/bin"
  printf 'export GRIDCLOCK_SERVER=%q\n' "$address"
  [ -z "$metrics" ] || printf 'export GRIDCLOCK_METRICS=%q\n' "$metrics"
  printf 'export REPO=%q\n' "$root"
  tell_secrets "${@:2}"
  note "python3 is then the one of .venv, which has the numpy that the pages' examples use; without"
  note "that folder in PATH, gridclock works as well and python3 stays yours"
  note "then, for example:"
  note "gridclock list"
  note "gridclock run softmax x='randn:f32[4,8]'"
  note "gridclock bench matmul --shape M=512 K=512 N=512"
  note "stop it: kill $1$([ -n "$detach" ] || echo ', or Ctrl-C here')   (log: $folder/server.log)"
}

refuse_second
mkdir -p "$folder"
rm -f "$folder/ready"
if [ -n "$detach" ]; then
  setsid "${command[@]}" "$@" > "$folder/server.log" 2>&1 < /dev/null &
  wait_ready $!
  tell $! "$@"
  exit 0
fi
# Ctrl-C goes to tee as well, which has the server's last lines still to write.
exec {log}> >(exec tee -i "$folder/server.log")
tee=$!
"${command[@]}" "$@" >&"$log" 2>&1 {log}>&- &
server=$!
exec {log}>&-
trap 'kill -TERM $server 2>/dev/null' INT TERM HUP
wait_ready "$server"
tell "$server" "$@"
# A signal ends a wait; what the server ended with is kept for the last one.
while kill -0 "$server" 2>/dev/null; do wait "$server" || true; done
wait "$server" && code=0 || code=$?
exit "$code"
