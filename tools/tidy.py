#!/usr/bin/env python3
"""clang-tidy over our sources, each only when it, a header of ours that it includes, its command or
the configuration has changed since it was last clean.

usage: tidy.py --build BUILD [--all] [--budget SECONDS] [--jobs N]

Without --all: the sources that changed since the main branch (or the last commit), or of which a header
did; first those that changed, then those of the header that the fewest include. What is left when the
budget is spent is for the nightly run, and is said; with --all, which is that run, it fails.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import time

INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.M)


def git(root, *args):
    ran = subprocess.run(["git", "-C", root, *args], capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"tidy.py: git {' '.join(args)} failed: {ran.stderr.strip()}")
    return ran.stdout.split()


def changed_files(root):
    """Since this work left the main branch, or since the commit before the last; also what is not committed."""
    base = ["HEAD~1"]
    if git(root, "for-each-ref", "refs/remotes/origin/main"):
        left = git(root, "merge-base", "HEAD", "origin/main")
        if left != git(root, "rev-parse", "HEAD"):
            base = left
    return {*git(root, "diff", "--name-only", *base), *git(root, "ls-files", "-o", "--exclude-standard")}


def headers_of(path, root, seen):
    """The file and all headers of ours that it includes, however deep."""
    if path in seen or not (root / path).is_file():
        return seen
    seen.add(path)
    for name in INCLUDE.findall((root / path).read_bytes()):
        headers_of(name.decode(), root, seen)
    return seen


class Tidier:
    def __init__(self, root, build, deadline):
        self.root, self.deadline = root, deadline
        self.stamps = build.parent / "tidy"
        version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
        self.common = version + (root / ".clang-tidy").read_bytes()

    def stamp(self, path, command):
        digest = hashlib.sha256(self.common + command.encode())
        for name in sorted(headers_of(path, self.root, set())):
            digest.update(name.encode() + b"\0" + (self.root / name).read_bytes())
        return self.stamps / digest.hexdigest()

    def tidy(self, path, command):
        """(path, verdict, text): clean, known, dirty or late."""
        stamp = self.stamp(path, command)
        if stamp.exists():
            return path, "known", ""
        if time.monotonic() > self.deadline:
            return path, "late", ""
        ran = subprocess.run(["clang-tidy", "--quiet", "-p", self.stamps, "--extra-arg=-Wno-unknown-warning-option",
                              self.root / path], capture_output=True, text=True)
        if ran.returncode == 0:
            stamp.touch()
            return path, "clean", ""
        return path, "dirty", ran.stdout + ran.stderr


def singles(entry):
    """One for each of the sources that are compiled together."""
    path = pathlib.Path(entry["file"])
    if path.parent.name != "Unity":
        return [entry]
    return [{**entry, "file": source, "command": entry["command"].replace(entry["file"], source)}
            for source in re.findall(r'^#include "(.+)"$', path.read_text(), re.MULTILINE)]


def commands(root, build):
    """Our own sources with the command that compiles them, without those for GPUs, which this clang
    cannot read. A copy of the list, without the headers that g++ precompiled, is left where Tidier
    looks."""
    found = {}
    entries = [entry for entry in json.loads((build / "compile_commands.json").read_text())
               if not re.match(r"(\S*ccache )?\S*nvcc ", entry["command"])]
    entries = [single for entry in entries for single in singles(entry)]
    for entry in entries:
        entry["command"] = re.sub(r"-Winvalid-pch|-include \S+cmake_pch\.hxx", "", entry["command"])
    database = build.parent / "tidy/compile_commands.json"
    database.parent.mkdir(parents=True, exist_ok=True)
    database.write_text(json.dumps(entries))
    for entry in entries:
        path = pathlib.Path(entry["file"])
        if path.is_relative_to(root) and not path.is_relative_to(build) and not path.is_relative_to(root / "build"):
            found.setdefault(str(path.relative_to(root)), entry["command"])
    return found


def touched(sources, root):
    """Those that changed, then those of which a header did."""
    changed = changed_files(root)
    met = {source: changed & headers_of(source, root, set()) for source in sources}
    includers = collections.Counter(name for names in met.values() for name in names)

    def place(source):
        return source not in changed, min(includers[name] for name in met[source]), source

    return sorted(filter(met.get, sources), key=place)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--budget", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    build = args.build.resolve()
    known = commands(root, build)
    wanted = sorted(known) if args.all else touched(known, root)
    tidier = Tidier(root, build, time.monotonic() + args.budget)
    counts, late = {"clean": 0, "known": 0, "dirty": 0, "late": 0}, []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for path, verdict, text in pool.map(lambda p: tidier.tidy(p, known[p]), wanted):
            counts[verdict] += 1
            if verdict == "dirty":
                print(f"{path}: not tidy\n{text}", flush=True)
            elif verdict == "late":
                late.append(path)
    left = "not tidied: the budget is spent" if args.all else "left for the nightly run"
    if late:
        print(f"clang-tidy has NOT looked at {len(late)} sources, {left}: {' '.join(late)}")
    print(f"clang-tidy: {counts['clean']} clean, {counts['known']} unchanged since they were, "
          f"{counts['dirty']} not, {counts['late']} {left}, of {len(known)} sources")
    return 1 if counts["dirty"] or not known or (args.all and counts["late"]) else 0


if __name__ == "__main__":
    sys.exit(main())
