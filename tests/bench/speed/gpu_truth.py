"""Device time against the GPU's own timer: kernels that spin until %globaltimer has moved on by a span, and kernels
that stamp when they began and ended."""
import re

from speed import gpu
from speed.gpu import gpu_server
from speed.line import Line

# Of CudaTiming: span, device time, how far it is off once one constant is taken away, what is allowed; how far
# the isolated method, less the launch offset, and a slope lie from device time; what a plain pair of events reads.
ROW = re.compile(r"^ +(\d+) +([\d.]+) +(-?\d+) +(\d+) +[\d.]+ +(-?\d+) +[\d.]+ +(-?\d+) +([\d.]+) +(?:PASS|FAIL)$",
                 re.MULTILINE)
# Of blocks that end together: span, device time, how far it is off once one constant is taken away, what is allowed; by
# how much the isolated method, less the launch offset, is more.
MANY_ROW = re.compile(r"^many blocks: span (\d+) us, device time ([\d.]+) us, off (-?\d+) ns, allowed (\d+) ns, "
                      r"isolated (-?\d+) ns more", re.MULTILINE)
MANY_SPANS = (50, 100, 200, 1000, 10000)  # In us.
MOST_CONSTANT_OF_MANY_US = 5  # 4,224 blocks begin and end one by one.
# Of launches whose kernels stamp: device time, from first to last stamp, how much more that is, and what it may be.
STAMPED_ROW = re.compile(r"^(\w+): device time ([\d.]+) us, stamps ([\d.]+) us, off (-?\d+) ns, allowed (-\d+) to (\d+) ns",
                         re.MULTILINE)
STAMPED = {
    "blocks": "131,072 blocks: device time less the span of their stamps, over what it may be: max(1 us and one step of the "
              "timer, 1 %), and 3 us more above, as launch and drain are in no stamp",
    "three": "a launch of spins of 20, 50 and 30 us: device time less one constant, its distance from their stamps' span, "
             "which is their sum and the gaps between, over max(0.3 us, 0.5 %, one step of the timer)",
}
# The constant is taken from the first, and has a bound itself: a time that is off by as much each time would pass.
SPANS = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)  # In us.
MOST_CONSTANT_US = 2


def goals():
    return [Line(f"gpu.truth.{SPANS[0]}us", f"a spin of {SPANS[0]} us: the constant, device time less the span, over "
                 f"{MOST_CONSTANT_US} us", "<=", 1, worst=True),
            *(Line(f"gpu.truth.{span}us", f"a spin of {span} us: device time less one constant, its distance over max(0.3 us, "
                   "0.5 %, one step of the timer)", "<=", 1, worst=True) for span in SPANS[1:]),
            Line(f"gpu.truth.many.{MANY_SPANS[0]}us", f"as many blocks as all SMs hold, timed by serial records, which end together "
                 f"after {MANY_SPANS[0]} us: the constant, device time less the span, over {MOST_CONSTANT_OF_MANY_US} us", "<=", 1, worst=True),
            *(Line(f"gpu.truth.many.{span}us", f"the same after {span} us: device time less one constant, its distance over "
                   "max(0.3 us, 0.5 %, one step of the timer)", "<=", 1, worst=True) for span in MANY_SPANS[1:]),
            *(Line(f"gpu.truth.{name}", what, "<=", 1, worst=True) for name, what in STAMPED.items()),
            gpu.failed_line("gpu.truth")]


def no_figures(why):
    return [Line("gpu.truth", "device time against the GPU's own timer", "<=", 1, skipped=why)]


def add_many(lines, rows):
    """`lines`: those of MANY_SPANS, in their order. Where serial records are not taken, or blocks are too few, there are no rows."""
    if [int(span) for span, *_ in rows] != list(MANY_SPANS):
        for line in lines:
            line.skipped = f"want {len(MANY_SPANS)} spans of many blocks of cuda_device_test, got {len(rows)}"
        return
    for line, (span, device_us, off_ns, allowed_ns, isolated_ns) in zip(lines, rows):
        constant = (float(device_us) - int(span)) / MOST_CONSTANT_OF_MANY_US
        line.add(abs(constant) if int(span) == MANY_SPANS[0] else abs(int(off_ns)) / int(allowed_ns), device_us=float(device_us),
                 off_ns=int(off_ns), isolated_off_ns=int(isolated_ns))


def measure(config):
    with gpu_server(config) as server:
        gpu.describe(config, server)
    lines = dict(zip((*SPANS, *(("many", span) for span in MANY_SPANS), *STAMPED, "failed"), goals()))
    for _ in range(config.rounds):
        said = gpu.run_test(config, "cuda_device_test", "CudaTiming.DeviceTimeIsThatOfTheGpusOwnTimer*")
        lines["failed"].add(said.failed)
        rows, many, stamped = ROW.findall(said), MANY_ROW.findall(said), STAMPED_ROW.findall(said)
        for want, got in ((SPANS, tuple(int(span) for span, *_ in rows)), (tuple(STAMPED), tuple(name for name, *_ in stamped))):
            if got != want:
                return no_figures(f"want {want} of cuda_device_test, got {got}")
        add_many([lines["many", span] for span in MANY_SPANS], many)
        for span, device_us, off_ns, allowed_ns, isolated_ns, slope_ns, pair_us in rows:
            constant = (float(device_us) - SPANS[0]) / MOST_CONSTANT_US
            lines[int(span)].add(
                abs(constant) if int(span) == SPANS[0] else abs(int(off_ns)) / int(allowed_ns), device_us=float(device_us), off_ns=int(off_ns),
                isolated_off_ns=int(isolated_ns), slope_off_ns=int(slope_ns), event_pair_us=float(pair_us))
        for name, device_us, stamps_us, off_ns, low_ns, high_ns in stamped:
            lines[name].add(int(off_ns) / int(low_ns if int(off_ns) < 0 else high_ns), device_us=float(device_us),
                            stamps_us=float(stamps_us), off_ns=int(off_ns))
    return list(lines.values())
