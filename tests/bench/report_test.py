"""The page of figures cannot pass where there are none."""
import contextlib
import dataclasses
import io
import json
import pathlib
import re
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402: beside this file.
import report  # noqa: E402
from speed import callgrind, kernels  # noqa: E402
from speed.line import Line  # noqa: E402


def result(groups, rounds=9, lines=()):
    line = Line("small.round_trip", "a round trip", "<=", 3, "x", samples=[2.0] * rounds)
    return {"commit": "abc", "date": "2026-01-02", "cpus": 2, "load_at_start": 0.1, "rounds": rounds, "libraries": {},
            "groups": groups, "lines": [one.as_json() for one in (line, *lines)]}


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("DOCS", "RESULTS"):
            patch = mock.patch.object(report, name, self.folder)
            patch.start()
            self.addCleanup(patch.stop)
        self.page, self.cpu_page = self.folder / "benchmarks.md", self.folder / "benchmarks-cpu.md"

    def run_report(self, *arguments):
        told = io.StringIO()
        with mock.patch.object(sys, "argv", ["report.py", *arguments]), contextlib.redirect_stdout(told):
            return report.main(), told.getvalue()

    def test_a_page_without_figures_says_so(self):
        self.assertEqual(self.run_report()[0], 0)
        self.assertIn("no figures yet of these groups of goals: small, metrics, bulk, memory, kernels, catalog_cpu, modules, submissions, build, "
                      "gpu_kernels, gpu_catalog, gpu_variants, gpu_exact, gpu_timing, gpu_truth, gpu_ncu, gpu_limits, gpu_bulk, "
                      "gpu_faults, gpu_neighbour, gpu_lessons, gpu_modules.",
                      self.page.read_text())
        self.assertEqual(self.run_report("--check")[0], 0)

    def test_a_page_that_does_not_name_what_is_missing_fails(self):
        self.run_report()
        self.page.write_text(re.sub(r"## Not measured\n\n.*\n", "", self.page.read_text()))
        code, told = self.run_report("--check")
        self.assertEqual((code, told.split(":")[0]), (1, "docs/benchmarks.md"))

    def test_a_missing_group_is_named(self):
        (self.folder / "a.json").write_text(json.dumps(result(["small", "bulk"])))
        self.run_report()
        self.assertIn("goals: metrics, memory, kernels, catalog_cpu, modules, submissions, build, gpu_kernels, gpu_catalog, gpu_variants, gpu_exact, gpu_timing, "
                      "gpu_truth, gpu_ncu, gpu_limits, gpu_bulk, gpu_faults, gpu_neighbour, gpu_lessons, gpu_modules.", self.page.read_text())

    def test_a_group_of_which_some_rows_alone_were_measured_is_not_missing(self):
        for samples, is_missing in (([1.0], False), ([], True)):
            line = Line("gpu.limits.x", "x", ">=", 0, samples=samples, informative=True)
            data = result(["small"])
            data["lines"].append({**line.as_json(), "group": "gpu_limits"})
            page = self.page_of_result(data)
            self.assertEqual("gpu_limits" in page.split("## Not measured")[1].split("## ")[0], is_missing)
            self.assertEqual("\n## 2026-01-02, abc: rows of gpu_limits, small\n" in page, not is_missing)

    def every_goal(self, leave_out=""):
        """Of all groups, with a figure each."""
        goals = [goal for group in (*bench.GROUPS, *bench.GPU_GROUPS) for goal in bench.goals_of(group)
                 if goal.name != leave_out]
        behind = {"launches": [1] * 9, "microseconds": [1.0] * 9}
        return result([*bench.GROUPS, *bench.GPU_GROUPS],
                      lines=[dataclasses.replace(g, samples=[g.bound] * 9, extra=behind) for g in goals])

    def page_of_result(self, data):
        (self.folder / "a.json").write_text(json.dumps(data))
        self.assertEqual(self.run_report()[0], 0)
        return self.page.read_text() + self.cpu_page.read_text()

    def test_with_all_goals_nothing_is_called_missing(self):
        self.assertNotIn("Not measured", self.page_of_result(self.every_goal()))
        self.assertEqual(self.run_report("--check")[0], 0)

    def test_a_goal_of_a_measured_group_that_has_no_figure_is_named(self):
        for group in ("small", "kernels", "gpu_kernels", "gpu_catalog", "gpu_timing", "gpu_truth"):
            name = bench.goals_of(group)[-1].name  # Of gpu_kernels and gpu_timing one of a table.
            self.assertIn(f"\n- {group}: `{name}`\n", self.page_of_result(self.every_goal(leave_out=name)))

    def test_a_figure_of_another_goal_of_that_name_is_none(self):
        for change in ({"bound": 4}, {"op": ">="}, {"unit": " s"}, {"what": "p50 until it is refused"}, {"samples": []}):
            data = self.every_goal()
            [line] = [line for line in data["lines"] if line["name"] == "queue.full.max"]
            line.update(change)
            self.assertIn("\n- small: `queue.full.max`\n", self.page_of_result(data), change)

    def test_a_goal_may_have_its_figure_in_another_file(self):
        data = self.every_goal()
        (self.folder / "b.json").write_text(json.dumps({**data, "groups": ["small"]}))
        self.assertNotIn("`queue.full.max`\n", self.page_of_result(self.every_goal(leave_out="queue.full.max")))

    def test_the_page_tells_the_gpu_and_its_peer(self):
        data = {**result(["gpu_exact"]), "device": "NVIDIA H200, driver 580"}
        for told, shown in ((data, "\nNVIDIA H200, driver 580; load 0.1 as it began.\n"),
                            ({**data, "pytorch": "2.11.0"}, "\nNVIDIA H200, driver 580; PyTorch 2.11.0; load 0.1 as it began.\n")):
            (self.folder / "a.json").write_text(json.dumps(told))
            self.run_report()
            self.assertIn(shown, self.page.read_text())

    def test_the_page_tells_the_cpu_and_its_peers(self):
        cpu = {"cpu": "Xeon", "last_cache_bytes": 260 << 20}
        peers = {"numpy": "2.3.5", "pytorch": "2.9.1"}
        for told, shown in (({}, "\n2 CPUs; grpc++ 1.51.1; load 0.1 as it began.\n"),
                            ({"cpu": "Xeon"}, "\n2 CPUs (Xeon); grpc++ 1.51.1; load 0.1 as it began.\n"),
                            (cpu, "\n2 CPUs (Xeon, 260 MiB of last cache); grpc++ 1.51.1; load 0.1 as it began.\n"),
                            (peers, "\n2 CPUs; grpc++ 1.51.1; numpy 2.3.5, PyTorch 2.9.1; load 0.1 as it began.\n"),
                            ({**cpu, "device": "NVIDIA H200"}, "\nNVIDIA H200; 2 CPUs (Xeon, 260 MiB of last cache); load 0.1 as it began.\n")):
            self.assertIn(shown, self.page_of_result({**result(["small"]), "libraries": {"grpc++": "1.51.1"}, **told}))

    def write(self, name, date, lines, **told):
        data = {**result([lines[0][0]], lines=()), **told, "date": date}
        data["lines"] = [{**line.as_json(), "group": group} for group, line in lines]
        (self.folder / f"{name}.json").write_text(json.dumps(data))

    def test_of_each_machine_the_newest_figure_counts(self):
        goal = bench.goals_of("gpu_exact")[0]
        missed = dataclasses.replace(goal, samples=[goal.bound * 1.5] * 3)
        met = dataclasses.replace(goal, samples=[goal.bound] * 3)
        h200, h100 = ({"device": f"NVIDIA {name}, driver 580"} for name in ("H200", "H100"))
        self.write("a", "2026-01-02", [("gpu_exact", missed)], **h200)
        self.write("b", "2026-01-03", [("gpu_exact", met)], **h200)
        self.write("c", "2026-01-01", [("gpu_exact", missed)], **h100)
        self.write("d", "2026-01-04", [("gpu_exact", dataclasses.replace(missed, bound=goal.bound / 2))], **h200)
        self.run_report()
        page = self.page.read_text()
        self.assertIn("| 1 of 1: NVIDIA H200, 2026-01-03<br>0 of 1: NVIDIA H100, 2026-01-01 |\n", page)
        self.assertIn(f"\n- gpu_exact, NVIDIA H100:\n  - `{goal.name}` {1.5 * goal.bound:g}{goal.unit} "
                      f"({goal.op} {goal.bound:g}), 2026-01-01\n\n", page)
        self.assertEqual(page.split("## Missed")[1].split("\n## ")[0].count("- gpu_exact"), 1)

    def test_a_miss_has_the_date_of_its_own_figure(self):
        first, second = (dataclasses.replace(goal, samples=[samples] * 3)
                         for goal, samples in zip(bench.goals_of("gpu_catalog"), (0.5, 5.0)))
        self.write("a", "2026-01-02", [("gpu_catalog", first)], device="NVIDIA H200")
        self.write("b", "2026-01-03", [("gpu_catalog", second)], device="NVIDIA H200")
        self.run_report()
        page = self.page.read_text()
        self.assertIn("| 1 of 2: NVIDIA H200, 2026-01-02 to 2026-01-03 |", page)
        self.assertIn(f"  - `{first.name}` 0.5 (>= {first.bound:g}), 2026-01-02\n", page)

    def test_cpus_are_told_by_their_name_and_without_one_by_their_commit(self):
        goal = dataclasses.replace(bench.goals_of("build")[0], samples=[1.0])
        for name, told in (("a", {"commit": "abc"}), ("b", {"commit": "def"}), ("c", {"cpu": "Xeon", "commit": "123"}),
                           ("d", {"cpu": "Xeon", "commit": "456"}), ("e", {"cpu": "Xeon", "last_cache_bytes": 1 << 20})):
            self.write(name, "2026-01-02", [("build", goal)], **told)
        self.run_report()
        self.assertIn("| 1 of 1: 2 CPUs (Xeon, 1 MiB of last cache), 2026-01-02<br>1 of 1: 2 CPUs (Xeon), 2026-01-02<br>"
                      "1 of 1: 2 CPUs of 2026-01-02, def<br>1 of 1: 2 CPUs of 2026-01-02, abc |", self.page.read_text())
        self.assertIn("\n## Missed on CPUs\n\nNone.\n", self.cpu_page.read_text())

    def test_rows_that_their_group_does_not_name_beforehand_count(self):
        row = Line("cpu.catalog.x.torch.2", "x, 2 threads", ">=", 0.98, samples=[0.5] * 9)
        self.write("a", "2026-01-02", [("catalog_cpu", row)], cpu="Xeon")
        self.run_report()
        self.assertIn("| 0 of 1: 2 CPUs (Xeon), 2026-01-02 |", self.page.read_text())
        self.assertIn("  - `cpu.catalog.x.torch.2` 0.5 (>= 0.98), 2026-01-02\n", self.cpu_page.read_text())

    def test_the_page_tells_the_flags(self):
        data = result(["small"])
        data["lines"][0]["flags"] = ["THROTTLED"]
        (self.folder / "a.json").write_text(json.dumps(data))
        self.run_report()
        self.assertIn("| PASS THROTTLED |", self.cpu_page.read_text())

    def test_times_stand_in_the_row_beside_peer_and_floor(self):
        data = result(["gpu_catalog"])
        line = Line("gpu.catalog.x", "x", ">=", 0.98)
        for us in (10.0, 12.0, 11.0):
            line.add(1.5, ours_us=us, torch_us=16.5, floor_us=9.0)
        data["lines"].append(line.as_json())
        (self.folder / "a.json").write_text(json.dumps(data))
        self.run_report()
        page = self.cpu_page.read_text()
        self.assertIn("| `gpu.catalog.x` | x | >= 0.98 | 1.5 | 1.5 .. 1.5 | 11 / 16.5 / 9 |  | 3 | PASS |", page)
        self.assertIn("| `small.round_trip` | a round trip | <= 3x | 2x | 2 .. 2 |  |  | 9 | PASS |", page)

    def page_of(self, *lines):
        return self.page_of_result(result(["gpu_catalog"], lines=lines))

    def test_what_torch_compile_takes_stands_beside_eager(self):
        eager = Line("gpu.catalog.x.torch", "x", ">=", 0.98)
        made = Line("gpu.catalog.x.compiled", "x", ">=", 0, informative=True)
        for _ in range(3):
            eager.add(1.5, ours_us=10.0, torch_us=15.0)
            made.add(1.2, compiled_us=12.0)
        self.assertIn("| 1.5 .. 1.5 | 10 / 15 / - | 12 | 3 | PASS |", self.page_of(eager, made))

    def test_a_peer_on_the_cpu_is_a_peer(self):
        line = Line("cpu.catalog.x.numpy.1", "x", ">=", 0.98)
        for _ in range(3):
            line.add(1.5, ours_us=10.0, theirs_us=15.0)
        self.assertIn("| 10 / 15 / - |  | 3 | PASS |", self.page_of(line))

    def test_launches_of_gelu_are_one_table(self):
        plain, lost = (Line(f"gpu.gelu.table.{name}", "gelu", "<=", 0, informative=True)
                       for name in ("unfused", "lost"))
        for _ in range(3):
            plain.add(11.5, microseconds=5724.0, launches=10)
        page = self.page_of(plain, lost)
        self.assertIn("\n| variant | launches | us | time over the default's |\n| --- | --- | --- | --- |\n"
                      "| `unfused` | 10 | 5724 | 11.5 |\n\n", page)
        self.assertNotIn("gpu.gelu.table", page)

    def test_a_line_of_too_few_samples_is_refused(self):
        for name, samples, wanted in (("small.x", 3, 9), ("memory.server", 2, 3), ("kernel.sum", 1, 9)):
            few = Line(name, "x", "<=", 3, samples=[1.0] * samples)
            (self.folder / "a.json").write_text(json.dumps(result(list(bench.GROUPS), lines=[few])))
            code, told = self.run_report("--check")
            self.assertEqual(code, 1)
            self.assertIn(f"a.json: {name}: want at least {wanted} samples, it has {samples}: measure again", told)

    def test_what_is_one_run_by_nature_is_not(self):
        lines = [Line(name, "x", "<=", 3, samples=[1.0] * samples)
                 for name, samples in (("memory.server", 3), ("build.clean", 1), ("gpu.fault.trap.next", 1), ("x", 0))]
        self.assertIn("`build.clean`", self.page_of_result(result(list(bench.GROUPS), lines=lines)))

    def test_too_few_rounds_are_refused(self):
        (self.folder / "a.json").write_text(json.dumps(result(list(bench.GROUPS), rounds=8)))
        for arguments in ((), ("--check",)):
            code, told = self.run_report(*arguments)
            self.assertEqual(code, 1)
            self.assertIn("a.json: want at least 9 rounds, it has 8", told)


