"""What gpu-test found, in a file that several calls fill: a part for each thing that it runs, with the commit that it is of."""
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

from groups import gpus_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from server import Server  # noqa: E402

HEAD = {"device": str, "driver": str, "cuda": str}
COUNTS = {"passed": int, "failed": int, "skipped": int}
LINE = {"what": str, "goal": str, "measured": str, "verdict": str, "rounds": int, "seconds": (int, float, type(None))}
TESTS = ("device", "module", "sandbox", "server", "errors", "conditions", "quarantine", "submit", "torch", "docs")
SUITES = ("conformance", "huge")
TOOLS = ("memcheck", "initcheck", "synccheck", "racecheck")
LAST_BY_HAND = "2026-11-26"  # Until then nobody wrote these files: of some parts no more than counts were kept.


def commit_of():
    """Of the programs, which a bundle says. ValueError where nobody does."""
    told = os.environ.get("GRIDCLOCK_REVISION") or subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude", "*"], capture_output=True, text=True,
        cwd=pathlib.Path(__file__).parent).stdout.strip()
    if not told:
        raise ValueError("--out: want a commit, got neither GRIDCLOCK_REVISION nor a clone")
    return told


def here(folder):
    """What the programs there find of the machine: its head, and how many GPUs it has. ValueError where it has none."""
    gpus = len(gpus_of(folder)) - 1
    if gpus == 0:
        raise ValueError("--out: want a GPU, there is none here")
    with Server(folder, "--devices=cuda:0") as server:
        told = subprocess.run([folder / "gridclock", "--server", server.grpc, "devices", "--json"], capture_output=True,
                              text=True, check=True).stdout
    device = json.loads(told)[0]
    return {"device": device["model"], "driver": device["driver"], "cuda": device["cuda"]}, gpus


class Record:
    """Parts of other calls stay in the file; one that is run again takes the place of the one before."""

    def __init__(self, path, head, gpus, commit):
        self.path = path
        self.about = {"commit": commit, "gpus": gpus}
        self.data = json.loads(path.read_text()) if path.exists() else {**head, "parts": {}}
        for what, is_now in head.items():
            if self.data.get(what) != is_now:
                raise ValueError(f"--out: {path} has {what} {self.data.get(what)}, this machine {is_now}")

    def put(self, part, told):
        date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        self.data["parts"][part] = {**self.about, "date": date, **told}
        self.write()

    def drop(self, parts):
        for part in parts:
            self.data["parts"].pop(part, None)
        self.write()

    def write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.data, indent=1) + "\n")
        new.replace(self.path)


def wrong_fields(whose, data, fields):
    return [f"{whose}: want {name}, got {data.get(name)!r}" for name, kind in fields.items() if not isinstance(data.get(name), kind)]


def wrong_line(whose, line):
    problems = wrong_fields(f"{whose}: {line.get('what')}", line, LINE)
    if not problems and (line["verdict"] not in ("PASS", "FAIL") or line["rounds"] < 1):
        problems.append(f"{whose}: {line['what']}: want PASS or FAIL of 1 round or more, got {line['verdict']} of {line['rounds']}")
    return problems


def wrong_names(part, told):
    """Each skip has a name and a reason, each failure a name."""
    skips = [skip for skip in told.get("skips", []) if skip.get("test") and skip.get("reason")]
    if len(skips) != told["skipped"]:
        return [f"{part}: {told['skipped']} are skipped, {len(skips)} are named with their reasons"]
    if len(told.get("failures", [])) != told["failed"]:
        return [f"{part}: {told['failed']} failed, {len(told.get('failures', []))} are named"]
    return []


def wrong_sums(part, told):
    """Of a part of the suite: those of its kernels are those of all."""
    sums = {what: sum(counts[what] for counts in told["kernels"].values()) for what in COUNTS}
    return [f"{part}: its kernels have {n} {what}, it says {told[what]}" for what, n in sums.items() if n != told[what]]


def wrong_part(part, told):
    fields = {"errors": int, "launches": dict} if part in TOOLS else {**COUNTS, **({"kernels": dict} if part in SUITES else {})}
    problems = wrong_fields(part, told, {"commit": str, "date": str, **fields})
    if problems:
        return problems
    problems = [f"{part}: want {what} as {like}, got {told[what]}"
                for what, like in (("commit", "[0-9a-f]{7,40}"), ("date", r"20\d\d-\d\d-\d\d")) if not re.fullmatch(like, told[what])]
    if part in SUITES:
        problems += wrong_sums(part, told)
    if told.get("counts_only") and told["date"] <= LAST_BY_HAND:
        return problems
    problems += wrong_fields(part, told, {"gpus": int, "lines": list})
    problems += [problem for line in told.get("lines", []) for problem in wrong_line(part, line)]
    if not told.get("lines"):
        problems.append(f"{part}: it has no line")
    return problems + ([] if part in TOOLS else wrong_names(part, told))


def problems_of(data):
    """What is wrong with a file that is to be kept."""
    problems = wrong_fields("head", data, {**HEAD, "parts": dict})
    if problems or not data["parts"]:
        return problems or ["parts: there are none"]
    known = (*TESTS, *SUITES, *TOOLS)
    problems = [f"{part}: want one of {', '.join(known)}" for part in data["parts"] if part not in known]
    problems += [f"{name} of a GPU is told" for name in re.findall(r"GPU-[0-9a-f]{8}", json.dumps(data))]
    return problems + [problem for part, told in data["parts"].items() if part in known for problem in wrong_part(part, told)]
