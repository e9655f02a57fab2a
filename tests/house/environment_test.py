"""Every flag of gridclock-server is also a variable of the environment, and is read from it."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from server import Server  # noqa: E402

BIN = pathlib.Path(os.environ["GRIDCLOCK_BIN"])
SERVER = BIN / "gridclock-server"
ASKS = ("--help", "--version", "--hash-token")  # They end at once: nobody sets them for good.
# What must be there for a wrong value to be seen, and the value, where these differ from one flag to the next.
BESIDE = {"--compiler": {"GRIDCLOCK_ALLOW_SUBMIT": "1"}, "--module-cache": {"GRIDCLOCK_ALLOW_SUBMIT": "1"}}
WRONG = {"--module-cache": "/dev/null/folder"}
# A toolkit that is not there makes compiles fail, not the start.
SEEN_LATER = ("--cuda-home",)
QUIET = {"GRIDCLOCK_LISTEN": "127.0.0.1:0", "GRIDCLOCK_METRICS_LISTEN": "none", "GRIDCLOCK_DEVICES": "cpu"}


def clean():
    return {name: value for name, value in os.environ.items() if not name.startswith("GRIDCLOCK_")}


def flags():
    """Each flag, and the rest of its line in the help."""
    text = subprocess.run([SERVER, "--help"], env=clean(), capture_output=True, text=True, check=True).stdout
    return {flag: rest for flag, rest in re.findall(r"(?m)^  (?:-\w,)?(--[\w-]+)(.*)$", text) if flag not in ASKS}


def variable_of(flag):
    return "GRIDCLOCK_" + flag[2:].upper().replace("-", "_")


class Environment(unittest.TestCase):
    def test_the_help_names_the_variable_of_every_flag(self):
        self.assertGreater(len(flags()), 55)
        for flag, rest in flags().items():
            self.assertIn(f"(Env:{variable_of(flag)})", rest, flag)

    def test_a_wrong_value_of_every_variable_is_refused(self):
        for flag in flags():
            if flag in SEEN_LATER:
                continue
            wrong = {variable_of(flag): WRONG.get(flag, "nonsense/x")}
            with self.subTest(flag=flag):
                ran = subprocess.run([SERVER], env={**clean(), **QUIET, **BESIDE.get(flag, {}), **wrong}, timeout=60,
                                     capture_output=True, text=True, cwd=self.folder)
                self.assertIn(ran.returncode, (1, 2), ran.stderr)
                self.assertRegex(ran.stdout + ran.stderr, f"{flag}|{variable_of(flag)}|{wrong[variable_of(flag)]}")

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def test_a_server_of_variables_alone(self):
        ready = pathlib.Path(self.folder) / "ready"
        server = subprocess.Popen([SERVER], env={**clean(), **QUIET, "GRIDCLOCK_READY_FILE": str(ready)},
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        end = time.monotonic() + 60
        while not ready.exists():
            self.assertIsNone(server.poll())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        self.assertIn("grpc=127.0.0.1:", ready.read_text())

    def test_a_switch_is_set_by_its_variable_and_a_flag_counts_before_one(self):
        with mock.patch.dict(os.environ, {"GRIDCLOCK_INSECURE_PUBLIC": "1", "GRIDCLOCK_LISTEN": "nonsense/x"}):
            server = self.enterContext(Server(BIN, "--listen=0.0.0.0:0"))
        self.assertTrue(server.grpc.startswith("0.0.0.0:"), server.grpc)


if __name__ == "__main__":
    unittest.main()
