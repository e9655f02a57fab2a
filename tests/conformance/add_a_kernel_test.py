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

    @staticmethod
    def sections(page):
        return re.split(r"(?m)^(?=##? )", page)

    def without_new(self, page, committed=None):
        """Without the lines of kernels that the committed page lacks, as somebody may have added a file, and without
        those of GPUs where it has none of a kernel, as that may have been where no CUDA compiler is."""
        known = {section.split()[1]: section for section in self.sections(committed or self.committed)
                 if section.startswith("## ")}
        sections = []
        for section in self.sections(page):
            kernel = section.split()[1] if section.startswith("## ") else ""
            if kernel and kernel not in known:
                continue
            if kernel and "` | cuda | " not in known[kernel]:
                section = re.sub(r"(?m)^.*` \| cuda \| .*\n", "", section)
            sections.append(section)
        return re.sub(r"(?m)^\| \[(\w+)\]\(#.*\n", lambda line: line[0] if line[1] in known else "", "".join(sections))

    def test_what_it_says_of_the_others_stays(self):
        for program in ("gridclock-kernels-doc", "gridclock-grown-kernels-doc"):
            self.assertEqual(self.write(program).returncode, 0)
            self.assertEqual(self.without_new(self.page.read_text()), self.committed)

    def test_lines_of_gpus_that_came_without_a_compiler_for_them_are_no_change_of_others(self):
        committed = "# Kernels\n\n## half\n\n| `naive` | cpu | A loop |\n"
        written = "# Kernels\n\n## half\n\n| `naive` | cpu | A loop |\n| `vec4` | cuda | 16 bytes |\n"
        self.assertEqual(self.without_new(written, committed), committed)
        self.assertEqual(self.without_new(written, written), written)

    def test_what_cannot_be_written_leaves_the_page_that_there_was(self):
        self.page.with_suffix(".md.new").mkdir()
        done = self.write("gridclock-kernels-doc")
        self.assertEqual((done.returncode, self.page.read_text()), (1, self.committed))
        self.assertIn("cannot write", done.stderr)

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
