#!/usr/bin/env python3
"""Runs the tests that need a GPU, the commands of the pages that do, then compute-sanitizer over the
conformance suite, and says of each what was asked and what was seen.

usage: test.py --bin FOLDER [--only device,module,sandbox,server,errors,conditions,quarantine,conformance,huge,submit,
                             torch,docs,sanitizer]
               [--tools memcheck,initcheck,synccheck,racecheck] [--seconds N] [--group-seconds N] [--whole N]
               [--shards N] [--huge-shards N] [--keep FILE] [--out FILE]

The conformance suite is cut in groups of cases of one kernel that run side by side, for it is the CPU's
references that take long; its largest tensors (`huge`) come after them, as many at a time as memory holds.
A group has a limit and a row of its own. Of several GPUs each runs all of both, at the same time as the others;
CUDA_VISIBLE_DEVICES chooses them. The tools look at the first. --keep: what groups came to is written to FILE, and
what passed there, of the same program, cases, tool, GPU and driver, is not run again: a run that was cut off goes on.
--out: what was asked and seen is written to FILE, a part for each program, the suite and each tool; parts that
other calls wrote there stay, each with the commit of its own.

Exit code 1 where one failed, or all was skipped because there is no GPU here. What is skipped on a
machine with a GPU is listed with its reason.
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from groups import NOT_BEGUN, Case, Group, Kept, Runner, by_kernel, cases_of, each_gpu, on_each  # noqa: E402: beside this.
from outputs import PASSED, count, figures_of, of_gtest, of_unittest, reasons_of  # noqa: E402
from record import TOOLS, Record, commit_of, here  # noqa: E402

# The last three need no GPU: what no sound one shows (one that fell off the bus, ECC errors, throttling, a driver that
# was replaced, MPS) is tested by error codes and readings of a driver that is not there. One run tells of all faults.
PROGRAMS = {"device": "cuda_device_test", "module": "cuda_module_test", "sandbox": "guest_sandbox_gpu_test",
            "server": "server_gpu_test", "errors": "cuda_error_test", "conditions": "cuda_parts_test",
            "quarantine": "scheduler_devices_test"}
REPO = pathlib.Path(__file__).resolve().parents[2]
CONFORMANCE = "conformance_cuda_test"
MISREAD = "conformance_misread"  # The same program over wrong variants whose values are right.
TORCH = pathlib.Path(__file__).resolve().parent / "torch_test.py"
SUBMIT = pathlib.Path(__file__).resolve().parent / "submit_test.py"
SNIPPETS = pathlib.Path(__file__).resolve().parents[1] / "docs/run_snippets.py"
HUGE = "MoreThanTwoToThe31Elements"  # One takes most of a GPU's memory.
# What a kernel touches, and in which order, depends on sizes, dtypes and on how tensors lie, not on the kind of their numbers.
SMALL = ("PlainNumbers", "TensorsThatAreAlignedToTheirElementsAlone")
# What begins beyond the sizes of small cases: threads with two packs of 16 bits, reductions by blocks of 512 and of the states of
# many parts, scans of several blocks, rows in a cluster of blocks.
LARGE = "LargeTensors"
LARGE_ONES = (("vec4", "bf16"), ("two_pass", "bf16"), ("scan", "f32"), ("shared", "f32"), ("streamed", "f32"))
# Of a tool: the wrong variant that it must find, and what it calls that.
MUST_FIND = {"memcheck": ("past_the_end", "Invalid __global__ read"),
             "initcheck": ("before_written", "Uninitialized __global__ memory read"),
             "synccheck": ("unmasked", "Invalid arguments"),
             "racecheck": ("raced", "Race reported between")}
SUITE = ("conformance", "huge", "sanitizer")
COUNTS = ("passed", "failed", "skipped")
MOST_CASES, MOST_UNDER_TOOL = 48, 24  # Of one group.
# What may be skipped on a machine with a GPU, by how its reason begins. The conformance suite has a list of its own,
# tests/conformance/skips.cc, which its tests hold.
SKIPS = {"device": ("pids are hidden here", "nothing is left in shared memory here", "too few SMs for blocks"),
         "module": ("no clusters on this GPU", "nothing is left in shared memory here"),
         "sandbox": ("Landlock here is",),
         "server": ("one GPU alone", "too little memory", "the driver shows no process ids here"), "errors": (),
         "conditions": (), "quarantine": (),
         "submit": ("no nvidia-smi", "this user may not see what a guest maps"), "torch": ()}
TELL = ("server",)  # Print figures, always.
SANITIZED = re.compile(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard")
SNIPPETS_RUN = re.compile(r"snippets: (\d+) blocks run")
SNIPPET_FAILED = re.compile(r"^(\S+\.md:\d+): ", re.MULTILINE)
LAUNCHED = re.compile(r"launched ([\w.]+) (\d+)")


class Table:
    def __init__(self, record=None):
        self.failed = False
        self.record = record
        self.lines = collections.defaultdict(list)

    def row(self, part, what, goal, measured, good, seconds=None, rounds=1):
        """`rounds`: how often that was done."""
        self.failed |= not good
        verdict, took = "PASS" if good else "FAIL", "" if seconds is None else f" {seconds:6.0f} s"
        print(f"{verdict}  {what:<34} {goal:<28} {measured:<34} {rounds:3}{took}", flush=True)
        self.lines[part].append({"what": what, "goal": goal, "measured": measured, "verdict": verdict, "rounds": rounds,
                                 "seconds": seconds and round(seconds, 1)})

    def miss(self, parts, what, goal, why):
        """These cannot begin: what an earlier call put down of them goes."""
        self.row(parts[0], what, goal, why, False)
        del self.lines[parts[0]]
        if self.record:
            self.record.drop(parts)

    def close(self, part, told):
        """The part has ended: its rows, and what else is known of it, are put down."""
        lines = self.lines.pop(part)
        if self.record:
            self.record.put(part, {**told, "lines": lines})


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


def may_skip(name, reason):
    return reason.startswith(SKIPS[name])


def run_program(table, name, program, seconds):
    start = time.monotonic()
    output, code = run(["timeout", "-k", "5", seconds, program], seconds + 10, echo=True)
    tests = of_gtest(output)
    seen = f"{tests['passed']} passed, {tests['failed']} failed, {tests['skipped']} skipped"
    tell(table, name, seen, tests, output, code, time.monotonic() - start)


def failures(output):
    """The lines that say what went wrong; the end of the output where none does."""
    said = [line for line in output.splitlines() if line.strip()]
    lines = [line for line in said if re.search(r"Failure|FAILED|^========= [^ C]|problems|differ|error", line)]
    return "".join(f"      {line}\n" for line in (lines or said[-5:])[:40])


def run_groups(table, groups, runner, kept, judge, part_of):
    """A row for each group, in its part. `judge` makes of its output what it came to, and whether that is good; of what was
    kept as passed both are known. Yields the group and both."""
    todo = []
    for group in groups:
        result = kept.take(group)
        if result is None:
            todo.append(group)
        else:
            table.row(part_of(group), group.name, f"{len(group.cases)} cases", result["seen"] + ", kept", True)
            yield group, result, True
    for ran in runner.run(todo):
        result, good = judge(ran)
        seen = result["seen"] + {0: "", 1: "", NOT_BEGUN: ", no time was left"}.get(ran.code, f", exit code {ran.code}")
        table.row(part_of(ran.group), ran.group.name, f"{len(ran.group.cases)} cases", seen, good, ran.seconds)
        if not good:
            print(failures(ran.output), end="", flush=True)
        kept.put(ran.group, good, result)
        yield ran.group, result, good


def judge_cases(ran):
    tests = of_gtest(ran.output)
    result = {**tests, "seen": f"{tests['passed']} passed, {tests['failed']} failed, {tests['skipped']} skipped"}
    return result, ran.code == 0 and tests["passed"] + tests["skipped"] == len(ran.group.cases)


def seen_of(counts, cases):
    return f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped of {cases}"


def run_conformance(table, part, name, cases, runner, kept, gpus):
    """On each GPU. Where there are several each has a row, and what the part and its kernels came to is of all."""
    start = time.monotonic()
    groups = on_each(by_kernel(cases, name, MOST_CASES), gpus)
    kernels, each = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    tests, bad = {"skips": [], "failures": []}, []
    for group, result, good in run_groups(table, groups, runner, kept, judge_cases, lambda _: part):
        for counts in (kernels[group.cases[0].kernel], each[group.gpu]):
            counts.update({key: result[key] for key in COUNTS})
        for names in ("skips", "failures"):
            tests[names] += result[names]
        bad += [] if good else [group.gpu]
    goal = "none fails, skips are listed"
    for gpu in gpus if len(gpus) > 1 else ():
        table.row(part, f"{name} on {gpu.name}", goal, seen_of(each[gpu], len(cases)), each[gpu]["passed"] > 0 and gpu not in bad)
    total = {key: sum(counts[key] for counts in kernels.values()) for key in COUNTS}
    table.row(part, name, goal, seen_of(total, len(cases) * max(1, len(gpus))), total["passed"] > 0 and not bad,
              time.monotonic() - start)
    for reason, times in reasons_of(tests).items():
        print(f"      skipped {times}: {reason}", flush=True)
    table.close(part, {**total, **tests, "kernels": dict(sorted(kernels.items()))})


def tell(table, name, seen, tests, output, code, seconds):
    """A row of all its tests, and one of each figure that they printed."""
    reasons = reasons_of(tests)
    not_allowed = sum(times for reason, times in reasons.items() if not may_skip(name, reason))
    if not_allowed:
        seen += f", {not_allowed} that must not"
    if code not in (0, 1):
        seen += f", exit code {code}"
    figures = figures_of(output)
    if name in TELL and not figures:
        seen += ", no figures"
    good = code == 0 and tests["passed"] > 0 and not not_allowed and (name not in TELL or bool(figures))
    table.row(name, name, "none fails, skips are listed", seen, good, seconds)
    for figure in figures:
        table.row(name, figure.what, figure.goal, figure.measured, figure.good, rounds=figure.rounds)
    for reason, times in reasons.items():
        print(f"      skipped {times}{'' if may_skip(name, reason) else ' and must not be'}: {reason}", flush=True)
    table.close(name, tests)


def run_pages(table, seconds):
    """The commands of the pages that are tagged gpu."""
    start = time.monotonic()
    command = ["timeout", "-k", "5", seconds, sys.executable, SNIPPETS, "--kind", "gpu"]
    output, code = run(command, seconds + 10, echo=False)
    blocks, failed = count(SNIPPETS_RUN, output), SNIPPET_FAILED.findall(output)
    table.row("docs", "pages", "all their gpu blocks succeed", f"{blocks} blocks, exit code {code}", code == 0 and blocks > 0,
              time.monotonic() - start)
    if code != 0:
        print(output[-6000:], flush=True)
    table.close("docs", {"passed": blocks - len(failed), "failed": len(failed), "skipped": 0, "skips": [], "failures": failed})


def run_units(table, name, command, seconds):
    """Tests by Python's unittest: submitted code, the files of tests/sources; values beside PyTorch's."""
    start = time.monotonic()
    output, code = run(["timeout", "-k", "5", seconds, sys.executable, *command], seconds + 10, echo=False)
    tests = of_unittest(output)
    seen = f"{sum(tests[key] for key in COUNTS)} tests, {tests['skipped']} skipped"
    tell(table, name, seen, tests, output, code, time.monotonic() - start)
    if code != 0:
        print(output[-6000:], flush=True)


def with_includes(root, path, seen):
    """The text of a kernel's file and of what it includes of the catalogue."""
    if path in seen:
        return ""
    seen.add(path)
    text = (root / path).read_text()
    included = re.findall(r'#include "(kernels/catalog/[^"]+)"', text)
    return text + "".join(with_includes(root, name, seen) for name in included)


