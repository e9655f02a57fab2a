"""A real Prometheus scrapes a real server: prometheus_test.py EXAMPLE_FOLDER BIN_FOLDER."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

EXAMPLE, BIN = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
sys.path.insert(0, str(EXAMPLE))

import numpy as np  # noqa: E402
import quantiles  # noqa: E402
from gridclock_client import Client  # noqa: E402
from prometheus import Prometheus, fetch, wait_until  # noqa: E402
from server import Server  # noqa: E402

PAGE = (pathlib.Path(__file__).resolve().parents[3] / "docs" / "metrics.md").read_text()


def config_for(target):
    """What the page tells an operator to write, for another address and at a quicker pace."""
    told = re.search(r"^```yaml cpu\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[1]
    assert told.count("127.0.0.1:8471") == 1, told
    return "global: {scrape_interval: 1s, scrape_timeout: 900ms}\n" + told.replace("127.0.0.1:8471", target)


class PrometheusTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enter(Server(BIN))
        cls.prometheus = cls.enter(Prometheus(config_for(cls.server.metrics)))

    @classmethod
    def enter(cls, manager):
        value = manager.__enter__()
        cls.addClassCleanup(manager.__exit__, None, None, None)
        return value

    def run_square(self, times):
        with Client(self.server.grpc) as client:
            for _ in range(times):
                client.run("square", {"x": np.arange(16, dtype=np.float32)})

    def expect(self, query, value):
        wait_until(
            lambda: self.prometheus.query(query) == value,
            60,
            f"{query} is {value}, was {self.prometheus.query(query)}\n"
            f"{[t['lastError'] for t in self.prometheus.targets()]}",
        )

    def said(self, series):
        """What the page itself says: Prometheus may not have seen yet what another test ran."""
        found = re.search(re.escape(series) + r" (\d+)", fetch(self.server.metrics, "/metrics")[1])
        return int(found[1]) if found else 0

    def test_runs_are_counted_where_prometheus_sees_them(self):
        wait_until(lambda: self.prometheus.query("up") == 1, 60, "the target is up")
        runs = 'gridclock_kernel_runs_total{kernel="square",device="cpu",outcome="ok"}'
        launches = 'gridclock_kernel_duration_seconds_count{kernel="square",device="cpu"}'
        calls = 'gridclock_rpc_requests_total{method="gridclock.v1.KernelService/Run",code="OK"}'
        before, launched, called = self.said(runs), self.said(launches), self.said(calls)
        self.run_square(5)
        self.expect(runs, before + 5)
        self.run_square(7)
        self.expect(runs, before + 12)
        self.expect(launches, launched + 12)
        self.expect(calls, called + 12)
        self.expect("gridclock_rpc_in_flight", 0)
        self.expect("gridclock_worker_up", 1)
        wait_until(lambda: [t["lastError"] for t in self.prometheus.targets()] == [""], 60, "a scrape without error")

    def test_native_histograms_give_quantiles_within_a_bucket_and_exemplars_name_runs(self):
        with Prometheus(config_for(self.server.metrics), quantiles.FLAGS) as prometheus:
            samples = quantiles.measure(BIN, self.server)
            self.assertGreaterEqual(len(samples), quantiles.LEAST)
            for part, error in quantiles.errors(prometheus, samples).items():
                self.assertLess(error, quantiles.BUCKET, part)
            self.assertIsNone(prometheus.query('gridclock_kernel_duration_seconds_bucket{kernel="gelu"}'))
            runs = quantiles.exemplar_runs(prometheus)
            self.assertTrue(runs)
            # A person follows the link long after the last 200 runs are others.
            self.assertGreater(quantiles.run_many(BIN, self.server), 1000)
            for number in runs:
                status, run = fetch(self.server.metrics, f"/runs/{number}.json")
                self.assertEqual(status, 200)
                self.assertEqual(json.loads(run)["kernel"], "gelu")
                self.assertIn("queued", [phase["kind"] for phase in json.loads(run)["phases"]])

    def test_the_median_of_a_kernel_is_a_time(self):
        self.run_square(3)
        median = "histogram_quantile(0.5, sum by (le) (gridclock_kernel_duration_seconds_bucket))"
        value = wait_until(lambda: self.prometheus.query(median), 60, median)
        self.assertGreater(value, 1e-8)
        self.assertLess(value, 1)

    def test_promtool_finds_nothing_in_the_page_of_a_server(self):
        self.run_square(1)
        status, page = fetch(self.server.metrics, "/metrics")
        check = subprocess.run(
            ["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False
        )
        self.assertEqual((status, check.returncode, check.stderr), (200, 0, ""))

    def test_limits_and_process_are_there(self):
        _, page = fetch(self.server.metrics, "/metrics")
        for words in ('gridclock_limit{name="queue"} ', 'gridclock_usage{name="arena_bytes"} ',
                      'gridclock_queue_capacity{device="cpu"} ', "process_cpu_seconds_total ",
                      "process_open_fds ", 'gridclock_worker_state{device="cpu",state="ready"} '):
            self.assertIn("\n" + words, page)

    def test_the_queries_of_the_docs_are_queries(self):
        queries = re.findall(r"^```promql cpu\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
        self.assertGreater(len(queries), 3)
        for query in queries:
            self.prometheus.query(query)  # Fails where Prometheus cannot read it.

    def test_health_pages(self):
        self.assertEqual(fetch(self.server.metrics, "/healthz")[0], 200)
        self.assertEqual(fetch(self.server.metrics, "/readyz")[0], 200)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
