"""The tables of the lessons, from times that are told to them."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402: beside this file.
import lessons_page  # noqa: E402
from speed import gpu_catalog, gpu_lessons  # noqa: E402
from speed.gpu_lessons import Ladder, variants  # noqa: E402

TWICE = Ladder("twice", "double", "`double` of 1,000 f32", (), 8000, variants("naive", "vec4"))
FLAGS = {}
TIMES = {"double.naive": 4000, "double.vec4": 1000}


def told(_config, _server, kernel, *_words, **_options):
    return {"flags": FLAGS.get(kernel, []), "timing": {"statistics": {"median_ns": TIMES[kernel]}}}


def measured(rounds=3):
    with mock.patch.object(gpu_lessons, "LADDERS", (TWICE,)), mock.patch.object(gpu_lessons, "gpu_server"), \
            mock.patch.object(gpu_lessons.gpu, "describe"), mock.patch.object(gpu_lessons.gpu, "bench", told):
        return gpu_lessons.measure(bench.Config(pathlib.Path(), rounds=rounds))


class Ladders(unittest.TestCase):
    def test_a_rung_stands_beside_the_first(self):
        lines = {line.name: line for line in measured()}
        self.assertEqual(lines["gpu.lessons.twice.vec4"].samples, [4, 4, 4])
        self.assertEqual(lines["gpu.lessons.twice.vec4"].extra, {"microseconds": [1, 1, 1]})
        self.assertEqual({line.verdict for line in lines.values()}, {"info"})

    def test_a_time_of_nothing_is_no_time(self):
        with mock.patch.dict(TIMES, {"double.naive": 0}), self.assertRaisesRegex(RuntimeError, "a time of 0 ns"):
            measured()

    def test_every_kernel_over_lists_has_its_steps(self):
        steps = {"naive", "foreach", "per_tensor", "param_struct", "pointer_table"}
        over_lists = {case.kernel for case in gpu_catalog.CASES if case.how == "kernels"}
        complete = {ladder.kernel for ladder in gpu_lessons.LADDERS if steps <= {rung.variant for rung in ladder.rungs}}
        self.assertEqual(complete, over_lists)

    def test_no_two_rungs_share_a_name(self):
        names = [ladder.line_name(rung) for ladder in gpu_lessons.LADDERS for rung in ladder.rungs]
        self.assertEqual(len(names), len(set(names)))


class Page(unittest.TestCase):
    PAGE = "Text.\n\n<!-- figures twice -->\nold\n<!-- end -->\n\nMore.\n"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.page = self.folder / "page.md"
        self.page.write_text(self.PAGE)
        for name, value in {"PAGES": (self.page,), "RESULTS": self.folder, "ROOT": self.folder,
                            "LADDERS": (TWICE,)}.items():
            patch = mock.patch.object(lessons_page, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def write(self, name, date):
        (self.folder / name).write_text(json.dumps(
            {"groups": ["gpu_lessons"], "date": date, "commit": "abc", "device": "a GPU", "rounds": 3,
             "lines": [line.as_json() for line in measured()]}))

    def run_page(self, *arguments):
        said = io.StringIO()
        with mock.patch.object(sys, "argv", ["lessons_page.py", *arguments]), contextlib.redirect_stdout(said):
            return lessons_page.main(), said.getvalue()

    def test_without_figures_the_place_says_how_to_take_them(self):
        self.assertEqual(self.run_page()[0], 0)
        self.assertEqual(self.page.read_text(), self.PAGE.replace(
            "old", "Figures: run `./dev gpu-bench --only gpu_lessons`; none have been taken yet."))

    def test_figures_become_a_table(self):
        self.write("a.json", "2026-01-02")
        self.run_page()
        self.assertIn("""<!-- figures twice -->
|  | time | rate | beside the first | beside the one before |
| --- | --- | --- | --- | --- |
| `naive` | 4 µs | 2 GB/s | 1x |  |
| `vec4` | 1 µs | 8 GB/s | 4x | 4x |

`double` of 1,000 f32; a GPU; 2026-01-02, commit abc, medians of 3 rounds.
<!-- end -->
""", self.page.read_text())

    def test_a_doubt_stands_beside_the_time(self):
        with mock.patch.dict(FLAGS, {"double.vec4": ["SUSPECT", "SHARED_DEVICE"]}):
            self.write("a.json", "2026-01-02")
        self.run_page()
        self.assertIn("| `naive` | 4 µs | 2 GB/s | 1x |  |\n| `vec4` | 1 µs (SUSPECT) | 8 GB/s | 4x | 4x |", self.page.read_text())

    def test_a_rung_that_was_not_measured_leaves_no_table(self):
        self.write("a.json", "2026-01-02")
        more = Ladder("twice", "double", "", (), 8000, variants("naive", "vec8"))
        with mock.patch.object(lessons_page, "LADDERS", (more,)):
            self.run_page()
        self.assertIn("none have been taken yet", self.page.read_text())

    def test_the_newest_measurement_counts(self):
        self.write("a.json", "2026-02-03")
        self.write("b.json", "2026-01-02")
        self.run_page()
        self.assertIn("2026-02-03", self.page.read_text())

    def test_a_page_that_says_something_else_fails(self):
        self.write("a.json", "2026-01-02")
        code, said = self.run_page("--check")
        self.assertEqual((code, said), (1, "page.md is not what the measurement says: run tests/bench/lessons_page.py\n"))
        self.run_page()
        self.assertEqual(self.run_page("--check")[0], 0)

    def test_a_place_that_nothing_fills_is_an_error(self):
        self.page.write_text("<!-- figures thrice -->\n<!-- end -->\n")
        with self.assertRaisesRegex(ValueError, "no ladder of figures is called 'thrice'; there are twice"):
            self.run_page()


class Committed(unittest.TestCase):
    def test_every_ladder_has_its_place(self):
        def places(*pages):
            return sorted(match[2] for page in pages for match in lessons_page.PLACE.finditer(page.read_text()))

        first, *others = lessons_page.PAGES
        ladders = sorted(ladder.name for ladder in gpu_lessons.LADDERS)
        self.assertEqual(places(*others), ladders)
        self.assertEqual(places(first), ["clocks.16000000"])  # README.md shows one of them again.


if __name__ == "__main__":
    unittest.main()