def kernels_with(root, pattern):
    kernels = sorted((root / "kernels/catalog").glob("*.cu"))
    return [path.stem for path in kernels
            if re.search(pattern, with_includes(root, f"kernels/catalog/{path.name}", set()))]


# Of shared memory races are: kernels without it the slowest tool sees in one case of each variant.
SHARED = kernels_with(REPO, r"__shared__|cub::")
LISTS = kernels_with(REPO, r'list_cuda\.cuh"')


def is_for(tool, case):
    if case.kind == LARGE:
        return (case.variant, case.dtype) in LARGE_ONES and (tool == "memcheck" or case.kernel in SHARED)
    return case.kind == SMALL[0] if tool == "racecheck" else case.kind in SMALL


def shared_like(case):
    """The same of cases that use shared memory in one way: tiles are chosen by the size of an element, that of bool is 8 bits."""
    bits = re.match(r"[a-z]+(\d+)", case.dtype)
    return case.kernel, case.kernel in SHARED and (bits[1] if bits else "8")


def cases_for(tool, cases):
    """Of small ones racecheck takes those of one dtype of each size of element: f32, or what the kernel has in its place."""
    own = [case for case in cases if is_for(tool, case)]
    dtypes = {shared_like(case): case.dtype for case in sorted(own, key=lambda case: (case.dtype == "f32", case.dtype[0] == "f", case.dtype))
              if case.kind != LARGE}
    return [case for case in own if tool != "racecheck" or case.kind == LARGE or case.dtype == dtypes[shared_like(case)]]


