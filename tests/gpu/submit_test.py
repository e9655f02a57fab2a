#!/usr/bin/env python3
"""Submitted code on a GPU, by the command line: each file of tests/sources computes what plain Python
computes, and the ways in which a first kernel over several tensors fails are told and hurt nobody.

usage: submit_test.py --bin FOLDER

Needs a GPU and NVRTC (CUDA_HOME, or /usr/local/cuda). "no GPU here" and exit code 0 where there is none.
"""
import argparse
import importlib.util
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
SOURCES = TESTS / "sources"
sys.path.insert(0, str(TESTS / "support"))

import two_clients  # noqa: E402
from cheats import CHEAT, CHEATS, FATAL_CHEATS, HONEST, L2_CHEAT, L2_LOADS, TWINS  # noqa: E402
from local_memory import LocalMemoryTests  # noqa: E402
from npy import bf16, load, save, some  # noqa: E402
from server import Server  # noqa: E402
from two_clients import PinnedMemoryTest, SubmissionsTest, TwoClientsTest  # noqa: E402, F401: unittest finds them here.

BIN = pathlib.Path()

# x -> y, one element for each thread.
EACH = """\
// gridclock: f x: f32[N] -> y: f32[N] grid(ceil_div(N, 256)) block(256) params x, y, n: int = N
__global__ void f(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = %s;
}
"""
# For so many nanoseconds.
SPIN = """\
// gridclock: spin -> y: i32[1]; ns: i64 = 1 grid(1) block(1) params y, ns: int64 = ns
__global__ void spin(int* y, long long ns) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now < start + ns);
  *y = 1;
}
"""


def facts(path):
    """What /proc says of a process or a thread: {"Seccomp": "2", ...}."""
    return dict(map(str.strip, line.split(":", 1)) for line in (path / "status").read_text().splitlines())


def has_triton():
    return importlib.util.find_spec("triton") is not None


