"""What a worker that dies costs: the time until its device answers again."""
import os
import signal
import subprocess
import time

from speed.line import Line
from speed.programs import Server

RUN = "/gridclock.v1.KernelService/Run"
EMPTY = b"\x0a\x05empty"  # RunRequest{kernel: "empty"}
LIMIT = 60  # Seconds.


def goal():
    return Line("worker.respawn", "SIGKILL of an idle worker until a call on its device is answered: over the greater of "
                "50 ms and 1.5 times a start of the worker's program alone", "<=", 1)


def seconds_to_answer(call):
    """Of calls one after another, until one is answered."""
    import grpc  # Where figures are only shown, as by report.py, there may be none.
    start = time.monotonic()
    while True:
        try:
            call(EMPTY, timeout=LIMIT)
            return time.monotonic() - start
        except grpc.RpcError as error:
            if time.monotonic() - start > LIMIT:
                raise RuntimeError(f"no answer for {LIMIT} s after a worker was killed: {error.details()}") from error


def seconds_to_start(binaries):
    start = time.monotonic()
    subprocess.run([binaries / "gridclock-worker", "--help"], check=True, capture_output=True)
    return time.monotonic() - start


def worker_of(server):
    _, *children = server.pids()
    if len(children) != 1:
        raise RuntimeError(f"want one worker, the server has {len(children)} children")
    return children[0]


def measure(config):
    import grpc
    line = goal()
    with Server(config.binaries) as server, grpc.insecure_channel(server.address) as channel:
        call = channel.unary_unary(RUN)
        seconds_to_answer(call)  # Connects.
        for _ in range(config.rounds):
            killed = worker_of(server)
            os.kill(killed, signal.SIGKILL)
            seconds = seconds_to_answer(call)
            if worker_of(server) == killed:
                raise RuntimeError(f"worker {killed} lives on behind SIGKILL")
            alone = seconds_to_start(config.binaries)
            line.add(seconds / max(0.05, 1.5 * alone), respawn_ms=1e3 * seconds, start_ms=1e3 * alone)
    return line
