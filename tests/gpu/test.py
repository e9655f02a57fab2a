#!/usr/bin/env python3
"""Runs the tests that need a GPU, the commands of the pages that do, then compute-sanitizer over the
conformance suite, and says of each what was asked and what was seen.

usage: test.py --bin FOLDER [--only device,module,sandbox,conformance,server,submit,torch,docs,sanitizer]
               [--seconds N] [--shards N]

The conformance suite is cut in shards that run side by side, for it is the CPU's references that take
long; its largest tensors come after them, one at a time.

Exit code 1 where one failed, or all was skipped because there is no GPU here. What is skipped on a
machine with a GPU is listed with its reason.
"""
import argparse
import collections
import contextlib
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAMS = {"device": "cuda_device_test", "module": "cuda_module_test", "sandbox": "guest_sandbox_gpu_test",
            "server": "server_gpu_test"}
CONFORMANCE = "conformance_cuda_test"
TORCH = pathlib.Path(__file__).resolve().parent / "torch_test.py"
SUBMIT = pathlib.Path(__file__).resolve().parent / "submit_test.py"
SNIPPETS = pathlib.Path(__file__).resolve().parents[1] / "docs/run_snippets.py"
HUGE = "*MoreThanTwoToThe31Elements*"  # One takes most of a GPU's memory.
SMALL = f"*Conformance.*-*LargeTensors*:{HUGE}"
# Races are of shared memory: kernels without it are left out of the slowest tool.
SHARED = ("softmax", "log_softmax", "layernorm", "rmsnorm", "sum", "mean", "max", "argmax", "cumsum", "transpose",
          "matmul", "cdist")
TOOLS = {"memcheck": SMALL, "initcheck": SMALL, "synccheck": SMALL,
         "racecheck": ":".join(f"*Conformance.PlainNumbers/{kernel}_*_f32" for kernel in SHARED)}
# What may be skipped on a machine with a GPU, by how its reason begins. The conformance suite has a list of its own,
# tests/conformance/skips.cc, which its tests hold.
SKIPS = {"device": ("pids are hidden here",), "module": ("no clusters on this GPU",), "sandbox": ("Landlock here is",),
         "server": ("one GPU alone", "too little memory", "the driver shows no process ids here")}
