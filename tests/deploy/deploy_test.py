#!/usr/bin/env python3
"""What deploy/ promises, shown: images built and run, the stack brought up, alerts that arrive, dashboards that
have data. Prints each line as goal, measured, PASS or FAIL; what this machine cannot show is SKIP, with the reason.

usage: deploy_test.py --bin FOLDER [--folder KEEP] [--pictures FOLDER] [--full] [--ccache FOLDER]
                      [--architectures LIST] [--only NAME,...] [--no-skips]

  --bin       programs that are built; images are made of them
  --folder    keeps images for the next time; default: a folder that is removed
  --pictures  draws the dashboards' previews there
  --full      adds the part full: the images by the whole Dockerfile, compilers and all. An hour of processor time,
              or two
  --ccache    objects that --full takes, and where it leaves its own; default: none are taken. With them the time of
              a build is said and passes nothing
  --architectures  GPUs that --full compiles for, as CMAKE_CUDA_ARCHITECTURES; default: all
  --only      compose, images, hardened, docs, stack, rules, scrape, histograms, page, alerts, dashboards, full
  --no-skips  a line that would be SKIP is FAIL, unless MAY_SKIP below has its goal
Needs root, and the packages of the group deploy (./dev deploy-test installs them).
"""
import argparse
import contextlib
import os
import pathlib
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import alerts_live  # noqa: E402
import chromium  # noqa: E402
import compose_checks  # noqa: E402
import dashboards  # noqa: E402
import image_checks  # noqa: E402
import page_checks  # noqa: E402
import quantiles  # noqa: E402
import snippets_check  # noqa: E402
from containers import DEBIAN, REPO, Engine  # noqa: E402
from load import Load  # noqa: E402
from prometheus import Prometheus, fetch, wait_until  # noqa: E402
from server import Server  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
CPU_MB, GPU_MB, FULL_MB = 90, 260, 850
# What the part full shows instead, and a time that has no goal.
MAY_SKIP = (f"gpu-runtime: at most {GPU_MB} MB", f"gpu-full: at most {FULL_MB} MB",
            "gpu-full by the whole Dockerfile, upon the one before: its time has no goal")


class Table:
    """Lines as they come, and all of them at the end."""

    def __init__(self, no_skips=False):
        self.lines = []
        self.no_skips = no_skips

    def add(self, goal, measured, passed):
        word = {True: "PASS", False: "FAIL", None: "SKIP"}[passed]
        measured = " ".join(str(measured).split())[:160]
        self.lines.append((goal, measured, word))
        print(f"{word}  {goal}: {measured}", flush=True)

    def skip(self, goal, reason):
        self.add(goal, reason, False if self.no_skips and goal not in MAY_SKIP else None)

    def text(self):
        widths = [max(len(line[i]) for line in self.lines) for i in (0, 1)]
        return "\n".join(f"{goal:<{widths[0]}}  {measured:<{widths[1]}}  {word}" for goal, measured, word in self.lines)

    def failed(self):
        return any(word == "FAIL" for _, _, word in self.lines)