def is_slow(case):
    """Of a list, an elementary operation of one tensor at a time: thousands of launches for each call."""
    return case.kernel in LISTS and case.variant == "naive"


def under(tool):
    """The command of a tool. Without padding what lies behind one tensor may be the next one."""
    return ("compute-sanitizer", *(("--padding", "512") if tool == "memcheck" else ()), "--tool", tool)


def errors_of(output):
    """What the tool counted; -1 where it has not said."""
    return count(SANITIZED, output) if len(SANITIZED.findall(output)) == 1 else -1


def judge_tool(ran):
    launches = collections.Counter()
    for name, n in LAUNCHED.findall(ran.output):
        launches[name] += int(n)
    errors = errors_of(ran.output)
    result = {"errors": errors, "launches": launches,
              "seen": f"{errors} errors, {sum(launches.values())} launches" if errors >= 0 else "no summary of the tool"}
    return result, ran.code == 0 and errors == 0 and sum(launches.values()) > 0 and count(PASSED, ran.output) > 0


def conclude(table, tool, results, bad, seconds):
    """Of one tool. A variant that was never launched fails."""
    launches = collections.Counter()
    for result in results:
        for name, n in result["launches"].items():
            launches[name] += n
    never = [name for name, n in launches.items() if n == 0]
    errors = sum(max(0, result["errors"]) for result in results)
    seen = f"{errors} errors, {sum(launches.values())} launches of {sum(n > 0 for n in launches.values())} variants"
    if never:
        seen += ", never: " + " ".join(never)
    if bad:
        seen += ", not good: " + ", ".join(bad)
    table.row(tool, f"compute-sanitizer {tool}", "0 errors, all launched", seen, bool(launches) and not never and not bad, seconds)
    print("      launched: " + ", ".join(f"{name} {n}" for name, n in sorted(launches.items()) if n > 0), flush=True)
    table.close(tool, {"errors": errors, "launches": dict(sorted(launches.items()))})


