"""Runs the tests of one GoogleTest program in groups, side by side: each has a limit of its own, so that one that
takes too long costs its group alone, and what a group came to is kept."""
import collections
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import random
import re
import subprocess
import time

# Of --gtest_list_tests: the device, kernel, variant and dtype of a test of the conformance suite.
PARAM = re.compile(r"# GetParam\(\) = \w+/(\w+)/(\w+)/(\w+)$")
NOT_BEGUN = 125  # In place of an exit code.
FORM = 2  # Of what is kept of a group: what was kept in another form is not taken over.


@dataclasses.dataclass(frozen=True)
class Case:
    filter: str  # Of GoogleTest.
    kernel: str
    kind: str = ""  # Of its data or size: the name of the test.
    dtype: str = ""
    variant: str = ""


@dataclasses.dataclass(frozen=True)
class Gpu:
    name: str  # "cuda:1"
    uuid: str


@dataclasses.dataclass(frozen=True)
class Group:
    name: str
    cases: tuple
    under: tuple = ()  # The command of the tool that the program runs under.
    gpu: Gpu = None  # The first where none is said.


@dataclasses.dataclass(frozen=True)
class Ran:
    group: Group
    output: str
    code: int
    seconds: float


def parsed(lines, whose):
    """Lines of JSON. ValueError says whose one is that is none."""
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError as error:
            raise ValueError(f"{whose}: want a line of JSON, got {line[:60]!r}") from error


def ask(program, flag):
    """The lines that the program prints. ValueError where it cannot be run, or fails."""
    try:
        ran = subprocess.run([str(program), flag], capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise ValueError(f"{program.name} {flag}: {error.strerror}") from error
    if ran.returncode != 0:
        said = (ran.stdout + ran.stderr).strip().splitlines()
        raise ValueError(f"{program.name} {flag}: exit code {ran.returncode}: {said[-1] if said else 'it says nothing'}")
    return ran.stdout.splitlines()


def cases_of(program):
    """All tests that the program has here, so that none is left out unseen: those of a kernel, and the others by their
    suite, with no kind. ValueError where the program does not list them to its end, or a test has a parameter that is no
    kernel's."""
    listed = ask(program, "--gtest_list_tests")
    suite, cases = "", []
    for line in listed:
        name = line.partition("#")[0].strip()
        if not line.startswith("  "):
            suite = name if name.endswith(".") else ""
            continue
        found = PARAM.search(line)
        if "# GetParam()" in line and not found:
            raise ValueError(f"'{suite}{name}': want a parameter as device/kernel/variant/dtype, got '{line.strip()}'")
        kernel, variant, dtype = found.groups() if found else (suite[:-1].lower(), "", "")
        cases.append(Case(suite + name, kernel, name.partition("/")[0] if found else "", dtype, variant))
    return cases


def by_kernel(cases, prefix, most, under=(), alone=lambda case: False):
    """Groups of at most so many cases of one kernel, each with some of all of its variants; of one case each, by their
    variant, those that are to be alone."""
    kernels = collections.defaultdict(list)
    for case in cases:
        kernels[f"{case.kernel}.{case.variant}" if alone(case) else case.kernel].append(case)
    groups = []
    for kernel, own in kernels.items():
        parts = -(-len(own) // (1 if alone(own[0]) else most))
        groups += [Group(f"{prefix} {kernel}" + (f" {part + 1}/{parts}" if parts > 1 else ""), tuple(own[part::parts]),
                         under) for part in range(parts)]
    return groups


def on_each(groups, gpus):
    """All groups on each GPU, by turns. A GPU that is alone is not named."""
    if len(gpus) < 2:
        return groups
    return [dataclasses.replace(group, name=f"{group.name} on {gpu.name}", gpu=gpu) for group in groups for gpu in gpus]


class Runner:
    """`at_once` processes on each GPU, each for `seconds` at most; after `whole` seconds no more begin and those that run
    end."""

    def __init__(self, program, at_once, seconds, whole):
        self.program, self.at_once, self.seconds = program, at_once, seconds
        self.end = time.monotonic() + whole
        self.seed = os.environ.get("GRIDCLOCK_TEST_SEED") or str(random.getrandbits(32))

    def run_one(self, group):
        start = time.monotonic()
        limit = min(self.seconds, self.end - start)
        if limit <= 0:
            return Ran(group, "", NOT_BEGUN, 0)
        command = ["timeout", "-k", "5", f"{limit:.0f}", *group.under, self.program,
                   "--gtest_filter=" + ":".join(case.filter for case in group.cases)]
        tool = {"GRIDCLOCK_TEST_TOOL": group.under[-1]} if group.under else {}
        gpu = {"CUDA_VISIBLE_DEVICES": group.gpu.uuid} if group.gpu else {}
        ran = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace", env={**os.environ, "GRIDCLOCK_TEST_SEED": self.seed, **tool, **gpu})
        return Ran(group, ran.stdout, ran.returncode, time.monotonic() - start)

    def run(self, groups):
        """As they end."""
        with contextlib.ExitStack() as ends:
            pools = {gpu: ends.enter_context(concurrent.futures.ThreadPoolExecutor(self.at_once))
                     for gpu in {group.gpu for group in groups}}
            for done in concurrent.futures.as_completed([pools[group.gpu].submit(self.run_one, group) for group in groups]):
                yield done.result()


def listed_by_worker(folder):
    """The GPUs that a worker finds here: of all those that CUDA_VISIBLE_DEVICES lets it see. ValueError where it cannot say."""
    worker = folder / "gridclock-test-worker"
    devices = list(parsed(ask(worker, "--list-devices"), f"{worker.name} --list-devices"))
    return [device for device in devices if device["kind"] == "cuda"]


def each_gpu(folder):
    return [Gpu(device["name"], device["uuid"]) for device in listed_by_worker(folder)]


def gpus_of(folder):
    """The models of the GPUs, and their driver."""
    driver = pathlib.Path("/proc/driver/nvidia/version")
    return [*(device["model"] for device in listed_by_worker(folder)), driver.read_text() if driver.exists() else "no driver"]


def rows_of(path):
    """Of a file of rows. Half a row at its end, of a run that was cut off, is taken out of the file."""
    text = path.read_bytes() if path.exists() else b""
    whole = text[:text.rfind(b"\n") + 1]
    if whole != text:
        os.truncate(path, len(whole))
    return parsed(whole.splitlines(), path)


class Kept:
    """What groups came to, in a file that grows with each: a run that was cut off goes on where it was. Only what passed
    is taken over, and only of the very same program, cases and tool, on GPUs of the same model and driver."""

    def __init__(self, path, program):
        self.path = path and pathlib.Path(path)
        self.rows = {}
        if not self.path:
            return
        self.what = [FORM, hashlib.sha256(program.read_bytes()).hexdigest(), *gpus_of(program.parent)]
        self.rows = {row["key"]: row["result"] for row in rows_of(self.path) if row.get("key") and row["good"]}

    def key(self, group):
        what = [self.what, group.under, [case.filter for case in group.cases], *([group.gpu.uuid] if group.gpu else [])]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()

    def take(self, group):
        """What it came to, or None."""
        return self.rows.get(self.key(group)) if self.path else None

    def put(self, group, good, result):
        if self.path:
            with self.path.open("a") as file:
                file.write(json.dumps({"key": self.key(group), "name": group.name, "good": good, "result": result}) + "\n")