def script(name, *arguments):
    """Exit code and last line of a test beside this one."""
    ran = subprocess.run([sys.executable, HERE / name, *map(str, arguments)], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        print(ran.stdout + ran.stderr, flush=True)
    return ran.returncode, ((ran.stdout.strip() or ran.stderr.strip()).splitlines() or [""])[-1]


def check_rules(table, _options):
    code, said = script("rules_test.py")
    table.add("rules: promtool reads them, each alert fires and is silent in its cases", said, code == 0)
    hadolint = pathlib.Path(sys.executable).parent / "hadolint"
    for goal, words in (
            ("amtool check-config", ["amtool", "check-config", REPO / "deploy/prometheus/alertmanager.yml"]),
            ("hadolint of the Dockerfiles", [hadolint, REPO / "deploy/docker/Dockerfile", HERE / "Dockerfile.monitoring"])):
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        table.add(goal, f"exit {ran.returncode} {ran.stdout if ran.returncode else ''}", ran.returncode == 0)


def check_dashboards(table, options):
    code, said = script("dashboards_test.py")
    table.add("dashboards: shape, types, unknown keys, metrics that there are", said, code == 0)
    code, said = script("dashboard_sdk.py")
    table.add("dashboards: no key that Grafana's own library does not know", said, code == 0)
    with tempfile.TemporaryDirectory() as name:
        kept = pathlib.Path(name) / "kept.json"
        code, said = script("dashboards_live.py", "--bin", options.bin, "--seconds", 60, "--keep", kept)
        table.add("dashboards: each query has data that changes when the load stops; planted bad ones are found", said, code == 0)
        code, said = script("pictures_test.py")
        table.add("dashboards: a panel whose line is off the scale, or whose table is empty, is found blank", said, code == 0)
        folder = options.pictures or name
        code, said = script("pictures.py", kept, folder)
        table.add("dashboards: no panel of a preview is blank", said, code == 0)


def check_alerts(table, options):
    messages = alerts_live.deliver()
    table.add("alerts that fire together: critical ones are paged, warnings go elsewhere, info to nobody, one of each cause",
              "; ".join(f"{receiver}: {', '.join(' '.join(alert).strip() for alert in alerts)}" for receiver, alerts in messages),
              messages == alerts_live.ARRIVES)
    seconds = alerts_live.wrong_at_first(options.bin)
    table.add("a kernel whose first job is wrong: its alert fires less than 10 s after a scrape", f"{seconds:.1f} s", seconds < 10)
    seconds, told, fired = alerts_live.run(options.bin)
    table.add("killed workers: the crash-loop alert reaches the webhook of warnings, and no other fires",
              f"{', '.join(' '.join(one) for one in sorted(told))} {seconds:.1f} s after the first kill; fired: {', '.join(sorted(fired))}",
              told == {("today", "GridclockWorkerCrashLoop")} and fired == {"GridclockWorkerCrashLoop"})


NAMES = 100_000
# What asks for each format of the page.
ACCEPTS = {"text": "text/plain", "OpenMetrics": "application/openmetrics-text;version=1.0.0",
           "protobuf": "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"}


def page_in(format_name, server):
    asked = urllib.request.Request(f"http://{server.metrics}/metrics", headers={"Accept": ACCEPTS[format_name]})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        return answer.read()


def check_names(table, options):
    """A server refuses names that nobody lists, and a catalogue of thousands there is none: the jobs are made up."""
    with page_checks.MadeUpServer(options.bin, NAMES) as server:
        pages = {name: page_in(name, server) for name in ACCEPTS}
    table.add(f"a scrape after {NAMES} jobs, each of a kernel with a name of its own: less than 1 MB",
              ", ".join(f"{name} {len(page) / 1000:.0f} kB" for name, page in pages.items()),
              max(map(len, pages.values())) < 1_000_000)
    runs = {kernel: int(count) for kernel, count in re.findall(
        r'^gridclock_kernel_runs_total\{kernel="(user|other)",device="cuda:0",outcome="ok"\} (\d+)$', pages["text"].decode(), re.M)}
    table.add("clients' names are not on it: their programs are user, all else beyond the cap is other",
              ", ".join(f"{kernel} {count}" for kernel, count in runs.items()),
              not any(b"name_of_a_client" in page for page in pages.values())
              and runs.get("user") == NAMES * 24 // 50 and runs.get("other", 0) > NAMES // 2)


# Metrics that no server on a CPU shows here, and why.
ABSENT = {
    "of a GPU": {f"gridclock_{name}" for name in (
        "calibration_activity_offset_seconds", "calibration_device_timer_step_seconds",
        "calibration_empty_event_pair_seconds", "calibration_launch_offset_seconds", "calibration_serial_record_offset_seconds", "device_clock_held_down",
        "device_clock_hertz", "device_exclusive", "device_flops_per_second", "device_power_watts",
        "device_temperature_celsius")},
    "of an overflow": {"gridclock_metric_series_overflow_total"},
}


DOCUMENTED = {name for name in dashboards.metric_names() if name.startswith(("gridclock_", "process_"))}


def on_page(server):
    return set(re.findall(r"^# TYPE (\w+) ", fetch(server.metrics, "/metrics")[1], re.M))


def check_documented(table, shown):
    """Each metric of docs/metrics.md is on one of the pages, or is known to need what is not here; and that is so."""
    absent = set().union(*ABSENT.values())
    wrong = {"missing": DOCUMENTED - shown - absent, "not documented": shown - DOCUMENTED,
             "said to be absent": absent & shown | absent - DOCUMENTED}
    reasons = ", ".join(f"{len(names)} {why}" for why, names in ABSENT.items())
    table.add("each documented metric is on the page under load or with tokens and a certificate, and no other",
              "; ".join(f"{why}: {', '.join(sorted(names))}" for why, names in wrong.items() if names)
              or f"{len(shown)} of {len(DOCUMENTED)}; the others are {reasons}", not any(wrong.values()))


def on_page_with_secrets(options):
    """The page of a server that has a certificate and asks for tokens."""
    with tempfile.TemporaryDirectory() as name:
        key, certificate, tokens = (pathlib.Path(name) / file for file in ("server.key", "server.pem", "tokens"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-keyout", key, "-out", certificate], check=True, capture_output=True)
        hashed = subprocess.run([options.bin / "gridclock-server", "--hash-token"], input=secrets.token_hex(32),
                                capture_output=True, text=True, check=True).stdout
        tokens.write_text(f"alice read,run {hashed}")
        with Server(options.bin, f"--tls-cert={certificate}", f"--tls-key={key}", f"--token-file={tokens}") as server:
            return on_page(server)


def check_scrape(table, options):
    with_secrets = on_page_with_secrets(options)
    with Server(options.bin, "--allow-submit") as server:
        with Load(options.bin, server, pause=3.0):
            # What never comes is named by the check.
            with contextlib.suppress(AssertionError):
                wanted = DOCUMENTED.difference(with_secrets, *ABSENT.values())
                wait_until(lambda: on_page(server) >= wanted, 60, "each metric is shown")
            shown = on_page(server) | with_secrets
        check_documented(table, shown)
        check_names(table, options)
        page = fetch(server.metrics, "/metrics")[1]
        ran = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False)
        table.add("promtool check metrics: clean", f"exit {ran.returncode} {ran.stderr.strip()[:80]}",
                  ran.returncode == 0 and not ran.stderr)
        host, _, port = server.metrics.partition(":")
        with contextlib.ExitStack() as stack:
            # None that does not read: a page of less than 1 MB goes into the kernel's buffers whole. Those that hold a
            # thread so are in tests/unit/metrics/http_server_test.cc, with pages of 8 MiB.
            for i in range(96):
                hung = stack.enter_context(socket.socket())
                hung.connect((host, int(port)))
                if i % 2:
                    hung.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n")
            time.sleep(0.2)
            start = time.monotonic()
            status = fetch(server.metrics, "/metrics")[0]
            seconds = time.monotonic() - start
        table.add("48 clients that say nothing and 48 that stop within their headers: a scrape is answered in less than 1 s", f"{status} after {seconds:.2f} s",
                  status == 200 and seconds < 1)


def check_histograms(table, options):
    with Server(options.bin) as server, \
            Prometheus(quantiles.CONFIG.format(target=server.metrics), quantiles.FLAGS) as prometheus:
        samples = quantiles.measure(options.bin, server)
        off = quantiles.errors(prometheus, samples)
        table.add(f"native histograms: p50 and p99 of {quantiles.LEAST} samples or more at most 9.1 % off",
                  f"{', '.join(f'p{part * 100:.0f} {error * 100:.1f} %' for part, error in off.items())} of {len(samples)}",
                  len(samples) >= quantiles.LEAST and max(off.values()) < quantiles.BUCKET)
        runs = quantiles.exemplar_runs(prometheus)
        last = quantiles.run_many(options.bin, server)
        found = [fetch(server.metrics, f"/runs/{run}.json")[0] for run in runs]
        table.add("native histograms: each exemplar names a run that can be read, after 15 s of load too",
                  f"{len(runs)} exemplars, {last} runs", last > 1000 and bool(runs) and set(found) == {200})


def look_at(table, what, browser, server):
    """Its pages, and those of a run of each outcome that there was."""
    runs = {run["outcome"]: run["id"] for run in reversed(page_checks.runs_of(server))}  # Of each the newest.
    paths = [*(f"/runs/{run}" for run in runs.values()), "/", "/kernels", "/runs"]
    wrong = [f"{path}: {fault}" for path in paths
             for fault in page_checks.faults(browser, f"http://{server.metrics}{path}")[0]]
    table.add(f"pages of {what}: no panel is blank, nothing scrolls sideways at {page_checks.PHONE} pixels",
              "; ".join(wrong) or f"{len(paths)} pages, nothing wrong", not wrong)


def check_page(table, options):
    if chromium.PROGRAM is None:
        return table.skip("pages: no panel is blank, nothing scrolls sideways", "no Chromium here")
    with contextlib.ExitStack() as stack:
        browser = stack.enter_context(chromium.Browser())
        idle = stack.enter_context(Server(options.bin))
        wrong, panels = page_checks.faults(browser, f"http://{idle.metrics}/")
        table.add("page of a server that did nothing: no panel is blank", "; ".join(wrong) or f"{len(panels)} panels", not wrong)
        for words in (["bench", "square", "--shape", "N=20000", "--samples", "50"], ["run", "softmax", "x=randn:f32[64,100]"]):
            subprocess.run([options.bin / "gridclock", "--server", idle.grpc, *words], check=True, stdout=subprocess.DEVNULL)
        look_at(table, "the same server with runs", browser, idle)
        look_at(table, "eight GPUs in every state, made up", browser, stack.enter_context(page_checks.MadeUpServer(options.bin)))


def megabytes(engine, image):
    return engine.inspect(image)["Size"] / 1e6


def add_size(table, goal, engine, image, most, smaller=None):
    """`smaller`: why this image is smaller than the one that the goal is about: it can miss the goal, not reach it."""
    size = megabytes(engine, image)
    if smaller and size <= most:
        table.skip(goal, f"{size:.0f} MB, but {smaller}")
    else:
        table.add(goal, f"{size:.0f} MB" + (f", and {smaller}" if smaller else ""), size <= most)


def add_cublaslt(table, engine, target, image):
    """What the images for GPUs differ by."""
    found = image_checks.libraries(engine, image, "libcublasLt.so")
    table.add(f"{target}: {'with' if target == 'gpu-full' else 'without'} cuBLASLt", ", ".join(found) or "none",
              bool(found) == (target == "gpu-full"))


def check_images(table, options):
    engine, cuda = options.engine, image_checks.cuda_roots(options.work)
    contexts = [*options.contexts, *cuda]
    anew = [*image_checks.roots(options.work / "anew", options.bin), *cuda]
    targets = [("cpu-runtime", "cpu", CPU_MB)]
    if image_checks.CUDA.exists():
        targets += [("gpu-runtime", "gpu", GPU_MB), ("gpu-full", "gpu-full", FULL_MB)]
    else:
        table.skip("the images for GPUs", f"no CUDA toolkit in {image_checks.CUDA}")
    for target, tag, most in targets:
        image = f"localhost/gridclock:{tag}"
        if target != "gpu-full":  # It is the one before and one library more.
            first, again = (image_checks.build(engine, target, prepared, f"localhost/gridclock-test:{name}", fresh=True)
                            for name, prepared in (("first", contexts), ("again", anew)))
            table.add(f"{target}: its root prepared twice and built twice, the same image", f"{first[:12]} and {again[:12]}",
                      first == again)
        image_checks.build(engine, target, contexts, image)
        others = f"its programs have {image_checks.gpu_code(options.bin)}: --full builds them for all"
        add_size(table, f"{target}: at most {most} MB", engine, image, most, None if tag == "cpu" else others)
        if tag != "cpu":
            add_cublaslt(table, engine, target, image)
        wrong = image_checks.contents(engine, image)
        table.add(f"{target}: no shell, no setuid file, not root",
                  wrong or f"{len(engine.files(image))} files, none of them; user {image_checks.user(engine, image)}", not wrong)
    table.add("cpu-runtime laid upon another image than scratch: it runs, and so does what was there",
              *image_checks.laid_upon(engine, contexts, DEBIAN))
    if len(targets) > 1:
        table.add("gpu-runtime: NVRTC compiles with CUB and fp16, no network, read-only, no capabilities",
                  *image_checks.compile_in(engine, "localhost/gridclock:gpu", options.work))


CPU_SECONDS, GPU_PROCESSOR_HOURS = 600, 2


def add_full_time(table, target, seconds, options):
    """Of a GPU's image processor time, which hardly depends on the machine; gpu-full has no goal: it takes that one's layers."""
    measured, hours = f"{seconds:.0f} s on {os.cpu_count()} processors", seconds * os.cpu_count() / 3600
    goals = {"cpu-runtime": ("less than 10 minutes", seconds < CPU_SECONDS),
             "gpu-runtime": (f"at most {GPU_PROCESSOR_HOURS} hours of all processors together", hours <= GPU_PROCESSOR_HOURS)}
    if target not in goals:
        return table.skip(f"{target} by the whole Dockerfile, upon the one before: its time has no goal", measured)
    words, passed = goals[target]
    goal = f"{target} by the whole Dockerfile, compilers and all, from nothing: {words}"
    few = target != "cpu-runtime" and options.architectures
    if options.ccache or not options.fresh or few:
        what = "with objects of --ccache" if options.ccache else f"for {few} alone" if few else "with layers that --folder kept"
        return table.skip(goal, f"{measured}, but {what}")
    return table.add(goal, measured, passed)


def check_full(table, options):
    targets = [("cpu-runtime", CPU_MB)]
    if (image_checks.CUDA / "bin/nvcc").exists():
        targets += [("gpu-runtime", GPU_MB), ("gpu-full", FULL_MB)]
    else:
        table.skip("the whole Dockerfile for GPUs", f"no CUDA compiler in {image_checks.CUDA}")
    for target, most in targets:
        image = f"localhost/gridclock-test:full-{target}"
        start = time.monotonic()
        image_checks.build_whole(options.engine, target, image, options.ccache, options.architectures)
        add_full_time(table, target, time.monotonic() - start, options)
        table.add(f"whole Dockerfile, {target}: a call is answered and verified", *image_checks.runs(options.engine, image))
        few = options.architectures and target != "cpu-runtime"
        add_size(table, f"whole Dockerfile, {target}: at most {most} MB", options.engine, image, most,
                 f"for {options.architectures} alone" if few else None)
        if target != "cpu-runtime":
            add_cublaslt(table, options.engine, target, image)
        wrong = image_checks.contents(options.engine, image)
        table.add(f"whole Dockerfile, {target}: no shell, no setuid file, not root", wrong or "none", not wrong)
    if len(targets) > 1:
        table.add("gpu-runtime by the whole Dockerfile: NVRTC compiles",
                  *image_checks.compile_in(options.engine, "localhost/gridclock-test:full-gpu-runtime", options.work))


def check_hardened(table, options):
    with image_checks.Hardened(options.engine, "localhost/gridclock:cpu", options.bin) as server:
        for goal, ask in (("a call is answered and verified", server.answers),
                          ("its own health check", server.is_healthy),
                          ("its last device drained, it is not ready and stays healthy", server.lives_without_devices),
                          ("nothing can be written to /", server.cannot_write_to_root),
                          ("a killed worker is replaced, the server stays", server.survives_a_killed_worker),
                          (f"in {image_checks.MEMORY} MiB a call that all but fills a client's part is answered",
                           server.answers_what_just_fits),
                          (f"800 MB in {image_checks.MEMORY} MiB is RESOURCE_EXHAUSTED, the server stays",
                           server.refuses_what_does_not_fit)):
            table.add(f"hardened: {goal}", *ask())
        call, code, seconds = server.stops_after_the_call()
        table.add("hardened: SIGTERM ends it with 0, the running call finished, less than 1 s later",
                  f"call {call}, server {code}, {seconds:.2f} s", call == 0 and code == 0 and seconds < 1)


def check_compose(table, options):
    images = monitoring(options)
    seconds, managers = compose_checks.run(options.engine, images, options.bin)
    table.add("compose up: a dashboard's query has data", f"after {seconds:.1f} s", seconds < 90)
    table.add("compose up: Prometheus reaches Alertmanager", f"{managers} active", managers == 1)
    goal = "from no image at all to that query, programs built: less than 5 minutes"
    since = time.monotonic() - options.start
    if options.fresh:
        table.add(goal, f"{since:.0f} s", since < 300)
    else:
        table.skip(goal, "images were kept by --folder")
    table.add("compose accepts the GPU override", *compose_checks.gpu_override())
    table.add("a device by CDI is in the container", *compose_checks.device_appears(options.engine, images["gridclock"]))


def check_stack(table, options):
    """What Compose starts, but as processes and without Grafana: for where no container runs."""
    start = time.monotonic()
    client = [options.bin / "gridclock", "--server"]
    with Server(options.bin) as server, alerts_live.webhook() as (receiver, _), alerts_live.alertmanager(receiver) as manager, \
            Prometheus(alerts_live.config_for(server.metrics, manager)) as prometheus:
        def answered():
            subprocess.run([*client, server.grpc, "run", "square", "x=ones:f32[4]"], check=True, stdout=subprocess.DEVNULL)
            return (prometheus.query(compose_checks.dashboard_query()) or 0) > 0
        wait_until(answered, 300, "a dashboard's query has data")
        seconds = time.monotonic() - start
        managers = prometheus.get("alertmanagers")["activeAlertmanagers"]
        table.add("server, Prometheus and Alertmanager as processes, with the shipped files: a dashboard's query has data in "
                  "less than 5 minutes", f"after {seconds:.1f} s, {len(managers)} Alertmanager", seconds < 300 and len(managers) == 1)


def check_docs(table, options):
    count = snippets_check.run(options.engine, options.contexts, monitoring(options), options.work)
    table.add("the container blocks of README.md, docs/deploy.md and deploy/README.md, as written", f"{count} ran", count >= 3)


def monitoring(options):
    """service -> image."""
    return {"gridclock": "localhost/gridclock:cpu", **compose_checks.make_monitoring(options.engine)}


PARTS = {"compose": check_compose, "images": check_images, "hardened": check_hardened, "docs": check_docs,
         "stack": check_stack, "rules": check_rules, "scrape": check_scrape, "histograms": check_histograms,
         "page": check_page, "alerts": check_alerts, "dashboards": check_dashboards, "full": check_full}
NEED_IMAGES = ("compose", "images", "hardened", "docs", "full")


def prepare(options, stack):
    """What all parts with images stand on. `start`: of the time from no image at all."""
    options.start = time.monotonic()
    options.work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gridclock-deploy-", dir="/var/tmp")))
    options.engine = Engine(options.folder or options.work / "engine")
    if not options.folder:
        stack.callback(options.engine.remove_all)
    options.fresh = not options.engine.has(DEBIAN)
    options.engine.make_debian()
    options.contexts = image_checks.roots(options.work, options.bin)
    image_checks.build(options.engine, "cpu-runtime", options.contexts, "localhost/gridclock:cpu")


def attempt(table, name, function, *arguments):
    """Whether it ran to its end. One part that breaks leaves the others to be seen."""
    try:
        function(*arguments)
    except Exception as error:
        print(error, flush=True)  # All of its words; a line of the table has few of them.
        table.add(name, f"{type(error).__name__}: {error}", False)
        return False
    return True


def run(options):
    table = Table(options.no_skips)
    with contextlib.ExitStack() as stack:
        parts = options.parts
        if set(parts) & set(NEED_IMAGES) and not attempt(table, "what images are made of", prepare, options, stack):
            for name in sorted(set(parts) & set(NEED_IMAGES), key=parts.index):
                table.skip(name, "it needs what images are made of")
            parts = [name for name in parts if name not in NEED_IMAGES]
        for name in parts:
            print(f"\n== {name}", flush=True)
            attempt(table, name, PARTS[name], table, options)
    print(f"\n{table.text()}")
    return 1 if table.failed() else 0


def absolute(path):
    """Containers and their settings know no current folder."""
    return pathlib.Path(path).expanduser().resolve()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=absolute, required=True)
    parser.add_argument("--folder", type=absolute)
    parser.add_argument("--pictures", type=absolute)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--ccache", type=absolute)
    parser.add_argument("--architectures", default="")
    parser.add_argument("--only")
    parser.add_argument("--no-skips", action="store_true")
    options = parser.parse_args()
    chosen = set(options.only.split(",")) if options.only else set(PARTS) - {"full"}
    if unknown := chosen - set(PARTS):
        parser.error(f"--only: no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if options.full:
        chosen.add("full")
    # In this order whatever is said: the time from no image at all ends with the first one.
    options.parts = [name for name in PARTS if name in chosen]
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
