"""Workers are killed until an operator hears of it: server, Prometheus with the rules, Alertmanager, a webhook."""
import contextlib
import http.server
import json
import pathlib
import re
import socket
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


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


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
    address = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "alertmanager.yml").write_text(text.replace("127.0.0.1:9099", receiver))
        with open(folder / "log", "w") as log:
            process = subprocess.Popen(
                ["prometheus-alertmanager", f"--config.file={folder / 'alertmanager.yml'}", "--cluster.listen-address=",
                 f"--storage.path={folder / 'data'}", f"--web.listen-address={address}"], stdout=log, stderr=log)
        try:
            wait_until(lambda: is_ready(address), 20, "Alertmanager is ready")
            yield address
        finally:
            process.terminate()
            process.wait(20)


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
    """Seconds from the last kill to the message, and the names of all alerts that came."""
    client = str(pathlib.Path(binaries) / "gridclock")
    with Server(binaries) as server, webhook() as (receiver, came), alertmanager(receiver) as manager:
        with Prometheus(hurried(config_for(server.metrics, manager))) as prometheus:
            wait_until(lambda: prometheus.query('up{job="gridclock"}') == 1, 20, "the server is scraped")
            for _ in range(KILLS):
                subprocess.run([client, "--server", server.grpc, "wait", "--timeout", "20"], check=True, timeout=30,
                               stdout=subprocess.DEVNULL)
                kill_worker(server.pid)
                # A scrape sees the counter rise.
                time.sleep(1.2)
            start = time.monotonic()
            wait_until(lambda: came, 60, "an alert reaches the webhook")
            names = {alert["labels"]["alertname"] for message in came for alert in message["alerts"]}
            return time.monotonic() - start, names
