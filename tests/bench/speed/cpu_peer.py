"""What numpy and PyTorch take on the CPU, one JSON request and answer a line: {"op", "shape", "lists", "dtype",
"library", "warmups", "calls"} -> {"ns"}, the median of the calls.

usage: cpu_peer.py THREADS    so many threads for PyTorch; numpy has one but where its BLAS has more

op: of `torch` as in torch_peer.py; of `numpy` an expression of x, y, out, w and b. With `lists` x, y and out are lists
of one tensor for each number of the shape.
"""
import functools
import json
import os
import statistics
import sys
import time

BLOCK = 1 << 20  # Different numbers.
THREADS = int(sys.argv[1])
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(THREADS)
import numpy  # noqa: E402: it reads the environment.

numpy.seterr(all="ignore")  # Powers of what is below zero, as on the other side.

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


def empty(shape):
    """As PyTorch aligns it, for both: numpy would have 16 bytes."""
    return torch.empty(shape).numpy() if torch else numpy.empty(shape, "f4")


def numbers(shape, random):
    """Large ones repeat: to make them takes longer than to compute with them."""
    made = empty(shape)
    flat = made.reshape(-1)
    block = random.standard_normal(min(len(flat), BLOCK), "f4")
    for start in range(0, len(flat), BLOCK):
        flat[start:start + BLOCK] = block[:len(flat) - start]
    return made


@functools.lru_cache(maxsize=1)  # Turn by turn it is one shape that is asked for, and large ones take gigabytes.
def arrays(shapes):
    """Three lists of as many."""
    return [[numbers(shape, numpy.random.default_rng(i)) for shape in shapes] for i in range(3)]


@functools.lru_cache(maxsize=1)
def torch_tensors(shapes, dtype):
    return [[torch.from_numpy(array).to(getattr(torch, dtype)) for array in of_one] for of_one in arrays(shapes)]


@functools.lru_cache(maxsize=1)
def numpy_arrays(shapes, dtype):
    return [[array.astype(dtype, copy=False) for array in of_one] for of_one in arrays(shapes)]


def of_torch(op, shapes, dtype):
    tensors = torch_tensors(shapes, dtype)
    if op in torch_peer.LISTS:
        return torch_peer.LISTS[op](*tensors)
    return torch_peer.call_of(op, [of_one for of_one, in tensors], compile_it=False)


def of_numpy(op, shapes, dtype, lists):
    x, out, y = numpy_arrays(shapes, dtype) if lists else (of_one for of_one, in numpy_arrays(shapes, dtype))
    w, b = numpy.ones(shapes[0][-1], dtype), numpy.zeros(shapes[0][-1], dtype)
    # The expressions are those of the benchmarks' own tables.
    function = eval(f"lambda x, y, out, w, b: {op}", {"numpy": numpy})  # noqa: S307
    return lambda: function(x, y, out, w, b)


def answer(request):
    shapes = tuple((n,) for n in request["shape"]) if request["lists"] else (tuple(request["shape"]),)
    if request["library"] == "torch":
        call = of_torch(request["op"], shapes, request["dtype"])
    else:
        call = of_numpy(request["op"], shapes, request["dtype"], request["lists"])
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
