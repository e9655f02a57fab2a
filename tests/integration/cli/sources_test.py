"""Files as first courses have them (tests/sources) through a real server and its compiler:
sources_test.py BIN_FOLDER. Each compiles, says what it needs and has PTX; on a server without a GPU a
run of it is refused in clear words. What they compute is shown by tests/gpu/submit_test.py."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import numpy

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
TESTS = pathlib.Path(__file__).resolve().parents[2]
SOURCES = TESTS / "sources"
sys.path.insert(0, str(TESTS / "support"))

from server import Server  # noqa: E402

# File -> its kernels, and inputs for a run.
FILES = {
    "add_in_place": (["add"], ["x=ones:f32[1048576]", "y=ones:f32[1048576]"]),
    "add_lists": (["add_lists"], ["a=ones:f32[3]", "a=ones:f32[5]", "b=ones:f32[3]", "b=ones:f32[5]"]),
    "axpb_template": (["axpb<float, 4>"], ["x=ones:f32[9]"]),
    "gelu_tanh": (["gelu_tanh_kernel"], ["x=ones:f32[9]"]),
    "matmul_tiled": (["matmul_tiled"], ["a=ones:f32[4,5]", "b=ones:f32[5,6]"]),
    "normalize_cooperative": (["normalize"], ["x=ones:f32[9]"]),
    "reduce_sum": (["set_zero", "sum_kernel"], ["x=ones:f32[9]"]),
    "scale_bf16": (["scale_bf16"], ["x=ones:bf16[9]"]),
    "softmax_cub": (["softmax_kernel<256>"], ["x=ones:f32[2,9]"]),
    "square_matrix": (["square_matrix_kernel"], ["x=arange:f32[2,3]"]),
    "wrong_host_pointers": (["add_all"], ["addresses=ones:u64[2]"]),
}
# Those that a compiler refuses, and what it says.
REFUSED = {
    "wrong_vector": ["wrong_vector.cu:8: error: ", "std::vector<float*> a"],
    "wrong_many_pointers": ["32780 bytes required, max 32764 bytes allowed"],
}


class SourcesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(BIN, "--allow-submit", "--limit-compile-seconds=60"))
        cls.why = cls.no_toolchain()
        parts = {part["part"]: part["found"] for part in json.loads(cls.call("doctor", "--json").stdout)}
        cls.no_sass = parts["nvdisasm"].startswith("missing")

    @classmethod
    def no_toolchain(cls):
        """Why nothing compiles here; empty if it does."""
        with tempfile.TemporaryDirectory() as folder:
            line = pathlib.Path(folder) / "line.cu"
            line.write_text("__global__ void line() {}\n")
            for _ in range(50):
                error = json.loads(cls.call("compile", line, "--json").stdout).get("error", {})
                if error.get("code") != "UNAVAILABLE":
                    break
                time.sleep(0.1)
            assert error.get("code") != "UNAVAILABLE" or "NVRTC" in error["message"], error
            return error.get("message", "")

    @classmethod
    def call(cls, *args):
        environment = dict(os.environ, GRIDCLOCK_SERVER=cls.server.grpc)
        return subprocess.run([BIN / "gridclock", *map(str, args)], env=environment, capture_output=True, text=True,
                              timeout=120)

    def setUp(self):
        if self.why:
            self.skipTest(f"nothing can be compiled here: {self.why}")
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_every_file_is_listed_here(self):
        self.assertEqual({path.stem for path in SOURCES.glob("*.cu")}, FILES.keys() | REFUSED.keys())

    def test_each_compiles_as_it_is_and_says_what_it_needs(self):
        for stem, (kernels, _) in FILES.items():
            with self.subTest(stem):
                done = self.call("compile", SOURCES / f"{stem}.cu", "--json", "--keep", self.folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                entries = json.loads(done.stdout)["entries"]
                self.assertEqual(sorted(entry["display"] for entry in entries), kernels)
                for entry in entries:
                    self.assertGreater(entry["registers"], 0)
                    self.assertGreater(entry["occupancy"]["fraction"], 0)
                    self.assertTrue(all(parameter["name"] for parameter in entry["parameters"]), entry)
                self.assertIn(".entry", (self.folder / f"{stem}.ptx").read_text())

    def test_the_machines_code_is_shown_or_said_to_need_nvdisasm(self):
        done = self.call("compile", SOURCES / "square_matrix.cu", "--sass")
        if self.no_sass:
            self.assertEqual(done.returncode, 1)
            self.assertIn("FAILED_PRECONDITION", done.stderr)
            self.assertIn("nvdisasm", done.stderr)
            return
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\.text\.\w*square_matrix_kernel")
        for opcode in ("LDG", "STG", "EXIT"):
            self.assertRegex(done.stdout, rf"\b{opcode}\b")

    def test_each_line_says_what_it_became(self):
        source = SOURCES / "square_matrix.cu"
        done = self.call("compile", source, "--inspect", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = {line["line"]: line for line in json.loads(done.stdout)["lines"]}
        texts = source.read_text().splitlines()
        store = next(number for number, text in enumerate(texts, 1) if "result[idx] =" in text)
        self.assertGreater(lines[store]["ptx"], 0)
        self.assertEqual(lines[store]["memory"], {"load global 4 B": 1, "store global 4 B": 1})
        if self.no_sass:
            self.assertIsNone(lines[store]["sass"])
        else:
            self.assertGreater(lines[store]["sass"], 0)
        self.assertTrue(all(number == 0 or texts[number - 1].strip() for number in lines))

    def test_the_code_of_each_line_stands_under_it(self):
        source = SOURCES / "square_matrix.cu"
        done = self.call("compile", source, "--inspect", "--ptx")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = done.stdout.splitlines()
        store = next(at for at, row in enumerate(rows) if "result[idx] =" in row)
        code = []
        for row in rows[store + 1:]:
            if not row.startswith("      PTX   "):
                break
            code.append(row.split()[1])
        for opcode in ("ld.global.", "st.global."):
            self.assertTrue(any(one.startswith(opcode) for one in code), code)
        self.assertNotIn(".visible .entry", done.stdout)
        listed = json.loads(self.call("compile", source, "--inspect", "--ptx", "--json").stdout)["lines"]
        self.assertEqual([len(line["ptx_code"]) for line in listed], [line["ptx"] for line in listed])
        self.assertNotIn("sass_code", listed[0])
        machine = self.call("compile", source, "--inspect", "--sass")
        if self.no_sass:
            self.assertIn("nvdisasm", machine.stderr)
        else:
            self.assertRegex(machine.stdout, r"result\[idx\] =.*\n(      SASS  .*\n)*      SASS  [0-9a-f]{4} .*STG")

    def test_what_is_kept_is_all_that_was_made(self):
        done = self.call("compile", SOURCES / "square_matrix.cu", "--keep", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        kept = {path.name for path in self.folder.iterdir()}
        made = {".ptx", ".cubin", ".log", ".resources.json"} | (set() if self.no_sass else {".sass"})
        self.assertEqual(kept, {f"square_matrix{ending}" for ending in made})
        log = (self.folder / "square_matrix.log").read_text()
        self.assertIn("set aside: host function main", log)
        self.assertIn(log, done.stderr)

    def test_what_does_not_compile_leaves_its_log(self):
        done = self.call("compile", SOURCES / "wrong_vector.cu", "--keep", self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["wrong_vector.log"])
        log = (self.folder / "wrong_vector.log").read_text()
        self.assertIn("wrong_vector.cu:8: error", log)
        self.assertIn(log, done.stderr)

    def test_infinity_and_nan_are_there_beside_cub_and_libcudacxx(self):
        headers = ["cub/block/block_reduce.cuh", "cuda/std/limits", "cuda/std/cmath", "cmath", "math.h"]
        for first in headers:
            with self.subTest(first):
                source = self.folder / "edges.cu"
                includes = "".join(f"#include <{header}>\n" for header in [first, *headers])
                source.write_text(includes + """__global__ void edges(float* y) {
  y[0] = -INFINITY;
  y[1] = NAN;
  y[2] = INFINITY * float(HUGE_VAL);
  static_assert(INT_MAX == 2147483647 && FLT_MAX > 3e38f && UINT64_MAX > 0, "");
}
""")
                done = self.call("compile", source, "--ptx")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("warning", done.stderr)
                for bits in ("-8388608|0fFF800000", "2143289344|2147483647|0f7FC00000|0f7FFFFFFF",
                             "2139095040|0f7F800000"):
                    self.assertRegex(done.stdout, f"[ ,](?:{bits});")

    def compiled(self, source):
        done = self.call("compile", source)
        self.assertEqual(done.returncode, 0, done.stderr)

    def refused(self, source):
        done = self.call("compile", source)
        self.assertEqual(done.returncode, 1, done.stdout)
        return done.stderr

    def test_what_has_no_kernel_is_told_in_a_line_and_a_template_what_it_lacks(self):
        source = self.folder / "main.cu"
        source.write_text("int main() { return 0; }\n")
        message = "gridclock: INVALID_ARGUMENT: it does not compile: error: no __global__ function was found"
        last = self.refused(source).splitlines()[-1]
        self.assertTrue(last.startswith(message), last)
        self.assertNotIn("set aside", last)
        source.write_text("template <typename T> __global__ void fill(T* y) { y[0] = 1; }\n")
        self.assertIn("compile --instance 'NAME<float, 256>'", self.refused(source))
        self.assertEqual(self.call("compile", source, "--instance", "fill<float>").returncode, 0)

    def test_a_course_with_its_headers_in_a_folder_above(self):
        checkout = self.folder / "course"
        (checkout / "common").mkdir(parents=True)
        (checkout / "chapter 3").mkdir()
        (checkout / "common/book.h").write_text('#include "half.h"\nvoid check(cudaError_t error) {}\n')
        (checkout / "common/half.h").write_text("#define HALF 0.5f\n")
        source = checkout / "chapter 3/01 first kernel.cu"
        source.write_text('#include "../common/book.h"\n__global__ void f(float* x, uint n) { x[n] *= HALF + two; }\n')
        # Of files in no checkout nobody knows to whom they belong.
        self.assertIn("names a file outside", self.refused(source))
        (checkout / ".git").mkdir()
        self.assertIn(f'{source}:2: error: identifier "two"', self.refused(source))
        source.write_text(source.read_text().replace(" + two", ""))
        self.compiled(source)

    def test_no_file_is_sent_that_is_no_code_of_the_same_checkout(self):
        checkout = self.folder / "downloaded"
        (checkout / "src").mkdir(parents=True)
        (checkout / ".git").mkdir()
        (checkout / ".git/config").write_text("#define A 1\n")
        (self.folder / "mine.h").write_text("#define A 1\n")
        (checkout / "src/linked.h").symlink_to(self.folder / "mine.h")
        (checkout / "other/.git").mkdir(parents=True)
        (checkout / "other/theirs.h").write_text("#define A 1\n")
        (checkout / "src/.keys").mkdir()
        (checkout / "src/.keys/key.h").write_text("#define A 1\n")
        source = checkout / "src/f.cu"
        for name, told in (("../other/theirs.h", "and its checkout"), (".keys/key.h", "names a hidden file"),
                           ("../.git/config", "is not named as code"), ("../../mine.h", "and its checkout"),
                           ("linked.h", "and its checkout"), (self.folder / "mine.h", "names a file outside")):
            with self.subTest(str(name)):
                source.write_text(f'#include "{name}"\n__global__ void f(float* x) {{ x[0] = A; }}\n')
                self.assertIn(told, self.refused(source))

    def test_two_headers_of_one_name_are_not_taken_for_each_other(self):
        (self.folder / "part").mkdir()
        (self.folder / "size.h").write_text("#define SIZE 1\n")
        (self.folder / "part/part.h").write_text('#include "size.h"\n')
        source = self.folder / "two.cu"
        source.write_text('#include "size.h"\n#include "part/part.h"\n__global__ void f(int* x) { x[0] = SIZE; }\n')
        self.compiled(source)
        (self.folder / "part/size.h").write_text("#define SIZE 2\n")
        self.assertIn('#include "size.h" is', self.refused(source))
        (self.folder / "part/size.h").write_text("#define SIZE 1\n")
        self.compiled(source)
        for folder, value in ((self.folder, 1), (self.folder / "part", 2)):
            (folder / "size.h").write_text('#include "value.h"\n#define SIZE VALUE\n')
            (folder / "value.h").write_text(f"#define VALUE {value}\n")
        self.assertIn('#include "size.h" is', self.refused(source))

    def test_without_a_gpu_a_run_is_refused_in_clear_words(self):
        for stem, (_, inputs) in FILES.items():
            with self.subTest(stem):
                done = self.call("run", SOURCES / f"{stem}.cu", *inputs, "--json")
                self.assertEqual(done.returncode, 1, done.stderr)
                error = json.loads(done.stdout)["error"]
                self.assertEqual(error["code"], "FAILED_PRECONDITION", error)
                self.assertRegex(error["message"], "GPU|cuda")

    def test_what_a_file_is_verified_against_must_fit(self):
        subject = [SOURCES / "square_matrix.cu", "x=arange:f32[2,3]"]
        numpy.save(self.folder / "right.npy", numpy.arange(6, dtype="f4").reshape(2, 3) ** 2)
        numpy.save(self.folder / "short.npy", numpy.zeros(3, "f4"))
        said = {
            "--verify": (2, "say what a kernel of a file is compared with"),
            "--verify=nosuch": (1, "NOT_FOUND"),
            "--verify=sum": (1, "'sum' gives f32[2] of these inputs; the program gives f32[2,3]"),
            f"--verify=z={self.folder}/right.npy": (2, "the output is called 'y', got 'z'"),
            f"--verify={self.folder}/short.npy": (1, "'expected.y': want f32[2,3], got f32[3]"),
            f"--verify={self.folder}/right.npy:f33": (1, "right.npy:f33': no dtype 'f33'; there are f64"),
            # These fit: what is missing is the GPU.
            "--verify=square": (1, "FAILED_PRECONDITION"),
            f"--verify={self.folder}/right.npy": (1, "FAILED_PRECONDITION"),
            f"--verify={SOURCES}/gelu_tanh.cu": (1, "FAILED_PRECONDITION"),
            f"--verify={SOURCES}/matmul_tiled.cu": (1, "'matmul_tiled' has 2 inputs; the program has 1"),
        }
        for flag, (code, words) in said.items():
            with self.subTest(flag):
                done = self.call("run", *subject, flag)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.returncode, code, done.stderr)
        done = self.call("run", "square", "x=ones:f32[4]", "--verify=square")
        self.assertIn("one of the catalogue has its own", done.stderr)

    def test_a_misspelt_dtype_of_a_file_is_no_attribute_of_a_kernel_without_words(self):
        source = self.folder / "plain.cu"
        source.write_text("__global__ void plain(const float* x, float* y, int n) { y[n] = x[n]; }\n")
        done = self.call("run", source, "x=x.npy:f33", "n=3")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("x: 'x.npy:f33': no dtype 'f33'; there are f64", done.stderr)

    @unittest.skipIf(os.geteuid() == 0, "root may look into every process")
    def test_its_own_user_cannot_look_into_a_server_that_takes_code(self):
        with Server(BIN) as plain:
            self.assertEqual(os.stat(f"/proc/{plain.pid}/environ").st_uid, os.geteuid())
            self.assertTrue(pathlib.Path(f"/proc/{plain.pid}/environ").read_bytes())
        with self.assertRaises(PermissionError):
            pathlib.Path(f"/proc/{self.server.pid}/environ").read_bytes()

    def modules(self):
        return json.loads(self.call("modules", "--json").stdout)

    def compile(self, name, arch="sm_90a"):
        source = self.folder / f"{name}.cu"
        source.write_text(f"__global__ void {name}(float* x) {{ *x = 1; }}\n")
        done = self.call("compile", source, "--arch", arch, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["id"]

    def test_modules_are_listed_and_deleted(self):
        self.call("modules", "delete", "--all")
        self.assertEqual(self.call("modules").stdout, "the server has none of your modules in memory\n")
        first, second, third = (self.compile(name) for name in ("first", "second", "third"))
        self.assertEqual([module["id"] for module in self.modules()], [first, second, third])
        lines = self.call("modules", "list").stdout.splitlines()
        self.assertRegex(lines[0], r"^ *module +of +target +code +entries$")
        self.assertRegex(lines[1], rf"^{first} +first.cu +sm_90a +\S+ \S+ +first$")
        self.assertEqual(len(lines), 4)
        missing = self.call("modules", "delete", first, "none")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("begins with 'none'", missing.stderr)
        done = self.call("modules", "delete", first[:12], second)
        self.assertEqual(done.stdout, f"{first} is deleted\n{second} is deleted\n")
        self.assertEqual([module["id"] for module in self.modules()], [third])
        self.assertIn("NO_MODULE", self.call("modules", "delete", first, "--json").stdout)
        self.assertEqual(json.loads(self.call("modules", "delete", "--all", "--json").stdout), {"deleted": [third]})
        self.assertEqual(self.modules(), [])
        self.assertEqual(self.call("modules", "delete").returncode, 2)
        self.assertEqual(self.call("modules", "delete", third, "--all").returncode, 2)

    def test_a_full_quota_says_how_to_get_out_of_it(self):
        with Server(BIN, "--allow-submit", "--limit-client-modules=1", "--limit-compile-seconds=60") as server:
            def call(*args):
                return subprocess.run([BIN / "gridclock", *map(str, args), "--server", server.grpc],
                                      capture_output=True, text=True, timeout=120)
            for name in ("one", "two"):
                (self.folder / f"{name}.cu").write_text(f"__global__ void {name}() {{}}\n")
            for _ in range(600):  # Until the compiler is there.
                done = call("compile", self.folder / "one.cu")
                if "UNAVAILABLE" not in done.stderr:
                    break
                time.sleep(0.1)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("gridclock modules delete ID", call("compile", self.folder / "two.cu").stderr)
            self.assertEqual(call("modules", "delete", "--all").returncode, 0)
            self.assertEqual(call("compile", self.folder / "two.cu").returncode, 0)

    def test_watch_does_not_wait_for_what_no_save_can_mend(self):
        source = self.folder / "f.cu"
        source.write_text("// gridclock: f x: f32[N] -> y: f32[N] grid (1) block (1) params x, y\n"
                          "__global__ void f(const float* x, float* y) { *y = *x; }\n")

        def watch(server):
            return subprocess.run([BIN / "gridclock", "watch", f"{source}:f", "x=ones:f32[1]"], timeout=60, capture_output=True,
                                  text=True, env=dict(os.environ, GRIDCLOCK_SERVER=server))

        gone = watch("127.0.0.1:1")
        self.assertEqual(gone.returncode, 3, gone.stderr)
        with Server(BIN) as server:
            refused = watch(server.grpc)
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("without --allow-submit", refused.stderr)

    def test_watch_deletes_what_a_save_replaced_if_it_had_compiled_it(self):
        self.call("modules", "delete", "--all")
        source = self.folder / "saved.cu"

        def text(value):
            return ("// gridclock: saved x: f32[N] -> y: f32[N] grid (1) block (1) params x, y\n"
                    f"__global__ void saved(const float* x, float* y) {{ *y = {value}; }}\n")

        def made(value):
            source.write_text(text(value))
            return json.loads(self.call("compile", source, "--json").stdout)["id"]

        others = made(1)
        watch = subprocess.Popen([BIN / "gridclock", "watch", f"{source}:saved", "x=ones:f32[1]", "--times", "4"],
                                 env=dict(os.environ, GRIDCLOCK_SERVER=self.server.grpc),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            # The second says of no block how large it is: it compiles, and cannot be run.
            for saved in (text(2), text(4).replace(" block (1)", ""), text(3)):
                while "waiting for a change" not in (line := watch.stderr.readline()):
                    self.assertTrue(line, "watch ended")
                changed = self.folder / "changed"
                changed.write_text(saved)
                changed.rename(source)
            watch.wait(60)
        finally:
            watch.kill()
            watch.communicate()
        ids = [module["id"] for module in self.modules()]
        self.assertEqual(len(ids), 2)
        self.assertEqual(ids[0], others)
        self.assertEqual(ids[1], made(3))

    def test_watch_sees_what_a_header_elsewhere_includes(self):
        common = self.folder / "common"
        (common / "parts").mkdir(parents=True)
        (self.folder / ".git").mkdir()
        (self.folder / "chapter").mkdir()
        (common / "all.h").write_text('#include "parts/one.h"\n')
        (common / "parts/one.h").write_text("#define ONE 1\n")
        source = self.folder / "chapter/f.cu"
        source.write_text('// gridclock: f x: f32[N] -> y: f32[N] grid (1) block (1) params x, y\n#include "../common/all.h"\n'
                          "__global__ void f(const float* x, float* y) { *y = ONE; }\n")
        watch = subprocess.Popen([BIN / "gridclock", "watch", f"{source}:f", "x=ones:f32[1]", "--times", "2"],
                                 env=dict(os.environ, GRIDCLOCK_SERVER=self.server.grpc),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            while "waiting for a change" not in (line := watch.stderr.readline()):
                self.assertTrue(line, "watch ended")
            (common / "parts/changed").write_text("#define ONE wrong\n")  # Never seen half written.
            (common / "parts/changed").rename(common / "parts/one.h")
            self.assertIn('identifier "wrong"', watch.communicate(timeout=60)[1])
        finally:
            watch.kill()
            watch.communicate()

    def test_wrong_ones_are_refused_with_the_place(self):
        for stem, said in REFUSED.items():
            with self.subTest(stem):
                done = self.call("compile", SOURCES / f"{stem}.cu")
                self.assertEqual(done.returncode, 1)
                self.assertIn("INVALID_ARGUMENT", done.stderr)
                for words in said:
                    self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
