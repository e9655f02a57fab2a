"""What gpu-test writes down, by programs that only print; and the files of it that are kept here."""
import contextlib
import copy
import importlib.util
import io
import json
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

REPO = pathlib.Path(__file__).resolve().parents[2]
RESULTS = sorted((REPO / "tests/gpu/results").glob("*.json"))
LAST_OF_SOME = "2026-11-28"  # Until then racecheck looked only at kernels with shared memory.
HEAD = {"device": "NVIDIA H100", "driver": "580.159.04", "cuda": "13.0"}
TOLD = """\
[ RUN      ] ServerGpuTest.G1_G3_AFaultCostsOneCall
illegal_address    7 rounds  answer  0.146 s (goal 1)  next kernel  0.421 s (goal 2)  0 wrong
assert             7 rounds  answer  0.010 s (goal 1)  next kernel  2.100 s (goal 2)  0 wrong
[       OK ] ServerGpuTest.G1_G3_AFaultCostsOneCall (9 ms)
[ RUN      ] ServerGpuTest.G4_AnEndlessKernelEndsAtItsLimit
calls on cuda:1 beside trap: 1000 good, 1 bad, the slowest 0.001000 s later than without
[  FAILED  ] ServerGpuTest.G4_AnEndlessKernelEndsAtItsLimit (9 ms)
[ RUN      ] ServerGpuTest.CallsThatNameNoGpuAreServedByAllOfThem
calls that name '': on 2 of 2 GPUs: cuda:0 83, cuda:1 77
calls that name 'cuda': on 2 of 2 GPUs: cuda:0 83, none 77
[       OK ] ServerGpuTest.CallsThatNameNoGpuAreServedByAllOfThem (9 ms)
[ RUN      ] LateNeighbourTest.G12_AMedianFromBeforeTheOtherProcessIsSuspect
late neighbour, round 1 of 2: SUSPECT 1, 116 of 160 samples alone; without it 0 of 2 SUSPECT
late neighbour, round 2 of 2: SUSPECT 0, 116 of 160 samples alone; without it 1 of 2 SUSPECT
[       OK ] LateNeighbourTest.G12_AMedianFromBeforeTheOtherProcessIsSuspect (9 ms)
[ RUN      ] ServerGpuTest.Five
server_gpu_test.cc:199: Skipped
too little memory

[  SKIPPED ] ServerGpuTest.Five (0 ms)
[  PASSED  ] 3 tests.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] ServerGpuTest.Five
[  FAILED  ] 1 test, listed below:
[  FAILED  ] ServerGpuTest.G4_AnEndlessKernelEndsAtItsLimit
"""
UNITS = """\
test_a (t.T.test_a) ... ok
test_b (t.T.test_b)
What it shows. ... skipped 'no nvidia-smi here'
test_c (t.T.test_c)
GRIDCLOCK_SUBMISSIONS: so many. ... 1000 submissions, 5.9 per second; the second half took 2.95 MiB
FAIL
FAIL: test_c (t.T.test_c) (columns=3)
FAIL: test_c (t.T.test_c) (columns=4)
Ran 3 tests in 0.1s
"""


