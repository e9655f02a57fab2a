"""A file put into kernels/catalog is all that a new kernel is: the build takes it up, in every worker."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILT = ("base", "client", "cmake", "docs", "kernels", "proto", "server")


class NewKernel(unittest.TestCase):
    def test_a_file_is_built_into_every_worker(self):
        tree = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for folder in BUILT:
            shutil.copytree(REPO / folder, tree / folder)
        shutil.copy(REPO / "CMakeLists.txt", tree)
        shutil.copy(tree / "kernels/catalog/relu.cu", tree / "kernels/catalog/relu6.cu")
        made = subprocess.run(["cmake", "-G", "Ninja", "-S", tree, "-B", tree / "build", "-DGRIDCLOCK_CUDA=OFF",
                               "-DGRIDCLOCK_TESTS=OFF"], capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        for level in ("v2", "v3", "v4"):
            self.assert_is_in(tree / "build", f"gridclock-worker-{level}")

    def assert_is_in(self, build, worker):
        commands = subprocess.run(["ninja", "-C", build, "-t", "commands", worker], capture_output=True, text=True).stdout
        self.assertRegex(commands, r"-c \S*kernels/catalog/relu6\.cu")
        table = (build / f"kernels/catalog/catalog_{worker[-2:]}.cc").read_text()
        self.assertIn('kernels.emplace_back("relu6"', table)


if __name__ == "__main__":
    unittest.main()
