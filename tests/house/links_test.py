"""What each program is made of: links_test.py [cuda]. A static library leaves no trace in what a program needs,
so this looks at the whole file; each pattern is first found where it must be, so that it can find."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

BIN = pathlib.Path(os.environ["GRIDCLOCK_BIN"])
HAS_CUDA = "cuda" in sys.argv[1:]
CUDA = rb"\bcuda[A-Z][a-z]+[A-Z]|\bcuInit\b|libcuda\.so"
GRPC = rb"libgrpc|_ZN4grpc|\bgrpc_[a-z]"
NVRTC = rb"libnvrtc|\bnvrtc[A-Z]"
WORKERS = ("gridclock-worker", "gridclock-worker-v2", "gridclock-worker-v3", "gridclock-worker-v4")


def has(pattern, program):
    return re.search(pattern, (BIN / program).read_bytes()) is not None


class Links(unittest.TestCase):
    def test_the_server_has_no_cuda(self):
        self.assertFalse(has(CUDA, "gridclock-server"))
        if HAS_CUDA:
            self.assertTrue(has(CUDA, "gridclock-worker-v2"))

    def test_workers_have_no_grpc(self):
        self.assertTrue(has(GRPC, "gridclock-server"))
        for worker in WORKERS:
            self.assertFalse(has(GRPC, worker), worker)

    def test_nvrtc_is_the_compilers_alone(self):
        self.assertTrue(has(NVRTC, "gridclock-compiler"))
        for program in (*WORKERS, "gridclock-server"):
            self.assertFalse(has(NVRTC, program), program)

    def test_the_compiler_has_no_grpc(self):
        self.assertFalse(has(GRPC, "gridclock-compiler"))

    def test_all_start_where_there_is_no_driver_and_no_toolkit(self):
        for program in (*WORKERS, "gridclock-compiler", "gridclock-server", "gridclock"):
            needed = subprocess.run(["readelf", "-d", BIN / program], capture_output=True, text=True, check=True).stdout
            self.assertIn("(NEEDED)", needed)
            self.assertNotRegex(needed, r"NEEDED.*(cuda|nvidia|nvrtc|cupti|cublas)")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
