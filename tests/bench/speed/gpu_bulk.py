"""A large tensor to the GPU and back: StreamRun beside gRPC alone and the bus alone."""
import pathlib
import sys

from speed.gpu import describe, gpu_server
from speed.line import Line
from speed.programs import run_json

SIZE = 1 << 30
REPETITIONS = 3  # In a round; their median counts.
PINNED = pathlib.Path(__file__).with_name("pinned_copy.py")


def one_round(config, server, line):
    pinned = run_json(sys.executable, PINNED, SIZE, REPETITIONS)["seconds"]
    stream = run_json(config.binaries / "bench-stream", SIZE, REPETITIONS)["seconds"]
    ours = run_json(config.binaries / "bench-bulk", server.address, "whole", SIZE, REPETITIONS)["seconds"]
    line.add(ours / max(pinned, stream), gridclock_seconds=ours, grpc_seconds=stream, pinned_seconds=pinned,
             pinned_gigabytes_per_second=2 * SIZE / pinned / 1e9)


def goals():
    return [Line("gpu.stream.1G", "1 GiB to the GPU and back by StreamRun: its time over the slower of gRPC alone and "
                 "pinned copies", "<=", 1.25)]


def measure(config):
    [line] = goals()
    with gpu_server(config) as server:
        describe(config, server)
        # The arena is faulted in as it is used and kept, and pinned: its first use is not what is measured.
        run_json(config.binaries / "bench-bulk", server.address, "whole", SIZE, 1)
        for _ in range(config.rounds):
            one_round(config, server, line)
    return [line]
