"""What is made of the rows that the GPU's tests print: by programs that only print."""
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402: beside this file.
from speed import gpu_faults, gpu_truth  # noqa: E402

SPAN = "{:12.0f} {:14.3f} {:10.0f} {:10.0f}         12.100         32         10.600        -46       12.700 {}\n"
FAULT = "{:<16} {:3d} rounds  answer {:6.3f} s (goal 1)  next kernel {:6.3f} s (goal 2)  {:d} wrong\n"
OTHERS = "calls on cuda:1 beside {}: {:d} good, {:d} bad, the slowest {:.6f} s later than without\n"


class Rows(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.config = bench.Config(self.folder, rounds=2)
        for group in (gpu_faults, gpu_truth):
            self.enterContext(mock.patch.object(group, "gpu_server"))
        self.enterContext(mock.patch("speed.gpu.describe"))

    def program(self, name, prints):
        (self.folder / "said").write_text(prints)
        (self.folder / name).write_text(f"#!/bin/sh\ncat {self.folder}/said\nexit 1\n")
        (self.folder / name).chmod(0o755)

    def test_a_span_is_held_against_what_is_allowed_in_each_round(self):
        spans = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]
        self.program("cuda_device_test", "constant of device time 570 ns\n" +
                     "".join(SPAN.format(span, span + 0.57, 0, 300, "PASS") for span in spans) +
                     SPAN.format(10000, 10010, -75000, 50000, "FAIL"))
        lines = gpu_truth.measure(self.config)
        self.assertEqual([line.verdict for line in lines], 10 * ["PASS"] + ["FAIL"])
        self.assertEqual(lines[-1].samples, [1.5, 1.5])
        self.assertEqual({key: values[0] for key, values in lines[0].extra.items()},
                         {"device_us": 5.57, "off_ns": 0, "isolated_off_ns": 32, "slope_off_ns": -46, "event_pair_us": 12.7})

    def test_a_span_that_is_missing_is_no_figure(self):
        self.program("cuda_device_test", SPAN.format(5, 5.6, 0, 300, "PASS"))
        self.assertEqual([line.verdict for line in gpu_truth.measure(self.config)], ["FAIL"])

    def faults(self, *rows, after=""):
        self.program("server_gpu_test", "".join(FAULT.format(*row) for row in rows) + after)
        return {line.name: line for line in gpu_faults.measure(self.config)}

    def test_each_fault_has_two_figures(self):
        lines = self.faults(("illegal_address", 25, 0.146, 2.5, 0), ("endless", 25, 0.256, 0.585, 0))
        self.assertEqual(lines["gpu.fault.illegal_address.answer"].verdict, "PASS")
        self.assertEqual(lines["gpu.fault.illegal_address.next"].verdict, "FAIL")
        self.assertEqual(lines["gpu.fault.endless.next"].samples, [0.585])
        self.assertEqual(lines["gpu.fault.assert.answer"].verdict, "FAIL")

    def test_a_quick_answer_with_another_code_is_no_figure(self):
        line = self.faults(("assert", 25, 0.1, 0.1, 25))["gpu.fault.assert.answer"]
        self.assertEqual((line.verdict, line.skipped), ("FAIL", "25 of 25 rounds went wrong"))

    def test_too_few_rounds_and_one_gpu_are_said(self):
        lines = self.faults(("assert", 5, 0.1, 0.1, 0))
        self.assertIn("got 5", lines["gpu.fault.assert.answer"].skipped)
        self.assertEqual(lines["gpu.fault.assert.others"].verdict, "----")

    def test_others_must_not_notice_any_fault(self):
        after = (OTHERS.format("illegal_address", 4288, 1, -0.001) + OTHERS.format("assert", 4288, 0, 0.2) +
                 OTHERS.format("endless", 4288, 0, 0.01))
        verdicts = {name: line.verdict for name, line in self.faults(after=after).items()}
        self.assertEqual([verdicts[f"gpu.fault.{kind}"] for kind in (
            "illegal_address.others", "illegal_address.late", "assert.others", "assert.late", "endless.others", "endless.late",
            "trap.others", "trap.late")], ["FAIL", "PASS", "PASS", "FAIL", "PASS", "PASS", "FAIL", "FAIL"])



if __name__ == "__main__":
    unittest.main()
