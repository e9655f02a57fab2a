#!/usr/bin/env python3
"""Draws previews of the dashboards from what their queries returned. They are no screenshots of Grafana: they
have its grid, titles, units and legends, and the data of a live check.

usage: pictures.py KEPT.json FOLDER     KEPT.json: what dashboards_live.py --keep wrote
"""
import itertools
import json
import math
import pathlib
import re
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy  # noqa: E402
from matplotlib.ticker import FuncFormatter, MaxNLocator  # noqa: E402
from PIL import Image, ImageColor  # noqa: E402

import dashboards  # noqa: E402

PAGE, CARD, EDGE, TEXT, FAINT = "#111217", "#181b1f", "#2c3235", "#d8d9da", "#8e8e8e"
COLOURS = ["#73bf69", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#fade2a", "#8ab8ff", "#ffa6b0", "#96d98d", "#ffcb7d"]
NAMED = {"green": "#73bf69", "orange": "#ff9830", "red": "#f2495c", "blue": "#5794f2", "yellow": "#fade2a", "purple": "#b877d9"}
COLUMN, ROW, TOP = 68, 38, 56  # Pixels of a column and a row of Grafana's grid, and of the title.
SECONDS = [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
THOUSANDS = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, "")]
UNITS = {"reqps": " req/s", "ops": "/s", "Bps": "B/s", "bytes": "B", "celsius": " °C", "watt": " W", "hertz": "Hz"}


def digits(value, places):
    return f"{value:.{places}g}" if abs(value) < 1000 else f"{value:.0f}"


def text_of(value, unit, places=3):
    """1.23e-05, "s" -> "12.3 µs"."""
    if value == 0 or not math.isfinite(value):
        return "0" if unit in ("s", "short") else "0 " + {"percentunit": "%"}.get(unit, UNITS.get(unit, "").strip())
    if unit == "percentunit":
        return f"{digits(100 * value, places)} %"
    scale, letter = next(((s, n) for s, n in (SECONDS if unit == "s" else THOUSANDS) if abs(value) >= 0.9995 * s),
                         SECONDS[-1] if unit == "s" else THOUSANDS[-1])
    separate = " " if letter and unit in ("s", "Bps", "bytes", "hertz") else ""
    return f"{digits(value / scale, places)}{separate}{letter}{UNITS.get(unit, '')}"


def with_nodes(kept):
    """The same with nodes by number in place of their addresses: the real one is the first."""
    addresses = {(labels["job"], labels["instance"]) for series in kept.values() for labels in map(json.loads, series)
                 if {"job", "instance"} <= set(labels)}
    names = {}
    for _, address in sorted(addresses, key=lambda one: one[0] != "gridclock"):
        names.setdefault(address, f"node{len(names) + 1}")

    def renamed(text):
        labels = json.loads(text)
        if "instance" in labels:
            labels["instance"] = names.get(labels["instance"], labels["instance"])
        return json.dumps(labels, sort_keys=True)
    return {place: {renamed(labels): points for labels, points in series.items()} for place, series in kept.items()}


def label_of(target, labels):
    """A name that is shorter in a picture: methods without their package."""
    legend = target.get("legendFormat") or target["refId"]
    text = re.sub(r"\{\{(\w+)\}\}", lambda m: labels.get(m[1], ""), legend)
    return re.sub(r"gridclock\.v1\.|grpc\.health\.v1\.", "", text)


def series_of(panel, kept, dashboard):
    """[(label, labels, points)] of all queries of a panel."""
    found = []
    for target in panel["targets"]:
        for labels, points in kept.get((dashboard, panel["title"], target["refId"]), {}).items():
            labels = json.loads(labels)
            found.append((label_of(target, labels), labels, points))
    return sorted(found, key=lambda one: one[0])


def title_of(panel, series, dashboard):
    """Variables in it are written out: with the values that the panel's series have."""
    title = panel["title"]
    for variable in dashboard["templating"]["list"]:
        if f"${variable['name']}" in title:
            _, label = dashboards.label_values(variable["query"]["query"])
            title = title.replace(f"${variable['name']}", ", ".join(sorted({labels[label] for _, labels, _ in series})))
    return title


def bare(axes):
    axes.set_facecolor(CARD)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(colors=FAINT, labelsize=8, length=0)


def time_axis(axes, span):
    axes.set_xlim(-span, 0)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: "now" if x == 0 else f"{x:.0f} s".replace("-", "−")))


def colours_of(panel, series):
    """Those that overrides fix; to the others the palette's, in its order."""
    fixed = {one["matcher"]["options"]: NAMED[prop["value"]["fixedColor"]]
             for one in panel["fieldConfig"]["overrides"] for prop in one["properties"] if prop["id"] == "color"}
    free = itertools.cycle(colour for colour in COLOURS if colour not in fixed.values())
    return [fixed.get(label) or next(free) for label, _, _ in series]


