"""Whether the default is called the fastest, from times that are told; and what is made of ncu's pages."""
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402: beside this file.
from speed import gpu_exact, gpu_limits, gpu_variants  # noqa: E402
from speed.gpu_catalog import Case, elements, lists  # noqa: E402

CASE = Case("softmax", (65536, 1024), ("--shape", "N=1024", "axis=-1", "v=uniform:0:1"), 8, "x")


class Variants(unittest.TestCase):
    def lines(self, times, default, case=CASE, rounds=2, flags=None):
        """Of a kernel whose variants take these times; None: it does not take the call."""
        def ask(_, variant):
            ns = times[variant or default]
            if isinstance(ns, str):
                raise RuntimeError(ns)
            return {"variant": variant or default, "flags": (flags or {}).get(variant or default, []), "timing": {"statistics": {"median_ns": ns}}}

        return gpu_variants.Table(ask, lambda _: list(times)).lines_of(case, rounds)

    def test_the_default_is_held_against_the_fastest_other(self):
        line, = self.lines({"online": 3000, "shared": 1960, "registers": 2000}, "registers")
        self.assertEqual((line.verdict, line.samples), ("PASS", [0.98, 0.98]))
        self.assertEqual(line.extra, {"registers": [2, 2], "online": [3, 3], "shared": [1.96, 1.96]})
        line, = self.lines({"shared": 1950, "registers": 2000}, "registers")
        self.assertEqual(line.verdict, "FAIL")

    def test_a_doubt_about_a_slow_one_is_none_about_the_fastest(self):
        times = {"online": 3000, "shared": 2100, "registers": 2000}
        for doubted, verdict in (("online", "PASS"), ("shared", "FAIL"), ("registers", "FAIL")):
            line, = self.lines(times, "registers", flags={doubted: ["SUSPECT"]})
            self.assertEqual(line.verdict, verdict, doubted)

    def test_a_doubt_about_any_that_is_faster_than_the_default_is_one_about_it(self):
        times = {"online": 1970, "shared": 1980, "registers": 2000}
        line, = self.lines(times, "registers")
        self.assertEqual(line.verdict, "PASS")
        line, = self.lines(times, "registers", flags={"shared": ["SUSPECT"], "online": ["SUSPECT"]})
        self.assertEqual((line.verdict, line.flags), ("FAIL", ["SUSPECT"]))

    def test_what_does_not_take_the_call_is_left_out(self):
        refused = "variant 'registers' of kernel 'softmax' takes only calls where N <= 1024"
        line, = self.lines({"registers": refused, "online": 3000, "shared": 2000}, "shared")
        self.assertEqual(line.samples, [1.5, 1.5])
        self.assertEqual(self.lines({"registers": refused, "shared": 2000}, "shared"), [])

    def test_a_call_that_leaves_no_choice_is_not_measured(self):
        few, = elements("relu", "x", sizes=(1000,))
        self.assertEqual(self.lines({"naive": "INTERNAL: asked", "vec4": "INTERNAL: asked"}, "vec4", case=few), [])

    def test_a_list_of_variants_that_lacks_the_one_that_ran_is_missed(self):
        def ask(_, variant):
            return {"variant": variant or "registers", "flags": [], "timing": {"statistics": {"median_ns": 1000}}}

        for told in ([], ["online", "shared"]):
            line, = gpu_variants.Table(ask, lambda _: told).lines_of(CASE, 1)
            self.assertEqual((line.verdict, line.skipped), ("FAIL", "describe does not list registers, which ran"))

    def test_what_cannot_be_measured_is_missed(self):
        line, = self.lines({"online": "INTERNAL: broken", "shared": 2000}, "shared")
        self.assertEqual((line.verdict, line.skipped), ("FAIL", "INTERNAL: broken"))

    def test_plain_steps_are_timed_where_that_takes_moments(self):
        small, large, much = elements("gelu", "x", sizes=(1000, 1 << 26, 1 << 28))
        for case, others in ((small, ["vec8"]), (large, ["naive", "vec8"]), (much, ["vec8"])):
            self.assertEqual(gpu_variants.others_of(case, ["naive", "vec8", "vec4"], "vec4"), others)
        adam, = lists("adam", "x", 7)
        self.assertEqual(gpu_variants.others_of(adam, ["naive", "foreach", "auto"], "auto"), ["foreach"])

    def test_what_takes_seconds_a_launch_is_left_to_the_lessons(self):
        large, = elements("vector_add", "x", sizes=(1 << 26,))
        self.assertEqual(gpu_variants.others_of(large, ["serial", "one_block", "naive", "vec4"], "vec4"), ["naive"])

    def test_what_is_less_exact_is_no_rival(self):
        self.assertEqual(gpu_variants.others_of(CASE, ["cublaslt_tf32", "tiled"], "cublaslt"), ["tiled"])

    def test_no_two_cases_share_a_name(self):
        names = [gpu_variants.name_of(case) for case in gpu_variants.cases()]
        self.assertEqual(len(names), len(set(names)))


HEAD = ('"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type",'
        '"Rule Description"\n')
RULE = '"{}","7","Rows(float)","WarpStateStats","","","","CPIStall","WRN","Warps wait for {}. More\nis said."\n'
COMPLAINT = ('"{}","7","Rows(float)","WarpStateStats","","","","CPIStall","WRN","The optional metric '
             'smsp__pcsamp_sample_count could not be found. Collecting it as an additional metric could enable the '
             'rule to provide more guidance."\n')
WAIT = ('"{}","7","Rows(float)","Command line profiler metrics",'
        '"smsp__average_warps_issue_stalled_{}_per_issue_active.ratio","inst","{}","","",""\n')


