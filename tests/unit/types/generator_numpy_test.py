"""Makes the values of docs/generators.md anew, in plain Python and in numpy, and compares.

usage: generator_numpy_test.py PATH_TO_generate_values
"""

import statistics
import struct
import subprocess
import sys
import unittest

try:
    import numpy
except ImportError:
    numpy = None

PROGRAM = None
MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
INTEGERS = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q",
            "u64": "Q", "bool": "B"}
FLOATS = {"f64": "d", "f32": "f", "f16": "e"}


def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def bits(seed, index):
    return mix((mix(seed) + (index + 1) * GOLDEN) & MASK)


def uniform(seed, index, a, b):
    x = a + (b - a) * ((bits(seed, index) >> 11) * 2.0**-53)
    return x if x < b else a


def randn(seed, index):
    return statistics.NormalDist().inv_cdf(((bits(seed, index) >> 12) + 0.5) * 2.0**-52)


def randint(seed, index, a, b):
    return a + (bits(seed, index) * (b - a) >> 64)


def made(generator, seed, dtype, first, count):
    lines = subprocess.run(
        [PROGRAM, generator, str(seed), dtype, str(first), str(count)],
        check=True, capture_output=True, text=True).stdout.split()
    return [bytes.fromhex(line) for line in lines]


class PlainPython(unittest.TestCase):
    def test_uniform(self):
        for seed, first in ((0, 0), (42, 0), (2**64 - 1, 10**12)):
            for dtype, code in FLOATS.items():
                want = [struct.pack("<" + code, uniform(seed, first + i, -1.5, 2)) for i in range(700)]
                self.assertEqual(made("uniform:-1.5:2", seed, dtype, first, 700), want)

    def test_uniform_of_integers_is_cut(self):
        want = [struct.pack("<h", int(uniform(3, i, -9, 9))) for i in range(100)]
        self.assertEqual(made("uniform:-9:9", 3, "i16", 0, 100), want)

    def test_randint(self):
        for dtype, code in INTEGERS.items():
            a, b = (0, 2) if dtype == "bool" else (1 if dtype[0] == "u" else -100, 101)
            want = [struct.pack("<" + code, randint(9, 5 + i, a, b)) for i in range(700)]
            self.assertEqual(made(f"randint:{a}:{b}", 9, dtype, 5, 700), want)

    def test_randint_of_64_bits(self):
        want = [struct.pack("<q", randint(9, i, -2**63, 2**63)) for i in range(100)]
        self.assertEqual(made(f"randint:{-2**63}:{2**63}", 9, "i64", 0, 100), want)

    def test_randn(self):
        for dtype in ("f32", "f16"):
            want = [struct.pack("<" + FLOATS[dtype], randn(42, i)) for i in range(5000)]
            self.assertEqual(made("randn", 42, dtype, 0, 5000), want)

    def test_randn_of_doubles_up_to_the_last_bits_of_the_logarithm(self):
        for got, want in zip(made("randn", 42, "f64", 0, 5000), (randn(42, i) for i in range(5000))):
            value = struct.unpack("<d", got)[0]
            self.assertLessEqual(abs(value - want), 4e-16 * max(1, abs(want)))

    def test_arange(self):
        want = [struct.pack("<f", i) for i in range(2**24 - 2, 2**24 + 6)]
        self.assertEqual(made("arange", 0, "f32", 2**24 - 2, 8), want)


@unittest.skipIf(numpy is None, "numpy is not installed for this Python")
class Numpy(unittest.TestCase):
    def bits(self, seed, first, count):
        def mixed(x):
            x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
            return x ^ (x >> numpy.uint64(31))

        key = mixed(numpy.array([seed], numpy.uint64))
        index = numpy.arange(first + 1, first + count + 1, dtype=numpy.uint64)
        return mixed(key + index * numpy.uint64(GOLDEN))

    def test_uniform(self):
        unit = (self.bits(42, 7, 1000) >> numpy.uint64(11)).astype(numpy.float64) * 2.0**-53
        want = (-1.5 + 3.5 * unit).astype("<f4")
        self.assertEqual(b"".join(made("uniform:-1.5:2", 42, "f32", 7, 1000)), want.tobytes())

    def test_centre_of_randn(self):
        q = ((self.bits(42, 0, 4000) >> numpy.uint64(12)).astype(numpy.float64) + 0.5) * 2.0**-52 - 0.5
        want = numpy.array([statistics.NormalDist().inv_cdf(v + 0.5) for v in q], "<f4")
        self.assertEqual(b"".join(made("randn", 42, "f32", 0, 4000)), want.tobytes())


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    if numpy is None:
        print("numpy is not installed: its part is skipped, plain Python runs", file=sys.stderr)
    unittest.main()
