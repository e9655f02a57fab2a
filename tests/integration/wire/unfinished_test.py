"""Clients that begin messages or headers and never end them: unfinished_test.py BIN_FOLDER."""
import contextlib
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

from http2 import CONTINUATION, HEADERS, PREFACE, SETTINGS, Connection, frame, literal, message, unfinished  # noqa: E402
from prometheus import wait_until  # noqa: E402
from server import Server  # noqa: E402

RUN = "/gridclock.v1.KernelService/Run"
STREAM_RUN = "/gridclock.v1.KernelService/StreamRun"
HEALTH = "/grpc.health.v1.Health/"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
LARGE = [RUN, STREAM_RUN, "/gridclock.v1.ModuleService/Compile", "/gridclock.v1.ModuleService/Load"]
SECONDS = 12
MIB = 1 << 20
INVALID_ARGUMENT, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNIMPLEMENTED, UNAUTHENTICATED = 3, 4, 8, 12, 16
NEVER_STALLED = "--limit-stream-stall-seconds=3600"  # Where what is held must not depend on how long a test takes.
NOTHING_WARMED = "--arena-warm-bytes=0"  # Where memory is measured: the server warms its arena behind its start.
UNDER_64_MIB = "--limit-rpc-bytes=64M"  # Of one client 1 request is read then, and 16 wait.
READ, WAIT = 1, 16


def field(number, payload):
    """Of a message of protobuf, its length behind its tag."""
    return bytes([number << 3 | 2, len(payload)]) + payload


def spin(seconds):
    """RunRequest{kernel: "spin" attributes {key: "ns" value {i64: ...}}}."""
    nanoseconds, digits = seconds * 10**9, []
    while nanoseconds > 127:
        nanoseconds, digits = nanoseconds >> 7, [*digits, nanoseconds & 127 | 128]
    value = bytes([1 << 3, *digits, nanoseconds])
    return field(1, b"spin") + field(4, field(1, b"ns") + field(2, value))


def streamed_square():
    """To StreamRun: header {kernel: "square" inputs {name: "x" spec {dtype: F32 dims: 1} stream {}}}, and its chunk."""
    spec = b"\x08\x02" + field(2, b"\x01")
    header = field(1, b"square") + field(11, field(1, b"x") + field(2, spec) + field(4, b""))
    return message(field(1, header)) + message(field(2, field(1, b"x") + field(15, bytes(4))))


def port_of(server):
    return int(server.grpc.rsplit(":", 1)[1])


def in_flight(server):
    """By method, each of our services' there is."""
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=30) as page:
        found = re.findall(r'gridclock_rpc_in_flight\{method="([^"]+)"\} (\d+)', page.read().decode())
    return {f"/{method}": int(calls) for method, calls in found}


def ended_calls(server):
    """The methods of which calls have ended, and how."""
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=30) as page:
        found = re.findall(r'gridclock_rpc_requests_total\{method="([^"]+)",code="([^"]+)"\} [1-9]', page.read().decode())
    return [(f"/{method}", code) for method, code in found]


def resident_mib(server):
    status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) // 1024


@contextlib.contextmanager
def tokens(*names):
    """A folder with a server's file `tokens`, and a token in a file of its own for each name."""
    with tempfile.TemporaryDirectory() as folder:
        folder, lines = pathlib.Path(folder), []
        for name in names:
            (folder / name).write_text(f"{name}-{name}-{name}")
            hashed = subprocess.run([BIN / "gridclock-server", "--hash-token"], input=(folder / name).read_text(),
                                    capture_output=True, text=True, check=True).stdout.strip()
            lines.append(f"{name} read,run {hashed}\n")
        (folder / "tokens").write_text("".join(lines))
        yield folder


def run_square(server, *flags):
    return subprocess.run([BIN / "gridclock", "--server", server.grpc, *flags, "run", "square", "x=ones:f32[4]"],
                          capture_output=True, text=True, timeout=60)


