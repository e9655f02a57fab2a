"""Grafana dashboards as files: what can be wrong with one, without Grafana and without data."""
import json
import pathlib
import re

REPO = pathlib.Path(__file__).resolve().parents[2]
FOLDER = REPO / "deploy/grafana/dashboards"
# Grafana's own variables, as they are for a dashboard that shows a minute of one-second scrapes.
BUILT_IN = {"__rate_interval": "10s", "__interval": "1s", "__range": "60s"}

# The part of Grafana's format that these dashboards use: key -> type, list of a shape, or shape. A key
# that is not here is refused, so that a misspelt one is seen: Grafana itself ignores it without a word.
NUMBER = (int, float)
SOURCE = {"type": str, "uid": str}
TARGET = {"refId": str, "expr": str, "datasource": SOURCE, "legendFormat": str, "instant": bool, "format": str,
          "exemplar": bool}
GRID = {"x": int, "y": int, "w": int, "h": int}
THRESHOLDS = {"mode": str, "steps": [{"color": str, "value": (int, float, type(None))}]}
CUSTOM = {"lineWidth": int, "fillOpacity": int, "showPoints": str, "stacking": {"mode": str, "group": str},
          "scaleDistribution": {"type": str, "log": int}}
DEFAULTS = {"unit": str, "min": NUMBER, "max": NUMBER, "decimals": int, "custom": CUSTOM, "thresholds": THRESHOLDS,
            "mappings": [{"type": str, "options": dict}]}
OVERRIDE = {"matcher": {"id": str, "options": str}, "properties": [{"id": str, "value": dict}]}
LEGEND = {"displayMode": str, "placement": str, "showLegend": bool}
REDUCE = {"reduceOptions": {"calcs": [str], "fields": str, "values": bool}}
OPTIONS = {
    "timeseries": {"legend": LEGEND, "tooltip": {"mode": str, "sort": str}},
    "stat": {**REDUCE, "colorMode": str, "graphMode": str, "textMode": str},
    "bargauge": {**REDUCE, "orientation": str, "displayMode": str},
    "table": {"showHeader": bool, "cellHeight": str},
    "state-timeline": {"mergeValues": bool, "showValue": str, "rowHeight": NUMBER, "legend": LEGEND},
    "heatmap": {"calculate": bool, "yAxis": {"unit": str}, "cellGap": int, "legend": {"show": bool},
                "color": {"mode": str, "scheme": str, "steps": int, "reverse": bool},
                "tooltip": {"mode": str, "yHistogram": bool}},
}
TRANSFORMATION = {"id": str, "options": dict}
PANEL = {"id": int, "type": str, "title": str, "description": str, "datasource": SOURCE, "gridPos": GRID,
         "fieldConfig": {"defaults": DEFAULTS, "overrides": [OVERRIDE]}, "options": dict, "targets": [TARGET],
         "transformations": [TRANSFORMATION], "repeat": str, "repeatDirection": str, "maxPerRow": int}
ROW = {"id": int, "type": str, "title": str, "collapsed": bool, "gridPos": GRID, "panels": list}
VARIABLE = {"name": str, "label": str, "type": str, "datasource": SOURCE, "refresh": int, "sort": int, "multi": bool,
            "includeAll": bool, "allValue": str, "current": dict, "hide": int, "query": (str, dict)}
LINK = {"type": str, "title": str, "tags": [str], "asDropdown": bool, "includeVars": bool, "keepTime": bool}
DASHBOARD = {"uid": str, "title": str, "description": str, "tags": [str], "schemaVersion": int, "version": int,
             "editable": bool, "graphTooltip": int, "refresh": str, "time": {"from": str, "to": str}, "timezone": str,
             "links": [LINK], "templating": {"list": [VARIABLE]}, "panels": list}
OPTIONAL = {"legendFormat", "instant", "format", "exemplar", "mappings", "min", "max", "decimals", "custom", "thresholds", "transformations",
            "lineWidth", "fillOpacity", "showPoints", "stacking", "scaleDistribution", "datasource", "refresh", "sort",
            "multi", "includeAll", "allValue", "repeat", "repeatDirection", "maxPerRow"}


def files():
    return sorted(FOLDER.glob("*.json"))


def load(path):
    return json.loads(pathlib.Path(path).read_text())


def panels(dashboard):
    return [panel for panel in dashboard["panels"] if panel.get("type") != "row"]


def targets(dashboard):
    return [(panel, target) for panel in panels(dashboard) for target in panel["targets"]]


def label_values(query):
    """Series and label whose values a variable has."""
    return re.fullmatch(r"label_values\((.*), (\w+)\)", query).groups()


def variables_in(text):
    return set(re.findall(r"\$\{?([A-Za-z_]\w*)", text))


