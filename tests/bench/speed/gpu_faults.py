"""What a kernel's fault costs: until its client is told, and until the next kernel on that GPU has run."""
import re

from speed import gpu
from speed.gpu import gpu_server
from speed.line import Line

ROUNDS = 25
FAULTS = ("illegal_address", "assert", "misaligned", "trap", "endless", "allocate")
ROW = re.compile(r"^(\w+) +(\d+) rounds +answer +([\d.]+) s \(goal \d+\) +next kernel +([\d.]+) s \(goal \d+\) +(\d+) wrong$",
                 re.MULTILINE)
OTHERS = re.compile(r"^calls on cuda:1 beside (\w+): (\d+) good, (\d+) bad, the slowest (-?[\d.]+) s later than without$",
                    re.MULTILINE)


def why_none(row):
    """Why times of the row do not count; empty where they do."""
    if row is None or int(row[0]) != ROUNDS:
        return f"want {ROUNDS} rounds, got {row[0] if row else 'none'}"
    return f"{row[3]} of {ROUNDS} rounds went wrong" if row[3] != "0" else ""


def answer_and_next(kind):
    return [Line(f"gpu.fault.{kind}.answer", f"{kind}, {ROUNDS} times: the slowest answer after the fault or the limit", "<=",
                 1, " s", each=ROUNDS),
            Line(f"gpu.fault.{kind}.next", f"{kind}, {ROUNDS} times: the slowest next kernel on that GPU", "<=", 2, " s",
                 each=ROUNDS)]


def goals():
    """Those of one GPU."""
    return [*(line for kind in FAULTS for line in answer_and_next(kind)), gpu.failed_line("gpu.fault")]


def of_fault(kind, row):
    lines = answer_and_next(kind)
    for at, line in enumerate(lines, start=1):
        line.skipped = why_none(row)
        if not line.skipped:
            line.add(float(row[at]))
    return lines


def others(kind, row):
    bad = Line(f"gpu.fault.{kind}.others", f"{kind}, {ROUNDS} times: calls on another GPU that went wrong meanwhile", "<=", 0,
               each=ROUNDS)
    late = Line(f"gpu.fault.{kind}.late", f"{kind}, {ROUNDS} times: how much later than without the slowest call on another "
                "GPU was answered", "<=", 0.05, " s", each=ROUNDS)
    if row is None:
        for line in (bad, late):
            line.skipped, line.informative = "one GPU alone", True
    else:
        bad.add(int(row[1]), good=int(row[0]))
        late.add(float(row[2]))
    return [bad, late]


def measure(config):
    with gpu_server(config) as server:
        gpu.describe(config, server)
    output = gpu.run_test(config, "server_gpu_test", "ServerGpuTest.*Fault*:ServerGpuTest.G4_*:ServerGpuTest.G6_*",
                          GRIDCLOCK_GPU_ROUNDS=str(ROUNDS))
    rows = {kind: row for kind, *row in ROW.findall(output)}
    beside = {kind: row for kind, *row in OTHERS.findall(output)}
    if beside:  # Then there are two GPUs: a kind without figures is a goal without.
        beside = {kind: beside.get(kind, ("0", str(ROUNDS), "inf")) for kind in FAULTS}
    failed = gpu.failed_line("gpu.fault")
    failed.add(output.failed)
    return [*(line for kind in FAULTS for line in (*of_fault(kind, rows.get(kind)), *others(kind, beside.get(kind)))), failed]
