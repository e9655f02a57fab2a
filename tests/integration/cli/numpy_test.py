"""Kernels of the catalogue against numpy, through a server and files: numpy_test.py BIN_FOLDER."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import numpy as np  # noqa: E402
from server import Server  # noqa: E402

RANDOM = np.random.default_rng(11)
X, Y = (RANDOM.standard_normal((37, 113)).astype("f4") for _ in range(2))
LISTS = [[RANDOM.standard_normal(shape).astype("f4") for shape in ((5,), (0,), (33, 7), (), (4099,))] for _ in range(3)]


def sigmoid(x):
    return 1 / (1 + np.exp(-x.astype("f8")))


# Kernel, attributes, inputs, what numpy makes of them.
ELEMENTS = [
    ("vector_add", (), {"a": X, "b": Y}, X + Y),
    ("mul", (), {"a": X, "b": Y}, X * Y),
    ("square", (), {"x": X}, X * X),
    ("scale", ("factor=-2.5",), {"x": X}, np.float32(-2.5) * X),
    ("pow", ("exponent=3",), {"x": X}, X.astype("f8") ** 3),
    ("pow", ("exponent=0.3",), {"x": np.abs(X)}, np.abs(X).astype("f8") ** 0.3),
    ("relu", (), {"x": X}, np.maximum(X, 0)),
    ("sigmoid", (), {"x": X}, sigmoid(X)),
    ("silu", (), {"x": X}, X * sigmoid(X)),
]
CASTS = [(X * 1000, "f2", "f16"), (X * 1000, "i2", "i16"), (X * 1000, "i8", "i64"), (X, "?", "bool"), (X, "f8", "f64"),
         (np.abs(X * 50), "u1", "u8"), (RANDOM.integers(-9**18, 9**18, 999), "f4", "f32"),
         (np.array([-(2**63), 2**63 - 1, 2**53 + 1]), "i8", "i64")]


class NumpyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(BIN))

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_kernel(self, *args):
        environment = dict(os.environ, GRIDCLOCK_SERVER=self.server.grpc)
        done = subprocess.run([BIN / "gridclock", "run", *map(str, args)], env=environment, cwd=self.folder,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, f"{args}\n{done.stdout}{done.stderr}")

    def result(self, kernel, attributes, inputs):
        for name, value in inputs.items():
            np.save(self.folder / f"{name}.npy", value)
        output = "c" if len(inputs) > 1 else "y"
        self.run_kernel(kernel, *attributes, *(f"{name}={name}.npy" for name in inputs), "-o", f"{output}=result.npy")
        return np.load(self.folder / "result.npy")

    def lists(self, kernel, attributes, inputs, outputs):
        """The outputs, lists of arrays."""
        for name, arrays in inputs.items():
            np.savez(self.folder / f"{name}.npz", **{f"t{i:03}": array for i, array in enumerate(arrays)})
        self.run_kernel(kernel, *attributes, *(f"{name}={name}.npz" for name in inputs),
                        *(word for name in outputs for word in ("-o", f"{name}={name}_out.npz")))
        results = []
        for name in outputs:
            with np.load(self.folder / f"{name}_out.npz") as archive:
                results.append([archive[member] for member in archive.files])
        return results

    def assert_lists_equal(self, got, want):
        self.assertEqual(len(got), len(want))
        for one, other in zip(got, want):
            np.testing.assert_allclose(one, other, rtol=3e-6, atol=1e-7)

    def test_element_by_element(self):
        for kernel, attributes, inputs, want in ELEMENTS:
            with self.subTest(kernel, attributes=attributes):
                np.testing.assert_allclose(self.result(kernel, attributes, inputs), want, rtol=2e-6)

    def test_casts_are_exact(self):
        for x, numpy_name, name in CASTS:
            with self.subTest(name):
                got = self.result("cast", (f"to={name}",), {"x": x})
                self.assertEqual(got.dtype, np.dtype(numpy_name))
                np.testing.assert_array_equal(got, x.astype(numpy_name))

    def test_numbers_beyond_a_type_are_cast_to_its_ends(self):
        x = np.array([np.nan, np.inf, -np.inf, 1e10, -1e10, 300.7, -129.2, 0.99, -0.99])
        for numpy_name, name in (("i1", "i8"), ("u1", "u8"), ("i4", "i32"), ("u2", "u16")):
            with self.subTest(name):
                ends = np.iinfo(numpy_name)
                want = np.clip(np.trunc(np.nan_to_num(x, nan=0, posinf=1e300, neginf=-1e300)), ends.min, ends.max)
                np.testing.assert_array_equal(self.result("cast", (f"to={name}",), {"x": x}), want.astype(numpy_name))

    def test_lists(self):
        a, b, _ = LISTS
        for kernel, attributes, want in (("foreach_add", ("alpha=0.5",), [x + np.float32(0.5) * y for x, y in zip(a, b)]),
                                         ("foreach_mul", (), [x * y for x, y in zip(a, b)])):
            self.assert_lists_equal(self.lists(kernel, attributes, {"a": a, "b": b}, ["c"])[0], want)

    def test_sgd(self):
        p, g, _ = LISTS
        got, = self.lists("sgd", ("lr=0.1", "weight_decay=0.2"), {"p": p, "g": g}, ["p"])
        self.assert_lists_equal(got, [x - 0.1 * (y.astype("f8") + 0.2 * x) for x, y in zip(p, g)])

    def assert_adam(self, kernel, decayed_g, kept):
        """Of p, g, m and v with the gradient that decay makes of g and p; `kept`: what decay leaves of p."""
        p, g, m = LISTS
        v = [np.abs(x) + np.float32(0.1) for x in p]
        got = self.lists(kernel, ("lr=0.1", "weight_decay=0.2", "step=3"), {"p": p, "g": g, "m": m, "v": v},
                         ["p", "m", "v"])
        gradients = [decayed_g(x.astype("f8"), y.astype("f8")) for x, y in zip(p, g)]
        want_m = [0.9 * x + 0.1 * y for x, y in zip(m, gradients)]
        want_v = [0.999 * x + 0.001 * y**2 for x, y in zip(v, gradients)]
        want_p = [x * kept - 0.1 * (a / (1 - 0.9**3)) / (np.sqrt(b / (1 - 0.999**3)) + 1e-8)
                  for x, a, b in zip(p, want_m, want_v)]
        for one, other in zip(got, (want_p, want_m, want_v)):
            self.assert_lists_equal(one, other)

    def test_adam(self):
        self.assert_adam("adam", lambda p, g: g + 0.2 * p, 1)

    def test_adamw(self):
        self.assert_adam("adamw", lambda p, g: g, 1 - 0.1 * 0.2)


if __name__ == "__main__":
    unittest.main()
