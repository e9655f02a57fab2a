"""The catalogue beside numpy and PyTorch on the CPU, from times that are told."""
import os
import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402: beside this file.
from speed import catalog_cpu  # noqa: E402
from speed.gpu_catalog import Case  # noqa: E402

MUL = Case("mul", (1000,), (), 12000, "torch.mul(x, y, out=out)")


class FakePeer:
    """What takes 300 ns in numpy and 150 in PyTorch; without the libraries that are missing."""

    def __init__(self, missing=()):
        self.missing = missing

    def ns(self, library, _op, _case):
        return None if library in self.missing else {"numpy": 300, "torch": 150}[library]


class CatalogCpu(unittest.TestCase):
    def lines(self, threads, ours=100, missing=()):
        lines = {}
        with mock.patch.object(catalog_cpu, "our_ns", lambda *_: ours):
            catalog_cpu.measure_case(None, None, FakePeer(missing), threads, MUL, lines)
        return {name: (line.measured, line.verdict) for name, line in lines.items()}

    def test_numpy_has_one_thread(self):
        self.assertEqual(self.lines(1), {"cpu.catalog.mul.1000.torch.1": (1.5, "PASS"),
                                         "cpu.catalog.mul.1000.numpy.1": (3, "PASS")})
        self.assertEqual(self.lines(2), {"cpu.catalog.mul.1000.torch.2": (1.5, "PASS")})

    def test_slower_than_either_is_missed(self):
        self.assertEqual({verdict for _, verdict in self.lines(1, ours=400).values()}, {"FAIL"})

    def test_without_a_library_nothing_passes(self):
        self.assertEqual(self.lines(2, missing=("torch",)), {"cpu.catalog.mul.1000.torch.2": (None, "FAIL")})

    def test_each_side_has_as_many_cpus_and_gives_them_back(self):
        before, seen = os.sched_getaffinity(0), []

        def server(*_):
            seen.append(len(os.sched_getaffinity(0)))
            return mock.MagicMock()

        with mock.patch.object(catalog_cpu, "Server", server), mock.patch.object(catalog_cpu, "Peer") as peer, \
                mock.patch.object(catalog_cpu, "measure_case"):
            catalog_cpu.measure(bench.Config(pathlib.Path(), rounds=3))
        self.assertEqual(seen, sorted({1, len(before)}))
        self.assertEqual([call.args[0] for call in peer.call_args_list], seen)
        self.assertEqual(os.sched_getaffinity(0), before)

    def test_no_two_cases_share_a_name(self):
        names = [case.name for case in catalog_cpu.CASES]
        self.assertEqual(len(names), len(set(names)))

    def test_numpy_is_asked_for_what_there_is(self):
        kernels = {".".join(filter(None, (case.kernel, case.note))) for case in catalog_cpu.CASES}
        self.assertLessEqual(set(catalog_cpu.NUMPY), kernels)


if __name__ == "__main__":
    unittest.main()
