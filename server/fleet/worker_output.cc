#include "server/fleet/worker_output.h"

#include <array>

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace gridclock {
namespace {

constexpr std::size_t kLongestLine = 1024;

}  // namespace

void WorkerOutput::Drain(int fd) {
  std::array<char, 16 * 1024> buffer;
  std::size_t withheld = 0;
  // Bounded: a worker that prints without end must not keep its reader here.
  for (int round = 0; round < 16; ++round) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got <= 0) break;
    const auto size = static_cast<std::size_t>(got);
    if (may_be_a_clients_()) {
      withheld += size;
    } else {
      Keep({buffer.data(), size});
    }
  }
  if (withheld > 0) {
    Log(LogLevel::kWarning, "worker_output_withheld",
        {{"device", device_}, {"bytes", absl::StrCat(withheld)}});
  }
}

void WorkerOutput::Keep(absl::string_view text) {
  const absl::string_view kept = text.substr(0, kMostBytes - taken_);
  Take(kept);
  taken_ += kept.size();
  // An event of its own: the log bounds each, and this line is the one that must not be lost.
  if (kept.size() < text.size() && dropped_ == 0) {
    Log(LogLevel::kWarning, "worker_output_dropped",
        {{"device", device_}, {"note", "the rest of this run's output is dropped"}});
  }
  dropped_ += text.size() - kept.size();
}

void WorkerOutput::NextRun() {
  taken_ = 0;
  dropped_ = 0;
}

void WorkerOutput::Take(absl::string_view text) {
  for (const char c : text) {
    if (c != '\n') line_ += c;
    if (c == '\n' || line_.size() >= kLongestLine) {
      LogLine(line_);
      line_.clear();
    }
  }
}

void WorkerOutput::LogLine(absl::string_view line) const {
  Log(LogLevel::kWarning, "worker_output", {{"device", device_}, {"line", std::string(line)}});
}

}  // namespace gridclock
