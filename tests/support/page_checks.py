"""The status page as a browser draws it, and what must be true of that."""

import json
import pathlib
import subprocess
import urllib.parse
import urllib.request

PHONE = 390
# Elements that reach beyond the window to the right, by tag and class.
BEYOND = """[...document.querySelectorAll("body *")]
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
  .map(e => e.tagName + "." + (e.getAttribute("class") || ""))"""
# Panels without text, or with a drawing that shows nothing. The ground that phases lie on is none.
BLANK = """[...document.querySelectorAll("[data-panel]")]
  .filter(p => p.innerText.trim().length < 10 || p.getBoundingClientRect().height < 20
            || [...p.querySelectorAll("svg.spark")].some(s => !s.querySelector("polyline"))
            || [...p.querySelectorAll("svg.bars")].some(s => !s.querySelector("rect"))
            || [...p.querySelectorAll("svg.phases, .timeline")].some(s => !s.querySelector("rect:not(.rest)"))
            || [...p.querySelectorAll(".timeline li")].some(l => !l.querySelector("rect:not(.rest)")
                                                              && l.querySelector("b").textContent !== "0")
            || [...p.querySelectorAll("svg")].some(s => s.getBoundingClientRect().height < 2))
  .map(p => p.dataset.panel)"""
# What is drawn of each kernel.
CARDS = """[...document.querySelectorAll("[data-panel=kernels] .card")].map(card => ({
  name: card.querySelector("h3").textContent + " on " + card.querySelector(".device").textContent,
  sparkline: card.querySelector(".spark polyline") !== null,
  bars: [...card.querySelectorAll(".bars rect")].some(bar => bar.getBoundingClientRect().height > 0)}))"""
MOST_CARDS = 24  # Of the page of all of the server.
PANELS = "[...document.querySelectorAll('[data-panel]')].map(p => p.dataset.panel)"


class MadeUpServer:
    """Pages of eight GPUs that there are none of: in every state, with runs of every outcome and flag. Before those it has
    run `names` jobs, each of a kernel with a name of its own."""

    def __init__(self, bin_folder, names=0):
        self._words = [pathlib.Path(bin_folder) / "gridclock-made-up-server", str(names)]

    def __enter__(self):
        self._process = subprocess.Popen(self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.metrics = f"127.0.0.1:{int(self._process.stdout.readline())}"
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()


def read(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def runs_of(server):
    return read(f"http://{server.metrics}/runs.json")


def drawn_of(url):
    """What must be drawn: (kernel, drawing) of those with times in the last two minutes."""
    wanted = set()
    for kernel in read(urllib.parse.urljoin(url, "/status.json"))["kernels"]:
        name = f"{kernel['kernel']} on {kernel['device']}"
        if any(kernel["mean_of_runs_ns"]):
            wanted.add((name, "sparkline"))
        if kernel["p50_ns"]:
            wanted.add((name, "bars"))
    return wanted


def card_faults(page, wanted):
    cards = {card["name"]: card for card in page.value(CARDS)}
    for name, drawing in sorted(wanted):
        if name in cards and not cards[name][drawing]:
            yield f"{name}: no {drawing}"
        elif name not in cards and 0 < len(cards) < MOST_CARDS:
            yield f"{name}: no card"


def faults(browser, url, width=PHONE):
    """What is wrong with a page of this width; and its panels."""
    wanted = drawn_of(url)
    page = browser.open(url, width, 844)
    wrong = []
    if (seen := page.value("innerWidth")) != width:
        wrong.append(f"{seen} wide, not {width}")
    if (scrolls := page.value("document.documentElement.scrollWidth")) > width:
        wrong.append(f"scrolls sideways to {scrolls}")
    wrong += [f"{element} reaches beyond" for element in page.value(BEYOND)]
    wrong += [f"panel {panel} is blank" for panel in page.value(BLANK)]
    wrong += card_faults(page, wanted & drawn_of(url))  # What grew too old meanwhile is not wanted.
    return wrong, page.value(PANELS)
