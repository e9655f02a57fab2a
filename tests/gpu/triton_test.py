#!/usr/bin/env python3
"""The kernels of examples/triton, compiled where there is no GPU: a server takes their PTX, knows the block that
each demands, and counts the two parameters that Triton adds, for which the words have nulls.

usage: triton_test.py BIN_FOLDER

Needs Triton in this Python (tools/requirements-triton.txt) and CUDA's ptxas: `./dev nightly` runs it. What the kernels
compute, and that a GPU is not given fewer parameters, is shown by submit_test.py.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
TESTS = pathlib.Path(__file__).resolve().parents[1]
COMPILE = TESTS.parent / "examples/triton/compile.py"
sys.path.insert(0, str(TESTS / "support"))

from server import Server  # noqa: E402

# Columns -> threads of a block that holds a row; the loop's blocks are the same for all.
THREADS = {781: 128, 2000: 256, 3000: 512, 5000: 512}
LOOP_THREADS = 128


class TritonTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.server = cls.enterClassContext(
            Server(BIN, "--allow-submit", "--allow-cubin", "--limit-compile-seconds=60"))
        for columns in THREADS:
            subprocess.run([sys.executable, "-B", COMPILE, "--cubins", "--columns", str(columns),
                            cls.folder / str(columns)], check=True, timeout=300)

    def gridclock(self, *args):
        environment = dict(os.environ, GRIDCLOCK_SERVER=self.server.grpc)
        return subprocess.run([BIN / "gridclock", *map(str, args)], env=environment, capture_output=True, text=True,
                              timeout=120)

    def refused(self, *args):
        return json.loads(self.gridclock("run", *args, "--json").stdout)["error"]

    def entry(self, path):
        done = self.gridclock("compile", path, "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (entry,) = json.loads(done.stdout)["entries"]
        return entry

    def test_the_ptx_is_taken_and_demands_its_block(self):
        for columns, threads in THREADS.items():
            for kernel, block in (("square_kernel", threads), ("softmax_kernel", threads),
                                  ("square_loop_kernel", LOOP_THREADS)):
                with self.subTest(columns=columns, kernel=kernel):
                    entry = self.entry(self.folder / f"{columns}/{kernel}.ptx")
                    self.assertEqual(entry["required_block"], [block, 1, 1])

    def test_the_words_have_nulls_for_the_two_pointers_that_triton_adds(self):
        for columns in THREADS:
            made = self.folder / f"{columns}/square_kernel.ptx"
            given = made.with_suffix(".words").read_text().partition("params ")[2].split(", ")
            self.assertEqual(given[-2:], ["null", "null"])
            self.assertEqual(len(self.entry(made)["parameters"]), len(given))

    def test_nothing_but_a_gpu_is_missing_for_a_run(self):
        for columns in THREADS:
            error = self.refused(self.folder / f"{columns}/softmax_kernel.ptx", f"x=ones:f32[2,{columns}]")
            self.assertEqual((error["code"], error["reason"]), ("FAILED_PRECONDITION", "NO_DEVICE"))

    def test_the_words_of_a_cubin_are_those_of_the_ptx(self):
        made = self.folder / "2000/softmax_kernel.cubin"
        self.assertEqual(self.entry(made)["required_block"], [256, 1, 1])
        words = made.with_suffix(".words").read_text()
        error = self.refused(made, "--words", words, "x=ones:f32[2,2000]")
        self.assertEqual((error["code"], error["reason"]), ("FAILED_PRECONDITION", "NO_DEVICE"))


if __name__ == "__main__":
    unittest.main()
