#!/usr/bin/env bash
# demo.sh BIN: a server, kernels on tensors from .npy files, a timing table, the metrics of it all, a
# clean stop. Every result is checked by numpy: the demo fails where it is wrong. Its last line is the result.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$root/tools/server.sh"
bin=$(cd "$1" && pwd)
PATH=$bin:$PATH
folder=$(mktemp -d)
python=$venv/bin/python
server_pid=

leave() {
  [ -z "$server_pid" ] || ! kill -0 "$server_pid" 2>/dev/null || kill -TERM "$server_pid"
  wait
  rm -rf "$folder"
}
trap leave EXIT
trap 'exit 130' INT TERM

# Shows a command, then runs it.
run() {
  local word line='$'
  for word in "$@"; do
    case $word in *[*[]*) line+=" '$word'" ;; *) line+=" $word" ;; esac
  done
  printf '\n%s\n' "$line"
  "$@"
}

say "tensors: .npy files as numpy writes them"
cd "$folder"
"$python" - <<'PY'
import numpy as np
rng = np.random.default_rng(1)
np.save("a.npy", rng.standard_normal(1_000_000, dtype=np.float32))
np.save("b.npy", rng.standard_normal(1_000_000, dtype=np.float32))
np.save("scores.npy", rng.standard_normal((64, 1000), dtype=np.float32))
np.save("left.npy", rng.standard_normal((256, 384), dtype=np.float32))
np.save("right.npy", rng.standard_normal((384, 128), dtype=np.float32))
for name in ("a", "b", "scores", "left", "right"):
    x = np.load(name + ".npy")
    print(f"   {name}.npy  {x.dtype} {x.shape}")
PY

say "a server with its workers, on loopback"
start_server "$bin" "$folder"
note "listens on $GRIDCLOCK_SERVER; metrics on http://$metrics_address/metrics"

say "what it can do"
run gridclock devices
run gridclock list

say "kernels on those tensors"
run gridclock run vector_add a=a.npy b=b.npy -o c=sum.npy
run gridclock run softmax x=scores.npy -o y=probabilities.npy --verify
run gridclock run matmul a=left.npy b=right.npy -o c=product.npy
run gridclock run square 'x=randn:f32[2,8]'

say "checked by numpy"
"$python" - <<'PY'
import numpy as np
load = lambda name: np.load(name + ".npy")
a, b, scores, left, right = map(load, ("a", "b", "scores", "left", "right"))
e = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
wanted = {"sum": a + b, "probabilities": e / e.sum(axis=1, keepdims=True),
          "product": left.astype(np.float64) @ right}
values = 0
for name, want in wanted.items():
    got = load(name)
    values += got.size
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    print(f"   {name}.npy  {got.dtype} {got.shape}  largest difference {np.abs(got - want).max():.2g}")
with open("checked", "w") as told:
    print(f"{values} values of {len(wanted)} results are numpy's", file=told)
PY

say "timed: how long, how sure, how far from what the memory allows"
run gridclock bench square --shape N=1M
run gridclock bench softmax --shape '*=64' N=1000
run gridclock bench matmul --shape M=512 K=512 N=512
note "run times one launch, on data that is in no cache; bench many, and so a shorter time of the same kernel"
note "bytes and flops are rates; where data fits a cache the roofline is that of the cache, beyond what devices shows"
note "SHARED_DEVICE: others computed here too; docs/timing.md has all flags"

say "the metrics that this caused"
"$python" - "$metrics_address" <<'PY'
import re, sys, urllib.request
text = urllib.request.urlopen(f"http://{sys.argv[1]}/metrics", timeout=10).read().decode()
wanted = re.compile(r"gridclock_(rpc_requests_total|kernel_runs_total|kernel_duration_seconds_(count|sum)|measurements_total|transfer_bytes_total|worker_up)\{.*")
lines = [line for line in text.splitlines() if wanted.match(line) and not line.endswith(" 0")]
print("\n".join(lines[:24]))
if not lines:
    sys.exit("no metric of a run was found")
with open("found", "w") as told:
    print(f"{len(lines)} metrics of it were found", file=told)
PY

say "a clean stop"
stop_server
server_pid=
note "the server ended with 0, and no process is left"

say "what next"
note "./dev up                 a server that keeps running, and the lines to paste for using it"
note "docs/cli.md              the command line"
note "docs/add-a-kernel.md     a kernel of your own"

printf '\ndemo: passed: %s, %s, the server stopped cleanly\n' "$(< checked)" "$(< found)"
