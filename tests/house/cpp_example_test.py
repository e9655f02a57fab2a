"""What examples/cpp/README.md says configures, and a build of it makes the client alone."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests/docs"))
import pages  # noqa: E402


class CppExample(unittest.TestCase):
    def test_the_lines_of_the_page(self):
        here = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        blocks = pages.blocks_of((REPO / "examples/cpp/README.md").read_text())
        (here / "CMakeLists.txt").write_text(next(block.text for block in blocks if block.language == "cmake"))
        (here / "gridclock").symlink_to(REPO)
        shutil.copy(REPO / "examples/cpp/square.cc", here)
        made = subprocess.run(["cmake", "-G", "Ninja", "-S", here, "-B", here / "build"],
                              capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        default = subprocess.run(["ninja", "-C", here / "build", "-t", "commands", "all"], capture_output=True,
                                 text=True).stdout
        self.assertIn("square.cc", default)
        self.assertIn("client/cpp/client.cc", default)
        for other in ("server/main.cc", "kernels/catalog", "gtest", ".cu"):
            self.assertNotIn(other, default)


if __name__ == "__main__":
    unittest.main()
