"""Starts what is measured, and ends it."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import server as support  # noqa: E402


def run_json(*command, timeout=600, **kwargs):
    """The JSON that a program prints."""
    ran = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout, **kwargs)
    if ran.returncode != 0:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} ended with {ran.returncode}: {ran.stderr.strip()}")
    return json.loads(ran.stdout)


class Server(support.Server):
    """A gridclock-server with its workers on loopback, and what its processes cost."""

    @property
    def address(self):
        return self.grpc

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
