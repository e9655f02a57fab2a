"""A run of the benchmarks that is cut off keeps its figures, and the next one goes on with them."""
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402: beside this file.
from speed.line import Line  # noqa: E402


class CutOff(BaseException):
    pass


class Resume(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.out = folder / "bench.json"
        self.fails = None
        self.measured, self.ends, self.device, self.pytorch = [], True, "a GPU", "2.0"
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "gridclock-worker").write_text("one")
        (self.bin / "some_unit_test").write_text("one")
        self.enterContext(mock.patch.object(bench.importlib, "import_module", self.group))
        self.enterContext(mock.patch.object(bench, "libraries", dict))
        self.cpu = self.enterContext(mock.patch.object(bench, "cpu_model", return_value="a CPU"))
        self.enterContext(mock.patch.dict(os.environ, {"GRIDCLOCK_REVISION": "abc"}))

    def group(self, name):
        """Two lines; without `ends` it is cut off between them."""
        def measure(config):
            config.found("device", self.device)
            if name == "speed.gpu_one":
                config.found("pytorch", self.pytorch)
            for part in ("a", "b"):
                line = config.known.get(f"{name}.{part}")
                if line is None:
                    line = Line(f"{name}.{part}", "a figure", ">=", 1, samples=[2.0])
                    self.measured.append(line.name)
                yield line
                if self.fails and name == "speed.gpu_one":
                    raise self.fails
                if not self.ends and name == "speed.gpu_two":
                    raise CutOff
        return types.SimpleNamespace(measure=measure)

    def run_bench(self, *options, only="gpu_one,gpu_two"):
        words = ["bench.py", "--bin", str(self.bin), "--only", only, "--out", str(self.out), *options]
        with mock.patch.object(sys, "argv", words), contextlib.redirect_stdout(io.StringIO()), \
             contextlib.redirect_stderr(io.StringIO()):
            return bench.main(("gpu_one", "gpu_two"), 1)

    def held(self):
        data = json.loads(self.out.read_text())
        return data["groups"], [line["name"] for line in data["lines"]]

    def cut_off(self):
        self.ends = False
        with self.assertRaises(CutOff):
            self.run_bench()
        self.ends = True
        self.measured.clear()

    def test_what_was_measured_is_kept(self):
        self.cut_off()
        self.assertEqual(self.held(), (["gpu_one"], ["speed.gpu_one.a", "speed.gpu_one.b", "speed.gpu_two.a"]))

    def test_the_next_run_measures_the_rest(self):
        self.cut_off()
        self.assertEqual(self.run_bench("--resume", "--check"), 0)
        self.assertEqual(self.measured, ["speed.gpu_two.b"])
        self.assertEqual(self.held(), (["gpu_one", "gpu_two"],
                                       ["speed.gpu_one.a", "speed.gpu_one.b", "speed.gpu_two.a", "speed.gpu_two.b"]))

    def test_a_group_that_fails_is_missed_and_the_next_is_measured(self):
        self.fails = KeyError("no GPU here")
        self.assertEqual(self.run_bench(), 1)
        self.assertEqual(self.held(), (["gpu_two"], ["speed.gpu_one.a", "gpu_one.whole", "speed.gpu_two.a", "speed.gpu_two.b"]))
        missed = json.loads(self.out.read_text())["lines"][1]
        self.assertEqual((missed["verdict"], missed["skipped"]), ("FAIL", "KeyError: 'no GPU here'"))
        self.fails = None
        self.assertEqual(self.run_bench("--resume", "--check"), 0)

    def test_without_resume_all_is_measured_again(self):
        self.cut_off()
        self.run_bench()
        self.assertEqual(len(self.measured), 4)

    def test_figures_of_another_commit_rounds_or_gpu_are_not_mixed(self):
        self.cut_off()
        with mock.patch.dict(os.environ, {"GRIDCLOCK_REVISION": "def"}), self.assertRaises(SystemExit):
            self.run_bench("--resume")
        with self.assertRaises(SystemExit):
            self.run_bench("--resume", "--rounds", "2")
        (self.bin / "some_unit_test").write_text("two")
        (self.bin / "gridclock-worker").write_text("two")
        with self.assertRaises(SystemExit):
            self.run_bench("--resume")
        (self.bin / "gridclock-worker").write_text("one")
        self.device = "another GPU"
        with self.assertRaisesRegex(bench.Mixed, "figures of a GPU: this is another GPU"):
            self.run_bench("--resume")
        self.device = "a GPU"
        self.cpu.return_value = "another CPU"
        with self.assertRaises(SystemExit):
            self.run_bench("--resume")
        self.cpu.return_value = "a CPU"
        self.run_bench("--resume")
        self.assertEqual(self.measured, ["speed.gpu_two.b"])

    def test_figures_beside_another_pytorch_are_not_mixed(self):
        self.run_bench(only="gpu_two")
        self.run_bench("--resume", only="gpu_two,gpu_one")
        self.pytorch = "3.0"
        data = json.loads(self.out.read_text())
        self.assertEqual((data["device"], data["pytorch"]), ("a GPU", "2.0"))
        self.out.write_text(json.dumps({**data, "groups": ["gpu_two"]}))
        with self.assertRaisesRegex(bench.Mixed, "figures of 2.0: this is 3.0"):
            self.run_bench("--resume", only="gpu_two,gpu_one")

    def test_a_part_of_a_group_does_not_count_as_the_group(self):
        self.run_bench("--rows", "*.a")
        self.assertEqual(self.held()[0], [])


if __name__ == "__main__":
    unittest.main()