def launch(number, kernel="Rows(float)", dram="91.5", ns="2,000"):
    values = {"DRAM Throughput": dram, "L2 Cache Throughput": "60", "L1/TEX Cache Throughput": "40",
              "Compute (SM) Throughput": "30", "Duration": ns}
    return "".join(f'"{number}","7","{kernel}","SpeedOfLight","{name}","%","{value}","","",""\n' for name, value in values.items())


class Limits(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        told = {"kernel": "softmax", "inputs": [{"name": "x", "tensors": ["f32[65536,1024]"]},
                                                {"name": "n", "tensors": ["i32[2]", "i32[3]"]},
                                                {"name": "v", "tensors": ["f32[2]"]}],
                "results": [{"variant": "registers"}]}
        for name, value in (("gpu_server", mock.DEFAULT), ("CASES", [CASE]), ("run_json", lambda *_: told)):
            self.enterContext(mock.patch.object(gpu_limits, name, mock.MagicMock() if value is mock.DEFAULT else value))
        self.enterContext(mock.patch.object(gpu_limits.gpu, "describe"))

    def measure(self, prints, rows="*soft*", code=0, missed=()):
        (self.folder / "said").write_text(prints)
        program = self.folder / "ncu"
        program.write_text(f'#!/bin/sh\necho "$@" >{self.folder}/asked\ncat {self.folder}/said\nexit {code}\n')
        program.chmod(0o755)
        with mock.patch.object(gpu_limits, "find_ncu", lambda: program):
            return list(gpu_limits.measure(bench.Config(self.folder, rows=rows, missed=set(missed))))

    def test_the_part_that_goes_farthest_is_told(self):
        line, = self.measure("==PROF== Connected\n" + HEAD + launch(0, dram="10") + launch(1) + RULE.format(1, "memory") +
                             "==PROF== Disconnected\n")
        self.assertEqual((line.verdict, line.samples), ("info", [91.5]))
        self.assertIn("Rows, the part that goes farthest: dram; Warps wait for memory", line.what)
        self.assertEqual((line.extra["ns"], line.extra["sm_percent"]), ([2000], [30]))

    def test_what_ncu_misses_is_no_stall(self):
        line, = self.measure(HEAD + launch(0) + launch(1) + COMPLAINT.format(1) + RULE.format(1, "memory"))
        self.assertTrue(line.what.endswith("farthest: dram; Warps wait for memory"), line.what)

    def test_where_the_rule_finds_nothing_the_metrics_tell_the_stall(self):
        waits = (("math_pipe_throttle", "2.50"), ("wait", "1.25"), ("long_scoreboard", "1,000.0"), ("gmma", "n/a"))
        said = HEAD + launch(0) + launch(1) + COMPLAINT.format(1)
        line, = self.measure(said + "".join(WAIT.format(1, *wait) for wait in waits[:2] + waits[3:]))
        self.assertTrue(line.what.endswith("farthest: dram; warps wait most for math_pipe_throttle, "
                                           "2.5 of 3.8 cycles of waiting an instruction"), line.what)
        line, = self.measure(said + "".join(WAIT.format(1, *wait) for wait in waits))
        self.assertIn("most for long_scoreboard", line.what)
        line, = self.measure(said)
        self.assertTrue(line.what.endswith("farthest: dram"), line.what)

    def test_of_the_second_call_the_longest_launch_counts(self):
        line, = self.measure(HEAD + launch(0, ns="9,000") + launch(1) + launch(2, "Parts(float)", ns="5,000") + launch(10))
        self.assertIn("Parts, the part", line.what)

    def test_the_same_call_is_asked_of_the_worker(self):
        self.measure(HEAD + launch(0) + launch(1))
        asked = (self.folder / "asked").read_text()
        self.assertIn("stalled_long_scoreboard_per_issue_active.ratio", asked)
        self.assertIn("--variant registers softmax x=randn:f32[65536,1024] n=randint:0:100:i32[2] n=randint:0:100:i32[3] "
                      "v=uniform:0:1:f32[2] axis=-1\n", asked)

    def test_an_ncu_that_tells_nothing_is_said(self):
        for prints, code, why in (("==ERROR== ERR_NVGPUCTRPERM\n", 1, "ERR_NVGPUCTRPERM"), ("", 0, "ncu told nothing")):
            line, = self.measure(prints, code=code)
            self.assertEqual(line.verdict, "----")
            self.assertIn(why, line.skipped)

    def test_without_names_those_that_missed_a_goal_are_looked_at(self):
        said = HEAD + launch(0) + launch(1)
        self.assertEqual(self.measure(said, rows="*"), [])
        self.assertEqual(len(self.measure(said, rows="*", missed=["gpu.catalog.softmax.65536x1024.torch"])), 1)


class Exact(unittest.TestCase):
    def test_the_error_is_held_against_the_direct_forms(self):
        line, product = gpu_exact.lines_of({"ours": 2e-7, "direct": 1e-7, "product": 1e-3})
        self.assertEqual((line.verdict, line.samples), ("PASS", [2]))
        self.assertAlmostEqual(product.measured, 5000)
        self.assertEqual(gpu_exact.lines_of({"ours": 3e-7, "direct": 1e-7, "product": 1})[0].verdict, "FAIL")

    def test_no_error_at_all_is_told_and_ends_nothing(self):
        line, = gpu_exact.lines_of({"ours": 2e-7, "direct": 0, "product": 1e-3})
        self.assertEqual(line.verdict, "FAIL")
        self.assertIn("no error at all", line.skipped)
        line, product = gpu_exact.lines_of({"ours": 0, "direct": 1e-7, "product": 1e-3})
        self.assertEqual((line.verdict, product.skipped), ("PASS", "ours has no error at all"))


if __name__ == "__main__":
    unittest.main()
