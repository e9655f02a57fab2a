#!/usr/bin/env python3
"""Runs every query of the dashboards against a real Prometheus that scrapes a real server under load. Each
must return data, with the labels that its legend names, and data that changes when the load stops: a rate falls, a
quantile has nothing to tell any more, any other value leaves what it was under load for what it was before.

usage: dashboards_live.py --bin FOLDER [--seconds S] [--keep FILE] [DASHBOARD.json...]

--keep writes what the queries returned, for pictures.py.
"""
import argparse
import json
import math
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import dashboards  # noqa: E402
from gpu_node import GpuNode  # noqa: E402
from load import Load  # noqa: E402
from prometheus import Prometheus, wait_until  # noqa: E402
from server import Server  # noqa: E402

# What is there is not what happens: these queries may answer the same under load and without.
STEADY = {
    ("fleet", "Servers"): "how many servers there are",
    ("fleet", "Down"): "how many of them cannot be scraped; none is stopped here",
    ("fleet", "Devices in all"): "how many devices there are",
    ("fleet", "Devices"): "what the devices are",
    ("fleet", "Versions"): "what the servers are",
    ("overview", "Servers up"): "what part of the servers answers",
    ("kernel", "What timing itself costs"): "measured whenever a worker starts",
}
# What grows under load and is kept.
KEPT = {("overview", "Memory"): "pages that were touched once"}
# What is chosen where a dashboard is not looked at as a whole: the node with the GPU repeats the other's
# figures, which only the Fleet is for.
CHOSEN = {"overview": {"job": "gridclock"}, "kernel": {"job": "gridclock"}}
# Without NVRTC on this machine nothing can be compiled.
NEEDS_NVRTC = {("overview", "Compiles of submitted code")}

# Panels that are wrong on purpose, and what must be said of each: the check is checked with the dashboards.
CALLS = "sum by (method) (rate(gridclock_rpc_requests_total[10s]))"
UNMOVED = "does not change with the end of the load"
PLANTED = {
    "no such series": ({"expr": 'sum(rate(gridclock_rpc_requests_total{code="NONE"}[10s]))'}, "no finite value under load"),
    "no PromQL": ({"expr": "sum(rate(gridclock_rpc_requests_total))"}, "parse error"),
    "made up": ({"expr": "sum(up) * 0 + 1"}, UNMOVED),
    "a ramp": ({"expr": "time()"}, UNMOVED),
    "a walk": ({"expr": "sum(up) * (time() % 7)"}, UNMOVED),
    "a rate that stays": ({"expr": "sum(rate(gridclock_rpc_requests_total[10s])) * 0 + 2"}, UNMOVED),
    "a count that stays": ({"expr": "sum(gridclock_rpc_requests_total)"}, UNMOVED),
    "vanishes": ({"expr": "sum(up) and on () sum(rate(gridclock_rpc_requests_total[10s])) > 5"}, UNMOVED),
    "no such label": ({"expr": CALLS, "legendFormat": "{{kernel}}"}, "the legend names"),
    "no exemplar": ({"expr": CALLS, "exemplar": True}, "no exemplar names a run"),
}
RATE = re.compile(r"\b(rate|increase)\(")
# Queries that mean to answer nothing once nothing happens: quantiles and parts of rates, and what is above 0.
VANISHES = re.compile(r"histogram_quantile\(|\brate\(.*\) / .*\brate\(|> 0$")
SETTLED = 10  # Seconds before the load and after it that are compared with it.

CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 900ms}}
scrape_configs:
  - {{job_name: gridclock, static_configs: [{{targets: ["{real}"]}}]}}
  - {{job_name: gpu, metrics_path: /gridclock, static_configs: [{{targets: ["{node}"]}}]}}
  - {{job_name: dcgm, metrics_path: /dcgm, static_configs: [{{targets: ["{node}"]}}]}}
"""


def values_of(variable, prometheus, values):
    """What a dashboard's variable can be, once those before it are `values`."""
    text = substitute(variable["query"]["query"], values)
    metric, label = dashboards.label_values(text)
    found = prometheus.get(f"label/{label}/values", **{"match[]": metric})
    if not found:
        raise ValueError(f"the variable '{variable['name']}' has no values: {text}")
    return found


def queried(dashboard):
    return [variable for variable in dashboard["templating"]["list"] if variable["type"] == "query"]


def resolve(dashboard, prometheus, chosen):
    """name -> what a dashboard's variable stands for when all that can be chosen is, as Grafana puts it into a query."""
    values = {**dashboards.BUILT_IN, **chosen}
    for variable in queried(dashboard):
        found = values_of(variable, prometheus, values)
        several = variable.get("allValue", "(" + "|".join(map(re.escape, found)) + ")")
        values.setdefault(variable["name"], several if variable.get("multi") else found[0])
    # In a string of PromQL a backslash is written twice.
    return {name: value.replace("\\", "\\\\") for name, value in values.items()}


