"""What large tensors are held against: raw TCP, and a peer that must have been there."""
import pathlib
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402: beside this file.
from speed import bulk  # noqa: E402

TOLD = {"in_seconds": 1, "back_seconds": 1, "seconds": 2, "beside_p50_us": 3, "idle_p50_us": 1}


class Bulk(unittest.TestCase):
    def measure(self, peer):
        """By name; `peer` is the address of Flight's server."""
        with mock.patch.multiple(bulk, Server=mock.MagicMock(), Flight=mock.MagicMock(), run_json=lambda *_: TOLD):
            bulk.Flight.return_value.__enter__.return_value = types.SimpleNamespace(address=peer)
            return {line.name: line for line in bulk.measure(bench.Config(pathlib.Path(), rounds=2))}

    def test_flight_stands_beside_the_goals_and_cannot_fail_by_its_figure(self):
        lines = self.measure("grpc://127.0.0.1:1")
        self.assertEqual(bench.untold(("bulk",), lines.values()), [])
        self.assertEqual({name: line.verdict for name, line in lines.items()}, {
            "bulk.in.256M": "FAIL", "bulk.back.256M": "PASS", "bulk.flight.256M": "info",
            "bulk.in.1G": "FAIL", "bulk.back.1G": "PASS", "bulk.flight.1G": "info", "bulk.beside": "PASS"})

    def test_without_pyarrow_its_rows_are_missed(self):
        lines = self.measure(None)
        self.assertEqual([(lines[name].verdict, lines[name].skipped) for name in ("bulk.flight.256M", "bulk.flight.1G")],
                         [("FAIL", "no pyarrow")] * 2)

    def test_rows_that_no_line_tells_are_missed(self):
        lines = self.measure("grpc://127.0.0.1:1")
        del lines["bulk.flight.1G"]
        self.assertEqual(bench.untold(("bulk",), lines.values()), ["bulk.flight.1G"])


if __name__ == "__main__":
    unittest.main()