class UnfinishedTest(unittest.TestCase):
    def press(self, port, token, over):
        """All that the server takes of one client, again and again."""
        while not over.is_set():
            with Connection(port) as connection:
                while not over.is_set() and not connection.ended:
                    taken = connection.send(connection.begin(STREAM_RUN, token), unfinished(4 * MIB))
                    with self.counting:
                        self.taken += taken

    def test_messages_without_an_end_do_not_end_the_server(self):
        self.taken, self.counting = 0, threading.Lock()
        names = [f"presser{i}" for i in range(6)]  # Each may have half of what the server may take.
        with tokens("honest", *names) as folder, \
                Server(BIN, UNDER_64_MIB, f"--token-file={folder / 'tokens'}") as server:
            over, honest = threading.Event(), f"--token-file={folder / 'honest'}"
            clients = [threading.Thread(target=self.press, args=(port_of(server), (folder / name).read_text(), over))
                       for name in names]
            for client in clients:
                client.start()
            try:
                subprocess.run([BIN / "gridclock", "--server", server.grpc, honest, "load", "copy", "x=randn:f32[1M]",
                                "--generate", "client", "--rate", "20", "--seconds", str(SECONDS)],
                               stdout=subprocess.DEVNULL, timeout=120)  # That some of its calls fail is no matter here.
            finally:
                over.set()
                for client in clients:
                    client.join()
            self.assertGreater(self.taken, 64 * MIB)
            after = run_square(server, honest)
            self.assertEqual(after.returncode, 0, after.stderr)

    def test_no_method_waits_longer_than_the_limit_for_its_request(self):
        with Server(BIN, "--limit-stream-stall-seconds=12", "--allow-admin", "--allow-submit",
                    "--weak-sandbox") as server, Connection(port_of(server)) as connection:
            calls = {}
            for method in sorted(in_flight(server), key=LARGE.__contains__):
                calls[method] = connection.begin(method)
                self.assertEqual(connection.send(calls[method], unfinished(8000), patience=60), 8004, method)
            self.assertGreater(len(calls), 10)
            for method, call in calls.items():
                code, text = connection.status(call, seconds=60)
                self.assertEqual(code, DEADLINE_EXCEEDED, f"{method}: {text}")
                self.assertIn("the client was too slow to send", text, method)
            # What is a few bytes comes with its headers, or hardly at all.
            self.assertEqual(set(connection.ended_calls()[-len(LARGE):]), {calls[large] for large in LARGE})
            self.assertEqual(set(in_flight(server).values()), {0})

    def test_b14_metadata_is_bounded_also_before_the_client_says_that_it_heard_of_the_bound(self):
        more = [(f"x-{i}", "a" * 100) for i in range(90)]
        with Server(BIN) as server:
            for method in (RUN, STREAM_RUN, HEALTH + "Check", REFLECTION):
                for _ in range(10):
                    with Connection(port_of(server)) as connection:
                        call = connection.begin(method, more=more)
                        connection.send(call, message(b""))
                        connection.end(call)
                        code, text = connection.status(call, seconds=60)
                        self.assertEqual(code, RESOURCE_EXHAUSTED, text)

    def test_a_deadline_that_is_centuries_away_is_yet_to_come(self):
        with Server(BIN) as server, Connection(port_of(server)) as connection:
            for timeout in ("2562047H", "2562048H", "99999999H"):
                call = connection.begin(RUN, more=[("grpc-timeout", timeout)])
                connection.send(call, message(spin(seconds=0)))
                connection.end(call)
                self.assertEqual(connection.status(call, seconds=60), (0, ""), timeout)

    # gRPC's clients say a deadline up to a hundredth later than their own.
    def test_a_client_that_leaves_at_its_own_deadline_is_no_cancellation(self):
        with Server(BIN) as server, Connection(port_of(server)) as connection:
            calls = [connection.begin(method, more=[("grpc-timeout", "30S")])
                     for method in (HEALTH + "Watch", REFLECTION)]
            leaves = time.monotonic() + 29.9
            for call in calls:
                connection.send(call, message(b""))
            connection.end(calls[0])
            time.sleep(leaves - time.monotonic())
            connection.close()
            wait_until(lambda: len(ended_calls(server)) == 2, 30, "both calls have ended")
            self.assertEqual(set(ended_calls(server)), {(HEALTH + "Watch", "DEADLINE_EXCEEDED"),
                                                        (REFLECTION, "DEADLINE_EXCEEDED")})

    def test_a_call_without_a_request_is_none(self):
        with Server(BIN) as server, Connection(port_of(server)) as connection:
            call = connection.begin(RUN)
            connection.end(call)
            self.assertEqual(connection.status(call, seconds=30),
                             (UNIMPLEMENTED, "want one request, got the end of the stream"))

    def test_who_has_no_token_hears_so_before_the_request_and_holds_nothing(self):
        with tokens("ann") as folder, Server(BIN, NOTHING_WARMED, f"--token-file={folder / 'tokens'}") as server:
            before = resident_mib(server)
            for _ in range(4):
                with Connection(port_of(server)) as connection:
                    # Health needs none.
                    calls = {method: connection.begin(method) for method in in_flight(server)
                             if not method.startswith(HEALTH)}
                    sent = [connection.send(call, unfinished(4 * MIB), patience=0.1) for call in calls.values()]
                    self.assertLess(sum(sent), 2 * MIB)  # What the connection's window takes, and no message.
                    for method, call in calls.items():
                        self.assertEqual(connection.status(call, seconds=30)[0], UNAUTHENTICATED, method)
                    self.assertEqual(set(in_flight(server).values()), {0})
            self.assertLess(resident_mib(server) - before, 48)

    def eventually(self, holds):
        end = time.monotonic() + 60
        while not holds():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    @staticmethod
    def ended(connection, calls):
        """The codes of those that have."""
        return [status[0] for status in (connection.status(call, seconds=0) for call in calls) if status is not None]

    def test_one_client_has_its_share_and_others_are_served(self):
        for method in (RUN, STREAM_RUN):
            with self.subTest(method):
                self.share(method)

    def share(self, method):
        with tokens("ann", "bob") as folder, \
                Server(BIN, UNDER_64_MIB, NEVER_STALLED, f"--token-file={folder / 'tokens'}") as server, \
                Connection(port_of(server)) as connection:
            token = (folder / "ann").read_text()
            calls = [connection.begin(method, token) for _ in range(60)]
            taken = sum(connection.send(call, unfinished(4 * MIB), patience=0.1) for call in calls)
            self.assertLess(taken, (READ * 5 + WAIT) * MIB)
            self.eventually(lambda: len(self.ended(connection, calls)) == len(calls) - READ - WAIT)
            self.assertEqual(set(self.ended(connection, calls)), {RESOURCE_EXHAUSTED})
            self.assertEqual(in_flight(server)[method], READ + WAIT)
            for _ in range(5):
                other = run_square(server, f"--token-file={folder / 'bob'}")  # Not behind ann's: nobody lets them go.
                self.assertEqual(other.returncode, 0, other.stderr)
            self.assertEqual(in_flight(server)[method], READ + WAIT)

    @unittest.skipIf(b"libasan" in (BIN / "gridclock-server").read_bytes(), "AddressSanitizer keeps what is free")
    def test_memory_of_a_wave_is_given_back(self):
        with Server(BIN, NOTHING_WARMED, "--limit-rpc-bytes=4G", NEVER_STALLED) as server:
            before = resident_mib(server)
            with Connection(port_of(server)) as connection:
                for call in [connection.begin(RUN) for _ in range(80)]:
                    connection.send(call, unfinished(4 * MIB), patience=60)
                self.eventually(lambda: resident_mib(server) - before > 250)
            self.eventually(lambda: resident_mib(server) - before < 100)

    def test_what_is_behind_a_call_s_inputs_has_little_room_and_holds_up_no_answer(self):
        streams, window, ends = 12, 1, 10
        with Server(BIN, "--limit-rpc-bytes=256M", NEVER_STALLED, "--limit-kernel-seconds=600") as server, \
                Connection(port_of(server)) as connection:
            with Connection(port_of(server)) as before:
                busy = before.begin(RUN)
                before.send(busy, message(spin(seconds=500)))  # It ends with its connection.
                calls = [connection.begin(STREAM_RUN) for _ in range(streams)]
                for call in calls:
                    connection.send(call, streamed_square())
                taken = sum(connection.send(call, unfinished(4 * MIB), patience=0.05) for call in calls)
                self.assertIsNone(before.status(busy, seconds=0))  # All this while the job of each waited.
            self.assertLess(taken, (streams * window + ends) * MIB)
            for call in calls:
                self.assertEqual(connection.status(call, seconds=60), (0, ""))

    def test_a_request_that_waited_for_its_turn_is_served_and_small_ones_do_not_wait(self):
        square = b"\x0a\x06square"
        with Server(BIN, UNDER_64_MIB, NEVER_STALLED) as server:
            with Connection(port_of(server)) as connection:
                for call in [connection.begin(RUN) for _ in range(READ)]:
                    connection.send(call, unfinished(8000))
                self.eventually(lambda: in_flight(server)[RUN] == READ)
                with Connection(port_of(server)) as honest:
                    large, small = honest.begin(RUN), honest.begin("/gridclock.v1.KernelService/GetKernel")
                    for call, request in ((large, b"no message"), (small, square)):
                        honest.send(call, message(request))
                        honest.end(call)
                    self.assertEqual(honest.status(small, seconds=60), (0, ""))
                    self.assertIsNone(honest.status(large, seconds=1))
                    connection.close()
                    self.assertEqual(honest.status(large, seconds=60)[0], INVALID_ARGUMENT)


