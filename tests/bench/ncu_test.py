"""What is made of ncu's output, and of an ncu that tells nothing: by programs that only print."""
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402: beside this file.
from speed import gpu, gpu_ncu  # noqa: E402

HEAD = '"ID","Process ID","Host Name","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"'
ROW = '"{}","7","here","MapPacks","Command line profiler metrics","gpu__time_duration.sum","{}","{}"'


def said(times, unit="ns"):
    rows = [ROW.format(i, unit, time) for i, time in enumerate(times)]
    return "\n".join(["==PROF== Connected to process 7", "square/vec4 on cuda:0 (NVIDIA H200), 40 launches", HEAD, *rows,
                      "==PROF== Disconnected from process 7", ""])


class Ncu(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.config = bench.Config(self.folder, rounds=1)
        self.server = self.enterContext(mock.patch.object(gpu_ncu, "gpu_server"))
        self.enterContext(mock.patch.object(gpu_ncu, "describe"))

    def ncu(self, prints, code=0):
        program = self.folder / "ncu"
        (self.folder / "said").write_text(prints)
        program.write_text(f"#!/bin/sh\ncat {self.folder}/said\nexit {code}\n")
        program.chmod(0o755)
        self.enterContext(mock.patch.object(gpu_ncu, "find_ncu", lambda: program))

    def measure(self, ours=2000):
        with mock.patch.object(gpu, "median_ns", lambda *_: gpu.Nanoseconds(ours)):
            return gpu_ncu.measure(self.config)

    def test_the_median_is_held_against_ours(self):
        self.ncu(said(["2,600", "9,000,000", *["2,600"] * 28]))
        lines = self.measure()
        self.assertEqual([line.verdict for line in lines], ["PASS"] * len(gpu_ncu.goals()))
        self.assertAlmostEqual(lines[0].measured, 600 / 1500)
        self.assertEqual(lines[0].extra, {"device_us": [2], "ncu_us": [2.6], "worst": [0.4]})

    def test_the_worst_round_is_told_and_long_kernels_have_fewer(self):
        self.ncu(said(["2,000"] * 30))
        self.config.rounds = 4
        times = {name: [2000, 2000, 3500, 2000] for name in gpu_ncu.TARGETS} | {name: [2000] * 3 for name in gpu_ncu.LONG}
        names = {target: name for name, target in {**gpu_ncu.TARGETS, **gpu_ncu.LONG}.items()}
        with mock.patch.object(gpu, "median_ns", lambda _config, _server, kernel, *words:
                               gpu.Nanoseconds(times[names[kernel, words]].pop(0))):
            lines = {line.name.removeprefix("gpu.ncu."): line for line in gpu_ncu.measure(self.config)}
        self.assertEqual(set(map(len, times.values())), {0})
        self.assertEqual((lines["1000"].measured, lines["1000"].extra["worst"]), (0, [1]))
        self.assertEqual((lines["1500000000"].samples, lines["1500000000"].verdict), ([0, 0, 0], "PASS"))

    def test_short_ones_are_to_be_off_by_the_same(self):
        self.ncu(said(["2,000"] * 30))
        self.config.rounds = 3
        for of_serial, verdict in ((1300, "PASS"), (1201, "PASS"), (1199, "FAIL"), (2301, "FAIL")):
            def ours(_config, _server, _kernel, *words, ns=of_serial):
                return gpu.Nanoseconds({"16000000": ns, "1000": 1700}.get(words[0][12:-1], 1500))
            with mock.patch.object(gpu, "median_ns", ours):
                line = gpu_ncu.measure(self.config)[-1]
            self.assertEqual((line.name, line.verdict, len(line.samples)), ("gpu.ncu.apart", verdict, 3), of_serial)

    def test_what_is_too_far_fails(self):
        self.ncu(said(["510,000"] * 30))
        self.assertEqual(self.measure(ours=500_000)[0].verdict, "FAIL")
        self.assertEqual(self.measure(ours=506_000)[0].verdict, "PASS")

    def test_what_cannot_be_told_is_no_pass_and_says_why(self):
        for prints, code, why in (
                ("==PROF== x\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", 1, "ERR_NVGPUCTRPERM"),
                ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded\n", 9, "LibraryNotLoaded"),
                ("", 1, "it said nothing"),
                (said(["1,800"] * 29), 0, "want 30 launches, got 29"),
                (said(["1.8"] * 30, unit="us"), 0, "in ns, got us")):
            self.ncu(prints, code)
            for line in self.measure():
                self.assertEqual(line.verdict, "FAIL")
                self.assertIn(why, line.text())

    def test_without_ncu(self):
        with mock.patch.object(gpu_ncu.shutil, "which", lambda *_, **__: None):
            self.assertEqual({(line.verdict, line.skipped) for line in self.measure()}, {("FAIL", "no ncu")})


if __name__ == "__main__":
    unittest.main()
