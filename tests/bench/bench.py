#!/usr/bin/env python3
"""Measures the speed goals and says which are met.

usage: bench.py --bin FOLDER [--check] [--only small,bulk,...] [--rounds N] [--out FILE]

All ratios are taken within one run, from interleaved rounds; a goal is held against the median of
its rounds. --check: the exit code is 1 where a goal is missed or could not be measured, and where
the rounds are fewer than 9, for then the medians do not count.
"""
import argparse
import dataclasses
import datetime
import importlib
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

GROUPS = ("small", "metrics", "bulk", "memory", "kernels", "catalog_cpu", "build")
GPU_GROUPS = ("gpu_kernels", "gpu_catalog", "gpu_timing", "gpu_truth", "gpu_ncu", "gpu_bulk", "gpu_faults",
              "gpu_lessons")
LEAST_ROUNDS = 9  # Fewer do not count: their median is the noise of the machine.
GPU_LEAST_ROUNDS = 3  # Each is of medians of many launches by the GPU's own clock.


@dataclasses.dataclass
class Config:
    binaries: pathlib.Path
    rounds: int = LEAST_ROUNDS
    pairs: int = 40          # Of the metrics' cost.
    counted_rounds: int = 3  # Of instructions, which hardly vary.
    calls: int = 2000        # In a round with one in flight; eight times as many with 64.
    device: str = ""         # Of the groups that measure a GPU: what it is, in words.


def libraries():
    """Versions that decide the figures."""
    found = {}
    for package in ("grpc++", "protobuf"):
        ran = subprocess.run(["pkg-config", "--modversion", package], capture_output=True, text=True)
        found[package] = ran.stdout.strip() or "unknown"
    return found


def head(config):
    # A bundle carries the commit that it was built from.
    commit = os.environ.get("GRIDCLOCK_REVISION") or subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"commit": commit, "date": now.date().isoformat(), "time": f"{now:%H:%M:%S}", "cpus": os.cpu_count(),
            "load_at_start": os.getloadavg()[0], "rounds": config.rounds, "libraries": libraries()}


def measure(groups, config):
    lines = []
    for group in groups:
        start = time.monotonic()
        found = importlib.import_module(f"speed.{group}").measure(config)
        for line in found:
            print(line.text(), flush=True)
        print(f"      ({group}: {time.monotonic() - start:.0f} s)", flush=True)
        lines += found
    return lines


def main(known=GROUPS, least_rounds=LEAST_ROUNDS):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default=",".join(known), help="groups: " + ", ".join(known))
    parser.add_argument("--rounds", type=int, default=least_rounds)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/bench.json"))
    args = parser.parse_args()
    config = Config(args.bin.resolve(), rounds=args.rounds, pairs=max(1, args.rounds * 40 // LEAST_ROUNDS))
    top = head(config)
    print(f"      {'goal':<34} {'wanted':>12}  {'measured':>10}  {'n':>3}")
    groups = args.only.split(",")
    lines = measure(groups, config)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    if config.device:
        top["device"] = config.device
    args.out.write_text(json.dumps({**top, "groups": groups, "lines": [line.as_json() for line in lines]}, indent=1) + "\n")
    missed = [line.name for line in lines if line.verdict == "FAIL"]
    print(f"{len(lines) - len(missed)} of {len(lines)} met; samples in {args.out}" +
          (f"; missed: {', '.join(missed)}" if missed else ""))
    if args.check and args.rounds < least_rounds:
        print(f"this check does not count: want at least {least_rounds} rounds, got {args.rounds}")
        return 1
    return 1 if args.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
