"""Rules, configurations and compose files as files: what promtool says, and that no alert is without a case in
which it fires, one in which it is silent, a reason for its threshold, and a runbook."""
import pathlib
import re
import shutil
import subprocess
import unittest

import dashboards

REPO = dashboards.REPO
FOLDER = REPO / "deploy/prometheus"
ALERTS = (FOLDER / "rules/alerts.yml").read_text()
RECORDING = (FOLDER / "rules/recording.yml").read_text()
CASES = "".join((FOLDER / f"tests/{name}_test.yml").read_text() for name in ("rules", "hours"))


def alerts():
    """name -> its part of the file, with the comment above it."""
    parts = re.finditer(r"^((?: {6}# .*\n)+) {6}- alert: (\w+)\n((?: {8}.*\n)+)", ALERTS, re.M)
    return {part[2]: part[0] for part in parts}


def promtool(*arguments):
    return subprocess.run(["promtool", *arguments], cwd=FOLDER, capture_output=True, text=True, check=False)


class RulesTest(unittest.TestCase):
    def test_promtool_reads_rules_and_configuration(self):
        for arguments in (("check", "rules", "rules/alerts.yml", "rules/recording.yml"),
                          ("check", "config", "prometheus.yml")):
            ran = promtool(*arguments)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def test_each_case_of_each_alert(self):
        ran = promtool("test", "rules", *(str(path) for path in sorted(FOLDER.glob("tests/*_test.yml"))))
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def test_the_part_of_failed_calls_is_the_same_over_each_stretch_of_time(self):
        found = re.findall(r"- record: instance:gridclock_rpc_errors:ratio_rate(\w+)\n((?: {8}.*\n)+)", RECORDING)
        self.assertEqual([time for time, _ in found], ["5m", "30m", "1h", "6h"])
        self.assertEqual(len({rule.replace(f"[{time}]", "[TIME]") for time, rule in found}), 1)

    def test_each_rule_that_counts_calls_leaves_out_what_anyone_may_ask(self):
        for selector in re.findall(r"gridclock_rpc_\w+_total\S*", re.sub(r" *#.*", "", ALERTS + RECORDING)):
            self.assertIn('{method!~"grpc[.].*"', selector)

    def test_dashboards_count_the_errors_that_alerts_count(self):
        def calls(text):
            return sorted(set(re.findall(r'(?:method|code)[!=]~"[^"]+"', text)))

        want = calls(RECORDING.split("gridclock_rpc_errors:ratio_rate5m", 1)[1])
        self.assertEqual(len(want), 3)
        for name in ("overview", "fleet"):
            text = (REPO / f"deploy/grafana/dashboards/{name}.json").read_text().replace('\\"', '"')
            line = next(line for line in text.splitlines() if "gridclock_rpc_drained_total" in line)
            self.assertEqual(calls(line), want, name)

    def test_each_alert_has_a_firing_and_a_silent_case(self):
        self.assertGreater(len(alerts()), 15)
        self.assertEqual(ALERTS.count("- alert:"), len(alerts()), "an alert has no comment")
        for name in alerts():
            silent = re.search(rf"alertname: {name}, exp_alerts: \[\]", CASES)
            firing = re.search(rf"alertname: {name}\n +exp_alerts:\n +- exp_labels", CASES)
            self.assertTrue(silent, f"{name} has no case in which it is silent")
            self.assertTrue(firing, f"{name} has no case in which it fires")

    def test_each_alert_has_a_reason_a_severity_and_a_runbook(self):
        runbooks = (REPO / "deploy/README.md").read_text()
        for name, part in alerts().items():
            self.assertGreater(len(part.split("- alert:")[0].split()), 8, f"{name}: no reason for its threshold")
            self.assertRegex(part, r"labels: \{severity: (critical|warning|info)\}", name)
            self.assertIn(f"runbook_url: deploy/README.md#{name.lower()}\n", part)
            self.assertIn(f"\n### {name}\n", runbooks, f"deploy/README.md has no runbook of {name}")

    def test_the_page_lists_each_alert_by_its_severity(self):
        page = (REPO / "docs/deploy.md").read_text()
        listed = dict(re.findall(r"^\| (critical|warning|info): [a-z ]+ \| (.*) \|$", page, re.M))
        for severity, names in listed.items():
            want = [name for name, part in alerts().items() if f"{{severity: {severity}}}" in part]
            self.assertEqual(["Gridclock" + name for name in names.split(", ")], want)
        self.assertEqual(len(listed), 3)

    def test_no_runbook_is_of_an_alert_that_is_gone(self):
        runbooks = set(re.findall(r"^### (Gridclock\w+)$", (REPO / "deploy/README.md").read_text(), re.M))
        self.assertEqual(runbooks - set(alerts()), set())

    def test_rules_use_metrics_that_there_are(self):
        code = "\n".join(line for line in (ALERTS + RECORDING).splitlines() if not line.lstrip().startswith("#"))
        # What a rule recorded has colons in its name.
        used = dashboards.metrics_in(re.sub(r"\w+:\w+:\w+", "", code))
        self.assertGreater(len(used), 15)
        self.assertEqual(used - dashboards.metric_names(), set())

    def test_what_is_recorded_is_what_is_used(self):
        recorded = set(re.findall(r"- record: (\S+)", RECORDING))
        used = set(re.findall(r"\w+:\w+:\w+", re.sub(r"#.*", "", ALERTS)))
        self.assertEqual(used, recorded)


