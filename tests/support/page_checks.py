"""The status page as a browser draws it, and what must be true of that."""

import json
import pathlib
import subprocess
import urllib.request

PHONE = 390
# Elements that reach beyond the window to the right, by tag and class.
BEYOND = """[...document.querySelectorAll("body *")]
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
  .map(e => e.tagName + "." + (e.getAttribute("class") || ""))"""
# Panels without text, or with a drawing that shows nothing.
BLANK = """[...document.querySelectorAll("[data-panel]")]
  .filter(p => p.innerText.trim().length < 10 || p.getBoundingClientRect().height < 20
            || [...p.querySelectorAll("svg.spark")].some(s => !s.querySelector("polyline"))
            || [...p.querySelectorAll("svg.bars, svg.phases, .timeline svg")].some(s => !s.querySelector("rect"))
            || [...p.querySelectorAll("svg")].some(s => s.getBoundingClientRect().height < 2))
  .map(p => p.dataset.panel)"""
PANELS = "[...document.querySelectorAll('[data-panel]')].map(p => p.dataset.panel)"


class MadeUpServer:
    """Pages of eight GPUs that there are none of: in every state, with runs of every outcome and flag."""

    def __init__(self, bin_folder):
        self._program = pathlib.Path(bin_folder) / "gridclock-made-up-server"

    def __enter__(self):
        self._process = subprocess.Popen([self._program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.metrics = f"127.0.0.1:{int(self._process.stdout.readline())}"
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()


def runs_of(server):
    with urllib.request.urlopen(f"http://{server.metrics}/runs.json", timeout=10) as answer:
        return json.load(answer)


def faults(browser, url, width=PHONE):
    """What is wrong with a page of this width; and its panels."""
    page = browser.open(url, width, 844)
    wrong = []
    if (seen := page.value("innerWidth")) != width:
        wrong.append(f"{seen} wide, not {width}")
    if (scrolls := page.value("document.documentElement.scrollWidth")) > width:
        wrong.append(f"scrolls sideways to {scrolls}")
    wrong += [f"{element} reaches beyond" for element in page.value(BEYOND)]
    wrong += [f"panel {panel} is blank" for panel in page.value(BLANK)]
    return wrong, page.value(PANELS)
