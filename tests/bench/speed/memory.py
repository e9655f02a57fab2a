"""What a large tensor costs in memory, sampled while it moves."""
import contextlib
import pathlib

from speed.background import Background
from speed.line import Line
from speed.programs import Server, run_json

GIB = 1 << 30
MIB = 1 << 20


def pss(pid):
    """Bytes of one process; nothing once it is gone."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            key, _, value = line.partition(":")
            if key == "Pss":
                return int(value.split()[0]) * 1024
    return 0


class Sampler(Background):
    """The peak of the sum over some processes, read every 10 ms."""

    def __init__(self, pids):
        super().__init__(0.01)
        self.pids, self.peak = pids, 0

    def turn(self):
        self.peak = max(self.peak, sum(map(pss, self.pids)))


def one_run(config, line, client, *flags):
    """One 1 GiB tensor there and back through a server that has done nothing before."""
    with Server(config.binaries) as server:
        pids = server.pids()
        idle = sum(map(pss, pids))  # Counts: it is told, and not taken off.
        with Sampler(pids) as sampler:
            told = run_json(config.binaries / "bench-bulk", server.address, "back", GIB, 1, *flags)
    line.add((sampler.peak - 2 * GIB) / MIB, peak_mib=sampler.peak / MIB, idle_mib=idle / MIB, reads=sampler.turns)
    client.add(told["client_extra_bytes"] / MIB)


# Name, words, flags of the client.
CASES = (("memory", "", ()),
         ("memory.slow_reader", ", the client reading slower than the server sends", ("--read-delay-us", 2000)))


def pair(name, what):
    return [Line(f"{name}.server", f"1 GiB there and back{what}: peak of server and worker, idle memory included, over "
                 "in + out", "<=", 64, " MiB"),
            Line(f"{name}.client", f"1 GiB there and back{what}: peak of the client over its tensors", "<=", 16, " MiB")]


def goals():
    return [line for name, what, _ in CASES for line in pair(name, what)]


def measure(config):
    lines = []
    for name, what, flags in CASES:
        server, client = pair(name, what)
        for _ in range(config.rounds):
            one_run(config, server, client, *flags)
        lines += [server, client]
    return lines
