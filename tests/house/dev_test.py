"""What the verbs of ./dev install and check: on a copy of the scripts, with programs that only write
down how they were called."""
import fcntl
import os
import pathlib
import shutil
import subprocess
import tempfile
import termios
import unittest

REPO = pathlib.Path(__file__).resolve().parents[2]
RECORDS = '#!/bin/sh\necho "$(basename "$0") $*" >> "$CALLS"\n'
# Nothing is installed yet, and root asks.
ANSWERS = {"dpkg-query": 'echo "un "', "id": "echo 0"}


class Machine:
    def __init__(self, folder):
        self.root, self.programs, self.calls = folder / "root", folder / "programs", folder / "calls"
        for path in ("dev", "tools/common.sh", "tools/install.sh", "tools/packages.txt", "tools/requirements.txt",
                     "tools/lint.sh"):
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPO / path, self.root / path)
        for name in ("apt-get", "systemctl", "cmake", "ctest", "shellcheck"):
            self.program(self.programs / name, RECORDS)
        for name, answer in ANSWERS.items():
            self.program(self.programs / name, f"#!/bin/sh\n{answer}\n")
        for name in ("demo.sh", "up.sh"):
            self.program(self.root / "tools" / name, RECORDS)
        self.program(self.root / ".venv/bin/python", "#!/bin/sh\n[ -e \"$1\" ] || [ \"$1\" = -c ]\n")
        shutil.copy(REPO / "tools/requirements.txt", self.root / ".venv")
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)

    def program(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run(self, *command, terminal=None, alone=False):
        """The exit code, all that was printed, and the calls in order. On a terminal, or on none; `alone`: as where
        there is no sudo."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GRIDCLOCK_")}
        environment.update(PATH=f"{self.programs}:{self.others() if alone else os.environ['PATH']}", CALLS=str(self.calls))
        self.calls.write_text("")
        stdin = subprocess.DEVNULL if terminal is None else terminal
        ran = subprocess.run([self.root / command[0], *command[1:]], env=environment, cwd=self.root, stdin=stdin,
                             capture_output=True, text=True, timeout=60, start_new_session=True,
                             preexec_fn=None if terminal is None else lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        return ran.returncode, ran.stdout + ran.stderr, self.calls.read_text().splitlines()

    def others(self):
        """The programs of this machine but for sudo."""
        folder = self.root.parent / "others"
        folder.mkdir()
        for path in reversed(os.environ["PATH"].split(":")):
            for program in pathlib.Path(path).glob("*"):
                link = folder / program.name
                link.unlink(missing_ok=True)
                link.symlink_to(program)
        (folder / "sudo").unlink(missing_ok=True)
        return folder

    def installed_by(self, *command):
        code, out, calls = self.run(*command)
        assert code == 0, out
        return [word for call in calls if call.startswith("apt-get install") for word in call.split()], calls


class Dev(unittest.TestCase):
    def setUp(self):
        self.machine = Machine(pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())))

    def test_demo_and_up_install_nothing_that_only_tests_need(self):
        for verb in ("demo", "up", "build"):
            packages, calls = self.machine.installed_by("dev", verb)
            self.assertIn("libgrpc++-dev", packages)
            for package in ("prometheus", "libopenblas-dev", "libgtest-dev", "libgmock-dev", "libbenchmark-dev"):
                self.assertNotIn(package, packages, verb)
            self.assertNotIn("systemctl", " ".join(calls))

    def test_demo_builds_the_programs_alone(self):
        _, calls = self.machine.installed_by("dev", "demo")
        build = next(call for call in calls if call.startswith("cmake --build"))
        self.assertTrue(build.endswith("--target gridclock gridclock-server gridclock-worker gridclock-compiler"), build)

    def test_the_tests_prometheus_never_runs_as_a_service(self):
        packages, calls = self.machine.installed_by("dev", "test")
        self.assertIn("prometheus", packages)
        masked = calls.index("systemctl mask --quiet prometheus.service")
        installs = [i for i, call in enumerate(calls) if call.startswith("apt-get install")]
        self.assertTrue(all(masked < i for i in installs), calls)

    def test_help_of_up_builds_nothing(self):
        code, out, calls = self.machine.run("dev", "up", "--help")
        self.assertEqual((code, calls), (0, []))
        self.assertIn("usage: ./dev up [--detach] [--folder FOLDER] [SERVER FLAG...]\n", out)

    def test_flags_of_the_server_reach_it(self):
        _, calls = self.machine.installed_by("dev", "up", "--detach", "--devices", "cpu")
        self.assertEqual(calls[-1], "up.sh build/dev/bin --detach --devices cpu")

    def test_configuring_speaks_up_only_where_it_must(self):
        for said, code, shown in (("-- Could NOT find c-ares", 0, False), ("CMake Warning at x", 0, True),
                                  ("CMake Error at x", 1, True)):
            self.machine.program(self.machine.programs / "cmake",
                                 f'#!/bin/sh\n[ "$1" = --build ] || {{ echo "{said}"; exit {code}; }}\n')
            got, out, _ = self.machine.run("dev", "build")
            self.assertEqual((got, said in out), (code, shown), out)

    def test_a_verb_that_is_none_is_named_last(self):
        code, out, calls = self.machine.run("dev", "bogus")
        self.assertEqual((code, calls), (1, []))
        self.assertTrue(out.endswith("\n\ndev: no verb 'bogus'\n"), out)

    def test_a_word_that_ctest_would_ignore_is_refused(self):
        code, out, calls = self.machine.run("dev", "test", "conformance")
        self.assertEqual((code, calls), (1, []))
        self.assertIn("-L 'conformance'", out)
        _, calls = self.machine.installed_by("dev", "test", "-L", "conformance")
        self.assertTrue(calls[-1].endswith("-L conformance"), calls)


class Sudo(unittest.TestCase):
    """Who is not root."""

    def setUp(self):
        self.machine = Machine(pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())))
        self.machine.program(self.machine.programs / "id", "#!/bin/sh\necho 1000\n")
        self.sudo = self.machine.programs / "sudo"
        self.machine.program(self.sudo, RECORDS + 'exec "$@"\n')

    def asked(self, answer):
        """What ./dev build says and calls on a terminal where this is typed."""
        ours, theirs = os.openpty()
        self.addCleanup(os.close, ours)
        os.write(ours, answer)
        code, out, calls = self.machine.run("dev", "build", terminal=theirs)
        os.close(theirs)
        return code, out, calls

    def test_root_is_not_asked_for_sudo(self):
        self.machine.program(self.machine.programs / "id", "#!/bin/sh\necho 0\n")
        _, calls = self.machine.installed_by("dev", "build")
        self.assertEqual([call for call in calls if call.startswith("sudo")], [])

    def test_with_yes_it_installs_by_sudo_without_a_question(self):
        packages, calls = self.machine.installed_by("dev", "--yes", "build")
        self.assertIn("libgrpc++-dev", packages)
        self.assertEqual([call.split()[1:5] for call in calls if call.startswith("sudo")],
                         [["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", verb] for verb in ("update", "install")])

    def test_it_asks_before_each_and_a_yes_lets_it(self):
        code, out, calls = self.asked(b"y\ny\n")
        self.assertEqual((code, out.count('run "sudo env DEBIAN_FRONTEND=noninteractive apt-get')), (0, 2), out)
        self.assertTrue(any(call.startswith("apt-get install") for call in calls))

    def test_a_no_installs_nothing(self):
        code, out, calls = self.asked(b"n\n")
        self.assertEqual((code, calls), (1, []))
        self.assertIn("not installed; run it yourself", out)

    def test_without_a_terminal_nobody_said_yes(self):
        code, out, calls = self.machine.run("dev", "build")
        self.assertEqual((code, calls), (1, []), out)

    def test_without_sudo_it_says_what_root_has_to_run(self):
        self.sudo.unlink()
        code, out, calls = self.machine.run("dev", "--yes", "build", alone=True)
        self.assertEqual((code, calls), (1, []))
        self.assertIn("needs root, or sudo, to install: run as root: env DEBIAN_FRONTEND", out)


class Lint(unittest.TestCase):
    """All checks pass but those whose script is not there."""

    def setUp(self):
        self.machine = Machine(pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())))
        self.scripts = ("check_layers.py", "check_strangers.py", "check_kernels_page.py", "size.py",
                        "check_contract.py", "tidy.py")
        for name in self.scripts:
            (self.machine.root / "tools" / name).write_text("")

    def test_all_there(self):
        code, out, _ = self.machine.run("tools/lint.sh")
        self.assertEqual(code, 0, out)

    def test_a_script_that_is_gone_fails_its_check(self):
        for name, check in zip(self.scripts, ("layers", "strangers", "kernels-page", "size", "contract", "tidy")):
            (self.machine.root / "tools" / name).unlink()
            code, out, _ = self.machine.run("tools/lint.sh")
            self.assertEqual(code, 1)
            self.assertIn(f"lint failed: {check}\n", out)
            (self.machine.root / "tools" / name).write_text("")


if __name__ == "__main__":
    unittest.main()
