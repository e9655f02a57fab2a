"""Which GPU's clock the peer tells, and that its calls run while it is read: with a PyTorch and an NVML that are made up."""
import ctypes
import importlib.util
import pathlib
import sys
import threading
import types
import unittest
from unittest import mock

PEER = pathlib.Path(__file__).resolve().parent / "speed/torch_peer.py"


class Nvml:
    """Two GPUs; PyTorch sees the second one alone."""

    def __init__(self, called):
        self.called, self.asked = called, []

    def nvmlInit_v2(self):
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid, handle):
        self.asked.append(uuid)
        handle._obj.value = 2  # noqa: SLF001: what byref() holds.
        return 0 if uuid == b"GPU-2" else 6

    def nvmlDeviceGetClockInfo(self, handle, kind, mhz):
        for _ in range(3):  # Only calls that go on let it end.
            self.called.clear()
            if not self.called.wait(60):
                return 999
        mhz._obj.value = 1000 + handle.value + kind  # noqa: SLF001
        return 0


class TorchPeer(unittest.TestCase):
    def setUp(self):
        self.torch = mock.MagicMock()
        self.torch.cuda.get_device_properties.return_value = types.SimpleNamespace(uuid="2")
        spec = importlib.util.spec_from_file_location("torch_peer", PEER)
        self.peer = importlib.util.module_from_spec(spec)
        with mock.patch.dict(sys.modules, {"torch": self.torch}):
            spec.loader.exec_module(self.peer)
        self.called = threading.Event()
        self.nvml = Nvml(self.called)

    def test_the_clock_is_read_while_calls_run_on_the_very_gpu(self):
        clock = self.peer.Clock(lambda: self.nvml)
        self.assertEqual(clock.mhz_under(self.called.set), 1003)
        self.assertEqual(self.nvml.asked, [b"GPU-2"])
        self.torch.cuda.synchronize.assert_called_once()

    def test_a_prefix_that_is_there_is_not_put_twice(self):
        self.torch.cuda.get_device_properties.return_value.uuid = "GPU-2"
        self.assertEqual(self.peer.Clock(lambda: self.nvml).mhz_under(self.called.set), 1003)

    def test_where_nvml_knows_it_not_or_is_not_there_no_clock_is_told(self):
        self.torch.cuda.get_device_properties.return_value.uuid = "3"
        self.assertIsNone(self.peer.Clock(lambda: self.nvml).mhz_under(self.called.set))
        self.assertIsNone(self.peer.Clock(lambda: ctypes.CDLL("libno-such-library.so")).mhz_under(self.called.set))


if __name__ == "__main__":
    unittest.main()
