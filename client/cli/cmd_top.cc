// top: devices, kernels and runs of a server, drawn anew every two seconds.
#include "client/cli/cmd_top.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "client/cli/format.h"
#include "client/cli/status_source.h"
#include "client/cli/top.h"
#include "client/cpp/channels.h"

namespace gridclock::cli {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(5);
constexpr absl::Duration kShortestInterval = absl::Milliseconds(50);

struct TopOptions {
  std::string metrics = "127.0.0.1:8471";
  std::string interval = "2s";
  int count = 0;  // 0: until it is interrupted on a terminal, else once.
};

absl::StatusOr<std::string> Draw(const Session& session, const TopOptions& options,
                                 const Terminal& terminal) {
  GC_ASSIGN_OR_RETURN(absl::Duration timeout, session.Timeout());
  timeout = std::min(timeout, kTimeout);
  GC_ASSIGN_OR_RETURN(Json status, FetchJson(options.metrics, "/status.json", timeout));
  GC_ASSIGN_OR_RETURN(Json runs, FetchJson(options.metrics, "/runs.json", timeout));
  if (!session.options.json) {
    return TopText(options.metrics, status, runs, terminal);
  }
  return Dump({{"status", std::move(status)}, {"runs", std::move(runs)}}) + "\n";
}

absl::StatusOr<absl::Duration> ParseInterval(const std::string& text) {
  auto interval = ParseSeconds(text);
  if (!interval.ok()) {
    return UsageError(absl::StrCat("--interval: ", interval.status().message()));
  }
  if (*interval < kShortestInterval) {
    return UsageError(absl::StrCat("--interval: want at least ",
                                   absl::FormatDuration(kShortestInterval), ", got '", text, "'"));
  }
  return interval;
}

absl::StatusOr<int> Top(const Session& session, const TopOptions& options) {
  GC_ASSIGN_OR_RETURN(const absl::Duration interval, ParseInterval(options.interval));
  if (!IsHostAndPort(options.metrics)) {
    return UsageError(absl::StrCat("--metrics: want HOST:PORT, got '", options.metrics, "'"));
  }
  const bool redraws = session.console.terminal.out_width > 0 && !session.options.json;
  const int count = options.count == 0 && !redraws ? 1 : options.count;
  for (int i = 0; count == 0 || i < count; ++i) {
    if (i > 0) absl::SleepFor(interval);
    // Its window may have another size than at the last look.
    const Terminal terminal = redraws ? DetectTerminal() : session.console.terminal;
    absl::StatusOr<std::string> text = Draw(session, options, terminal);
    // A server that restarts comes back; one that was never there is told of at once.
    const bool waits = redraws && i > 0 && !text.ok();
    if (waits) text = absl::StrCat(Escape(text.status().message()), "\n");
    if (!text.ok()) return text.status();
    // To the upper left, and what stood there is gone: in one piece, so that nothing flickers.
    session.console.out << (redraws ? "\x1b[H\x1b[2J" : "") << *text << std::flush;
  }
  return kOk;
}

}  // namespace

CommandEntry AddTop(CLI::App& program) {
  auto* app = program.add_subcommand("top");
  const auto options = std::make_shared<TopOptions>();
  app->add_option("--metrics", options->metrics)->envname("GRIDCLOCK_METRICS");
  app->add_option("--interval", options->interval);
  app->add_option("--count", options->count)->check(CLI::Range(1, 1'000'000));
  return {app, [options](const Session& session) { return Top(session, *options); }};
}

}  // namespace gridclock::cli
