#!/usr/bin/env python3
"""Writes the tables of README.md, docs/optimizing.md and docs/lessons.md from the newest measurement of gpu_lessons in
tests/bench/results/.

usage: lessons_page.py [--check]    --check: fail where a table is not what the measurement says

A page says where a table goes: `<!-- figures NAME -->`, the table, `<!-- end -->`. Until there is a measurement,
the place says how to make one.
"""
import json
import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from speed.gpu_lessons import LADDERS  # noqa: E402: beside this file.

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs/optimizing.md", ROOT / "docs/lessons.md")
RESULTS = ROOT / "tests/bench/results"
PLACE = re.compile(r"(<!-- figures (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
NONE = "Figures: run `./dev gpu-bench --only gpu_lessons`; none have been taken yet.\n"


def newest():
    """The last measurement of the ladders, or None."""
    measured = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    of_lessons = [data for data in measured if "gpu_lessons" in data["groups"]]
    return max(of_lessons, key=lambda data: (data["date"], data.get("time", "")), default=None)


def time_text(us):
    return f"{us / 1e3:.3g} ms" if us >= 1e3 else f"{us:.3g} µs"


def rate_text(ladder, us):
    if ladder.flops:
        return f"{ladder.flops / us / 1e6:.3g} TFLOP/s"
    return f"{ladder.moved / us / 1e3:.4g} GB/s"


def flags_text(line):
    """What makes the time, or the one that it stands beside, doubtful."""
    return f" ({', '.join(line['flags'])})" if line.get("flags") else ""


def rows(ladder, lines):
    own = [lines[ladder.line_name(rung)] for rung in ladder.rungs]
    times = [statistics.median(line["extra"]["microseconds"]) for line in own]
    for rung, line, us, before in zip(ladder.rungs, own, times, [None, *times]):
        yield (f"`{rung.label}`", time_text(us) + flags_text(line), rate_text(ladder, us), f"{times[0] / us:.3g}x",
               f"{before / us:.3g}x" if before else "")


def table(ladder, data):
    lines = {line["name"]: line for line in data["lines"]}
    if any(ladder.line_name(rung) not in lines for rung in ladder.rungs):
        return NONE
    head = ("", "time", "rate", "beside the first", "beside the one before")
    body = [head, ("---",) * len(head), *rows(ladder, lines)]
    where = f"{ladder.what}; {data['device']}; {data['date']}, commit {data['commit']}, medians of {data['rounds']} rounds."
    return "\n".join("| " + " | ".join(row) + " |" for row in body) + f"\n\n{where}\n"


def filled(text, data):
    """The page with its tables. ValueError for a place that no ladder fills."""
    ladders = {ladder.name: ladder for ladder in LADDERS}

    def fill(match):
        if match[2] not in ladders:
            raise ValueError(f"no ladder of figures is called '{match[2]}'; there are {', '.join(ladders)}")
        return match[1] + (table(ladders[match[2]], data) if data else NONE) + match[3]

    return PLACE.sub(fill, text)


def main():
    data, stale = newest(), []
    for page in PAGES:
        text = page.read_text()
        wanted = filled(text, data)
        if "--check" not in sys.argv[1:]:
            page.write_text(wanted)
        elif text != wanted:
            stale.append(page.relative_to(ROOT))
    for page in stale:
        print(f"{page} is not what the measurement says: run tests/bench/lessons_page.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
