"""Device time beside what Nsight Compute says of the same kernel: of a worker by itself, under ncu."""
import csv
import shutil
import statistics
import subprocess

from speed import gpu
from speed.gpu import describe, gpu_server
from speed.line import Line

# Kernel and words of each line; those of names are of very many blocks, short ones and ones that compute.
TARGETS = {**{str(n): ("square", (f"x=randn:f32[{n}]",)) for n in (1_000, 100_000, 1_000_000, 16_000_000, 268_435_456)},
           "square.naive": ("square.naive", ("x=randn:f32[268435456]",)),
           "relu.naive": ("relu.naive", ("x=randn:bf16[268435456]",)),
           "sigmoid": ("sigmoid", ("x=randn:f32[268435456]",)),
           **{f"pow.{n}": ("pow", (f"x=uniform:0:2:f32[{n}]", "exponent=0.3")) for n in (67_108_864, 268_435_456)}}
# Of milliseconds, in the first rounds alone: a worker by itself makes inputs on the host, which takes seconds.
LONG = {"1500000000": ("square", ("x=uniform:0:1:f32[1500000000]",)),
        "softmax.65536x8192": ("softmax", ("x=uniform:0:1:f32[65536,8192]",))}
LONG_ROUNDS = 3
# Short ones, whose bound would hide a microsecond: by how much ncu's time is beyond device time is to be the same of all,
# of the first three by CUPTI's concurrent records and of the last by serial ones.
SHORT = ("1000", "100000", "1000000", "16000000")
METRIC = "gpu__time_duration.sum"
WARM_UP, LAUNCHES = 10, 30
# As Gridclock finds them: the clock left alone, the cache as the launch before left it. The metric is
# had in one pass, so nothing is run again.
NCU = ("--clock-control", "none", "--cache-control", "none", "--launch-skip", str(WARM_UP), "--print-units", "base",
       "--metrics", METRIC, "--csv")


class Unavailable(Exception):
    """Why ncu cannot tell here."""


def find_ncu():
    found = shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin")
    if found is None:
        raise Unavailable("no ncu")
    return found


def why_not(said):
    """Out of the output of an ncu that failed."""
    if "ERR_NVGPUCTRPERM" in said:
        return "ncu may not read counters here (ERR_NVGPUCTRPERM)"
    errors = [line for line in said.splitlines() if line.startswith("==ERROR==")]
    return "ncu: " + (errors or said.strip().splitlines() or ["it said nothing"])[0]


def times_in(output):
    """The nanoseconds of each launch in what ncu printed; lines of others stand between its rows."""
    rows = csv.DictReader(line for line in output.splitlines() if line.startswith('"'))
    times = []
    for row in rows:
        if row["Metric Name"] != METRIC:
            continue
        if row["Metric Unit"] not in ("ns", "nsecond"):
            raise Unavailable(f"ncu: want {METRIC} in ns, got {row['Metric Unit']}")
        times.append(float(row["Metric Value"].replace(",", "")))
    return times


def ncu_ns(config, ncu, kernel, words):
    """The median over the launches behind the warm-up."""
    name, _, variant = kernel.partition(".")
    worker = [config.binaries / "gridclock-worker", "--bare", "--device", gpu.DEVICE, "--repeat", str(WARM_UP + LAUNCHES),
              *(("--variant", variant) if variant else ()), name, *words]
    ran = subprocess.run([ncu, *NCU, *map(str, worker)], capture_output=True, text=True, timeout=300, errors="replace")
    if ran.returncode != 0:
        raise Unavailable(why_not(ran.stdout + ran.stderr))
    times = times_in(ran.stdout)
    if len(times) != LAUNCHES:
        raise Unavailable(f"ncu: want {LAUNCHES} launches, got {len(times)}")
    return statistics.median(times)


def apart_line():
    return Line("gpu.ncu.apart", "square of 1,000 to 16,000,000: the largest less the least of what ncu's time is beyond "
                "device time", "<=", 0.5, " us")


def goals():
    return [*make_lines().values(), apart_line()]


def apart(lines):
    """By the rounds of lines that were measured."""
    line = apart_line()
    flags = [flag for name in SHORT for flag in lines[name].flags]
    for turn in range(len(lines[SHORT[0]].samples)):
        beyond = {name: lines[name].extra["ncu_us"][turn] - lines[name].extra["device_us"][turn] for name in SHORT}
        line.add(max(beyond.values()) - min(beyond.values()), flags, **{f"beyond_{name}_us": us for name, us in beyond.items()})
    return line


def make_lines():
    # The median of rounds: each has other memory, and of 16,000,000 the medians of ncu's processes lie 0.5 us apart.
    return {name: Line(f"gpu.ncu.{name}", f"{kernel} {' '.join(words)}: device time against ncu's over max(1.5 us, 1 %)", "<=",
                       1)
            for name, (kernel, words) in {**TARGETS, **LONG}.items()}


def targets_of(turn):
    return {**TARGETS, **(LONG if turn < LONG_ROUNDS else {})}


def measure(config):
    lines = make_lines()
    try:
        ncu = find_ncu()
        with gpu_server(config) as server:
            describe(config, server)
            for turn in range(config.rounds):
                for name, (kernel, words) in targets_of(turn).items():
                    theirs = ncu_ns(config, ncu, kernel, words)
                    ours = gpu.median_ns(config, server, kernel, *words)
                    lines[name].add(abs(ours - theirs) / max(1500, 0.01 * theirs), ours.flags, device_us=ours / 1e3,
                                    ncu_us=theirs / 1e3)
        told = [*lines.values(), apart(lines)]
        for line in lines.values():
            line.extra["worst"] = [max(line.samples)]
    except Unavailable as why:
        told = goals()  # What was measured before does not count.
        for line in told:
            line.skipped = str(why)
    return told
