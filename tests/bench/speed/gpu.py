"""What the groups of GPU goals share: a server on a GPU, and PyTorch beside it."""
import contextlib
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys

from speed.line import REPEATED, Line
from speed.programs import Server, run_json

DEVICE = "cuda:0"
PEER = pathlib.Path(__file__).with_name("torch_peer.py")


def gpu_server(config, *flags):
    return Server(config.binaries, f"--devices={DEVICE}", *flags)


def describe(config, server, torch=None):
    """Into the head of the figures: the GPU, without what tells one from its like."""
    if torch is not None and torch.facts:
        config.found("pytorch", torch.facts["torch"])
    if config.device:
        return
    devices = run_json(config.binaries / "gridclock", "--server", server.address, "devices", "--json")
    found = next(d for d in devices if d["name"] == DEVICE)
    config.found("device", f"{found['model']}, driver {found['driver']}, CUDA {found['cuda']}")


class Said(str):
    """What tests print, and how many of them failed."""

    failed = 0


FAILED = re.compile(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", re.MULTILINE)


def run_test(config, program, only, **environment):
    """What the tests of one program print, whether they pass or fail: figures are held against goals here."""
    ran = subprocess.run([config.binaries / program, f"--gtest_filter={only}"], capture_output=True, text=True,
                         errors="replace", timeout=580,
                         env={**os.environ, "GRIDCLOCK_BIN": str(config.binaries), **environment})
    said = Said(ran.stdout)
    said.failed = len(set(FAILED.findall(said))) or int(ran.returncode != 0)
    return said


def failed_line(group):
    """Of tests whose rows are held against goals: what else they ask for."""
    return Line(f"{group}.failed", "tests behind these rows that failed, whatever they asked", "<=", 0, worst=True)


# Of a launch that loaded code first, and so waited for the device: the answer asks to call again.
WAITED = "was not queued within"


def bench(config, server, kernel, *words, method="device_time", budget="300ms", l2="hot"):
    """One measurement by the command line, and whether it is a repeated one; without a budget it has the default."""
    command = [config.binaries / "gridclock", "--server", server.address, "bench", kernel, *words,
               "--device", DEVICE, "--method", method, *(("--budget", budget) if budget else ()), "--l2", l2, "--json"]
    repeated = False
    try:
        told = run_json(*command)
    except RuntimeError as error:
        if WAITED not in str(error):
            raise
        told, repeated = run_json(*command), True
    result = told["results"][0]
    if "timing" not in result:
        raise RuntimeError(f"{kernel} {' '.join(words)}: {result}")
    return {**result, "repeated": repeated}


def launches_of_one(config, server, kernel, *inputs):
    """How many launches on the GPU one call makes."""
    told = run_json(config.binaries / "gridclock", "--server", server.address, "run", kernel, *inputs, "--device", DEVICE,
                    "--json")
    return sum(launched["count"] for launched in told["device_kernels"])


def rows_of(config, name, names, measure):
    """The lines of `names`, which are told as an earlier run measured them or else measured; none of those that this
    run leaves out."""
    known = [config.known[one] for one in names if one in config.known and config.known[one].samples]
    if len(known) == len(names):
        return known
    return measure() if any(fnmatch.fnmatch(name, pattern) for pattern in config.rows.split(",")) else []


def table_line(name, what, op="<=", skipped=""):
    """Of a table that must be whole: any figure will do, and where there is none the goal is missed."""
    return Line(name, what, op, 0, skipped=skipped, informative=not skipped)


# What makes a figure one that nothing can be held against. SHARED_DEVICE is none: PyTorch waits on the same GPU.
# THROTTLED is shown: a product that takes all power runs so beside its peer too.
DOUBTS = ("SUSPECT", "IMPOSSIBLE", "INTERRUPTED", "THROTTLED", "NOISY")


class Nanoseconds(float):
    """A time, with the flags of its measurement that a reader of the figure must know, and whether it was repeated."""

    flags = ()
    sm_mhz = None  # The clock behind the last sample, where the driver tells it.
    clock_before_mhz = clock_after_mhz = None  # Measured on the GPU before the first sample and after the last.


def mhz(hertz):
    return hertz and hertz / 1e6


def median_of(result):
    timing = result["timing"]
    ns = Nanoseconds(timing["statistics"]["median_ns"])
    ns.flags = tuple(flag for flag in DOUBTS if flag in result["flags"]) + (REPEATED,) * result.get("repeated", False)
    ns.sm_mhz = mhz(timing.get("after", {}).get("sm_clock_hz"))
    ns.clock_before_mhz, ns.clock_after_mhz = mhz(timing.get("clock_before_hz")), mhz(timing.get("clock_after_hz"))
    return ns


def median_ns(config, server, kernel, *words, **options):
    return median_of(bench(config, server, kernel, *words, **options))


class Torch:
    """PyTorch in a process of its own, or the reason why there is none."""

    def __init__(self):
        # Our libraries are not its.
        environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
        self._process = subprocess.Popen([sys.executable, str(PEER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True, env=environment)
        hello = self._process.stdout.readline()
        self.missing = "" if hello else "no PyTorch: " + self._process.stderr.read().strip().splitlines()[-1]
        self.facts = json.loads(hello) if hello else {}

    def ns(self, op, shape, **options):
        """The median time of one call in nanoseconds."""
        return self.ask(op, shape, **options)["ns"]

    def ask(self, op, shape, how="device", dtype="float32", compiled=False, warm=0):
        """The whole answer; torch_peer.py says what `op` is."""
        request = {"op": op, "shape": shape, "how": how, "dtype": dtype, "compiled": compiled, "warm": warm}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "it ended"}')
        if "error" in answer:
            raise RuntimeError(f"PyTorch, {op} of {shape}: {answer['error']}")
        return answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()
        self._process.stderr.close()
