#!/usr/bin/env python3
"""Whether docs/kernels.md has every kernel of kernels/catalog; what it says of each is held by a test.

usage: check_kernels_page.py [ROOT]
"""
import pathlib
import sys


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    kernels = sorted(path.stem for path in (root / "kernels/catalog").glob("*.cu"))
    lines = set((root / "docs/kernels.md").read_text(encoding="utf-8").splitlines())
    missing = [kernel for kernel in kernels if f"## {kernel}" not in lines]
    if missing:
        print(f"docs/kernels.md lacks {', '.join(missing)}: run ./dev build, then "
              "build/dev/bin/gridclock-kernels-doc docs/kernels.md")
    else:
        print(f"kernels page: all of {len(kernels)}")
    return 1 if missing or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
