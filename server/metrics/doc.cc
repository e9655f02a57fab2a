#include "server/metrics/doc.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/metrics/catalogue.h"

namespace gridclock {
namespace {

constexpr char kIntro[] = R"md(# Metrics

This page is made from the table in `server/metrics/catalogue.cc`: `gridclock-metrics-doc > docs/metrics.md`. A test holds the two together.

`gridclock-server` serves them on a listener of its own (`--metrics-listen`, default `127.0.0.1:8471`): `/metrics` for Prometheus, `/healthz` (200 while the process lives), `/readyz` (200 while a device takes calls, ready or busy and not drained, and the server does not end, else 503), and pages for people ([operating.md](operating.md)).

```sh cpu
curl -s "http://${GRIDCLOCK_METRICS:-127.0.0.1:8471}/metrics" | grep gridclock_worker_up
```

A client has a second to send its request and three to read the answer, however it trickles; the write that is under way then may take one more, so that it holds one of 128 threads for five seconds at most: others are answered at once while fewer than 128 hang, and else as soon as one is cut off. Who opens more than 128 connections a second that say nothing makes scrapes and probes late, and in the end lost: bind it where only those who scrape can reach it. The page is answered in full, or is shorter than its `Content-Length` says.
`--metrics-listen none` turns it all off.

Prometheus takes it with:

```yaml cpu
scrape_configs:
  - job_name: gridclock
    static_configs: [{targets: ["127.0.0.1:8471"]}]
```

## Formats

Who scrapes says in its `Accept` header what it takes; nothing needs to be set here.

| format | carries | who asks for it |
| --- | --- | --- |
| text 0.0.4 | classic buckets | curl, promtool |
| OpenMetrics 1.0.0 | classic buckets, exemplars | every Prometheus |
| protobuf, delimited | classic buckets, native histograms of schema 3, exemplars | Prometheus that was told to take native histograms: 2.40 and newer with `--enable-feature=native-histograms`, 3.8 and newer with `scrape_native_histograms: true` |

A native histogram has eight buckets in each power of two, so that a quantile is at most 9.1 % off; one from classic buckets may be off by 60 %. Its queries have no `le`:

```promql cpu
histogram_quantile(0.99, sum by (kernel, device) (rate(gridclock_kernel_duration_seconds[5m])))
```

An exemplar of `gridclock_kernel_duration_seconds` names a run: `run_id="5e1f09c3-4711"` can be read at `/runs/5e1f09c3-4711` of the server that it came from, with its phases, while it is among the last 200 runs or the last 10,000 that a scrape named; the part before the dash is of one process, so that no other and none after a restart answers with a run of its own. A scrape names at most one new run for each bucket: with forty of them and a scrape every 15 s a link lives for an hour. An exemplar whose run is forgotten is left out. Prometheus keeps exemplars with `--enable-feature=exemplar-storage`. Of a native histogram 2.42 keeps one for each scrape, that of the first bucket that has one, so that the slowest launches are not linked.
)md";

constexpr char kQueries[] = R"md(
## Questions

Jobs per second, by kernel:

```promql cpu
sum by (kernel) (rate(gridclock_kernel_runs_total[5m]))
```

Median time of a launch, by kernel and device:

```promql cpu
histogram_quantile(0.5, sum by (le, kernel, device) (rate(gridclock_kernel_duration_seconds_bucket[5m])))
```

Utilisation of each device:

```promql cpu
rate(gridclock_device_busy_seconds_total[5m])
```

How full the queues are:

```promql cpu
gridclock_queue_depth / gridclock_queue_capacity
```

Part of the measurements of each device whose time is doubtful, where there were more than ten:

```promql cpu
rate(gridclock_measurements_doubtful_total[1h]) / (rate(gridclock_measurements_total[1h]) > 10 / 3600)
```
)md";

std::string Bounds(const MetricSpec& spec) {
  return absl::StrCat("`", spec.name, "`: ", absl::StrJoin(spec.bounds, ", "), "\n\n");
}

std::string Row(const MetricSpec& spec) {
  return absl::StrCat("| `", spec.name, "` | ", TypeName(spec.type), " | ", spec.unit, " | ",
                      absl::StrJoin(spec.labels, ", "), " | ", spec.help, " | ", spec.since,
                      " |\n");
}

}  // namespace

std::string MetricsPage() {
  std::string page = absl::StrCat(kIntro, "\n## All metrics\n\n",
                                  "| name | type | unit | labels | what it says | since |\n",
                                  "| --- | --- | --- | --- | --- | --- |\n");
  for (const MetricSpec& spec : MetricSpecs()) absl::StrAppend(&page, Row(spec));
  absl::StrAppend(
      &page, "\n## Labels\n\n",
      "Values come from closed sets: no name of a client, no shape, no id. A metric "
      "has at most 400 label sets for each device of the server, a histogram 200; the "
      "kernels and variants of what comes beyond are counted under `other`. So the page "
      "stays under 1 MB for each device however many names of some 25 characters there are, "
      "exemplars left out.\n\n",
      "| label | values |\n| --- | --- |\n");
  for (const LabelSpec& label : LabelSpecs()) {
    absl::StrAppend(&page, "| `", label.name, "` | ", label.values, " |\n");
  }
  absl::StrAppend(&page, "\n## Buckets\n\nUpper bounds, inclusive; 1-2.5-5 in each decade.\n\n");
  for (const MetricSpec& spec : MetricSpecs()) {
    if (!spec.bounds.empty()) absl::StrAppend(&page, Bounds(spec));
  }
  page.pop_back();
  return absl::StrCat(page, kQueries);
}

}  // namespace gridclock
