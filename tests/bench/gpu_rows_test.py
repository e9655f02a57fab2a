"""What is made of the rows that the GPU's tests print: by programs that only print."""
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402: beside this file.
from speed import gpu, gpu_faults, gpu_kernels, gpu_timing, gpu_truth  # noqa: E402
from speed.line import Line  # noqa: E402

SPAN = "{:12.0f} {:14.3f} {:10.0f} {:10.0f}         12.100         32         10.600        -46       12.700 {}\n"
STAMPED = "{}: device time {:.3f} us, stamps {:.3f} us, off {:.0f} ns, allowed {:.0f} to {:.0f} ns PASS\n"
STAMPS = STAMPED.format("blocks", 101, 100, 1000, -1032, 4032) + STAMPED.format("three", 102.5, 101.9, -250, -500, 500)
MANY = "".join(f"many blocks: span {span} us, device time {span + 1.2:.3f} us, off 0 ns, allowed 300 ns, isolated 32 ns more PASS\n"
               for span in gpu_truth.MANY_SPANS)
FAULT = "{:<16} {:3d} rounds  answer {:6.3f} s (goal 1)  next kernel {:6.3f} s (goal 2)  {:d} wrong\n"
OTHERS = "calls on cuda:1 beside {}: {:d} good, {:d} bad, the slowest {:.6f} s later than without\n"


