"""Large tensors against raw TCP and, beside it, Arrow Flight; small calls beside a large one."""
import importlib.util
import pathlib
import subprocess
import sys

from speed.line import Line
from speed.programs import Server, run_json

SIZES = {"256M": 256 << 20, "1G": 1 << 30}
FLIGHT = pathlib.Path(__file__).resolve().parent / "flight.py"


class Flight:
    """A Flight server in its own process; `None` in `address` where pyarrow is absent."""

    def __init__(self):
        self.address = None
        if importlib.util.find_spec("pyarrow"):
            self.process = subprocess.Popen([sys.executable, FLIGHT, "serve"], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
            self.address = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.address:
            self.process.stdin.close()
            self.process.wait(30)


def make_lines():
    lines = {}
    for size in SIZES:
        lines[size, "in"] = Line(f"bulk.in.{size}", f"{size} in by StreamRun: bytes per second over raw TCP's", ">=", 0.6)
        lines[size, "back"] = Line(f"bulk.back.{size}", f"{size} there and back by copy: bytes per second over raw TCP's",
                                   ">=", 0.6)
        lines[size, "flight"] = Line(f"bulk.flight.{size}", f"{size} there and back by Arrow Flight, batches of 1 MiB: "
                                     "bytes per second over raw TCP's", ">=", 0, informative=True)
    return lines


def beside_line():
    return Line("bulk.beside", "a small call that begins while bytes of the same client move: p50 over idle", "<=", 4)


def goals():
    return [*make_lines().values(), beside_line()]


def one_round(config, server, flight, lines, size):
    count = SIZES[size]
    tcp = run_json(config.binaries / "bench-tcp", count, 1)
    there = tcp["in_seconds"]
    both = there + tcp["back_seconds"]
    sent = run_json(config.binaries / "bench-bulk", server.address, "in", count, 1)
    lines[size, "in"].add(there / sent["seconds"], tcp_seconds=there, gridclock_seconds=sent["seconds"])
    moved = run_json(config.binaries / "bench-bulk", server.address, "back", count, 1)
    lines[size, "back"].add(both / moved["seconds"], tcp_seconds=both, gridclock_seconds=moved["seconds"])
    if flight.address:
        peer = run_json(sys.executable, FLIGHT, "move", flight.address, count)
        lines[size, "flight"].add(both / peer["seconds"], flight_seconds=peer["seconds"])
    else:  # Any figure of the peer will do; none is a goal that is missed.
        lines[size, "flight"].skipped, lines[size, "flight"].informative = "no pyarrow", False


def beside(config, server, line):
    """A small call while the same client moves a large tensor, over the same call on a quiet server."""
    told = run_json(config.binaries / "bench-bulk", server.address, "beside", 256 << 20, 4)
    line.add(told["beside_p50_us"] / told["idle_p50_us"], **told)


def measure(config):
    lines = make_lines()
    mixed = beside_line()
    with Server(config.binaries) as server, Flight() as flight:
        for size, count in SIZES.items():
            # The arena is faulted in as it is used and kept: its first use is not what is measured.
            run_json(config.binaries / "bench-bulk", server.address, "back", count, 1)
            for _ in range(config.rounds):
                one_round(config, server, flight, lines, size)
        for _ in range(config.rounds):
            beside(config, server, mixed)
    return [*lines.values(), mixed]
