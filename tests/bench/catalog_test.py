"""The table of the catalogue's figures, from times that are told to it."""
import dataclasses
import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402: beside this file.
from speed import gpu, gpu_catalog  # noqa: E402
from speed.gpu_catalog import Case  # noqa: E402


class FakeTorch:
    """A copy of 1 GB/s beside which every other call takes `ns`."""

    def __init__(self, ns, missing=""):
        self.times, self.missing = ns, missing

    def ns(self, op, shape, compiled=False, **_):
        return shape[0] * 8 if op == "copy" else self.times / (2 if compiled else 1)


CASE = Case("twice", (1000, 1000), (), 8_000_000, "x + x", part=0.5)


class Catalog(unittest.TestCase):
    def lines(self, case, ours, theirs, missing="", rounds=1, flags=()):
        measured = {"flags": [*flags], "timing": {"statistics": {"median_ns": ours}}}
        table = gpu_catalog.Table(FakeTorch(theirs, missing))
        for _ in range(rounds):
            table.begin_round()
            table.add(case, gpu.median_of(measured))
            table.end_round()
        return table.lines

    def test_a_kernel_is_held_against_its_peer_and_against_a_copy(self):
        lines = self.lines(CASE, 10e6, 30e6, rounds=2)
        self.assertEqual(lines["gpu.catalog.twice.1000x1000.torch"].samples, [3, 3])
        self.assertEqual(lines["gpu.catalog.twice.1000x1000.copy"].samples, [0.8, 0.8])
        self.assertAlmostEqual(lines["gpu.catalog.gain"].measured, 3)

    def test_a_peer_near_the_floor_leaves_nothing_to_gain(self):
        self.assertNotIn("gpu.catalog.gain", self.lines(CASE, 8e6, 9e6))

    def test_a_weaker_peer_stands_beside_the_goals(self):
        lines = self.lines(dataclasses.replace(CASE, part=0, informative=True), 10e6, 30e6)
        self.assertEqual([(name, line.verdict) for name, line in lines.items()],
                         [("gpu.catalog.twice.1000x1000.torch", "info")])

    def test_slower_than_the_peer_is_missed(self):
        lines = self.lines(CASE, 10e6, 9e6)
        self.assertEqual(lines["gpu.catalog.twice.1000x1000.torch"].verdict, "FAIL")

    def test_without_pytorch_nothing_passes(self):
        lines = self.lines(CASE, 10e6, 0, missing="no PyTorch")
        self.assertEqual({line.verdict for line in lines.values()}, {"FAIL"})

    def test_a_time_that_is_doubted_meets_no_goal(self):
        lines = self.lines(CASE, 10e6, 30e6, flags=["NOISY", "SUSPECT", "SHARED_DEVICE"])
        line = lines["gpu.catalog.twice.1000x1000.torch"]
        self.assertEqual((line.verdict, line.flags), ("FAIL", ["SUSPECT"]))
        self.assertIn("[SUSPECT]", line.text())

    def test_a_clock_that_was_lowered_is_told(self):
        line = self.lines(CASE, 10e6, 30e6, flags=["THROTTLED"])["gpu.catalog.twice.1000x1000.torch"]
        self.assertEqual((line.verdict, line.flags), ("PASS", ["THROTTLED"]))

    def test_no_two_cases_share_a_name(self):
        names = [case.name for case in gpu_catalog.CASES]
        self.assertEqual(len(names), len(set(names)))

    def test_a_round_asks_for_each_case_once(self):
        asked = []

        def ask(_config, _server, kernel, *_words, **_options):
            asked.append(kernel)
            return gpu.Nanoseconds(1e6)

        with mock.patch.object(gpu_catalog, "gpu_server"), mock.patch.object(gpu_catalog.gpu, "describe"), \
             mock.patch.object(gpu_catalog, "Torch") as torch, mock.patch.object(gpu_catalog, "median_ns", ask):
            torch.return_value.__enter__.return_value = FakeTorch(2e6)
            gpu_catalog.measure(bench.Config(pathlib.Path(), rounds=1))
        self.assertEqual(asked, [case.kernel for case in gpu_catalog.CASES])


if __name__ == "__main__":
    unittest.main()
