"""A node with a GPU, for the Fleet dashboard where there is none: the page of a real server on a CPU, with
the device renamed, with less work, so that its lines do not lie upon the other's, and with what a GPU's driver would say, and a page as DCGM's exporter writes it, both of one
made-up UUID."""
import http.server
import re
import threading
import time
import uuid

from prometheus import fetch

# As exporters since 3.3.6 write it: the host in small letters, the last XID in labels too.
DCGM = """# TYPE DCGM_FI_DEV_{name} gauge
DCGM_FI_DEV_{name}{{gpu="0",UUID="{uuid}",device="nvidia0",modelName="NVIDIA H200",hostname="node1"{more}}} {value}
"""
MORE = {"XID_ERRORS": ',err_code="0",err_msg="No Error"'}
VITALS = """gridclock_device_temperature_celsius{{device="cuda:0"}} {temperature:.0f}
gridclock_device_power_watts{{device="cuda:0"}} {power:.1f}
gridclock_device_clock_hertz{{device="cuda:0",clock="sm"}} {clock:.0f}e6
gridclock_device_clock_hertz{{device="cuda:0",clock="memory"}} {memory_clock:.0f}e6
gridclock_device_clock_held_down{{device="cuda:0",reason="gpu_idle"}} {idle}
gridclock_device_clock_held_down{{device="cuda:0",reason="sw_power_cap"}} {capped}
gridclock_device_memory_bytes{{device="cuda:0",state="used"}} {used:.0f}
gridclock_device_exclusive{{device="cuda:0"}} {idle}
"""


LESS, FAILING = 0.7, 0.4  # Of the real server's work, and of its calls that did not go well.
TOTAL = 143771 * 2**20  # Bytes of an H200, in place of the real machine's.
WORK = re.compile(r"^(gridclock_(?:\w+_(?:total|bucket|count|sum)|queue_depth|jobs_running))(\{[^}]*\})? (\S+)$", re.M)


def with_less_work(page):
    def scaled(line):
        name, labels = line[1], line[2] or ""
        failing = name == "gridclock_rpc_requests_total" and 'code="OK"' not in labels
        return f"{name}{labels} {float(line[3]) * (FAILING if failing else LESS)}"
    return WORK.sub(scaled, page)


class GpuNode:
    """Serves both pages on 127.0.0.1 as long as `with` lasts: /gridclock and /dcgm on `address`."""

    def __init__(self, real_address):
        self._real = real_address
        self._uuid = "GPU-" + str(uuid.uuid5(uuid.NAMESPACE_DNS, "gridclock"))
        self._last = (time.monotonic(), 0.0)
        self._busy = 0.0  # The part of time that the device works, lately.

    def __enter__(self):
        node = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = (node.dcgm() if self.path == "/dcgm" else node.gridclock()).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def gridclock(self):
        page = with_less_work(fetch(self._real, "/metrics")[1]).replace('device="cpu"', 'device="cuda:0"')
        page, facts = re.subn(r'uuid="",model="[^"]*",arch="[^"]*",driver=""',
                              f'uuid="{self._uuid}",model="NVIDIA H200",arch="sm_90",driver="580.95.05"', page)
        assert facts <= 1 and (facts or "gridclock_device_info{" not in page), "its labels are others by now"
        page, totals = re.subn(r'(gridclock_device_memory_bytes\{device="cuda:0",state="total"\}) \S+', rf"\1 {TOTAL}", page)
        assert totals or "gridclock_device_memory_bytes{" not in page, "its labels are others by now"
        seconds = re.search(r'^gridclock_device_busy_seconds_total\{device="cuda:0"\} (\S+)', page, re.M)
        self._note(float(seconds[1]) if seconds else 0.0)
        idle = int(self._busy < 0.1)
        return page + VITALS.format(idle=idle, capped=1 - idle, memory_clock=3201 if idle else 2619,
                                    temperature=self._temperature(), power=self._power(), clock=self._clock(),
                                    used=self._used_mb() * 2**20)

    def _note(self, seconds):
        now, (then, before) = time.monotonic(), self._last
        if now - then > 0.5:
            lately = min(1.0, max(0.0, (seconds - before) / (now - then)))
            self._busy += 0.3 * (lately - self._busy)  # Temperatures do not jump.
            self._last = (now, seconds)

    # A GPU becomes warmer, thirstier and a little slower the more it works.
    def _temperature(self):
        return 34 + 30 * self._busy

    def _power(self):
        return 80 + 420 * self._busy

    def _clock(self):
        return 1980 - 90 * self._busy

    def _used_mb(self):
        return 800 + 4000 * self._busy

    def dcgm(self):
        values = {"GPU_TEMP": self._temperature(), "POWER_USAGE": self._power(), "SM_CLOCK": self._clock(),
                  "GPU_UTIL": 100 * self._busy, "FB_USED": self._used_mb(), "XID_ERRORS": 0}
        return "".join(DCGM.format(name=name, uuid=self._uuid, value=f"{value:.1f}", more=MORE.get(name, ""))
                       for name, value in values.items())