class SubmitTest(LocalMemoryTests, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(
            Server(BIN, "--allow-submit", "--allow-cubin", "--limit-compile-seconds=60", "--devices=cuda",
                   f"--worker={BIN / 'gridclock-worker'}"))

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def gridclock(self, *args, code=0):
        environment = dict(os.environ, GRIDCLOCK_SERVER=self.server.grpc)
        done = subprocess.run([BIN / "gridclock", *map(str, args)], env=environment, cwd=self.folder,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, f"{args}\n{done.stdout}{done.stderr}")
        return done

    def run_source(self, target, *args, output="y"):
        """(shape, values) of an output, and the answer."""
        done = self.gridclock("run", SOURCES / target, *args, "-o", f"{output}=out.npy", "--json")
        return *load(self.folder / "out.npy"), json.loads(done.stdout)

    def close(self, got, want, relative=1e-5):
        self.assertEqual(len(got), len(want))
        for i, (a, b) in enumerate(zip(got, want)):
            if not math.isclose(a, b, rel_tol=relative, abs_tol=relative):
                self.fail(f"element {i}: want {b}, got {a}")

    def test_square_matrix(self):
        save(self.folder / "x.npy", [1, 2, 3, 4, 5, 6], (2, 3))
        shape, got, answer = self.run_source("square_matrix.cu:square_matrix_kernel", "x=x.npy")
        self.assertEqual((shape, got), ((2, 3), [1, 4, 9, 16, 25, 36]))
        self.assertTrue(answer["device"].startswith("cuda:"))
        self.assertGreater(answer["timing"]["statistics"]["median_ns"], 0)

    def test_square_matrix_by_inferred_words(self):
        save(self.folder / "x.npy", some(35), (5, 7))
        plain = "".join(line for line in (SOURCES / "square_matrix.cu").read_text().splitlines(keepends=True)
                        if "gridclock:" not in line)
        (self.folder / "plain.cu").write_text(plain)
        done = self.gridclock("run", "plain.cu:square_matrix_kernel", "matrix=x.npy", "width=7", "height=5", "--grid",
                              "1,1", "--block", "16,16", "-o", "result=out.npy")
        self.assertIn("words inferred: square_matrix_kernel matrix: f32[*] -> result: f32[*]", done.stderr)
        self.assertEqual(load(self.folder / "out.npy"), ((5, 7), [v * v for v in some(35)]))

    def test_add_in_place(self):
        n = 1 << 20
        save(self.folder / "x.npy", some(n), (n,))
        shape, got, _ = self.run_source("add_in_place.cu", "x=x.npy", f"y=full:2:f32[{n}]")
        self.assertEqual(shape, (n,))
        self.assertEqual(got, [v + 2 for v in some(n)])

    def test_gelu_tanh(self):
        save(self.folder / "x.npy", some(1001), (1001,))
        _, got, _ = self.run_source("gelu_tanh.cu", "x=x.npy")
        self.close(got, [0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))
                         for v in some(1001)])

    def test_matmul_by_tiles_of_each_size(self):
        m, k, n = 33, 70, 45
        a, b = some(m * k), some(k * n, 41)
        save(self.folder / "a.npy", a, (m, k))
        save(self.folder / "b.npy", b, (k, n))
        want = [sum(a[i * k + t] * b[t * n + j] for t in range(k)) for i in range(m) for j in range(n)]
        for tile in (8, 16, 32):
            shape, got, _ = self.run_source("matmul_tiled.cu", "a=a.npy", "b=b.npy", f"tile={tile}", output="c")
            self.assertEqual(shape, (m, n))
            self.close(got, want, 1e-4)

    def test_reduction_of_two_launches(self):
        save(self.folder / "x.npy", some(100_003), (100_003,))
        shape, got, _ = self.run_source("reduce_sum.cu", "x=x.npy", output="total")
        self.assertEqual(shape, ())
        self.close(got, [sum(some(100_003))], 1e-4)

    def test_softmax_by_cub(self):
        rows, n = 7, 781
        x = some(rows * n)
        save(self.folder / "x.npy", x, (rows, n))
        shape, got, _ = self.run_source("softmax_cub.cu:softmax_kernel<256>", "x=x.npy")
        self.assertEqual(shape, (rows, n))
        want = []
        for row in range(rows):
            powers = [math.exp(v - max(x[row * n:row * n + n])) for v in x[row * n:row * n + n]]
            want += [p / sum(powers) for p in powers]
        self.close(got, want, 1e-5)

    def test_bf16_with_a_constant(self):
        values = some(777)
        save(self.folder / "x.npy", [bf16(v) for v in values], (777,), "<u2")
        self.gridclock("run", SOURCES / "scale_bf16.cu", "x=x.npy:bf16", "factor=0.75", "-o", "y=out.npy")
        _, got = load(self.folder / "out.npy")
        self.assertEqual(got, [bf16(v * 0.75) for v in values])

    def test_a_template(self):
        save(self.folder / "x.npy", some(1003), (1003,))
        _, got, _ = self.run_source("axpb_template.cu:axpb<float, 4>", "x=x.npy", "a=3", "b=-1")
        self.assertEqual(got, [3 * v - 1 for v in some(1003)])

    def test_a_list_by_tables_of_pointers(self):
        shown = self.gridclock("run", SOURCES / "add_lists.cu", "a=full:1:f32[3]", "a=full:1:f32[2,2]",
                               "b=full:2:f32[3]", "b=full:2:f32[2,2]").stdout
        self.assertIn("[3, 3, 3]", shown)
        self.assertIn("[[3, 3],\n [3, 3]]", shown)

    def test_a_cooperative_launch(self):
        save(self.folder / "x.npy", some(5001), (5001,))
        _, got, _ = self.run_source("normalize_cooperative.cu", "x=x.npy")
        total = sum(map(abs, some(5001)))
        self.close(got, [v / total for v in some(5001)], 1e-5)

    def test_a_launch_of_clusters_whose_blocks_read_each_others_memory(self):
        (self.folder / "ring.cu").write_text("""\
#include <cooperative_groups.h>
// gridclock: ring x: i32[N] -> y: i32[N] grid(N) block(1) cluster(4) params x, y
__global__ void ring(const int* x, int* y) {
  __shared__ int mine;
  const auto cluster = cooperative_groups::this_cluster();
  mine = x[blockIdx.x];
  cluster.sync();
  y[blockIdx.x] = *cluster.map_shared_rank(&mine, (cluster.block_rank() + 1) % cluster.num_blocks());
  cluster.sync();
}
""")
        save(self.folder / "x.npy", list(range(12)), (12,), "<i4")
        _, got, _ = self.run_source(self.folder / "ring.cu", "x=x.npy")
        self.assertEqual(got, [1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8])

    def test_shared_memory_that_a_kernel_must_ask_for_and_an_instruction_of_one_architecture_alone(self):
        n = 25_000  # 100 KB.
        (self.folder / "flip.cu").write_text("""\
// gridclock: flip x: i32[N] -> y: i32[N] grid(1) block(256) shared N * 4 params x, y, n: int = N
__global__ void flip(const int* x, int* y, int n) {
  extern __shared__ int kept[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) kept[i] = x[i];
  __syncthreads();
#if __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = kept[n - 1 - i];
}
""")
        save(self.folder / "x.npy", list(range(n)), (n,), "<i4")
        _, got, _ = self.run_source(self.folder / "flip.cu", "x=x.npy")
        self.assertEqual(got, list(range(n))[::-1])

    def test_g2_a_launch_beyond_the_limits_is_refused_before_it_begins(self):
        for words, told in (("block(2048)", "block.x is 2048, want 1 to 1024"),
                            ("block(64, 32)", "block (64, 32, 1) has 2048 threads, at most 1024"),
                            ("block(256) shared 300000", "shared is 300000 bytes, want 0 to ")):
            (self.folder / "f.cu").write_text((EACH % "x[i]").replace("block(256)", words))
            error = json.loads(self.gridclock("run", "f.cu", "x=ones:f32[9]", "--json", code=1).stdout)["error"]
            self.assertEqual(error["code"], "INVALID_ARGUMENT", error)
            self.assertIn(told, error["message"])
            self.test_square_matrix()

    def test_variables_that_are_set_from_an_attribute_and_from_an_input(self):
        (self.folder / "affine.cu").write_text("""\
// gridclock: affine x: f32[N], four: f32[4] -> y: f32[N]; shift: f64 = 0 grid(ceil_div(N, 64)) block(64)
// gridclock:   params x, y, n: int = N
// gridclock: global factors = four
// gridclock: global offset = shift
__constant__ float factors[4];
__device__ float offset;
__global__ void affine(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factors[i % 4] + offset;
}
""")
        save(self.folder / "x.npy", some(101), (101,))
        save(self.folder / "four.npy", [1, 2, -3, 0.5], (4,))
        for shift in (0.25, -7):
            _, got, _ = self.run_source(self.folder / "affine.cu", "x=x.npy", "four=four.npy", f"shift={shift}")
            self.assertEqual(got, [v * (1, 2, -3, 0.5)[i % 4] + shift for i, v in enumerate(some(101))])

    def test_what_is_measured_has_samples(self):
        done = self.gridclock("bench", SOURCES / "square_matrix.cu", "H=1000", "W=1000", "--budget", "200ms", "--json")
        result = json.loads(done.stdout)["results"][0]
        self.assertGreaterEqual(len(result["timing"]["samples_ns"]), 10)

    def test_what_a_kernel_prints_comes_back(self):
        (self.folder / "p.cu").write_text("// gridclock: p -> y: f32[1] grid(1) block(2) params y\n"
                                          "__global__ void p(float* y) { printf(\"thread %d\\n\", threadIdx.x); *y = 1; }\n")
        self.assertIn("thread 1", self.gridclock("run", "p.cu").stdout)

    def test_g11_a_flood_of_print_is_cut_and_said_so(self):
        (self.folder / "flood.cu").write_text(
            "// gridclock: flood -> y: f32[1] grid(64) block(256) params y\n"
            "__global__ void flood(float* y) {\n"
            "  for (int i = 0; i < 8; ++i) printf(\"block %d, thread %d, line %d\\n\", blockIdx.x, threadIdx.x, i);\n"
            "  *y = 1;\n}\n")
        told = json.loads(self.gridclock("run", "flood.cu", "--json").stdout)
        self.assertTrue(told["printed_truncated"])
        self.assertTrue(15 << 10 < len(told["printed"]) <= 16 << 10, len(told["printed"]))
        self.test_square_matrix()

    def test_g11_a_flood_of_malloc_ends_with_the_heap(self):
        (self.folder / "hoard.cu").write_text(
            "// gridclock: hoard -> y: f32[1] grid(1) block(1) params y\n"
            "__global__ void hoard(float* y) {\n"
            "  for (*y = 0; *y < 1 << 20; *y += 1) if (malloc(1 << 20) == nullptr) return;\n}\n")
        mebibytes = self.run_hoard()
        self.assertTrue(0 < mebibytes <= 64, mebibytes)
        self.assertEqual(self.run_hoard(), 0, "what the process of this principal took it has until it ends")
        self.test_square_matrix()

    def run_hoard(self):
        self.gridclock("run", "hoard.cu", "-o", "y=hoard.npy")
        return load(self.folder / "hoard.npy")[1][0]

    def test_pointers_of_a_host_are_a_fault_and_the_next_job_is_right(self):
        done = self.gridclock("run", SOURCES / "wrong_host_pointers.cu", "addresses=full:4096:u64[4]", "--json", code=1)
        error = json.loads(done.stdout)["error"]
        self.assertEqual((error["code"], error["reason"]), ("FAILED_PRECONDITION", "KERNEL_FAULT"), error)
        self.test_square_matrix()
        self.assertIn("[9, 9]", self.gridclock("run", "square", "x=full:3:f32[2]").stdout)

    def compiled_by_triton(self, columns):
        """The folder of the example's kernels for rows of so many columns."""
        folder = self.folder / f"columns{columns}"
        compiler = TESTS.parent / "examples/triton/compile.py"
        capability = json.loads(self.gridclock("devices", "--json").stdout)[0]["compute_capability"]
        subprocess.run([sys.executable, "-B", compiler, "--cubins", "--columns", str(columns),
                        "--capability", str(capability), folder], check=True, timeout=120)
        return folder

    @unittest.skipUnless(has_triton(), "no Triton language here: pip install triton")
    def test_kernels_that_triton_compiled(self):
        for columns, most, threads in ((781, 1024, 128), (2000, 2048, 256), (5000, 8192, 512)):
            with self.subTest(columns=columns):
                made = self.compiled_by_triton(columns)
                self.assertIn(f".reqntid {threads}", (made / "square_kernel.ptx").read_text())
                values = some(5 * columns)
                save(self.folder / "x.npy", values, (5, columns))
                for kernel in ("square_kernel", "square_loop_kernel"):
                    self.gridclock("run", made / f"{kernel}.ptx", "x=x.npy", "-o", "y=out.npy")
                    self.assertTrue(load(self.folder / "out.npy") == ((5, columns), [v * v for v in values]), kernel)
                x = f"x=randn:f32[{1823 * 781 // columns},{columns}]"
                self.gridclock("check", made / "softmax_kernel.ptx", "--against", "softmax", x)
                too_wide = f"x=randn:f32[2,{most + 1}]"
                refused = self.gridclock("run", made / "softmax_kernel.ptx", too_wide, code=1).stderr
                self.assertIn(f"N <= {most}", refused)

    @unittest.skipUnless(has_triton(), "no Triton language here: pip install triton")
    def test_words_without_the_two_pointers_that_triton_adds_are_refused(self):
        text = (self.compiled_by_triton(781) / "square_kernel.ptx").read_text()
        self.assertIn(", null, null\n", text)
        (self.folder / "short.ptx").write_text(text.replace(", null, null\n", "\n", 1))
        refused = self.gridclock("run", "short.ptx", "x=ones:f32[2,781]", code=1).stderr
        self.assertIn("INVALID_ARGUMENT", refused)
        self.assertIn("it takes 7 parameters", refused)
        self.assertIn("the words give 5 (", refused)

    @unittest.skipUnless(has_triton(), "no Triton language here: pip install triton")
    def test_a_cubin_that_triton_compiled(self):
        made = self.compiled_by_triton(781)
        save(self.folder / "x.npy", some(5 * 781), (5, 781))
        words = (made / "square_kernel.words").read_text()
        self.gridclock("run", made / "square_kernel.cubin", "--words", words, "x=x.npy", "-o", "y=out.npy")
        self.assertTrue(load(self.folder / "out.npy") == ((5, 781), [v * v for v in some(5 * 781)]))

    def test_a_check_tells_right_from_wrong(self):
        self.gridclock("check", SOURCES / "softmax_cub.cu", "--against", "softmax", "*=33", "N=1000")
        self.gridclock("check", SOURCES / "gelu_tanh.cu", "--against", "gelu", "N=10007", "--with", "approximate=tanh")
        done = self.gridclock("check", SOURCES / "gelu_tanh.cu", "--against", "square", "N=1007", code=4)
        self.assertIn("DIFFERS", done.stdout)

    def test_watch_checks_and_times_each_save(self):
        source = self.folder / "f.cu"
        source.write_text(EACH % "x[i] * x[i]")
        with subprocess.Popen([BIN / "gridclock", "watch", source, "--against", "square", "N=100000", "--times", "3"],
                              env=dict(os.environ, GRIDCLOCK_SERVER=self.server.grpc), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as watch:
            self.addCleanup(watch.kill)
            for body in ("x[i] * x[i] + 0.0f", "x[i]"):
                while "waiting for a change" not in (line := watch.stderr.readline()):
                    self.assertTrue(line, "watch ended")
                (self.folder / "saved").write_text(EACH % body)
                (self.folder / "saved").rename(source)
            shown, said = watch.communicate(timeout=60)
        self.assertEqual(watch.returncode, 4, shown + said)
        verdicts = re.findall(r"y: (same as|DIFFERS from) square", shown)
        self.assertEqual(verdicts, ["same as", "same as", "DIFFERS from"], shown)
        self.assertEqual(len(re.findall(r"f: .+ \(median of \d+ on cuda:\d+, interval .+\)", shown)), 3, shown)
        self.assertEqual(len(re.findall(r", [+-]\d+\.\d % against ", shown)), 2, shown)

    def test_every_thread_of_a_guest_is_held(self):
        (self.folder / "spin.cu").write_text(SPIN)
        self.gridclock("run", "spin.cu")  # The guest is there.
        guests = two_clients.guests(self.server)
        self.assertTrue(guests)
        with subprocess.Popen([BIN / "gridclock", "run", self.folder / "spin.cu", f"ns={3 * 10**9}"],
                              env=dict(os.environ, GRIDCLOCK_SERVER=self.server.grpc), stdout=subprocess.DEVNULL) as client:
            time.sleep(1)
            threads = [facts(task) for guest in guests for task in (guest / "task").iterdir()]
            self.assertIsNone(client.poll(), "the kernel had ended")
            self.assertEqual(client.wait(60), 0)
        self.assertGreater(len(threads), len(guests), "no thread of the driver")
        for thread in threads:
            held = {name: int(thread[name], 16) for name in ("Seccomp", "NoNewPrivs", "CapEff")}
            self.assertEqual(held, {"Seccomp": 2, "NoNewPrivs": 1, "CapEff": 0}, f"{thread['Name']} of {len(threads)}")

    def test_what_the_compiler_made_can_be_seen(self):
        source = SOURCES / "square_matrix.cu"
        shown = self.gridclock("compile", source, "--sass").stdout
        self.assertRegex(shown, r"\.text\.\w*square_matrix_kernel")
        for opcode in ("LDG", "STG", "EXIT"):
            self.assertRegex(shown, rf"\b{opcode}\b")
        lines = {line["line"]: line for line in json.loads(self.gridclock("compile", source, "--inspect", "--json").stdout)["lines"]}
        store = next(number for number, text in enumerate(source.read_text().splitlines(), 1) if "result[idx] =" in text)
        self.assertGreater(lines[store]["ptx"], 0)
        self.assertGreater(lines[store]["sass"], 0)
        self.gridclock("compile", source, "--keep", self.folder / "kept")
        for ending, holds in ((".ptx", b".entry"), (".cubin", b"\x7fELF"), (".sass", b"STG"), (".resources.json", b"registers")):
            self.assertIn(holds, (self.folder / f"kept/square_matrix{ending}").read_bytes(), ending)

    def test_a_device_says_what_holds_code_and_whether_it_reaches_host_memory(self):
        self.gridclock("run", SOURCES / "square_matrix.cu", "x=arange:f32[2,3]")  # A guest has been there.
        device = json.loads(self.gridclock("devices", "--json").stdout)[0]
        self.assertIn("seccomp", device["sandbox"])
        self.assertIn(device["pageable_access"], (True, False))
        print(f"{device['name']}: sandbox {device['sandbox']}, pageable access {device['pageable_access']}")

    def verified(self, target, *args, code=0):
        """The verification of timed launches."""
        done = self.gridclock("bench", target, *args, "--samples", 12, "--min-samples", 12, "--budget", "5s",
                              "--json", code=code)
        result = json.loads(done.stdout)["results"][0]
        self.assertEqual(len(result["timing"]["samples_ns"]), 12)
        return result["verification"]

    def test_timed_launches_are_verified(self):
        for target, *args in (("softmax_cub.cu", "*=64", "N=1000", "--verify=softmax"),
                              ("gelu_tanh.cu", "*=10007", "--verify=gelu", "--verify-with", "approximate=tanh"),
                              ("matmul_tiled.cu", "M=65", "N=33", "K=70", "tile=16", "--verify=matmul"),
                              ("reduce_sum.cu", "N=100003", "--verify=sum")):
            found = self.verified(SOURCES / target, *args)
            self.assertEqual((found["mismatches"], found["violations"]), (0, 0), (target, found))
            self.assertEqual((found["launches"], found["fresh_launches"]), (13, 12), target)
        found = self.verified(SOURCES / "gelu_tanh.cu", "*=1007", "--verify=square", code=4)
        self.assertGreater(found["mismatches"], 0)

    def test_against_another_file(self):
        (self.folder / "cube.cu").write_text(EACH % "x[i] * x[i] * x[i]")
        (self.folder / "other.cu").write_text(EACH % "x[i] * (x[i] * x[i])")
        (self.folder / "wrong.cu").write_text(EACH % "x[i] * x[i]")
        found = self.verified("cube.cu", "N=10000", "--verify=other.cu:f")
        self.assertEqual((found["mismatches"], found["launches"], found["fresh_launches"]), (0, 13, 12))
        self.assertGreater(self.verified("cube.cu", "N=10000", "--verify=wrong.cu", code=4)["mismatches"], 0)

    def test_back_to_back_launches_are_not_verified_and_say_so(self):
        done = self.gridclock("bench", SOURCES / "softmax_cub.cu", "*=64", "N=1000", "--verify=softmax", "--method",
                              "back_to_back", "--budget", "200ms", "--json", code=1)
        self.assertIn("could not be verified (UNVERIFIED)", done.stderr)
        result = json.loads(done.stdout)["results"][0]
        self.assertIn("UNVERIFIED", result["flags"])
        self.assertEqual((result["verification"]["mismatches"], result["verification"]["launches"]), (0, 1))

    def test_expected_values_of_a_file(self):
        save(self.folder / "x.npy", [1, 2, 3, 4], (2, 2))
        save(self.folder / "y.npy", [1, 4, 9, 16], (2, 2))
        target = SOURCES / "square_matrix.cu"
        self.gridclock("run", target, "x=x.npy", "--verify=y.npy")
        save(self.folder / "y.npy", [1, 4, 9, 15], (2, 2))
        self.assertIn("y[3]: want 15, got 16", self.gridclock("run", target, "x=x.npy", "--verify=y.npy", code=4).stdout)

    def test_code_that_deceives_is_found(self):
        for name, (found, body) in CHEATS.items():
            with self.subTest(name):
                (self.folder / f"{name}.cu").write_text(CHEAT % body)
                self.assertGreater(self.verified(f"{name}.cu", "N=1000", "--verify=square", code=4)[found], 0)

    def test_what_does_the_same_as_one_may_is_not(self):
        self.assertLessEqual({*TWINS.values()}, HONEST.keys())
        for name, body in HONEST.items():
            with self.subTest(name):
                (self.folder / f"{name}.cu").write_text(CHEAT % body)
                self.verified(f"{name}.cu", "N=1000", "--verify=square")

    def test_what_an_earlier_job_left_is_not_found(self):
        # Memory that a call gives back is the next one's: without poison the result of the honest one would be there.
        save(self.folder / "x.npy", some(1000), (1000,))
        (self.folder / "honest.cu").write_text(CHEAT % HONEST["square"])
        (self.folder / "read_earlier_job.cu").write_text(CHEAT % "")
        for _ in range(3):
            # Values that are sent are the same in each launch, so that nothing tells of its time: code 1.
            found = self.verified("honest.cu", "x=x.npy", "--verify=square", code=1)
            self.assertEqual((found["mismatches"], found["fresh_launches"]), (0, 0), found)
            found = self.verified("read_earlier_job.cu", "x=x.npy", "--verify=square", code=4)
            self.assertGreater(found["mismatches"], 0)

    def test_code_that_takes_its_process_along_gets_no_time(self):
        for name, (reason, body) in FATAL_CHEATS.items():
            with self.subTest(name):
                (self.folder / f"{name}.cu").write_text(CHEAT % body)
                done = self.gridclock("bench", f"{name}.cu", "N=1000", "--verify=square", "--kernel-limit", "2s",
                                      "--json", code=1)
                self.assertIn(reason, done.stdout)
        self.test_square_matrix()

    def test_a_kernel_that_understates_its_work_is_too_fast_all_the_same(self):
        # Its words claim one byte; those of the kernel that it is held against count too.
        self.gridclock("run", "square", "x=ones:f32[1]")
        source = ("// gridclock: f x: f32[N] -> y: f32[N] bytes 1 grid(1) block(32) params x, y, n: int = N\n"
                  "__global__ void f(const float* x, float* y, int n) { if (threadIdx.x == 0) y[0] = x[0] * x[0]; }\n")
        (self.folder / "idle.cu").write_text(source)
        done = self.gridclock("bench", "idle.cu", f"N={1 << 26}", "--verify=square", "--samples", 3, "--min-samples", 3,
                              "--budget", "5s", "--json", code=4)
        self.assertIn("IMPOSSIBLE", json.loads(done.stdout)["results"][0]["flags"])

    def test_lines_that_are_to_stay_in_the_cache_win_nothing(self):
        # With cold caches, loads that ask the L2 to keep their lines (persist_in_l2) are no faster than their honest
        # twin; where nothing empties the cache, they are.
        def median(name, l2):
            (self.folder / f"{name}.cu").write_text(L2_CHEAT % L2_LOADS[name])
            done = self.gridclock("bench", f"{name}.cu", f"N={1 << 22}", "--l2", l2, "--samples", 200, "--json")
            return json.loads(done.stdout)["results"][0]["timing"]["statistics"]["median_ns"]
        plain, keeping = median("plain", "cold_clean"), median("persist_in_l2", "cold_clean")
        kept = median("persist_in_l2", "hot")
        self.assertGreater(keeping, 0.9 * plain, f"in the cache it takes {kept}")
        self.assertLess(kept, 0.9 * plain, "what the cache keeps is no faster: nothing is shown here")

    def test_containers_and_too_many_parameters_do_not_compile(self):
        done = self.gridclock("run", SOURCES / "wrong_vector.cu", "a=ones:f32[4]", code=1)
        self.assertIn("wrong_vector.cu:8: error", done.stderr)
        done = self.gridclock("run", SOURCES / "wrong_many_pointers.cu", "a=ones:f32[4]", code=1)
        self.assertIn("INVALID_ARGUMENT", done.stderr)
        self.assertIn("32780 bytes required, max 32764 bytes allowed", done.stderr)

    def test_g6_what_one_lane_leaves_is_no_want_of_the_other(self):
        (self.folder / "sq.cu").write_text(
            "// gridclock: sq x: f32[N] -> y: f32[N] grid(ceil_div(N, 256)) block(256) params x, y, n: int64 = N\n"
            "__global__ void sq(const float* x, float* y, long long n) {\n"
            "  const long long i = blockIdx.x * 256LL + threadIdx.x;\n  if (i < n) y[i] = x[i] * x[i];\n}\n")
        memory = json.loads(self.gridclock("devices", "--json").stdout)[0]["memory_bytes"]
        elements = int(memory * 0.6) // 8
        # The module is compiled and its guest is there before the catalogue takes the memory.
        self.gridclock("bench", "sq.cu", "N=1000", "--samples", 3, "--min-samples", 3)
        for _ in range(3):
            self.gridclock("bench", "square", "--shape", f"N={elements}", "--samples", 3, "--min-samples", 3)
            self.gridclock("bench", "sq.cu", f"N={elements}", "--samples", 3, "--min-samples", 3)


def has_gpu():
    try:
        with Server(BIN, "--devices=cuda"):
            return True
    except RuntimeError:
        return False


def main():
    global BIN
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/dev/bin"))
    options, rest = parser.parse_known_args()
    BIN = two_clients.BIN = options.bin.resolve()
    if not has_gpu():
        print("no GPU here")
        return 0
    program = unittest.main(argv=[sys.argv[0], *rest], verbosity=2, exit=False)
    return 0 if program.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