def find_misread(table, tool, runner):
    """What finds nothing wrong with the suite must find what is: a test of the tool, and of how it is used."""
    variant, name = MUST_FIND[tool]
    case = Case(f"All/Conformance.{SMALL[0]}/misread_{variant}_f32", "misread")
    ran = runner.run_one(Group(f"{tool} misread.{variant}", (case,), under(tool)))
    errors, found = errors_of(ran.output), name in ran.output
    seen = f"{errors} errors" if errors >= 0 else "no summary of the tool"
    good = errors > 0 and found
    table.row(tool, f"{tool} of misread.{variant}", "at least 1 error", seen + ("" if found else f", no '{name}'"), good, ran.seconds)
    if not good:
        print(failures(ran.output), end="", flush=True)


def tool_of(group):
    return group.under[-1]


def turn_of(group):
    """Lists are first, or the others wait for them at the end; what racecheck sees in a moment fills the end."""
    case = group.cases[0]
    if is_slow(case):
        return 0
    return 2 if tool_of(group) == "racecheck" and case.kernel not in SHARED else 1


def sanitize(table, tools, cases, runner, kept):
    """The conformance suite on small shapes under each tool, all tools at the same time."""
    start = time.monotonic()
    groups = [group for tool in tools
              for group in by_kernel(cases_for(tool, cases), tool, MOST_UNDER_TOOL, under(tool), is_slow)]
    groups.sort(key=turn_of)
    results, bad = collections.defaultdict(list), collections.defaultdict(list)
    for group, result, good in run_groups(table, groups, runner, kept, judge_tool, tool_of):
        tool = tool_of(group)
        results[tool].append(result)
        bad[tool] += [] if good else [group.name]
    for tool in tools:
        conclude(table, tool, results[tool], bad[tool], time.monotonic() - start)