def draw_lines(axes, panel, series, end, span):
    defaults = panel["fieldConfig"]["defaults"]
    custom = defaults.get("custom", {})
    bare(axes)
    axes.grid(True, color=EDGE, linewidth=0.7)
    axes.set_axisbelow(True)
    if "stacking" in custom:
        draw_stack(axes, series, end, colours_of(panel, series))
    else:
        for colour, (label, _, points) in zip(colours_of(panel, series), series):
            xs, ys = [t - end for t, _ in points], [v for _, v in points]
            marker = "o" if len(xs) < 3 else None
            axes.plot(xs, ys, color=colour, linewidth=1.3, label=label, marker=marker, markersize=3)
    if "scaleDistribution" in custom and any(v > 0 for _, _, points in series for _, v in points):
        axes.set_yscale("log")
        axes.minorticks_off()
        axes.yaxis.set_major_locator(matplotlib.ticker.LogLocator(numticks=6))
    elif "min" in defaults:
        top = axes.get_ylim()[1]
        axes.set_ylim(defaults["min"], top + 0.04 * abs(top - defaults["min"]))  # No line lies on the edge.
        axes.yaxis.set_major_locator(MaxNLocator(5))
    places = places_for(axes.get_yticks(), defaults["unit"])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: text_of(y, defaults["unit"], places)))
    time_axis(axes, span)


def places_for(ticks, unit):
    """As many digits as tell them apart."""
    return next((n for n in range(3, 9) if len({text_of(t, unit, n) for t in ticks}) == len(ticks)), 3)


def draw_stack(axes, series, end, colours):
    times = sorted({t for _, _, points in series for t, _ in points})
    rows = [[dict(map(tuple, points)).get(t, 0) for t in times] for _, _, points in series]
    axes.stackplot([t - end for t in times], rows, labels=[label for label, _, _ in series], alpha=0.65, colors=colours)


def draw_stat(axes, panel, series, _end, _span):
    bare(axes)
    axes.set_xticks([])
    axes.set_yticks([])
    value = series[0][2][-1][1]
    defaults = panel["fieldConfig"]["defaults"]
    steps = defaults.get("thresholds", {}).get("steps", [{"color": "green", "value": None}])
    colour = [step["color"] for step in steps if step["value"] is None or value >= step["value"]][-1]
    axes.text(0.5, 0.5, text_of(value, defaults["unit"]), color=NAMED[colour], fontsize=25, ha="center", va="center",
              transform=axes.transAxes, fontweight="bold")


def draw_heatmap(axes, panel, series, end, span):
    bare(axes)
    bounds = sorted((float(labels["le"]), points) for _, labels, points in series)
    times = sorted({t for _, points in bounds for t, _ in points})
    below, rows = [0.0] * len(times), []
    for _, points in bounds:
        at = dict(map(tuple, points))
        rows.append([max(0.0, at.get(t, 0) - b) for t, b in zip(times, below)])
        below = [at.get(t, b) for t, b in zip(times, below)]
    used = [i for i, row in enumerate(rows) if any(row)]
    first, last = max(0, used[0] - 1), min(len(rows) - 1, used[-1] + 1)
    shown = [[v if v > 0 else math.nan for v in row] for row in rows[first:last + 1]]
    axes.imshow(shown, aspect="auto", origin="lower", cmap="viridis", interpolation="nearest",
                extent=(times[0] - end, times[-1] - end, -0.5, len(shown) - 0.5))
    axes.set_yticks(range(len(shown)))
    axes.set_yticklabels(["+Inf" if math.isinf(bounds[i][0]) else text_of(bounds[i][0], "s")
                          for i in range(first, last + 1)])
    time_axis(axes, span)


def draw_states(axes, panel, series, end, span):
    """A row for each series, in the words and colours that its values are mapped to."""
    bare(axes)
    words = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
    for value, word in words.items():
        label = word["text"]
        for y, (_, _, points) in enumerate(series):
            bars = [(t - end, 1) for t, v in points if v == float(value)]
            if bars:
                axes.broken_barh(bars, (y - 0.38, 0.76), color=NAMED[word["color"]], label=label)
                label = None
    axes.set_yticks(range(len(series)))
    axes.set_yticklabels([label for label, _, _ in series])
    axes.set_ylim(-0.6, len(series) - 0.4)
    time_axis(axes, span)


