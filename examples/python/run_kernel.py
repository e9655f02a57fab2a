#!/usr/bin/env python3
"""Lists the kernels of a server, runs softmax on a small array, then streams a larger one, measures
it and watches the samples come. Exits with 1 if numpy disagrees, or
with a line that names the address if no server answers there."""

import argparse
import os
import sys

import grpc
import numpy as np

from gridclock_client import Client, details_of
from gridclock.v1 import types_pb2


def numpy_softmax(x):
    shifted = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def compare(name, got, want):
    error = float(np.max(np.abs(got - want)))
    print(f"{name}: {got.dtype} {got.shape}, largest difference from numpy {error:.1e}")
    return got.shape == want.shape and error < 1e-6


def print_summary(summary):
    timing = summary.timing
    statistics = timing.statistics
    flags = ", ".join(types_pb2.Flag.Name(f) for f in summary.flags) or "none"
    print(f"{summary.kernel}.{summary.variant} on {summary.device}")
    print(f"  median    {statistics.median_ns / 1e3:.1f} us of {len(timing.samples_ns)} samples")
    print(f"  quartiles {statistics.q1_ns / 1e3:.1f} .. {statistics.q3_ns / 1e3:.1f} us")
    print(f"  moved     {timing.bytes_per_second / 1e9:.2f} GB/s")
    print(f"  stopped   {types_pb2.Timing.Stop.Name(timing.stop)}; flags: {flags}")


def print_samples(samples):
    what = "warm-up" if samples.warmup else "sample"
    last = samples.first + len(samples.samples_ns) - 1
    print(f"  {what} {last}: {samples.samples_ns[-1] / 1e3:.1f} us", flush=True)


def small(client):
    x = np.random.default_rng(1).standard_normal((4, 8), np.float32)
    outputs, summary = client.run("softmax", {"x": x})
    print(f"one launch took {summary.timing.statistics.median_ns / 1e3:.1f} us")
    return compare("run", outputs["y"], numpy_softmax(x))


def large(client, rows):
    x = np.random.default_rng(2).standard_normal((rows, 1024), np.float32)
    measure = types_pb2.MeasureOptions(budget_seconds=0.5)
    outputs, summary = client.stream_run(
        "softmax", {"x": x}, on_samples=print_samples, measure=measure
    )
    print_summary(summary)
    return compare("stream_run", outputs["y"], numpy_softmax(x))


def show(options):
    with Client(options.server, token=os.environ.get("GRIDCLOCK_TOKEN")) as client:
        for kernel in client.kernels():
            print(f"{kernel.name:12} {kernel.summary}")
        right = [small(client), large(client, options.rows)]
    return 0 if all(right) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default=os.environ.get("GRIDCLOCK_SERVER", "127.0.0.1:8470"))
    parser.add_argument("--rows", type=int, default=2048, help="of the large array, 4 KiB each")
    options = parser.parse_args()
    try:
        return show(options)
    except grpc.RpcError as error:
        silent = error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
        what = "no server answers" if silent and not details_of(error)[0] else error.details()
        return f"{options.server}: {error.code().name}: {what}"


if __name__ == "__main__":
    sys.exit(main())
