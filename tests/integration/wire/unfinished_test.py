"""Clients that begin messages and never end them: unfinished_test.py BIN_FOLDER."""
import pathlib
import subprocess
import sys
import threading
import unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

from http2 import Connection, unfinished  # noqa: E402
from server import Server  # noqa: E402

RUN = "/gridclock.v1.KernelService/Run"
SECONDS = 12


class UnfinishedTest(unittest.TestCase):
    def press(self, port, over):
        """More than the server may take, again and again."""
        while not over.is_set():
            with Connection(port) as connection:
                while not over.is_set() and not connection.ended:
                    taken = connection.send(connection.begin(RUN), unfinished(4 << 20))
                    with self.counting:
                        self.taken += taken

    def test_messages_without_an_end_do_not_end_the_server(self):
        self.taken, self.counting = 0, threading.Lock()
        with Server(BIN, "--limit-rpc-bytes=64M") as server:
            over = threading.Event()
            port = int(server.grpc.rsplit(":", 1)[1])
            clients = [threading.Thread(target=self.press, args=(port, over)) for _ in range(6)]
            for client in clients:
                client.start()
            try:
                subprocess.run([BIN / "gridclock", "--server", server.grpc, "load", "copy", "x=randn:f32[1M]",
                                "--generate", "client", "--rate", "20", "--seconds", str(SECONDS)],
                               stdout=subprocess.DEVNULL, timeout=120)  # That some of its calls fail is no matter here.
            finally:
                over.set()
                for client in clients:
                    client.join()
            self.assertGreater(self.taken, 64 << 20)
            after = subprocess.run([BIN / "gridclock", "--server", server.grpc, "run", "square", "x=ones:f32[4]"],
                                   capture_output=True, text=True, timeout=60)
            self.assertEqual(after.returncode, 0, after.stderr)


if __name__ == "__main__":
    unittest.main()
