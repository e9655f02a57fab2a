"""What watching costs: the same server with metrics, scraped every second, and without."""
import urllib.request

from speed.background import Background
from speed.line import Line
from speed.programs import Server
from speed.small import small_call


class Scraper(Background):
    def __init__(self, address):
        super().__init__(1)
        self.url = f"http://{address}/metrics"

    def turn(self):
        with urllib.request.urlopen(self.url, timeout=5) as answer:
            if b"gridclock_" not in answer.read():
                raise RuntimeError("a scrape without metrics")


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


def measure(config):
    line = Line("metrics.cost", "calls per second with metrics and a scrape each second, over those without, "
                "64 in flight", ">=", 0.98)
    cpu = Line("metrics.cpu", "CPU time per call of server and worker with metrics over without", "<=", 1.02,
               informative=True)
    with Server(config.binaries) as watched, Server(config.binaries, "--metrics-listen", "") as plain:
        for _ in range(config.pairs):
            (seconds, cost), (plain_seconds, plain_cost) = pair(config, watched, plain)
            line.add(plain_seconds / seconds, seconds=seconds, without=plain_seconds)
            cpu.add(cost / plain_cost)
    return [line, cpu]
