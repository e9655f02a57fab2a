"""What ./dev deploy-test makes of what a machine cannot show."""
import contextlib
import io
import unittest

import deploy_test


def table(no_skips, *goals):
    made = deploy_test.Table(no_skips)
    with contextlib.redirect_stdout(io.StringIO()):
        for goal in goals:
            made.skip(goal, "no Chromium here")
    return made


class TableTest(unittest.TestCase):
    def test_what_is_skipped_passes(self):
        self.assertFalse(table(False, "pages").failed())

    def test_without_skips_it_fails_and_says_why(self):
        strict = table(True, "pages")
        self.assertTrue(strict.failed())
        self.assertIn("no Chromium here  FAIL", strict.text())

    def test_without_skips_what_is_listed_may_be_skipped(self):
        self.assertFalse(table(True, *deploy_test.MAY_SKIP).failed())


if __name__ == "__main__":
    unittest.main()
