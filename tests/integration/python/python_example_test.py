"""The example client against a real server: python_example_test.py EXAMPLE_FOLDER BIN_FOLDER."""

import pathlib
import subprocess
import sys
import unittest

EXAMPLE, BIN = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
sys.path.insert(0, str(EXAMPLE))

import grpc  # noqa: E402
import numpy as np  # noqa: E402
from gridclock_client import Client, array_of, bytes_of, details_of, may_retry, spec_of  # noqa: E402
from google.rpc import error_details_pb2  # noqa: E402
from google.protobuf import duration_pb2  # noqa: E402
from gridclock.v1 import types_pb2  # noqa: E402
from server import Server  # noqa: E402


class FailedCall(grpc.RpcError):
    def __init__(self, code, *details):
        self._code = code
        status = error_details_pb2.Status()
        for detail in details:
            status.details.add().Pack(detail)
        self._metadata = [("grpc-status-details-bin", status.SerializeToString())]

    def code(self):
        return self._code

    def trailing_metadata(self):
        return self._metadata


HALF_A_SECOND = error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(nanos=500_000_000))


class ValuesTest(unittest.TestCase):
    def test_arrays_survive_the_way_there_and_back(self):
        dense = np.arange(6, dtype=np.int32).reshape(2, 3)
        for array in (dense, dense.T, dense.astype(">i4"), np.float64(2.5).reshape(()),
                      np.zeros((0, 4), np.float16)):
            back = array_of(spec_of(array), bytes(bytes_of(array)))
            np.testing.assert_array_equal(back, array)
            self.assertEqual(back.shape, array.shape)

    def test_details_are_read_from_the_trailer(self):
        info = error_details_pb2.ErrorInfo(reason="QUEUE_FULL", domain="gridclock")
        error = FailedCall(grpc.StatusCode.RESOURCE_EXHAUSTED, info, HALF_A_SECOND)
        self.assertEqual(details_of(error), ("QUEUE_FULL", 0.5))

    def test_only_what_the_server_calls_safe_is_retried(self):
        self.assertTrue(may_retry(FailedCall(grpc.StatusCode.UNAVAILABLE, HALF_A_SECOND)))
        self.assertTrue(may_retry(FailedCall(grpc.StatusCode.RESOURCE_EXHAUSTED, HALF_A_SECOND)))
        self.assertFalse(may_retry(FailedCall(grpc.StatusCode.UNAVAILABLE)))
        self.assertFalse(may_retry(FailedCall(grpc.StatusCode.FAILED_PRECONDITION, HALF_A_SECOND)))
        self.assertFalse(may_retry(FailedCall(grpc.StatusCode.INVALID_ARGUMENT)))


class ServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(BIN)
        cls.server.__enter__()
        cls.addClassCleanup(cls.server.__exit__, None, None, None)

    def test_the_example_prints_kernels_samples_and_a_summary(self):
        run = subprocess.run(
            [sys.executable, EXAMPLE / "run_kernel.py", "--server", self.server.grpc],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
        for words in ("softmax", "run: float32 (4, 8)", "  sample ", "softmax.", "  median ",
                      "stream_run: float32 (2048, 1024)"):
            self.assertIn(words, run.stdout)

    def test_softmax_is_what_numpy_says(self):
        x = np.array([[1, 2, 3], [-1, 0, 1000]], np.float32)
        with Client(self.server.grpc) as client:
            outputs, summary = client.run("softmax", {"x": x})
        e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(outputs["y"], e / e.sum(axis=1, keepdims=True), rtol=1e-5)
        self.assertEqual((summary.kernel, summary.device), ("softmax", "cpu"))
        self.assertEqual(len(summary.timing.samples_ns), 1)

    def test_attributes_and_streams(self):
        x = np.random.default_rng(3).standard_normal((1000, 700))
        with Client(self.server.grpc) as client:
            outputs, _ = client.stream_run("sum", {"x": x}, attributes={"axis": 0})
        np.testing.assert_allclose(outputs["y"], x.sum(axis=0), rtol=1e-9, atol=1e-9)

    def test_live_samples_are_those_of_the_summary(self):
        seen = []

        def take(samples):
            if not samples.warmup:
                seen.extend(samples.samples_ns)

        measure = types_pb2.MeasureOptions(min_samples=20, max_samples=20)
        x = np.ones((64, 1024), np.float32)
        with Client(self.server.grpc) as client:
            _, summary = client.stream_run("softmax", {"x": x}, on_samples=take, measure=measure)
        self.assertEqual(seen, list(summary.timing.samples_ns))
        self.assertEqual(len(seen), 20)

    def test_a_wrong_name_is_an_error_that_is_not_retried(self):
        with Client(self.server.grpc) as client, self.assertRaises(grpc.RpcError) as caught:
            client.run("softmaks", {"x": np.ones(3, np.float32)})
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
        self.assertIn("softmax", caught.exception.details())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
