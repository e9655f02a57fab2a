"""gridclock-worker --bare: one launch without a server, as a profiler or a checker runs it."""
import json
import os
import pathlib
import subprocess
import unittest

BIN = pathlib.Path(os.environ["GRIDCLOCK_BIN"])


def bare(*words, code=0, device="cpu"):
    ran = subprocess.run([BIN / "gridclock-worker", "--bare", "--device", device, *words], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, timeout=60)
    assert ran.returncode == code, f"{words}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran


class Bare(unittest.TestCase):
    def test_says_in_one_line_what_ran(self):
        ran = bare("square", "x=ones:f32[2,3]", "--variant", "naive")
        self.assertRegex(ran.stdout, r"\Asquare/naive on cpu \(.*\), 1 launch; y: f32\[2,3\], checksum [0-9a-f]{16}\n\Z")
        self.assertEqual(ran.stderr, "")

    def test_for_programs(self):
        told = json.loads(bare("softmax", "x=f32[4,8]", "--json", "--repeat", "3").stdout)
        self.assertEqual((told["kernel"], told["device"], told["launches"]), ("softmax", "cpu", 3))
        self.assertEqual([(y["name"], y["spec"]) for y in told["outputs"]], [("y", "f32[4,8]")])

    def test_a_kernel_without_operands(self):
        told = json.loads(bare("spin", "ns=1000", "--json").stdout)
        self.assertEqual((told["launches"], told["outputs"]), (1, []))

    def test_the_seed_is_all_that_values_come_from(self):
        def checksum(*words):
            return json.loads(bare("square", "x=f32[1000]", "--json", *words).stdout)["outputs"][0]["checksum"]

        self.assertEqual(checksum(), checksum("--seed", "0", "--variant", "naive"))
        self.assertNotEqual(checksum(), checksum("--seed", "1"))

    def test_what_is_wrong_is_said(self):
        for words, said in (((), "want a kernel and its inputs as in square x=randn:f32[1024]"),
                            (("sqare", "x=f32[2]"), "no kernel 'sqare'; there are "),
                            (("square",), "kernel 'square': expected inputs ['x']; missing ['x']"),
                            (("square", "x"), "kernel 'square': want NAME=VALUE, got 'x'"),
                            (("square", "z=f32[2]"), "kernel 'square': 'square' has no 'z'; it has x"),
                            (("square", "x=a.npy"), "kernel 'square': x: want GENERATOR:DTYPE[SHAPE] as in randn:f32[1024], "
                                                    "got 'a.npy'"),
                            (("square", "x=f32[2]", "x=f32[2]"), "kernel 'square': x: want one tensor, got two"),
                            (("square", "x=f32[2]", "--variant", "vec4"), "kernel 'square' has no variant 'vec4' on cpu"),
                            (("spin", "ns=-1"), "kernel 'spin': attribute 'ns': want i64 in [0, 600000000000], got -1")):
            self.assertIn(f"gridclock-worker: {said}", bare(*words, code=2).stderr)

    def test_what_cannot_be_had_is_no_mistake_of_the_call(self):
        self.assertIn("8796093022208 bytes", bare("square", "x=f32[1024G]", code=1).stderr)
        self.assertRegex(bare("square", "x=f32[2]", device="cuda:99", code=1).stderr, "cuda:99|built without CUDA")

    def test_its_words_are_for_it_alone(self):
        ran = subprocess.run([BIN / "gridclock-worker", "square", "x=f32[2]"], capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("requires --bare", ran.stdout + ran.stderr)


if __name__ == "__main__":
    unittest.main()