def load(path):
    spec = importlib.util.spec_from_file_location("gpu_table", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gpu_test = load(REPO / "tests/gpu/test.py")
record = sys.modules["record"]  # Beside it.


class Writing(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.out = self.folder / "kept/out.json"

    def table(self, commit="abcdef1", **head):
        return gpu_test.Table(record.Record(self.out, {**HEAD, **head}, 2, commit))

    def run_program(self, table, name, prints, code=0):
        (self.folder / "said").write_text(prints)
        program = self.folder / "program"
        program.write_text(f"#!/bin/sh\ncat {self.folder}/said\nexit {code}\n")
        program.chmod(0o755)
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            gpu_test.run_program(table, name, program, 10)
        return shown.getvalue()

    def parts(self):
        data = json.loads(self.out.read_text())
        self.assertEqual(record.problems_of(data), [])
        return data["parts"]

    def test_every_row_that_is_printed_is_written_with_its_goal_its_rounds_and_its_verdict(self):
        shown = self.run_program(self.table(), "server", TOLD, code=1)
        lines = self.parts()["server"]["lines"]
        self.assertEqual([(line["what"], line["rounds"], line["verdict"]) for line in lines], [
            ("server", 1, "FAIL"), ("fault illegal_address", 7, "PASS"), ("fault assert", 7, "FAIL"),
            ("calls beside trap", 1001, "FAIL"), ("calls for ''", 160, "PASS"), ("calls for 'cuda'", 160, "FAIL"),
            ("late neighbour 1/2", 1, "PASS"), ("late neighbour 2/2", 1, "FAIL")])
        rows = [line for line in shown.splitlines() if line.startswith(("PASS", "FAIL"))]
        self.assertEqual(len(rows), len(lines))
        for row, line in zip(rows, lines):
            self.assertRegex(row, rf"^{line['verdict']}  {re.escape(line['what'])} +{re.escape(line['goal'])} +"
                                  rf"{re.escape(line['measured'])} +{line['rounds']}\b")
        self.assertEqual(lines[1]["measured"], "0.146 s, next 0.421 s, 0 wrong")
        self.assertEqual(lines[4]["measured"], "on 2 of 2: cuda:0 83, cuda:1 77")

    def test_device_time_beside_the_gpus_timer_has_rows(self):
        self.run_program(self.table(), "device", """\
[ RUN      ] CudaTiming.DeviceTimeIsThatOfTheGpusOwnTimer
constant of device time 591 ns
           5          5.591          0        300          8.000         32          5.600        -46          9.700 PASS
          10         10.991        400        300         13.000         32         10.600        -46         14.700 FAIL
[  FAILED  ] CudaTiming.DeviceTimeIsThatOfTheGpusOwnTimer (9 ms)
[ RUN      ] CudaTiming.DeviceTimeIsThatOfTheGpusOwnTimerForManyBlocksAtOnce
many blocks: span 50 us, device time 51.200 us, off 0 ns, allowed 300 ns, isolated 32 ns more PASS
blocks: device time 101.000 us, stamps 100.000 us, off 1000 ns, allowed -1032 to 4032 ns PASS
[       OK ] CudaTiming.DeviceTimeIsThatOfTheGpusOwnTimerForManyBlocksAtOnce (9 ms)
[  PASSED  ] 1 test.
[  FAILED  ] 1 test, listed below:
[  FAILED  ] CudaTiming.DeviceTimeIsThatOfTheGpusOwnTimer
""", code=1)
        lines = self.parts()["device"]["lines"]
        self.assertEqual([(line["what"], line["goal"], line["measured"], line["verdict"]) for line in lines[1:]], [
            ("spin of 5 us by its timer", "off 300 ns at most", "5.591 us, off 0 ns", "PASS"),
            ("spin of 10 us by its timer", "off 300 ns at most", "10.991 us, off 400 ns", "FAIL"),
            ("many blocks spin 50 us", "off 300 ns at most", "51.200 us, off 0 ns", "PASS"),
            ("stamps of blocks", "off -1032 to 4032 ns", "101.000 us, off 1000 ns", "PASS")])

    def test_what_was_skipped_and_what_failed_is_named(self):
        self.run_program(self.table(), "server", TOLD, code=1)
        server = self.parts()["server"]
        self.assertEqual((server["passed"], server["failed"], server["skipped"], server["gpus"]), (3, 1, 1, 2))
        self.assertEqual(server["skips"], [{"test": "ServerGpuTest.Five", "reason": "too little memory"}])
        self.assertEqual(server["failures"], ["ServerGpuTest.G4_AnEndlessKernelEndsAtItsLimit"])

    def test_a_test_in_which_the_program_ended_has_failed(self):
        self.run_program(self.table(), "device", "[ RUN      ] A.B\n[       OK ] A.B (1 ms)\n[ RUN      ] A.C\n", code=139)
        self.assertEqual(self.parts()["device"]["failures"], ["A.C"])

    def test_unit_tests_are_named_too_and_a_figure_behind_a_name_is_seen(self):
        (self.folder / "t.py").write_text(f"print({UNITS!r})\nraise SystemExit(1)\n")
        with contextlib.redirect_stdout(io.StringIO()):
            gpu_test.run_units(self.table(), "submit", [self.folder / "t.py"], 60)
        submit = self.parts()["submit"]
        self.assertEqual((submit["passed"], submit["skips"], submit["failures"]),
                         (1, [{"test": "test_b (t.T.test_b)", "reason": "no nvidia-smi here"}], ["test_c (t.T.test_c)"]))
        self.assertEqual([(line["what"], line["rounds"], line["verdict"]) for line in submit["lines"]],
                         [("submit", 1, "FAIL"), ("submissions", 1000, "PASS")])

    def test_parts_of_several_calls_stay_each_with_its_commit(self):
        passed = "[  PASSED  ] 3 tests.\n"
        self.run_program(self.table("abcdef1"), "device", passed)
        self.run_program(self.table("abcdef1"), "module", passed)
        self.run_program(self.table("bcdef12"), "device", passed.replace("3", "4"))
        self.assertEqual([(part, told["commit"], told["passed"]) for part, told in self.parts().items()],
                         [("device", "bcdef12", 4), ("module", "abcdef1", 3)])

    def test_parts_of_another_machine_are_refused(self):
        self.run_program(self.table(), "device", "[  PASSED  ] 3 tests.\n")
        for what, other in (("device", "NVIDIA H200"), ("driver", "581.1"), ("cuda", "13.1")):
            with self.assertRaisesRegex(ValueError, f"has {what} {HEAD[what]}, this machine {other}"):
                self.table(**{what: other})

    def test_the_suite_and_the_tools_are_parts_of_their_own(self):
        listed = "".join(f"  PlainNumbers/{kernel}_naive_f32  # GetParam() = cuda/{kernel}/naive/f32\n" for kernel in ("sum", "max"))
        self.gpus(1)
        for name, prints in (("conformance_cuda_test", "[ RUN      ] A.B\nx.cc:1: Skipped\nno bf16\n\n[  SKIPPED ] A.B (1 ms)\n"
                                                      "launched sum.naive 2\n[  PASSED  ] 0 tests.\n[  SKIPPED ] 1 test, listed\n"),
                             ("compute-sanitizer", "launched sum.naive 2\nlaunched max.naive 0\n[  PASSED  ] 1 test.\n"
                                                   "========= Invalid __global__ read\n========= ERROR SUMMARY: 0 errors\n")):
            (self.folder / f"{name} says").write_text(prints)
            (self.folder / name).write_text(f'#!/bin/sh\ncase "$1" in --gtest_list_tests) printf "All/Conformance.\\n{listed}";; '
                                            f"*) cat '{self.folder}/{name} says';; esac\n")
            (self.folder / name).chmod(0o755)
        words = ["test.py", "--bin", str(self.folder), "--only", "conformance,sanitizer", "--tools", "memcheck", "--out", str(self.out)]
        with mock.patch.object(sys, "argv", words), mock.patch.object(gpu_test, "here", lambda _: (HEAD, 1)), \
                mock.patch.dict("os.environ", {"GRIDCLOCK_REVISION": "abcdef1", "PATH": f"{self.folder}:/usr/bin:/bin"}), \
                contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(gpu_test.main(), 1)
        parts = self.parts()
        self.assertEqual(list(parts), ["conformance", "memcheck"])
        self.assertEqual(parts["conformance"]["kernels"], {name: {"passed": 0, "failed": 0, "skipped": 1} for name in ("max", "sum")})
        self.assertEqual((parts["memcheck"]["errors"], parts["memcheck"]["launches"]), (0, {"max.naive": 0, "sum.naive": 4}))
        self.assertEqual([line["what"] for line in parts["memcheck"]["lines"][:1]], ["memcheck of misread.past_the_end"])

    def gpus(self, many):
        listed = "".join(f'{{"name": "cuda:{i}", "kind": "cuda", "uuid": "GPU-{i}{i}{i}{i}{i}{i}{i}{i}", "model": "H100"}}\n'
                         for i in range(many))
        worker = self.folder / "gridclock-test-worker"
        worker.write_text(f"#!/bin/sh\nprintf '%s' '{listed}'\n")
        worker.chmod(0o755)

    def test_of_several_gpus_the_suite_is_one_part_with_a_row_for_each(self):
        self.gpus(2)
        program = self.folder / "conformance_cuda_test"
        program.write_text('#!/bin/sh\ncase "$1" in --gtest_list_tests) printf "All/Conformance.\\n  PlainNumbers/sum_naive_f32  '
                           '# GetParam() = cuda/sum/naive/f32\\n";; *) echo "[  PASSED  ] 1 test.";; esac\n')
        program.chmod(0o755)
        words = ["test.py", "--bin", str(self.folder), "--only", "conformance", "--out", str(self.out)]
        with mock.patch.object(sys, "argv", words), mock.patch.object(gpu_test, "here", lambda _: (HEAD, 2)), \
                mock.patch.dict("os.environ", {"GRIDCLOCK_REVISION": "abcdef1"}), contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(gpu_test.main(), 0)
        part = self.parts()["conformance"]
        self.assertEqual((part["gpus"], part["passed"], part["kernels"]), (2, 2, {"sum": {"passed": 2, "failed": 0, "skipped": 0}}))
        self.assertEqual([line["what"] for line in part["lines"][-3:]], ["conformance on cuda:0", "conformance on cuda:1", "conformance"])

    def test_of_what_could_not_begin_nothing_is_left(self):
        table = self.table()
        self.run_program(table, "device", "[  PASSED  ] 3 tests.\n")
        table.record.put("huge", {})
        with contextlib.redirect_stdout(io.StringIO()):
            table.miss(["huge", "memcheck"], "conformance", "its cases", "no GPU here")
        self.assertTrue(table.failed)
        self.assertEqual(list(self.parts()), ["device"])

    def test_a_program_that_tells_no_figures_though_it_always_does_has_failed(self):
        self.assertIn("no figures", self.run_program(self.table(), "server", "[  PASSED  ] 3 tests.\n"))
        self.assertEqual(self.parts()["server"]["lines"][0]["verdict"], "FAIL")

    def test_without_a_commit_nothing_is_written(self):
        with mock.patch.dict("os.environ", {"GRIDCLOCK_REVISION": "", "GIT_DIR": str(self.folder)}), \
                self.assertRaisesRegex(ValueError, "want a commit"):
            record.commit_of()


class Kept(unittest.TestCase):
    """The files of this repository."""

    def test_each_is_whole(self):
        self.assertTrue(RESULTS)
        for path in RESULTS:
            self.assertEqual(record.problems_of(json.loads(path.read_text())), [], path.name)

    def test_tools_launched_the_variants_of_the_catalogue_of_today(self):
        version = re.search(r"project\(gridclock VERSION ([\d.]+)", (REPO / "CMakeLists.txt").read_text())[1]
        for path in RESULTS:
            if path.name.startswith(f"{version}-"):
                for part, told in json.loads(path.read_text())["parts"].items():
                    if part in record.TOOLS:
                        wanted = [variants()]
                        if part == "racecheck" and told["date"] <= LAST_OF_SOME:
                            wanted.append(variants(gpu_test.SHARED))
                        self.assertIn(sorted(told["launches"]), wanted, f"{path.name}: {part}")
                        self.assertNotIn(0, told["launches"].values(), f"{path.name}: {part}")

    def test_a_file_that_was_changed_by_hand_is_seen(self):
        line = {"what": "module", "goal": "none fails", "measured": "1 passed", "verdict": "PASS", "rounds": 1, "seconds": 3.5}
        about = {"commit": "abcdef1", "date": "2026-11-27", "gpus": 1, "lines": [line]}
        counts = {"passed": 1, "failed": 0, "skipped": 0}
        good = {**HEAD, "parts": {
            "module": {**about, **counts, "skips": [], "failures": []},
            "huge": {**about, **counts, "skips": [], "failures": [], "kernels": {"sum": counts}},
            "memcheck": {**about, "errors": 0, "launches": {"sum.naive": 4}}}}
        self.assertEqual(record.problems_of(good), [])
        for keys, value, said in (
                (("driver",), None, "head: want driver"), (("parts",), {}, "there are none"),
                (("parts", "modules"), {}, "modules: want one of"), (("parts", "module", "commit"), "abcdef1-dirty", "want commit as"),
                (("parts", "module", "date"), "today", "want date as"), (("parts", "module", "passed"), "1", "want passed"),
                (("parts", "module", "skipped"), 1, "1 are skipped, 0 are named"),
                (("parts", "module", "failed"), 1, "1 failed, 0 are named"), (("parts", "module", "lines"), [], "it has no line"),
                (("parts", "module", "lines", 0, "verdict"), "good", "want PASS or FAIL"),
                (("parts", "module", "lines", 0, "rounds"), None, "want rounds"),
                (("parts", "module", "lines", 0, "measured"), "GPU-" + "0123abcd", "of a GPU is told"),
                (("parts", "huge", "kernels", "sum"), {**counts, "passed": 2}, "its kernels have 2 passed, it says 1"),
                (("parts", "memcheck", "launches"), None, "want launches")):
            bad = copy.deepcopy(good)
            inner = bad
            for key in keys[:-1]:
                inner = inner[key]
            inner[keys[-1]] = value
            self.assertRegex("\n".join(record.problems_of(bad)), said)

    def test_counts_alone_are_of_the_time_before_there_was_a_writer(self):
        part = {"commit": "abcdef1", "date": "2026-11-26", "counts_only": True, "passed": 1, "failed": 0, "skipped": 4}
        self.assertEqual(record.problems_of({**HEAD, "parts": {"server": part}}), [])
        self.assertNotEqual(record.problems_of({**HEAD, "parts": {"server": {**part, "date": "2026-11-27"}}}), [])


def variants(of=None):
    """Those for GPUs that docs/kernels.md has, which a test holds against the catalogue; of some kernels alone."""
    sections = re.split(r"(?m)^## ", (REPO / "docs/kernels.md").read_text())[1:]
    found = {section.split("\n", 1)[0]: re.findall(r"(?m)^\| `(\w+)` \| cuda \| ", section) for section in sections}
    return sorted(f"{kernel}.{variant}" for kernel, names in found.items() if of is None or kernel in of for variant in names)


if __name__ == "__main__":
    unittest.main()
