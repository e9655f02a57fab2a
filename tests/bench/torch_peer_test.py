"""Which GPU's clock the peer tells, and that its calls run while it is read: with a PyTorch and an NVML that are made
up. And that what it calls compiled is: with PyTorch itself, where there is one."""
import ctypes
import functools
import importlib.util
import pathlib
import sys
import threading
import types
import unittest
from unittest import mock

PEER = pathlib.Path(__file__).resolve().parent / "speed/torch_peer.py"


def load_peer():
    spec = importlib.util.spec_from_file_location("torch_peer", PEER)
    peer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peer)
    return peer


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
        with mock.patch.dict(sys.modules, {"torch": self.torch}):
            self.peer = load_peer()
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


@unittest.skipUnless(importlib.util.find_spec("torch"), "no PyTorch")
class Compiled(unittest.TestCase):
    """What is traced is then called as it is, by the backend `eager`: a compiler of C++ takes seconds for each."""

    def setUp(self):
        self.peer = load_peer()
        self.torch = self.peer.torch
        self.peer.compiler().reset()
        self.tensors = [self.torch.ones(8) for _ in range(3)]
        traced = functools.partial(self.torch.compile, backend="eager")
        self.enterContext(mock.patch.object(self.torch, "compile", traced))

    def graphs(self):
        return self.peer.compiler().utils.counters["stats"]["unique_graphs"]

    def test_every_expression_is_compiled_however_many_came_before(self):
        before = self.graphs()
        for i in range(20):
            self.assertEqual(self.peer.call_of(f"x * {i}", self.tensors, compile_it=True)().tolist(), [i] * 8)
        self.assertEqual(self.graphs() - before, 20)

    def test_what_is_compiled_is_kept(self):
        for _ in range(3):
            self.peer.call_of("x + y", self.tensors, compile_it=True)()
        before = self.graphs()
        self.peer.call_of("x + y", self.tensors, compile_it=True)()
        self.assertEqual(self.graphs(), before)

    def test_where_the_compiler_gives_up_nothing_is_timed(self):
        with mock.patch.object(self.peer, "MOST_COMPILATIONS", 1), self.assertRaises(Exception) as raised:
            for n in range(1, 9):
                self.peer.compiled_once(n, self.peer.gelu_written_out, self.torch.ones(n), dynamic=False)
        self.assertIn("recompile_limit", str(raised.exception))

    def test_eager_calls_are_not_called_compiled(self):
        with mock.patch.object(self.torch, "compile", lambda function, **_: function), \
                self.assertRaisesRegex(RuntimeError, "want a compiled graph of .*x - y"):
            self.peer.call_of("x - y", self.tensors, compile_it=True)

    def test_a_break_in_the_graph_is_an_error(self):
        with self.assertRaises(self.peer.compiler().exc.Unsupported):
            self.peer.call_of("torch._dynamo.graph_break() or x", self.tensors, compile_it=True)


if __name__ == "__main__":
    unittest.main()
