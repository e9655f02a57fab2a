"""PyTorch's times, one JSON request and answer a line: {"op", "shape", "how", "dtype", "compiled", "warm"} -> {"ns"}
and, by the GPU's own records, {"launches"} of a call and, where warm is not 0, {"sm_mhz"} of the clock under it.

op: one of OPS, or an expression of x, y and out, of the shape, and of w and b, of its last dimension.
Of LISTS: then the shape is the sizes of the tensors of each list.
compiled: by torch.compile.
how: `device`, the GPU's own records of the kernels (from the first start to the last end of a call, by
CUPTI through torch.profiler); `kernels`, the same without the gaps between them; `events`, a pair of plain
events; `do_bench`, triton.testing.do_bench; `slope`, a CUDA graph of four times as many calls less one of as
many, for each call between them.
warm: seconds of calls before the timed ones, which are then as many as take WARM_SPAN, for calls that draw so much
power that the clock falls: a short series would have the clock of a cold chip.
"""
import concurrent.futures
import ctypes
import importlib
import json
import statistics
import sys
import time

import torch

WARMUPS, CALLS = 10, 30
WARM_SPAN, MOST_CALLS = 0.3, 300
SLOPES, SLOPE_SPAN, MOST_IN_GRAPH = 5, 2e-3, 50  # Of a slope: how many, and the seconds that the shorter graph takes.


def gelu_written_out(x):
    return 0.5 * x * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def matmul_tf32(a, b, out):
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.matmul(a, b, out=out)
    torch.backends.cuda.matmul.allow_tf32 = False


OPS = {
    "copy": lambda t: t[1].copy_(t[0]),
    "square": lambda t: torch.mul(t[0], t[0], out=t[1]),
    "vector_add": lambda t: torch.add(t[0], t[2], out=t[1]),
    "gelu": lambda t: torch.nn.functional.gelu(t[0], approximate="tanh"),
    "gelu_written_out": lambda t: gelu_written_out(t[0]),
    "softmax": lambda t: torch.softmax(t[0], -1),
    "sum": lambda t: torch.sum(t[0]),
    "matmul": lambda t: torch.matmul(t[0], t[2]),
    "matmul_tf32": lambda t: matmul_tf32(t[0], t[2], t[1]),
}
COMPILED = {
    "square_compiled": lambda t: t * t,
    "gelu_compiled": gelu_written_out,
    "softmax_compiled": lambda t: torch.softmax(t, -1),
}
# torch.compile calls what it did not compile as it is, and says nothing. All functions without a file of their own, as
# the expressions are, count as one, of which 8 compilations are the most unless these say another number.
LIMITS = ("recompile_limit", "accumulated_recompile_limit", "cache_size_limit", "accumulated_cache_size_limit")
MOST_COMPILATIONS = 4096
compiled = {}


def compiler():
    """PyTorch's, told to fail where it would give up. It takes a second to load: only where it is asked for."""
    dynamo = importlib.import_module("torch._dynamo")
    for name in LIMITS:  # By version.
        if hasattr(dynamo.config, name):
            setattr(dynamo.config, name, MOST_COMPILATIONS)
    dynamo.config.fail_on_recompile_limit_hit = True
    return dynamo


def compiled_once(key, function, *arguments, **options):
    """What torch.compile makes of it for such arguments, with which it is called once. RuntimeError where nothing was
    compiled by that: its time would be eager PyTorch's."""
    if key not in compiled:
        told = compiler().utils.counters["stats"]
        before, made = told["unique_graphs"], torch.compile(function, **options)
        made(*arguments)
        if told["unique_graphs"] == before:
            raise RuntimeError(f"want a compiled graph of {key}, torch.compile made none: "
                               "its time would be eager PyTorch's")
        compiled[key] = made
    return compiled[key]


def compiled_call(op, function, *tensors):
    """With fullgraph a break in the graph is an error."""
    made = compiled_once((op, tensors[0].shape, tensors[0].dtype), function, *tensors, dynamic=False, fullgraph=True)
    return lambda: made(*tensors)


def call_of(op, tensors, compile_it):
    if op in COMPILED:
        return compiled_call(op, COMPILED[op], tensors[0])
    if op in OPS:
        return lambda: OPS[op](tensors)
    x, out, y = tensors
    w, b = x.new_ones(x.shape[-1:]), x.new_zeros(x.shape[-1:])
    # The expressions are those of the benchmarks' own tables.
    function = eval(f"lambda x, y, out, w, b: {op}", {"torch": torch, "F": torch.nn.functional})  # noqa: S307
    if compile_it:
        return compiled_call(op, function, x, y, out, w, b)
    return lambda: function(x, y, out, w, b)


def optimizer(kind, **options):
    def call_of_lists(p, g, _):
        for parameter, gradient in zip(p, g):
            parameter.grad = gradient
        return kind(p, **options).step
    return call_of_lists


def compiled_step(kind, **options):
    """Compiled once for each number of tensors, which takes a minute: it keeps the first lists."""
    def call_of_lists(*lists):
        return compiled_once((kind, len(lists[0])), optimizer(kind, **options)(*lists))
    return call_of_lists


