"""Calls that gRPC itself refuses, by what the server writes: refused_test.py BIN_FOLDER.

A client of gRPC may not hear all of it: the server closes the connection behind some answers, and a write that fails
then counts as UNAVAILABLE.
"""
import pathlib
import re
import sys
import unittest
import urllib.request
import zlib
from unittest import mock

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

from http2 import Connection, message  # noqa: E402
from server import Server  # noqa: E402

RUN = "/gridclock.v1.KernelService/Run"
CHECK = "/grpc.health.v1.Health/Check"  # Of whom nobody is asked for a token.
EMPTY = b"\x0a\x05empty"  # RunRequest{kernel: "empty"}
MIB = 1 << 20
OK, INVALID_ARGUMENT, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNIMPLEMENTED = 0, 3, 4, 8, 12


def zeros(size, format_bits):
    """So many MiB, compressed a thousand times smaller."""
    packer = zlib.compressobj(9, zlib.DEFLATED, format_bits)
    return b"".join([*(packer.compress(bytes(MIB)) for _ in range(size)), packer.flush()])


class Refused(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Server(BIN, "--arena-warm-bytes=0"))

    def connect(self):
        return Connection(int(self.server.grpc.rsplit(":", 1)[1]))

    def answer(self, connection, sent, *fields):
        """Of Run: gRPC's code and text."""
        call = connection.begin(RUN, more=fields)
        connection.send(call, sent)
        connection.end(call)
        return connection.status(call, seconds=60)

    def assert_is_well(self):
        with self.connect() as another:
            self.assertEqual(self.answer(another, message(EMPTY)), (OK, ""))

    def peak(self):
        """The most memory that the server has had, in bytes."""
        status = pathlib.Path(f"/proc/{self.server.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024

    def jobs(self):
        """How many have ended, however."""
        with urllib.request.urlopen(f"http://{self.server.metrics}/metrics", timeout=30) as page:
            return sum(map(int, re.findall(r"gridclock_kernel_runs_total\{.*\} (\d+)", page.read().decode())))

    def test_b12_a_compressed_message_is_refused_before_it_is_unpacked(self):
        self.assert_is_well()
        for name, format_bits in (("gzip", 31), ("deflate", 15)):
            bomb, before = message(zeros(256, format_bits), compressed=True), self.peak()
            with self.connect() as connection:
                self.assertEqual(self.answer(connection, bomb, ("grpc-encoding", name)),
                                 (UNIMPLEMENTED, f"Compression algorithm '{name}' is disabled."))
            self.assertLess(self.peak() - before, 32 * MIB, name)
            self.assert_is_well()

    # gRPC 1.51 would let a client send all of it first.
    def test_b11_of_a_message_that_is_too_long_little_more_than_the_longest_is_taken(self):
        self.assert_is_well()
        most = 2 * (4 * MIB + 64 * 1024)  # Twice --limit-message-bytes.
        for path in (RUN, CHECK):
            for size in (most + 2, 64 * MIB, 0xffffffff):
                before = self.peak()
                with self.connect() as connection:
                    call = connection.begin(path)
                    taken = connection.send(call, message(b"")[:1] + size.to_bytes(4, "big") + bytes(64 * MIB), patience=10)
                    self.assertEqual(connection.status(call, seconds=60),
                                     (RESOURCE_EXHAUSTED, f"Received message larger than max ({most + 1} vs. {most})"))
                self.assertLess(taken, most + 2 * MIB)
                self.assertLess(self.peak() - before, 32 * MIB, (path, size))
        self.assert_is_well()

    def test_b11_what_comes_before_its_headers_hides_no_length(self):
        with self.connect() as connection:
            connection.write_ahead(message(bytes(8 * MIB))[:5])
            call = connection.begin(CHECK)
            taken = connection.send(call, b"\0\xff\xff\xff\xff" + bytes(64 * MIB), patience=10)
            self.assertEqual(connection.status(call, seconds=60)[0], RESOURCE_EXHAUSTED)
        self.assertLess(taken, 16 * MIB)
        self.assert_is_well()

    def test_b11_a_connection_outlasts_many_calls_that_ended_amid_their_message(self):
        small = "--limit-message-bytes=32K", "--limit-chunk-bytes=16K", "--limit-inline-bytes=4K", "--limit-streams=16"
        with (Server(BIN, "--arena-warm-bytes=0", *small) as server,
              Connection(int(server.grpc.rsplit(":", 1)[1])) as connection):
            for _ in range(500):
                call = connection.begin(RUN)
                connection.send(call, b"\0\xff\xff\xff\xff" + bytes(128 << 10), patience=10)
                self.assertEqual(connection.status(call, seconds=60)[0], RESOURCE_EXHAUSTED)
            self.assertEqual(self.answer(connection, message(EMPTY)), (OK, ""))

    # gRPC 1.51 takes an encoding that it does not know for none, and tells nobody which it was.
    def test_b13_an_encoding_that_nobody_knows_is_none(self):
        with self.connect() as connection:
            snappy = ("grpc-encoding", "snappy")
            self.assertEqual(self.answer(connection, message(EMPTY), snappy), (OK, ""))
            code, text = self.answer(connection, message(b"\xff\xff", compressed=True), snappy)
            self.assertEqual(code, INVALID_ARGUMENT, text)
            self.assertIn("cannot parse gridclock.v1.RunRequest", text)
        self.assert_is_well()

    # Behind an answer: the client has heard of the bound, and said so.
    def test_b14_metadata_beyond_its_limit_is_refused(self):
        for size in (9000, 70000):
            with self.connect() as connection:
                self.assertEqual(self.answer(connection, message(EMPTY)), (OK, ""))
                self.assertEqual(self.answer(connection, message(EMPTY), ("x-long", "a" * size)),
                                 (RESOURCE_EXHAUSTED, "received initial metadata size exceeds limit"))
            self.assert_is_well()

    # To gRPC, which rounds up, it passes within a millisecond: a request that came with the headers could be faster.
    def test_d15_a_call_whose_deadline_has_passed_makes_no_job(self):
        with self.connect() as connection:
            call = connection.begin(RUN, more=[("grpc-timeout", "0n")])
            code, text = connection.status(call, seconds=60)
            self.assertEqual(code, DEADLINE_EXCEEDED, text)
            connection.send(call, message(EMPTY))
            connection.end(call)
            self.assertEqual(self.answer(connection, message(b"")), (INVALID_ARGUMENT, mock.ANY))
        self.assertEqual(self.jobs(), 0)
        self.assert_is_well()
        self.assertEqual(self.jobs(), 1)


if __name__ == "__main__":
    unittest.main()
