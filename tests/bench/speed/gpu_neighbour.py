"""Whether a result says SUSPECT where another process comes to the GPU late, and does not where none is there."""
import re

from speed import gpu
from speed.gpu import gpu_server
from speed.line import Line

ROUNDS = 5
ROW = re.compile(r"^late neighbour, round (\d+) of (\d+): SUSPECT ([01]), (\d+) of (\d+) samples alone; without it (\d+) of (\d+) "
                 "SUSPECT$", re.MULTILINE)


def goals():
    return [Line("gpu.suspect.neighbour", f"square of 2^32, {ROUNDS} times, another process computes once most samples are taken: "
                 "the share of results that are SUSPECT", ">=", 1, each=ROUNDS),
            Line("gpu.suspect.neighbour.alone", "the same kernel before that process is there and behind its end: results that are "
                 "SUSPECT", "<=", 0, each=ROUNDS),
            gpu.failed_line("gpu.suspect.neighbour")]


def measure(config):
    with gpu_server(config) as server:
        gpu.describe(config, server)
    said = gpu.run_test(config, "server_gpu_test", "LateNeighbourTest.G12_AMedianFromBeforeTheOtherProcessIsSuspect",
                        GRIDCLOCK_GPU_ROUNDS=str(ROUNDS))
    rows = [[int(number) for number in row] for row in ROW.findall(said)]
    beside, alone, failed = lines = goals()
    failed.add(said.failed)
    if [row[:2] for row in rows] != [[turn, ROUNDS] for turn in range(1, ROUNDS + 1)]:
        for line in (beside, alone):
            line.skipped = f"want {ROUNDS} rounds, got {len(rows)}"
        return lines
    beside.add(sum(row[2] and 2 * row[3] > row[4] for row in rows) / ROUNDS, alone=[round(row[3] / row[4], 3) for row in rows])
    alone.add(sum(row[5] for row in rows), results=sum(row[6] for row in rows))
    return lines
