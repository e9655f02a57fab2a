"""What each step of docs/optimizing.md gains and each way of timing of docs/lessons.md reads: rungs of a ladder
beside its first. tests/bench/lessons_page.py makes the pages' tables of it."""
import dataclasses
import math

from speed import gpu
from speed.gpu import gpu_server
from speed.gpu_catalog import TENSORS
from speed.line import Line

MANY = 1 << 28
METHODS = ("device_time", "back_to_back", "isolated", "event_pair", "host_sync", "host_no_sync")


@dataclasses.dataclass(frozen=True)
class Rung:
    label: str         # In the table.
    variant: str
    words: tuple = ()  # Of the command line, beside those of the ladder.
    method: str = "device_time"

    @property
    def name(self):
        return self.label.replace(" ", ".").replace("=", "")


def variants(*names, method="device_time"):
    return tuple(Rung(name, name, method=method) for name in names)


@dataclasses.dataclass(frozen=True)
class Ladder:
    name: str     # Of the table's place in a page.
    kernel: str
    what: str     # The kernel with its shape, for people.
    words: tuple  # Of the command line.
    moved: int    # Bytes that must be read and written.
    rungs: tuple
    flops: int = 0  # Where arithmetic is the bound.
    budget: str = "300ms"  # Of a measurement.

    def line_name(self, rung):
        return f"gpu.lessons.{self.name}.{rung.name}"


def flat(n):
    return "--shape", f"*={n}"


def matrix(rows, columns):
    return "--shape", f"*={rows}", "--shape", f"N={columns}"


def of_lists(name, kernel, floats, *rungs, **options):
    """Steps of what goes over lists, of which each element moves so many floats."""
    positive = ("v=uniform:0:1",) if kernel.startswith("adam") else ()  # The mean of squares has a root.
    return Ladder(name, kernel, f"`{kernel}` over 1,000 tensors of 1 K to 64 K floats",
                  ("--shape", "*=" + ",".join(map(str, TENSORS)), *positive), 4 * floats * sum(TENSORS),
                  # More launches than a held device queues: by plain events, the host's pace and all.
                  (Rung("naive by event_pair", "naive", method="event_pair"),
                   # Records leave gaps between the kernels of one launch.
                   *variants("foreach", "per_tensor", "param_struct", "pointer_table", *rungs, method="isolated")),
                  **options)


LADDERS = (
    Ladder("threads", "vector_add", "`vector_add` of 2^18 f32", flat(1 << 18), 12 << 18,
           variants("serial", "one_block", "naive")),
    Ladder("coalescing", "sum", "`sum` of 131,072 rows and of as many columns of 1,024 f32", matrix(131072, 1024), 4 << 27,
           (Rung("naive of rows", "naive", ("axis=1",)), Rung("naive of columns", "naive", ("axis=0",)),
            Rung("two_pass of rows", "two_pass", ("axis=1",)))),
    Ladder("wide", "square", "`square` of 2^28 f32", flat(MANY), 8 * MANY, variants("naive", "vec4")),
    Ladder("wide16", "relu", "`relu` of 2^28 bf16", (*flat(MANY), "--dtype", "bf16"), 4 * MANY, variants("naive", "vec4")),
    Ladder("shared", "transpose", "`transpose` of 8192 x 8192 f32", ("--shape", "*=8192x8192"), 8 << 26,
           variants("naive", "unpadded")),
    Ladder("reuse", "matmul", "`matmul` of 4096 x 4096 x 4096 f32", ("--shape", "M=4096", "K=4096", "N=4096"), 12 << 24,
           variants("naive", "tiled", "register_tiled"), flops=2 << 36),
    Ladder("banks", "transpose", "`transpose` of 8192 x 8192 f32", ("--shape", "*=8192x8192"), 8 << 26,
           variants("unpadded", "tiled", "wide")),
    Ladder("occupancy", "softmax", "`softmax` of 65536 x 1024 f32", matrix(65536, 1024), 8 << 26,
           variants("naive", "online", "shared", "registers")),
    Ladder("fusion", "gelu", "`gelu` of 2^28 f32", flat(MANY), 8 * MANY, variants("unfused", "naive", "vec4")),
    of_lists("lists", "adamw", 7),
    *(of_lists(f"lists.{kernel}", kernel, floats, "auto", budget="100ms")
      for kernel, floats in (("foreach_add", 3), ("foreach_mul", 3), ("sgd", 3), ("adam", 7))),
    *(Ladder(f"clocks.{n}", "square", f"`square` of {n:,} f32", flat(n), 8 * n,
             tuple(Rung(method, "vec4", method=method) for method in METHODS)) for n in (1000, 16_000_000)),
)


def measure_ladder(config, server, ladder, lines):
    first = None
    for rung in ladder.rungs:
        result = gpu.bench(config, server, f"{ladder.kernel}.{rung.variant}", *ladder.words, *rung.words,
                           method=rung.method, budget=ladder.budget)
        ns = gpu.median_of(result)
        if not math.isfinite(ns) or ns <= 0:
            raise RuntimeError(f"{ladder.line_name(rung)}: a time of {ns:g} ns")
        first = first or ns
        name = ladder.line_name(rung)
        lines.setdefault(name, Line(name, f"{rung.label}, {ladder.what}: the time of {ladder.rungs[0].label} over its own",
                                    ">=", 0, informative=True)).add(first / ns, (*first.flags, *ns.flags), microseconds=ns / 1e3)


def measure(config):
    lines = {}
    with gpu_server(config) as server:
        gpu.describe(config, server)
        for _ in range(config.rounds):
            for ladder in LADDERS:
                measure_ladder(config, server, ladder, lines)
    return list(lines.values())
