#!/usr/bin/env python3
"""Measures the speed goals and says which are met.

usage: bench.py --bin FOLDER [--check] [--only small,bulk,...] [--rows PATTERN,...] [--rounds N] [--out FILE] [--resume]

--out is written with every line, and --resume goes on with it: groups that it holds whole, and rows of the
catalogue's groups that have a figure, are not measured again. All must be of the same commit, programs, CPU, GPU,
libraries beside them and rounds.
--rows: of the catalogue's groups (catalog_cpu, gpu_catalog, gpu_variants, gpu_limits) those rows alone whose name a
pattern fits; such a group then does not count as measured.

All ratios are taken within one run, from interleaved rounds; a goal is held against the median of
its rounds. --check: the exit code is 1 where a goal is missed or could not be measured, and where
the rounds are fewer than 9, for then the medians do not count. A group names its goals in `goals()`: one
that was not measured fails the check too.
"""
import argparse
import dataclasses
import datetime
import fnmatch
import hashlib
import importlib
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from speed.line import Line  # noqa: E402: beside this file.

GROUPS = ("small", "metrics", "bulk", "memory", "kernels", "catalog_cpu", "modules", "submissions", "build")
GPU_GROUPS = ("gpu_kernels", "gpu_catalog", "gpu_variants", "gpu_exact", "gpu_timing", "gpu_truth", "gpu_ncu", "gpu_limits",
              "gpu_bulk", "gpu_faults", "gpu_neighbour", "gpu_lessons", "gpu_modules")
LEAST_ROUNDS = 9  # Fewer do not count: their median is the noise of the machine.
GPU_LEAST_ROUNDS = 3  # Each is of medians of many launches by the GPU's own clock.
FOUND = ("device", "pytorch", "numpy")  # What groups tell of that which they measure.


class Mixed(Exception):
    """Figures of two machines, or beside two versions of a peer, would stand in one file."""


@dataclasses.dataclass
class Config:
    binaries: pathlib.Path
    rounds: int = LEAST_ROUNDS
    pairs: int = 40          # Of the metrics' cost.
    counted_rounds: int = LEAST_ROUNDS  # Of instructions.
    calls: int = 2000        # In a round with one in flight; eight times as many with 64.
    device: str = ""         # Of the groups that measure a GPU: what it is, in words.
    pytorch: str = ""        # The versions of the peers,
    numpy: str = ""          # of that on CPUs alone.
    held: dict = dataclasses.field(default_factory=dict)  # What was FOUND, of figures that this run goes on with.
    rows: str = "*"          # Of groups that can measure a part of their rows: which.
    known: dict = dataclasses.field(default_factory=dict)  # Lines of a run that was cut off, by name.
    missed: set = dataclasses.field(default_factory=set)   # Names of lines whose goal was missed so far.

    def found(self, what, is_now):
        """`what`: of FOUND. Mixed where that is not the one of the figures that this run goes on with."""
        was = self.held.get(what)
        if was and was != is_now:
            raise Mixed(f"--resume: held are figures of {was}: this is {is_now}")
        setattr(self, what, is_now)


def libraries():
    """Versions that decide the figures."""
    found = {}
    for package in ("grpc++", "protobuf"):
        ran = subprocess.run(["pkg-config", "--modversion", package], capture_output=True, text=True)
        found[package] = ran.stdout.strip() or "unknown"
    return found


def cpu_model(told=pathlib.Path("/proc/cpuinfo")):
    """Empty where the system does not tell it."""
    lines = told.read_text().splitlines() if told.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def last_cache(folder=pathlib.Path("/sys/devices/system/cpu/cpu0/cache")):
    """Its bytes; 0 where the system does not tell them."""
    kilobytes = {int(path.with_name("level").read_text()): int(path.read_text().strip().rstrip("K"))
                 for path in folder.glob("index*/size")}
    return kilobytes[max(kilobytes)] << 10 if kilobytes else 0


def machine():
    """Without what tells one from its like."""
    told = {"cpu": cpu_model(), "last_cache_bytes": last_cache()}
    return {"cpus": os.cpu_count(), **{what: value for what, value in told.items() if value}}


def hash_of_programs(folder):
    """Of all that is measured, and that measures, there."""
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name.startswith(("gridclock", "bench-", "kernels_bench", "cuda_device_test", "server_gpu_test")):
            total.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def head(config):
    # A bundle carries the commit that it was built from.
    commit = os.environ.get("GRIDCLOCK_REVISION") or subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude", "*"], capture_output=True, text=True).stdout.strip()
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"commit": commit, "programs": hash_of_programs(config.binaries), "date": now.date().isoformat(), "time": f"{now:%H:%M:%S}", **machine(),
            "load_at_start": os.getloadavg()[0], "rounds": config.rounds, "libraries": libraries()}