PASSED = re.compile(r"\[  PASSED  \] (\d+) tests?")
FAILED = re.compile(r"\[  FAILED  \] (\d+) tests?")
SKIPPED = re.compile(r"\[  SKIPPED \] (\d+) tests?")
REASON = re.compile(r"Skipped\n(.+)")
SANITIZED = re.compile(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard")
UNITS_RUN = re.compile(r"Ran (\d+) tests?")
UNITS_SKIPPED = re.compile(r"skipped=(\d+)")
SNIPPETS_RUN = re.compile(r"snippets: (\d+) blocks run")
LAUNCHED = re.compile(r"launched ([\w.]+) (\d+)")


class Table:
    def __init__(self):
        self.failed = False

    def row(self, what, goal, measured, good, seconds):
        self.failed |= not good
        print(f"{'PASS' if good else 'FAIL'}  {what:<34} {goal:<28} {measured:<34} {seconds:6.0f} s", flush=True)


def run(command, seconds, echo):
    """The output and the exit code; 124 after `seconds`. Shown as it comes if `echo`."""
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace")
    end = time.monotonic() + seconds
    lines = []
    os.set_blocking(process.stdout.fileno(), True)
    for line in process.stdout:
        lines.append(line)
        if echo and not line.startswith(("[ RUN", "[       OK", "[---", "[===")):
            print("      " + line, end="", flush=True)
        if time.monotonic() > end:
            process.kill()
            return "".join(lines), 124
    return "".join(lines), process.wait()


def run_shards(command, shards, seconds):
    """All outputs in a row, and the worst exit code, of one GoogleTest program cut in so many."""
    seed = os.environ.get("GRIDCLOCK_TEST_SEED") or str(random.getrandbits(32))
    with contextlib.ExitStack() as stack:
        ran = []
        for index in range(shards):
            output = stack.enter_context(tempfile.TemporaryFile("w+", errors="replace"))
            own = {**os.environ, "GRIDCLOCK_TEST_SEED": seed, "GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(index)}
            ran.append((output, subprocess.Popen([str(c) for c in ["timeout", "-k", "5", seconds, *command]], env=own,
                                                 stdout=output, stderr=subprocess.STDOUT)))
        code = max(process.wait() for _, process in ran)
        for output, _ in ran:
            output.seek(0)
        return "".join(output.read() for output, _ in ran), code


def count(pattern, text):
    """The sum over all that is found: a program has one summary, shards have one each."""
    return sum(int(next(group for group in found.groups() if group)) for found in pattern.finditer(text))


def may_skip(name, reason):
    return name.startswith("conformance") or reason.startswith(SKIPS[name])


def run_program(table, name, program, seconds):
    start = time.monotonic()
    output, code = run(["timeout", "-k", "5", seconds, program], seconds + 10, echo=True)
    tell(table, name, output, code, time.monotonic() - start)


def run_conformance(table, program, shards, seconds):
    for name, pattern, cut in (("conformance", f"-{HUGE}", shards), ("conformance, 2^31 and more", HUGE, 1)):
        start = time.monotonic()
        output, code = run_shards([program, f"--gtest_filter={pattern}"], cut, seconds)
        for line in output.splitlines():
            if "Failure" in line or "[  FAILED  ]" in line:
                print("      " + line, flush=True)
        tell(table, name, output, code, time.monotonic() - start)
        if code != 0:
            print(output[-6000:], flush=True)


def tell(table, name, output, code, seconds):
    passed, failed, skipped = (count(p, output) for p in (PASSED, FAILED, SKIPPED))
    reasons = collections.Counter(REASON.findall(output))
    not_allowed = sum(times for reason, times in reasons.items() if not may_skip(name, reason))
    seen = f"{passed} passed, {failed} failed, {skipped} skipped"
    if not_allowed:
        seen += f", {not_allowed} that must not"
    if code not in (0, 1):
        seen += f", exit code {code}"
    table.row(name, "none fails, skips are listed", seen, code == 0 and passed > 0 and not not_allowed, seconds)
    for reason, times in reasons.items():
        print(f"      skipped {times}{'' if may_skip(name, reason) else ' and must not be'}: {reason}", flush=True)


def run_pages(table, seconds):
    """The commands of the pages that are tagged gpu."""
    start = time.monotonic()
    command = ["timeout", "-k", "5", seconds, sys.executable, SNIPPETS, "--kind", "gpu"]
    output, code = run(command, seconds + 10, echo=False)
    blocks = count(SNIPPETS_RUN, output)
    table.row("pages", "all their gpu blocks succeed", f"{blocks} blocks, exit code {code}", code == 0 and blocks > 0,
              time.monotonic() - start)
    if code != 0:
        print(output[-6000:], flush=True)


def run_units(table, name, command, seconds):
    """Tests by Python's unittest: submitted code, the files of tests/sources; values beside PyTorch's."""
    start = time.monotonic()
    output, code = run(["timeout", "-k", "5", seconds, sys.executable, *command], seconds + 10, echo=False)
    ran, skipped = count(UNITS_RUN, output), count(UNITS_SKIPPED, output)
    table.row(name, "all its tests succeed", f"{ran} tests, {skipped} skipped, exit code {code}",
              code == 0 and ran > skipped, time.monotonic() - start)
    if code != 0:
        print(output[-6000:], flush=True)


def sanitize(table, program, tool, shards, seconds):
    """The conformance suite on small shapes under one tool. A variant that was never launched fails."""
    start = time.monotonic()
    command = ["compute-sanitizer", "--tool", tool, program, f"--gtest_filter={TOOLS[tool]}"]
    output, code = run_shards(command, shards, seconds)
    launches = collections.Counter()
    for name, n in LAUNCHED.findall(output):
        launches[name] += int(n)
    # Of racecheck those alone that it asks for.
    never = [name for name, n in launches.items()
             if n == 0 and (tool != "racecheck" or name.startswith(tuple(SHARED)))]
    errors = count(SANITIZED, output) if len(SANITIZED.findall(output)) == shards else -1
    good = code == 0 and errors == 0 and launches and not never and count(PASSED, output) > 0
    seen = f"{errors} errors, {sum(launches.values())} launches of {len(launches)} variants"
    if never:
        seen += ", never: " + " ".join(never)
    table.row(f"compute-sanitizer {tool}", "0 errors, all launched", seen, bool(good), time.monotonic() - start)
    print("      launched: " + ", ".join(f"{name} {n}" for name, n in sorted(launches.items())), flush=True)
    if not good:
        print(output[-6000:], flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/dev/bin"))
    parser.add_argument("--only", default=",".join([*PROGRAMS, "conformance", "submit", "torch", "docs", "sanitizer"]))
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--seconds", type=int, default=1800, help="at most so long for each program")
    parser.add_argument("--shards", type=int, default=min(12, len(os.sched_getaffinity(0))),
                        help="into so many the conformance suite is cut")
    options = parser.parse_args()
    os.environ["GRIDCLOCK_BIN"] = str(options.bin.resolve())
    table = Table()
    wanted = options.only.split(",")
    for name, program in PROGRAMS.items():
        if name in wanted:
            run_program(table, name, options.bin / program, options.seconds)
    if "conformance" in wanted:
        run_conformance(table, options.bin / CONFORMANCE, options.shards, options.seconds)
    if "submit" in wanted:
        run_units(table, "submitted code", [SUBMIT, "--bin", options.bin], options.seconds)
    if "torch" in wanted:
        run_units(table, "values of PyTorch", [TORCH, options.bin, "cuda:0"], options.seconds)
    if "docs" in wanted:
        run_pages(table, options.seconds)
    if "sanitizer" in wanted:
        if shutil.which("compute-sanitizer") is None:
            table.row("compute-sanitizer", "0 errors", "not on PATH: it is part of the CUDA toolkit", False, 0)
        else:
            for tool in options.tools.split(","):
                sanitize(table, options.bin / CONFORMANCE, tool, options.shards, options.seconds)
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
