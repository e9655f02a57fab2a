#!/usr/bin/env python3
"""Measures the goals of GPUs, each beside its peer in the same run, and says which are met.

usage: bench.py --bin FOLDER [--check] [--only gpu_kernels,...] [--rounds N] [--out FILE]
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import bench  # noqa: E402

if __name__ == "__main__":
    sys.exit(bench.main(bench.GPU_GROUPS, bench.GPU_LEAST_ROUNDS))
