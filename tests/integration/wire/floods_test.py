"""Clients that begin calls, or take them back, faster than any that works: floods_test.py BIN_FOLDER."""
import pathlib
import re
import socket
import struct
import subprocess
import sys
import time
import unittest
import urllib.request

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

from http2 import (ACK, END_HEADERS, END_STREAM, HEADERS, INITIAL_WINDOW_SIZE, PREFACE, RST_STREAM, SETTINGS,  # noqa: E402
                   frame, literal)
from server import Server  # noqa: E402

CHECK = b"".join(literal(*header) for header in (
    (":method", "POST"), (":scheme", "http"), (":path", "/grpc.health.v1.Health/Check"), (":authority", "x"),
    ("te", "trailers"), ("content-type", "application/grpc")))
NO_ANSWERS = frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, 0))
MIB = 1 << 20


def call(number):
    return frame(HEADERS, END_HEADERS | END_STREAM, number, CHECK)


def numbers(count):
    return range(1, 2 * count, 2)


def flood(server, begin, frames):
    """Whether the server closed the connection, while `frames` came or in the 5 s behind them; each batch waits for 1 ms."""
    host, port = server.grpc.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        try:
            connection.sendall(begin)
            for start in range(0, len(frames), 64):
                connection.sendall(b"".join(frames[start:start + 64]))
                time.sleep(0.001)
            connection.settimeout(5)
            while connection.recv(1 << 20):
                pass
        except TimeoutError:
            return False
        except OSError:
            pass
    return True


class FloodsTest(unittest.TestCase):
    def setUp(self):
        self.server = Server(BIN, "--arena-warm-bytes=0").__enter__()
        self.addCleanup(self.server.__exit__, None, None, None)
        self.before = self.resident()

    def resident(self):
        status = pathlib.Path(f"/proc/{self.server.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024

    def cut_off(self):
        with urllib.request.urlopen(f"http://{self.server.metrics}/metrics", timeout=30) as page:
            return int(re.search(r'gridclock_connections_total\{result="cut_off_frames"\} (\d+)', page.read().decode())[1])

    def await_cut_off(self, count):
        end = time.monotonic() + 60
        while self.cut_off() < count and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(self.cut_off(), count)
        self.assertIn("connections_cut_off", self.server.log())

    def assert_others_are_well(self):
        self.assertLess(self.resident(), self.before + 256 * MIB)
        ran = subprocess.run([BIN / "gridclock", "--server", self.server.grpc, "run", "square", "x=ones:f32[4]"],
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_who_acknowledges_nothing_begins_few_calls(self):
        self.assertTrue(flood(self.server, PREFACE + NO_ANSWERS, [call(number) for number in numbers(20000)]))
        self.await_cut_off(1)
        self.assert_others_are_well()

    def test_calls_that_are_taken_back_without_end_close_their_connection(self):
        taken_back = [call(number) + frame(RST_STREAM, 0, number, struct.pack(">I", 8)) for number in numbers(100000)]
        self.assertTrue(flood(self.server, PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, ACK, 0), taken_back))
        self.await_cut_off(1)
        self.assert_others_are_well()

    def test_settings_without_end_close_their_connection(self):
        self.assertTrue(flood(self.server, PREFACE, [frame(SETTINGS, 0, 0)] * 100000))
        self.await_cut_off(1)
        self.assert_others_are_well()

    def test_who_takes_back_a_call_now_and_then_is_served(self):
        calls = [call(number) + frame(RST_STREAM, 0, number, struct.pack(">I", 8)) for number in numbers(100)]
        self.assertFalse(flood(self.server, PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, ACK, 0), calls))
        self.assertEqual(self.cut_off(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
