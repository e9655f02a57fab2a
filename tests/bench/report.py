#!/usr/bin/env python3
"""Writes docs/benchmarks.md and docs/benchmarks-cpu.md from the measurements in tests/bench/results/ and the words
in tests/bench/pages/.

usage: report.py [--check]    --check: fail where the pages are not what the measurements say

Measurements of too few rounds are refused, lines of too few samples too, and the first page names every group of
goals that has no measurement and every goal that has no figure under its name, words and bound of today: so they
cannot pass for pages of figures that they do not hold.
"""
import dataclasses
import fnmatch
import importlib
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bench import GPU_GROUPS, GPU_LEAST_ROUNDS, GROUPS, LEAST_ROUNDS  # noqa: E402: beside this file.
from bench import definition, goals_of  # noqa: E402
from speed.line import DISTRUSTED  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RESULTS = ROOT / "tests/bench/results"
WORDS = ROOT / "tests/bench/pages"  # Of each page, with a comment where this program writes.
GELU = "gpu.gelu.table."  # Rows of a table of their own.
# Lines that have fewer samples than their file has rounds: by patterns, how many they have at least.
FEWER = {
    "memory.*": 3,              # In 0.1.0, and peaks of memory hardly vary.
    "metrics.instructions": 3,  # Older ones.
    "cpu.catalog.*": 3,         # Each is of several calls.
    "build.*": 1,               # Minutes each; the groups that follow are one run by nature,
    "submissions.*": 1,         # and what they tell is the worst of it, or a count.
    "gpu.fault.*": 1,
    "gpu.suspect*": 1,
    "gpu.fresh.*": 1,
    "gpu.exact.*": 1,
    "gpu.limits.*": 1,
}

def figure(value):
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def span(samples):
    if len(samples) < 4:
        return f"{figure(min(samples))} .. {figure(max(samples))}" if samples else ""
    quartiles = statistics.quantiles(samples, n=4)
    return f"{figure(quartiles[0])} .. {figure(quartiles[2])}"


def median_us(line, *keys):
    """Of the first of them that it has; None without."""
    found = [statistics.median(line["extra"][key]) for key in keys if line["extra"].get(key)]
    return float(found[0]) if found else None


def times(line):
    """Ours, the peer's and what physics would allow, where a goal is of such times."""
    medians = [median_us(line, "ours_us"), median_us(line, "torch_us", "theirs_us"), median_us(line, "floor_us")]
    return "" if medians[0] is None else " / ".join("-" if us is None else figure(us) for us in medians)


def compiled(line, lines):
    """What torch.compile's takes, beside the row with PyTorch's own."""
    base, is_peer, _ = line["name"].rpartition(".torch")
    beside = lines.get(f"{base}.compiled") if is_peer else None
    us = beside and median_us(beside, "compiled_us")
    return "" if us is None else figure(us)


def row(line, lines):
    wanted = "" if line["informative"] else f"{line['op']} {line['bound']:g}{line['unit']}"
    measured = line["skipped"] if line["measured"] is None else figure(float(line["measured"])) + line["unit"]
    verdict = " ".join([line["verdict"], *line.get("flags", [])])  # Older measurements did not keep them.
    return (f"| `{line['name']}` | {line['what']} | {wanted} | {measured} | {span(line['samples'])} | "
            f"{times(line)} | {compiled(line, lines)} | {len(line['samples']) * line.get('each', 1)} | {verdict} |")


def behind(line):
    """The medians of the figures that the samples were made of."""
    medians = [f"{key} {figure(float(statistics.median(values)))}" for key, values in line["extra"].items()
               if values and all(isinstance(v, (int, float)) for v in values)]
    return f"- `{line['name']}`: {', '.join(medians)}" if medians else None


def gelu_table(lines):
    """A launch for each operation beside one for all."""
    table = [line for line in lines if line["name"].startswith(GELU)]
    if not table:
        return []
    rows = [f"| `{line['name'].removeprefix(GELU)}` | {median_us(line, 'launches'):g} | "
            f"{figure(median_us(line, 'microseconds'))} | {figure(float(line['measured']))} |"
            for line in table if line["samples"]]
    return ["", "`gelu` of 2^28 f32, its variants and PyTorch's:", "",
            "| variant | launches | us | time over the default's |", "| --- | --- | --- | --- |", *rows]


