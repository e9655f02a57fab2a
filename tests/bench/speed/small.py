"""Small calls against an empty gRPC echo: latency with one in flight, rate with 64; refusals; and the first call behind
a worker that died."""
from speed import respawn
from speed.line import Line
from speed.programs import Echo, Server, run_json

KERNELS = ("empty", "square")


def small_call(binaries, what, address, in_flight, calls):
    return run_json(binaries / "bench-small", what, address, in_flight, calls)


def one_round(binaries, targets, lines, calls):
    hop = run_json(binaries / "bench-pipe", 2000)["round_trip_us"] / 2
    alone = {what: small_call(binaries, what, a, 1, calls)["p50_us"] for what, a in targets.items()}
    many = {what: small_call(binaries, what, a, 64, calls * 8)["calls_per_second"] for what, a in targets.items()}
    for kernel in KERNELS:
        lines[kernel, 1].add((alone[kernel] - alone["echo"]) / hop, hop_us=hop, echo_us=alone["echo"],
                             gridclock_us=alone[kernel])
        lines[kernel, 64].add(many[kernel] / many["echo"], echo_per_second=many["echo"],
                              gridclock_per_second=many[kernel])


def unary_lines():
    lines = {}
    for kernel in KERNELS:
        lines[kernel, 1] = Line(f"unary.{kernel}.p50", f"Run of {kernel}, 1 in flight: p50 over the echo's, in hops "
                                "(half a pipe round trip between two CPUs)", "<=", 3, " hops")
        lines[kernel, 64] = Line(f"unary.{kernel}.rate", f"Run of {kernel}, 64 in flight: calls per second over the echo's",
                                 ">=", 0.60)
    return lines


def longest_refusal():
    return Line("queue.full.max", "Run while the queue is full: the longest of all rounds until it is refused", "<=", 5, " ms",
                worst=True)


def goals():
    return [*unary_lines().values(), longest_refusal(), respawn.goal()]


def measure(config):
    lines = unary_lines()
    with Echo(config.binaries) as echo, Server(config.binaries) as server:
        targets = {"echo": echo.address, **{k: server.address for k in KERNELS}}
        for _ in range(config.rounds):
            one_round(config.binaries, targets, lines, config.calls)
    return [*lines.values(), *refusals(config), respawn.measure(config)]


def refusals(config):
    longest = longest_refusal()
    usual = Line("queue.full.p50", "the same: p50", "<=", 5, " ms", informative=True)
    with Server(config.binaries, "--limit-queue=1") as server:
        for _ in range(config.rounds):
            told = small_call(config.binaries, "refused", server.address, 1, 200)
            longest.add(told["max_us"] / 1e3, p99_ms=told["p99_us"] / 1e3)
            usual.add(told["p50_us"] / 1e3)
    return [longest, usual]
