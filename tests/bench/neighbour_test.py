"""What is made of the rows of a late neighbour: by a program that only prints."""
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402: beside this file.
from speed import gpu_neighbour  # noqa: E402

ROW = "late neighbour, round {} of {}: SUSPECT {}, {} of {} samples alone; without it {} of {} SUSPECT\n"
GOOD = [(turn, 5, 1, 80, 100, 0, 2) for turn in range(1, 6)]


class Neighbour(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.object(gpu_neighbour, "gpu_server"))
        self.enterContext(mock.patch("speed.gpu.describe"))

    code = 0

    def measured(self, *rows, more=""):
        (self.folder / "said").write_text("".join(ROW.format(*row) for row in rows) + more)
        program = self.folder / "server_gpu_test"
        program.write_text(f'#!/bin/sh\necho "$GRIDCLOCK_GPU_ROUNDS $1" >{self.folder}/asked\ncat {self.folder}/said\nexit {self.code}\n')
        program.chmod(0o755)
        lines = gpu_neighbour.measure(bench.Config(self.folder))
        self.assertEqual(bench.untold(("gpu_neighbour",), lines), [])
        return lines

    def test_each_round_counts(self):
        beside, alone, failed = self.measured(*GOOD)
        self.assertEqual((beside.name, beside.measured, beside.verdict), ("gpu.suspect.neighbour", 1, "PASS"))
        self.assertEqual((alone.name, alone.measured, alone.verdict), ("gpu.suspect.neighbour.alone", 0, "PASS"))
        self.assertEqual((beside.rounds, failed.verdict), (5, "PASS"))
        self.assertEqual((beside.extra, alone.extra), ({"alone": [[0.8] * 5]}, {"results": [10]}))
        self.assertEqual((self.folder / "asked").read_text(),
                         "5 --gtest_filter=LateNeighbourTest.G12_AMedianFromBeforeTheOtherProcessIsSuspect\n")

    def test_one_result_that_says_nothing_fails(self):
        beside, alone, _ = self.measured(*GOOD[:4], (5, 5, 0, 80, 100, 0, 2))
        self.assertEqual((beside.measured, beside.verdict, alone.verdict), (0.8, "FAIL", "PASS"))

    def test_one_that_is_suspect_alone_fails(self):
        beside, alone, _ = self.measured((1, 5, 1, 80, 100, 1, 2), *GOOD[1:])
        self.assertEqual((beside.verdict, alone.measured, alone.verdict), ("PASS", 1, "FAIL"))

    def test_a_test_that_fails_otherwise_is_missed(self):
        self.code = 1
        self.assertEqual([line.verdict for line in self.measured(*GOOD)], ["PASS", "PASS", "FAIL"])

    def test_a_skip_and_too_few_rounds_are_no_figures(self):
        for rows, more, got in (((), "Skipped\ntoo little memory\n", 0), (GOOD[:3], "", 3), ([(1, 1, 1, 80, 100, 0, 2)], "", 1)):
            for line in self.measured(*rows, more=more)[:2]:
                self.assertEqual((line.samples, line.verdict, line.skipped), ([], "FAIL", f"want 5 rounds, got {got}"))


if __name__ == "__main__":
    unittest.main()