class Results:
    """The figures so far, in a file that is written with each: what is cut off keeps what it had."""

    def __init__(self, path, config, top):
        self.path, self.config, self.top = path, config, top
        self.groups, self.lines = [], []
        self.gave_up = []  # Groups that failed on the way.

    def resume(self):
        """Takes over what the file holds. Raises ValueError where that is of another run."""
        held = json.loads(self.path.read_text())
        for what in ("commit", "programs", "rounds", *machine()):
            if held.get(what) != self.top.get(what):
                raise ValueError(f"--resume: {self.path} has {what} {held.get(what)}, this run {self.top.get(what)}")
        self.config.held = {what: held[what] for what in FOUND if what in held}
        self.top, self.groups = {**held, "load_at_start": self.top["load_at_start"]}, held["groups"]
        for data in held["lines"]:
            line = Line.from_json(data)
            if data["group"] in self.groups:
                self.hold(data["group"], line)
            else:
                self.config.known[line.name] = line

    def hold(self, group, line):
        self.lines.append((group, line))
        if line.verdict == "FAIL":
            self.config.missed.add(line.name)

    def add(self, group, line):
        print(line.text(), flush=True)
        self.hold(group, line)
        self.write()

    def finish(self, group):
        if self.config.rows == "*":
            self.groups.append(group)
        self.write()

    def write(self):
        now = {what: getattr(self.config, what) for what in FOUND}
        self.top.update({what: text for what, text in now.items() if text})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [{**line.as_json(), "group": group} for group, line in self.lines]
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({**self.top, "groups": self.groups, "lines": lines}, indent=1) + "\n")
        new.replace(self.path)


def goals_of(group):
    """Lines without samples; none of a group whose rows a server alone knows, or that has no goals."""
    return getattr(importlib.import_module(f"speed.{group}"), "goals", list)()


def definition(goal):
    """What a figure must be of to count. Of a goal whose words or bound have changed no older one does, nor where the
    worst round counts and it is a median."""
    return tuple(goal[key] for key in ("name", "what", "op", "bound", "unit")), goal.get("worst", False)


def untold(groups, lines):
    """Names of goals that their groups name and did not measure."""
    told = {definition(dataclasses.asdict(line)) for line in lines}
    return [goal.name for group in groups for goal in goals_of(group) if definition(dataclasses.asdict(goal)) not in told]


def give_up(group, results, why):
    """What of the group has no line yet is missed; the groups behind it are measured all the same."""
    told = [line for its, line in results.lines if its == group]
    asked = [goal.name for goal in goals_of(group) if any(fnmatch.fnmatch(goal.name, one) for one in results.config.rows.split(","))]
    missed = [goal for goal in goals_of(group) if goal.name in asked and goal.name in untold((group,), told)]
    results.gave_up.append(group)
    for line in missed or [Line(f"{group}.whole", "all rows of the group", "<=", 0)]:
        line.skipped = why
        results.add(group, line)


def measure(groups, config, results):
    for group in groups:
        if group in results.groups:
            print(f"      ({group}: measured before)", flush=True)
            continue
        start = time.monotonic()
        try:
            for line in importlib.import_module(f"speed.{group}").measure(config):
                results.add(group, line)
            results.finish(group)
        except Mixed:
            raise
        except Exception as why:  # Whatever a group meets, the others are measured.
            give_up(group, results, f"{type(why).__name__}: {why}")
        print(f"      ({group}: {time.monotonic() - start:.0f} s)", flush=True)


def main(known=GROUPS, least_rounds=LEAST_ROUNDS):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default=",".join(known), help="groups: " + ", ".join(known))
    parser.add_argument("--rounds", type=int, default=least_rounds)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/bench.json"))
    parser.add_argument("--rows", default="*", help="of the catalogue's groups: patterns of their names, as '*matmul*'; of "
                                                    "gpu_timing: of its parts', as 'gpu.fresh', or of fresh workers'")
    parser.add_argument("--resume", action="store_true", help="go on with what --out holds")
    args = parser.parse_args()
    config = Config(args.bin.resolve(), rounds=args.rounds, counted_rounds=args.rounds,
                    pairs=max(1, args.rounds * 40 // LEAST_ROUNDS), rows=args.rows)
    results = Results(args.out, config, head(config))
    if args.resume and args.out.exists():
        try:
            results.resume()
        except ValueError as error:
            parser.error(str(error))
    print(f"      {'goal':<34} {'wanted':>12}  {'measured':>10}  {'n':>3}")
    measure(args.only.split(","), config, results)
    lines = [line for _, line in results.lines]
    missed = [line.name for line in lines if line.verdict == "FAIL"]
    print(f"{len(lines) - len(missed)} of {len(lines)} met; samples in {args.out}" +
          (f"; missed: {', '.join(missed)}" if missed else ""))
    if args.check and not lines:
        print(f"this check does not count: nothing was measured; no row of {args.only} fits {args.rows}")
        return 1
    if args.check and args.rows == "*" and (names := untold(results.groups, lines)):
        print(f"this check does not count: no line is of these goals as their groups define them: {', '.join(names)}")
        return 1
    if args.check and args.rounds < least_rounds:
        print(f"this check does not count: want at least {least_rounds} rounds, got {args.rounds}")
        return 1
    if results.gave_up:
        print(f"not whole: {', '.join(results.gave_up)}")
    return 1 if results.gave_up or (args.check and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
