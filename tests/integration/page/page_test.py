"""The pages for people in a real browser: page_test.py [--screenshots FOLDER [SECONDS]]

With --screenshots it makes the pictures of docs/operating.md, after so many seconds of load.
"""

import json
import os
import pathlib
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

BIN = pathlib.Path(os.environ.get("GRIDCLOCK_BIN", "build/dev/bin")).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import chromium  # noqa: E402
from page_checks import BLANK, MadeUpServer, card_faults, drawn_of, faults, runs_of  # noqa: E402
from server import Server  # noqa: E402

SKIPPED = 77  # ctest knows it.


def client(server, *words):
    done = subprocess.run([BIN / "gridclock", "--server", server.grpc, *words], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_runs(server):
    client(server, "bench", "square", "--shape", "N=20000", "--variant", "simd", "--samples", "50")
    for _ in range(3):
        client(server, "run", "softmax", "x=randn:f32[64,100]")


def last_run(server, wanted=lambda run: True):
    return next(run["id"] for run in runs_of(server) if wanted(run))


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enter(Server(BIN))
        make_runs(cls.server)
        cls.browser = cls.enter(chromium.Browser())

    @classmethod
    def enter(cls, manager):
        value = manager.__enter__()
        cls.addClassCleanup(manager.__exit__, None, None, None)
        return value

    def paths(self):
        return "/", "/kernels", "/runs", f"/runs/{last_run(self.server)}"

    def open(self, path, width, dark=False):
        return self.browser.open(f"http://{self.server.metrics}{path}", width, 844, dark)

    def until(self, page, condition):
        page.value(f"""new Promise((done, fail) => {{
            const look = () => {condition} ? done() : setTimeout(look, 50);
            setTimeout(() => fail(new Error("never " + {json.dumps(condition)})), 20000);
            look(); }})""")

    def test_no_panel_is_blank_and_nothing_scrolls_sideways_on_a_phone_nor_on_a_desk(self):
        panels = {"/": ["summary", "devices", "kernels", "runs"], "/kernels": ["kernels"], "/runs": ["runs"]}
        for path in self.paths():
            for width in (390, 320, 820, 1440):
                with self.subTest(path=path, width=width):
                    self.assertEqual(faults(self.browser, f"http://{self.server.metrics}{path}", width),
                                     ([], panels.get(path, ["facts", "phases", "launches"])))

    def test_eight_gpus_in_every_state_have_room_on_a_phone(self):
        with MadeUpServer(BIN) as server:
            for path in ("/", "/kernels", "/runs"):
                for width in (390, 320, 1440):
                    with self.subTest(path=path, width=width):
                        self.assertEqual(faults(self.browser, f"http://{server.metrics}{path}", width)[0], [])
            for outcome in ("ok", "mismatch", "cancelled", "fault", "time_limit", "worker_lost"):
                run = last_run(server, lambda run, outcome=outcome: run["outcome"] == outcome)
                with self.subTest(outcome=outcome):
                    self.assertEqual(faults(self.browser, f"http://{server.metrics}/runs/{run}")[0], [])
            page = self.browser.open(f"http://{server.metrics}/", 390, 844)
            devices = page.value("document.querySelector('[data-panel=devices]').innerText")
            for words in ("busy", "quarantined", "dead", "starting", "drained", "41 °C", "131 GiB of 140 GiB",
                          "241 of 256", "120 W", "1.98 GHz", "its worker has not said yet what it is"):
                self.assertIn(words, devices)
            self.assertEqual(page.value("document.querySelectorAll('[data-panel=devices] .meter.full').length"), 2)
            for width in (390, 1280):
                page = self.browser.open(f"http://{server.metrics}/", width, 844)
                self.assertIn("not ok", page.value("document.querySelector('[data-panel=kernels] header .o-bad').innerText"))
                self.assertEqual(page.value("""[...document.querySelectorAll('.facts.four')]
                    .filter(facts => facts.children.length !== 4).length"""), 0)
                self.assertEqual(page.value("""[...document.querySelectorAll('.whole, .facts small')]
                    .filter(e => e.getClientRects().length > 1).map(e => e.innerText)"""), [], width)
            all_runs = self.browser.open(f"http://{server.metrics}/runs", 390, 844).value("document.body.innerText")
            for flag in ("suspect", "impossible", "throttled", "shared device", "noisy", "interrupted", "unverified",
                         "emulated", "teaching method"):
                self.assertIn(flag, all_runs)

    def test_the_check_sees_a_card_and_phases_that_show_nothing(self):
        address = f"http://{self.server.metrics}"
        wanted = drawn_of(address)
        self.assertEqual(wanted, {(f"{kernel} on cpu", drawing) for kernel in ("square", "softmax") for drawing in ("sparkline", "bars")})
        page = self.open("/kernels", 390)
        self.assertEqual(list(card_faults(page, wanted)), [])
        page.value("""{ const [first, second] = document.querySelectorAll(".card");
            first.querySelector(".spark").innerHTML = "";
            second.querySelectorAll(".bars rect").forEach(bar => bar.setAttribute("height", 0)); }""")
        self.assertEqual({fault.partition(": ")[2] for fault in card_faults(page, wanted)}, {"no sparkline", "no bars"})
        page.value("document.querySelector('.card').remove()")
        self.assertIn("no card", {fault.partition(": ")[2] for fault in card_faults(page, wanted)})
        page = self.open("/runs", 390)
        self.assertEqual(page.value(BLANK), [])
        page.value("document.querySelectorAll('.run .phases rect:not(.rest)').forEach(part => part.remove())")
        self.assertEqual(page.value(BLANK), ["runs"])

    def test_the_page_of_a_server_that_did_nothing_is_not_blank(self):
        with Server(BIN) as idle:
            page = self.browser.open(f"http://{idle.metrics}/", 390, 844)
            self.assertEqual(page.value(BLANK), [])

    def test_the_browser_has_nothing_to_complain_of(self):
        for path in self.paths():
            page = self.open(path, 390)
            time.sleep(0.2)
            self.assertEqual(page.complaints(), [])

    def test_light_and_dark_differ_and_both_can_be_read(self):
        colours = []
        for dark in (False, True):
            page = self.open("/", 390, dark)
            colours.append([page.value(f"getComputedStyle(document.body).{what}")
                            for what in ("backgroundColor", "color")])
        light, dark = ([sum(map(int, c[4:-1].split(","))) for c in pair] for pair in colours)
        self.assertGreater(light[0] - light[1], 450)
        self.assertGreater(dark[1] - dark[0], 450)

    def test_a_run_shows_up_by_itself_and_its_link_leads_to_it(self):
        page = self.open("/", 390)
        before = page.value("document.querySelector('.run').href")
        client(self.server, "run", "square", "x=ones:f32[10]")
        run = f"http://{self.server.metrics}/runs/{last_run(self.server)}"
        self.assertNotEqual(run, before)
        self.until(page, f"document.querySelector('.run').href === {json.dumps(run)}")
        self.assertIn("square", self.browser.open(run, 390, 844).value("document.querySelector('.run-title').innerText"))

    def test_the_page_stays_while_its_text_is_selected_says_so_and_goes_on_after_half_a_minute(self):
        page = self.open("/", 390)
        page.value("getSelection().selectAllChildren(document.querySelector('.model')); live.firstChild.old = true")
        self.until(page, "stale.innerText === 'paused while text is selected'")
        page.value("new Promise(done => setTimeout(done, 2500))")
        self.assertTrue(page.value("live.firstChild.old"))
        page.value("{ const now = Date.now; Date.now = () => now() + 31000; }")
        self.until(page, "!live.firstChild.old && stale.hidden")

    def test_text_that_is_selected_elsewhere_does_not_stop_it(self):
        page = self.open("/", 390)
        page.value("getSelection().selectAllChildren(document.querySelector('footer')); live.firstChild.old = true")
        self.until(page, "!live.firstChild.old")
        self.assertFalse(page.value("getSelection().isCollapsed"))

    def test_the_link_that_has_the_keyboard_keeps_it(self):
        page = self.open("/", 390)
        href = page.value("(document.querySelectorAll('a.run')[1].focus(), live.firstChild.old = true, document.activeElement.href)")
        self.until(page, "!live.firstChild.old")
        self.assertEqual(page.value("document.activeElement.href"), href)

    def test_nothing_comes_from_elsewhere(self):
        for path in self.paths():
            names = self.open(path, 390).value("performance.getEntriesByType('resource').map(e => e.name)")
            self.assertEqual([n for n in names if not n.startswith(f"http://{self.server.metrics}/")
                              and not n.startswith("data:")], [])

    def test_what_is_no_page_is_404(self):
        for path in ("/runs/999999999", "/runs/%3Cscript%3E", "/favicon.ico", "/part/"):
            with self.assertRaises(urllib.error.HTTPError) as raised:
                urllib.request.urlopen(f"http://{self.server.metrics}{path}", timeout=10)
            self.assertEqual(raised.exception.code, 404)


# Where a page ends that is drawn in a picture.
END = "Math.ceil([...document.querySelectorAll('{last}')].at(-1).getBoundingClientRect().bottom)"


def take_screenshots(folder, seconds):
    folder.mkdir(parents=True, exist_ok=True)
    with Server(BIN) as server, MadeUpServer(BIN) as made_up, chromium.Browser() as browser:
        def picture(name, url, width, last="body", dark=False):
            page = browser.open(f"http://{url}", width, 844, dark)
            page.screenshot(folder / f"{name}.png", page.value(END.format(last=last)))

        loads = [subprocess.Popen([BIN / "gridclock", "--server", server.grpc, "load", *words, "--generate", "server",
                                   "--seconds", str(seconds)], stdout=subprocess.DEVNULL)
                 for words in (["square", "--shape", "N=200000", "--rate", "3"],
                               ["softmax", "--shape", "N=1000", "--rate", "4"],
                               ["gelu", "--shape", "N=50000", "--rate", "2"],
                               ["layernorm", "--shape", "N=1000", "--rate", "1"],
                               ["sum", "--shape", "N=100000", "--rate", "1"])]
        time.sleep(max(0, seconds - 12))
        client(server, "bench", "matmul", "--shape", "M=256", "K=256", "N=256", "--samples", "500")
        client(server, "run", "softmax", "x=randn:f32[64,1000]", "--verify")
        verified = last_run(server, lambda run: any(p["kind"] == "verified" for p in run["phases"]))
        client(server, "bench", "gelu", "--shape", "N=50000", "--method", "host_sync", "--samples", "50")
        late = [BIN / "gridclock", "--server", server.grpc, "run", "spin", "ns=2000000000", "--timeout", "50ms"]
        subprocess.run(late, capture_output=True, check=False)
        picture("status", f"{server.metrics}/", 1280)
        picture("status-dark", f"{server.metrics}/", 1280, dark=True)
        picture("status-phone", f"{server.metrics}/", 390, last=".run:nth-of-type(-n+4)")
        picture("status-gpus", f"{made_up.metrics}/", 1280, last="[data-panel=devices]")
        picture("run", f"{server.metrics}/runs/{verified}", 1000)
        for load in loads:
            load.wait()


if __name__ == "__main__":
    if chromium.PROGRAM is None:
        print("skipped: no Chromium here (apt-get install chromium; ./dev nightly has it)")
        sys.exit(SKIPPED)
    if sys.argv[1:2] == ["--screenshots"]:
        take_screenshots(pathlib.Path(sys.argv[2]), int((sys.argv[3:] or ["130"])[0]))
        sys.exit(0)
    unittest.main(argv=sys.argv[:1])
