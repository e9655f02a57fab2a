"""A real Prometheus on a port of its own, for tests in Python.

with Prometheus(config_text) as prometheus:
    prometheus.get("query", query="up")
"""
import json
import pathlib
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request


def fetch(address, path):
    """Status and body of a page."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=60) as answer:
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
    """Listens when `with` is entered."""

    def __init__(self, config, *flags):
        self._config = config
        self._flags = flags

    def __enter__(self):
        self._temporary = tempfile.TemporaryDirectory(prefix="gridclock-prometheus-")
        folder = pathlib.Path(self._temporary.name)
        (folder / "config.yml").write_text(self._config)
        self._log = folder / "log"
        with open(self._log, "w") as log:
            self._process = subprocess.Popen(
                ["prometheus", f"--config.file={folder / 'config.yml'}", f"--storage.tsdb.path={folder / 'data'}",
                 "--web.listen-address=127.0.0.1:0", *self._flags], stdout=log, stderr=log)
        try:
            self.address = wait_until(self._find_address, 60, "Prometheus listens")
            wait_until(lambda: fetch(self.address, "/-/ready")[0] == 200, 60, "Prometheus is ready")
        except BaseException as error:
            text = self._log.read_text()
            self.__exit__()
            raise AssertionError(text) from error
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(60)
        self._temporary.cleanup()

    # Only its log tells which port it got.
    def _find_address(self):
        found = re.search(r'msg="Listening on" address=(127\.0\.0\.1:\d+)', self._log.read_text())
        return found and found[1]

    def get(self, path, **parameters):
        """The data of an answer of the API; ValueError with Prometheus' own words if it has none."""
        _, body = fetch(self.address, f"/api/v1/{path}?" + urllib.parse.urlencode(parameters, doseq=True))
        answer = json.loads(body)
        if answer["status"] != "success":
            raise ValueError(answer["error"])
        return answer["data"]

    def query(self, text):
        """The sum of all values, or None where there are none."""
        values = [float(series["value"][1]) for series in self.get("query", query=text)["result"]]
        return sum(values) if values else None

    def targets(self):
        return self.get("targets")["activeTargets"]
