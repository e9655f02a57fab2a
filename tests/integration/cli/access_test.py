"""Who calls and where to: certificates and tokens of the command line. access_test.py BIN_FOLDER."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

from server import Server  # noqa: E402


class TlsTest(unittest.TestCase):
    MAKE = ("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem && "
            "printf 'subjectAltName=DNS:localhost' > ext && "
            "openssl req -newkey rsa:2048 -nodes -subj /CN=server -keyout server.key -out server.csr && "
            "openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out server.pem && "
            "openssl req -newkey rsa:2048 -nodes -subj /CN=client -keyout client.key -out client.csr && "
            "openssl x509 -req -in client.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out client.pem && "
            "openssl x509 -req -in client.csr -signkey client.key -days 2 -out stranger.pem")

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        subprocess.run(self.MAKE, shell=True, cwd=self.folder, check=True, capture_output=True)

    def serve(self, *flags):
        return self.enterContext(Server(BIN, f"--tls-cert={self.folder / 'server.pem'}",
                                        f"--tls-key={self.folder / 'server.key'}", *flags))

    def test_a_client_shows_its_certificate_where_it_must(self):
        server = self.serve(f"--tls-client-ca={self.folder / 'ca.pem'}")

        def ping(*flags, **variables):
            return subprocess.run([BIN / "gridclock", "ping", "--server", server.grpc, "--tls-name", "localhost",
                                   "--tls-ca", "ca.pem", *flags], env={**os.environ, **variables}, cwd=self.folder,
                                  capture_output=True, text=True, timeout=60).returncode

        self.assertEqual(ping("--tls-cert", "client.pem", "--tls-key", "client.key"), 0)
        self.assertEqual(ping(GRIDCLOCK_TLS_CERT="client.pem", GRIDCLOCK_TLS_KEY="client.key"), 0)
        self.assertEqual(ping(), 3)
        self.assertEqual(ping("--tls-cert", "stranger.pem", "--tls-key", "client.key"), 3)  # Of no authority that it knows.

    def test_the_roots_are_the_systems_or_those_that_are_named(self):
        folder, server = self.folder, self.serve()

        def call(address, *flags, **variables):
            return subprocess.run([BIN / "gridclock", "list", "--server", address, *map(str, flags)],
                                  env={**os.environ, **variables}, capture_output=True, text=True, timeout=60)

        def exit_code(*flags, **variables):
            return call(server.grpc, *flags, **variables).returncode

        system = {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(folder / "ca.pem")}  # What gRPC takes for the system's.
        self.assertEqual(exit_code("--tls", "--tls-name", "localhost", **system), 0)
        self.assertEqual(exit_code("--tls-name", "localhost", GRIDCLOCK_TLS="1", **system), 0)
        self.assertEqual(exit_code("--tls", "--tls-name", "localhost"), 3)  # An authority that nobody knows.
        self.assertEqual(exit_code("--tls-ca", folder / "ca.pem", "--tls-name", "localhost"), 0)
        self.assertEqual(exit_code(**system), 3)  # In plain text.

        def says(text, *said):
            self.assertIn(text, call(*said).stderr)
            self.assertEqual(call(*said).stderr.count("\n"), 1, "gRPC's log is no part of the answer")

        says("or it speaks TLS: --tls-ca FILE", server.grpc)
        says("name its authority with --tls-ca FILE", server.grpc, "--tls")
        says("--tls-name NAME", server.grpc, "--tls-ca", folder / "ca.pem")
        says("no CERTIFICATE in PEM", server.grpc, "--tls-ca", folder / "server.key")
        says("is no gRPC port", server.metrics)


class TokenHashTest(unittest.TestCase):
    def test_a_short_token_is_warned_of(self):
        def said(token):
            return subprocess.run([BIN / "gridclock-server", "--hash-token"], input=token, capture_output=True, text=True,
                                  check=True, timeout=60)

        self.assertIn("a token of 5 characters can be guessed", said("short\n").stderr)
        self.assertRegex(said("short\n").stdout, r"^sha256:\w+:\w+\n$")
        self.assertEqual(said("0123456789abcdef\n").stderr, "")


class TokenTest(unittest.TestCase):
    def test_doctor_says_how_to_give_a_token(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        hashed = subprocess.run([BIN / "gridclock-server", "--hash-token"], input="0123456789abcdef\n", capture_output=True,
                                text=True, check=True, timeout=60).stdout
        (folder / "tokens").write_text(f"ann read,run {hashed}")
        with Server(BIN, f"--token-file={folder / 'tokens'}") as server:
            done = subprocess.run([BIN / "gridclock", "doctor", "--server", server.grpc], capture_output=True, text=True,
                                  timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "server +NO +missing: no kernel can run .*; give a token with --token-file FILE or ")


if __name__ == "__main__":
    unittest.main()
