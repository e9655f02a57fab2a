#!/usr/bin/env python3
"""Every kernel of the catalogue against PyTorch's operator of the same name, in double on the host; the
optimizers against torch.optim: torch_test.py BIN_FOLDER [DEVICE]. Skipped where there is no PyTorch. A
kernel is added by its rows in CASES."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

DEVICE = sys.argv.pop(2) if len(sys.argv) > 2 else "cpu"
BIN = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from server import Server  # noqa: E402

MISSING = [name for name in ("numpy", "torch") if importlib.util.find_spec(name) is None]
if not MISSING:
    import numpy
    import torch
    import torch.nn.functional as F

# Of a result's dtype, next to its own rounding: sums of a few hundred terms.
TOLERANCE = {"float64": 1e-13, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
NARROWEST = {"cdist": 4}  # Bytes of an element, of kernels without 16 bits.
OUTPUTS = {"matmul": "c", "matmul_bias_gelu": "c", "cdist": "d", "foreach_add": "c", "foreach_mul": "c",
           "vector_add": "c", "mul": "c"}  # Of all others `y`.
LIST = [(5,), (33, 7), (0,), (4099,)]


# A GPU gives each thread more of so many elements, of any dtype; one is left over.
MANY = (1_050_001,)


def of_one(kernel, function, **attributes):
    return [(kernel, {"x": shape}, attributes, function) for shape in ((1023,), (3, 70, 11), MANY)]


def of_two(kernel, function):
    return [(kernel, {"a": shape, "b": shape}, {}, function) for shape in ((3, 70, 11), MANY)]


def of_rows(kernel, inputs, function):
    shapes = [(7, 333), (4, 1), (9, 1023), (2, 40961)]
    return [(kernel, {"x": shape, **{name: shape[-1:] for name in inputs}}, {}, function) for shape in shapes]


def along_axes(kernel, function):
    return [(kernel, {"x": (9, 70, 11)}, {"axis": axis}, lambda x, axis=axis: function(x, axis)) for axis in (0, 1, -1)]


def along_long_rows(kernel, function):
    """So many that a GPU does not cut them, and so long that it gives them more threads; cut in two; one cut into more
    parts than a warp takes."""
    return [(kernel, {"x": shape}, {"axis": -1}, lambda x: function(x, -1))
            for shape in ((1025, 32771), (300, 32771), (1, 4_259_843))]


def products():
    for ta, tb in ((False, False), (True, False), (False, True), (True, True)):
        shapes = {"a": (3, 70, 37) if ta else (3, 37, 70), "b": (3, 33, 70) if tb else (3, 70, 33)}
        words = {"ta": str(ta).lower(), "tb": str(tb).lower()}

        def product(a, b, ta=ta, tb=tb):
            return (a.mT if ta else a) @ (b.mT if tb else b)

        yield "matmul", shapes, words, product
        for form in ("tanh", "none"):
            yield ("matmul_bias_gelu", {**shapes, "bias": (33,)}, {**words, "approximate": form},
                   lambda a, b, bias, product=product, form=form: F.gelu(product(a, b) + bias, approximate=form))


def distances():
    return [("cdist", {"a": (2, 65, 70), "b": (2, 33, 70)}, {"p": p},
             lambda a, b, p=p: torch.cdist(a, b, p, compute_mode="donot_use_mm_for_euclid_dist")) for p in (1, 2)]


def cases():
    """Kernel, the shapes of its inputs by name, attributes, the same in PyTorch."""
    return [
        *of_two("vector_add", torch.add), *of_two("mul", torch.mul),
        *of_one("square", torch.square), *of_one("relu", torch.relu), *of_one("sigmoid", torch.sigmoid),
        *of_one("silu", F.silu), *of_one("scale", lambda x: x * 1.5, factor=1.5),
        *(case for form in ("tanh", "none")
          for case in of_one("gelu", lambda x, form=form: F.gelu(x, approximate=form), approximate=form)),
        *(case for power in (2, 3, -1, 0.3)
          for case in of_one("pow", lambda x, power=power: torch.pow(x, power), exponent=power)
          if power > 0 or case[1]["x"] != MANY),  # Of so many some have no reciprocal in f16.
        *of_rows("softmax", (), lambda x: torch.softmax(x, -1)),
        *of_rows("log_softmax", (), lambda x: torch.log_softmax(x, -1)),
        *of_rows("layernorm", ("weight", "bias"), lambda x, w, b: F.layer_norm(x, w.shape, w, b, 1e-5)),
        *of_rows("rmsnorm", ("weight",), lambda x, w: F.rms_norm(x, w.shape, w, 1e-6)),
        *along_axes("sum", torch.sum), *along_axes("mean", torch.mean), *along_axes("max", torch.amax),
        *along_axes("argmax", torch.argmax), *along_axes("cumsum", torch.cumsum),
        *along_long_rows("sum", torch.sum), *along_long_rows("mean", torch.mean),
        *along_long_rows("max", torch.amax), *along_long_rows("argmax", torch.argmax),
        *(("transpose", {"x": (5, 33, 66)}, {"i": i, "j": j}, lambda x, i=i, j=j: x.transpose(i, j))
          for i, j in ((0, 1), (-1, 1), (0, 2))),
        *products(), *distances(),
    ]


@unittest.skipIf(MISSING, f"no {' and no '.join(MISSING)}")
class TorchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(BIN, f"--devices={DEVICE}"))

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        torch.manual_seed(7)

    def run_kernel(self, kernel, inputs, attributes, outputs):
        done = subprocess.run([BIN / "gridclock", "run", kernel, *inputs,
                               *(f"{name}={value}" for name, value in attributes.items()), *outputs],
                              env={**os.environ, "GRIDCLOCK_SERVER": self.server.grpc}, cwd=self.folder,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)

    def save(self, name, tensor):
        """What the command line is told: numpy has no bf16, so that its raw items are written."""
        raw = tensor.dtype == torch.bfloat16
        numpy.save(self.folder / f"{name}.npy", (tensor.view(torch.int16) if raw else tensor).numpy().view(
            *(["uint16"] if raw else [])))
        return f"{name}={name}.npy" + (":bf16" if raw else "")

    def load(self, name, dtype):
        array = numpy.load(self.folder / f"{name}.npy")
        if dtype == torch.bfloat16 and array.dtype.kind == "V":
            return torch.from_numpy(array.view("int16").copy()).view(dtype)
        return torch.from_numpy(array)

    def assert_close(self, got, want, tolerance):
        self.assertEqual(got.shape, want.shape)
        finite = want[want.isfinite()]
        largest = finite.abs().max().item() if finite.numel() else 0
        torch.testing.assert_close(got.double(), want.double(), rtol=tolerance, atol=tolerance * largest, equal_nan=True)

    def test_each_kernel_is_what_pytorch_makes_of_the_same_numbers(self):
        for dtype_name, tolerance in TOLERANCE.items():
            dtype = getattr(torch, dtype_name)
            for kernel, shapes, attributes, function in cases():
                if dtype.itemsize < NARROWEST.get(kernel, 1):
                    continue
                with self.subTest(kernel=kernel, dtype=dtype_name, shapes=shapes, **attributes):
                    inputs = {name: torch.randn(shape).to(dtype) for name, shape in shapes.items()}
                    self.run_kernel(kernel, [self.save(name, tensor) for name, tensor in inputs.items()], attributes,
                                    ["-o", f"{OUTPUTS.get(kernel, 'y')}=out.npy"])
                    # Rounded as ours is: 1 / 2**-16 is no f16.
                    want = function(*(tensor.double() for tensor in inputs.values()))
                    want = want.to(dtype) if want.is_floating_point() else want
                    self.assert_close(self.load("out", dtype), want, tolerance)

    def test_equal_terms_whose_roundings_are_all_of_one_sign(self):
        """Over the last dimension, the first, and one between; --verify tells what they may be off by."""
        for kernel in ("sum", "mean", "cumsum"):
            for shape, axis in (("3,1000000", 1), ("1000000,2", 0), ("32,102400,2", 1), ("40,20000,37", 1), ("300000,64", 0),
                                ("1,30000000", 1)):
                for term in (0.1, 0.7):
                    with self.subTest(kernel=kernel, shape=shape, axis=axis, term=term):
                        self.run_kernel(kernel, [f"x=full:{term}:f32[{shape}]"], {"axis": axis}, ["--verify"])

    def test_casts_are_pytorchs(self):
        x = torch.randn(4099) * 10
        for word, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16), ("f64", torch.float64),
                            ("f8e4m3", torch.float8_e4m3fn), ("f8e5m2", torch.float8_e5m2)):
            with self.subTest(to=word):
                self.run_kernel("cast", [self.save("x", x)], {"to": word}, ["-o", "y=out.npy"])
                got = numpy.load(self.folder / "out.npy")
                want = x.to(dtype).view(getattr(torch, f"int{8 * dtype.itemsize}")).numpy()
                numpy.testing.assert_array_equal(got.view(want.dtype), want)

    def test_powers_of_numbers_of_every_size(self):
        """Both zeros, subnormal numbers, infinities and NaN among them, and those whose power is the largest number, in
        units in the last place."""
        every = (numpy.arange(1 << 20, dtype=numpy.uint32) << 12 | 0x5A5).view("float32")
        special = numpy.float32([0, -0.0, numpy.inf, -numpy.inf, numpy.nan, 1, 1e-45])
        for exponent in (0.3, -0.3, 0.75, 1.1, 1.5, -1.5, -2.7, 100.25, 700.1, -20000.7, 4194304.5, 1e-300):
            with self.subTest(exponent=exponent), numpy.errstate(all="ignore"):
                largest = numpy.float32(2.0 ** max(-140.0, min(127.0, 128 / exponent)))
                near = (largest.view("uint32") + numpy.arange(-400, 400)).astype("uint32").view("float32")
                x = numpy.concatenate([every, special, near])
                numpy.save(self.folder / "x.npy", x)
                self.run_kernel("pow", ["x=x.npy"], {"exponent": exponent}, ["-o", "y=out.npy"])
                y, want = numpy.load(self.folder / "out.npy"), numpy.power(x.astype("float64"), exponent)
                rounded = want.astype("float32")
                numpy.testing.assert_array_equal(numpy.isnan(y), numpy.isnan(want))
                sized = numpy.isfinite(y) & numpy.isfinite(rounded)
                off = numpy.abs(y[sized] - want[sized]) / numpy.spacing(numpy.abs(rounded[sized])).astype("float64")
                self.assertLess(off.max(), 5)
                # What is beyond f32 is infinite, but for what lies next to its border.
                border = numpy.isfinite(rounded) != numpy.isfinite(y)
                self.assertTrue((numpy.abs(want[border] / 2.0**128 - 1) < 1e-6).all())
                beyond = numpy.isinf(rounded) & numpy.isinf(y)
                numpy.testing.assert_array_equal(numpy.sign(y[beyond]), numpy.sign(rounded[beyond]))

    def save_list(self, name, tensors):
        numpy.savez(self.folder / f"{name}.npz", **{f"{i:03}": tensor.numpy() for i, tensor in enumerate(tensors)})
        return f"{name}={name}.npz"

    def load_list(self, name):
        with numpy.load(self.folder / f"{name}.npz") as archive:
            return [torch.from_numpy(archive[key]) for key in sorted(archive.files)]

    def test_lists_go_pair_by_pair(self):
        a, b = ([torch.randn(shape) for shape in LIST] for _ in range(2))
        for kernel, want in (("foreach_add", torch._foreach_add(a, b, alpha=0.5)),  # noqa: SLF001: no other name.
                             ("foreach_mul", torch._foreach_mul(a, b))):  # noqa: SLF001
            with self.subTest(kernel=kernel):
                self.run_kernel(kernel, [self.save_list("a", a), self.save_list("b", b)],
                                {"alpha": 0.5} if kernel == "foreach_add" else {}, ["-o", "c=out.npz"])
                for got, expected in zip(self.load_list("out"), want, strict=True):
                    self.assert_close(got, expected, 1e-6)

    def test_a_step_is_that_of_torch_optim(self):
        decay = {"lr": 0.01, "weight_decay": 0.1}
        for kernel, kind in (("sgd", torch.optim.SGD), ("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)):
            with self.subTest(kernel=kernel):
                p, g = ([torch.randn(shape) for shape in LIST] for _ in range(2))
                zeros = [torch.zeros(shape) for shape in LIST]
                state = [] if kernel == "sgd" else [self.save_list("m", zeros), self.save_list("v", zeros)]
                self.run_kernel(kernel, [self.save_list("p", p), self.save_list("g", g), *state], decay,
                                ["-o", "p=out.npz"])
                for parameter, gradient in zip(p, g, strict=True):
                    parameter.grad = gradient
                kind(p, **decay).step()
                for got, expected in zip(self.load_list("out"), p, strict=True):
                    self.assert_close(got, expected, 1e-5)


if __name__ == "__main__":
    unittest.main()