class Rows(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.config = bench.Config(self.folder, rounds=2)
        for group in (gpu_faults, gpu_truth):
            self.enterContext(mock.patch.object(group, "gpu_server"))
        self.enterContext(mock.patch("speed.gpu.describe"))

    def program(self, name, prints, code=0):
        (self.folder / "said").write_text(prints)
        (self.folder / name).write_text(f"#!/bin/sh\ncat {self.folder}/said\nexit {code}\n")
        (self.folder / name).chmod(0o755)

    def test_a_span_is_held_against_what_is_allowed_in_each_round(self):
        spans = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]
        self.program("cuda_device_test", "constant of device time 570 ns\n" +
                     "".join(SPAN.format(span, span + 0.57, 0, 300, "PASS") for span in spans) +
                     SPAN.format(10000, 10010, -75000, 50000, "FAIL") + MANY + STAMPS)
        lines = gpu_truth.measure(self.config)
        self.assertEqual([line.verdict for line in lines], 10 * ["PASS"] + ["FAIL"] + 8 * ["PASS"])
        self.assertEqual(lines[10].samples, [1.5, 1.5])
        self.assertEqual({key: values[0] for key, values in lines[0].extra.items()},
                         {"device_us": 5.57, "off_ns": 0, "isolated_off_ns": 32, "slope_off_ns": -46, "event_pair_us": 12.7})

    def test_the_constant_that_all_spans_are_less_has_a_bound(self):
        self.program("cuda_device_test", "".join(SPAN.format(span, span + 3, 0, 300, "PASS") for span in gpu_truth.SPANS) + MANY + STAMPS)
        lines = gpu_truth.measure(self.config)
        self.assertEqual([line.verdict for line in lines], ["FAIL"] + 18 * ["PASS"])
        self.assertEqual(lines[0].samples, [1.5, 1.5])

    def stamped(self, *rows):
        """Lines of `gpu.truth` by their last names, where all spins are right."""
        self.program("cuda_device_test", "".join(SPAN.format(span, span + 0.57, 0, 300, "PASS") for span in gpu_truth.SPANS) +
                     MANY + "".join(rows))
        return {line.name.removeprefix("gpu.truth."): line for line in gpu_truth.measure(self.config)}

    def test_stamps_are_held_against_what_is_allowed_on_their_side(self):
        lines = self.stamped(STAMPED.format("blocks", 104, 100, 4000, -1000, 4000),
                             STAMPED.format("three", 99, 100, -750, -500, 500))
        self.assertEqual([(lines[name].samples, lines[name].verdict) for name in ("blocks", "three")],
                         [([1, 1], "PASS"), ([1.5, 1.5], "FAIL")])
        self.assertEqual(lines["three"].extra, {"device_us": [99, 99], "stamps_us": [100, 100], "off_ns": [-750, -750]})

    def test_blocks_that_end_together_have_a_constant_and_are_held_against_what_is_allowed(self):
        rows = MANY.replace("span 50 us, device time 51.200", "span 50 us, device time 56.000").replace(
            "201.200 us, off 0", "201.200 us, off -600")
        self.program("cuda_device_test", "".join(SPAN.format(span, span + 0.57, 0, 300, "PASS") for span in gpu_truth.SPANS) +
                     rows + STAMPS)
        lines = {line.name: line for line in gpu_truth.measure(self.config)}
        self.assertEqual([(lines[f"gpu.truth.many.{span}us"].verdict, round(lines[f"gpu.truth.many.{span}us"].measured, 2))
                          for span in (50, 100, 200)], [("FAIL", 1.2), ("PASS", 0), ("FAIL", 2)])

    def test_a_span_or_a_stamp_that_is_missing_is_no_figure(self):
        self.program("cuda_device_test", SPAN.format(5, 5.6, 0, 300, "PASS") + STAMPS)
        self.assertEqual([line.verdict for line in gpu_truth.measure(self.config)], ["FAIL"])
        lines = self.stamped(STAMPED.format("blocks", 101, 100, 1000, -1000, 4000))
        self.assertEqual([(name, line.verdict) for name, line in lines.items()], [("gpu.truth", "FAIL")])

    def test_the_worst_of_all_rounds_counts(self):
        for line in (*gpu_truth.goals(), *(line for line, _ in gpu_timing.slopes())):
            line.add(1.2)
            line.add(0.2)
            line.add(0.2)
            self.assertEqual(line.verdict, "FAIL", line.name)

    def test_a_test_that_fails_for_what_no_row_tells_is_missed(self):
        rows = "".join(SPAN.format(span, span + 0.57, 0, 300, "PASS") for span in gpu_truth.SPANS) + MANY + STAMPS
        for said, code, failed in (("[  FAILED  ] CudaTiming.One (9 ms)\n[  FAILED  ] CudaTiming.One\n", 1, 1), ("", 139, 1), ("", 0, 0)):
            self.program("cuda_device_test", rows + said, code)
            lines = gpu_truth.measure(self.config)
            self.assertEqual((lines[-1].name, lines[-1].samples), ("gpu.truth.failed", [failed, failed]))
            self.assertEqual({line.verdict for line in lines[:-1]}, {"PASS"})
            self.assertEqual(lines[-1].verdict, "FAIL" if failed else "PASS")

    def faults(self, *rows, after="", code=0):
        self.program("server_gpu_test", "".join(FAULT.format(*row) for row in rows) + after, code)
        return {line.name: line for line in gpu_faults.measure(self.config)}

    def test_each_fault_has_two_figures(self):
        lines = self.faults(("illegal_address", 25, 0.146, 2.5, 0), ("endless", 25, 0.256, 0.585, 0))
        self.assertEqual(lines["gpu.fault.illegal_address.answer"].verdict, "PASS")
        self.assertEqual(lines["gpu.fault.illegal_address.next"].verdict, "FAIL")
        self.assertEqual(lines["gpu.fault.endless.next"].samples, [0.585])
        self.assertEqual(lines["gpu.fault.assert.answer"].verdict, "FAIL")
        self.assertEqual(lines["gpu.fault.failed"].verdict, "PASS")
        self.assertEqual(self.faults(code=1)["gpu.fault.failed"].verdict, "FAIL")

    def test_what_was_done_25_times_says_so(self):
        line = self.faults(("assert", 25, 0.1, 0.1, 0))["gpu.fault.assert.answer"]
        self.assertRegex(line.text(), r" 0\.1 s +25  assert, 25 times")
        self.assertEqual(Line.from_json(line.as_json()), line)
        without = {key: value for key, value in line.as_json().items() if key != "each"}
        self.assertEqual(Line.from_json(without).rounds, 1)

    def test_a_quick_answer_with_another_code_is_no_figure(self):
        line = self.faults(("assert", 25, 0.1, 0.1, 25))["gpu.fault.assert.answer"]
        self.assertEqual((line.verdict, line.skipped), ("FAIL", "25 of 25 rounds went wrong"))

    def test_too_few_rounds_and_one_gpu_are_said(self):
        lines = self.faults(("assert", 5, 0.1, 0.1, 0))
        self.assertIn("got 5", lines["gpu.fault.assert.answer"].skipped)
        self.assertEqual(lines["gpu.fault.assert.others"].verdict, "----")

    def test_others_must_not_notice_any_fault(self):
        after = (OTHERS.format("illegal_address", 4288, 1, -0.001) + OTHERS.format("assert", 4288, 0, 0.2) +
                 OTHERS.format("endless", 4288, 0, 0.01))
        verdicts = {name: line.verdict for name, line in self.faults(after=after).items()}
        self.assertEqual([verdicts[f"gpu.fault.{kind}"] for kind in (
            "illegal_address.others", "illegal_address.late", "assert.others", "assert.late", "endless.others", "endless.late",
            "trap.others", "trap.late")], ["FAIL", "PASS", "PASS", "FAIL", "PASS", "PASS", "FAIL", "FAIL"])

    def fresh(self, told):
        """Of workers that each tell their next time of a size by a way, and of what tells of the GPU."""
        def median_ns(_, __, ___, *words, budget, **way):
            sure = words[-2:] == ("--min-samples", "500")
            self.assertEqual(budget, "1s" if sure else None)
            return told[words[1], *way.values(), *(["sure"] if sure and not way else [])].pop()

        self.enterContext(mock.patch.multiple(gpu_timing, WORKERS=3, gpu_server=mock.MagicMock(), median_ns=median_ns))
        lines = {line.name.removeprefix("gpu.fresh."): line
                 for line in gpu_timing.measure(bench.Config(self.folder, rows="gpu.fresh*"))}
        gpu.describe.assert_called_once()
        return lines

    def test_the_farthest_of_fresh_workers_counts_and_the_ways_beside_it_cannot_fail(self):
        small, large, rows, cube = "*=16000000", "*=268435456", "*=65536", "M=1024"
        suspect = gpu.Nanoseconds(1000)
        suspect.flags = ("SUSPECT",)
        told = {(small,): [1000, 1000, 1030], (small, "sure"): [1000, 1000, 1002],
                (small, "isolated"): [1000, 1000, 1001], (small, "cold_clean"): [1000, 1000, 1040],
                (small, "cold_dirty"): [900, 1000, 1000], (large,): [1000, 1004], (large, "sure"): [1000, 1000, 1000],
                (rows,): [1000, 1000, 1003], (cube,): [1000, 1000, 1006]}
        told = {case: [gpu.Nanoseconds(ns) for ns in times] for case, times in told.items()}
        told[large,].append(suspect)
        for ns, clock in zip(told[cube,], (1980, 1980, 1970)):
            ns.clock_before_mhz = ns.clock_after_mhz = clock
        slowed = told[small,][2]
        slowed.clock_before_mhz, slowed.clock_after_mhz = 1980, 1950
        lines = self.fresh(told)
        self.assertEqual([(name, line.verdict, round(line.measured, 3)) for name, line in lines.items()], [
            ("16000000", "FAIL", 3), ("16000000.500_samples", "info", 0.2), ("16000000.isolated", "info", 0.1),
            ("16000000.cold_clean", "info", 4), ("16000000.cold_dirty", "info", 10), ("268435456", "FAIL", 0.4),
            ("268435456.500_samples", "info", 0), ("softmax", "PASS", 0.3), ("matmul", "FAIL", 0.6),
            ("matmul.cycles", "info", 0.092)])
        self.assertEqual(lines["268435456"].flags, ["SUSPECT"])
        self.assertEqual(lines["16000000"].extra, {"medians_us": [[1.03, 1, 1]], "clock_before_mhz": [[1980, None, None]],
                                                   "clock_after_mhz": [[1950, None, None]]})


