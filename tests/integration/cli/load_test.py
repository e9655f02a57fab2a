"""gridclock load against a real server: load_test.py BIN_FOLDER."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

from prometheus import fetch, wait_until  # noqa: E402
from server import Server  # noqa: E402


class LoadTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(BIN))

    def json(self, *args):
        done = subprocess.run([BIN / "gridclock", *map(str, args), "--json"], capture_output=True, text=True, timeout=120,
                              env=dict(os.environ, GRIDCLOCK_SERVER=self.server.grpc))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def test_load_reports_rate_and_latency(self):
        result = self.json("load", "square", "--shape", "N=16", "--rate", 100, "--seconds", 1)  # Fewer than may wait, however late they come.
        self.assertEqual(result["requests"], 100)
        self.assertEqual(result["ok"], 100, result)
        self.assertEqual(result["rate_wanted"], 100)
        self.assertGreater(result["rate_achieved"], 0)
        self.assertLessEqual(result["rate_achieved"], 100)
        self.assertGreater(result["latency_ns"]["p90"], 0)
        self.assertIsNone(result["latency_ns"]["p99"])  # 100 do not tell it.

    def test_the_rate_of_a_load_is_over_the_time_that_it_was_for(self):
        result = self.json("load", "square", "--shape", "N=16", "--rate", 1, "--seconds", 1)
        self.assertEqual(result["ok"], 1, result)
        self.assertLessEqual(result["rate_achieved"], 1)


class FullQueueTest(unittest.TestCase):
    def test_load_counts_refusals_and_run_tries_again(self):
        with Server(BIN, "--limit-queue=2") as server:
            environment = dict(os.environ, GRIDCLOCK_SERVER=server.grpc)

            def start(*args):
                return subprocess.Popen([BIN / "gridclock", *map(str, args), "--json"], env=environment,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

            # 8 s of work a second, and places for two beside those that the worker holds.
            load = start("load", "spin", "ns=20000000", "--rate", 400, "--seconds", 2)
            result = json.loads(load.communicate(timeout=120)[0])
            self.assertGreater(result["errors"].get("RESOURCE_EXHAUSTED QUEUE_FULL", 0), 0, result)

            # One runs, two wait: large ones, of which a worker holds one. On a busy machine the first may end before the
            # last one comes, or before the run that is refused.
            for _ in range(5):
                others = [start("run", "spin", "ns=3000000000") for _ in range(3)]
                full = False
                with contextlib.suppress(AssertionError):
                    full = wait_until(lambda: 'gridclock_usage{name="queue"} 2' in fetch(server.metrics, "/metrics")[1], 10,
                                      "the queue is full")
                run = start("run", "spin", "ns=1000")
                out, err = run.communicate(timeout=120)
                self.assertEqual(run.returncode, 0, out + err)
                attempts = json.loads(out)["attempts"]
                for other in others:
                    self.assertEqual(other.wait(120), 0)
                    other.communicate()
                if full and attempts > 1:
                    break
            self.assertTrue(full)
            self.assertGreater(attempts, 1)

    def test_load_does_not_take_refusals_for_a_server_that_falls_behind(self):
        behind = "these latencies grow with --seconds"

        def said(limit, seconds):
            load = [BIN / "gridclock", "load", "spin", "ns=5000000", "--rate", "400", "--seconds", str(seconds)]  # 2 s of work a second.
            with Server(BIN, f"--limit-queue={limit}", f"--limit-client-queue={limit}") as server:
                environment = dict(os.environ, GRIDCLOCK_SERVER=server.grpc)
                done = subprocess.run(load, env=environment, capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stderr)
                return done.stdout

        # On a machine that is busier at one end of the load than at the other, latencies may look so by chance.
        def said_as_it_is(limit, seconds, falls_behind):
            for _ in range(3):
                text = said(limit, seconds)
                if (behind in text) == falls_behind:
                    break
            return text

        refused = said_as_it_is(limit=2, seconds=15, falls_behind=False)
        self.assertIn("RESOURCE_EXHAUSTED QUEUE_FULL", refused)
        self.assertNotIn(behind, refused)
        self.assertIn(behind, said_as_it_is(limit=10000, seconds=3, falls_behind=True))


if __name__ == "__main__":
    unittest.main()
