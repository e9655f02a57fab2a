"""Whether a time can be trusted: that methods agree, that fresh workers agree, and how far off the
usual ways of timing are."""
import fnmatch
import re

from speed import gpu
from speed.gpu import Torch, gpu_server, median_ns
from speed.gpu_catalog import TENSORS
from speed.line import DISTRUSTED, REPEATED, Line

SIZES = (1_000, 10_000, 100_000, 1_000_000, 16_000_000, 268_435_456, 1_500_000_000, 5_300_000_000)
RUNS = 100
WORKERS = 20
USUAL = (1_000, 1_000_000, 16_000_000, 268_435_456)
SLOPES = 5


def words(n):
    return ("--shape", f"*={n}", "--dtype", "T=f32")


def of_tensors(tensors):
    return "--shape", "*=" + ",".join(map(str, tensors))


TAKEN = 3  # Rounds of slopes, at most, until the clock stands still.
# Of very many blocks: what records add to them, a slope has not got.
BLOCKS = (
    ("square.naive", ("--shape", "*=16777216")),
    ("pow", ("--shape", "*=67108864", "exponent=0.3")),
    ("sigmoid", ("--shape", "*=268435456")),
)
# Around the number of blocks from which records are of the other kind.
FEWER_BLOCKS = tuple(("gelu.naive", ("--shape", f"*={n}")) for n in (1 << 18, 1 << 19, 1 << 20, 1 << 21))
# And of several kernels, of a copy and a kernel, of arithmetic alone. The last three once were flagged.
HONEST = (
    *BLOCKS,
    ("vector_add", ("--shape", "*=1000000")),
    ("gelu", ("--shape", "*=16000000", "--dtype", "bf16")),
    ("cast", ("--shape", "*=16000000", "to=f8e4m3")),
    ("softmax", ("--shape", "*=8192", "--shape", "N=1024")),
    ("layernorm", ("--shape", "*=1024", "--shape", "N=131072")),
    ("sum", ("--shape", "*=4", "--shape", "N=1000000")),
    ("cumsum", ("--shape", "*=8192", "--shape", "N=8192")),
    ("transpose", ("--shape", "*=8192x8192")),
    ("matmul", ("--shape", "M=1024", "--shape", "N=1024", "--shape", "K=1024")),
    ("foreach_mul", of_tensors(TENSORS)),
    ("sum", ("--shape", "*=8192", "--shape", "N=1024", "axis=-1")),
    ("matmul", ("--shape", "M=8192", "--shape", "N=8192", "--shape", "K=8192", "--dtype", "f16")),
    ("adamw", (*of_tensors(TENSORS[:200]), "v=uniform:0:1")),
)


