"""Kernels of the catalogue against the same formulas in numpy: catalog_numpy_test.py BIN_FOLDER. A kernel
is added by its rows in CASES."""

import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import numpy  # noqa: E402
from server import Server  # noqa: E402

# Of a result's dtype, next to its own rounding: sums of a few hundred terms.
TOLERANCE = {"float64": 1e-13, "float32": 1e-5, "float16": 2e-3}


def softmax(x):
    e = numpy.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layernorm(x, weight, bias):
    return (x - x.mean(-1, keepdims=True)) / numpy.sqrt(x.var(-1, keepdims=True) + 1e-5) * weight + bias


def rmsnorm(x, weight):
    return x / numpy.sqrt(numpy.square(x).mean(-1, keepdims=True) + 1e-6) * weight


def gelu(x):
    return x / 2 * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (x + 0.044715 * x ** 3)))


def exact_gelu(x):
    return x / 2 * (1 + numpy.vectorize(math.erf)(x / numpy.sqrt(2)))


def transposed_if(x, turned):
    return numpy.swapaxes(x, -1, -2) if turned else x


def product(a, b, ta, tb):
    return transposed_if(a, ta) @ transposed_if(b, tb)


def distances(a, b, p):
    between = numpy.abs(a[..., :, None, :] - b[..., None, :, :])
    return between.sum(-1) if p == 1 else numpy.sqrt(numpy.square(between).sum(-1))


def products():
    """Each way to lie in memory."""
    for ta in (False, True):
        for tb in (False, True):
            shapes = {"a": (3, *((70, 37) if ta else (37, 70))), "b": (3, *((33, 70) if tb else (70, 33)))}
            turned = {"ta": str(ta).lower(), "tb": str(tb).lower()}
            yield "matmul", shapes, turned, lambda a, b, ta=ta, tb=tb: product(a, b, ta, tb)
            yield ("matmul_bias_gelu", {**shapes, "bias": (33,)}, turned,
                   lambda a, b, bias, ta=ta, tb=tb: gelu(product(a, b, ta, tb) + bias))


def rows():
    """Of lengths at which an implementation works in another way, and of one element."""
    for shape in ((7, 333), (3, 5, 257), (4, 1), (65, 64), (9, 1023), (3, 2049), (2, 40961)):
        of_row = {"weight": shape[-1:], "bias": shape[-1:]}
        yield "softmax", {"x": shape}, {}, softmax
        yield "log_softmax", {"x": shape}, {}, lambda x: numpy.log(softmax(x))
        yield "layernorm", {"x": shape, **of_row}, {}, layernorm
        yield "rmsnorm", {"x": shape, "weight": shape[-1:]}, {}, rmsnorm


# Kernel, the shapes of its inputs by name, attributes, the same in numpy.
CASES = [
    *rows(),
    *(("gelu", {"x": (3, 5, 257)}, {"approximate": word}, formula)
      for word, formula in (("tanh", gelu), ("none", exact_gelu))),
    *((kernel, {"x": (9, 70, 11)}, {"axis": axis}, lambda x, axis=axis, op=op: op(x, axis))
      for axis in (0, 1, 2, -1)
      for kernel, op in (("sum", numpy.sum), ("mean", numpy.mean), ("max", numpy.max), ("argmax", numpy.argmax),
                         ("cumsum", numpy.cumsum))),
    *(("transpose", {"x": (5, 33, 3, 66)}, {"i": i, "j": j}, lambda x, i=i, j=j: numpy.swapaxes(x, i, j))
      for i, j in ((0, 1), (1, 3), (-1, 2), (2, 2), (-2, -1))),
    *products(),
    *(("cdist", {"a": (2, 65, 70), "b": (2, 33, 70)}, {"p": p}, lambda a, b, p=p: distances(a, b, p)) for p in (1, 2)),
]
NARROWEST = {"cdist": "float32"}  # Of kernels without 16 bits.
OUTPUTS = {"matmul": "c", "matmul_bias_gelu": "c", "cdist": "d"}  # Of all others `y`.


class CatalogNumpyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(BIN))

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.random = numpy.random.default_rng(7)

    def result_of(self, kernel, inputs, attributes):
        for name, array in inputs.items():
            numpy.save(self.folder / f"{name}.npy", array)
        done = subprocess.run([BIN / "gridclock", "run", kernel, *(f"{name}={name}.npy" for name in inputs),
                               *(f"{name}={value}" for name, value in attributes.items()), "-o",
                               f"{OUTPUTS.get(kernel, 'y')}=y.npy"],
                              env={**os.environ, "GRIDCLOCK_SERVER": self.server.grpc}, cwd=self.folder,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return numpy.load(self.folder / "y.npy")

    def test_each_kernel_is_what_numpy_makes_of_its_formula(self):
        for dtype, tolerance in TOLERANCE.items():
            for kernel, shapes, attributes, formula in CASES:
                if numpy.dtype(dtype).itemsize < numpy.dtype(NARROWEST.get(kernel, dtype)).itemsize:
                    continue
                with self.subTest(kernel=kernel, dtype=dtype, shapes=shapes, **attributes):
                    inputs = {name: self.random.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}
                    got = self.result_of(kernel, inputs, attributes)
                    want = formula(*(array.astype("float64") for array in inputs.values()))
                    self.assertEqual(got.shape, want.shape)
                    self.assertEqual(got.dtype, want.dtype if want.dtype.kind == "i" else dtype)
                    # Beside the largest: what sums lose is a part of their terms.
                    numpy.testing.assert_allclose(got.astype("float64"), want, rtol=tolerance,
                                                  atol=tolerance * numpy.abs(want).max())

    def test_what_is_moved_or_chosen_is_so_exactly(self):
        for dtype in ("float32", "int8", "uint64", "bool"):
            x = self.random.integers(0, 2 if dtype == "bool" else 100, (65, 130)).astype(dtype)
            numpy.testing.assert_array_equal(self.result_of("transpose", {"x": x}, {}), x.T)
        x = self.random.integers(0, 5, (40, 300)).astype("float32")  # Most of them several times.
        numpy.testing.assert_array_equal(self.result_of("argmax", {"x": x}, {}), x.argmax(-1))
        x[::3, 200] = x[::3, 250] = numpy.nan
        numpy.testing.assert_array_equal(self.result_of("argmax", {"x": x}, {}), x.argmax(-1))
        numpy.testing.assert_array_equal(self.result_of("max", {"x": x}, {}), x.max(-1))


if __name__ == "__main__":
    unittest.main()
