"""Device time against the GPU's own timer: kernels that spin until %globaltimer has moved on by a span."""
import re

from speed import gpu
from speed.gpu import gpu_server
from speed.line import Line

# Of CudaTiming: span, device time, how far it is off once one constant is taken away, what is allowed; how far
# the isolated method, less the launch offset, and a slope lie from device time; what a plain pair of events reads.
ROW = re.compile(r"^ +(\d+) +([\d.]+) +(-?\d+) +(\d+) +[\d.]+ +(-?\d+) +[\d.]+ +(-?\d+) +([\d.]+) +(?:PASS|FAIL)$",
                 re.MULTILINE)
SPANS = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)  # In us.


def goals():
    return [Line(f"gpu.truth.{span}us", f"a spin of {span} us: device time less one constant, its distance over max(0.3 us, "
                 "0.5 %)", "<=", 1) for span in SPANS]


def measure(config):
    with gpu_server(config) as server:
        gpu.describe(config, server)
    lines = dict(zip(SPANS, goals()))
    for _ in range(config.rounds):
        rows = ROW.findall(gpu.run_test(config, "cuda_device_test", "CudaTiming.DeviceTimeIsThatOfTheGpusOwnTimer"))
        if tuple(int(span) for span, *_ in rows) != SPANS:
            return [Line("gpu.truth", "device time against the GPU's own timer", "<=", 1,
                         skipped=f"want {len(SPANS)} spans of cuda_device_test, got {[span for span, *_ in rows]}")]
        for span, device_us, off_ns, allowed_ns, isolated_ns, slope_ns, pair_us in rows:
            lines[int(span)].add(
                abs(int(off_ns)) / int(allowed_ns), device_us=float(device_us), off_ns=int(off_ns),
                isolated_off_ns=int(isolated_ns), slope_off_ns=int(slope_ns), event_pair_us=float(pair_us))
    return list(lines.values())