def agreements():
    """Line, and its runs, each a kernel with its words and a method."""
    def line(name, what, runs):
        return Line(f"gpu.suspect{name}", "results that are SUSPECT, IMPOSSIBLE or INTERRUPTED, or of 1 us and more without a "
                    f"second opinion, in {len(runs)} runs of {what}, idle GPU", "<=", 0, each=len(runs)), runs

    methods = ("device_time", "isolated", "back_to_back")
    for method in methods:
        yield line("" if method == "device_time" else f".{method}", f"square by {method}, 1,000 to 5.3e9 elements",
                   [("square", words(SIZES[i % len(SIZES)]), method) for i in range(RUNS)])
    for method in methods:
        yield line(f".kernels.{method}", f"{len(HONEST)} kernels by {method}",
                   [(kernel, of_kernel, method) for kernel, of_kernel in HONEST * (RUNS // len(HONEST))])


LEAST_NS = 1000  # A time below may be without a second opinion.
STATE = ("sm_clock_hz", "power_watts", "clock_reasons")


def is_distrusted(result):
    is_alone = "second" not in result["timing"] and gpu.median_of(result) >= LEAST_NS
    return is_alone or bool(set(DISTRUSTED) & set(result["flags"]))


def in_short(words_of_it):
    """A long list by the number of its tensors."""
    return re.sub(r"\d+(,\d+){9,}", lambda found: f"{found[0].count(',') + 1} tensors", " ".join(words_of_it))


def told_of(kernel, of_kernel, result):
    """What a reader needs to find out why nobody may trust it."""
    timing = result["timing"]
    return {"kernel": kernel, "words": in_short(of_kernel), "median_ns": gpu.median_of(result),
            "second": timing.get("second"), "flags": result["flags"],
            **{when: {key: timing.get(when, {}).get(key) for key in STATE} for when in ("before", "after")},
            **{key: timing.get(key) for key in ("clock_before_hz", "clock_after_hz")}}


def suspects(config, server, line, runs):
    """How many of the runs have results that nobody may trust."""
    found, repeated = [], 0
    for kernel, of_kernel, method in runs:
        result = gpu.bench(config, server, kernel, *of_kernel, budget="50ms", method=method)
        repeated += result["repeated"]
        if is_distrusted(result):
            found.append(told_of(kernel, of_kernel, result))
    line.add(len(found), [REPEATED] * repeated, suspects=found)
    return line


def agreement(config, server):
    """Of each result on an idle GPU there are two opinions, which agree, whatever its size."""
    for line, runs in agreements():
        yield suspects(config, server, line, runs)


def slope_over_bound(config, server, kernel, of_kernel):
    """How far a slope is from the mean of the device times before and after it, over what it may be; the flags of all that was
    taken, and the times of the last three. Where the two are further apart than half of that the clock moved between them: the round is taken again,
    and if it always did, how far is what counts."""
    flags = []
    for _ in range(TAKEN):
        before = median_ns(config, server, kernel, *of_kernel)
        back = median_ns(config, server, kernel, *of_kernel, "--samples", str(SLOPES), "--min-samples", str(SLOPES),
                         method="back_to_back")
        after = median_ns(config, server, kernel, *of_kernel)
        flags += [*before.flags, *back.flags, *after.flags]
        middle = (before + after) / 2
        bound = max(500, 0.03 * middle)
        moved = abs(after - before) / (bound / 2)
        if moved <= 1:
            break
    times = {"kernel": kernel, "words": " ".join(of_kernel), "before_us": before / 1e3, "slope_us": back / 1e3,
             "after_us": after / 1e3}
    return abs(back - middle) / bound if moved <= 1 else moved, flags, times


def slopes():
    """Line, and its kernels with their words."""
    what = "graph slope against the mean of device times before and after it, over max(0.5 us, 3 %), worst of"
    return [(Line("gpu.slope", f"{what} all sizes of square", "<=", 1, worst=True), [("square", words(n)) for n in SIZES]),
            (Line("gpu.slope.blocks", f"{what} kernels of many blocks", "<=", 1, worst=True),
             [*BLOCKS, *FEWER_BLOCKS, ("pow", ("--shape", "*=268435456", "exponent=0.3"))])]


def slope(config, server):
    for line, kernels in slopes():
        for _ in range(config.rounds):
            found = [slope_over_bound(config, server, *kernel) for kernel in kernels]
            line.add(max(over for over, *_ in found), [flag for _, flags, _ in found for flag in flags],
                     times=[times for *_, times in found])
        yield line


# In fresh workers: kernels by the names of their lines, and ways to time beside the goal's. What spreads by device_time
# alone lies with its records, with a hot cache alone with what the cache kept, and by all of them with where the memory
# lies.
SURE_WAY = "500_samples"
FRESH_KERNELS = {"16000000": ("square of 16000000 f32", "square", words(16_000_000)),
                 "268435456": ("square of 268435456 f32", "square", words(268_435_456)),
                 "softmax": ("softmax of 65536x1024 f32", "softmax", ("--shape", "*=65536", "--shape", "N=1024")),
                 "matmul": ("matmul of 1024 cubed f32", "matmul",
                            ("--shape", "M=1024", "--shape", "N=1024", "--shape", "K=1024"))}
FRESH = (("16000000", ""), ("16000000", SURE_WAY), ("16000000", "isolated"), ("16000000", "cold_clean"),
         ("16000000", "cold_dirty"), ("268435456", ""), ("268435456", SURE_WAY), ("softmax", ""), ("matmul", ""))
# A hot launch takes one of two times, 2.6 % apart: of few samples the median is now of the one and now of the other. The
# goal is of as many as there are by default.
SURE = ("--min-samples", "500")
WAYS = {SURE_WAY: {}, "isolated": {"method": "isolated"}, "cold_clean": {"l2": "cold_clean"},
        "cold_dirty": {"l2": "cold_dirty"}}


def fresh_goal(kernel, way):
    how = f"{way}, of 500 samples" if way not in ("", SURE_WAY) else "500 samples" if way else "by default options"
    return Line(".".join(filter(None, ("gpu.fresh", kernel, way))),
                f"{FRESH_KERNELS[kernel][0]} in {WORKERS} fresh workers, {how}: the farthest median from the middle",
                "<=", 0.5, " %", informative=bool(way), each=WORKERS)


def fresh_line(kernel, way, times):
    """The worst distance of a worker's median from the median of all."""
    middle = sorted(times)[len(times) // 2]
    line = fresh_goal(kernel, way)
    line.add(100 * max(abs(t - middle) for t in times) / middle, [flag for t in times for flag in t.flags],
             medians_us=[t / 1e3 for t in times], clock_before_mhz=[t.clock_before_mhz for t in times],
             clock_after_mhz=[t.clock_after_mhz for t in times])
    return line


def cycles_line(kernel, times):
    """The same of the cycles that a worker's median is, by the clock measured around its samples."""
    line = Line(f"gpu.fresh.{kernel}.cycles", f"{FRESH_KERNELS[kernel][0]} in {WORKERS} fresh workers, median times measured clock: "
                "the farthest from the middle", "<=", 0.5, " %", informative=True, each=WORKERS)
    if not all(t.clock_before_mhz and t.clock_after_mhz for t in times):
        line.skipped = "no clock"
        return line
    cycles = sorted(t / 1e3 * (t.clock_before_mhz + t.clock_after_mhz) / 2 for t in times)
    middle = cycles[len(cycles) // 2]
    line.add(100 * max(middle - cycles[0], cycles[-1] - middle) / middle, cycles=cycles)
    return line


def fresh_ns(config, server, kernel, way):
    _, name, words_of_it = FRESH_KERNELS[kernel]
    if not way:
        return median_ns(config, server, name, *words_of_it, budget=None)
    return median_ns(config, server, name, *words_of_it, *SURE, budget="1s", **WAYS[way])


def fresh_workers(config, is_asked):
    medians = {case: [] for case in FRESH if is_asked("gpu.fresh") or is_asked(fresh_goal(*case).name)}
    for _ in range(WORKERS if medians else 0):
        with gpu_server(config) as server:
            for case, times in medians.items():
                times.append(fresh_ns(config, server, *case))
    lines = [fresh_line(*case, times) for case, times in medians.items()]
    return lines + [cycles_line(kernel, times) for (kernel, way), times in medians.items() if (kernel, way) == ("matmul", "")]


USUAL_OF_TORCH = {"torch.events": "events", "torch.do_bench": "do_bench", "torch.device": "device"}
USUAL_OF_OURS = ("isolated", "event_pair", "host_sync")


def cache_beside(name):
    """The cache of our device time: do_bench writes 256 MB of zeros before each call."""
    return "cold_dirty" if name == "torch.do_bench" else "hot"


def usual_line(name, n, **options):
    cache = {"hot": "in a hot cache", "cold_dirty": "with cold_dirty, as it writes all of the L2 before each call"}
    return gpu.table_line(f"gpu.usual.{name}.{n}", f"square of {n} f32 timed by {name}: over our device time "
                          f"{cache[cache_beside(name)]}", **options)


def usual_lines(missing=""):
    """By name and size; those of PyTorch, where that is missing, say why."""
    return {(name, n): usual_line(name, n, skipped=missing if name in USUAL_OF_TORCH else "")
            for n in USUAL for name in (*USUAL_OF_TORCH, *USUAL_OF_OURS)}


def usual_times(config, server, torch, n):
    """By name."""
    times = {method: median_ns(config, server, "square", *words(n), method=method) for method in USUAL_OF_OURS}
    if torch.missing:
        return times
    return {**times, **{name: torch.ns("square", [n], how=how) for name, how in USUAL_OF_TORCH.items()}}


def usual_ways(config, server):
    with Torch() as torch:
        gpu.describe(config, server, torch)
        lines = usual_lines(torch.missing)
        for _ in range(config.rounds):
            for n in USUAL:
                device = {l2: median_ns(config, server, "square", *words(n), l2=l2) for l2 in ("hot", "cold_dirty")}
                for name, ns in usual_times(config, server, torch, n).items():
                    ours = device[cache_beside(name)]
                    lines[name, n].add(ns / ours, ours.flags, microseconds=ns / 1e3, device_us=ours / 1e3)
    return list(lines.values())


def goals():
    return [*(line for line, _ in agreements()), *(line for line, _ in slopes()),
            *(fresh_goal(*case) for case in FRESH if not case[1]), *usual_lines().values()]


def measure(config):
    """Each part whose name `--rows` names."""
    def is_asked(part):
        return any(fnmatch.fnmatch(part, pattern) for pattern in config.rows.split(","))

    with gpu_server(config) as server:
        gpu.describe(config, server)
        yield from agreement(config, server) if is_asked("gpu.suspect") else ()
        yield from slope(config, server) if is_asked("gpu.slope") else ()
        yield from usual_ways(config, server) if is_asked("gpu.usual") else ()
    yield from fresh_workers(config, is_asked)