def draw_table(axes, panel, series, _end, _span):
    bare(axes)
    axes.set_axis_off()
    rules = panel.get("transformations", [{"options": {}}])[0]["options"]
    hidden, renamed = rules.get("excludeByName", {}), rules.get("renameByName", {})
    unit = panel["fieldConfig"]["defaults"]["unit"]
    rows = [{**labels, "Value": text_of(points[-1][1], unit)} for _, labels, points in series]
    columns = [name for name in sorted({name for row in rows for name in row}, key=COLUMNS.index) if not hidden.get(name)]
    cells = [[row.get(name, "") for name in columns] for row in rows]
    widths = [max(len(str(c)) for c in (renamed.get(n, n), *(row[i] for row in cells))) + 3 for i, n in enumerate(columns)]
    height = 1 / (len(rows) + 1.5)
    for y, (row, colour) in enumerate([([renamed.get(n, n) for n in columns], "#6ea7ff"), *((r, TEXT) for r in cells)]):
        for i, cell in enumerate(row):
            axes.text(sum(widths[:i]) / sum(widths), 1 - min(height, 0.14) * (y + 0.6), cell, color=colour, fontsize=8.5,
                      va="center", transform=axes.transAxes)


def draw_bars(axes, panel, series, _end, _span):
    bare(axes)
    values = [points[-1][1] for _, _, points in series]
    axes.barh(range(len(series)), values, color=COLOURS[0], height=min(0.5, 0.12 * len(series) + 0.1))
    axes.set_yticks([])
    axes.set_xticks([])
    axes.set_ylim(-0.8, len(series) - 0.2)
    axes.set_xlim(0, max(values) * 1.15)
    for i, (label, _, _) in enumerate(series):
        axes.text(0.01 * max(values), i + 0.32, label, color=TEXT, fontsize=9, va="bottom")
        axes.text(values[i] * 1.02, i, text_of(values[i], "short"), color=TEXT, fontsize=11, va="center")


DRAW = {"timeseries": draw_lines, "stat": draw_stat, "heatmap": draw_heatmap, "table": draw_table,
        "state-timeline": draw_states, "bargauge": draw_bars}
COLUMNS = ["__name__", "job", "instance", "device", "timing", "model", "arch", "driver", "partition", "uuid", "Value"]
LEGENDS = ("timeseries", "state-timeline")


def weight(points):
    """How much of a panel a series takes."""
    return sum(value for _, value in points)


