"""Workers are killed until an operator hears of it: server, Prometheus with the rules, Alertmanager, a webhook."""
import contextlib
import http.server
import json
import pathlib
import re
import subprocess
import tempfile
import threading
import time

import dashboards
from load import kill_worker
from prometheus import Prometheus, fetch, wait_until
from server import Server

FOLDER = dashboards.REPO / "deploy/prometheus"
KILLS = 6  # The rule asks for more than three.
LONG = 60  # Seconds: longer than any machine takes.


@contextlib.contextmanager
def webhook():
    """An address, and the list of messages that came."""
    came = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            came.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}", came
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def alertmanager(receiver):
    """With the file that is shipped, but for the receiver's address."""
    text = (FOLDER / "alertmanager.yml").read_text()
    assert text.count("127.0.0.1:9099") == 1, text
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "alertmanager.yml").write_text(text.replace("127.0.0.1:9099", receiver))
        with open(folder / "log", "w") as log:
            process = subprocess.Popen(
                ["prometheus-alertmanager", f"--config.file={folder / 'alertmanager.yml'}", "--cluster.listen-address=",
                 f"--storage.path={folder / 'data'}", "--web.listen-address=127.0.0.1:0"], stdout=log, stderr=log)
        try:
            address = wait_until(lambda: address_in(folder / "log"), LONG, "Alertmanager listens")
            wait_until(lambda: is_ready(address), LONG, "Alertmanager is ready")
            yield address
        finally:
            process.terminate()
            process.wait(LONG)


# Only its log tells which port it got.
def address_in(log):
    found = re.search(r'msg="Listening on" address=(127\.0\.0\.1:\d+)', log.read_text())
    return found and found[1]


def is_ready(address):
    with contextlib.suppress(OSError):
        return fetch(address, "/-/ready")[0] == 200


def config_for(metrics, manager):
    """The shipped file for other addresses."""
    text = (FOLDER / "prometheus.yml").read_text()
    # Alertmanager is told of alerts, and scraped.
    for old, new, count in (("/etc/prometheus/rules", str(FOLDER / "rules"), 1), ("alertmanager:9093", manager, 2),
                            ("gridclock:8471", metrics, 1)):
        assert text.count(old) == count, old
        text = text.replace(old, new)
    return text


def hurried(config):
    """At a pace at which one can wait for an alert."""
    return re.sub(r"_interval: 15s", "_interval: 1s", config).replace("scrape_timeout: 10s", "scrape_timeout: 900ms")


def run(binaries):
    """Seconds from the last kill to the message, the names of all alerts in it, and of all that fired by then."""
    client = str(pathlib.Path(binaries) / "gridclock")
    with Server(binaries) as server, webhook() as (receiver, came), alertmanager(receiver) as manager:
        with Prometheus(hurried(config_for(server.metrics, manager))) as prometheus:
            wait_until(lambda: prometheus.query('up{job="gridclock"}') == 1, LONG, "the server is scraped")
            for kills in range(1, KILLS + 1):
                subprocess.run([client, "--server", server.grpc, "wait", "--timeout", str(LONG)], check=True,
                               stdout=subprocess.DEVNULL)
                kill_worker(server.pid)
                wait_until(lambda kills=kills: (prometheus.query("gridclock_worker_restarts_total") or 0) >= kills, LONG,
                           "a scrape sees the counter rise")
            start = time.monotonic()
            wait_until(lambda: came, LONG, "an alert reaches the webhook")
            seconds = time.monotonic() - start
            told = {alert["labels"]["alertname"] for message in came for alert in message["alerts"]}
            fired = prometheus.get("query", query='last_over_time(ALERTS{alertstate="firing"}[1h])')["result"]
            return seconds, told, {series["metric"]["alertname"] for series in fired}
