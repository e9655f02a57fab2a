#!/usr/bin/env python3
"""Does what examples/python/README.md says, in a folder of the build: a virtual environment, the
requirements, the stubs. Does nothing where all that is there already."""

import hashlib
import pathlib
import shutil
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "python"


def mark():
    files = sorted(EXAMPLE.glob("*.py")) + [EXAMPLE / "requirements.txt"]
    files += sorted((ROOT / "proto" / "gridclock" / "v1").glob("*.proto"))
    files += sorted((ROOT / "proto" / "google" / "rpc").glob("*.proto"))
    digest = hashlib.sha256(sys.version.encode())
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def main(folder):
    done = folder / "done"
    if done.exists() and done.read_text() == mark():
        return
    done.unlink(missing_ok=True)
    environment = folder / "venv"
    venv.create(environment, with_pip=True, clear=True)
    pip = [environment / "bin" / "pip", "install", "--quiet", "--retries", "10", "--disable-pip-version-check"]
    subprocess.run([*pip, "-r", EXAMPLE / "requirements.txt"], check=True)
    # A copy, so that a test writes nothing into the sources.
    copy = folder / "example"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("venv", "generated"))
    subprocess.run([environment / "bin" / "python", copy / "generate.py", ROOT / "proto"], check=True)
    done.write_text(mark())


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
