"""Workers are killed until an operator hears of it: server, Prometheus with the rules, Alertmanager, a webhook. What
Alertmanager makes of alerts that come together. And a kernel whose first job is wrong."""
import contextlib
import http.server
import json
import pathlib
import re
import subprocess
import tempfile
import threading
import time
import urllib.request

import dashboards
from load import kill_worker
from page_checks import MadeUpServer
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
    """With the file that is shipped, but for the receivers' address, and hurried."""
    text = (FOLDER / "alertmanager.yml").read_text()
    assert text.count("127.0.0.1:9099") == 2, text
    text, hurried_waits = re.subn(r"(group_wait|group_interval): \w+", r"\1: 1s", text)
    assert hurried_waits == 4, text
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


# What fires together: alert, instance, device.
TOGETHER = (("GridclockDeviceQuarantined", "a", "cuda:0"), ("GridclockWorkerDown", "a", "cuda:0"),
            ("GridclockWorkerCrashLoop", "a", "cuda:0"), ("GridclockWorkerDown", "a", "cuda:1"),
            ("GridclockWorkerCrashLoop", "a", "cuda:1"), ("GridclockWorkerCrashLoop", "a", "cpu"),
            ("GridclockErrorBudgetBurn", "a", ""), ("GridclockErrorBudgetLeak", "a", ""),
            ("GridclockGpuXidOther", "a", "cuda:1"), ("GridclockDown", "b", ""), ("GridclockWorkerDown", "b", "cpu"),
            ("GridclockErrorBudgetBurn", "c", ""), ("GridclockErrorBudgetLeak", "c", ""),
            ("GridclockErrorBudgetLeak", "d", ""))
# What of it arrives, by receiver and message.
ARRIVES = [("page", [("GridclockDeviceQuarantined", "a", "cuda:0"), ("GridclockErrorBudgetBurn", "a", ""),
                     ("GridclockWorkerDown", "a", "cuda:1")]),
           ("page", [("GridclockDown", "b", "")]),
           ("page", [("GridclockErrorBudgetBurn", "c", "")]),
           ("today", [("GridclockErrorBudgetLeak", "d", "")]),
           ("today", [("GridclockWorkerCrashLoop", "a", "cpu")])]


def severity(name):
    return re.search(rf"- alert: {name}\n(?: {{8}}.*\n)*? {{8}}labels: {{severity: (\w+)}}",
                     (FOLDER / "rules/alerts.yml").read_text())[1]


def post(manager, alerts):
    body = [{"labels": {"alertname": name, "severity": severity(name), "job": "gridclock", "instance": instance,
                        **({"device": device} if device else {})}} for name, instance, device in alerts]
    asked = urllib.request.Request(f"http://{manager}/api/v2/alerts", json.dumps(body).encode(),
                                   {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=LONG):
        pass


def arrived(came):
    """Receiver and alerts of each message."""
    return sorted((message["receiver"], sorted((alert["labels"]["alertname"], alert["labels"]["instance"],
                                                alert["labels"].get("device", "")) for alert in message["alerts"]))
                  for message in came)


def deliver():
    """What arrives of alerts that fire together."""
    with webhook() as (receiver, came), alertmanager(receiver) as manager:
        post(manager, TOGETHER)
        wait_until(lambda: len(came) >= len(ARRIVES), LONG, "alerts reach the webhook")
        time.sleep(3)  # Whatever is held back would have come by now.
        return arrived(came)


def wrong_at_first(binaries):
    """Seconds from the first scrape of a server until the alert of a kernel whose only job was wrong."""
    with MadeUpServer(binaries, names=1) as server, \
            Prometheus(hurried(config_for(server.metrics, "127.0.0.1:9"))) as prometheus:
        kernel = 'kernel="name_of_the_catalogue_0"'
        wait_until(lambda: prometheus.query(f"gridclock_wrong_results_total{{{kernel}}}") == 1, LONG, "the server is scraped")
        start = time.monotonic()
        wait_until(lambda: prometheus.query(f'ALERTS{{alertname="GridclockWrongResults",{kernel}}}'), LONG, "the alert fires")
        return time.monotonic() - start


def run(binaries):
    """Seconds from the first kill to the message, all alerts in it with their receivers, and the names of all that fired
    by then."""
    client = str(pathlib.Path(binaries) / "gridclock")
    with Server(binaries) as server, webhook() as (receiver, came), alertmanager(receiver) as manager:
        with Prometheus(hurried(config_for(server.metrics, manager))) as prometheus:
            wait_until(lambda: prometheus.query('up{job="gridclock"}') == 1, LONG, "the server is scraped")
            start = time.monotonic()
            for kills in range(1, KILLS + 1):
                subprocess.run([client, "--server", server.grpc, "wait", "--timeout", str(LONG)], check=True,
                               stdout=subprocess.DEVNULL)
                kill_worker(server.pid)
                wait_until(lambda kills=kills: (prometheus.query("gridclock_worker_restarts_total") or 0) >= kills, LONG,
                           "a scrape sees the counter rise")
            wait_until(lambda: came, LONG, "an alert reaches the webhook")
            seconds = time.monotonic() - start
            told = {(message["receiver"], alert["labels"]["alertname"]) for message in came for alert in message["alerts"]}
            fired = prometheus.get("query", query='last_over_time(ALERTS{alertstate="firing"}[1h])')["result"]
            return seconds, told, {series["metric"]["alertname"] for series in fired}
