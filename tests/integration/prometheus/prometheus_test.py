"""A real Prometheus scrapes a real server: prometheus_test.py EXAMPLE_FOLDER BIN_FOLDER."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

EXAMPLE, BIN = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
sys.path.insert(0, str(EXAMPLE))

import numpy as np  # noqa: E402
from gridclock_client import Client  # noqa: E402
from server import Server  # noqa: E402

PAGE = (pathlib.Path(__file__).resolve().parents[3] / "docs" / "metrics.md").read_text()


def config_for(target):
    """What the page tells an operator to write, for another address and at a quicker pace."""
    told = re.search(r"^```yaml cpu\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[1]
    assert told.count("127.0.0.1:8471") == 1, told
    return "global: {scrape_interval: 1s, scrape_timeout: 900ms}\n" + told.replace("127.0.0.1:8471", target)


def get(address, path):
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s: {what}")


class Prometheus:
    def __init__(self, target):
        self._target = target

    def __enter__(self):
        self._temporary = tempfile.TemporaryDirectory(prefix="gridclock-prometheus-")
        folder = pathlib.Path(self._temporary.name)
        (folder / "config.yml").write_text(config_for(self._target))
        self._log = folder / "log"
        with open(self._log, "w") as log:
            self._process = subprocess.Popen(
                ["prometheus", f"--config.file={folder / 'config.yml'}",
                 f"--storage.tsdb.path={folder / 'data'}", "--web.listen-address=127.0.0.1:0"],
                stdout=log, stderr=log,
            )
        try:
            self.address = wait_until(self._find_address, 30, "Prometheus listens")
            wait_until(lambda: get(self.address, "/-/ready")[0] == 200, 30, "Prometheus is ready")
        except BaseException as error:
            text = self._log.read_text()
            self.__exit__()
            raise AssertionError(text) from error
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(20)
        self._temporary.cleanup()

    # Only its log tells which port it got.
    def _find_address(self):
        found = re.search(r'msg="Listening on" address=(127\.0\.0\.1:\d+)', self._log.read_text())
        return found and found[1]

    def query(self, text):
        """The sum of all values, or None where there are none."""
        _, body = get(self.address, "/api/v1/query?" + urllib.parse.urlencode({"query": text}))
        answer = json.loads(body)
        assert answer["status"] == "success", body
        values = [float(series["value"][1]) for series in answer["data"]["result"]]
        return sum(values) if values else None

    def targets(self):
        return json.loads(get(self.address, "/api/v1/targets")[1])["data"]["activeTargets"]


class PrometheusTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enter(Server(BIN))
        cls.prometheus = cls.enter(Prometheus(cls.server.metrics))

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
            20,
            f"{query} is {value}, was {self.prometheus.query(query)}\n{self.prometheus.targets()}",
        )

    def test_runs_are_counted_where_prometheus_sees_them(self):
        wait_until(lambda: self.prometheus.query("up") == 1, 20, "the target is up")
        runs = 'gridclock_kernel_runs_total{kernel="square",device="cpu",outcome="ok"}'
        before = self.prometheus.query(runs) or 0
        self.run_square(5)
        self.expect(runs, before + 5)
        self.run_square(7)
        self.expect(runs, before + 12)
        self.expect('gridclock_kernel_duration_seconds_count{kernel="square"}', before + 12)
        self.expect('gridclock_rpc_requests_total{method="gridclock.v1.KernelService/Run",code="OK"}',
                    before + 12)
        self.expect("gridclock_rpc_in_flight", 0)
        self.expect("gridclock_worker_up", 1)
        self.assertEqual([t["lastError"] for t in self.prometheus.targets()], [""])

    def test_the_median_of_a_kernel_is_a_time(self):
        self.run_square(3)
        median = "histogram_quantile(0.5, sum by (le) (gridclock_kernel_duration_seconds_bucket))"
        value = wait_until(lambda: self.prometheus.query(median), 20, median)
        self.assertGreater(value, 1e-8)
        self.assertLess(value, 1)

    def test_promtool_finds_nothing_in_the_page_of_a_server(self):
        self.run_square(1)
        status, page = get(self.server.metrics, "/metrics")
        check = subprocess.run(
            ["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False
        )
        self.assertEqual((status, check.returncode, check.stderr), (200, 0, ""))

    def test_limits_and_process_are_there(self):
        _, page = get(self.server.metrics, "/metrics")
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
        self.assertEqual(get(self.server.metrics, "/healthz")[0], 200)
        self.assertEqual(get(self.server.metrics, "/readyz")[0], 200)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
