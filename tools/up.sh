#!/usr/bin/env bash
# up.sh BIN [--detach] [SERVER FLAG...]: a server that keeps running.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
bin=$(cd "$1" && pwd)
shift
command=("$bin/gridclock-server" --worker "$bin/gridclock-worker" --ready-file "$root/build/up/ready")
detach=
if [ "${1:-}" = --detach ]; then detach=1; shift; fi
mkdir -p "$root/build/up"
rm -f "$root/build/up/ready"

tell() {
  local i
  for ((i = 0; i < 600; i++)); do
    [ ! -s "$root/build/up/ready" ] || break
    kill -0 "$1" 2>/dev/null || { cat "$root/build/up/server.log" >&2; die "the server did not start"; }
    sleep 0.1
  done
  [ -s "$root/build/up/ready" ] || die "the server is not ready after 60 s; see build/up/server.log"
  local address metrics
  address=$(sed -n 's/^grpc=//p' "$root/build/up/ready")
  metrics=$(sed -n 's/^metrics=//p' "$root/build/up/ready")
  say "Gridclock listens on $address, metrics on http://$metrics/metrics"
  note "export GRIDCLOCK_SERVER=$address PATH=$bin:\$PATH"
  note "gridclock list"
  note "gridclock run softmax x=randn:f32[4,8]"
  note "gridclock bench matmul --shape M=512 K=512 N=512"
  note "stop it: kill $1   (log: build/up/server.log)"
}

if [ -n "$detach" ]; then
  setsid "${command[@]}" "$@" > "$root/build/up/server.log" 2>&1 < /dev/null &
  tell $!
  exit 0
fi
"${command[@]}" "$@" > >(tee "$root/build/up/server.log") 2>&1 &
server=$!
trap 'kill -TERM $server 2>/dev/null' INT TERM
tell "$server"
while kill -0 "$server" 2>/dev/null; do wait "$server" && code=0 || code=$?; done
exit "${code:-0}"
