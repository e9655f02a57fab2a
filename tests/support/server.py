"""A real gridclock-server with its workers, on ports of its own, for tests in Python.

with Server(bin_folder) as server:
    server.grpc     # "127.0.0.1:41233"
    server.metrics  # "127.0.0.1:36011"
"""

import pathlib
import subprocess
import tempfile
import time


class Server:
    """Ready when `with` is entered. When it is left the server is asked to stop (SIGTERM) and must
    end with 0 in time; its log is in the message of whatever fails."""

    def __init__(self, bin_folder, *flags, start_seconds=60, stop_seconds=30, under=()):
        self._bin = pathlib.Path(bin_folder)
        self._flags = flags
        self._under = under  # The beginning of the command: valgrind and its flags.
        self._start_seconds = start_seconds
        self._stop_seconds = stop_seconds
        self.grpc = self.metrics = None
        self.process = None

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        return (self._folder / "log").read_text(errors="replace")

    def __enter__(self):
        self._temporary = tempfile.TemporaryDirectory(prefix="gridclock-")
        self._folder = pathlib.Path(self._temporary.name)
        ready = self._folder / "ready"
        defaults = ["--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0",
                    f"--worker={self._bin / 'gridclock-worker'}", "--devices=cpu"]
        given = {str(flag).partition("=")[0] for flag in self._flags}
        command = [*self._under, self._bin / "gridclock-server", f"--ready-file={ready}", *self._flags,
                   *(flag for flag in defaults if flag.partition("=")[0] not in given)]
        with open(self._folder / "log", "w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            facts = self._wait_for(ready)
        except BaseException:
            self._kill()
            raise
        self.grpc, self.metrics = facts["grpc"], facts.get("metrics")
        return self

    def _wait_for(self, ready):
        end = time.monotonic() + self._start_seconds
        while time.monotonic() < end:
            # It comes into being with all its lines: the server renames it into place.
            if ready.exists():
                return dict(line.split("=", 1) for line in ready.read_text().splitlines())
            if self.process.poll() is not None:
                raise RuntimeError(f"server ended with {self.process.returncode}\n{self.log()}")
            time.sleep(0.02)
        raise TimeoutError(f"server not ready after {self._start_seconds} s\n{self.log()}")

    def __exit__(self, kind, _error, _trace):
        try:
            self._stop(failing=kind is not None)
        finally:
            self._kill()

    def _stop(self, failing):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(self._stop_seconds)
            except subprocess.TimeoutExpired:
                raise TimeoutError(f"server ignores SIGTERM\n{self.log()}") from None
        if self.process.returncode != 0 and not failing:
            raise RuntimeError(f"server ended with {self.process.returncode}\n{self.log()}")

    def _kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._temporary.cleanup()