def substitute(text, values):
    return re.sub(r"\$\{?([A-Za-z_]\w*)\}?", lambda m: values[m[1]], text)


def points_of(result):
    """labels -> [(time, value)] of the finite values of a range."""
    series = {}
    for one in result:
        points = [(t, float(v)) for t, v in one["values"] if math.isfinite(float(v))]
        if points:
            series[json.dumps(one["metric"], sort_keys=True)] = points
    return series


def mean(points):
    return sum(value for _, value in points) / len(points)


def latter_half(points):
    middle = (points[0][0] + points[-1][0]) / 2
    return [(t, v) for t, v in points if t >= middle]


def rate_stops(text, loaded, quiet):
    """Each series that is not 0 is halved at least, or vanishes where that is what the query means."""
    late = {labels: mean(latter_half(points)) for labels, points in loaded.items()}
    gone = {labels for labels in late if labels not in quiet and VANISHES.search(text)}
    fallen = {labels for labels in late if labels in quiet and 0 <= mean(quiet[labels]) < late[labels] / 2}
    busy = {labels for labels, value in late.items() if value != 0}
    return bool(gone | fallen) and busy <= gone | fallen


def value_leaves(text, before, loaded, quiet):
    """A series is elsewhere under load than before and after it, by more than these differ and it then moves."""
    for labels, points in loaded.items():
        if labels not in quiet:
            if VANISHES.search(text) and labels not in before:
                return True
            continue
        rest = [value for _, value in quiet[labels]]
        noise = max(max(rest) - min(rest), 2 * abs(mean(before.get(labels, quiet[labels])) - mean(quiet[labels])))
        if abs(mean(latter_half(points)) - mean(quiet[labels])) > noise:
            return True
    return False


def grows(before, loaded):
    return any(min(v for _, v in latter_half(points)) > max(v for _, v in before[labels])
               for labels, points in loaded.items() if labels in before)


def problem_with(target, place, before, loaded, quiet):
    if not loaded:
        return "no finite value under load"
    legend = re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", ""))
    for labels in map(json.loads, loaded):
        if missing := [name for name in legend if name not in labels]:
            return f"the legend names {missing}, which {labels} has not got"
    if place in STEADY:
        return None
    if place in KEPT:
        return None if grows(before, loaded) else "does not grow under load"
    text = target["expr"]
    moved = rate_stops(text, loaded, quiet) if RATE.search(text) else value_leaves(text, before, loaded, quiet)
    return None if moved else UNMOVED


def planted():
    panels = [{"title": title, "targets": [{"refId": "A", **target}]} for title, (target, _) in PLANTED.items()]
    return {"templating": {"list": []}, "panels": panels}


def repeated_by_all():
    """The Kernel dashboard with heatmaps of one node that repeat by the devices of all."""
    dashboard = dashboards.load(dashboards.FOLDER / "kernel.json")
    for panel in dashboards.panels(dashboard):
        if panel.get("repeat"):
            panel["repeat"] = "device"
            for target in panel["targets"]:
                target["expr"] = target["expr"].replace("$heatmap_device", "$device")
    return dashboard


def split_planted(problems):
    """The problems that are real: those of planted panels are taken out, and those that were not found put in."""
    real = [text for text in problems if not text.startswith("planted: ")]
    for title, (_, said) in PLANTED.items():
        if not any(text.startswith(f"planted: '{title}'") and said in text for text in problems):
            real.append(f"the planted panel '{title}' was not found wrong: want '{said}'")
    return real


