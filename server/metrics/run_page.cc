#include "server/metrics/run_page.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/units.h"
#include "server/metrics/charts.h"
#include "server/metrics/status_page.h"
#include "server/metrics/words.h"

namespace gridclock {
namespace {

std::string NameOf(const RunRecord& run) {
  return run.variant.empty() ? run.kernel : absl::StrCat(run.kernel, ".", run.variant);
}

Html Flags(const RunRecord& run) {
  Html out;
  for (const Flag flag : run.flags) {
    out.Add(R"(<span class="chip flag">$0</span>)",
            absl::StrReplaceAll(FlagWord(flag), {{"_", " "}}));
  }
  return out;
}

void AddFact(absl::string_view name, absl::string_view value, Html* out) {
  if (value.empty() || value == "-") return;
  out->Add("<div><dt>$0</dt><dd>$1</dd></div>", name, value);
}

Html Facts(const RunRecord& run) {
  Html out;
  const Statistics& statistics = run.statistics;
  const double median = statistics.median;
  // Of one that never ran nothing is known.
  if (median == 0 && !run.verification) return out;
  out.Add(R"(<dl class="facts loose" data-panel="facts">)");
  AddFact(run.measured ? "median" : "time of its launch", FormatNs(median), &out);
  if (run.measured) {
    AddFact("least", FormatNs(statistics.min), &out);
    AddFact("quartiles", absl::StrCat(FormatNs(statistics.q1), " to ", FormatNs(statistics.q3)),
            &out);
    AddFact("most", FormatNs(statistics.max), &out);
    AddFact("p99", FormatNs(statistics.p99.value_or(0)), &out);
    AddFact("samples", absl::StrCat(run.samples), &out);
    if (run.samples > 0) AddFact("stop", StopWord(run.stop), &out);
    AddFact("warm-ups", absl::StrCat(run.warmups), &out);
  }
  if (median > 0) {
    AddFact("method", MethodWord(run.method), &out);
  }
  // What a teaching method reads is no time of the kernel, so nothing follows from it.
  if (median > 0 && !IsTeaching(run.method)) {
    AddFact("bandwidth", FormatRate(static_cast<double>(run.bytes) / median * 1e9, "B/s"), &out);
    AddFact("flops", FormatRate(static_cast<double>(run.flops) / median * 1e9, "FLOP/s"), &out);
    AddFact("of the roofline", FormatPercent(run.roofline_ns / median), &out);
  }
  if (run.verification) {
    AddFact("verified",
            absl::StrCat(run.verification->checked, " of ", run.verification->total, " values, ",
                         run.verification->mismatches, " wrong"),
            &out);
    if (run.verification->violations > 0) {
      AddFact("forbidden",
              absl::StrCat("memory beside operands written, or inputs changed: ",
                           run.verification->violations, " found"),
              &out);
    }
  }
  out.Add("</dl>");
  return out;
}

Html Launches(const RunRecord& run) {
  Html out;
  if (run.launches.empty()) return out;
  out.Add(R"(<section data-panel="launches"><h2>Launched</h2><ul class="launches">)");
  for (const Launch& launch : run.launches) {
    out.Add("<li><code>$0</code> <small>$1, grid $2, block $3</small></li>", launch.name,
            launch.count == 1 ? "once" : absl::StrCat(launch.count, " times"),
            absl::StrJoin(launch.grid, "x"), absl::StrJoin(launch.block, "x"));
  }
  out.Add("</ul></section>");
  return out;
}

}  // namespace

Html RunRow(const RunRecord& run, absl::string_view age) {
  Html out;
  out.Add(R"(<a class="run" href="/runs/$0"><span class="id">$0</span><b>$1</b>)", run.id,
          NameOf(run));
  out.Add(R"(<span class="device">$0</span><span class="chip o-$1">$2</span>)", run.device,
          run.outcome == "ok" ? "ok" : "bad", absl::StrReplaceAll(run.outcome, {{"_", " "}}));
  out.Add(R"(<span class="flags">)").Add(Flags(run)).Add("</span>");
  out.Add(R"(<span class="time">$0</span><span class="age">$1 ago</span>)",
          FormatNs(run.statistics.median), age);
  out.Add(R"(<span class="bar">)").Add(PhaseBar(run)).Add("</span></a>");
  return out;
}

Html PhaseLegend() {
  Html out;
  out.Add(R"(<p class="legend">)");
  for (int kind = 1; kind <= static_cast<int>(PhaseKind::kOutputCopied); ++kind) {
    const absl::string_view word = PhaseLabel(static_cast<PhaseKind>(kind));
    out.Add(
        R"(<span><svg viewBox="0 0 8 8"><rect class="p-$0" width="8" height="8"/></svg>$1</span>)",
        word, absl::StrReplaceAll(word, {{"_", " "}}));
  }
  out.Add(
      R"(<span><svg viewBox="0 0 8 8"><rect class="rest" width="8" height="8"/></svg>between them</span></p>)");
  return out;
}

std::string RunPage(const RunRecord& run, absl::Time now) {
  Html out;
  out.Add(R"(<p class="lead"><a href="/">all of the server</a>, <a href="/runs">all runs</a>, )"
          R"(<a href="/runs/$0.json">as JSON</a></p>)",
          run.id);
  out.Add(R"(<h2 class="run-title">$0 <small>on $1</small> <span class="chip o-$2">$3</span>)",
          NameOf(run), run.device, run.outcome == "ok" ? "ok" : "bad",
          absl::StrReplaceAll(run.outcome, {{"_", " "}}));
  out.Add(Flags(run)).Add("</h2>");
  out.Add(R"(<p class="when">run $0, ended $1 ($2 ago)</p>)", run.id,
          absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", run.finished, absl::UTCTimeZone()),
          absl::FormatDuration(absl::Trunc(now - run.finished, absl::Seconds(1))));
  if (const std::string trace = TraceId(run.trace); !trace.empty()) {
    out.Add(R"(<p class="when">trace <code>$0</code></p>)", trace);
  }
  out.Add(Facts(run));
  out.Add(R"(<section data-panel="phases"><h2>Phases</h2>)");
  if (run.phases.empty()) {
    out.Add(R"(<p class="none">It has no phases: it ended before its worker answered.</p>)");
  } else {
    out.Add(PhaseTimeline(run));
  }
  out.Add("</section>").Add(Launches(run));
  return PageShell(absl::StrCat("Run ", run.id, " - Gridclock"), "", out.Take());
}

std::string PageShell(absl::string_view title, absl::string_view part, const std::string& content) {
  const std::string name = EscapeHtml(title);
  const std::string from = part.empty() ? "" : absl::StrCat(" data-from=\"", part, "\"");
  const absl::string_view script = part.empty() ? "" : "<script src=\"/page.js\" defer></script>";
  return absl::StrCat(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" "
      "href=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' "
      "fill='%236366f1'%3E%3Cpath d='M1 9h4v6H1zM6 5h4v10H6zM11 1h4v14h-4z'/%3E%3C/svg%3E\">"
      "<link rel=\"stylesheet\" href=\"/page.css\"><title>",
      name, "</title>", script,
      "</head><body><header class=\"top\"><h1><a href=\"/\">"
      "<svg class=\"mark\" viewBox=\"0 0 16 16\" aria-hidden=\"true\">"
      "<path d=\"M1 9h4v6H1zM6 5h4v10H6zM11 1h4v14h-4z\"/></svg>Gridclock</a></h1>"
      "<span id=\"stale\" hidden>the server does not answer</span></header><main id=\"live\"",
      from, ">", content,
      "</main><footer><a href=\"/status.json\">JSON</a> <a href=\"/metrics\">metrics</a>"
      "</footer></body></html>\n");
}

}  // namespace gridclock
