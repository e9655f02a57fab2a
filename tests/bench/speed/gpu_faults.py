"""What a kernel's fault costs: until its client is told, and until the next kernel on that GPU has run."""
import re

from speed import gpu
from speed.gpu import gpu_server
from speed.line import Line

ROUNDS = 25
FAULTS = ("illegal_address", "assert", "misaligned", "trap", "endless", "allocate")
ROW = re.compile(r"^(\w+) +(\d+) rounds +answer +([\d.]+) s \(goal (\d+)\) +next kernel +([\d.]+) s \(goal (\d+)\)",
                 re.MULTILINE)
OTHERS = re.compile(r"^calls on cuda:1 meanwhile: (\d+) good, (\d+) bad", re.MULTILINE)


def of_fault(kind, row):
    lines = []
    for name, what, at in (("answer", "the slowest answer after the fault or the limit", 1),
                           ("next", "the slowest next kernel on that GPU", 3)):
        line = Line(f"gpu.fault.{kind}.{name}", f"{kind}, {ROUNDS} times: {what}", "<=", 2 if name == "next" else 1, " s")
        if row is None or int(row[0]) != ROUNDS:
            line.skipped = f"want {ROUNDS} rounds, got {row[0] if row else 'none'}"
        else:
            line.add(float(row[at]))
        lines.append(line)
    return lines


def others(output):
    line = Line("gpu.fault.others", f"calls on another GPU that went wrong beside {ROUNDS} faults of the first", "<=", 0)
    found = OTHERS.search(output)
    if found is None:
        line.skipped, line.informative = "one GPU alone", True
    else:
        line.add(int(found[2]), good=int(found[1]))
    return line


def measure(config):
    with gpu_server(config) as server:
        gpu.describe(config, server)
    output = gpu.run_test(config, "server_gpu_test", "ServerGpuTest.*Fault*:ServerGpuTest.G4_*:ServerGpuTest.AllMemory*",
                          GRIDCLOCK_GPU_ROUNDS=str(ROUNDS))
    rows = {kind: row for kind, *row in ROW.findall(output)}
    return [line for kind in FAULTS for line in of_fault(kind, rows.get(kind))] + [others(output)]