class RoutingTest(unittest.TestCase):
    """What arrives of alerts that fire together is tried with a real Alertmanager: alerts_live.py."""
    FILE = FOLDER / "alertmanager.yml"
    TEXT = FILE.read_text()
    RECEIVERS = {"critical": "page", "warning": "today", "info": "nobody"}

    def test_each_severity_has_a_receiver_of_its_own(self):
        default = re.search(r"^route:\n {2}receiver: (\w+)$", self.TEXT, re.M)[1]
        routes = dict(re.findall(r"^ {4}- matchers: \[severity = (\w+)\]\n {6}receiver: (\w+)$", self.TEXT, re.M))
        self.assertEqual({"critical": default, **routes}, self.RECEIVERS)
        receivers = dict(re.findall(r"^ {2}- name: (\w+)\n((?: {4}.*\n)*)", self.TEXT, re.M))
        self.assertEqual({name: "_configs:" in part for name, part in receivers.items()},
                         {"page": True, "today": True, "nobody": False})

    @unittest.skipUnless(shutil.which("amtool"), "no amtool here")
    def test_amtool_sends_each_severity_to_its_receiver(self):
        for label, receiver in (*self.RECEIVERS.items(), ("", "page"), ("unheard-of", "page")):
            ran = subprocess.run(["amtool", "config", "routes", "test", f"--config.file={self.FILE}",
                                  f"--verify.receivers={receiver}", "alertname=GridclockDown", f"severity={label}"],
                                 capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 0, f"{label}: {ran.stdout}{ran.stderr}")

    def test_alerts_of_one_server_and_severity_are_one_message(self):
        self.assertEqual(re.findall(r"group_by: (.*)", self.TEXT), ["[instance, severity]"])

    def test_what_holds_others_back_fires_and_has_the_labels_that_are_compared(self):
        rules = re.findall(r"source_matchers: \[alertname =~? \"?([\w|]+)\"?\]\n +target_matchers: .*\n +equal: \[(.*)\]", self.TEXT)
        self.assertEqual(len(rules), self.TEXT.count("- source_matchers"))
        for sources, labels in rules:
            for source in sources.split("|"):
                self.assertIn(source, alerts())
                for label in labels.split(", "):
                    self.assertRegex(CASES, rf"alertname: {source}\n +exp_alerts:\n +- exp_labels: .*\b{label}: ")

    def test_a_warning_waits_for_the_critical_alert_that_explains_it(self):
        def seconds(text):
            return int(text[:-1]) * {"s": 1, "m": 60}[text[-1]]

        later = max(seconds(re.search(r"for: (\w+)", alerts()[name])[1])
                    for name in ("GridclockDeviceQuarantined", "GridclockWorkerDown"))
        wait = re.search(r"receiver: today\n +group_wait: (\w+)", self.TEXT)[1]
        self.assertGreaterEqual(seconds(wait), later + 60)  # A minute until the scrape, the rule and the message.


