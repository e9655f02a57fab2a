"""The dashboards as files, and that the check of them sees what is planted. No Grafana, no Prometheus."""
import copy
import unittest

import dashboards

NAMES = dashboards.metric_names()
GOOD = dashboards.load(dashboards.FOLDER / "overview.json")


def planted(change):
    dashboard = copy.deepcopy(GOOD)
    change(dashboard, dashboards.panels(dashboard)[0])
    return "\n".join(dashboards.problems(dashboard, NAMES))


class DashboardsTest(unittest.TestCase):
    def test_the_dashboards_are_right(self):
        self.assertEqual({path.stem for path in dashboards.files()}, {"overview", "kernel", "fleet"})
        for path in dashboards.files():
            self.assertEqual(dashboards.problems(dashboards.load(path), NAMES), [], path.name)

    def test_their_ids_differ(self):
        ids = [dashboards.load(path)["uid"] for path in dashboards.files()]
        self.assertEqual(len(set(ids)), len(ids))

    def test_a_misspelt_key_is_seen(self):
        said = planted(lambda _, panel: panel["gridPos"].update(width=3))
        self.assertIn("panels[1].gridPos.width is no key", said)

    def test_a_missing_key_is_seen(self):
        self.assertIn("panels[1].title is missing", planted(lambda _, panel: panel.pop("title")))

    def test_a_wrong_type_is_seen(self):
        said = planted(lambda dashboard, _: dashboard.update(schemaVersion="39"))
        self.assertIn("dashboard.schemaVersion is '39', want", said)
        self.assertIn("want one of", planted(lambda _, panel: panel.update(type="graph")))
        self.assertIn(".instant is 1, want", planted(lambda _, panel: panel["targets"][0].update(instant=1)))

    def test_panels_that_overlap_or_leave_the_grid_are_seen(self):
        self.assertIn("lies on", planted(lambda _, panel: panel["gridPos"].update(w=8)))
        self.assertIn("leaves the 24 columns", planted(lambda _, panel: panel["gridPos"].update(w=25)))

    def test_panels_that_are_repeated_wrongly_are_seen(self):
        self.assertIn("which is no variable of several values", planted(lambda _, panel: panel.update(repeat="devices")))
        self.assertIn("does not say so", planted(lambda _, panel: panel.update(repeat="instance")))

    def test_a_panel_of_one_node_that_is_repeated_by_the_devices_of_all_is_seen(self):
        dashboard = dashboards.load(dashboards.FOLDER / "kernel.json")
        for panel in dashboards.panels(dashboard):
            if panel.get("repeat"):
                panel.update(repeat="device", title="On $device of $node")
        self.assertEqual(dashboards.problems(dashboard, NAMES), ["'On $device of $node' is of one node and repeated by the values of all"])

    def test_a_heatmap_of_several_nodes_is_seen(self):
        heatmap = {"cellGap": 1, "calculate": False, "yAxis": {"unit": "s"}, "legend": {"show": True},
                   "color": {"mode": "scheme", "scheme": "Viridis", "steps": 64, "reverse": False},
                   "tooltip": {"mode": "single", "yHistogram": True}}

        def with_query(text):
            def change(_, panel):
                panel.update(type="heatmap", options=heatmap)
                panel["targets"][0].update(expr=text)
            return planted(change)
        buckets = "(rate(gridclock_rpc_duration_seconds_bucket[$__rate_interval]))"
        self.assertIn("puts nodes together", with_query("sum by (method, le) " + buckets))
        self.assertIn("puts nodes together", with_query("sum" + buckets))
        self.assertEqual(with_query("sum by (instance, le) " + buckets), "")

    def test_a_fixed_data_source_is_seen(self):
        said = planted(lambda _, panel: panel["datasource"].update(uid="prom"))
        self.assertIn("not the variable", said)

    def test_queries_that_cannot_be_right_are_seen(self):
        def with_query(text):
            return planted(lambda _, panel: panel["targets"][0].update(expr=text))
        self.assertIn("which is no metric", with_query("sum(gridclock_rpc_request_total)"))
        self.assertIn("which is no variable", with_query('sum(up{job=~"$jobs"})'))
        self.assertIn("makes up data", with_query("sum(up) or vector(0)"))
        self.assertIn("a range of its own", with_query("sum(rate(gridclock_rpc_requests_total[1m]))"))


if __name__ == "__main__":
    unittest.main()
