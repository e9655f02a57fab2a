"""What watching costs: the same server with metrics, scraped every second, and without."""
from speed import callgrind
from speed.background import Background
from speed.line import Line
from speed.programs import Server
from speed.small import small_call


class Scraper(Background):
    def __init__(self, address):
        super().__init__(1)
        self.address = address

    def turn(self):
        callgrind.scrape(self.address)


def one_load(config, server):
    """(seconds, CPU seconds of server and worker) of so many calls"""
    before = server.cpu_seconds()
    calls = config.calls * 8
    rate = small_call(config.binaries, "empty", server.address, 64, calls)["calls_per_second"]
    return calls / rate, server.cpu_seconds() - before


def watched_load(config, watched):
    with Scraper(watched.metrics):
        return one_load(config, watched)


def pair(config, watched, plain):
    """With and without metrics, in the order ABBA, so that a machine that grows slower favours neither."""
    first, second = watched_load(config, watched), one_load(config, plain)
    third, fourth = one_load(config, plain), watched_load(config, watched)
    return [x + y for x, y in zip(first, fourth)], [x + y for x, y in zip(second, third)]


def goals():
    """Times tell no 2 % apart, counts of instructions do."""
    return [Line("metrics.instructions", "the server's instructions per call (callgrind; Run of empty, 64 in flight) that "
                 "metrics and a scrape each second add, over those without", "<=", 2, " %")]


def counted(config):
    [line] = goals()
    line.skipped = callgrind.missing()
    for _ in range(0 if line.skipped else config.counted_rounds):
        with Server(config.binaries) as server:
            calls = config.calls * 8
            rate = small_call(config.binaries, "empty", server.address, callgrind.IN_FLIGHT, calls)["calls_per_second"]
        plain, _ = callgrind.per_call(config, "--metrics-listen=none")
        watched, few = callgrind.per_call(config)
        scrape = callgrind.per_scrape(config, few)
        line.add(100 * (watched - plain + scrape / rate) / plain, without=plain, watched=watched, scrape=scrape,
                 calls_per_second=rate)
    return line


def measure(config):
    yield counted(config)
    yield from timed(config)


def timed(config):
    line = Line("metrics.cost", "calls per second with metrics and a scrape each second, over those without, "
                "64 in flight", ">=", 0.98, informative=True)
    cpu = Line("metrics.cpu", "CPU time per call of server and worker with metrics over without", "<=", 1.02,
               informative=True)
    with Server(config.binaries) as watched, Server(config.binaries, "--metrics-listen", "") as plain:
        for _ in range(config.pairs):
            (seconds, cost), (plain_seconds, plain_cost) = pair(config, watched, plain)
            line.add(plain_seconds / seconds, seconds=seconds, without=plain_seconds)
            cpu.add(cost / plain_cost)
    return [line, cpu]
