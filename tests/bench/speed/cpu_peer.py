"""What numpy and PyTorch take on the CPU, one JSON request and answer a line: {"op", "shape", "dtype", "library",
"warmups", "calls"} -> {"ns"}, the median of the calls.

usage: cpu_peer.py THREADS    so many threads for PyTorch; numpy has one but where its BLAS has more

op: of `torch` as in torch_peer.py; of `numpy` an expression of x, y, out, w and b.
"""
import functools
import json
import os
import statistics
import sys
import time

THREADS = int(sys.argv[1])
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(THREADS)
import numpy  # noqa: E402: it reads the environment.

try:
    import torch  # noqa: E402
except ImportError:
    torch = None
else:
    import torch_peer  # noqa: E402: beside this file.
    torch.set_num_threads(THREADS)
    torch.set_grad_enabled(False)  # noqa: FBT003


def median_ns(call, warmups, calls):
    for _ in range(warmups):
        call()
    times = []
    for _ in range(calls):
        start = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times)


@functools.lru_cache(maxsize=6)  # Shapes come round again kernel after kernel, and numbers take long to make.
def torch_tensors(shapes, dtype):
    return [[torch.randn(shape).to(getattr(torch, dtype)) for shape in shapes] for _ in range(3)]


@functools.lru_cache(maxsize=6)
def numpy_arrays(shape, dtype):
    return [numpy.random.default_rng(i).standard_normal(shape, "f4").astype(dtype) for i in range(3)]


def of_torch(op, shapes, dtype):
    tensors = torch_tensors(shapes, dtype)
    if op in torch_peer.LISTS:
        return torch_peer.LISTS[op](*tensors)
    return torch_peer.call_of(op, [of_one for of_one, in tensors], compile_it=False)


def of_numpy(op, shapes, dtype):
    x, out, y = numpy_arrays(shapes[0], dtype)
    w, b = numpy.ones(shapes[0][-1], dtype), numpy.zeros(shapes[0][-1], dtype)
    # The expressions are those of the benchmarks' own tables.
    function = eval(f"lambda x, y, out, w, b: {op}", {"numpy": numpy})  # noqa: S307
    return lambda: function(x, y, out, w, b)


def answer(request):
    shape, is_list = request["shape"], request["library"] == "torch" and request["op"] in torch_peer.LISTS
    shapes = tuple((n,) for n in shape) if is_list else (tuple(shape),)
    call = {"torch": of_torch, "numpy": of_numpy}[request["library"]](request["op"], shapes, request["dtype"])
    return {"ns": median_ns(call, request["warmups"], request["calls"])}


def main():
    print(json.dumps({"numpy": numpy.__version__, "torch": torch and torch.__version__}), flush=True)
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as error:  # noqa: BLE001: whatever it is, the other side must hear of it.
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
