"""Clients that begin calls faster than a server can be done with them: floods_test.py BIN_FOLDER."""
import concurrent.futures
import contextlib
import pathlib
import re
import select
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

from http2 import (ACK, DATA, END_HEADERS, END_STREAM, HEADERS, INITIAL_WINDOW_SIZE, PREFACE, RST_STREAM,  # noqa: E402
                   SETTINGS, WINDOW_UPDATE, frame, headers, literal)
from server import Server  # noqa: E402

CHECK = b"".join(literal(*header) for header in (
    (":method", "POST"), (":scheme", "http"), (":path", "/grpc.health.v1.Health/Check"), (":authority", "x"),
    ("te", "trailers"), ("content-type", "application/grpc")))
NO_ANSWERS = frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, 0))
SETTLED = frame(SETTINGS, 0, 0) + frame(SETTINGS, ACK, 0)
MIB = 1 << 20
NOT_YET = BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError


def begun(number):
    return frame(HEADERS, END_HEADERS, number, CHECK)


def whole(number):
    """Without a message, which the server answers at once."""
    return frame(HEADERS, END_HEADERS | END_STREAM, number, CHECK)


def taken_back(number):
    return begun(number) + frame(RST_STREAM, 0, number, struct.pack(">I", 8))


def made_to_reset(number):
    """A window that no stream may have: the server takes the call back."""
    return begun(number) + frame(WINDOW_UPDATE, 0, number, struct.pack(">I", 0x7fffffff))


def no_message(number):
    return begun(number) + frame(DATA, END_STREAM, number, b"\x07\x00\x00\x00\x00")


REFERENCE, REFERENCES = literal("a", ""), b"\xbe"  # Kept in the table, then one byte each time: 200 bytes of memory.


def of_references(count):
    """Without a message, with so many fields beside the usual ones; the first call brings the field."""
    def call(number):
        block = CHECK + (b"\x40" + REFERENCE[1:] if number == 1 else b"") + REFERENCES * count
        return headers(number, block, END_STREAM)
    return call


class Flood:
    """Calls on one connection, as many as go in so many seconds, or until it ends."""

    def __init__(self, server, begin, call, decoys=(), trust=None, seconds=10):
        host, port = server.grpc.rsplit(":", 1)
        self.begun, self.ended, end = 0, False, time.monotonic() + seconds
        self._socket = self._connect((host, int(port)), ("0.0.0.0", 0))
        if trust:
            self._socket = trust.wrap_socket(self._socket, server_hostname="localhost")
        beside = [self._connect((decoy, int(port)), self._socket.getsockname()) for decoy in decoys]
        self._socket.setblocking(False)
        try:
            self._send(PREFACE + begin, end)
            while time.monotonic() < end:
                numbers = range(2 * self.begun + 1, 2 * self.begun + 129, 2)
                self.begun += len(numbers)  # Though the server may end the connection amid the first of them.
                self._send(b"".join(call(number) for number in numbers), end)
        except OSError:
            self.ended = True
        # All of the first calls at least, or the server would have no more.
        self.came = self.ended or self.begun > 64
        for one in (self._socket, *beside):
            one.close()

    @staticmethod
    def _connect(to, local):
        """Several connections may have one local address and port."""
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.settimeout(10)
        one.bind(local)
        one.connect(to)
        time.sleep(0.3)  # Until the server has it.
        return one

    def _send(self, data, end):
        """Reads what comes meanwhile. In one thread: a connection of OpenSSL is not for two at once."""
        while data and (left := end - time.monotonic()) > 0:
            select.select([self._socket], [self._socket], [], left)
            with contextlib.suppress(*NOT_YET):
                while True:
                    if not self._socket.recv(MIB):
                        raise ConnectionResetError
            with contextlib.suppress(*NOT_YET):
                data = data[self._socket.send(data):]


