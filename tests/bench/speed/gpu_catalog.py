"""Every kernel of the catalogue that has a peer in PyTorch, shape by shape: device time beside PyTorch's
and beside a copy of as many bytes. A kernel is added by its rows in CASES."""
import collections
import dataclasses
import math

from speed import gpu
from speed.gpu import Torch, gpu_server, median_ns
from speed.line import Line

ALIKE = 0.98    # Of PyTorch's speed: the noise of two clocks.
MANY = 1 << 28  # Floats of the copy whose rate is the floor of all: what memory gives at most.
SLOW = 0.85     # A peer below this part of the floor leaves something to gain.
GAIN = 1.5      # Over such peers: the geometric mean of each kernel's, then over kernels.
LARGE = 1 << 26  # Elements from which on a part of the copy's rate is asked.
LONG = 131072   # Elements of a row that no block holds.
# Additions and multiplications a second of an H200's units at its highest clock; but those of f32 by its tensor cores.
RATES = {"f32": 132 * 128 * 2 * 1.98e9, "tf32": 132 * 1024 * 2 * 1.98e9, "f16": 132 * 2048 * 2 * 1.98e9,
         "bf16": 132 * 2048 * 2 * 1.98e9}
SIZES = (1000, 1_000_000, 1 << 26, 1 << 28)  # Of what goes element by element.
# A list as a model's parameters: 1,000 tensors of 1 K to 64 K floats.
TENSORS = tuple(1024 + i * 7919 % 64513 for i in range(1000))
SHAPES = ((8192, 1024), (65536, 1024), (8192, 8192), (1024, LONG))


@dataclasses.dataclass(frozen=True)
class Case:
    kernel: str
    shape: tuple           # Of the first input, and of PyTorch's x, y and out; w and b have its last dimension.
    words: tuple           # Of the command line: sizes and attributes.
    moved: int             # Bytes that must be read and written.
    peer: str              # In Python, of x, y, out, w and b.
    part: float = 0        # The least part of a copy's bytes per second; 0: none is asked.
    compiled: bool = False  # Whether torch.compile of the peer stands beside it.
    note: str = ""         # What tells it from other cases of the same kernel and shape.
    dtype: str = "f32"     # Of the words' variable.
    # Of PyTorch's time. `kernels`: without the gaps between its kernels, in which the GPU waits for Python.
    how: str = "device"
    flops: int = 0         # Where arithmetic is the floor, and not memory.
    alike: float = ALIKE   # The least of PyTorch's speed.
    arithmetic: str = ""   # Whose rate the flops have, where it is not that of `dtype`.
    informative: bool = False  # A weaker peer: it stands beside the goals, and is no part of what is gained.

    @property
    def size(self):
        return "x".join(map(str, self.shape)) if self.shape != TENSORS else f"{len(TENSORS)}tensors"

    @property
    def name(self):
        return ".".join(filter(None, ("gpu.catalog", self.kernel, self.note, self.size,
                                      "" if self.dtype == "f32" else self.dtype)))

    @property
    def what(self):
        return " ".join(filter(None, (self.kernel, self.note, "of", self.size, self.dtype)))

    @property
    def dtype_words(self):
        """None for words without a variable."""
        return ("--dtype", self.dtype) if self.kernel not in ("sgd", "adam", "adamw") else ()


def part_of(shape, part, part_of_long):
    """No part is asked of what the caches hold."""
    if math.prod(shape) < LARGE:
        return 0
    return part_of_long if shape[-1] >= LONG else part


def rows(kernel, peer, compiled=False):
    """From rows to rows: read once, written once."""
    return [Case(kernel, shape, ("--shape", f"*={shape[0]}", "--shape", f"N={shape[1]}"), 8 * math.prod(shape), peer,
                 part_of(shape, 0.85, 0.75), compiled) for shape in SHAPES]


def reductions(kernel, peer, part, axis=-1):
    """Over the last dimension, or over the first: read once."""
    note = "" if axis == -1 else "columns"
    return [Case(kernel, shape, ("--shape", f"*={shape[0 if axis == -1 else 1]}", "--shape",
                                 f"N={shape[1 if axis == -1 else 0]}", f"axis={axis}"),
                 4 * math.prod(shape), peer, part_of(shape, part, part), note=note)
            for shape in SHAPES]


def transposes():
    return [Case("transpose", shape, ("--shape", f"*={shape[0]}x{shape[1]}"), 8 * math.prod(shape),
                 "x.t().contiguous()", part_of(shape, 0.85, 0.85)) for shape in SHAPES]


def scans(kernel, peer):
    """Along rows: read once, written once."""
    return [dataclasses.replace(case, words=(*case.words, "axis=-1"), part=part_of(case.shape, 0.85, 0.85))
            for case in rows(kernel, peer)]


