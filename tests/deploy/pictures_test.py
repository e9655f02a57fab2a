#!/usr/bin/env python3
"""That a panel which shows nothing of its series is seen, whatever else is drawn in it. It needs requirements-deploy.txt."""
import pathlib
import tempfile
import unittest
from unittest import mock

import pictures

TIMES = range(100, 161)


def panel(kind, **defaults):
    return {"type": kind, "title": "one", "gridPos": {"x": 0, "y": 0, "w": 12, "h": 8}, "targets": [{"refId": "A"}],
            "fieldConfig": {"defaults": {"unit": "short", **defaults}, "overrides": []}}


def found(one, values, exemplars=(), labels="{}"):
    """What is said of a dashboard of this panel, whose series has these values."""
    dashboard = {"title": "planted", "panels": [one], "templating": {"list": []}}
    kept = {("planted", "one", "A"): {labels: list(zip(TIMES, values))}} if values else {}
    # Its time is told by whatever there is.
    kept["planted", "another", "A"] = {"{}": [(t, 1.0) for t in TIMES]}
    with tempfile.TemporaryDirectory() as folder:
        return pictures.draw(dashboard, "planted", kept, {("planted", "one"): exemplars}, pathlib.Path(folder) / "picture.png")


def off_scale(axes, *arguments):
    pictures.draw_lines(axes, *arguments)
    axes.set_ylim(10, 20)


class PicturesTest(unittest.TestCase):
    def test_a_line_is_seen_where_it_lies(self):
        for values in ([0.0] * 61, [5.0] * 61, [float(t % 7) for t in TIMES], [0.0] * 60 + [9.0]):
            self.assertEqual(found(panel("timeseries", min=0), values), [], values[-3:])

    def test_a_line_off_the_scale_is_missed_though_there_are_ticks_and_a_legend(self):
        with mock.patch.dict(pictures.DRAW, timeseries=off_scale):
            self.assertEqual(found(panel("timeseries"), [5.0 + t % 2 for t in TIMES]), ["one"])

    def test_exemplars_are_no_line(self):
        with mock.patch.dict(pictures.DRAW, timeseries=off_scale):
            self.assertEqual(found(panel("timeseries"), [5.0] * 61, [(t, 15.0) for t in TIMES]), ["one"])

    def test_a_table_with_a_head_alone_is_missed(self):
        self.assertEqual(found(panel("table"), [1.0] * 61, labels='{"device": "cpu"}'), [])
        hidden = {"transformations": [{"id": "organize", "options": {"excludeByName": {"Value": True}}}]}
        self.assertEqual(found({**panel("table"), **hidden}, [1.0] * 61, labels='{"device": ""}'), ["one"])

    def test_ticks_have_as_many_digits_as_tell_them_apart(self):
        self.assertEqual(pictures.places_for([0, 10, 20], "hertz"), 3)
        self.assertEqual(pictures.places_for([1.931e9, 1.932e9, 1.933e9], "hertz"), 4)

    def test_no_data_is_missed(self):
        self.assertEqual(found(panel("timeseries", min=0), []), ["one"])


if __name__ == "__main__":
    unittest.main()