class Floods(unittest.TestCase):
    FLAGS = ()
    trust = ()  # What a client of the server must say.

    def setUp(self):
        self.server = Server(BIN, "--arena-warm-bytes=0", *self.FLAGS).__enter__()
        self.addCleanup(self.server.__exit__, None, None, None)
        self.before = self.peak()

    def peak(self):
        """The most memory that the server has had."""
        status = pathlib.Path(f"/proc/{self.server.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024

    def cut_off(self):
        with urllib.request.urlopen(f"http://{self.server.metrics}/metrics", timeout=30) as page:
            return int(re.search(r'gridclock_connections_total\{result="cut_off_calls"\} (\d+)', page.read().decode())[1])

    def await_cut_off(self, connections=1):
        end = time.monotonic() + 60
        while self.cut_off() < connections and time.monotonic() < end:
            time.sleep(0.1)
        self.assertGreaterEqual(self.cut_off(), connections)
        self.assertIn("connections_cut_off", self.server.log())

    def assert_others_are_well(self, more=256 * MIB):
        self.assertLess(self.peak(), self.before + more)
        ran = subprocess.run([BIN / "gridclock", "--server", self.server.grpc, *self.trust, "run", "square", "x=ones:f32[4]"],
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def hold(self, begin, call, **how):
        """gRPC itself may be first, by --limit-streams, or read so slowly that there are never many."""
        self.assertTrue(Flood(self.server, begin, call, **how).came)
        self.assert_others_are_well()


class FloodsTest(Floods):
    def test_who_acknowledges_no_settings_and_takes_no_answer(self):
        """Whom gRPC does not hold to --limit-streams."""
        self.hold(NO_ANSWERS, whole)
        self.await_cut_off()

    def test_calls_that_are_answered(self):
        self.hold(SETTLED, whole)

    def test_calls_that_are_taken_back(self):
        self.hold(SETTLED, taken_back)

    def test_calls_that_the_server_must_take_back(self):
        self.hold(SETTLED, made_to_reset)

    def test_calls_whose_message_is_none(self):
        self.hold(SETTLED, no_message)

    def test_calls_of_a_method_that_nobody_has(self):
        unknown = CHECK.replace(b"Health/Check", b"Health/Chalk")
        self.hold(SETTLED, lambda number: frame(HEADERS, END_HEADERS | END_STREAM, number, unknown))

    def test_fields_of_one_byte_each(self):
        for count in (100_000, 900):
            self.assertTrue(Flood(self.server, NO_ANSWERS, of_references(count)).ended)
            self.assert_others_are_well()

    def test_calls_behind_a_stream_of_a_servers_number(self):
        """gRPC passes over it, and takes the client's own numbers from the first."""
        self.hold(NO_ANSWERS + frame(HEADERS, END_HEADERS | END_STREAM, 0x7ffffffe, CHECK), of_references(225))
        self.await_cut_off()

    def test_what_was_closed_counts_no_more(self):
        """A burst of calls goes through after a flood by many connections, all of which are gone."""
        for _ in range(24):
            Flood(self.server, NO_ANSWERS, of_references(900), seconds=0.2)
        time.sleep(2)
        before = self.cut_off()
        ran = subprocess.run([BIN / "gridclock", "--server", self.server.grpc, "load", "square", "x=ones:f32[16]", "--rate", "500",
                              "--seconds", "2", "--concurrency", "100"], capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(self.cut_off(), before)

    def test_several_connections_at_once(self):
        """Between their bytes gRPC hands none of the calls on."""
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            floods = [pool.submit(Flood, self.server, SETTLED, call) for call in (of_references(225), taken_back) * 12]
        self.assertTrue(all(flood.result().came for flood in floods))
        self.assert_others_are_well(more=1024 * MIB)  # Each may have some hundred calls of 67 KB.

    def test_others_are_served_beside_it_and_none_of_them_is_cut_off(self):
        load = subprocess.Popen([BIN / "gridclock", "--server", self.server.grpc, "load", "square", "x=ones:f32[16]", "--rate", "50",
                                 "--seconds", "12", "--concurrency", "16"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        floods = 0
        while load.poll() is None:
            Flood(self.server, SETTLED, taken_back)
            floods += 1
        _, errors = load.communicate()
        self.assertEqual(load.returncode, 0, errors)
        self.assertGreater(floods, 0)


class FloodsOfAServerWithSeveralAddressesTest(Floods):
    FLAGS = ("--listen=0.0.0.0:0", "--insecure-public")

    def test_who_has_another_connection_from_the_same_port(self):
        """To another of the server's addresses: gRPC gives both one name."""
        self.hold(NO_ANSWERS, whole, decoys=["127.0.0.2"])
        self.await_cut_off()


class FloodsOfAServerWithTlsTest(Floods):
    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        certificate, key = folder / "server.pem", folder / "server.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)
        # Few calls, so that some reads have too many however slow this machine is.
        self.FLAGS = (f"--tls-cert={certificate}", f"--tls-key={key}", "--limit-streams=1")
        self.trust = f"--tls-ca={certificate}", "--tls-name=localhost"
        self.context = ssl.create_default_context(cafile=certificate)
        self.context.set_alpn_protocols(["h2"])
        super().setUp()

    def test_calls_are_counted_behind_the_encryption(self):
        self.hold(NO_ANSWERS, of_references(900), trust=self.context)
        self.await_cut_off()


if __name__ == "__main__":
    unittest.main(verbosity=2)