class Gates(unittest.TestCase):
    """What a check must not let pass."""

    def test_a_median_is_no_figure_of_a_goal_whose_worst_round_counts(self):
        lines = gpu_truth.goals()
        self.assertEqual(bench.untold(("gpu_truth",), lines), [])
        for line in lines:
            line.worst = False
        self.assertEqual(bench.untold(("gpu_truth",), lines), [line.name for line in lines])

    def test_slopes_of_times_that_cannot_be_meet_no_goal(self):
        def median_ns(*_, **__):
            ns = gpu.Nanoseconds(1000)
            ns.flags = flags
            return ns

        with mock.patch.object(gpu_timing, "median_ns", median_ns):
            for flags, verdict in (((), "PASS"), (("IMPOSSIBLE",), "FAIL")):
                lines = gpu_timing.slope(bench.Config(pathlib.Path(), rounds=1), None)
                self.assertEqual({line.verdict for line in lines}, {verdict})

    def test_a_slope_between_device_times_of_a_clock_that_moved_meets_no_goal(self):
        def over(*times):
            told = iter([gpu.Nanoseconds(ns) for ns in times])

            def median_ns(*_, **__):
                ns = next(told)
                ns.flags = ()
                return ns

            with mock.patch.object(gpu_timing, "median_ns", median_ns):
                return gpu_timing.slope_over_bound(None, None, "square", ())[0]

        self.assertEqual(over(99_500, 100_000, 100_500), 0)
        self.assertEqual(over(99_500, 103_000, 100_500), 1)
        self.assertEqual(over(99_500, 97_000, 100_500), 1)
        self.assertEqual(over(1000, 1500, 1000), 1)
        self.assertEqual(over(99_000, 100_000, 101_000, 100_000, 101_500, 100_000), 0.5)
        self.assertEqual(over(*(98_500, 100_000, 101_500) * gpu_timing.TAKEN), 2)

    def test_a_round_of_slopes_tells_its_times(self):
        def median_ns(*_, method="device_time", **__):
            ns = gpu.Nanoseconds(1100 if method == "back_to_back" else 1000)
            ns.flags = ()
            return ns

        with mock.patch.object(gpu_timing, "median_ns", median_ns):
            line, _ = gpu_timing.slope(bench.Config(pathlib.Path(), rounds=1), None)
        [times] = line.extra["times"]
        self.assertEqual(len(times), len(gpu_timing.SIZES))
        self.assertEqual(times[0], {"kernel": "square", "words": "--shape *=1000 --dtype T=f32", "before_us": 1, "slope_us": 1.1,
                                    "after_us": 1})

    def suspects(self, median_ns, flags=(), **timing):
        """The line of one run, which was a repeated one."""
        result = {"flags": list(flags), "repeated": True, "timing": {"statistics": {"median_ns": median_ns}, **timing}}
        with mock.patch.object(gpu, "bench", lambda *_, **__: result):
            return gpu_timing.suspects(None, None, Line("gpu.suspect", "", "<=", 0), [("square", ("exponent=2",), "isolated")])

    def test_every_result_that_nobody_may_trust_counts(self):
        for flag in ("SUSPECT", "IMPOSSIBLE", "INTERRUPTED"):
            line = self.suspects(1, [flag])
            self.assertEqual((line.measured, line.verdict), (1, "FAIL"))
            self.assertEqual((line.extra["repeated"], line.flags), ([1], []))

    def test_a_result_without_a_second_opinion_counts(self):
        second = {"method": "device_time", "median_ns": 1000}
        self.assertEqual(self.suspects(1000).verdict, "FAIL")
        self.assertEqual(self.suspects(1000, second=second).verdict, "PASS")
        self.assertEqual(self.suspects(999).verdict, "PASS")

    def test_of_a_result_that_nobody_may_trust_all_is_told(self):
        before = {"sm_clock_hz": 1.98e9, "power_watts": 120, "clock_reasons": []}
        after = {"sm_clock_hz": 1.7e9, "power_watts": 700, "clock_reasons": ["sw_power_cap"]}
        second = {"method": "device_time", "median_ns": 1500}
        line = self.suspects(1000, ["SUSPECT", "THROTTLED"], second=second, before={**before, "temperature_celsius": 40},
                             after=after, clock_before_hz=1.97e9)
        self.assertEqual(line.extra["suspects"], [[
            {"kernel": "square", "words": "exponent=2", "median_ns": 1000, "second": second, "flags": ["SUSPECT", "THROTTLED"],
             "before": before, "after": after, "clock_before_hz": 1.97e9, "clock_after_hz": None}]])

    def test_measured_clocks_come_with_a_time(self):
        ns = gpu.median_of({"flags": [], "timing": {"statistics": {"median_ns": 1}, "clock_before_hz": 1.98e9,
                                                    "clock_after_hz": None}})
        self.assertEqual((ns.clock_before_mhz, ns.clock_after_mhz), (1980, None))

    def test_a_call_that_had_to_be_repeated_is_counted(self):
        told = {"results": [{"flags": ["THROTTLED"], "timing": {"statistics": {"median_ns": 1}}}]}
        line = Line("x", "", "<=", 1)
        for answers in ([told], [RuntimeError("the launch was not queued within 250 ms"), told],
                        [RuntimeError(gpu.WAITED), told]):
            with mock.patch.object(gpu, "run_json", side_effect=answers):
                line.add(0.5, gpu.median_ns(mock.Mock(binaries=pathlib.Path()), mock.Mock(), "square").flags)
        self.assertEqual((line.extra, line.flags, line.verdict), ({"repeated": [2]}, ["THROTTLED"], "PASS"))

    def test_a_check_of_rows_that_there_are_not_fails(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(gpu_timing, "gpu_server"), \
                mock.patch.object(gpu, "describe"), mock.patch.object(sys, "argv", ["bench.py", "--bin", folder, "--only", "gpu_timing", "--rows", "gpu.freesh", "--check",
                                                "--out", f"{folder}/out.json"]), mock.patch("builtins.print") as said:
            self.assertEqual(bench.main(("gpu_timing",), 3), 1)
        self.assertIn("nothing was measured", said.call_args.args[0])


class FakeTorch:
    """Of which a call takes 11 us by events, 10 in a graph, and 12 otherwise."""

    def __init__(self, missing=""):
        self.missing = missing

    def ask(self, op, shape, how="device"):
        return {"ns": {"do_bench": 15_000, "events": 11_000, "slope": 10_000}.get(how, 12_000), "launches": 1}

    def ns(self, op, shape, **options):
        return self.ask(op, shape, **options)["ns"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Tables(unittest.TestCase):
    """What is shown without a bound, beside PyTorch."""

    def measure(self, group, torch, rows="*"):
        """By name; ours takes 8 us, in a cache of other data 10."""
        def median_ns(*_, l2="hot", **__):
            return gpu.Nanoseconds(8_000 if l2 == "hot" else 10_000)

        with mock.patch.multiple(group, gpu_server=mock.MagicMock(), median_ns=median_ns, Torch=lambda: torch), \
                mock.patch.multiple(gpu, describe=mock.DEFAULT, launches_of_one=lambda *_: 1):
            return {line.name: line for line in group.measure(bench.Config(pathlib.Path(), rounds=2, rows=rows))}

    def test_all_goals_of_kernels_are_measured_and_the_tables_cannot_fail(self):
        lines = self.measure(gpu_kernels, FakeTorch())
        self.assertEqual(bench.untold(("gpu_kernels",), lines.values()), [])
        self.assertEqual({line.verdict for line in lines.values()}, {"PASS", "info"})
        self.assertEqual(lines["gpu.gelu.table.torch.gelu_compiled"].verdict, "info")

    def test_without_pytorch_a_table_is_missed(self):
        for group, rows in ((gpu_kernels, "*"), (gpu_timing, "gpu.usual")):
            lines = self.measure(group, FakeTorch("no PyTorch"), rows)
            for name, line in lines.items():
                if ".torch" in name or name.endswith(".compiled"):
                    self.assertEqual((line.verdict, line.skipped), ("FAIL", "no PyTorch"), name)
        self.assertEqual(lines["gpu.usual.isolated.1000"].verdict, "info")

    def test_a_row_that_no_line_tells_is_missed(self):
        lines = self.measure(gpu_kernels, FakeTorch())
        del lines["gpu.gelu.table.naive"], lines["gpu.softmax.8192x8192.compiled"]
        self.assertEqual(bench.untold(("gpu_kernels",), lines.values()),
                         ["gpu.softmax.8192x8192.compiled", "gpu.gelu.table.naive"])

    def test_usual_ways_stand_over_our_time_in_the_same_cache(self):
        lines = self.measure(gpu_timing, FakeTorch(), "gpu.usual")
        self.assertEqual({name: lines[f"gpu.usual.{name}.1000"].samples for name in (
            "torch.events", "torch.do_bench", "torch.device", "isolated")}, {
                "torch.events": [1.375] * 2, "torch.do_bench": [1.5] * 2, "torch.device": [1.5] * 2, "isolated": [1] * 2})
        self.assertEqual(set(lines), {line.name for line in gpu_timing.goals() if line.name.startswith("gpu.usual")})
        self.assertEqual({line.verdict for line in lines.values()}, {"info"})

    def test_of_softmax_the_lesser_of_both_methods_counts(self):
        line = self.measure(gpu_kernels, FakeTorch())["gpu.softmax.8192x1024.torch"]
        self.assertEqual(line.samples, [1.25, 1.25])
        self.assertEqual(line.extra["torch_slope_us"], [10, 10])


if __name__ == "__main__":
    unittest.main()
