"""What ./dev up says and keeps: tools/up.sh with a server that only writes its ready file."""
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

UP = pathlib.Path(__file__).resolve().parents[2] / "tools/up.sh"
SERVER = r"""#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in
    --ready-file) ready=$2 ;;
    --busy) echo "gridclock-server: --listen: cannot listen on 127.0.0.1:8470: Address already in use" >&2; exit 1 ;;
    --metrics-listen) metrics=$2 ;;
  esac
  shift
done
echo "server $$ starts"
{ echo "grpc=127.0.0.1:1"; [ "${metrics:-}" = none ] || echo "metrics=127.0.0.1:2"; echo "pid=$$"; } > "$ready.new"
mv "$ready.new" "$ready"
trap 'exit 0' TERM
while :; do sleep 0.1; done
"""
REMEDY = "another server may run there; stop it, or ./dev up --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0"


class Up(unittest.TestCase):
    def setUp(self):
        here = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.bin, self.folder, self.pids = here / "bin", here / "up", []
        self.bin.mkdir()
        (self.bin / "gridclock-server").write_text(SERVER)
        (self.bin / "gridclock-server").chmod(0o755)
        self.addCleanup(self.end_servers)

    def end_servers(self):
        for pid in self.pids:
            os.kill(pid, signal.SIGTERM)

    def ready(self):
        return dict(line.split("=") for line in (self.folder / "ready").read_text().splitlines())

    def up(self, *flags, detach=True):
        """The exit code and all that was printed."""
        ran = subprocess.run([UP, self.bin, *(["--detach"] if detach else []), "--folder", self.folder, *flags],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, timeout=60)
        if ran.returncode == 0:
            self.pids.append(int(self.ready()["pid"]))
        return ran.returncode, ran.stdout

    def test_a_second_server_is_refused_and_the_first_keeps_its_files(self):
        code, out = self.up()
        self.assertEqual(code, 0, out)
        ready, log = (self.folder / "ready").read_text(), (self.folder / "server.log").read_text()
        for detach in (True, False):
            code, out = self.up("--busy", detach=detach)
            pid = self.ready()["pid"]
            self.assertEqual((code, out), (1, f"dev: a server runs already: pid {pid}, address 127.0.0.1:1; "
                                              f"stop it with: kill {pid}; or have another: ./dev up --folder FOLDER "
                                              "--listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0\n"))
            self.assertEqual((self.folder / "ready").read_text(), ready)
            self.assertEqual((self.folder / "server.log").read_text(), log)

    def test_a_ready_file_that_nobody_stands_behind_is_replaced(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        for pid in (ended.pid, os.getpid()):  # Gone, or another program's by now.
            self.folder.mkdir(exist_ok=True)
            (self.folder / "ready").write_text(f"grpc=127.0.0.1:9\npid={pid}\n")
            code, out = self.up()
            self.assertEqual(code, 0, out)
            self.assertIn("export GRIDCLOCK_SERVER=127.0.0.1:1\n", out)
            os.kill(self.pids.pop(), signal.SIGTERM)

    def test_a_port_that_is_taken_is_said_once_with_the_remedy(self):
        for detach in (True, False):
            code, out = self.up("--busy", detach=detach)
            self.assertEqual(code, 1)
            self.assertEqual(out.count("Address already in use"), 1, out)
            self.assertTrue(out.endswith(f"dev: {REMEDY}\n"), out)

    def test_the_lines_to_paste(self):
        _, out = self.up()
        self.assertIn("\n== Gridclock listens on 127.0.0.1:1, metrics on http://127.0.0.1:2/metrics\n", out)
        pasted = [line.partition("=")[0] for line in out.splitlines() if line.startswith("export")]
        self.assertEqual(pasted, ["export PATH", "export GRIDCLOCK_SERVER", "export GRIDCLOCK_METRICS", "export REPO"])
        os.kill(self.pids.pop(), signal.SIGTERM)
        (self.folder / "ready").unlink()
        _, out = self.up("--metrics-listen", "none")
        self.assertIn("\n== Gridclock listens on 127.0.0.1:1\n", out)
        self.assertNotIn("METRICS", out)


if __name__ == "__main__":
    unittest.main()
