"""Files as first courses have them (tests/sources) through a real server and its compiler:
sources_test.py BIN_FOLDER. Each compiles, says what it needs and has PTX; on a server without a GPU a
run of it is refused in clear words. What they compute is shown by tests/gpu/submit_test.py."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import numpy

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
TESTS = pathlib.Path(__file__).resolve().parents[2]
SOURCES = TESTS / "sources"
sys.path.insert(0, str(TESTS / "support"))

from server import Server  # noqa: E402

# File -> its kernels, and inputs for a run.
FILES = {
    "add_in_place": (["add"], ["x=ones:f32[1048576]", "y=ones:f32[1048576]"]),
    "add_lists": (["add_lists"], ["a=ones:f32[3]", "a=ones:f32[5]", "b=ones:f32[3]", "b=ones:f32[5]"]),
    "axpb_template": (["axpb<float, 4>"], ["x=ones:f32[9]"]),
    "gelu_tanh": (["gelu_tanh_kernel"], ["x=ones:f32[9]"]),
    "matmul_tiled": (["matmul_tiled"], ["a=ones:f32[4,5]", "b=ones:f32[5,6]"]),
    "normalize_cooperative": (["normalize"], ["x=ones:f32[9]"]),
    "reduce_sum": (["set_zero", "sum_kernel"], ["x=ones:f32[9]"]),
    "scale_bf16": (["scale_bf16"], ["x=ones:bf16[9]"]),
    "softmax_cub": (["softmax_kernel<256>"], ["x=ones:f32[2,9]"]),
    "square_matrix": (["square_matrix_kernel"], ["x=arange:f32[2,3]"]),
    "wrong_host_pointers": (["add_all"], ["addresses=ones:u64[2]"]),
}
# Those that a compiler refuses, and what it says.
REFUSED = {
    "wrong_vector": ["wrong_vector.cu:8: error: ", "std::vector<float*> a"],
    "wrong_many_pointers": ["32780 bytes required, max 32764 bytes allowed"],
}


class SourcesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(BIN, "--allow-submit", "--limit-compile-seconds=60"))
        cls.why = cls.no_toolchain()

    @classmethod
    def no_toolchain(cls):
        """Why nothing compiles here; empty if it does."""
        with tempfile.TemporaryDirectory() as folder:
            line = pathlib.Path(folder) / "line.cu"
            line.write_text("__global__ void line() {}\n")
            for _ in range(50):
                error = json.loads(cls.call("compile", line, "--json").stdout).get("error", {})
                if error.get("code") != "UNAVAILABLE":
                    break
                time.sleep(0.1)
            assert error.get("code") != "UNAVAILABLE" or "NVRTC" in error["message"], error
            return error.get("message", "")

    @classmethod
    def call(cls, *args):
        environment = dict(os.environ, GRIDCLOCK_SERVER=cls.server.grpc)
        return subprocess.run([BIN / "gridclock", *map(str, args)], env=environment, capture_output=True, text=True,
                              timeout=120)

    def setUp(self):
        if self.why:
            self.skipTest(f"nothing can be compiled here: {self.why}")
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_every_file_is_listed_here(self):
        self.assertEqual({path.stem for path in SOURCES.glob("*.cu")}, FILES.keys() | REFUSED.keys())

    def test_each_compiles_as_it_is_and_says_what_it_needs(self):
        for stem, (kernels, _) in FILES.items():
            with self.subTest(stem):
                done = self.call("compile", SOURCES / f"{stem}.cu", "--json", "--keep", self.folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                entries = json.loads(done.stdout)["entries"]
                self.assertEqual(sorted(entry["display"] for entry in entries), kernels)
                for entry in entries:
                    self.assertGreater(entry["registers"], 0)
                    self.assertGreater(entry["occupancy"]["fraction"], 0)
                    self.assertTrue(all(parameter["name"] for parameter in entry["parameters"]), entry)
                self.assertIn(".entry", (self.folder / f"{stem}.ptx").read_text())

    def test_without_a_gpu_a_run_is_refused_in_clear_words(self):
        for stem, (_, inputs) in FILES.items():
            with self.subTest(stem):
                done = self.call("run", SOURCES / f"{stem}.cu", *inputs, "--json")
                self.assertEqual(done.returncode, 1, done.stderr)
                error = json.loads(done.stdout)["error"]
                self.assertEqual(error["code"], "FAILED_PRECONDITION", error)
                self.assertRegex(error["message"], "GPU|cuda")

    def test_what_a_file_is_verified_against_must_fit(self):
        subject = [SOURCES / "square_matrix.cu", "x=arange:f32[2,3]"]
        numpy.save(self.folder / "right.npy", numpy.arange(6, dtype="f4").reshape(2, 3) ** 2)
        numpy.save(self.folder / "short.npy", numpy.zeros(3, "f4"))
        said = {
            "--verify": (2, "say what a kernel of a file is compared with"),
            "--verify=nosuch": (1, "NOT_FOUND"),
            "--verify=sum": (1, "'sum' gives f32[2] of these inputs; the program gives f32[2,3]"),
            f"--verify=z={self.folder}/right.npy": (2, "the output is called 'y', got 'z'"),
            f"--verify={self.folder}/short.npy": (1, "'expected.y': want f32[2,3], got f32[3]"),
            # These fit: what is missing is the GPU.
            "--verify=square": (1, "FAILED_PRECONDITION"),
            f"--verify={self.folder}/right.npy": (1, "FAILED_PRECONDITION"),
            f"--verify={SOURCES}/gelu_tanh.cu": (1, "FAILED_PRECONDITION"),
            f"--verify={SOURCES}/matmul_tiled.cu": (2, "'matmul_tiled' takes 2 inputs; want 1"),
        }
        for flag, (code, words) in said.items():
            with self.subTest(flag):
                done = self.call("run", *subject, flag)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.returncode, code, done.stderr)
        done = self.call("run", "square", "x=ones:f32[4]", "--verify=square")
        self.assertIn("one of the catalogue has its own", done.stderr)

    def test_wrong_ones_are_refused_with_the_place(self):
        for stem, said in REFUSED.items():
            with self.subTest(stem):
                done = self.call("compile", SOURCES / f"{stem}.cu")
                self.assertEqual(done.returncode, 1)
                self.assertIn("INVALID_ARGUMENT", done.stderr)
                for words in said:
                    self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
