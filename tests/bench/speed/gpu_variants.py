"""Whether the default of each kernel is the fastest of its variants, shape by shape."""
import dataclasses
import functools
import math

from speed import gpu
from speed.gpu import gpu_server
from speed.gpu_catalog import CASES, TENSORS
from speed.line import Line
from speed.programs import run_json

ALIKE = 0.98  # Of the default's time: the noise of a clock.
# Steps of a lesson that are there to be slower: they are timed at the shapes of LESSONS alone, where that takes moments
# (but for lists' naive, of more launches than a held device queues; gpu_lessons has it, and those of SLOW).
PLAIN = ("naive", "foreach", "per_tensor", "unfused", "unpadded")
SLOW = ("serial", "one_block")  # Of the shapes here they take seconds a launch.
LESSONS = {(1 << 26,), (65536, 1024), (4096, 4096), (8192, 128), TENSORS}
# What is less exact than the default is chosen by name alone.
LESS_EXACT = ("cublaslt_tf32", "cdist.matmul")
NOT_TAKEN = "takes only calls where"
BUDGET = "100ms"


def cases():
    """Of the catalogue's table, each once."""
    found = {}
    for case in CASES:
        if "--variant" not in case.words and not case.informative:
            found.setdefault((case.kernel, case.words, case.dtype), case)
    return found.values()


def name_of(case):
    return case.name.replace("gpu.catalog", "gpu.variants")


def is_quick(case, variant):
    if variant in SLOW:
        return False
    if variant not in PLAIN:
        return True
    if case.how == "kernels" and variant == "naive":
        return False
    return case.shape in LESSONS and case.dtype == "f32" and case.flops <= 1 << 38


def others_of(case, variants, default):
    """Those of the GPU's variants that are timed beside the default."""
    return [variant for variant in variants if variant != default and is_quick(case, variant)
            and not {variant, f"{case.kernel}.{variant}"} & set(LESS_EXACT)]


@dataclasses.dataclass
class Table:
    """`ask` is told a case and a variant (None: the default), and measures it by the server; `variants_of` a kernel."""

    ask: object
    variants_of: object

    def timed(self, case, variant):
        """None where the variant does not take the call."""
        try:
            return gpu.median_of(self.ask(case, variant))
        except RuntimeError as error:
            if NOT_TAKEN in str(error):
                return None
            raise

    def add(self, case, line):
        result = self.ask(case, None)
        default = gpu.median_of(result)
        if result["variant"] not in self.variants_of(case.kernel):
            raise RuntimeError(f"describe does not list {result['variant']}, which ran")
        times = {variant: self.timed(case, variant)
                 for variant in others_of(case, self.variants_of(case.kernel), result["variant"])}
        times = {variant: ns for variant, ns in times.items() if ns is not None}
        fastest = min(times.values(), default=math.inf)
        # None of those that the verdict hangs on may be doubted: one that is may be the fastest in truth.
        doubts = [flag for ns in (default, *times.values()) if ns <= max(default, fastest) for flag in ns.flags]
        line.add(fastest / default, doubts, **{result["variant"]: default / 1e3},
                 **{variant: ns / 1e3 for variant, ns in times.items()})

    def lines_of(self, case, rounds):
        variants = self.variants_of(case.kernel)
        if variants and len(others_of(case, variants, default=None)) < 2:
            return []
        line = Line(name_of(case), f"{case.what}: the time of the fastest other variant over the default's (times in us)",
                    ">=", ALIKE)
        try:
            for _ in range(rounds):
                self.add(case, line)
        except RuntimeError as error:
            line.samples, line.extra, line.skipped = [], {}, str(error)
        return [] if line.samples and math.isinf(max(line.samples)) else [line]


def measure(config):
    """Nothing is told of calls that one variant alone takes."""
    with gpu_server(config) as server:
        gpu.describe(config, server)

        @functools.lru_cache(maxsize=None)
        def variants_of(kernel):
            told = run_json(config.binaries / "gridclock", "--server", server.address, "describe", kernel, "--json")
            return [variant["name"] for variant in told["variants"] if variant["device_kind"] == "cuda"]

        def ask(case, variant):
            kernel = f"{case.kernel}.{variant}" if variant else case.kernel
            return gpu.bench(config, server, kernel, *case.words, *case.dtype_words, budget=BUDGET)

        table = Table(ask, variants_of)
        for case in cases():
            name = name_of(case)
            yield from gpu.rows_of(config, name, [name], functools.partial(table.lines_of, case, config.rounds))
