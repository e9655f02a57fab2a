"""Work for a server that moves every series a dashboard shows: calls of many kinds, refused ones too, and a
worker that is killed."""
import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time

# Each runs again and again, side by side, until the load ends.
STEADY = (
    "load square --shape N=4K --rate 150 --seconds 5",
    "load vector_add --shape N=16K --rate 60 --seconds 5",
    "load softmax --shape *=64 N=256 --rate 40 --seconds 5",
    "bench gelu --shape N=256K --samples 40 --interval 0.0001",
    "bench matmul --shape M=192 N=192 K=192 --budget 300ms --method all",
    "run sum x=randn:f32[64,4096] axis=1 --variant pairwise --verify",
    "run sum x=randn:f32[64,4096] axis=1 --verify",
    "run nosuch x=ones:f32[4]",
    "run square x=ones:f32[4] --variant nosuch",
)
KERNEL = "__global__ void twice(float* x) { x[threadIdx.x] *= 2; }\n"


class Load:
    """Runs as long as `with` lasts. `server` is a tests/support Server, `binaries` a folder."""

    def __init__(self, binaries, server, pause=10.0):
        self._client = str(pathlib.Path(binaries) / "gridclock")
        self._server = server
        self._pause = pause
        self._stop = threading.Event()

    def __enter__(self):
        self._stack = contextlib.ExitStack()
        folder = pathlib.Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        jobs = [line.split() for line in STEADY]
        self._threads = [threading.Thread(target=self._repeat, args=(job,)) for job in jobs]
        self._threads.append(threading.Thread(target=self._compile, args=(folder / "twice.cu",)))
        self._threads.append(threading.Thread(target=self._kill))
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._stack.close()

    def _call(self, words):
        subprocess.run([self._client, "--server", self._server.grpc, *words], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)

    def _repeat(self, words):
        while not self._stop.is_set():
            self._call(words)
            # A second between those that end at once; `load` paces itself.
            if words[0] != "load":
                self._stop.wait(0.5)

    def _compile(self, path):
        """Each time another source: what was compiled before is answered from memory."""
        number = 0
        while not self._stop.is_set():
            number += 1
            path.write_text(f"// {number}\n{KERNEL}")
            self._call(["compile", str(path)])
            self._stop.wait(1)

    def _kill(self):
        """Bursts, so that a scrape sees the device down. Only workers that were ready are killed: ends that
        nothing explains would have the device quarantined."""
        while not self._stop.wait(self._pause):
            end = time.monotonic() + 2
            while time.monotonic() < end:
                self._call(["wait", "--timeout", "5"])
                kill_worker(self._server.pid)
                self._stop.wait(0.3)


def children(pid):
    """pid -> name of the processes that `pid` started."""
    found = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
            if int(rest.split()[1]) == pid:
                found[int(stat.parent.name)] = name
    return found


def kill_worker(server_pid, seconds=10):
    """Kills a worker of that server, as an operator's mistake would; waits for one to be there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for pid, name in children(server_pid).items():
            with contextlib.suppress(ProcessLookupError):
                if name.startswith("gridclock-worke"):
                    os.kill(pid, signal.SIGKILL)
                    return pid
        time.sleep(0.05)
    raise AssertionError(f"server {server_pid} had no worker within {seconds} s")