def cpus(data):
    """Older measurements did not keep which; of those of a GPU how many there were is told with it alone."""
    cache = data.get("last_cache_bytes")
    told = [data.get("cpu"), f"{cache / 2**20:g} MiB of last cache" if cache else ""]
    which = ", ".join(filter(None, told))
    if which:
        return f"{data['cpus']} CPUs ({which})"
    return "" if data.get("device") else f"{data['cpus']} CPUs"


def machine(data):
    libraries = ", ".join(f"{name} {version}" for name, version in data["libraries"].items())
    peers = [f"{name} {data[key]}" for key, name in (("numpy", "numpy"), ("pytorch", "PyTorch")) if key in data]
    device = data.get("device")
    told = [device, cpus(data), "" if device else libraries, ", ".join(peers), f"load {data['load_at_start']:.1f} as it began"]
    return "; ".join(filter(None, told))


def machine_name(data):
    """What tells its machine from others. Where an older measurement did not keep which CPU: the day and commit."""
    if data.get("device"):
        return data["device"].split(",")[0]
    return cpus(data) if data.get("cpu") else f"{cpus(data)} of {data['date']}, {data['commit']}"


def title(data):
    parts = [group if group in data["groups"] else f"rows of {group}" for group in sorted(measured_groups(data))]
    return f"{data['date']}, {data['commit']}: {', '.join(parts)}"


