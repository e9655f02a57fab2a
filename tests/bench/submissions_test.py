"""What the bench makes of the records of the test of submissions."""
import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402: beside this file.
from speed import submissions  # noqa: E402

THOUSAND = {"name": "FromTwoPrincipalsAreAnsweredRightAndNothingIsKept", "submissions_per_second": "31.5",
            "pss_rise_mib": "1.25"}
BOMBS = {"name": "BombsAreErrors", "longest_seconds": "5.1", "server_peak_mib": "2", "all_more_mib": "-0.5"}
INTRUSIONS = {"name": "IntrusionsAreErrorsAndSeeNothing", "longest_seconds": "0.2", "server_peak_mib": "0.1"}


class Submissions(unittest.TestCase):
    def verdicts(self, *tests):
        """Of each line, where the test program records `tests`."""
        report = json.dumps({"testsuites": [{"testsuite": [test]} for test in tests]})
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "submissions_test"
            program.write_text(f"#!/bin/sh\ncat > \"${{1#--gtest_output=json:}}\" <<'END'\n{report}\nEND\n")
            os.chmod(program, 0o755)
            return {line.name: (line.measured, line.verdict)
                    for line in submissions.measure(bench.Config(pathlib.Path(folder)))}

    def test_what_is_recorded_is_held_against_the_goals(self):
        self.assertEqual(self.verdicts(THOUSAND, BOMBS, INTRUSIONS), {
            "submissions.rate": (31.5, "info"), "submissions.pss": (1.25, "PASS"),
            "submissions.bombs.longest": (5.1, "PASS"), "submissions.bombs.server": (2, "PASS"),
            "submissions.bombs.all": (-0.5, "PASS"), "submissions.intrusions.longest": (0.2, "PASS"),
            "submissions.intrusions.server": (0.1, "PASS"), "submissions.wrong": (0, "PASS")})

    def test_what_is_too_much_is_missed(self):
        verdicts = self.verdicts({**THOUSAND, "pss_rise_mib": "5.1"}, {**BOMBS, "longest_seconds": "6.1"}, INTRUSIONS)
        self.assertEqual([name for name, (_, verdict) in verdicts.items() if verdict == "FAIL"],
                         ["submissions.pss", "submissions.bombs.longest"])

    def test_a_test_that_fails_is_missed_though_its_figures_are_good(self):
        verdicts = self.verdicts(THOUSAND, {**BOMBS, "failures": [{"failure": "it compiled"}]}, INTRUSIONS)
        self.assertEqual(verdicts["submissions.wrong"], (1, "FAIL"))

    def test_what_was_not_recorded_is_missed(self):
        verdicts = self.verdicts(THOUSAND, {"name": "BombsAreErrors"}, INTRUSIONS)
        self.assertEqual(verdicts["submissions.bombs.server"], (None, "FAIL"))

    def test_a_program_that_records_nothing_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "submissions_test"
            program.write_text("#!/bin/sh\necho it died\nexit 3\n")
            os.chmod(program, 0o755)
            with self.assertRaisesRegex(RuntimeError, "ended with 3: it died"):
                submissions.measure(bench.Config(pathlib.Path(folder)))


if __name__ == "__main__":
    unittest.main()
