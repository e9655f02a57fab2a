#!/usr/bin/env python3
"""How many kernels of teaching repositories compile as they are: survey.py BIN_FOLDER CLONES [--json FILE].

CLONES holds a folder OWNER+NAME for each row of the table in docs/survey.md, which says what is counted. A clone of
another commit is refused."""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "survey.md"
sys.path.insert(0, str(TESTS / "support"))

from server import Server  # noqa: E402

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.M)
# What stands between `__global__` and the name: a type, attributes with their arguments.
KERNEL = re.compile(r"(template\s*<[^;{}]*>\s*)?(?:extern\s*\"C\"\s*|static\s+|inline\s+)*__global__\s+"
                    r"((?:[\w:&*<>,\s]|__launch_bounds__\s*\([^()]*(?:\([^()]*\)[^()]*)*\))*?)"
                    r"\b(\w+)\s*\(")


def rows():
    """Repository, commit and folder of each row of the page."""
    found = re.findall(r"^\| (\S+/\S+) \| ([0-9a-f]{40}) \| (\S+) \|$", PAGE.read_text(), re.M)
    if not found:
        raise SystemExit(f"{PAGE}: want a table of repositories, got none")
    return found


def without_comments(text):
    return COMMENT.sub(lambda m: m[0] if m[0].startswith(('"', "'")) else " ", text)


def body_follows(text, at):
    """Whether the parameter list that opens before `at` is followed by a body."""
    depth = 1
    while at < len(text) and depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return text[at:].lstrip().startswith("{")


def kernels(text):
    """The names that count, and those of templates."""
    plain, templates = [], []
    for found in KERNEL.finditer(text):
        if body_follows(text, found.end()):
            (templates if found[1] else plain).append(found[3])
    return plain, templates


def stands_alone(path, seen=None):
    seen = set() if seen is None else seen
    if path in seen:
        return True
    seen.add(path)
    names = INCLUDE.findall(without_comments(path.read_text(errors="replace")))
    found = [(path.parent / name).resolve() for name in names]
    return all(one.is_file() and stands_alone(one, seen) for one in found)


def compiled(binary, server, path):
    """The names of the file's entries, or None and why there are none."""
    done = subprocess.run([binary, "compile", path, "--json"], capture_output=True, text=True, timeout=300,
                          env=dict(os.environ, GRIDCLOCK_SERVER=server.grpc))
    if done.returncode == 0:
        return {re.split(r"[<(]", entry["display"])[0].split("::")[-1] for entry in json.loads(done.stdout)["entries"]}, ""
    message = json.loads(done.stdout)["error"]["message"] if done.stdout else done.stderr
    errors = re.findall(r"(?:^|\s)(?:catastrophic )?error[^:]*: ([^\n]+)", message)
    return None, (errors or message.strip().splitlines() or ["no message"])[0]


def survey(binary, server, clones):
    files = []
    for repository, commit, folder in rows():
        clone = clones / repository.replace("/", "+")
        at = subprocess.run(["git", "-C", clone, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
        if at.strip() != commit:
            raise SystemExit(f"{clone}: want commit {commit}, got {at.strip()}")
        for path in sorted((clone / folder).rglob("*.cu")):
            if not path.is_file():
                continue
            plain, templates = kernels(without_comments(path.read_text(errors="replace")))
            one = {"repository": repository, "file": str(path.relative_to(clone)), "kernels": plain,
                   "templates": templates, "alone": stands_alone(path.resolve())}
            if plain and one["alone"]:
                entries, one["why"] = compiled(binary, server, path)
                one["compiled"] = [name for name in plain if entries and name in entries]
            files.append(one)
    return files


def tell(files):
    counted = [one for one in files if "compiled" in one]
    print(f"{'repository':64} {'files':>5} {'kernels':>7} {'compile':>7}")
    for repository in dict.fromkeys(one["repository"] for one in files):
        own = [one for one in counted if one["repository"] == repository]
        print(f"{repository:64} {len(own):5} {sum(len(one['kernels']) for one in own):7} "
              f"{sum(len(one['compiled']) for one in own):7}")
    total, good = (sum(len(one[key]) for one in counted) for key in ("kernels", "compiled"))
    print(f"{good} of {total} kernels that stand alone compile unchanged: {100 * good / max(total, 1):.1f} %")
    print(f"not counted: {sum(len(one['templates']) for one in files)} templates, "
          f"{sum(len(one['kernels']) for one in files if not one['alone'])} kernels of files that do not stand alone")
    why = collections.Counter()
    for one in counted:
        why[one["why"]] += len(one["kernels"]) - len(one["compiled"])
    for reason, count in why.most_common():
        if count:
            print(f"{count:5}  {reason or 'the compiler made no such entry'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_folder", type=pathlib.Path)
    parser.add_argument("clones", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    with Server(args.bin_folder.resolve(), "--allow-submit", "--limit-compile-seconds=60") as server:
        binary = args.bin_folder.resolve() / "gridclock"
        subprocess.run([binary, "wait"], env=dict(os.environ, GRIDCLOCK_SERVER=server.grpc), check=True)
        files = survey(binary, server, args.clones.resolve())
    if args.json:
        args.json.write_text(json.dumps(files, indent=1) + "\n")
    tell(files)


if __name__ == "__main__":
    main()