def legend_under(axes, width, series):
    """As many entries as three rows hold, of those that lie highest or take most."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    weights = dict(zip((label for label, _, _ in series), map(weight, (points for _, _, points in series))))
    order = sorted(range(len(handles)), key=lambda i: -weights.get(labels[i], 0))
    handles, labels = [handles[i] for i in order], [labels[i] for i in order]
    labels = [label if len(label) <= 44 else label[:43] + "…" for label in labels]
    columns = max(1, min(len(labels), int(width / (40 + 6.2 * max(map(len, labels))))))
    axes.legend(handles[:columns * 3], labels[:columns * 3], loc="upper left", bbox_to_anchor=(-0.02, -0.1),
                ncols=columns, fontsize=7.5, frameon=False, labelcolor=TEXT, handlelength=1.1, borderaxespad=0.2,
                columnspacing=1.2, handletextpad=0.5)


MOST_EXEMPLARS = 80


def draw_exemplars(axes, points, end):
    """In the range that the lines take, and so many that the lines are seen: Grafana thins them out too."""
    low, high = axes.get_ylim()
    shown = sorted((t - end, v) for t, v in points if low <= v <= high)
    shown = shown[::1 + len(shown) // MOST_EXEMPLARS]
    axes.scatter([t for t, _ in shown], [v for _, v in shown], marker="D", s=9, color=NAMED["blue"], edgecolors=CARD, linewidths=0.4, zorder=3)


def draw(dashboard, name, kept, exemplars, path):
    """Titles of panels that show nothing, and colours that were lost."""
    height = TOP + ROW * max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in dashboard["panels"]) + 8
    width = 24 * COLUMN + 16
    figure = plt.figure(figsize=(width / 100, height / 100), dpi=100, facecolor=PAGE)
    figure.text(16 / width, 1 - 32 / height, dashboard["title"], color=TEXT, fontsize=15, fontweight="bold", va="center")
    times = [t for (which, _, _), found in kept.items() if which == name for points in found.values() for t, _ in points]
    end, span = max(times), max(times) - min(times)
    drawn = []
    for panel in dashboard["panels"]:
        box = box_of(panel)
        if panel["type"] == "row":
            figure.text(box[0] / width, 1 - (box[1] - 4 + ROW / 2) / height, panel["title"], color=TEXT, fontsize=11, va="center")
            continue
        figure.patches.append(plt.Rectangle((box[0] / width, 1 - (box[1] + box[3]) / height), box[2] / width,
                                            box[3] / height, transform=figure.transFigure, facecolor=CARD,
                                            edgecolor=EDGE, linewidth=1, zorder=-1))
        series = series_of(panel, kept, name)
        figure.text((box[0] + 10) / width, 1 - (box[1] + 16) / height, title_of(panel, series, dashboard), color=TEXT, fontsize=9.5,
                    va="center", fontweight="bold")
        if not series:
            figure.text((box[0] + box[2] / 2) / width, 1 - (box[1] + box[3] / 2) / height, "No data", color=FAINT,
                        fontsize=11, ha="center", va="center")
            continue
        inner = inside(panel["type"], box)
        axes = figure.add_axes((inner[0] / width, 1 - (inner[1] + inner[3]) / height, inner[2] / width, inner[3] / height))
        DRAW[panel["type"]](axes, panel, series, end, span)
        if panel["type"] in LEGENDS:
            legend_under(axes, inner[2], series)
        drawn.append((axes, exemplars.get((name, panel["title"]))))
    figure.savefig(path, facecolor=PAGE)
    empty = blank(path, dashboard)
    # Only now: they are no line, and would hide that there is none.
    for axes, points in drawn:
        if points:
            draw_exemplars(axes, points, end)
    figure.savefig(path, facecolor=PAGE)
    plt.close(figure)
    return empty + shrink(path)


def shrink(path):
    """A third of the bytes. Colours that say something, and that became others."""
    drawn = Image.open(path).convert("RGB")
    # A palette by frequency alone turns the red of a single number into grey: what says something is in it.
    fixed = [ImageColor.getrgb(colour) for colour in (PAGE, CARD, EDGE, TEXT, FAINT, *sorted({*COLOURS, *NAMED.values()}))]
    free = drawn.quantize(256 - len(fixed), method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    palette = numpy.array(fixed + [rgb for _, rgb in free.convert("RGB").getcolors(256)])
    # Pillow's own search for the nearest is not exact.
    colours, places = numpy.unique(numpy.asarray(drawn).reshape(-1, 3), axis=0, return_inverse=True)
    nearest = ((colours[:, None, :].astype(int) - palette[None]) ** 2).sum(axis=2).argmin(axis=1)
    small = Image.frombytes("P", drawn.size, nearest[places].astype(numpy.uint8).tobytes())
    small.putpalette(palette.astype(numpy.uint8).tobytes())
    small.save(path, optimize=True)
    return [f"the colour {colour}" for colour, near in zip(colours.tolist(), nearest)
            if tuple(colour) in fixed and palette[near].tolist() != colour]


def blank(path, dashboard):
    """Titles of panels in whose plot area no series is seen. What else is drawn there is grey, or the head of a table."""
    pixels = plt.imread(path)[:, :, :3]
    found = []
    for panel in dashboards.panels(dashboard):
        left, top, width, height = map(round, inside(panel["type"], box_of(panel)))
        area = pixels[top:top + height, left:left + width]
        if panel["type"] == "table":
            seen = area.min(axis=2) > 0.55  # Text of the colour of cells.
        else:
            seen = area.max(axis=2) - area.min(axis=2) > 0.2
        if seen.sum() < LEAST_SEEN:
            found.append(panel["title"])
    return found


LEAST_SEEN = 12  # Pixels.


def box_of(panel):
    """Left, top, width and height of its card in the picture."""
    grid = panel["gridPos"]
    return 12 + grid["x"] * COLUMN, TOP + 4 + grid["y"] * ROW, grid["w"] * COLUMN - 8, grid["h"] * ROW - 8


def inside(kind, box):
    """Where a panel's axes lie in its card: beside their labels and above their legend."""
    left, top, width, height = box
    margin = {"stat": (8, 30, 8, 8), "table": (14, 36, 14, 8), "bargauge": (14, 40, 14, 14), "heatmap": (74, 34, 14, 30),
              "state-timeline": (150, 34, 14, 56)}.get(kind, (74, 34, 14, 76))
    return left + margin[0], top + margin[1], width - margin[0] - margin[2], height - margin[1] - margin[3]


def main():
    source, folder = map(pathlib.Path, sys.argv[1:3])
    read = json.loads(source.read_text())
    left_out = {tuple(one["place"][:2]) for one in read if one["left_out"]}
    kept = with_nodes({tuple(one["place"]): one["series"] for one in read if isinstance(one["series"], dict)})
    exemplars = {tuple(one["place"][:2]): one["exemplars"] for one in read}
    bare_panels = []
    for path in dashboards.files():
        empty = draw(dashboards.load(path), path.stem, kept, exemplars, folder / f"dashboard-{path.stem}.png")
        bare_panels += [f"{path.stem}: '{title}' is blank or lost" for title in empty if (path.stem, title) not in left_out]
    print("\n".join(bare_panels) if bare_panels else "pictures: no panel is blank")
    return 1 if bare_panels else 0


if __name__ == "__main__":
    sys.exit(main())
