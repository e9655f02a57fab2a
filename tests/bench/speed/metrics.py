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
    """(calls per second, CPU seconds per call of server and worker)"""
    before = server.cpu_seconds()
    calls = config.calls * 8
    rate = small_call(config.binaries, "empty", server.address, 64, calls)["calls_per_second"]
    return rate, (server.cpu_seconds() - before) / calls


def pair(config, watched, plain, swapped):
    if swapped:
        without = one_load(config, plain)
    with Scraper(watched.metrics):
        with_metrics = one_load(config, watched)
    if not swapped:
        without = one_load(config, plain)
    return with_metrics, without


def measure(config):
    line = Line("metrics.cost", "calls per second with metrics and a scrape each second, over those without, "
                "64 in flight", ">=", 0.98)
    cpu = Line("metrics.cpu", "CPU time per call of server and worker with metrics over without", "<=", 1.02,
               informative=True)
    with Server(config.binaries) as watched, Server(config.binaries, "--metrics-listen", "") as plain:
        for i in range(config.pairs):
            (rate, cost), (plain_rate, plain_cost) = pair(config, watched, plain, swapped=i % 2 == 1)
            line.add(rate / plain_rate, with_metrics=rate, without=plain_rate)
            cpu.add(cost / plain_cost)
    return [line, cpu]
