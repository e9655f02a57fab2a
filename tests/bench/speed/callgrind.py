"""Instructions of a server, counted by valgrind: the same from run to run where times are not."""
import contextlib
import pathlib
import re
import shutil
import tempfile
import urllib.request

from speed.programs import Server
from speed.small import small_call

IN_FLIGHT = 64
FEW, MANY = 500, 3000  # Calls; the difference is what counts, so a server's start is not in it.
SCRAPES = 10
# As Prometheus asks: OpenMetrics first.
ACCEPT = ("application/openmetrics-text;version=1.0.0;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,"
          "text/plain;version=1.0.0;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2")


def missing():
    return "" if shutil.which("valgrind") else "no valgrind"


def scrape(address):
    asked = urllib.request.Request(f"http://{address}/metrics", headers={"Accept": ACCEPT})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        if not answer.read().endswith(b"\n# EOF\n"):
            raise RuntimeError("a scrape that is not OpenMetrics, or not whole")


def total(text):
    """What a callgrind.out file says of the whole run."""
    found = re.search(r"^summary: (\d+)", text, re.MULTILINE)
    if found is None:
        raise RuntimeError("callgrind wrote no summary")
    return int(found.group(1))


def instructions(config, flags, calls, scrapes=0):
    """Of a whole server; its worker runs beside it, uncounted."""
    with contextlib.ExitStack() as stack:
        out = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())) / "out"
        under = ("env", f"LD_PRELOAD={config.binaries / 'libbench-pidfd.so'}", "valgrind", "--tool=callgrind",
                 f"--callgrind-out-file={out}")
        with Server(config.binaries, *flags, under=under, start_seconds=180, stop_seconds=180) as server:
            small_call(config.binaries, "empty", server.address, IN_FLIGHT, calls)
            for _ in range(scrapes):
                scrape(server.metrics)
        return total(out.read_text())


def per_call(config, *flags):
    """(instructions of a call, instructions of the server with FEW calls)"""
    few = instructions(config, flags, FEW)
    return (instructions(config, flags, MANY) - few) / calls_between(), few


def calls_between():
    return (MANY - FEW) * 1.1  # bench-small warms up with a tenth more.


def per_scrape(config, without):
    """`without`: what the same server with FEW calls and no scrape takes."""
    return (instructions(config, (), FEW, SCRAPES) - without) / SCRAPES
