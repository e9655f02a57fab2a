"""Submissions by the thousand, compile bombs and intrusions: what the nightly test of them records."""
import json
import pathlib
import subprocess
import tempfile

from speed.line import Line

RUNS = 1  # It takes minutes, and its bounds are on the worst of what it saw.
# Line, what, bound, unit; of which test, under which name. Without a bound: informative.
FIGURES = (
    ("submissions.rate", "1,000 submissions in a row of two principals, 30 % of them faulty: how many a second", None, "/s",
     "FromTwoPrincipalsAreAnsweredRightAndNothingIsKept", "submissions_per_second"),
    ("submissions.pss", "the second 500 of them: by how much the PSS of all processes rose", 5, " MiB",
     "FromTwoPrincipalsAreAnsweredRightAndNothingIsKept", "pss_rise_mib"),
    ("submissions.bombs.longest", "compile bombs: the longest until its error", 6, " s", "BombsAreErrors", "longest_seconds"),
    ("submissions.bombs.server", "compile bombs: what the server had more at its most", 10, " MiB", "BombsAreErrors",
     "server_peak_mib"),
    ("submissions.bombs.all", "compile bombs: what all processes had more behind them", 10, " MiB", "BombsAreErrors",
     "all_more_mib"),
    ("submissions.intrusions.longest", "attempts to read or write files: the longest until its error", 6, " s",
     "IntrusionsAreErrorsAndSeeNothing", "longest_seconds"),
    ("submissions.intrusions.server", "attempts to read or write files: what the server had more at its most", 10, " MiB",
     "IntrusionsAreErrorsAndSeeNothing", "server_peak_mib"),
)


def run_test(binaries):
    """What each test recorded, by its name; and those that failed, which their figures may not tell."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.json"
        ran = subprocess.run([binaries / "submissions_test", f"--gtest_output=json:{out}"], capture_output=True,
                             text=True, timeout=900)
        if not out.exists():
            raise RuntimeError(f"submissions_test ended with {ran.returncode}: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
        report = json.loads(out.read_text())
    tests = [test for suite in report["testsuites"] for test in suite["testsuite"]]
    return {test["name"]: test for test in tests}, [test["name"] for test in tests if "failures" in test]


def make_lines():
    """Of FIGURES, in their order, and of what was wrong."""
    return [*(Line(name, what, "<=", bound or 0, unit, informative=bound is None, worst=True)
              for name, what, bound, unit, _, _ in FIGURES),
            Line("submissions.wrong", "tests in which an answer was another than it must be, or a bound was passed", "<=", 0)]


def goals():
    return [line for line in make_lines() if not line.informative]


def measure(config):
    *lines, wrong = make_lines()
    for _ in range(RUNS):
        tests, failed = run_test(config.binaries)
        wrong.add(len(failed), tests=", ".join(failed))
        for line, (*_, test, key) in zip(lines, FIGURES):
            if key in tests[test]:
                line.add(float(tests[test][key]))
            else:
                line.skipped = "not measured"  # Who is not root cannot, and nothing compiles without NVRTC.
    return [*lines, wrong]
