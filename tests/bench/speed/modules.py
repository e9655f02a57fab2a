"""Compiles of submitted code: beside NVRTC in a process of one's own, and from the cache."""
from speed.line import Line
from speed.programs import Server, run_json

ARCH = "sm_90"
COMPILES = 20  # In a round.


def one_round(config, server, small, cached):
    program = config.binaries / "bench-modules"
    direct = run_json(program, "direct", ARCH, COMPILES)
    if "missing" in direct:
        small.skipped = cached.skipped = f"no {direct['missing']} here"
        return
    ours = run_json(program, "compile", server.address, ARCH, COMPILES)["p50_ms"]
    small.add(ours / (1.5 * direct["p50_ms"] + 5), gridclock_ms=ours, nvrtc_ms=direct["p50_ms"])
    hit = run_json(program, "cached", server.address, ARCH, config.calls)
    cached.add(hit["cached_p50_ms"] / hit["empty_p50_ms"], cached_us=1e3 * hit["cached_p50_ms"],
               empty_us=1e3 * hit["empty_p50_ms"])


def goals():
    return [Line("compile.small", "Compile of a small kernel to a cubin: its time over 1.5 times NVRTC's in a process of "
                 "one's own and 5 ms, both warm", "<=", 1),
            Line("compile.cached", "Compile of a source that is in memory: p50 over that of Run of empty", "<=", 3)]


def measure(config):
    small, cached = goals()
    with Server(config.binaries, "--allow-submit") as server:
        for _ in range(config.rounds):
            one_round(config, server, small, cached)
    return [small, cached]
