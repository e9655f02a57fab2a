#include "client/cli/progress.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/format.h"

namespace gridclock::cli {
namespace {

// What is known while samples come.
struct Seen {
  std::string waiting;
  double last_ns = 0, min_ns = 0;
  std::int64_t samples = 0;
};

// A call that runs elsewhere, and what it says.
struct Running {
  std::mutex mutex;
  std::condition_variable changed;
  std::string note;
  std::optional<absl::StatusOr<RunResult>> result;

  void End(absl::StatusOr<RunResult> with) {
    const std::lock_guard<std::mutex> lock(mutex);
    result = std::move(with);
    changed.notify_one();
  }
  // False if it still runs after as long.
  bool Await(absl::Duration most) {
    std::unique_lock<std::mutex> lock(mutex);
    return changed.wait_for(lock, absl::ToChronoMilliseconds(most),
                            [this] { return result.has_value(); });
  }
};

}  // namespace

void ProgressLine::Show(const std::string& text) {
  if (!console_.terminal.live) return;
  const absl::Time now = absl::Now();
  if (now - last_ < absl::Milliseconds(50)) return;
  last_ = now;
  shown_ = true;
  const auto room = static_cast<std::size_t>(std::max(console_.terminal.width - 1, 10));
  console_.err << "\r\x1b[K" << Fit(text, room) << std::flush;
}

void ProgressLine::Clear() {
  if (shown_) console_.err << "\r\x1b[K" << std::flush;
  shown_ = false;
}

void ProgressLine::Waits(const std::string& title, const absl::Status& why) {
  if (console_.terminal.live || said_why_) return;
  said_why_ = true;
  console_.err << "gridclock: " << title << " is tried again for a while: " << Escape(why.message())
               << std::endl;
}

RunEvents MeasureEvents(ProgressLine& line, const std::string& title) {
  const auto seen = std::make_shared<Seen>();  // Owned by both functions.
  RunEvents events;
  events.accepted = [&line, title, seen](const v1::Accepted& accepted) {
    *seen = {};
    line.Show(absl::StrCat(title, "  ", accepted.queue_position(), " before this one, about ",
                           FormatNs(accepted.expected_wait_seconds() * 1e9)));
  };
  events.samples = [&line, title, seen](const v1::StreamRunResponse::Samples& samples) {
    if (samples.samples_ns().empty()) return;
    const auto [low, high] =
        std::minmax_element(samples.samples_ns().begin(), samples.samples_ns().end());
    (void)high;
    if (!samples.warmup()) {
      seen->samples = samples.first() + samples.samples_ns_size();
      seen->min_ns = seen->min_ns > 0 ? std::min(seen->min_ns, *low) : *low;
    }
    seen->last_ns = *samples.samples_ns().rbegin();
    line.Show(samples.warmup()
                  ? absl::StrCat(title, "  warming up  ", FormatNs(seen->last_ns))
                  : absl::StrCat(title, "  ", seen->samples, " samples  last ",
                                 FormatNs(seen->last_ns), "  min ", FormatNs(seen->min_ns)));
  };
  events.retry = [&line, title](const absl::Status& failure, absl::Duration wait) {
    line.Show(absl::StrCat(title, "  again in ", absl::FormatDuration(wait), ": ",
                           Escape(failure.message())));
  };
  return events;
}

void KeepSamples(std::vector<double>* samples, RunEvents* events) {
  events->accepted = [samples, then = std::move(events->accepted)](const v1::Accepted& accepted) {
    samples->clear();  // Those of a try before this one.
    if (then) then(accepted);
  };
  events->samples =
      [samples, then = std::move(events->samples)](const v1::StreamRunResponse::Samples& message) {
        const auto& values = message.samples_ns();
        if (!message.warmup()) samples->insert(samples->end(), values.begin(), values.end());
        if (then) then(message);
      };
}

absl::StatusOr<RunResult> RunWithProgress(const Client& client, const RunCall& call,
                                          const std::string& title, ProgressLine& line) {
  Running running;
  RunEvents events;
  events.retry = [&running, &line, &title](const absl::Status& failure, absl::Duration) {
    const std::lock_guard<std::mutex> lock(running.mutex);
    line.Waits(title, failure);
    running.note = absl::StrCat(", tried again: ", Escape(failure.message()));
  };
  const absl::Time start = absl::Now();
  client.RunAsync(call, std::move(events),
                  [&running](absl::StatusOr<RunResult> result) { running.End(std::move(result)); });
  while (!running.Await(absl::Milliseconds(200))) {
    const std::lock_guard<std::mutex> lock(running.mutex);
    const std::int64_t seconds = absl::ToInt64Seconds(absl::Now() - start);
    if (seconds > 0) line.Show(absl::StrCat(title, "  ", seconds, " s", running.note));
  }
  return *std::move(running.result);
}

absl::StatusOr<RunResult> RunUntil(const Interrupt& interrupt, const Client& client,
                                   const RunCall& call, RunEvents events) {
  const absl::Status ended = absl::CancelledError("ended by Ctrl-C");
  if (interrupt.came()) return ended;
  Running running;
  const RunHandle handle = client.RunAsync(
      call, std::move(events),
      [&running](absl::StatusOr<RunResult> result) { running.End(std::move(result)); });
  while (!running.Await(absl::Milliseconds(50))) {
    if (interrupt.came()) handle.Cancel();
  }
  if (interrupt.came() && absl::IsCancelled(running.result->status())) return ended;
  return *std::move(running.result);
}

}  // namespace gridclock::cli
