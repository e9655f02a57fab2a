"""What tests/gpu/test.py makes of the programs that it runs: here, of programs that only print."""
import contextlib
import importlib.util
import io
import os
import pathlib
import re
import tempfile
import unittest
from unittest import mock

REPO = pathlib.Path(__file__).resolve().parents[2]
CATALOG = REPO / "kernels/catalog"
PASSED = "[  PASSED  ] 3 tests.\n"
CLEAN = "========= ERROR SUMMARY: 0 errors\n"


def load(path):
    spec = importlib.util.spec_from_file_location("gpu_table", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gpu_test = load(REPO / "tests/gpu/test.py")


def skipped(reason):
    return f"tests/gpu/cuda_timing_test.cc:99: Skipped\n{reason}\n\n[  SKIPPED ] CudaTiming.X (0 ms)\n"


def with_includes(path, seen):
    """The text of a kernel's file and of what it includes of the catalogue."""
    if path in seen:
        return ""
    seen.add(path)
    text = path.read_text()
    included = re.findall(r'#include "(kernels/catalog/[^"]+)"', text)
    return text + "".join(with_includes(REPO / name, seen) for name in included)


class GpuTable(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.dict(os.environ, {"PATH": f"{self.folder}:{os.environ['PATH']}"}))
        self.table = gpu_test.Table()

    def program(self, name, prints):
        (self.folder / "said").write_text(prints)
        (self.folder / name).write_text(f"#!/bin/sh\ncat {self.folder}/said\n")
        (self.folder / name).chmod(0o755)
        return self.folder / name

    def shown(self, call, *args):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            call(self.table, *args)
        return out.getvalue()

    def run_program(self, name, prints):
        return self.shown(gpu_test.run_program, name, self.program("cuda_device_test", prints), 10)

    def sanitize(self, tool, launched):
        lines = "".join(f"launched {name} {n}\n" for name, n in launched.items())
        self.program("compute-sanitizer", lines + PASSED + CLEAN)
        return self.shown(gpu_test.sanitize, "conformance_cuda_test", tool, 2, 10)

    def test_a_skip_that_is_listed_passes(self):
        shown = self.run_program("device", skipped("pids are hidden here: sharing is unknown") + PASSED)
        self.assertFalse(self.table.failed, shown)
        self.assertIn("skipped 1: pids are hidden here", shown)

    def test_a_test_that_had_no_cupti_fails(self):
        shown = self.run_program("device", skipped("no CUPTI here: no CUPTI: not found") + PASSED)
        self.assertTrue(self.table.failed)
        self.assertIn("1 that must not", shown)
        self.assertIn("skipped 1 and must not be: no CUPTI here", shown)

    def test_a_program_that_only_skips_fails(self):
        self.run_program("conformance", skipped("no GPU here"))
        self.assertTrue(self.table.failed)

    def test_a_variant_without_a_launch_fails(self):
        shown = self.sanitize("memcheck", {"square.naive": 4, "square.vec4": 0})
        self.assertTrue(self.table.failed)
        self.assertIn("never: square.vec4", shown)

    def test_racecheck_wants_those_with_shared_memory_alone(self):
        shown = self.sanitize("racecheck", {"square.vec4": 0, "sum.two_pass": 4})
        self.assertFalse(self.table.failed, shown)
        self.sanitize("racecheck", {"square.vec4": 0, "sum.two_pass": 4, "matmul_bias_gelu.tiled": 0})
        self.assertTrue(self.table.failed)

    def test_racecheck_takes_all_kernels_with_shared_memory(self):
        shared = [path.stem for path in sorted(CATALOG.glob("*.cu"))
                  if re.search(r"__shared__|cub::", with_includes(path, set()))]
        self.assertGreater(len(shared), 10)
        self.assertEqual([name for name in shared if not name.startswith(tuple(gpu_test.SHARED))], [])


if __name__ == "__main__":
    unittest.main()
