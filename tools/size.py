#!/usr/bin/env python3
"""How long functions and files are, by universal-ctags.

usage: size.py [--check] [ROOT]    --check: fail where one is too long
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys

LONGEST_FUNCTION = 60
LONGEST_FILE = 600

# Path (of a file or folder), or path:function -> why its length does not count.
EXCUSED = {
    # None so far: a long switch or a table of data may stand here.
}

PATTERNS = ["*.cc", "*.h", "*.cu", "*.cuh", "*.py"]


def tracked(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "--", *PATTERNS], capture_output=True,
                            text=True, check=True).stdout.split()
    return [p for p in listed if (root / p).is_file()]


def excused(name):
    return any(name == e or name.startswith(e + "/") for e in EXCUSED)


def functions(root, files):
    """(lines, path, line, name) of every function that has a body."""
    command = ["ctags", "-L", "-", "--output-format=json", "--fields=+ne", "--kinds-C++=f",
               "--kinds-Python=fm", "-f", "-"]
    made = subprocess.run(command, input="\n".join(files), capture_output=True, text=True, check=True,
                          cwd=root).stdout
    for row in map(json.loads, made.splitlines()):
        if row.get("end", 0) and row.get("kind") in ("function", "member", "method"):
            yield row["end"] - row["line"] + 1, row["path"], row["line"], row["name"]


def quantile(ordered, q):
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else 0


def show(title, sizes):
    ordered = sorted(sizes)
    print(f"{title:<28} n {len(ordered):5}  median {quantile(ordered, 0.5):4}  "
          f"p90 {quantile(ordered, 0.9):4}  max {ordered[-1] if ordered else 0:4}")


def too_long(found, lengths):
    for lines, path, line, name in found:
        if lines > LONGEST_FUNCTION and not excused(f"{path}:{name}") and not excused(path):
            yield f"{path}:{line}: {name} has {lines} lines, more than {LONGEST_FUNCTION}"
    for path, lines in lengths.items():
        if lines > LONGEST_FILE and not excused(path):
            yield f"{path}:1: {lines} lines, more than {LONGEST_FILE}"


def report(found, lengths):
    by_room = collections.defaultdict(list)
    for lines, path, _, _ in found:
        by_room["tests" if path.startswith("tests/") else "/".join(path.split("/")[:-1][:2]) or "."].append(lines)
    show("functions, without tests", [n for room, s in by_room.items() if room != "tests" for n in s])
    show("files, without tests", [n for path, n in lengths.items() if not path.startswith("tests/")])
    for room in sorted(by_room):
        show(f"  functions in {room}", by_room[room])
    print("longest functions:")
    for lines, path, line, name in sorted(found, reverse=True)[:8]:
        print(f"  {lines:4}  {path}:{line}  {name}")
    print("longest files:")
    for path in sorted(lengths, key=lengths.get, reverse=True)[:8]:
        print(f"  {lengths[path]:4}  {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("root", nargs="?", default=".")
    args = parser.parse_args()
    root = pathlib.Path(args.root).resolve()
    files = tracked(root)
    found = list(functions(root, files))
    lengths = {p: len((root / p).read_bytes().splitlines()) for p in files}
    if not args.check:
        report(found, lengths)
    problems = list(too_long(found, lengths))
    print("\n".join(problems) if problems else f"size: {len(found)} functions, {len(files)} files, none too long")
    return 1 if args.check and (problems or not found) else 0


if __name__ == "__main__":
    sys.exit(main())
