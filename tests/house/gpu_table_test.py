"""What tests/gpu/test.py makes of the programs that it runs: here, of programs that only print."""
import argparse
import contextlib
import importlib.util
import io
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

REPO = pathlib.Path(__file__).resolve().parents[2]
PASSED = "[  PASSED  ] 3 tests.\n"
CASES = [(kind, kernel) for kernel in ("square", "sum") for kind in ("PlainNumbers", "NaNAndInfinities")]
CLEAN = "========= ERROR SUMMARY: 0 errors\n"
FOUND = ("========= Invalid __global__ read of size 4 bytes\n========= Uninitialized __global__ memory read of size 4 bytes\n"
         "========= Barrier error detected. Invalid arguments\n"
         "========= Error: Race reported between Write access at 0x10 and Read access at 0x20\n"
         "========= ERROR SUMMARY: 2 errors\n")


def load(path):
    spec = importlib.util.spec_from_file_location("gpu_table", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gpu_test = load(REPO / "tests/gpu/test.py")
groups = sys.modules["groups"]  # Beside it.


def skipped(reason):
    return f"tests/gpu/cuda_timing_test.cc:99: Skipped\n{reason}\n\n[  SKIPPED ] CudaTiming.X (0 ms)\n"


class GpuTable(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.dict(os.environ, {"PATH": f"{self.folder}:{os.environ['PATH']}"}))
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
        self.table = gpu_test.Table()
        self.worker()

    def worker(self, model="H200", before="", gpus=1):
        """That of all its GPUs lists those which CUDA_VISIBLE_DEVICES leaves, by their UUIDs."""
        uuids = [f"GPU-{i}" for i in range(gpus)]
        listed = "".join(f'seen {uuid} && printf \'{{"name": "cuda:%d", "kind": "cuda", "uuid": "{uuid}", "model": "{model}"}}\\n\''
                         ' $n && n=$((n + 1))\n' for uuid in uuids)
        self.program("gridclock-test-worker", '{"name": "cpu", "kind": "cpu", "model": "x"}\n', f"""{before}
seen() {{ case ",${{CUDA_VISIBLE_DEVICES-{",".join(uuids)}}}," in *",$1,"*) ;; *) false;; esac; }}
n=0
{listed}""")

    def program(self, name, prints, before=""):
        (self.folder / f"{name} says").write_text(prints)
        (self.folder / name).write_text(f"#!/bin/sh\n{before}\ncat '{self.folder}/{name} says'\n")
        (self.folder / name).chmod(0o755)
        return self.folder / name

    def shown(self, call, *args):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            call(self.table, *args)
        return out.getvalue()

    def run_program(self, name, prints):
        return self.shown(gpu_test.run_program, name, self.program("cuda_device_test", prints), 10)

    def suite(self, only, *options, cases=CASES, others="", shards="2"):
        """What the suite's table says, of a program that lists these cases, and other tests."""
        listed = "".join(f"  {kind}/{kernel}_naive_f32  # GetParam() = cuda/{kernel}/naive/f32\n" for kind, kernel in cases)
        (self.folder / "listed").write_text("Running main() from gmock_main.cc\nCatalogue.\n  CanBeTestedHere\n"
                                            "  EveryListedExceptionFitsATest\nAll/Conformance.\n" + listed + others)
        lists = f'case "$1" in --gtest_list_tests) cat {self.folder}/listed; {self.ending};; esac'
        self.program("conformance_cuda_test", self.passed, f'{lists}\necho "$1" >>{self.folder}/asked\n{self.before}')
        words = ["test.py", "--bin", str(self.folder), "--only", only, "--shards", shards, *options]
        out = io.StringIO()
        with contextlib.redirect_stdout(out), mock.patch.object(sys, "argv", words):
            self.code = gpu_test.main()
        return out.getvalue()

    passed, before, ending = PASSED, "", "exit"

    # Of the program that a case runs in: what it is asked, behind the GPU that it is to see.
    SAYS_ITS_GPU = 'echo "${CUDA_VISIBLE_DEVICES-any} $1" >>"${0%/*}/seen"'

    def seen(self):
        """Each GPU, and the kernels that were asked of it."""
        found = {}
        for line in (self.folder / "seen").read_text().splitlines():
            gpu, asked = line.split()
            found.setdefault(gpu, []).append(next(name for name in ("Catalogue", "square", "sum") if name in asked))
        return {gpu: sorted(asked) for gpu, asked in found.items()}

    def asked(self):
        return (self.folder / "asked").read_text().splitlines()

    def compute_sanitizer(self, prints, before="", of_misread=FOUND):
        (self.folder / "of_misread").write_text(of_misread)
        self.program("compute-sanitizer", prints, f'case "$*" in *conformance_misread*) echo "$*" >>{self.folder}/misread;'
                                                  f" cat {self.folder}/of_misread; exit 1;; esac\n{before}")

    def sanitize(self, tool, launched, summary=CLEAN, of_misread=FOUND):
        lines = "".join(f"launched {name} {n}\n" for name, n in launched.items())
        self.compute_sanitizer(lines + PASSED + summary, of_misread=of_misread)
        return self.suite("sanitizer", "--tools", tool)

    def test_a_skip_that_is_listed_passes(self):
        shown = self.run_program("device", skipped("pids are hidden here: sharing is unknown") + PASSED)
        self.assertFalse(self.table.failed, shown)
        self.assertIn("skipped 1: pids are hidden here", shown)

    def test_a_test_that_had_no_cupti_fails(self):
        shown = self.run_program("device", skipped("no CUPTI here: no CUPTI: not found") + PASSED)
        self.assertTrue(self.table.failed)
        self.assertIn("1 that must not", shown)
        self.assertIn("skipped 1 and must not be: no CUPTI here", shown)

    def test_what_may_be_skipped_is_said_of_each_program(self):
        self.assertEqual(set(gpu_test.SKIPS), {*gpu_test.PROGRAMS, "submit", "torch"})

    def test_each_program_is_in_the_bundle(self):
        bundle = (REPO / "tools/gpu_bundle.sh").read_text()
        programs = set(bundle[bundle.index("programs=("):].partition(")")[0].split())
        self.assertLessEqual({*gpu_test.PROGRAMS.values(), gpu_test.CONFORMANCE, gpu_test.MISREAD}, programs)

    def test_what_a_process_prints_that_a_test_starts_and_kills_is_no_failure(self):
        begun = "[ RUN      ] CudaDevice.SeesAnother\n[ RUN      ] CudaOther.DISABLED_HoldsTheGpu\n"
        ended = "[       OK ] CudaDevice.SeesAnother (1 ms)\n"
        self.assertIn("3 passed, 0 failed", self.run_program("device", begun + ended + PASSED))
        self.assertFalse(self.table.failed)
        self.assertIn("1 failed", self.run_program("device", begun))
        self.assertTrue(self.table.failed)

    def test_a_program_that_only_skips_fails(self):
        self.run_program("device", skipped("pids are hidden here"))
        self.assertTrue(self.table.failed)

    def run_units(self, name, *ended):
        """Of unit tests that ended like that."""
        lines = [f"test_{i} (t.T.test_{i}) ... {end}\n" for i, end in enumerate(ended)]
        said = "".join(lines) + f"Ran {len(ended)} tests in 0.1s\n\nOK\n"
        (self.folder / "t.py").write_text(f"print({said!r})")
        return self.shown(gpu_test.run_units, name, [self.folder / "t.py"], 60)

    def test_unit_tests_that_all_run_pass(self):
        shown = self.run_units("submit", "ok", "ok")
        self.assertFalse(self.table.failed, shown)
        self.assertIn("2 tests, 0 skipped", shown)

    def test_a_unit_test_that_is_skipped_is_told_and_fails(self):
        shown = self.run_units("submit", "ok", "skipped 'no Triton language here: pip install triton'", 'skipped "it\'s not here"')
        self.assertTrue(self.table.failed)
        self.assertIn("3 tests, 2 skipped, 2 that must not", shown)
        self.assertIn("skipped 1 and must not be: no Triton language here", shown)
        self.assertIn("skipped 1 and must not be: it's not here", shown)

    def test_unit_tests_that_are_skipped_alone_fail_though_they_are_listed(self):
        with mock.patch.dict(gpu_test.SKIPS, {"submit": ("no such thing",)}):
            self.run_units("submit", "ok", "skipped 'no such thing'")
            self.assertFalse(self.table.failed)
            self.run_units("submit", "skipped 'no such thing'")
            self.assertTrue(self.table.failed)

    def test_a_variant_without_a_launch_fails(self):
        shown = self.sanitize("memcheck", {"square.naive": 4, "square.vec4": 0})
        self.assertEqual(self.code, 1)
        self.assertIn("never: square.vec4", shown)

    def test_launches_of_all_groups_are_told(self):
        shown = self.sanitize("memcheck", {"square.naive": 4, "sum.cub": 1})
        self.assertEqual(self.code, 0, shown)
        self.assertIn("0 errors, 10 launches of 2 variants", shown)
        self.assertIn("launched: square.naive 8, sum.cub 2", shown)

    def test_an_error_or_no_summary_fails(self):
        for summary in ("========= ERROR SUMMARY: 2 errors\n", ""):
            self.sanitize("memcheck", {"square.naive": 4}, summary)
            self.assertEqual(self.code, 1)

    def test_a_tool_that_does_not_find_what_it_must_fails(self):
        for tool, name in (("memcheck", "Invalid __global__ read"), ("initcheck", "Uninitialized __global__ memory read"),
                           ("synccheck", "Invalid arguments"), ("racecheck", "Race reported between")):
            shown = self.sanitize(tool, {"square.naive": 4})
            self.assertEqual(self.code, 0, shown)
            self.assertRegex(shown, rf"PASS  {tool} of misread\.\w+ +at least 1 error +2 errors ")
            for says in (CLEAN, name + CLEAN, "Invalid __global__ write\n========= ERROR SUMMARY: 1 error\n", name, ""):
                shown = self.sanitize(tool, {"square.naive": 4}, of_misread=says)
                self.assertEqual(self.code, 1, says)
                self.assertRegex(shown, f"FAIL  {tool} of misread")
                self.assertRegex(shown, f"PASS  compute-sanitizer {tool}")

    def test_each_tool_looks_at_the_wrong_variant_that_it_must_find(self):
        self.sanitize("memcheck,initcheck,synccheck,racecheck", {"square.naive": 4})
        self.assertEqual((self.folder / "misread").read_text().splitlines(), [
            f"--padding 512 --tool memcheck {self.folder}/conformance_misread"
            " --gtest_filter=All/Conformance.PlainNumbers/misread_past_the_end_f32",
            f"--tool initcheck {self.folder}/conformance_misread"
            " --gtest_filter=All/Conformance.PlainNumbers/misread_before_written_f32",
            f"--tool synccheck {self.folder}/conformance_misread"
            " --gtest_filter=All/Conformance.PlainNumbers/misread_unmasked_f32",
            f"--tool racecheck {self.folder}/conformance_misread"
            " --gtest_filter=All/Conformance.PlainNumbers/misread_raced_f32"])

    def test_racecheck_wants_those_without_shared_memory_too(self):
        shown = self.sanitize("racecheck", {"square.vec4": 4, "sum.two_pass": 4})
        self.assertEqual(self.code, 0, shown)
        self.assertRegex(shown, "PASS  racecheck square +1 cases ")
        self.assertIn("launched: square.vec4 8, sum.two_pass 8", shown)
        shown = self.sanitize("racecheck", {"square.vec4": 0, "sum.two_pass": 4})
        self.assertEqual(self.code, 1)
        self.assertIn("never: square.vec4", shown)

    def test_the_suite_is_run_by_kernel(self):
        self.passed = "[  PASSED  ] 2 tests.\n"
        shown = self.suite("conformance")
        self.assertEqual(self.code, 0, shown)
        self.assertIn("6 passed, 0 failed, 0 skipped of 6", shown)
        self.assertEqual(sorted(self.asked()), [
            "--gtest_filter=All/Conformance.PlainNumbers/square_naive_f32:All/Conformance.NaNAndInfinities/square_naive_f32",
            "--gtest_filter=All/Conformance.PlainNumbers/sum_naive_f32:All/Conformance.NaNAndInfinities/sum_naive_f32",
            "--gtest_filter=Catalogue.CanBeTestedHere:Catalogue.EveryListedExceptionFitsATest"])

    def test_a_test_that_is_added_is_run_and_one_that_is_not_understood_fails(self):
        self.passed = "[  PASSED  ] 2 tests.\n"
        self.suite("conformance", others="Fresh.\n  First\n  Second\n")
        self.assertEqual(self.code, 0)
        self.assertIn("--gtest_filter=Fresh.First:Fresh.Second", self.asked())
        shown = self.suite("conformance", others="  NewKind/some_case  # GetParam() = (1, 2)\n")
        self.assertEqual(self.code, 1)
        self.assertIn("'All/Conformance.NewKind/some_case': want a parameter as device/kernel/variant/dtype", shown)

    def test_under_a_tool_plain_steps_over_lists_are_alone_come_first_and_know_of_it(self):
        self.compute_sanitizer("launched adamw.naive 3\nlaunched sum.naive 1\n" + PASSED + CLEAN,
                               f'echo "$GRIDCLOCK_TEST_TOOL $*" >>{self.folder}/under')
        kinds = "PlainNumbers", "TensorsThatAreAlignedToTheirElementsAlone"
        shown = self.suite("sanitizer", "--tools", "memcheck,synccheck",
                           cases=[(kind, kernel) for kernel in ("sum", "adamw") for kind in kinds], shards="1")
        self.assertEqual(self.code, 0, shown)
        under = (self.folder / "under").read_text().splitlines()
        self.assertEqual([line.count("/adamw_naive") for line in under], [1, 1, 1, 1, 0, 0])
        self.assertEqual([line.count("/sum_naive") for line in under], [0, 0, 0, 0, 2, 2])
        self.assertEqual([line.split()[0] for line in under], ["memcheck"] * 2 + ["synccheck"] * 2 + ["memcheck", "synccheck"])
        self.assertIn("memcheck adamw.naive 1/2", shown)

    def test_what_racecheck_sees_in_a_moment_is_last(self):
        self.compute_sanitizer("launched adamw.naive 3\nlaunched sum.naive 1\n" + PASSED + CLEAN,
                               f'echo "$GRIDCLOCK_TEST_TOOL $*" >>{self.folder}/under')
        self.suite("sanitizer", "--tools", "racecheck,memcheck", shards="1",
                   cases=[("PlainNumbers", kernel) for kernel in ("adamw", "square", "sum")])
        under = [line.split() for line in (self.folder / "under").read_text().splitlines()]
        self.assertEqual([(words[0], words[-1].split("/")[-1]) for words in under], [
            ("racecheck", "adamw_naive_f32"), ("memcheck", "adamw_naive_f32"), ("racecheck", "sum_naive_f32"),
            ("memcheck", "square_naive_f32"), ("memcheck", "sum_naive_f32"), ("racecheck", "square_naive_f32")])

    def test_no_tool_is_said_where_none_is(self):
        self.before = f'echo "tool=$GRIDCLOCK_TEST_TOOL" >>{self.folder}/tool'
        self.suite("conformance")
        self.assertEqual(set((self.folder / "tool").read_text().splitlines()), {"tool="})

    def test_all_of_the_suite_runs_on_each_gpu_which_has_a_row(self):
        self.worker(gpus=2)
        self.passed, self.before = "[  PASSED  ] 2 tests.\n", self.SAYS_ITS_GPU
        shown = self.suite("conformance")
        self.assertEqual(self.code, 0, shown)
        self.assertEqual(self.seen(), {gpu: ["Catalogue", "square", "sum"] for gpu in ("GPU-0", "GPU-1")})
        self.assertRegex(shown, "PASS  conformance sum on cuda:1 +2 cases ")
        for row in ("on cuda:0 .* 6 passed, 0 failed, 0 skipped of 6 ", "on cuda:1 .* 6 passed, 0 failed, 0 skipped of 6 ",
                    " .* 12 passed, 0 failed, 0 skipped of 12 "):
            self.assertRegex(shown, f"PASS  conformance {row}")

    def test_so_do_its_largest_tensors(self):
        self.worker(gpus=2)
        self.passed, self.before = "[  PASSED  ] 1 test.\n", self.SAYS_ITS_GPU
        shown = self.suite("huge", cases=[("MoreThanTwoToThe31Elements", "sum")])
        self.assertEqual(self.code, 0, shown)
        self.assertEqual(self.seen(), {"GPU-0": ["sum"], "GPU-1": ["sum"]})
        self.assertRegex(shown, r"PASS  2\^31 and more, on cuda:1 .* 1 passed")

    def test_what_one_gpu_fails_is_told_of_it_and_alone_run_again(self):
        self.worker(gpus=2)
        kept = "--keep", str(self.folder / "kept")
        self.passed = "[  PASSED  ] 2 tests.\n"
        self.before = f'{self.SAYS_ITS_GPU}\n[ ! -e {self.folder}/bad ] || case "$CUDA_VISIBLE_DEVICES $1" in GPU-1*sum*) exit 3;; esac'
        (self.folder / "bad").touch()
        shown = self.suite("conformance", *kept)
        self.assertEqual(self.code, 1)
        for row in ("PASS  conformance sum on cuda:0 ", "FAIL  conformance sum on cuda:1 ", "PASS  conformance on cuda:0 ",
                    "FAIL  conformance on cuda:1 .* 4 passed, .* of 6 ", "FAIL  conformance  .* 10 passed, .* of 12 "):
            self.assertRegex(shown, row)
        for name in ("bad", "seen"):
            (self.folder / name).unlink()
        self.suite("conformance", *kept)
        self.assertEqual(self.code, 0)
        self.assertEqual(self.seen(), {"GPU-1": ["sum"]})

    def test_gpus_work_at_the_same_time_and_a_shard_is_of_one(self):
        # Each group waits in a pipe for the same group on the other GPU, and has its own GPU alone.
        self.worker(gpus=2)
        self.passed = "[  PASSED  ] 2 tests.\n"
        self.before = f"""cd {self.folder}
mkdir "$CUDA_VISIBLE_DEVICES" || exit 1
pipe=pipe-$(echo "$1" | cksum | tr -d ' ')
mkfifo "$pipe" 2>/dev/null
case $CUDA_VISIBLE_DEVICES in GPU-0) read -r line <"$pipe";; *) echo met >"$pipe";; esac
rmdir "$CUDA_VISIBLE_DEVICES"
"""
        shown = self.suite("conformance", "--group-seconds", "20", shards="1")
        self.assertEqual(self.code, 0, shown)

    def test_a_gpu_that_is_alone_or_chosen_is_left_to_the_caller(self):
        self.passed, self.before = "[  PASSED  ] 2 tests.\n", self.SAYS_ITS_GPU
        self.assertNotIn(" on cuda:", self.suite("conformance"))
        self.assertEqual(list(self.seen()), ["any"])
        self.worker(gpus=4)
        for chosen, asked in (("GPU-2", ["GPU-2"]), ("GPU-1,GPU-3", ["GPU-1", "GPU-3"])):
            (self.folder / "seen").unlink()
            with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": chosen}):
                self.suite("conformance")
            self.assertEqual(self.code, 0)
            self.assertEqual(sorted(self.seen()), asked)

    def test_the_tools_look_at_one_gpu_alone(self):
        self.worker(gpus=2)
        self.compute_sanitizer("launched square.naive 4\n" + PASSED + CLEAN, f'echo "${{CUDA_VISIBLE_DEVICES-any}}" >>{self.folder}/under')
        self.suite("sanitizer", "--tools", "memcheck")
        self.assertEqual(self.code, 0)
        self.assertEqual((self.folder / "under").read_text().split(), ["any", "any"])

    def test_gpus_share_the_cpus(self):
        for cpus, gpus, shards, each in ((2, 1, None, 2), (64, 1, None, 16), (32, 2, None, 16), (16, 2, None, 8), (2, 4, None, 1),
                                         (16, 0, None, 16), (16, 2, 28, 28)):
            with mock.patch.object(os, "sched_getaffinity", lambda _, cpus=cpus: set(range(cpus))):
                self.assertEqual(gpu_test.at_once(argparse.Namespace(shards=shards), ["gpu"] * gpus), each, (cpus, gpus))

    def test_a_case_that_did_not_run_fails(self):
        self.passed = "[  PASSED  ] 1 test.\n"
        self.suite("conformance")
        self.assertEqual(self.code, 1)

    def test_a_limit_costs_one_group_which_alone_is_run_again(self):
        kept = "--keep", str(self.folder / "kept")
        self.passed = "[  PASSED  ] 2 tests.\n"
        (self.folder / "slow").touch()
        self.before = f'[ ! -e {self.folder}/slow ] || case "$1" in *sum*) exec sleep 60;; esac'
        shown = self.suite("conformance", "--group-seconds", "10", *kept)
        self.assertEqual(self.code, 1)
        self.assertRegex(shown, "FAIL  conformance sum .*exit code 124")
        self.assertRegex(shown, "PASS  conformance square ")
        (self.folder / "asked").unlink()
        (self.folder / "slow").unlink()
        shown = self.suite("conformance", *kept)
        self.assertEqual(self.code, 0, shown)
        self.assertIn("6 passed, 0 failed, 0 skipped of 6", shown)
        self.assertEqual([line for line in self.asked() if "sum" not in line], [])

    def test_what_another_program_passed_is_run_again(self):
        kept = "--keep", str(self.folder / "kept")
        self.passed = "[  PASSED  ] 2 tests.\n"
        for build, times in (("one", 3), ("two", 6), ("two", 6)):
            self.before = f"# {build}"
            self.suite("conformance", *kept)
            self.assertEqual(len(self.asked()), times)

    def test_what_another_gpu_passed_is_run_again(self):
        kept = "--keep", str(self.folder / "kept")
        self.passed = "[  PASSED  ] 2 tests.\n"
        for model, times in (("H100", 3), ("H200", 6), ("H200", 6)):
            self.worker(model)
            self.suite("conformance", *kept)
            self.assertEqual(len(self.asked()), times)

    def test_where_nobody_knows_which_gpu_is_here_nothing_is_kept(self):
        kept = "--keep", str(self.folder / "kept")
        self.worker(before="echo no such library >&2; exit 127")
        shown = self.suite("conformance", *kept)
        self.assertEqual(self.code, 1)
        self.assertIn("gridclock-test-worker --list-devices: exit code 127: no such library", shown)
        self.program("gridclock-test-worker", "GPUs: 1\n")
        self.assertIn("gridclock-test-worker --list-devices: want a line of JSON, got 'GPUs: 1'", self.suite("conformance", *kept))
        (self.folder / "gridclock-test-worker").unlink()
        self.assertIn("gridclock-test-worker --list-devices: No such file", self.suite("conformance", *kept))
        self.assertEqual(self.code, 1)
        self.assertFalse((self.folder / "kept").exists())

    def test_a_row_that_a_cut_off_run_left_half_written_is_run_again(self):
        kept = self.folder / "kept"
        self.passed = "[  PASSED  ] 2 tests.\n"
        self.suite("conformance", "--keep", str(kept))
        rows = kept.read_text().splitlines(keepends=True)
        kept.write_text("".join(rows[:-1]) + rows[-1][:-9])
        for times in (4, 4):
            self.suite("conformance", "--keep", str(kept))
            self.assertEqual(self.code, 0)
            self.assertEqual(len(self.asked()), times)
        kept.write_text("no row\n")
        self.assertIn("kept: want a line of JSON, got b'no row'", self.suite("conformance", "--keep", str(kept)))
        self.assertEqual(self.code, 1)

    def test_a_program_that_ends_while_it_lists_its_tests_fails(self):
        self.passed = "[  PASSED  ] 2 tests.\n"
        self.suite("conformance")
        self.assertEqual(self.code, 0)
        self.ending = "echo CUDA error >&2; exit 3"
        shown = self.suite("conformance")
        self.assertEqual(self.code, 1)
        self.assertIn("conformance_cuda_test --gtest_list_tests: exit code 3: CUDA error", shown)

    def test_other_cases_of_the_same_name_and_other_tools_are_run(self):
        kept = gpu_test.Kept(self.folder / "kept", self.program("conformance_cuda_test", ""))
        one, other = ((groups.Case(f"All/Conformance.PlainNumbers/sum_{dtype}", "sum"),) for dtype in ("f32", "f64"))
        kept.put(groups.Group("conformance sum 1/2", one, ("compute-sanitizer", "--tool", "memcheck")), True, {"passed": 1})
        kept.put(groups.Group("failed", other), False, {"passed": 0})
        kept = gpu_test.Kept(self.folder / "kept", self.folder / "conformance_cuda_test")
        memcheck = "compute-sanitizer", "--tool", "memcheck"
        self.assertEqual(kept.take(groups.Group("conformance sum 2/2", one, memcheck)), {"passed": 1})
        self.assertIsNone(kept.take(groups.Group("conformance sum 1/2", other, memcheck)))
        self.assertIsNone(kept.take(groups.Group("conformance sum 1/2", one)))
        self.assertIsNone(kept.take(groups.Group("failed", other)))

    def test_without_a_gpu_nothing_passes(self):
        self.suite("conformance", cases=())
        self.assertEqual(self.code, 1)

    def test_racecheck_takes_one_small_case_of_each_variant_and_size_that_shared_memory_depends_on(self):
        def case(kernel, variant, dtype, kind="PlainNumbers"):
            return groups.Case(f"{kind} {kernel} {variant} {dtype}", kernel, kind, dtype, variant)

        taken = [case(*names) for names in (
            ("square", "naive", "f32"), ("square", "vec4", "f32"), ("of_integers", "naive", "i32"), ("sum", "two_pass", "f32"),
            ("sum", "two_pass", "f64"), ("sum", "two_pass", "f16"), ("sum", "two_pass", "bf16", "LargeTensors"))]
        left = [case(*names) for names in (
            ("square", "vec4", "f16"), ("square", "vec4", "f64"), ("square", "vec4", "f32", "NaNAndInfinities"),
            ("square", "vec4", "f32", "TensorsThatAreAlignedToTheirElementsAlone"), ("square", "vec4", "bf16", "LargeTensors"),
            ("sum", "two_pass", "bf16"), ("sum", "two_pass", "f32", "NaNAndInfinities"))]
        self.assertEqual(gpu_test.cases_for("racecheck", left + taken), taken)
        self.assertEqual(gpu_test.cases_for("racecheck", taken + left), taken)
        self.assertEqual(len(gpu_test.cases_for("memcheck", taken + left)), 12)

    def test_kernels_with_shared_memory_are_known_by_what_they_include(self):
        (self.folder / "kernels/catalog").mkdir(parents=True)
        for path, text in {"plain.cu": "__global__ void Run();\n", "own.cu": "__shared__ float tile[32];\n",
                           "blocks.cuh": "cub::BlockReduce<float, 256>\n",
                           "helper.cuh": '#include "kernels/catalog/blocks.cuh"\n',
                           "by_helper.cu": '#include "kernels/catalog/helper.cuh"\n'}.items():
            (self.folder / "kernels/catalog" / path).write_text(text)
        self.assertEqual(gpu_test.kernels_with(self.folder, r"__shared__|cub::"), ["by_helper", "own"])

    def test_of_large_cases_tools_take_those_whose_way_no_small_one_goes(self):
        def tools(kernel, variant, dtype):
            case = groups.Case("x", kernel, "LargeTensors", dtype, variant)
            return [tool for tool in gpu_test.TOOLS if gpu_test.is_for(tool, case)]

        self.assertEqual(tools("relu", "vec4", "bf16"), ["memcheck"])
        self.assertEqual(tools("sum", "two_pass", "f32"), [])
        for kernel, variant, dtype in (("sum", "two_pass", "bf16"), ("cumsum", "scan", "f32"), ("softmax", "shared", "f32"),
                                       ("layernorm", "streamed", "f32")):
            self.assertEqual(tools(kernel, variant, dtype), list(gpu_test.TOOLS))
        self.assertEqual(tools("relu", "naive", "bf16"), [])

    def test_those_of_the_catalogue_are_known(self):
        self.assertGreater(len(gpu_test.SHARED), 10)
        self.assertIn("matmul_bias_gelu", gpu_test.SHARED)
        self.assertNotIn("square", gpu_test.SHARED)
        self.assertEqual(gpu_test.LISTS, ["adam", "adamw", "foreach_add", "foreach_mul", "sgd"])


if __name__ == "__main__":
    unittest.main()
