"""A headless Chromium, spoken to through two pipes (its DevTools protocol): no driver, no network.

with Browser() as browser:
    page = browser.open("http://127.0.0.1:8471/", width=390, height=844)
    page.value("document.title")
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)


class Browser:
    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="gridclock-chromium-")
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        self._buffer, self._last, self._events = b"", 0, []

        def pipes_at_3_and_4():
            # Through numbers that are in nobody's way.
            os.dup2(theirs_in, 100)
            os.dup2(theirs_out, 101)
            os.dup2(100, 3)
            os.dup2(101, 4)

        self._process = subprocess.Popen(
            [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--remote-debugging-pipe", "--no-first-run", f"--user-data-dir={self._folder.name}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=pipes_at_3_and_4, start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)
        # It may still write when it has been told to end.
        shutil.rmtree(self._folder.name, ignore_errors=True)

    def call(self, method, session=None, **parameters):
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        answer = self._wait(lambda m: m.get("id") == self._last, method)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def wait_for(self, event, session):
        for seen in self._events:
            if seen.get("method") == event and seen.get("sessionId") == session:
                self._events.remove(seen)
                return
        self._wait(lambda m: m.get("method") == event and m.get("sessionId") == session, event)

    def _wait(self, fits, what, seconds=60):
        end = time.monotonic() + seconds
        while True:
            while b"\0" in self._buffer:
                text, _, self._buffer = self._buffer.partition(b"\0")
                message = json.loads(text)
                if fits(message):
                    return message
                self._events.append(message)
            if not select.select([self._in], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"Chromium: no {what} within {seconds} s")
            read = os.read(self._in, 1 << 20)
            if not read:
                raise OSError(f"Chromium ended before {what}")
            self._buffer += read

    def open(self, url, width, height, dark=False):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Emulation.setDeviceMetricsOverride", session, width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", session, features=[scheme])
        self.call("Page.enable", session)
        self.call("Log.enable", session)
        self.call("Page.navigate", session, url=url)
        self.wait_for("Page.loadEventFired", session)
        return Page(self, session)


class Page:
    def __init__(self, browser, session):
        self._browser, self._session = browser, session

    def value(self, script):
        """What the script gives; a promise is waited for."""
        answer = self._browser.call("Runtime.evaluate", self._session, expression=script,
                                    returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def complaints(self):
        """What the browser's console got to say."""
        return [e["params"]["entry"]["text"] for e in self._browser._events
                if e.get("method") == "Log.entryAdded" and e.get("sessionId") == self._session]

    def screenshot(self, path, height=None):
        if height is not None:
            width = self.value("innerWidth")
            self._browser.call("Emulation.setDeviceMetricsOverride", self._session, width=width,
                               height=height, deviceScaleFactor=1, mobile=width < 600)
        data = self._browser.call("Page.captureScreenshot", self._session, format="png")["data"]
        path.write_bytes(base64.b64decode(data))
