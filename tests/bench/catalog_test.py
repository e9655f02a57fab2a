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

    def __init__(self, ns, missing="", slope=None):
        self.times, self.missing, self.slope, self.asked = ns, missing, slope, []

    def ask(self, op, shape, how="device", compiled=False, warm=0, **_):
        self.asked.append((op, how, warm))
        if op == "copy":
            return {"ns": shape[0] * 8}
        if isinstance(self.times, Exception):
            raise self.times
        return {"ns": self.slope if how == "slope" else self.times / (2 if compiled else 1), "sm_mhz": 1700}

    def ns(self, op, shape, **options):
        return self.ask(op, shape, **options)["ns"]


CASE = Case("twice", (1000, 1000), (), 8_000_000, "x + x", part=0.5)


class Catalog(unittest.TestCase):
    def lines(self, case, ours, theirs, missing="", rounds=1, flags=(), slopes=(None, None)):
        def ask(_, method):
            ns = slopes[0] if method == "back_to_back" else ours
            return gpu.median_of({"flags": [*flags], "timing": {"statistics": {"median_ns": ns},
                                                                "after": {"sm_clock_hz": 1.9e9}}})
        self.torch = FakeTorch(theirs, missing, slopes[1])
        lines = {line.name: line for line in gpu_catalog.Table(self.torch, ask).lines_of(case, rounds)}
        with mock.patch.object(gpu_catalog, "CASES", [case]):
            self.gain = gpu_catalog.gain(lines, rounds)
        return lines

    def test_a_kernel_is_held_against_its_peer_and_against_a_copy(self):
        lines = self.lines(CASE, 10e6, 30e6, rounds=2)
        self.assertEqual(lines["gpu.catalog.twice.1000x1000.torch"].samples, [3, 3])
        self.assertEqual(lines["gpu.catalog.twice.1000x1000.copy"].samples, [0.8, 0.8])
        self.assertAlmostEqual(self.gain.measured, 3)
        self.assertEqual(list(lines), CASE.names)

    def test_of_two_methods_the_lesser_ratio_counts(self):
        lines = self.lines(dataclasses.replace(CASE, slope=True), 10e6, 11e6, slopes=(10e6, 9e6))
        line = lines["gpu.catalog.twice.1000x1000.torch"]
        self.assertEqual((line.samples, line.extra["torch_slope_us"]), ([0.9], [9e3]))
        lines = self.lines(dataclasses.replace(CASE, slope=True), 10e6, 9e6, slopes=(10e6, 11e6))
        self.assertEqual(lines["gpu.catalog.twice.1000x1000.torch"].samples, [0.9])

    def test_where_arithmetic_draws_power_the_peer_is_warm_and_clocks_are_told(self):
        lines = self.lines(dataclasses.replace(CASE, flops=1), 10e6, 11e6)
        self.assertIn(("x + x", "device", gpu_catalog.WARM), self.torch.asked)
        extra = lines["gpu.catalog.twice.1000x1000.torch"].extra
        self.assertEqual((extra["ours_mhz"], extra["torch_mhz"]), ([1900], [1700]))

    def test_a_peer_near_the_floor_leaves_nothing_to_gain(self):
        self.lines(CASE, 8e6, 9e6)
        self.assertEqual(self.gain.samples, [])

    def test_a_gain_has_the_flags_of_its_parts(self):
        self.lines(CASE, 10e6, 30e6, flags=["SUSPECT"])
        self.assertEqual((self.gain.flags, self.gain.verdict), (["SUSPECT"], "FAIL"))

    def test_a_mean_of_what_was_measured_is_no_mean(self):
        found = self.lines(CASE, 10e6, 30e6)
        other = dataclasses.replace(CASE, kernel="thrice")
        lost = self.lines(other, 10e6, RuntimeError("out of memory"))
        beside = dataclasses.replace(CASE, kernel="weak", informative=True)
        weak = self.lines(beside, 10e6, RuntimeError("out of memory"))
        for cases, verdict, skipped in (((CASE, other), "FAIL", "1 of 2 rows were not measured"), ((CASE, beside), "PASS", "")):
            with mock.patch.object(gpu_catalog, "CASES", cases):
                gain = gpu_catalog.gain({**found, **lost, **weak}, 1)
            self.assertEqual((gain.verdict, gain.skipped), (verdict, skipped))

    def test_a_weaker_peer_stands_beside_the_goals(self):
        lines = self.lines(dataclasses.replace(CASE, part=0, informative=True), 10e6, 30e6)
        self.assertEqual([(name, line.verdict) for name, line in lines.items()],
                         [("gpu.catalog.twice.1000x1000.torch", "info")])
        self.assertEqual(self.gain.samples, [])

    def test_what_is_no_default_is_no_part_of_what_is_gained(self):
        self.lines(dataclasses.replace(CASE, words=("--variant", "other")), 10e6, 30e6)
        self.assertEqual(self.gain.samples, [])

    def test_slower_than_the_peer_is_missed(self):
        lines = self.lines(CASE, 10e6, 9e6)
        self.assertEqual(lines["gpu.catalog.twice.1000x1000.torch"].verdict, "FAIL")

    def test_what_cannot_be_measured_is_missed_and_says_why(self):
        for lines in (self.lines(CASE, 10e6, 0, missing="no PyTorch"), self.lines(CASE, 10e6, RuntimeError("no PyTorch"))):
            self.assertEqual({(line.verdict, line.skipped) for line in lines.values()}, {("FAIL", "no PyTorch")})

    def test_a_time_that_is_doubted_meets_no_goal(self):
        lines = self.lines(CASE, 10e6, 30e6, flags=["NOISY", "SUSPECT", "SHARED_DEVICE"])
        line = lines["gpu.catalog.twice.1000x1000.torch"]
        self.assertEqual((line.verdict, line.flags), ("FAIL", ["SUSPECT", "NOISY"]))
        self.assertIn("[SUSPECT", line.text())

    def test_a_clock_that_was_lowered_is_told(self):
        line = self.lines(CASE, 10e6, 30e6, flags=["THROTTLED"])["gpu.catalog.twice.1000x1000.torch"]
        self.assertEqual((line.verdict, line.flags), ("PASS", ["THROTTLED"]))

    def test_no_two_cases_share_a_name(self):
        names = [case.name for case in gpu_catalog.CASES]
        self.assertEqual(len(names), len(set(names)))

    def measure(self, asked, **config):
        """Of two cases; `asked` gets those that were measured."""
        def ask(_config, _server, kernel, *_words, **_options):
            asked.append(kernel)
            return gpu.Nanoseconds(1e6)

        cases = [dataclasses.replace(CASE, part=0), dataclasses.replace(CASE, part=0, kernel="thrice")]
        with mock.patch.object(gpu_catalog, "gpu_server"), mock.patch.object(gpu_catalog.gpu, "describe"), \
             mock.patch.object(gpu_catalog, "Torch") as torch, mock.patch.object(gpu_catalog, "median_ns", ask), \
             mock.patch.object(gpu_catalog, "CASES", cases):
            torch.return_value.__enter__.return_value = FakeTorch(20e6)
            yield from gpu_catalog.measure(bench.Config(pathlib.Path(), rounds=2, **config))

    def test_a_line_is_told_before_the_next_is_measured(self):
        asked = []
        lines = self.measure(asked)
        self.assertEqual(next(lines).name, "gpu.catalog.twice.1000x1000.torch")
        self.assertEqual(asked, ["twice", "twice"])
        self.assertEqual([line.name for line in lines], ["gpu.catalog.thrice.1000x1000.torch", "gpu.catalog.gain"])
        self.assertEqual(asked, ["twice", "twice", "thrice", "thrice"])

    def test_what_is_known_is_not_measured_again(self):
        asked = []
        first = next(self.measure([]))
        lines = list(self.measure(asked, known={first.name: first}))
        self.assertEqual(asked, ["thrice", "thrice"])
        self.assertEqual((lines[0], len(lines)), (first, 3))

    def test_some_rows_alone_and_then_no_gain(self):
        asked = []
        lines = list(self.measure(asked, rows="*.twice.*"))
        self.assertEqual(([line.name for line in lines], asked), (["gpu.catalog.twice.1000x1000.torch"], ["twice", "twice"]))



if __name__ == "__main__":
    unittest.main()
