"""The catalogue on the CPU, shape by shape, beside PyTorch with as many threads, and beside numpy with one thread and
where it has threads. The cases are those of gpu_catalog and some of other groups."""
import contextlib
import functools
import json
import math
import os
import pathlib
import subprocess
import sys
import time

from speed import gpu, gpu_catalog
from speed.gpu_catalog import ALIKE, NAMES, elements
from speed.line import Line
from speed.programs import Server, run_json

PEER = pathlib.Path(__file__).with_name("cpu_peer.py")
DISTANCES = "numpy.sqrt(numpy.maximum((x * x).sum(-1)[:, None] + (y * y).sum(-1) - 2 * (x @ y.T), 0))"
# In Python, of x, y and out, and of w and b, of the last dimension of x; of lists where the kernel has lists.
NUMPY = {
    "vector_add": "numpy.add(x, y, out=out)",
    "square": "numpy.multiply(x, x, out=out)",
    "matmul": "numpy.matmul(x, y, out=out)",
    "matmul_bias_gelu": "0.5 * (z := x @ y + b) * (1 + numpy.tanh(0.7978845608028654 * (z + 0.044715 * z * z * z)))",
    "mul": "numpy.multiply(x, y, out=out)",
    "scale": "numpy.multiply(x, 1.5, out=out)",
    "relu": "numpy.maximum(x, 0, out=out)",
    "gelu": "0.5 * x * (1 + numpy.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))",
    "sigmoid": "1 / (1 + numpy.exp(-x))",
    "silu": "x / (1 + numpy.exp(-x))",
    "pow": "numpy.power(x, 2, out=out)",
    "pow.of_a_fraction": "numpy.power(x, 0.3, out=out)",
    "cast.to_f32": "x.astype('f4')",
    "cast.to_i32": "x.astype('i4')",
    "foreach_add": "[numpy.add(a, b, out=c) for a, b, c in zip(x, y, out)]",
    "foreach_mul": "[numpy.multiply(a, b, out=c) for a, b, c in zip(x, y, out)]",
    "sgd": "[numpy.subtract(p, 1e-3 * g, out=p) for p, g in zip(x, y)]",
    "softmax": "(e := numpy.exp(x - x.max(-1, keepdims=True))) / e.sum(-1, keepdims=True)",
    "log_softmax": "(s := x - x.max(-1, keepdims=True)) - numpy.log(numpy.exp(s).sum(-1, keepdims=True))",
    "layernorm": "(c := x - x.mean(-1, keepdims=True)) / numpy.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * w + b",
    "rmsnorm": "x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w",
    "sum": "x.sum(-1)",
    "sum.of_all": "x.sum()",
    "sum.columns": "x.sum(0)",
    "mean": "x.mean(-1)",
    "max": "x.max(-1)",
    "argmax": "x.argmax(-1)",
    "cumsum": "numpy.cumsum(x, -1, out=out)",
    "transpose": "numpy.ascontiguousarray(x.T)",
    "cdist": DISTANCES,
    "cdist.matmul": DISTANCES,
}
# What a peer frees it finds again, as ours has its memory: pages that it would have to be given anew with each call
# cost as much as the operation.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
THREADED = ("matmul", "matmul_bias_gelu", "cdist")  # What its BLAS does.
NUMPY_HAS = ("f32", "i32")
# A product of f16 takes PyTorch two seconds a call at 1024, and so two minutes at 4096. That row and 8192 are left out,
# beside single variants that are a GPU's, and what torch.compile makes.
MOST_FLOPS_OF_F16 = 1 << 33
VARIANTS = ("gpu.catalog.cdist.matmul.8192x128",)  # That a CPU has too: the form that the peers' take.


def elements_of(case):
    return sum(case.shape) if case.how == "kernels" else math.prod(case.shape)


def is_for_cpus(case):
    takes_minutes = case.dtype == "f16" and case.flops > MOST_FLOPS_OF_F16
    is_there = "--variant" not in case.words or case.name in VARIANTS
    return is_there and "compiled" not in case.peer and not takes_minutes


CASES = tuple(filter(is_for_cpus, (
    *gpu_catalog.CASES,
    *elements("vector_add", "torch.add(x, y, out=out)", inputs=2, sizes=(1_000_000,)),
)))


def numpy_op(case, threads):
    """None where numpy has no such operation, none of this dtype, or not so many threads for it."""
    if case.dtype not in NUMPY_HAS or (threads > 1 and case.kernel not in THREADED):
        return None
    return NUMPY.get(".".join(filter(None, (case.kernel, case.note))))


