"""How exact what is fast is: cdist beside the slow form of PyTorch's, which is exact, and the fast one."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from speed import gpu
from speed.gpu import gpu_server
from speed.line import Line
from speed.programs import run_json

PEER = pathlib.Path(__file__).with_name("exact_peer.py")
WHAT = "cdist of 512 and 8192 rows of 128 f32, 10 from zero: the largest error"


def peer(folder, what):
    # Our libraries are not its.
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    ran = subprocess.run([sys.executable, str(PEER), str(folder), what], capture_output=True, text=True, env=environment)
    if ran.returncode != 0:
        raise RuntimeError("PyTorch: " + (ran.stderr.strip().splitlines() or ["it said nothing"])[-1])
    return ran.stdout


def goals():
    return [Line("gpu.exact.cdist", f"{WHAT} over that of PyTorch's direct form", "<=", 2)]


def lines_of(errors):
    [line] = goals()
    if errors["direct"] == 0:
        line.skipped = "PyTorch's direct form has no error at all: nothing can be held against that"
        return [line]
    line.add(errors["ours"] / errors["direct"], **errors)
    product = Line("gpu.exact.cdist.product", f"{WHAT} of PyTorch's form by a product over ours", ">=", 0, informative=True)
    if errors["ours"] == 0:
        product.skipped = "ours has no error at all"
    else:
        product.add(errors["product"] / errors["ours"])
    return [line, product]


def measure(config):
    with gpu_server(config) as server, tempfile.TemporaryDirectory() as folder:
        gpu.describe(config, server)
        try:
            peer(folder, "make")
            run_json(config.binaries / "gridclock", "--server", server.address, "run", "cdist", "a=a.npy", "b=b.npy", "-o",
                     "d=d.npy", "--device", gpu.DEVICE, "--json", cwd=folder)
            told = json.loads(peer(folder, "errors"))
            config.found("pytorch", told["torch"])
            return lines_of(told["errors"])
        except RuntimeError as why:
            [line] = goals()
            line.skipped = str(why)
            return [line]