def misshapen(value, shape, where):
    """Types that are wrong, keys that are unknown or missing."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [f"{where} is {value!r}, want an object"]
        found = [f"{where}.{key} is no key of Grafana's that is used here" for key in value if key not in shape]
        found += [f"{where}.{key} is missing" for key in shape if key not in value and key not in OPTIONAL]
        return found + [p for key in value if key in shape for p in misshapen(value[key], shape[key], f"{where}.{key}")]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{where} is {value!r}, want a list"]
        return [p for i, item in enumerate(value) for p in misshapen(item, shape[0], f"{where}[{i}]")]
    wrong = not isinstance(value, shape) or (isinstance(value, bool) and shape is not bool)
    return [f"{where} is {value!r}, want {shape}"] if wrong else []


def shape_problems(dashboard):
    found = misshapen(dashboard, DASHBOARD, "dashboard")
    for i, panel in enumerate(dashboard.get("panels", [])):
        where, kind = f"panels[{i}]", panel.get("type")
        if kind != "row" and kind not in OPTIONS:
            found.append(f"{where}.type is {kind!r}, want one of {sorted(OPTIONS)}")
            continue
        found += misshapen(panel, ROW if kind == "row" else PANEL, where)
        if kind != "row":
            found += misshapen(panel.get("options"), OPTIONS[kind], f"{where}.options")
    return found


def grid_problems(dashboard):
    taken = {}
    for panel in dashboard["panels"]:
        grid = panel["gridPos"]
        if grid["x"] < 0 or grid["w"] < 1 or grid["h"] < 1 or grid["x"] + grid["w"] > 24:
            yield f"'{panel['title']}' leaves the 24 columns"
        for x in range(grid["x"], grid["x"] + grid["w"]):
            for y in range(grid["y"], grid["y"] + grid["h"]):
                other = taken.setdefault((x, y), panel["title"])
                if other != panel["title"]:
                    yield f"'{panel['title']}' lies on '{other}'"
                    return
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(set(ids)) != len(ids):
        yield "two panels have one id"


def source_problems(dashboard):
    """One data source, the variable's; a fixed one is not there in another Grafana."""
    variables = dashboard["templating"]["list"]
    if [v["name"] for v in variables if v["type"] == "datasource"] != ["datasource"]:
        yield "want one variable of the type datasource, named datasource"
    used = [(panel["title"], panel["datasource"]) for panel in panels(dashboard)]
    used += [(panel["title"], target["datasource"]) for panel, target in targets(dashboard)]
    used += [(v["name"], v.get("datasource")) for v in variables if v["type"] == "query"]
    for title, source in used:
        if source != {"type": "prometheus", "uid": "${datasource}"}:
            yield f"'{title}' has the data source {source}, not the variable"


def text_problems(dashboard):
    titles = [panel["title"] for panel in dashboard["panels"]]
    for title in {title for title in titles if titles.count(title) > 1}:
        yield f"two panels are called '{title}'"
    for panel in panels(dashboard):
        if len(panel["description"]) < 12:
            yield f"'{panel['title']}' has no description that says something"
        refs = [target["refId"] for target in panel["targets"]]
        if not refs or len(set(refs)) != len(refs):
            yield f"'{panel['title']}' has no query, or two of one refId"


def repeat_problems(dashboard):
    """A panel that is there once for each value of a variable says in its title for which, and has data for each: if
    its queries are of one node, the values are those of that node."""
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"] if variable["type"] == "query"}
    for panel in panels(dashboard):
        name = panel.get("repeat")
        if not name:
            continue
        if not variables.get(name, {}).get("multi"):
            yield f"'{panel['title']}' is repeated by {name}, which is no variable of several values"
            continue
        if f"${name}" not in panel["title"]:
            yield f"'{panel['title']}' is repeated by {name} and does not say so"
        used = variables_in(" ".join(target["expr"] for target in panel["targets"]))
        for one in used - variables_in(variables[name]["query"]["query"]):
            if one in variables and not variables[one].get("multi"):
                yield f"'{panel['title']}' is of one {one} and repeated by the values of all"


def heatmap_problems(dashboard):
    """Buckets that are sums over nodes show none of them: cuda:0 of one is another GPU than that of the next."""
    for panel, target in targets(dashboard):
        apart = re.search(r"\bby \(([^)]*)\)", target["expr"])
        if panel["type"] == "heatmap" and (not apart or "instance" not in apart[1].split(", ")):
            yield f"'{panel['title']}' puts nodes together"


def query_problems(dashboard, names):
    """`names` are the metrics that there are."""
    known = {variable["name"] for variable in dashboard["templating"]["list"]} | set(BUILT_IN)
    queries = [(panel["title"], target["expr"]) for panel, target in targets(dashboard)]
    queries += [(v["name"], v["query"]["query"]) for v in dashboard["templating"]["list"] if v["type"] == "query"]
    for title, text in queries:
        if re.search(r"\bor\s+(on\s*\(.*\)\s*)?vector\b", text):
            yield f"'{title}' makes up data: {text}"
        if re.search(r"\[\d+[smhd]", text):
            yield f"'{title}' has a range of its own, want $__rate_interval: {text}"
        for name in variables_in(text) - known:
            yield f"'{title}' uses ${name}, which is no variable"
        for name in metrics_in(text) - names:
            yield f"'{title}' uses {name}, which is no metric"


def metrics_in(text):
    """Names of metrics in a query or rule, without what a histogram adds to its name."""
    found = re.findall(r"(?<![:\w])(?:gridclock|process|DCGM)_\w+", text)
    return {re.sub(r"(_duration_seconds|_wait_seconds)_(bucket|count|sum)$", r"\1", name) for name in found}


def metric_names():
    """Those of the catalogue's page, and of DCGM's exporter those that its default set has, and one that it may have."""
    page = (REPO / "docs/metrics.md").read_text()
    dcgm = {"DCGM_FI_DEV_" + name for name in
            ("GPU_TEMP", "POWER_USAGE", "SM_CLOCK", "GPU_UTIL", "FB_USED", "XID_ERRORS", "THERMAL_VIOLATION")}
    return set(re.findall(r"^\| `(\w+)` \|", page, re.M)) | dcgm


def problems(dashboard, names):
    """All that is wrong; the rest is looked at only where the shape is right."""
    found = shape_problems(dashboard)
    if found:
        return found
    return [*grid_problems(dashboard), *source_problems(dashboard), *text_problems(dashboard),
            *repeat_problems(dashboard), *heatmap_problems(dashboard), *query_problems(dashboard, names)]