def calls_of(case):
    """Warm-ups, and calls that count, on either side."""
    elements = elements_of(case)
    if case.flops >= 1 << 36:
        return (0 if case.flops >= 1 << 39 else 1), 1
    if case.flops >= 1 << 33 or elements > 1 << 24:
        return 1, 3
    return (20, 100) if elements <= 1 << 16 else (3, 15)


class Peer:
    """numpy and PyTorch in a process of their own."""

    def __init__(self, threads):
        self._process = subprocess.Popen([sys.executable, str(PEER), str(threads)], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True, env={**os.environ, **KEEP_MEMORY})
        self.versions = json.loads(self._process.stdout.readline() or "{}")

    def ns(self, library, op, case):
        """None where the library is not there."""
        if not self.versions.get(library):
            return None
        warmups, calls = calls_of(case)
        request = {"library": library, "op": op, "shape": case.shape, "lists": case.how == "kernels",
                   "dtype": NAMES[case.dtype], "warmups": warmups, "calls": calls}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "it ended"}')
        if "error" in answer:
            raise RuntimeError(f"{library}, {op} of {case.size}: {answer['error']}")
        return answer["ns"]

    def describe(self, config):
        """Into the head of the figures."""
        for what, library in (("numpy", "numpy"), ("pytorch", "torch")):
            if self.versions.get(library):
                config.found(what, self.versions[library])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


def our_ns(config, server, case):
    warmups, calls = calls_of(case)
    told = run_json(config.binaries / "gridclock", "--server", server.address, "bench", case.kernel, *case.words,
                    *case.dtype_words, "--schedule", f"0:{warmups}:{calls}:1", "--json")
    return gpu.median_of(told["results"][0])


def name_of(case):
    return case.name.replace("gpu.catalog", "cpu.catalog")


def peers_of(case, threads):
    """What each library is asked for, by the name of the line."""
    ops = {"torch": case.peer, "numpy": numpy_op(case, threads)}
    return {f"{name_of(case)}.{library}.{threads}": (library, op) for library, op in ops.items() if op}


def make_lines(case, threads):
    alike = f"{threads} {'thread' if threads == 1 else 'threads'}"
    return {name: Line(name, f"{case.what}, {alike}: {library}'s time over ours", ">=", ALIKE,
                       informative=case.informative) for name, (library, _) in peers_of(case, threads).items()}


def goals():
    """Those of one thread: how many more there are is the machine's."""
    return [line for case in CASES for line in make_lines(case, 1).values() if not line.informative]


def rest(threads):
    """The threads of OpenBLAS and of OpenMP look for more work for some 20 ms, on CPUs that others would have."""
    if threads > 1:
        time.sleep(0.1)


def lines_of(config, server, peer, threads, case):
    """Ours and the peers' times taken turn by turn. What cannot be measured is no pass."""
    peers, lines = peers_of(case, threads), make_lines(case, threads)
    for _ in range(max(1, config.rounds // 3)):  # Each of several calls.
        try:
            rest(threads)
            ours = our_ns(config, server, case)
        except RuntimeError as error:
            give_up(lines.values(), str(error))
            break
        for name, (library, op) in peers.items():
            rest(threads)
            add(lines[name], ours, peer, library, op, case)
    return list(lines.values())


def add(line, ours, peer, library, op, case):
    if line.skipped:
        return
    try:
        theirs = peer.ns(library, op, case)
    except RuntimeError as error:
        give_up([line], str(error))
        return
    if theirs is None:
        line.skipped = f"no {library}"
        return
    line.add(theirs / ours, ours.flags, ours_us=ours / 1e3, theirs_us=theirs / 1e3)


def give_up(lines, why):
    for line in lines:
        line.samples, line.extra, line.skipped = [], {}, why


@contextlib.contextmanager
def on_cpus(count):
    """What is started within inherits it, and a worker has a thread for each CPU that it may use."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(everywhere)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, everywhere)


def measure(config):
    """Line by line, as they are measured; those that an earlier run measured are told as they were."""
    for threads in sorted({1, len(os.sched_getaffinity(0))}):
        with on_cpus(threads), Server(config.binaries, "--devices=cpu") as server, Peer(threads) as peer:
            peer.describe(config)
            for case in CASES:
                yield from gpu.rows_of(config, name_of(case), list(peers_of(case, threads)),
                                       functools.partial(lines_of, config, server, peer, threads, case))
