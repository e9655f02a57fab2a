"""Every kernel of the catalogue that has a peer in PyTorch, shape by shape: device time beside PyTorch's
and beside a copy of as many bytes, turn by turn. A kernel is added by its rows in CASES."""
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
WARM = 0.5      # Seconds of PyTorch's calls before its timed ones where arithmetic may draw all power, as ours have.
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
    compiled: str = ""     # What torch.compile is given, and then stands beside it.
    note: str = ""         # What tells it from other cases of the same kernel and shape.
    dtype: str = "f32"     # Of the words' variable.
    # Of PyTorch's time. `kernels`: without the gaps between its kernels, in which the GPU waits for Python.
    how: str = "device"
    flops: int = 0         # Where arithmetic is the floor, and not memory.
    alike: float = ALIKE   # The least of PyTorch's speed.
    arithmetic: str = ""   # Whose rate the flops have, where it is not that of `dtype`.
    informative: bool = False  # A weaker peer: it stands beside the goals, and is no part of what is gained.
    # By graph slopes too, and the ratio is the lesser one: PyTorch's kernels of very many short blocks have records
    # that are too long (docs/timing.md), and ours are serial ones then.
    slope: bool = False

    @property
    def size(self):
        return f"{len(self.shape)}tensors" if self.how == "kernels" else "x".join(map(str, self.shape))

    @property
    def name(self):
        return ".".join(filter(None, ("gpu.catalog", self.kernel, self.note, self.size,
                                      "" if self.dtype == "f32" else self.dtype)))

    @property
    def names(self):
        """Of its lines."""
        told = {"torch": True, "wall": self.how == "kernels", "copy": self.part, "compiled": self.compiled}
        return [f"{self.name}.{kind}" for kind, there in told.items() if there]

    @property
    def counts(self):
        """Among what is gained: a default variant beside PyTorch's operator."""
        return not self.informative and "--variant" not in self.words

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
                 part_of(shape, 0.85, 0.75), peer if compiled else "", slope=math.prod(shape) >= LARGE) for shape in SHAPES]


def reductions(kernel, peer, part, axis=-1):
    """Over the last dimension, or over the first: read once."""
    note = "" if axis == -1 else "columns"
    return [Case(kernel, shape, ("--shape", f"*={shape[0 if axis == -1 else 1]}", "--shape",
                                 f"N={shape[1 if axis == -1 else 0]}", f"axis={axis}"),
                 4 * math.prod(shape), peer, part_of(shape, part, part), note=note, slope=math.prod(shape) >= LARGE)
            for shape in SHAPES]


def transposes():
    return [Case("transpose", shape, ("--shape", f"*={shape[0]}x{shape[1]}"), 8 * math.prod(shape),
                 "x.t().contiguous()", part_of(shape, 0.85, 0.85)) for shape in SHAPES]


def scans(kernel, peer):
    """Along rows: read once, written once."""
    return [dataclasses.replace(case, words=(*case.words, "axis=-1"), part=part_of(case.shape, 0.85, 0.85))
            for case in rows(kernel, peer)]


def elements(kernel, peer, *words, inputs=1, dtype="f32", moved=None, note="", sizes=SIZES, compiled=""):
    """Each element read from `inputs` tensors and written once, unless `moved` says how many bytes that is."""
    size = 2 if dtype in ("f16", "bf16") else 4
    return [Case(kernel, (n,), ("--shape", f"*={n}", *words), n * (moved or size * (inputs + 1)), peer,
                 0.92 if n >= LARGE else 0, compiled, dtype=dtype, note=note, slope=n >= LARGE) for n in sizes]


def casts(peer, to, moved, shapes=SHAPES, **options):
    """At the sizes of all, and at those of rows that are none of them."""
    every = elements("cast", peer, f"to={to}", moved=moved, note=f"to_{to}", **options)
    return every + [Case("cast", shape, ("--shape", f"*={shape[0]}x{shape[1]}", f"to={to}"), moved * math.prod(shape),
                         peer, part_of(shape, 0.92, 0.92), note=f"to_{to}", slope=math.prod(shape) >= LARGE)
                    for shape in shapes]


