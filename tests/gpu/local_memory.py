"""What threads of submitted code have of the GPU's memory each: tests of submit_test."""
import json
import shutil
import subprocess
import unittest


def used_bytes(uuid):
    done = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", f"--id={uuid}"],
                          capture_output=True, text=True, check=True)
    return int(done.stdout) << 20


class LocalMemoryTests:
    """Of a TestCase that has `folder`, and `gridclock` and `run_source` to call its server."""

    def deep(self, thread_bytes):
        """A file whose threads have so much local memory; y is x + 5."""
        (self.folder / "deep.cu").write_text(
            "// gridclock: deep x: f32[N] -> y: f32[N] grid(ceil_div(N, 256)) block(256) params x, y, n: int64 = N\n"
            "__global__ void deep(const float* x, float* y, long long n) {\n"
            f"  volatile float kept[{thread_bytes // 4}];\n"
            "  const long long i = blockIdx.x * 256LL + threadIdx.x;\n  if (i >= n) return;\n"
            f"  for (int k = 0; k < 64; ++k) kept[(i + k * 7919) % {thread_bytes // 4}] = x[i] + k;\n"
            f"  y[i] = kept[(i + 5 * 7919) % {thread_bytes // 4}];\n}}\n")
        return self.folder / "deep.cu"

    def device(self):
        return json.loads(self.gridclock("devices", "--json").stdout)[0]

    def test_local_memory_of_threads_is_refused_where_it_does_not_fit(self):
        elements = int(self.device()["memory_bytes"] * 0.95) // 8
        refused = self.gridclock("bench", self.deep(256 * 1024), f"N={elements}", code=1).stderr
        self.assertIn("RESOURCE_EXHAUSTED", refused)
        self.assertRegex(refused, r"with \d+ bytes of local memory for all threads that fit its \d+ multiprocessors")

    def test_local_memory_of_threads_is_given_back_with_the_call(self):
        elements = int(self.device()["memory_bytes"] * 0.85) // 8
        for _ in range(2):
            _, got, _ = self.run_source(self.deep(128 * 1024), "x=ones:f32[1000]")
            self.assertEqual(got, [6] * 1000)
            self.gridclock("bench", "square", "--shape", f"N={elements}", "--samples", 3, "--min-samples", 3)

    @unittest.skipUnless(shutil.which("nvidia-smi"), "no nvidia-smi")
    def test_the_driver_takes_as_much_local_memory_as_is_counted(self):
        small, large = 2 * 1024, 8 * 1024  # Both are too little for their process to end with the call.
        self.run_source(self.deep(small), "x=ones:f32[1000]")
        uuid = self.device()["uuid"]  # Which need not be the machine's first.
        before = used_bytes(uuid)
        self.run_source(self.deep(large), "x=ones:f32[1000]")
        threads = (used_bytes(uuid) - before) / ((large - small) * self.device()["units"])
        # 1,536 or 2,048 are counted; the driver may count multiprocessors that are switched off too.
        self.assertGreater(threads, 1400)
        self.assertLess(threads, 2600)
