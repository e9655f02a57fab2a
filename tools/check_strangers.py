#!/usr/bin/env python3
"""Finds in tracked files what a stranger does not have or must not see: paths of one machine, hosts
of package mirrors, identities of devices, keys.

usage: check_strangers.py [ROOT]
"""
import pathlib
import re
import subprocess
import sys

# Each word is put together here, so that this file does not find itself.
FORBIDDEN = {
    "a path of one machine": r"(?<![\w.$}])/" + r"(?:(?:wo" + r"rk|fa" + r"rm)\b|ho" + r"me/[a-z]|Us" + r"ers/[A-Za-z]|mnt/[a-z])",
    "a path beside the repository": r"\.\./sha" + r"red\b|\.libr" + r"ary/",
    "a host of packages": r"\b(?:py" + r"pi\.org|files\.python" + r"hosted\.org|deb\.deb" + r"ian\.org|"
                          r"(?:archive|security)\.ubu" + r"ntu\.com|developer\.download\.nvi" + r"dia\.com|"
                          r"registry\.np" + r"mjs\.org|proxy\.gol" + r"ang\.org|static\.crates\.i" + r"o)\b",
    "the identity of a device": r"\bGPU-[0-9a-f]{8}-[0-9a-f]{4}",
    "a private key": r"-----BEGIN (?:[A-Z]+ )?PRIV" + r"ATE KEY-----",
}

# Where a word is meant. path -> words allowed there, with the reason.
ALLOWED = {
    # None so far.
}


def tracked(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, check=True).stdout
    return [p for p in listed.decode().split("\0") if p and (root / p).is_file()]


def findings(path, root):
    data = (root / path).read_bytes()
    if b"\0" in data[:4096]:
        return
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        for what, pattern in FORBIDDEN.items():
            match = re.search(pattern, line)
            if match and match.group(0) not in ALLOWED.get(path, ()):
                yield f"{path}:{number}: {what}: {match.group(0)}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    files = tracked(root)
    found = [finding for path in files for finding in findings(path, root)]
    print("\n".join(found) if found else f"strangers: {len(files)} files name nothing of one place")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
