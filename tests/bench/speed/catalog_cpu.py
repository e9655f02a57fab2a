"""The catalogue on the CPU, shape by shape, beside PyTorch with as many threads and, with one thread, beside numpy
too. The cases are those of gpu_catalog and some of other groups."""
import json
import math
import os
import pathlib
import subprocess
import sys

from speed import gpu_catalog
from speed.gpu_catalog import ALIKE, NAMES, TENSORS, elements
from speed.line import Line
from speed.programs import Server, run_json

PEER = pathlib.Path(__file__).with_name("cpu_peer.py")
NUMPY = {
    "vector_add": "numpy.add(x, y, out=out)",
    "square": "numpy.multiply(x, x, out=out)",
    "matmul": "numpy.matmul(x, y, out=out)",
    "mul": "numpy.multiply(x, y, out=out)",
    "scale": "numpy.multiply(x, 1.5, out=out)",
    "relu": "numpy.maximum(x, 0, out=out)",
    "sigmoid": "1 / (1 + numpy.exp(-x))",
    "pow": "numpy.power(x, 2, out=out)",
    "softmax": "(e := numpy.exp(x - x.max(-1, keepdims=True))) / e.sum(-1, keepdims=True)",
    "sum": "x.sum(-1)",
    "sum.columns": "x.sum(0)",
    "mean": "x.mean(-1)",
    "max": "x.max(-1)",
    "argmax": "x.argmax(-1)",
    "cumsum": "numpy.cumsum(x, -1, out=out)",
    "transpose": "numpy.ascontiguousarray(x.T)",
}


def elements_of(case):
    return sum(case.shape) if case.shape == TENSORS else math.prod(case.shape)


def is_for_cpus(case):
    """Not one variant, which is a GPU's, nor what torch.compile takes a minute for. And no more of a CPU is said by 2^28 elements than by 2^26, which take a
    gigabyte for each tensor, nor by a product that takes a minute."""
    return "--variant" not in case.words and "compiled" not in case.peer and elements_of(case) <= 1 << 27 and case.flops <= 1 << 38


CASES = tuple(filter(is_for_cpus, (
    *gpu_catalog.CASES,
    *elements("vector_add", "torch.add(x, y, out=out)", inputs=2, sizes=(1_000_000,)),
)))


def numpy_op(case):
    """None where numpy has no such operation, or none of this dtype."""
    return NUMPY.get(".".join(filter(None, (case.kernel, case.note)))) if case.dtype == "f32" else None


def calls_of(case):
    """Warm-ups, and calls that count, on either side."""
    elements = elements_of(case)
    return (20, 100) if elements <= 1 << 16 else (3, 15) if elements <= 1 << 22 else (1, 5)


class Peer:
    """numpy and PyTorch in a process of their own."""

    def __init__(self, threads):
        self._process = subprocess.Popen([sys.executable, str(PEER), str(threads)], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)
        self.versions = json.loads(self._process.stdout.readline() or "{}")

    def ns(self, library, op, case):
        """None where the library is not there."""
        if not self.versions.get(library):
            return None
        warmups, calls = calls_of(case)
        request = {"library": library, "op": op, "shape": case.shape, "dtype": NAMES[case.dtype], "warmups": warmups,
                   "calls": calls}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "it ended"}')
        if "error" in answer:
            raise RuntimeError(f"{library}, {op} of {case.size}: {answer['error']}")
        return answer["ns"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


def our_ns(config, server, case):
    warmups, calls = calls_of(case)
    told = run_json(config.binaries / "gridclock", "--server", server.address, "bench", case.kernel, *case.words,
                    *case.dtype_words, "--schedule", f"0:{warmups}:{calls}:1", "--json")
    return told["results"][0]["timing"]["statistics"]["median_ns"]


def beside(lines, case, library, threads, ours, theirs):
    name = f"{case.name.replace('gpu.catalog', 'cpu.catalog')}.{library}.{threads}"
    words = f"{case.what}, {threads} threads: {library}'s time over ours"
    if theirs is None:
        lines.setdefault(name, Line(name, words, ">=", ALIKE, skipped=f"no {library}"))
        return
    lines.setdefault(name, Line(name, words, ">=", ALIKE)).add(theirs / ours, ours_us=ours / 1e3, theirs_us=theirs / 1e3)


def measure_case(config, server, peer, threads, case, lines):
    ours = our_ns(config, server, case)
    beside(lines, case, "torch", threads, ours, peer.ns("torch", case.peer, case))
    if threads == 1 and (op := numpy_op(case)):
        beside(lines, case, "numpy", threads, ours, peer.ns("numpy", op, case))


def measure(config):
    lines, everywhere = {}, os.sched_getaffinity(0)
    for threads in sorted({1, len(everywhere)}):
        # What is started from here inherits it, and a worker has a thread for each CPU that it may use.
        os.sched_setaffinity(0, sorted(everywhere)[:threads])
        try:
            with Server(config.binaries, "--devices=cpu") as server, Peer(threads) as peer:
                for _ in range(max(1, config.rounds // 3)):  # Each of several calls, and of minutes.
                    for case in CASES:
                        measure_case(config, server, peer, threads, case, lines)
        finally:
            os.sched_setaffinity(0, everywhere)
    return list(lines.values())