# From lists of tensors to a call.
LISTS = {
    "foreach_add": lambda a, b, _: lambda: torch._foreach_add(a, b),  # noqa: SLF001: it has no other name.
    "foreach_mul": lambda a, b, _: lambda: torch._foreach_mul(a, b),  # noqa: SLF001
    "sgd_fused": optimizer(torch.optim.SGD, lr=1e-3, fused=True),
    "adam_fused": optimizer(torch.optim.Adam, fused=True),
    "adamw_fused": optimizer(torch.optim.AdamW, fused=True),
    "adamw_compiled": compiled_step(torch.optim.AdamW, foreach=True),
    "adamw_foreach": optimizer(torch.optim.AdamW, foreach=True),
}


def warm_up(call, seconds=0):
    """At least so long. The seconds of a call, Python's part in it too."""
    start, calls = time.monotonic(), 0
    while calls < WARMUPS or time.monotonic() - start < seconds:
        call()
        torch.cuda.synchronize()
        calls += 1
    return (time.monotonic() - start) / calls


class Clock:
    """Of the GPU that PyTorch uses, which CUDA_VISIBLE_DEVICES may number otherwise than NVML does."""

    def __init__(self, load=lambda: ctypes.CDLL("libnvidia-ml.so.1")):
        self.handle = ctypes.c_void_p()
        try:
            self.nvml = load()
            uuid = str(torch.cuda.get_device_properties(0).uuid)
            uuid = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
            self.missing = (self.nvml.nvmlInit_v2()
                            or self.nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self.handle)))
        except (OSError, AttributeError) as why:
            self.missing = why

    def mhz(self):
        """None where NVML tells none."""
        sm, found = 1, ctypes.c_uint()
        if self.missing or self.nvml.nvmlDeviceGetClockInfo(self.handle, sm, ctypes.byref(found)):
            return None
        return found.value

    def mhz_under(self, call):
        """While calls run: they are queued until it was read."""
        with concurrent.futures.ThreadPoolExecutor(1) as reader:
            for _ in range(CALLS):
                call()
            found = reader.submit(self.mhz)
            while not found.done():
                call()
            torch.cuda.synchronize()
            return found.result()


clocks = []  # The one, once it was asked for.


def sm_mhz(call):
    if not clocks:
        clocks.append(Clock())
    return clocks[0].mhz_under(call)


def records_of(call, warm=0):
    """The GPU's records of each call, in order: (start, end) in microseconds. Each call is followed by a wait,
    so that its records stand apart."""
    each_takes = warm_up(call, warm)
    calls = min(MOST_CALLS, max(CALLS, int(WARM_SPAN / each_takes))) if warm else CALLS
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(calls):
            call()
            torch.cuda.synchronize()
    records = sorted((e.time_range.start, e.time_range.end) for e in profile.events()
                     if e.device_type == torch.autograd.DeviceType.CUDA and "Synchronize" not in e.name)
    if not records or len(records) % calls:
        raise RuntimeError(f"want the same number of records for each of {calls} calls, got {len(records)}")
    each = len(records) // calls
    return [records[i:i + each] for i in range(0, len(records), each)]


def told_of(times, records, call, warm):
    clock = {"sm_mhz": sm_mhz(call)} if warm else {}
    return {"ns": statistics.median(times) * 1e3, "launches": len(records[0]), **clock}


def by_device(call, warm):
    records = records_of(call, warm)
    return told_of([of_call[-1][1] - of_call[0][0] for of_call in records], records, call, warm)


def by_kernels(call, warm):
    records = records_of(call, warm)
    return told_of([sum(end - start for start, end in of_call) for of_call in records], records, call, warm)


def graph_of(call, times):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(times):
            call()
    graph.replay()
    torch.cuda.synchronize()
    return graph


def replayed(graph):
    """The nanoseconds between two events around it."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e6


def by_slope(call, warm):
    calls = min(MOST_IN_GRAPH, max(2, int(SLOPE_SPAN / warm_up(call, warm))))
    few, many = graph_of(call, calls), graph_of(call, 4 * calls)
    return {"ns": statistics.median((replayed(many) - replayed(few)) / (3 * calls) for _ in range(SLOPES))}


def by_events(call, _):
    times = []
    for _ in range(5):
        call()
    for _ in range(CALLS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e6)
    return {"ns": statistics.median(times)}


def by_do_bench(call, _):
    import triton.testing  # noqa: PLC0415: only where it is asked for.
    return {"ns": triton.testing.do_bench(call, return_mode="median") * 1e6}


HOW = {"device": by_device, "kernels": by_kernels, "slope": by_slope, "events": by_events, "do_bench": by_do_bench}


def answer(request):
    dtype = getattr(torch, request["dtype"])
    shapes = [[n] for n in request["shape"]] if request["op"] in LISTS else [request["shape"]]
    tensors = [[torch.randn(shape, device="cuda", dtype=torch.float32).to(dtype) for shape in shapes]
               for _ in range(3)]
    if request["op"] in LISTS:
        call = LISTS[request["op"]](*tensors)
    else:
        call = call_of(request["op"], [of_one for of_one, in tensors], request["compiled"])
    told = HOW[request["how"]](call, request["warm"])
    del tensors, call
    torch.cuda.empty_cache()
    return told


def main():
    torch.cuda.init()
    torch.backends.cuda.matmul.allow_tf32 = False
    told = sys.stdout
    sys.stdout = sys.stderr  # Libraries print.
    print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda,
                      "device": torch.cuda.get_device_name(0)}), file=told, flush=True)
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as error:  # noqa: BLE001: whatever it is, the other side must hear of it.
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=told, flush=True)


if __name__ == "__main__":
    main()