def section(data):
    lines = [f"## {title(data)}", "", f"{machine(data)}.", "",
             "| goal | what | wanted | median | quartiles | ours / peer / floor, us | compiled, us | rounds | |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    by_name = {line["name"]: line for line in data["lines"]}
    goals = [line for line in data["lines"] if not line["name"].startswith(GELU)]
    lines += [row(line, by_name) for line in goals] + gelu_table(data["lines"])
    lines += ["", "Behind them, medians:", ""] + [b for b in map(behind, goals) if b]
    return "\n".join(lines) + "\n"


def group_of(line, data, goals):
    """Of a goal as it is defined today, or of one that its group does not name beforehand: rows that a server alone
    knows, other numbers of threads. None of what has no bound and of goals that had other words or another bound."""
    group = line.get("group") or (data["groups"][0] if len(data["groups"]) == 1 else None)
    if line["informative"] or not line["samples"]:
        return None
    if line["name"] not in goals:
        return group
    return goals[line["name"]].get(definition(line))


def newest(measured):
    """group -> machine -> name -> (date, line): of each goal the newest figure."""
    goals = {}
    for group in (*GPU_GROUPS, *GROUPS):
        for goal in goals_of(group):
            goals.setdefault(goal.name, {})[definition(dataclasses.asdict(goal))] = group
    found = {group: {} for group in (*GPU_GROUPS, *GROUPS)}
    for data in measured:
        for line in data["lines"]:
            group = group_of(line, data, goals)
            if group:
                found[group].setdefault(machine_name(data), {}).setdefault(line["name"], (data["date"], line))
    return found


def is_met(line):
    return line["verdict"] == "PASS"


def days(lines):
    dates = [date for date, _ in lines.values()]
    return min(dates) if min(dates) == max(dates) else f"{min(dates)} to {max(dates)}"


def in_short(found):
    rows = ["| goals | of what | met |", "| --- | --- | --- |"]
    for group, machines in found.items():
        words = importlib.import_module(f"speed.{group}").__doc__.partition("\n\n")[0].split(". ")[0]
        met = [f"{sum(is_met(line) for _, line in lines.values())} of {len(lines)}: {name}"
               + ("" if days(lines) in name else f", {days(lines)}") for name, lines in machines.items()]
        if met:
            rows.append(f"| `{group}` | {' '.join(words.split()).rstrip('.')} | {'<br>'.join(met)} |")
    return "\n".join(rows)


def told_miss(date, line):
    distrusted = sorted({*line.get("flags", [])} & {*DISTRUSTED})
    return " ".join([f"  - `{line['name']}` {figure(float(line['measured']))}{line['unit']}",
                     f"({line['op']} {line['bound']:g}), {date}", *distrusted])


def missed(found):
    told = []
    for group, machines in found.items():
        for name, lines in machines.items():
            of_group = [told_miss(date, line) for date, line in lines.values() if not is_met(line)]
            if of_group:
                told += [f"- {group}, {name}:", *of_group]
    return "\n".join(told) or "None."


def without_figure(group, measured):
    """The names of the group's goals of which no measurement has one."""
    known = {definition(line) for data in measured for line in data["lines"] if line["samples"]}
    return [goal.name for goal in goals_of(group) if definition(dataclasses.asdict(goal)) not in known]


def measured_groups(data):
    """Those of which some rows alone were asked for too, which `groups` does not name."""
    return {*data["groups"], *(line["group"] for line in data["lines"] if line["samples"] and "group" in line)}


def unmeasured(measured):
    known = set().union(*map(measured_groups, measured))
    groups = {group: group in known for group in (*GROUPS, *GPU_GROUPS)}
    missing = [group for group, is_measured in groups.items() if not is_measured]
    told = [f"There are no figures yet of these groups of goals: {', '.join(missing)}."] if missing else []
    names = {group: without_figure(group, measured) for group, is_measured in groups.items() if is_measured}
    if any(names.values()):
        told += ["Of measured groups these goals have no figure, or only one of a goal that had other words or another bound:",
                 "\n".join(f"- {group}: {', '.join(f'`{name}`' for name in of_group)}"
                           for group, of_group in names.items() if of_group)]
    return "\n\n".join(["## Not measured", *told]) + "\n" if told else ""


def least_samples(name, least):
    return next((few for pattern, few in FEWER.items() if fnmatch.fnmatch(name, pattern)), least)


def check(name, data):
    """Raises ValueError where a measurement does not count."""
    least = GPU_LEAST_ROUNDS if set(data["groups"]) <= set(GPU_GROUPS) else LEAST_ROUNDS
    if data["rounds"] < least:
        raise ValueError(f"{name}: want at least {least} rounds, it has {data['rounds']}: measure again")
    for line in data["lines"]:
        wanted, got = least_samples(line["name"], least), len(line["samples"])
        if 0 < got < wanted:
            raise ValueError(f"{name}: {line['name']}: want at least {wanted} samples, it has {got}: measure again")


def read_results():
    """Newest first. Raises ValueError where a measurement does not count."""
    measured = []
    for path in sorted(RESULTS.glob("*.json"), reverse=True):  # Of one day the later version first.
        data = json.loads(path.read_text())
        check(path.name, data)
        measured.append(data)
    return sorted(measured, key=lambda data: (data["date"], data.get("time", "")), reverse=True)


def pages():
    """name -> its text."""
    measured = read_results()
    found = newest(measured)
    made = {}
    for name, groups, of_gpus in (("benchmarks", GPU_GROUPS, True), ("benchmarks-cpu", GROUPS, False)):
        parts = {"in short": in_short(found), "missed": missed({group: found[group] for group in groups}),
                 "unmeasured": unmeasured(measured),
                 "runs": "\n".join(section(data) for data in measured if bool(data.get("device")) == of_gpus)}
        text = (WORDS / f"{name}.md").read_text()
        for part, words in parts.items():
            text = text.replace(f"<!-- {part} -->\n", f"{words}\n" if words else "")
        made[f"{name}.md"] = text
    return made


def main():
    try:
        wanted = pages()
    except ValueError as error:
        print(error)
        return 1
    if "--check" not in sys.argv[1:]:
        for name, text in wanted.items():
            (DOCS / name).write_text(text)
        return 0
    stale = [name for name, text in wanted.items() if not (DOCS / name).exists() or (DOCS / name).read_text() != text]
    print(f"docs/{' and docs/'.join(stale)}: not what the measurements say: run tests/bench/report.py" if stale else
          f"docs/{' and docs/'.join(wanted)} are what the measurements say")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
