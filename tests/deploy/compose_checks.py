"""The compose files, run by docker-compose through podman's socket."""
import contextlib
import json
import os
import pathlib
import subprocess
import time
import urllib.parse

import dashboards
from containers import DEBIAN, REPO, free_port
from image_checks import client
from prometheus import fetch, wait_until

FOLDER = REPO / "deploy/compose"
SERVICES = ("gridclock", "prometheus", "alertmanager")  # Grafana comes from a registry alone.
CDI = """{"cdiVersion": "0.5.0", "kind": "gridclock.test/gpu", "devices": [{"name": "all", "containerEdits": {
  "env": ["GRIDCLOCK_TEST_DEVICE=there"], "deviceNodes": [{"path": "/dev/null"}]}}]}
"""


@contextlib.contextmanager
def podman_service(engine):
    """What speaks Docker's API here."""
    address = engine.folder / "podman.sock"
    process = subprocess.Popen(["podman", "system", "service", "--time=0", f"unix://{address}"], env=engine.environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(address.exists, 20, "podman's socket is there")
        yield f"unix://{address}"
    finally:
        process.terminate()
        process.wait(20)
        address.unlink(missing_ok=True)


def compose(environment, *words, files=("compose.yaml",), check=True):
    named = [word for file in files for word in ("-f", str(FOLDER / file))]
    ran = subprocess.run(["docker-compose", *named, *words], env=environment, capture_output=True, text=True, check=False,
                         timeout=300, cwd=FOLDER)
    if check and ran.returncode != 0:
        raise RuntimeError(f"docker-compose {' '.join(words)}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran


def make_monitoring(engine):
    """service -> image of it, of Debian's packages; in Grafana's place one that only stays."""
    images = {}
    for target in ("prometheus", "alertmanager", "grafana"):
        images[target] = f"localhost/gridclock-test-{target}:debian"
        engine.build(target, images[target], arguments=[("BUILD_IMAGE", DEBIAN)], folder=REPO / "tests/deploy",
                     dockerfile=REPO / "tests/deploy/Dockerfile.monitoring")
    return images


def settings(engine, socket, images):
    ports = {f"{name}_PORT": str(free_port())
             for name in ("GRIDCLOCK", "GRIDCLOCK_METRICS", "PROMETHEUS", "ALERTMANAGER", "GRAFANA")}
    return {**engine.environment, **ports, "DOCKER_HOST": socket, "COMPOSE_PROJECT_NAME": f"gridclock-test-{os.getpid()}",
            **{f"{name.upper()}_IMAGE": image for name, image in images.items()}}


def query(environment, text):
    port = environment["PROMETHEUS_PORT"]
    with contextlib.suppress(OSError, KeyError):
        body = fetch(f"127.0.0.1:{port}", "/api/v1/query?" + urllib.parse.urlencode({"query": text}))[1]
        return [float(one["value"][1]) for one in json.loads(body)["data"]["result"]]


def dashboard_query():
    """That of the Overview's panel `Calls a second`, for all servers and two scrapes."""
    board = dashboards.load(dashboards.FOLDER / "overview.json")
    text = next(target["expr"] for panel, target in dashboards.targets(board) if panel["title"] == "Calls a second")
    return text.replace("$job", ".+").replace("$instance", ".+").replace("$__rate_interval", "2m")


def run(engine, images, binaries):
    """Seconds from `up` to data of a dashboard's query, and what Prometheus says of Alertmanager."""
    with podman_service(engine) as socket:
        environment = settings(engine, socket, images)
        start = time.monotonic()
        try:
            compose(environment, "up", "-d", *SERVICES)
            address = f"127.0.0.1:{environment['GRIDCLOCK_PORT']}"
            ready = client(binaries, address, "wait", "--timeout", "30")
            if ready.returncode != 0:
                raise RuntimeError(ready.stderr + compose(environment, "logs", check=False).stdout[-3000:])

            def answered():
                client(binaries, address, "run", "square", "x=ones:f32[4]")
                return any(value > 0 for value in query(environment, dashboard_query()) or [])
            wait_until(answered, 90, "a dashboard's query has data")
            seconds = time.monotonic() - start
            managers = fetch(f"127.0.0.1:{environment['PROMETHEUS_PORT']}", "/api/v1/alertmanagers")[1]
            return seconds, len(json.loads(managers)["data"]["activeAlertmanagers"])
        finally:
            compose(environment, "down", "--volumes", "--timeout", "5", check=False)


def gpu_override(environment=None):
    """What Compose makes of the file for GPUs, in a line, and whether that is what it says."""
    ran = compose(environment or dict(os.environ), "config", files=("compose.yaml", "compose.gpu.yaml"), check=False)
    found = [words for words in ("driver: nvidia", "gridclock:gpu") if words in ran.stdout]
    return f"exit {ran.returncode}, {' and '.join(found) or ran.stderr}", ran.returncode == 0 and len(found) == 2


def device_appears(engine, image):
    """A device of the container device interface, as NVIDIA's toolkit describes GPUs, is in the container."""
    specification = pathlib.Path("/etc/cdi/gridclock-test.json")
    specification.parent.mkdir(exist_ok=True)
    specification.write_text(CDI)
    try:
        with engine.container(image, options=("--device=gridclock.test/gpu=all",)) as name:
            pid = engine.inspect(name)["State"]["Pid"]
            words = pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0")
            found = [word for word in words if word.startswith("GRIDCLOCK_TEST_DEVICE=")]
            return ", ".join(found) or "not in its environment", found == ["GRIDCLOCK_TEST_DEVICE=there"]
    finally:
        specification.unlink()
