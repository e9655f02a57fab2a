#!/usr/bin/env python3
"""Whether docs/kernels.md has every kernel of kernels/catalog; what it says of each is held by a test.

usage: check_kernels_page.py [--gpus] [ROOT]    --gpus: and the variants for GPUs of all that have some
"""
import pathlib
import re
import sys


def main():
    words = sys.argv[1:]
    gpus = "--gpus" in words
    root = pathlib.Path(next((word for word in words if word != "--gpus"), ".")).resolve()
    kernels = sorted((root / "kernels/catalog").glob("*.cu"))
    page = (root / "docs/kernels.md").read_text(encoding="utf-8")
    sections = {section.split("\n", 1)[0]: section for section in re.split(r"(?m)^## ", page)[1:]}
    missing = [path.stem for path in kernels if path.stem not in sections]
    unsaid = [path.stem for path in kernels if gpus and path.stem in sections
              and "GC_CUDA_VARIANTS(" in path.read_text(encoding="utf-8") and "` | cuda | " not in sections[path.stem]]
    if missing:
        print(f"docs/kernels.md lacks {', '.join(missing)}: run ./dev build, then "
              "build/dev/bin/gridclock-kernels-doc docs/kernels.md")
    elif unsaid:
        print(f"docs/kernels.md lacks the variants for GPUs of {', '.join(unsaid)}: where there is a CUDA compiler, run "
              "./dev build, then build/dev/bin/gridclock-kernels-doc docs/kernels.md")
    else:
        print(f"kernels page: all of {len(kernels)}")
    return 1 if missing or unsaid or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