def sum_of_all():
    return Case("sum", (MANY,), ("--shape", f"N={MANY}"), 4 * MANY, "torch.sum(x)", 0.92, note="of_all", slope=True)


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


def lists(kernel, peer, floats, note="", informative=False, tensors=TENSORS):
    """Of which each element moves so many floats."""
    shape = ",".join(map(str, tensors))
    positive = ("v=uniform:0:1",) if kernel.startswith("adam") else ()  # The mean of squares has a root.
    return [Case(kernel, tensors, ("--shape", f"*={shape}", *positive), 4 * floats * sum(tensors), peer,
                 0 if informative else 0.8, note=note, how="kernels", informative=informative)]


GELU = "F.gelu(x, approximate='tanh')"
CASES = [
    *elements("square", "torch.mul(x, x, out=out)", compiled="x * x"),
    *elements("vector_add", "torch.add(x, y, out=out)", inputs=2, sizes=(1000, 1_024_000, LARGE, MANY)),
    *elements("gelu", GELU, compiled=GELU),
    *elements("gelu", GELU, dtype="bf16", sizes=(MANY,)),
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
    *casts("x.to(torch.float8_e5m2)", "f8e5m2", 5, shapes=()),
    *casts("x.to(torch.float32)", "f32", 6, shapes=(), dtype="bf16"),
    *casts("x.to(torch.float32)", "f32", 8, shapes=(), dtype="i32"),
    *casts("x.to(torch.int32)", "i32", 8, shapes=()),
    *lists("foreach_add", "foreach_add", 3),
    *lists("foreach_mul", "foreach_mul", 3),
    *lists("sgd", "sgd_fused", 3),
    *lists("adam", "adam_fused", 7),
    *lists("adamw", "adamw_fused", 7),
    *lists("adamw", "adamw_foreach", 7, note="beside_foreach", informative=True),
    # Of 200 tensors: torch.compile has not done with 1,000 after five minutes.
    *lists("adamw", "adamw_compiled", 7, note="beside_compiled", informative=True, tensors=TENSORS[:200]),
    *rows("softmax", "torch.softmax(x, -1)", compiled=True),
    *rows("log_softmax", "torch.log_softmax(x, -1)"),
    *rows("layernorm", "F.layer_norm(x, x.shape[-1:], w, b)", compiled=True),
    *rows("rmsnorm", "F.rms_norm(x, x.shape[-1:], w, 1e-6)"),
    sum_of_all(),
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

NAMES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32"}
NO_GOAL = {"informative": True}


def lines_of(case):
    """By kind."""
    return {kind: Line(f"{case.name}.{kind}", f"{case.what}: {what}", ">=", bound, **options)
            for kind, what, bound, options in (
                ("torch", "PyTorch's time over ours", case.alike, {"informative": case.informative}),
                ("wall", "PyTorch's time over ours, its gaps counted", 0, NO_GOAL),
                ("copy", "bytes per second over a copy's", case.part, {}),
                ("compiled", "torch.compile's time over ours", 0, NO_GOAL))
            if f"{case.name}.{kind}" in case.names}


def gain_line():
    return Line("gpu.catalog.gain", f"defaults, PyTorch's time over ours where it is below {SLOW:g} of the floor: geometric mean",
                ">=", GAIN)


def goals():
    return [*(line for case in CASES for line in lines_of(case).values() if not line.informative), gain_line()]


class Table:
    """`ask` is told a case and a method, and measures it by the server."""

    def __init__(self, torch, ask):
        self.torch, self.ask = torch, ask
        self.copies = {}  # By round and bytes.

    def copy_ns(self, moved, turn):
        if (turn, moved) not in self.copies:
            self.copies[turn, moved] = self.torch.ns("copy", [moved // 8])  # Of floats, each read and written.
        return self.copies[turn, moved]

    def floor_ns(self, case, turn):
        rate = RATES.get(case.arithmetic or case.dtype, math.inf)
        return max(case.moved * self.copy_ns(8 * MANY, turn) / (8 * MANY), case.flops / rate * 1e9)

    def lines_of(self, case, rounds):
        """All lines of the case, ours and PyTorch's times taken turn by turn. What cannot be measured is no pass."""
        lines = lines_of(case)
        why = self.torch.missing
        try:
            for turn in range(0 if why else rounds):
                self.add(case, turn, lines)
        except RuntimeError as error:
            why = str(error)
        for line in lines.values() if why else ():
            line.samples, line.extra, line.skipped = [], {}, why
        return list(lines.values())

    def add(self, case, turn, lines):
        ours = self.ask(case, "device_time")
        told = self.torch.ask(case.peer, case.shape, how=case.how, dtype=NAMES[case.dtype], warm=WARM if case.flops else 0)
        ratio, flags, extra = told["ns"] / ours, ours.flags, {"ours_us": ours / 1e3, "torch_us": told["ns"] / 1e3}
        if case.slope:
            slope = self.ask(case, "back_to_back")
            theirs = self.torch.ns(case.peer, case.shape, how="slope", dtype=NAMES[case.dtype])
            ratio, flags = min(ratio, theirs / slope), (*flags, *slope.flags)
            extra |= {"ours_slope_us": slope / 1e3, "torch_slope_us": theirs / 1e3}
        if case.flops:
            extra |= {key: mhz for key, mhz in (("ours_mhz", ours.sm_mhz), ("torch_mhz", told.get("sm_mhz"))) if mhz}
        lines["torch"].add(ratio, flags, **extra, floor_us=self.floor_ns(case, turn) / 1e3)
        if "wall" in lines:
            wall = self.torch.ns(case.peer, case.shape, dtype=NAMES[case.dtype])
            lines["wall"].add(wall / ours, ours.flags, torch_us=wall / 1e3)
        if "copy" in lines:
            lines["copy"].add(self.copy_ns(case.moved, turn) / ours, ours.flags, gigabytes_per_second=case.moved / ours)
        if "compiled" in lines:
            theirs = self.torch.ns(case.compiled, case.shape, dtype=NAMES[case.dtype], compiled=True)
            lines["compiled"].add(theirs / ours, ours.flags, compiled_us=theirs / 1e3)


def gain(lines, rounds):
    """What is gained on peers that leave something: one mean for each kernel, then one over kernels. Of lines by name;
    none where one was not measured, which might have been the worst."""
    total = gain_line()
    wanted = {case: lines[f"{case.name}.torch"] for case in CASES if case.counts}
    missing = sum(not line.samples for line in wanted.values())
    if missing:
        total.skipped = f"{missing} of {len(wanted)} rows were not measured"
        return total
    for turn in range(rounds):
        logs, flags = collections.defaultdict(list), []
        for case, line in wanted.items():
            if line.extra["floor_us"][turn] / line.extra["torch_us"][turn] < SLOW:
                logs[case.kernel].append(math.log(line.samples[turn]))
                flags += line.flags
        if logs:
            means = {kernel: sum(of_kernel) / len(of_kernel) for kernel, of_kernel in logs.items()}
            total.add(math.exp(sum(means.values()) / len(means)), flags,
                      **{kernel: math.exp(mean) for kernel, mean in means.items()})
    total.skipped = "" if total.samples else "nothing was measured beside a peer that leaves something"
    return total


def measure(config):
    """Line by line, as they are measured; those that an earlier run measured are told as they were."""
    lines = {}
    with gpu_server(config) as server, Torch() as torch:
        gpu.describe(config, server, torch)
        table = Table(torch, lambda case, method: median_ns(config, server, case.kernel, *case.words, *case.dtype_words,
                                                            method=method))
        for case in CASES:
            for line in gpu.rows_of(config, case.name, case.names, lambda: table.lines_of(case, config.rounds)):
                lines[line.name] = line
                yield line
    if config.rows == "*":
        yield gain(lines, config.rounds)
