"""A kernel that was submitted beside the catalogue's, both with their processes warm."""
from speed.gpu import DEVICE, describe, gpu_server
from speed.line import Line
from speed.programs import run_json

CALLS = 200  # Of each in a round.


def one_round(config, server, whole, left):
    told = run_json(config.binaries / "bench-modules", "square", server.address, DEVICE, CALLS)
    whole.add(told["module_p50_ms"] / told["catalog_p50_ms"], module_ms=told["module_p50_ms"],
              catalog_ms=told["catalog_p50_ms"])
    left.add(told["module_left_p50_ms"] / told["catalog_left_p50_ms"], module_ms=told["module_left_p50_ms"],
             catalog_ms=told["catalog_left_p50_ms"])


def goals():
    return [Line("gpu.module.square", "square of 1,000,000 f32, there and back: p50 of calls of a module over that of the "
                 "catalogue's", "<=", 1.10)]


def measure(config):
    [whole] = goals()
    left = Line("gpu.module.square.left", "the same of values that the GPU makes and keeps", "<=", 1.10, informative=True)
    with gpu_server(config, "--allow-submit", "--limit-compile-seconds=60") as server:
        describe(config, server)
        for _ in range(config.rounds):
            one_round(config, server, whole, left)
    return [whole, left]