class Check(unittest.TestCase):
    def run_bench(self, *arguments, sample=2.0):
        line = Line("small.round_trip", "a round trip", "<=", 3, "x", samples=[sample])
        told = io.StringIO()
        group = types.SimpleNamespace(measure=lambda _: [line])
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(told), \
                mock.patch.object(bench.importlib, "import_module", lambda _: group):
            command = ["bench.py", "--bin", folder, "--out", f"{folder}/out.json", "--only", "small", *arguments]
            with mock.patch.object(sys, "argv", command):
                code = bench.main()
            self.head = json.loads(pathlib.Path(folder, "out.json").read_text())
            self.assertEqual(self.head["groups"], ["small"])
        return code, told.getvalue()

    def test_too_few_rounds_do_not_count(self):
        code, told = self.run_bench("--check", "--rounds", "8")
        self.assertEqual(code, 1)
        self.assertIn("does not count: want at least 9 rounds, got 8", told)

    def test_a_goal_that_was_not_measured_does_not_pass(self):
        other = Line("small.other", "another", "<=", 3, "x")
        with mock.patch.object(bench, "goals_of", lambda _: [other]):
            code, told = self.run_bench("--check")
        self.assertEqual(code, 1)
        self.assertIn("no line is of these goals as their groups define them: small.other", told)

    def test_enough_rounds_count(self):
        self.assertEqual(self.run_bench("--check")[0], 0)
        self.assertEqual(self.run_bench("--check", sample=4.0)[0], 1)

    def test_without_check_few_rounds_are_a_quick_look(self):
        self.assertEqual(self.run_bench("--rounds", "1")[0], 0)

    def test_the_figures_tell_the_cpu(self):
        for cpu, cache in (("Xeon", 260 << 20), ("", 0)):
            with mock.patch.object(bench, "cpu_model", lambda: cpu), mock.patch.object(bench, "last_cache", lambda: cache):
                self.run_bench()
            self.assertEqual((self.head.get("cpu", ""), self.head.get("last_cache_bytes", 0)), (cpu, cache))


