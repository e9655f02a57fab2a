"""Starts what is measured, and ends it."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time


def run_json(*command, timeout=600, **kwargs):
    """The JSON that a program prints."""
    ran = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout, **kwargs)
    if ran.returncode != 0:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} ended with {ran.returncode}: {ran.stderr.strip()}")
    return json.loads(ran.stdout)


class Server:
    """A gridclock-server with its workers on loopback, at free ports."""

    def __init__(self, binaries, *flags):
        self.folder = tempfile.TemporaryDirectory()
        ready = pathlib.Path(self.folder.name) / "ready"
        self.log = open(pathlib.Path(self.folder.name) / "log", "w+b")
        self.process = subprocess.Popen(
            [binaries / "gridclock-server", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
             "--worker", binaries / "gridclock-worker", "--devices", "cpu", "--ready-file", ready, *flags],
            stdout=self.log, stderr=self.log)
        self.wait_for(ready)
        lines = dict(line.split("=", 1) for line in ready.read_text().split())
        self.address, self.metrics = lines["grpc"], lines.get("metrics", "")

    def wait_for(self, ready):
        end = time.monotonic() + 60
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() > end:
                self.log.seek(0)
                raise RuntimeError("the server did not start: " + self.log.read().decode(errors="replace"))
            time.sleep(0.05)

    def pids(self):
        """The server and its workers."""
        found = [self.process.pid]
        for folder in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == self.process.pid:
                    found.append(int(folder.name))
        return found

    def cpu_seconds(self):
        """Of the server and its workers since they started."""
        ticks = 0
        for pid in self.pids():
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Echo:
    """The bare gRPC server."""

    def __init__(self, binaries):
        self.process = subprocess.Popen([binaries / "bench-echo-server"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()