def elements(kernel, peer, *words, inputs=1, dtype="f32", moved=None, note="", sizes=SIZES):
    """Each element read from `inputs` tensors and written once, unless `moved` says how many bytes that is."""
    size = 2 if dtype in ("f16", "bf16") else 4
    return [Case(kernel, (n,), ("--shape", f"*={n}", *words), n * (moved or size * (inputs + 1)), peer,
                 0.92 if n >= LARGE else 0, dtype=dtype, note=note) for n in sizes]


def casts(peer, to, moved):
    """At the sizes of all, and at those of rows that are none of them."""
    every = elements("cast", peer, f"to={to}", moved=moved, note=f"to_{to}")
    return every + [Case("cast", shape, ("--shape", f"*={shape[0]}x{shape[1]}", f"to={to}"), moved * math.prod(shape),
                         peer, part_of(shape, 0.92, 0.92), note=f"to_{to}") for shape in SHAPES]


def products(kernel, peer, variant="", sizes=(512, 1024, 4096, 8192), dtype="f32", alike=ALIKE, arithmetic="",
             batch=()):
    """Of square matrices, by the default or by one variant; of so many at once where `batch` says it."""
    words = (*(("--shape", f"*={batch[0]}") if batch else ()), *(("--variant", variant) if variant else ()))
    count = math.prod(batch)
    return [Case(kernel, (*batch, n, n), ("--shape", f"M={n}", "--shape", f"N={n}", "--shape", f"K={n}", *words),
                 (4 if dtype == "f32" else 2) * 3 * count * n * n, peer, note=variant, dtype=dtype,
                 flops=2 * count * n ** 3, alike=alike, arithmetic=arithmetic) for n in sizes]


def distances(variant=""):
    """Beside PyTorch's faster form, which is the less exact one. A term is a subtraction, a multiplication and an
    addition; the last two are one instruction."""
    words = ("--variant", variant) if variant else ()
    return [Case("cdist", (8192, 128), ("--shape", "M=8192", "--shape", "N=8192", "--shape", "D=128", *words),
                 4 * 8192 * (8192 + 2 * 128), "torch.cdist(x, y, compute_mode='use_mm_for_euclid_dist')", note=variant,
                 flops=(2 if variant else 4) * 8192 * 8192 * 128)]


def lists(kernel, peer, floats, note="", informative=False):
    """Over TENSORS, of which each element moves so many floats."""
    shape = ",".join(map(str, TENSORS))
    positive = ("v=uniform:0:1",) if kernel.startswith("adam") else ()  # The mean of squares has a root.
    return [Case(kernel, TENSORS, ("--shape", f"*={shape}", *positive), 4 * floats * sum(TENSORS), peer,
                 0 if informative else 0.8, note=note, how="kernels", informative=informative)]


CASES = [
    *elements("square", "torch.mul(x, x, out=out)", sizes=(1000, 1_000_000)),
    *elements("vector_add", "torch.add(x, y, out=out)", inputs=2, sizes=(1000, 1_024_000)),
    *elements("gelu", "F.gelu(x, approximate='tanh')", dtype="bf16", sizes=(MANY,)),
    *elements("mul", "torch.mul(x, y, out=out)", inputs=2),
    *elements("scale", "torch.mul(x, 1.5, out=out)", "factor=1.5"),
    *elements("relu", "torch.relu(x)"),
    *elements("sigmoid", "torch.sigmoid(x, out=out)"),
    *elements("silu", "F.silu(x)"),
    *elements("silu", "F.silu(x)", dtype="bf16"),
    *elements("pow", "torch.pow(x, 2, out=out)"),
    *elements("pow", "torch.pow(x, 0.3, out=out)", "exponent=0.3", note="of_a_fraction"),
    *casts("x.to(torch.bfloat16)", "bf16", 6),
    *casts("x.to(torch.float8_e4m3fn)", "f8e4m3", 5),
    *lists("foreach_add", "foreach_add", 3),
    *lists("foreach_mul", "foreach_mul", 3),
    *lists("sgd", "sgd_fused", 3),
    *lists("adam", "adam_fused", 7),
    *lists("adamw", "adamw_fused", 7),
    *lists("adamw", "adamw_foreach", 7, note="beside_foreach", informative=True),
    *rows("softmax", "torch.softmax(x, -1)", compiled=True),
    *rows("log_softmax", "torch.log_softmax(x, -1)"),
    *rows("layernorm", "F.layer_norm(x, x.shape[-1:], w, b)", compiled=True),
    *rows("rmsnorm", "F.rms_norm(x, x.shape[-1:], w, 1e-6)"),
    *reductions("sum", "torch.sum(x, -1)", 0.92),
    *reductions("sum", "torch.sum(x, 0)", 0.92, axis=0),
    *reductions("mean", "torch.mean(x, -1)", 0.92),
    *reductions("max", "torch.amax(x, -1)", 0.92),
    *reductions("argmax", "torch.argmax(x, -1)", 0.85),
    *scans("cumsum", "torch.cumsum(x, -1)"),
    *transposes(),
    *products("matmul", "torch.matmul(x, y, out=out)"),
    *products("matmul", "torch.matmul(x, y, out=out)", "register_tiled", (4096,), alike=0.75),
    *products("matmul", "torch.matmul(x, y, out=out)", dtype="bf16"),
    *products("matmul", "torch.matmul(x, y, out=out)", dtype="f16"),
    *products("matmul", "matmul_tf32", "cublaslt_tf32", alike=0.97, arithmetic="tf32"),
    *products("matmul", "torch.matmul(x, y, out=out)", sizes=(512,), batch=(16,)),
    *products("matmul", "torch.matmul(x, y, out=out)", sizes=(64,), batch=(1024,)),
    *products("matmul_bias_gelu", "F.gelu(torch.addmm(b, x, y), approximate='tanh')"),
    *products("matmul_bias_gelu", "F.gelu(torch.addmm(b, x, y), approximate='tanh')", dtype="bf16"),
    *distances(),
    *distances("matmul"),
]

