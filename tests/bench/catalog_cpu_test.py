"""The catalogue beside numpy and PyTorch on the CPU, from times that are told."""
import dataclasses
import importlib.util
import os
import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402: beside this file.
from speed import catalog_cpu, gpu, gpu_catalog  # noqa: E402
from speed.gpu_catalog import Case  # noqa: E402

MUL = Case("mul", (1000,), (), 12000, "torch.mul(x, y, out=out)")


class FakePeer:
    """What takes 300 ns in numpy and 150 in PyTorch, but in the libraries that are missing or fail."""

    def __init__(self, missing=(), failing=()):
        self.missing, self.failing, self.asked = missing, failing, []

    def describe(self, config):
        config.found("numpy", "2.0")

    def ns(self, library, _op, case):
        self.asked.append((library, case.kernel))
        if library in self.failing:
            raise RuntimeError(f"{library} has no memory")
        return None if library in self.missing else {"numpy": 300, "torch": 150}[library]


def timed(ns, flags=()):
    ours = gpu.Nanoseconds(ns)
    ours.flags = flags
    return ours


class CatalogCpu(unittest.TestCase):
    def measured(self, threads, ours=timed(100), case=MUL, rounds=3, **peer):
        with mock.patch.object(catalog_cpu, "our_ns", lambda *_: ours):
            config = bench.Config(pathlib.Path(), rounds=rounds)
            return catalog_cpu.lines_of(config, None, FakePeer(**peer), threads, case)

    def lines(self, threads, **options):
        return {line.name: (line.measured, line.verdict) for line in self.measured(threads, **options)}

    def test_numpy_has_one_thread(self):
        self.assertEqual(self.lines(1), {"cpu.catalog.mul.1000.torch.1": (1.5, "PASS"),
                                         "cpu.catalog.mul.1000.numpy.1": (3, "PASS")})
        self.assertEqual(self.lines(2), {"cpu.catalog.mul.1000.torch.2": (1.5, "PASS")})

    def test_but_where_its_blas_has_more(self):
        product = dataclasses.replace(MUL, kernel="matmul")
        self.assertEqual(list(self.lines(2, case=product)),
                         ["cpu.catalog.matmul.1000.torch.2", "cpu.catalog.matmul.1000.numpy.2"])

    def test_slower_than_either_is_missed(self):
        self.assertEqual({verdict for _, verdict in self.lines(1, ours=timed(400)).values()}, {"FAIL"})

    def test_a_weaker_peer_stands_beside_the_goals(self):
        self.assertEqual({verdict for _, verdict in self.lines(
            2, ours=timed(400), case=dataclasses.replace(MUL, informative=True)).values()}, {"info"})

    def test_a_time_that_is_doubted_meets_no_goal(self):
        line, = self.measured(2, ours=timed(100, ("SUSPECT",)))
        self.assertEqual((line.verdict, line.flags), ("FAIL", ["SUSPECT"]))

    def test_without_a_library_nothing_passes(self):
        self.assertEqual(self.lines(2, missing=("torch",)), {"cpu.catalog.mul.1000.torch.2": (None, "FAIL")})

    def test_a_peer_that_fails_leaves_the_other_its_figure(self):
        torch, numpy = self.measured(1, failing=("torch",), rounds=9)
        self.assertEqual((torch.verdict, torch.skipped), ("FAIL", "torch has no memory"))
        self.assertEqual((numpy.verdict, numpy.samples), ("PASS", [3, 3, 3]))

    def group(self, asked, **config):
        """Of two cases, by a peer that tells who was asked."""
        self.config = bench.Config(pathlib.Path(), rounds=3, **config)
        peer = FakePeer()
        peer.asked = asked
        cases = [MUL, dataclasses.replace(MUL, kernel="scale")]
        with mock.patch.object(catalog_cpu, "Server"), mock.patch.object(catalog_cpu, "Peer") as made, \
                mock.patch.object(catalog_cpu, "our_ns", lambda *_: timed(100)), \
                mock.patch.object(catalog_cpu, "CASES", cases), mock.patch.object(os, "sched_setaffinity"), \
                mock.patch.object(os, "sched_getaffinity", lambda _: {0}):
            made.return_value.__enter__.return_value = peer
            yield from catalog_cpu.measure(self.config)

    def test_a_line_is_told_before_the_next_is_measured(self):
        asked = []
        lines = self.group(asked)
        self.assertEqual(next(lines).name, "cpu.catalog.mul.1000.torch.1")
        self.assertEqual(asked, [("torch", "mul"), ("numpy", "mul")])
        self.assertEqual(len(list(lines)), 3)
        self.assertEqual(self.config.numpy, "2.0")

    def test_versions_of_the_libraries_that_are_there_are_told(self):
        for torch, told in (("2.9.1", "2.9.1"), (None, "")):
            config, peer = bench.Config(pathlib.Path()), catalog_cpu.Peer.__new__(catalog_cpu.Peer)
            peer.versions = {"numpy": "2.3.5", "torch": torch}
            peer.describe(config)
            self.assertEqual((config.numpy, config.pytorch), ("2.3.5", told))

    def test_what_is_known_is_not_measured_again(self):
        known, asked = {line.name: line for line in list(self.group([]))[:2]}, []
        self.assertEqual(len(list(self.group(asked, known=known))), 4)
        self.assertEqual(asked, [("torch", "scale"), ("numpy", "scale")])

    def test_some_rows_alone(self):
        asked = []
        self.assertEqual(len(list(self.group(asked, rows="*.scale.*"))), 2)
        self.assertEqual(asked, [("torch", "scale"), ("numpy", "scale")])

    def test_each_side_has_as_many_cpus_and_gives_them_back(self):
        before, seen = os.sched_getaffinity(0), []

        def server(*_):
            seen.append(len(os.sched_getaffinity(0)))
            return mock.MagicMock()

        with mock.patch.object(catalog_cpu, "Server", server), mock.patch.object(catalog_cpu, "Peer") as peer, \
                mock.patch.object(catalog_cpu, "lines_of", lambda *_: []):
            list(catalog_cpu.measure(bench.Config(pathlib.Path(), rounds=3)))
        self.assertEqual(seen, sorted({1, len(before)}))
        self.assertEqual([call.args[0] for call in peer.call_args_list], seen)
        self.assertEqual(os.sched_getaffinity(0), before)

    def test_no_two_cases_share_a_name(self):
        names = [case.name for case in catalog_cpu.CASES]
        self.assertEqual(len(names), len(set(names)))

    def test_numpy_is_asked_for_what_there_is(self):
        kernels = {".".join(filter(None, (case.kernel, case.note))) for case in catalog_cpu.CASES}
        self.assertLessEqual(set(catalog_cpu.NUMPY), kernels)

    def test_of_all_cases_large_products_of_f16_and_variants_of_gpus_alone_are_left_out(self):
        left_out = {case.name for case in gpu_catalog.CASES} - {case.name for case in catalog_cpu.CASES}
        variants = {case.name for case in gpu_catalog.CASES if "--variant" in case.words}
        self.assertEqual(variants - left_out, {"gpu.catalog.cdist.matmul.8192x128"})
        self.assertEqual(left_out - variants, {f"gpu.catalog.{name}" for name in (
            "adamw.beside_compiled.200tensors", "matmul.4096x4096.f16", "matmul.8192x8192.f16")})


@unittest.skipUnless(importlib.util.find_spec("numpy"), "no numpy")
class Expressions(unittest.TestCase):
    """By the peer itself, of small tensors."""

    def test_every_expression_of_numpy_can_be_called(self):
        with mock.patch.object(catalog_cpu, "calls_of", lambda _: (0, 1)), catalog_cpu.Peer(1) as peer:
            for case in catalog_cpu.CASES:
                op = catalog_cpu.numpy_op(case, 1)
                if op:
                    shape = (64, 65) if case.how == "kernels" else tuple(min(n, 64) for n in case.shape)
                    self.assertGreater(peer.ns("numpy", op, dataclasses.replace(case, shape=shape)), 0, case.name)


if __name__ == "__main__":
    unittest.main()
