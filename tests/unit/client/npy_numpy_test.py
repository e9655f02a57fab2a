"""Files that numpy wrote, read by us and written again, are the same to numpy.

npy_numpy_test.py PROGRAM
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy

PROGRAM = sys.argv.pop(1)
DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]
SHAPES = [(), (0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 4, 5), (1, 2, 1, 2, 1, 2, 1, 2)]


class NumpyTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.random = numpy.random.default_rng(20240101)

    def convert(self, array, *, version=None, dtype=None):
        source, target = self.folder / "in.npy", self.folder / "out.npy"
        with open(source, "wb") as file:
            numpy.lib.format.write_array(file, array, version=version)
        done = subprocess.run([PROGRAM, source, target] + ([dtype] if dtype else []),
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return numpy.load(target)

    def values(self, shape, dtype):
        return self.random.integers(0, 100, size=shape).astype(dtype)

    def test_every_dtype_shape_order_and_layout(self):
        for dtype in DTYPES:
            for order in "<>":
                for layout in "CF":
                    for shape in SHAPES:
                        array = numpy.array(self.values(shape, dtype), order + dtype, order=layout)
                        with self.subTest(dtype=order + dtype, layout=layout, shape=shape):
                            got = self.convert(array)
                            self.assertEqual(got.shape, array.shape)
                            self.assertEqual(got.dtype, numpy.dtype(dtype).newbyteorder("="))
                            numpy.testing.assert_array_equal(got, array)

    def test_every_version(self):
        array = self.values((5, 6), "f4")
        for version in [(1, 0), (2, 0), (3, 0)]:
            with self.subTest(version=version):
                numpy.testing.assert_array_equal(self.convert(array, version=version), array)

    def test_bfloat16_as_raw_items_and_as_unsigned(self):
        bits = self.values((4, 3), "u2")
        for array in [bits, bits.view("V2")]:
            got = self.convert(array, dtype="bf16")
            self.assertEqual(got.dtype, numpy.dtype("V2"))
            numpy.testing.assert_array_equal(got.view("u2"), bits)

    def test_float8_as_raw_items_and_as_unsigned(self):
        bits = self.values((4, 3), "u1")
        for dtype in ["f8e4m3", "f8e5m2"]:
            for array in [bits, bits.view("V1"), numpy.asfortranarray(bits)]:
                with self.subTest(dtype=dtype, kind=array.dtype.kind, fortran=array.flags.f_contiguous):
                    got = self.convert(array, dtype=dtype)
                    self.assertEqual((got.dtype, got.shape), (numpy.dtype("V1"), bits.shape))
                    numpy.testing.assert_array_equal(got.view("u1"), bits)

    def test_raw_items_need_a_name_of_their_size(self):
        for raw, name in [("V1", None), ("V1", "bf16"), ("V2", "f8e4m3"), ("V2", None)]:
            with self.subTest(raw=raw, name=name):
                numpy.save(self.folder / "in.npy", numpy.zeros(3, raw))
                done = subprocess.run([PROGRAM, self.folder / "in.npy", self.folder / "out.npy"] + ([name] if name else []),
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, 1)
                self.assertIn("raw items of" if name is None else "cannot stand for", done.stderr)

    def test_archives_plain_and_deflated(self):
        arrays = {"w": self.values((30, 40), "f4"), "b": self.values((), "i8"),
                  "e": self.values((0, 3), "f2"), "f": numpy.asfortranarray(self.values((9, 8), ">f8"))}
        for save in [numpy.savez, numpy.savez_compressed]:
            with self.subTest(save=save.__name__):
                save(self.folder / "in.npz", **arrays)
                subprocess.run([PROGRAM, self.folder / "in.npz", self.folder / "out.npz"], check=True)
                with numpy.load(self.folder / "out.npz") as got:
                    self.assertEqual(got.files, list(arrays))
                    for name, array in arrays.items():
                        numpy.testing.assert_array_equal(got[name], array)

    def test_objects_are_refused(self):
        numpy.save(self.folder / "in.npy", numpy.array([{}], object), allow_pickle=True)
        done = subprocess.run([PROGRAM, self.folder / "in.npy", self.folder / "out.npy"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("object array", done.stderr)
        self.assertFalse((self.folder / "out.npy").exists())


if __name__ == "__main__":
    unittest.main()