NAMES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16"}


class Table:
    def __init__(self, torch):
        self.torch, self.lines = torch, {}
        self.copies, self.gains = {}, collections.defaultdict(list)  # Of this round.

    def line(self, name, what, op, bound, **options):
        return self.lines.setdefault(name, Line(name, what, op, bound, **options))

    def begin_round(self):
        self.copies.clear()
        self.gains.clear()

    def copy_ns(self, moved):
        if moved not in self.copies:
            self.copies[moved] = self.torch.ns("copy", [moved // 8])  # Of floats, each read and written.
        return self.copies[moved]

    def add(self, case, ours):
        words = f"{case.what}: PyTorch's time over ours", ">=", case.alike
        if self.torch.missing:
            self.line(f"{case.name}.torch", *words, skipped=self.torch.missing, informative=case.informative)
            return
        theirs = self.torch.ns(case.peer, case.shape, how=case.how, dtype=NAMES[case.dtype])
        rate = RATES.get(case.arithmetic or case.dtype, math.inf)
        floor = max(case.moved * self.copy_ns(8 * MANY) / (8 * MANY), case.flops / rate * 1e9)
        self.line(f"{case.name}.torch", *words, informative=case.informative).add(
            theirs / ours, ours.flags, ours_us=ours / 1e3, torch_us=theirs / 1e3, floor_us=floor / 1e3)
        if case.how == "kernels":
            wall = self.torch.ns(case.peer, case.shape, dtype=NAMES[case.dtype])
            self.line(f"{case.name}.wall", f"{case.what}: PyTorch's time over ours, its gaps counted", ">=", 0,
                      informative=True).add(wall / ours, ours.flags, torch_us=wall / 1e3)
        if floor / theirs < SLOW and not case.informative:
            self.gains[case.kernel].append(theirs / ours)
        if case.part:
            self.line(f"{case.name}.copy", f"{case.what}: bytes per second over a copy's", ">=", case.part).add(
                self.copy_ns(case.moved) / ours, ours.flags, gigabytes_per_second=case.moved / ours)
        if case.compiled:
            theirs = self.torch.ns(case.peer, case.shape, dtype=NAMES[case.dtype], compiled=True)
            self.line(f"{case.name}.compiled", f"{case.what}: torch.compile's time over ours", ">=", 0,
                      informative=True).add(theirs / ours, ours.flags, compiled_us=theirs / 1e3)

    def end_round(self):
        """One mean for each kernel, then one over kernels."""
        words = ("gpu.catalog.gain", f"PyTorch's time over ours where it is below {SLOW:g} of the floor: geometric mean",
                 ">=", GAIN)
        if self.torch.missing:
            self.line(*words, skipped=self.torch.missing)
        elif self.gains:
            logs = {kernel: sum(map(math.log, gains)) / len(gains) for kernel, gains in self.gains.items()}
            self.line(*words).add(math.exp(sum(logs.values()) / len(logs)),
                                  **{kernel: math.exp(log) for kernel, log in logs.items()})


def measure(config):
    with gpu_server(config) as server, Torch() as torch:
        gpu.describe(config, server, torch)
        table = Table(torch)
        for _ in range(config.rounds):
            table.begin_round()
            for case in CASES:
                table.add(case, median_ns(config, server, case.kernel, *case.words, *case.dtype_words))
            table.end_round()
        return list(table.lines.values())