class Machine(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_the_model_is_the_first_cpus(self):
        told = self.folder / "cpuinfo"
        self.assertEqual(bench.cpu_model(told), "")
        told.write_text("processor\t: 0\nmodel\t\t: 143\nmodel name\t: A CPU: fast\n\nmodel name\t: Another\n")
        self.assertEqual(bench.cpu_model(told), "A CPU: fast")
        told.write_text("processor\t: 0\n")
        self.assertEqual(bench.cpu_model(told), "")

    def test_the_last_cache_is_that_of_the_highest_level(self):
        self.assertEqual(bench.last_cache(self.folder), 0)
        for index, (level, size) in enumerate((("1", "48K"), ("3", "266240K"), ("2", "2048K"))):
            cache = self.folder / f"index{index}"
            cache.mkdir()
            (cache / "level").write_text(f"{level}\n")
            (cache / "size").write_text(f"{size}\n")
        self.assertEqual(bench.last_cache(self.folder), 260 << 20)


class Lines(unittest.TestCase):
    def test_the_worst_sample_counts_where_the_goal_is_a_maximum(self):
        median = Line("a", "", "<=", 5, samples=[1, 1, 6])
        self.assertEqual((median.measured, median.verdict), (1, "PASS"))
        worst = Line("a", "", "<=", 5, samples=[1, 1, 6], worst=True)
        self.assertEqual((worst.measured, worst.verdict), (6, "FAIL"))
        self.assertEqual(Line("a", "", ">=", 5, samples=[4, 6, 6], worst=True).measured, 4)
        self.assertEqual(Line("a", "", "<=", 5, worst=True).verdict, "FAIL")


class Callgrind(unittest.TestCase):
    def test_the_whole_run_is_the_summary(self):
        self.assertEqual(callgrind.total("events: Ir\nsummary: 123\n\nfn=(1)\n16 5\ntotals: 4\n"), 123)
        with self.assertRaisesRegex(RuntimeError, "no summary"):
            callgrind.total("events: Ir\n")

    def test_a_start_is_no_part_of_a_call(self):
        start, call, scraped = 50e6, 100e3, 2e6

        def instructions(_config, _flags, calls, scrapes=0):
            return start + call * (calls + calls // 10 + 64) + scraped * scrapes

        with mock.patch.object(callgrind, "instructions", instructions):
            measured, few = callgrind.per_call(None)
            self.assertAlmostEqual(measured, call)
            self.assertAlmostEqual(callgrind.per_scrape(None, few), scraped)


class Kernels(unittest.TestCase):
    def measure(self, script):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "kernels_bench")
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
            return kernels.measure(types.SimpleNamespace(binaries=pathlib.Path(folder), rounds=1))

    def test_a_kernel_that_fails_is_an_error(self):
        with self.assertRaisesRegex(RuntimeError, "ended with 1: launch: INTERNAL"):
            self.measure("echo 'launch: INTERNAL' >&2; exit 1")

    def test_no_figures_are_an_error(self):
        with self.assertRaisesRegex(RuntimeError, "told nothing"):
            self.measure("exit 0")


if __name__ == "__main__":
    unittest.main()