def at_once(options, gpus):
    """Groups on each of these GPUs. It is CPUs that they wait for."""
    return options.shards or max(1, min(16, len(os.sched_getaffinity(0)) // max(1, len(gpus))))


def run_suite(table, options, wanted):
    """What is made of the conformance suite."""
    tools = options.tools.split(",")
    parts = [part for part in ("conformance", "huge") if part in wanted] + (tools if "sanitizer" in wanted else [])
    program = options.bin / CONFORMANCE
    try:
        cases = cases_of(program)
        kept, gpus = Kept(options.keep, program), each_gpu(options.bin)
    except ValueError as error:
        table.miss(parts, "conformance", "its cases", str(error))
        return
    if not any(case.kind for case in cases):
        table.miss(parts, "conformance", "its cases", "it lists none: no GPU here")
        return
    if "conformance" in wanted:
        runner = Runner(program, at_once(options, gpus), options.group_seconds, options.whole)
        run_conformance(table, "conformance", "conformance", [case for case in cases if case.kind != HUGE], runner, kept, gpus)
    if "huge" in wanted:
        runner = Runner(program, options.huge_shards, options.group_seconds, options.whole)
        run_conformance(table, "huge", "2^31 and more,", [case for case in cases if case.kind == HUGE], runner, kept, gpus)
    if "sanitizer" in wanted:
        if shutil.which("compute-sanitizer") is None:
            table.miss(tools, "compute-sanitizer", "0 errors", "not on PATH: it is part of the CUDA toolkit")
        else:
            runner = Runner(options.bin / MISREAD, 1, options.group_seconds, options.whole)
            for tool in tools:
                find_misread(table, tool, runner)
            runner = Runner(program, at_once(options, gpus[:1]), options.group_seconds, options.whole)
            sanitize(table, tools, cases, runner, kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/dev/bin"))
    parser.add_argument("--only", default=",".join([*PROGRAMS, *SUITE, "submit", "torch", "docs"]))
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--seconds", type=int, default=1800, help="at most so long for each program")
    parser.add_argument("--group-seconds", type=int, default=600, help="at most so long for each group of the suite")
    parser.add_argument("--whole", type=int, default=7200, help="at most so long for the suite, and again under tools")
    parser.add_argument("--shards", type=int, help="groups of the suite that run at the same time on a GPU; if left out, "
                                                   "as many as each GPU has CPUs here, 16 at most")
    parser.add_argument("--huge-shards", type=int, default=1, help="the same of the largest tensors: 60 GiB of the GPU each")
    parser.add_argument("--keep", type=pathlib.Path, help="where rows that passed are written, and are read from")
    parser.add_argument("--out", type=pathlib.Path, help="where all that was asked and seen is written, beside parts of other calls")
    options = parser.parse_args()
    os.environ["GRIDCLOCK_BIN"] = str(options.bin.resolve())
    try:
        table = Table(options.out and Record(options.out, *here(options.bin), commit_of()))
    except ValueError as error:
        parser.error(str(error))
    wanted = options.only.split(",")
    for name, program in PROGRAMS.items():
        if name in wanted:
            run_program(table, name, options.bin / program, options.seconds)
    if "submit" in wanted:
        run_units(table, "submit", [SUBMIT, "--bin", options.bin], options.seconds)
    if "torch" in wanted:
        run_units(table, "torch", [TORCH, options.bin, "cuda:0", "-v"], options.seconds)
    if "docs" in wanted:
        run_pages(table, options.seconds)
    if set(SUITE) & set(wanted):
        run_suite(table, options, wanted)
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
