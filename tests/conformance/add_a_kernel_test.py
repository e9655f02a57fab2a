"""A server whose catalogue has one file more, that of docs/add-a-kernel.md: the file alone makes it known."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests/support"))
from server import Server  # noqa: E402

BIN = pathlib.Path(os.environ["GRIDCLOCK_BIN"])


class AddAKernel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(BIN, f"--worker={BIN / 'gridclock-grown-worker'}"))

    def cli(self, *args):
        environment = dict(os.environ, GRIDCLOCK_SERVER=self.server.grpc)
        return subprocess.run([BIN / "gridclock", *args], env=environment, capture_output=True, text=True, timeout=120)

    def assert_says(self, args, *words):
        done = self.cli(*args)
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in words:
            self.assertIn(word, done.stdout)

    def test_it_is_listed_beside_the_others(self):
        self.assert_says(["list"], "relu6_of_page", "softmax")
        self.assert_says(["describe", "relu6_of_page"], "x: T[*]", "y = min(max(x, 0), 6)", "simd")

    def test_its_results_hold_against_its_reference(self):
        self.assert_says(["run", "relu6_of_page", "x=arange:f32[9]", "--verify"], "[0, 1, 2, ..., 6, 6, 6]",
                         "verified 9 of 9 values")

    def test_its_words_refuse_what_does_not_fit(self):
        done = self.cli("run", "relu6_of_page", "x=zeros:i32[4]")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("want T in {f64, f32, f16, bf16}", done.stderr)

    def test_it_is_timed(self):
        self.assert_says(["bench", "relu6_of_page", "--shape", "*=4096"], "relu6_of_page", "GB/s")


class ThePageOfAllKernels(unittest.TestCase):
    def setUp(self):
        self.committed = (REPO / "docs/kernels.md").read_text()
        self.page = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "kernels.md"
        self.page.write_text(self.committed)

    def write(self, program):
        return subprocess.run([BIN / program, self.page], capture_output=True, text=True)

    def without_new(self, page):
        """Without the lines of kernels that the committed page lacks: somebody may have added a file."""
        known = set(re.findall(r"(?m)^## (\w+)$", self.committed))
        sections = [section for section in re.split(r"(?m)^(?=##? )", page)
                    if not section.startswith("## ") or section.split()[1] in known]
        return re.sub(r"(?m)^\| \[(\w+)\]\(#.*\n", lambda line: line[0] if line[1] in known else "", "".join(sections))

    def test_what_it_says_of_the_others_stays(self):
        for program in ("gridclock-kernels-doc", "gridclock-grown-kernels-doc"):
            self.assertEqual(self.write(program).returncode, 0)
            self.assertEqual(self.without_new(self.page.read_text()), self.committed)

    def test_a_new_kernel_has_its_section(self):
        self.assertEqual(self.write("gridclock-grown-kernels-doc").returncode, 0)
        self.assertIn("\n## relu6_of_page\n\nThe positive part of each element, 6 at most: ", self.page.read_text())

    def test_without_the_page_the_lines_of_gpus_would_be_lost(self):
        self.page.unlink()
        done = self.write("gridclock-kernels-doc")
        self.assertEqual((done.returncode, self.page.exists()), (1, False))
        self.assertIn("cannot read", done.stderr)


if __name__ == "__main__":
    unittest.main()
