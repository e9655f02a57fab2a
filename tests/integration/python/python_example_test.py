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
from gridclock_client import Client, Outputs, array_of, bytes_of, details_of, may_retry, spec_of  # noqa: E402
from google.rpc import error_details_pb2  # noqa: E402
from google.protobuf import duration_pb2  # noqa: E402
from gridclock.v1 import kernels_pb2, types_pb2  # noqa: E402
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

    def test_bits_of_what_numpy_does_not_know(self):
        for dtype, bits in ((types_pb2.BF16, np.array([[0x3F80, 0x4000]], np.uint16)),
                            (types_pb2.F8E4M3, np.array([0x38], np.uint8)),
                            (types_pb2.F8E5M2, np.array([0x3C], np.uint8))):
            spec = spec_of(bits, dtype)
            self.assertEqual(spec.dtype, dtype)
            np.testing.assert_array_equal(array_of(spec, bytes(bytes_of(bits))), bits)
        with self.assertRaisesRegex(ValueError, "BF16 has 2 bytes"):
            spec_of(np.ones(3, np.float32), types_pb2.BF16)

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


F32X2 = types_pb2.TensorSpec(dtype=types_pb2.F32, dims=[2])
TWO = np.array([1, 2], np.float32)


class OutputsTest(unittest.TestCase):
    def outputs(self, *wishes):
        return Outputs(kernels_pb2.RunRequest(outputs=wishes))

    def test_a_whole_output_is_an_array(self):
        outputs = self.outputs()
        outputs.announce(kernels_pb2.Output(name="y", spec=F32X2))
        outputs.take("y", 0, TWO.tobytes()[:3])
        outputs.take("y", 3, TWO.tobytes()[3:])
        np.testing.assert_array_equal(outputs.arrays()["y"], TWO)

    def test_an_output_that_ends_early_is_an_error(self):
        outputs = self.outputs()
        outputs.announce(kernels_pb2.Output(name="y", spec=F32X2))
        outputs.take("y", 0, b"\0" * 7)
        with self.assertRaisesRegex(ValueError, "output 'y': 7 of 8 bytes"):
            outputs.arrays()

    def test_bytes_that_do_not_fit_are_an_error(self):
        for offset, size in ((1, 4), (0, 9), (8, 1)):
            outputs = self.outputs()
            outputs.announce(kernels_pb2.Output(name="y", spec=F32X2))
            with self.assertRaisesRegex(ValueError, "do not fit"):
                outputs.take("y", offset, b"\0" * size)
        with self.assertRaisesRegex(ValueError, "output 'z'"):
            outputs.take("z", 0, b"\0")

    def test_an_output_without_elements_is_whole_at_once(self):
        outputs = self.outputs()
        outputs.announce(kernels_pb2.Output(name="y", spec=types_pb2.TensorSpec(dtype=types_pb2.F32, dims=[0, 3])))
        self.assertEqual(outputs.arrays()["y"].shape, (0, 3))


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

    def test_the_example_names_the_address_where_no_server_answers(self):
        run = subprocess.run([sys.executable, EXAMPLE / "run_kernel.py", "--server", "127.0.0.1:1"],
                             capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertRegex(run.stderr, r"\A127\.0\.0\.1:1: [A-Z_]+: no server answers\n\Z")

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

    def test_what_does_not_come_back_is_no_array(self):
        x = np.ones(8, np.float32)
        with Client(self.server.grpc) as client:
            for sink in (kernels_pb2.OutputRequest.DISCARD, kernels_pb2.OutputRequest.CHECKSUM):
                wish = kernels_pb2.OutputRequest(name="y", sink=sink)
                for run in (client.run, client.stream_run):
                    outputs, summary = run("square", {"x": x}, outputs=[wish])
                    self.assertEqual((outputs, summary.kernel), ({}, "square"))

    def test_bf16(self):
        x = np.array([0x3F80, 0x4000, 0x4040], np.uint16)  # 1 2 3
        with Client(self.server.grpc) as client:
            for run in (client.run, client.stream_run):
                outputs, _ = run("square", {"x": x}, dtypes={"x": types_pb2.BF16})
                self.assertEqual(outputs["y"].tolist(), [0x3F80, 0x4080, 0x4110])  # 1 4 9

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
