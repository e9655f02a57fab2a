"""Whether a time can be trusted: that methods agree, that fresh workers agree, and how far off the
usual ways of timing are."""
from speed import gpu
from speed.gpu import Torch, gpu_server, median_ns
from speed.line import Line

SIZES = (1_000, 10_000, 100_000, 1_000_000, 16_000_000, 268_435_456, 1_500_000_000, 5_300_000_000)
RUNS = 100
WORKERS = 20
USUAL = (1_000, 1_000_000, 16_000_000, 268_435_456)
SLOPES = 5


def words(n):
    return ("--shape", f"*={n}", "--dtype", "T=f32")


def agreement(config, server):
    """No result on an idle GPU is SUSPECT, whatever its size."""
    line = Line("gpu.suspect", f"SUSPECT results in {RUNS} runs of square, 1,000 to 5.3e9 elements, idle GPU", "<=", 0)
    suspect = []
    for i in range(RUNS):
        n = SIZES[i % len(SIZES)]
        result = gpu.bench(config, server, "square", *words(n), budget="50ms")
        if "SUSPECT" in result["flags"]:
            suspect.append({"elements": n, "median_ns": gpu.median_of(result)})
    line.add(len(suspect), suspects=suspect)
    return line


def slope(config, server):
    line = Line("gpu.slope", "graph slope against device time over max(0.5 us, 3 %), worst of all sizes", "<=", 1)
    for _ in range(config.rounds):
        worst = 0
        for n in SIZES:
            device = median_ns(config, server, "square", *words(n))
            back = median_ns(config, server, "square", *words(n), "--samples", str(SLOPES), "--min-samples", str(SLOPES),
                             method="back_to_back")
            worst = max(worst, abs(back - device) / max(500, 0.03 * device))
        line.add(worst)
    return line


def fresh_workers(config):
    """The worst distance of a worker's median from the median of all."""
    sizes = (16_000_000, 268_435_456)
    medians = {n: [] for n in sizes}
    for _ in range(WORKERS):
        with gpu_server(config) as server:
            for n in sizes:
                medians[n].append(median_ns(config, server, "square", *words(n)))
    lines = []
    for n, times in medians.items():
        middle = sorted(times)[len(times) // 2]
        line = Line(f"gpu.fresh.{n}", f"square of {n} f32 in {WORKERS} fresh workers: the farthest median from the middle",
                    "<=", 0.5, " %")
        line.add(100 * max(abs(t - middle) for t in times) / middle, medians_us=[t / 1e3 for t in times])
        lines.append(line)
    return lines


def usual_ways(config, server):
    lines = {}
    with Torch() as torch:
        gpu.describe(config, server, torch)
        for _ in range(config.rounds):
            for n in USUAL:
                device = median_ns(config, server, "square", *words(n))
                told = {"torch.events": "events", "torch.do_bench": "do_bench", "torch.device": "device"}
                times = {name: torch.ns("square", [n], how) for name, how in told.items()} if not torch.missing else {}
                for method in ("isolated", "event_pair", "host_sync"):
                    times[method] = median_ns(config, server, "square", *words(n), method=method)
                for name, ns in times.items():
                    line = lines.setdefault((name, n), Line(f"gpu.usual.{name}.{n}",
                                                            f"square of {n} f32 timed by {name}: over our device time",
                                                            "<=", 0, informative=True))
                    line.add(ns / device, microseconds=ns / 1e3, device_us=device / 1e3)
    return list(lines.values())


def measure(config):
    with gpu_server(config) as server:
        lines = [agreement(config, server), slope(config, server), *usual_ways(config, server)]
    return [*lines, *fresh_workers(config)]
