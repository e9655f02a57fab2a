"""What limits kernels, by Nsight Compute: of a worker by itself, under ncu. For rows of the catalogue's table that
missed a goal in this run, or in the one that it resumes; --rows names others."""
import csv
import functools
import io
import re
import subprocess

from speed import gpu
from speed.gpu import gpu_server
from speed.gpu_catalog import CASES
from speed.gpu_ncu import Unavailable, find_ncu, why_not
from speed.line import Line
from speed.programs import run_json

SECTIONS = ("SpeedOfLight", "SchedulerStats", "WarpStateStats", "Occupancy")
# By ncu's names, in percent of what the part can do at most (but for the last two).
METRICS = {"DRAM Throughput": "dram_percent", "L2 Cache Throughput": "l2_percent", "L1/TEX Cache Throughput": "l1_percent",
           "Compute (SM) Throughput": "sm_percent", "Achieved Occupancy": "occupancy_percent",
           "No Eligible": "no_warp_eligible_percent", "SM Frequency": "sm_hz", "Duration": "ns"}
PARTS = ("dram_percent", "l2_percent", "l1_percent", "sm_percent")
RULE = "CPIStall"  # It says what warps wait for most, where the schedulers leave much undone.
NO_STALL = "The optional metric"  # What a rule misses, and not what it found.
# Cycles of an instruction, waiting; asked for by name too, as the sections show them in charts alone.
WAITS = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
WAIT = re.compile(WAITS.replace(".", r"\.").replace("{}", r"(\w+)"))
REASONS = ("barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle",
           "long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected",
           "short_scoreboard", "sleeping", "tex_throttle", "wait")


def cases(config):
    """Not those with a weaker peer: ours are in another row too."""
    return [case for case in CASES if not case.informative and (config.rows != "*" or config.missed & set(case.names))]


def name_of(case):
    return case.name.replace("gpu.catalog", "gpu.limits")


def bare_words(told, words):
    """The inputs and attributes as a worker by itself takes them, from a result of the same call by a server."""
    flags = [i for i, word in enumerate(words) if word.startswith("--")]
    own = [word for i, word in enumerate(words) if not {i, i - 1} & set(flags)]
    generators = dict(word.split("=") for word in own if ":" in word)
    attributes = [word for word in own if ":" not in word]
    inputs = []
    for one in told["inputs"]:
        for spec in one["tensors"]:
            made = generators.get(one["name"], "randn" if spec.startswith(("f", "bf")) else "randint:0:100")
            inputs.append(f"{one['name']}={made}:{spec}")
    return ["--variant", told["results"][0]["variant"], told["kernel"], *inputs, *attributes]


def number(text):
    """None where ncu has none: `n/a`, of what this GPU does not count."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def add_row(launch, row):
    name, wait, value = METRICS.get(row["Metric Name"]), WAIT.fullmatch(row["Metric Name"]), number(row["Metric Value"])
    if name and value is not None:
        launch.setdefault(name, value)
    if wait and value is not None:
        launch.setdefault("waits", {})[wait[1]] = value
    said = row.get("Rule Description") or ""
    if row.get("Rule Name") == RULE and not said.startswith(NO_STALL):
        launch.setdefault("stall", said.split(". ")[0])


def launches_in(output):
    """Of each launch its metrics by name, under `waits` the cycles by reason, under `stall` what ncu says of them."""
    launches = {}
    for row in csv.DictReader(io.StringIO(output[max(0, output.find('"ID"')):])):
        if row["ID"].isdigit():  # Others print behind it.
            add_row(launches.setdefault(row["ID"], {"kernel": row["Kernel Name"].split("(")[0]}), row)
    return [launches[key] for key in sorted(launches, key=int)]


def longest(launches):
    """Of the second call, which found caches and code as the first had left them."""
    second = launches[len(launches) // 2:]
    if not second or any(part not in launch for launch in second for part in (*PARTS, "ns")):
        raise Unavailable(f"ncu told nothing of {len(launches)} launches")
    return max(second, key=lambda launch: launch["ns"])


def look(config, server, ncu, case):
    told = run_json(config.binaries / "gridclock", "--server", server.address, "bench", case.kernel, *case.words,
                    *case.dtype_words, "--device", gpu.DEVICE, "--budget", "1ms", "--samples", "1", "--json")
    worker = [config.binaries / "gridclock-worker", "--bare", "--device", gpu.DEVICE, "--repeat", "2",
              *bare_words(told, case.words)]
    sections = [word for section in SECTIONS for word in ("--section", section)]
    ran = subprocess.run([ncu, "--clock-control", "none", "--cache-control", "none", "--print-units", "base", "--csv",
                          "--page", "details", *sections, "--metrics", ",".join(map(WAITS.format, REASONS)),
                          *map(str, worker)], capture_output=True, text=True, timeout=300, errors="replace")
    if ran.returncode != 0:
        raise Unavailable(why_not(ran.stdout + ran.stderr))
    return longest(launches_in(ran.stdout))


def stall_of(launch):
    """What warps wait for: in the rule's words, or else by the metrics."""
    if "stall" in launch:
        return f"; {launch['stall']}"
    if "waits" not in launch:
        return ""
    reason, cycles = max(launch["waits"].items(), key=lambda wait: wait[1])
    total = sum(launch["waits"].values())
    return f"; warps wait most for {reason}, {cycles:.2g} of {total:.2g} cycles of waiting an instruction"


def line_of(case, launch):
    """How far the part goes that goes farthest. No goal: it says what limits."""
    most, stall = max(PARTS, key=launch.get), stall_of(launch)
    line = Line(name_of(case), f"{case.what}: {launch['kernel']}, the part that goes farthest: {most.split('_')[0]}{stall}",
                ">=", 0, " %", informative=True)
    line.add(launch[most], **{key: value for key, value in launch.items() if key in METRICS.values()})
    return line


def measure(config):
    """Once, whatever the rounds: ncu repeats a launch by itself."""
    with gpu_server(config) as server:
        gpu.describe(config, server)

        def lines_of(case):
            try:
                return [line_of(case, look(config, server, find_ncu(), case))]
            except (Unavailable, RuntimeError, subprocess.TimeoutExpired) as why:
                return [Line(name_of(case), f"{case.what}: what limits it", ">=", 0, informative=True, skipped=str(why))]

        for case in cases(config):
            name = name_of(case)
            yield from gpu.rows_of(config, name, [name], functools.partial(lines_of, case))