class Check:
    """Asks all queries of the time before the load, under it, and once it has stopped."""

    def __init__(self, prometheus, files):
        self.prometheus = prometheus
        self.dashboards = {pathlib.Path(path).stem: dashboards.load(path) for path in files}
        self.dashboards["planted"] = planted()

    def ask(self, end, seconds):
        """(dashboard, panel, refId) -> points, or ValueError's words."""
        found = {}
        for name, dashboard in self.dashboards.items():
            values = resolve(dashboard, self.prometheus, CHOSEN.get(name, {}))
            for panel, target in dashboards.targets(dashboard):
                query = substitute(target["expr"], values)
                try:
                    result = self.prometheus.get("query_range", query=query, start=end - seconds, end=end, step=1)
                    found[name, panel["title"], target["refId"]] = points_of(result["result"])
                except ValueError as error:
                    found[name, panel["title"], target["refId"]] = str(error)
        return found

    def exemplars(self, end, seconds):
        """(dashboard, panel, refId) -> [(time, value)], of queries whose exemplars Grafana shows: those that lead to a run."""
        shown = {}
        for name, dashboard in self.dashboards.items():
            values = resolve(dashboard, self.prometheus, CHOSEN.get(name, {}))
            for panel, target in dashboards.targets(dashboard):
                if not target.get("exemplar"):
                    continue
                found = self.prometheus.get("query_exemplars", query=substitute(target["expr"], values),
                                            start=end - seconds, end=end)
                shown[name, panel["title"], target["refId"]] = [
                    (exemplar["timestamp"], float(exemplar["value"])) for one in found for exemplar in one["exemplars"]
                    if "run_id" in exemplar["labels"]]
        return shown

    def blank_repeats(self, name, dashboard, end, seconds):
        """Panels that are there for each value of a variable and have no data for one, whichever node is chosen."""
        for panel, target in dashboards.targets(dashboard):
            if "repeat" not in panel:
                continue
            [repeat] = [one for one in queried(dashboard) if one["name"] == panel["repeat"]]
            [single] = [one for one in queried(dashboard) if not one.get("multi")]
            for choice in values_of(single, self.prometheus, resolve(dashboard, self.prometheus, {})):
                values = resolve(dashboard, self.prometheus, {single["name"]: choice})
                for value in values_of(repeat, self.prometheus, values):
                    query = substitute(target["expr"], {**values, repeat["name"]: value})
                    found = self.prometheus.get("query_range", query=query, start=end - seconds, end=end, step=1)
                    if not any(v > 0 for points in points_of(found["result"]).values() for _, v in points):
                        yield f"{name}: '{panel['title']}' is blank for {value} of {choice}"

    def problems(self, before, loaded, quiet, skipped):
        for name, dashboard in self.dashboards.items():
            for panel, target in dashboards.targets(dashboard):
                place = (name, panel["title"])
                if place in skipped:
                    continue
                key = (*place, target["refId"])
                if isinstance(loaded[key], str):
                    yield f"{name}: '{panel['title']}' {target['refId']}: {loaded[key]}"
                elif said := problem_with(target, place, before[key], loaded[key], quiet[key]):
                    yield f"{name}: '{panel['title']}' {target['refId']}: {said}"


def compiles_here(prometheus):
    """Whether a source was compiled: without a toolchain none is."""
    return prometheus.query('sum(gridclock_compiles_total{outcome="ok"})') not in (None, 0)


def run(binaries, seconds, files):
    """Problems, what the queries returned, their exemplars, and the panels left out."""
    with Server(binaries, "--allow-submit") as server, GpuNode(server.metrics) as node:
        with Prometheus(CONFIG.format(real=server.metrics, node=node.address),
                        "--enable-feature=exemplar-storage") as prometheus:
            wait_until(lambda: prometheus.query("sum(up)") == 3, 30, "all targets are scraped")
            check = Check(prometheus, files)
            time.sleep(SETTLED)
            start = time.time()
            with Load(binaries, server):
                time.sleep(seconds)
                # A worker is back within a tenth of a second: most scrapes see none that is gone.
                wait_until(lambda: prometheus.query(f'min_over_time(gridclock_worker_up{{job="gridclock"}}[{seconds // 2}s])') == 0,
                           300, "a scrape sees a device without a worker")
                time.sleep(3)  # Until it is back: pictures show what is last.
                end = time.time()
                skipped = set() if compiles_here(prometheus) else NEEDS_NVRTC
                loaded = check.ask(end, seconds)
                exemplars = check.exemplars(end, seconds)
                wrong = [f"{name}: '{title}' {query}: no exemplar names a run"
                         for (name, title, query), points in exemplars.items() if not points]
            # Longer than the range of a rate: what is left of the load is then out of sight.
            time.sleep(int(dashboards.BUILT_IN["__rate_interval"][:-1]) + 5 + SETTLED)
            before, quiet = check.ask(start, SETTLED), check.ask(time.time(), SETTLED)
            for name, dashboard in check.dashboards.items():
                wrong += check.blank_repeats(name, dashboard, end, seconds)
            problems = split_planted([*check.problems(before, loaded, quiet, skipped), *wrong])
            if not any(check.blank_repeats("planted", repeated_by_all(), end, seconds)):
                problems.append("planted heatmaps of devices that a node has not got were not found")
            return problems, {key: found for key, found in loaded.items() if key[0] != "planted"}, exemplars, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--keep", metavar="FILE")
    parser.add_argument("files", nargs="*", metavar="DASHBOARD.json")
    options = parser.parse_args()
    problems, loaded, exemplars, skipped = run(options.bin, options.seconds, options.files or dashboards.files())
    if options.keep:
        kept = [{"place": key, "series": series, "exemplars": exemplars.get(key, []), "left_out": key[:2] in skipped}
                for key, series in loaded.items()]
        pathlib.Path(options.keep).write_text(json.dumps(kept))
    for place in sorted(skipped):
        print(f"left out, no NVRTC here: {place}")
    print("\n".join(problems))
    left_out = f", {len(skipped)} panels left out for want of NVRTC" if skipped else ""
    print(f"dashboards: {len(loaded)} queries, {len(problems)} problems, {len(PLANTED)} planted ones looked for{left_out}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