class ComposeTest(unittest.TestCase):
    def test_every_port_is_published_on_loopback_alone(self):
        text = (REPO / "deploy/compose/compose.yaml").read_text()
        published = re.findall(r'"([^"\s]*:\d+)"', text)
        self.assertEqual(len(published), 5)
        for port in published:
            self.assertTrue(port.startswith("127.0.0.1:"), port)

    def test_images_of_a_registry_are_named_by_digest(self):
        text = (REPO / "deploy/compose/compose.yaml").read_text()
        images = re.findall(r"image: \$\{\w+:-(.*)\}", text)
        self.assertEqual(len(images), 4)
        for image in images:
            if not image.startswith("gridclock:"):
                self.assertRegex(image, r":v?[\d.]+@sha256:[0-9a-f]{64}$")

    def test_every_service_is_bounded(self):
        text = (REPO / "deploy/compose/compose.yaml").read_text()
        self.assertEqual(text.count("    <<: *hardened\n"), 4)
        self.assertEqual(len(re.findall(r"^    mem_limit: ", text, re.M)), 4)
        for bound in ("pids_limit", "ulimits", "logging"):
            self.assertIn(f"\n  {bound}: ", text.split("\nservices:")[0])

    def test_files_that_are_mounted_are_there(self):
        folder = REPO / "deploy/compose"
        mounted = re.findall(r"- (?:\$\{\w+:-)?(\.\./[^\s:}]+)\}?:/", (folder / "compose.yaml").read_text())
        self.assertEqual(len(mounted), 5)
        for path in mounted:
            self.assertTrue((folder / path).exists(), path)

    def test_with_tokens_the_server_is_told_the_same_but_for_who_may_call(self):
        plain, tls = ({flag for flag in re.findall(r"^      - (--\S+)$", text.split("\n  prometheus:")[0], re.M)} for text in (
            (REPO / f"deploy/compose/{name}").read_text() for name in ("compose.yaml", "compose.tls.yaml")))
        self.assertEqual(plain - tls, {"--insecure-public"})
        self.assertEqual({flag.partition("=")[0] for flag in tls - plain}, {"--tls-cert", "--tls-key", "--token-file"})

    def test_the_container_of_the_server_has_no_token(self):
        compose = (REPO / "deploy/compose/compose.tls.yaml").read_text()
        mounted = re.search(r"- \$\{GRIDCLOCK_SECRETS:\?want a folder with (.*)\}:/secrets:ro", compose)[1]
        self.assertEqual(mounted, "server.pem, server.key and tokens")
        self.assertEqual(re.findall(r"^ {6}(GRIDCLOCK_\w+): ", compose, re.M), ["GRIDCLOCK_TLS_CA"])
        made = re.findall(r'> "\$folder/(\S+)"|-out "\$folder/(\S+)"', (REPO / "deploy/secrets.sh").read_text())
        self.assertEqual(sorted("".join(names) for names in made), ["server/server.pem", "server/tokens", "token"])

    def test_dashboards_lie_where_grafana_is_told(self):
        compose = (REPO / "deploy/compose/compose.yaml").read_text()
        provider = (REPO / "deploy/grafana/provisioning/dashboards/gridclock.yaml").read_text()
        folder = re.search(r"path: (\S+)}", provider)[1]
        self.assertIn(f"../grafana/dashboards:{folder}:ro", compose)


class DeployPageTest(unittest.TestCase):
    def test_each_server_is_bounded_and_has_time_to_end(self):
        page = (REPO / "docs/deploy.md").read_text().replace("\\\n", "")
        servers = re.findall(r"^docker run -d .*", page, re.M)
        self.assertEqual(len(servers), 3)
        for server in servers:
            for flag in ("--read-only", "--cap-drop ALL", "--security-opt no-new-privileges", "--stop-timeout 35"):
                self.assertIn(f" {flag} ", server)


class DockerfileTest(unittest.TestCase):
    TEXT = (REPO / "deploy/docker/Dockerfile").read_text()

    def test_images_run_as_nobody_and_tell_their_health(self):
        for stage in ("cpu-runtime", "gpu-runtime"):
            part = self.TEXT.split(f" AS {stage}\n")[1].split("\nFROM ")[0]
            self.assertIn("\nUSER 65532:65532\n", part)
            self.assertRegex(part, r'HEALTHCHECK .*\\\n  CMD \["/usr/bin/gridclock", ')
            self.assertIn('\nENTRYPOINT ["/usr/bin/gridclock-server"]\n', part)

    def test_base_images_are_arguments(self):
        bases = set(re.findall(r"^FROM (\S+)", self.TEXT, re.M)) - set(re.findall(r" AS (\S+)$", self.TEXT, re.M))
        self.assertEqual(bases, {"scratch", "${BUILD_IMAGE}", "${CUDA_IMAGE}", "${RUNTIME_IMAGE}"})

    def test_scripts_that_it_runs_are_there(self):
        for path in set(re.findall(r"deploy/docker/\w+\.sh", self.TEXT)):
            self.assertTrue(pathlib.Path(REPO / path).stat().st_mode & 0o111, path)


if __name__ == "__main__":
    unittest.main()