def headers_without_end(connection, more):
    """How many bytes of `more` headers went out before the server closed the connection, or 64 MiB."""
    sent = 0
    try:
        connection.sendall(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 0, 1, literal(":path", RUN)))
        while sent < 64 * MIB:
            connection.sendall(more)
            sent += len(more)
    except OSError:
        pass
    return sent


class HeadersTest(unittest.TestCase):
    LONG = frame(CONTINUATION, 0, 1, literal("x", "y" * 100) * 100)
    EMPTY = frame(CONTINUATION, 0, 1) * 1000
    ONE_BYTE_EACH = b"".join(frame(CONTINUATION, 0, 1, byte.to_bytes(1, "big")) for byte in literal("x", "y" * 100)) * 10

    def cut_off(self, server):
        with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=30) as page:
            return int(re.search(r'gridclock_connections_total\{result="cut_off_headers"\} (\d+)', page.read().decode())[1])

    def hold(self, server, connect, client):
        before = resident_mib(server)
        for more in (self.LONG, self.EMPTY, self.ONE_BYTE_EACH):
            with connect() as connection:
                self.assertLess(headers_without_end(connection, more), 32 * MIB)  # Most of it in the system's buffers.
        self.assertLess(resident_mib(server), before + 16)
        self.assertEqual(client().returncode, 0)
        end = time.monotonic() + 60
        while self.cut_off(server) < 3 and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(self.cut_off(server), 3)
        self.assertIn("connections_cut_off", server.log())

    def test_headers_without_an_end_close_their_connection(self):
        with tokens("honest") as folder, Server(BIN, NOTHING_WARMED, f"--token-file={folder / 'tokens'}") as server:
            self.hold(server, lambda: socket.create_connection(("127.0.0.1", port_of(server)), timeout=60),
                      lambda: run_square(server, f"--token-file={folder / 'honest'}"))

    def test_so_under_tls(self):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = pathlib.Path(folder) / "server.pem", pathlib.Path(folder) / "server.key"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                            "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
                           check=True, capture_output=True)
            with Server(BIN, NOTHING_WARMED, f"--tls-cert={certificate}", f"--tls-key={key}") as server:
                trust = f"--tls-ca={certificate}", "--tls-name=localhost"

                def connect():
                    return context.wrap_socket(socket.create_connection(("127.0.0.1", port_of(server)), timeout=60))

                # Encrypted bytes look like anything, at times like headers.
                for _ in range(400):
                    connect().close()
                load = subprocess.run([BIN / "gridclock", "--server", server.grpc, *trust, "load", "copy", "x=randn:f32[4M]",
                                       "--generate", "client", "--rate", "20", "--concurrency", "4"], capture_output=True,
                                      text=True, timeout=120)
                self.assertEqual(load.returncode, 0, load.stderr)
                self.assertEqual(self.cut_off(server), 0)
                self.hold(server, connect, lambda: run_square(server, *trust))


if __name__ == "__main__":
    unittest.main()
