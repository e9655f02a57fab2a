#include "base/log.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/log_limit.h"
#include "base/text.h"
#include "spdlog/async.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/spdlog.h"

namespace gridclock {
namespace {

constexpr size_t kQueuedLines = 8192;

// Past stdio, whose lock a reader that has stopped would hold for ever: exit() wants it too.
// Beyond spdlog's own sinks it says when a flush that was asked for is done.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // Flushes are done in the order in which they were posted.
  template <typename Post>
  void PostAndWait(const Post& post, absl::Duration limit) {
    std::unique_lock lock(flushes_);
    const int mine = ++posted_;
    post();
    changed_.wait_for(lock, absl::ToChronoMilliseconds(limit), [&] { return done_ >= mine; });
  }
  std::uint64_t lost() const { return lost_; }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string text = std::exchange(broken_off_, false) ? "\n" : "";
    text.append(line.data(), line.size());
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t written = write(STDERR_FILENO, text.data() + at, text.size() - at);
      if (written < 0 && errno == EAGAIN && WaitForRoom()) continue;
      if (written < 0 && errno != EINTR) {
        ++lost_;
        broken_off_ = at > 0;
        return;
      }
      at += static_cast<std::size_t>(std::max<ssize_t>(written, 0));
    }
  }
  // Whoever shares standard error may have told it not to block.
  static bool WaitForRoom() {
    pollfd output{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    return poll(&output, 1, 1000) > 0;
  }
  void flush_() override {
    const std::lock_guard lock(flushes_);
    ++done_;
    changed_.notify_all();
  }

  std::mutex flushes_;
  std::condition_variable changed_;
  int posted_ = 0, done_ = 0;  // Both of flushes_.
  bool broken_off_ = false;    // The last line has no end. Of base_sink's lock.
  std::atomic<std::uint64_t> lost_ = 0;
};

enum class Form { kJson, kPlain, kPretty };

// GRIDCLOCK_LOG_FORMAT (json, plain, pretty); else pretty for a person, JSON lines for programs.
Form FormWanted() {
  const char* said = std::getenv("GRIDCLOCK_LOG_FORMAT");
  const absl::string_view word = said == nullptr ? "" : said;
  if (word == "json") return Form::kJson;
  if (word == "plain") return Form::kPlain;
  if (word == "pretty") return Form::kPretty;
  return isatty(STDERR_FILENO) != 0 ? Form::kPretty : Form::kJson;
}

// A string of JSON whatever came: what is no text, or would steer a terminal, is "\\x1b" in it.
std::string Quoted(absl::string_view text) {
  const std::string clean = CleanText(text);
  return absl::StrCat(
      "\"",
      absl::StrReplaceAll(clean, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}, {"\t", "\\t"}}),
      "\"");
}

std::string JsonLine(absl::string_view event, std::initializer_list<LogField> fields,
                     std::uint64_t left_out) {
  std::string line = absl::StrCat("\"event\":", Quoted(event));
  for (const auto& [key, value] : fields) {
    absl::StrAppend(&line, ",", Quoted(key), ":", Quoted(value));
  }
  if (left_out > 0) absl::StrAppend(&line, ",\"left_out\":", left_out);
  return line;
}

std::string TextLine(absl::string_view event, std::initializer_list<LogField> fields,
                     std::uint64_t left_out) {
  std::string line(event);
  for (const auto& [key, value] : fields) {
    absl::StrAppend(&line, " ", key, "=", Quoted(value));
  }
  if (left_out > 0) absl::StrAppend(&line, " left_out=\"", left_out, "\"");
  return line;
}

struct Logging {
  Logging()
      : pool(std::make_shared<spdlog::details::thread_pool>(kQueuedLines, 1)),
        sink(std::make_shared<StderrSink>()),
        logger(std::make_shared<spdlog::async_logger>(
            "gridclock", sink, pool, spdlog::async_overflow_policy::overrun_oldest)) {
    if (form == Form::kJson) {
      logger->set_pattern("{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",\"level\":\"%l\",%v}",
                          spdlog::pattern_time_type::utc);
    } else {
      logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %L %v");
    }
  }
  const Form form = FormWanted();
  LogLimit limit;
  const std::shared_ptr<spdlog::details::thread_pool> pool;
  const std::shared_ptr<StderrSink> sink;  // The logger's too.
  const std::shared_ptr<spdlog::async_logger> logger;
};

// Never destroyed, as threads may log while the process ends: FlushLog writes what is left then.
Logging& TheLogging() {
  static Logging& logging = [&]() -> Logging& {
    std::atexit([] { FlushLog(); });
    return *new Logging;
  }();
  return logging;
}

spdlog::level::level_enum LevelOf(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

absl::string_view ColourOf(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "";
    case LogLevel::kWarning:
      return "\x1b[33m";
    case LogLevel::kError:
      return "\x1b[31m";
  }
  return "";
}

}  // namespace

void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields) {
  Logging& logging = TheLogging();
  // What operators did is never left out.
  const std::optional<std::uint64_t> left_out =
      event == "audit" ? 0 : logging.limit.Take(event, absl::Now());
  if (!left_out) return;
  std::string line = logging.form == Form::kJson ? JsonLine(event, fields, *left_out)
                                                 : TextLine(event, fields, *left_out);
  if (logging.form == Form::kPretty) line = absl::StrCat(ColourOf(level), line, "\x1b[0m");
  logging.logger->log(LevelOf(level), "{}", line);
}

std::uint64_t DroppedLogLines() {
  return TheLogging().pool->overrun_counter() + TheLogging().sink->lost();
}

void FlushLog(absl::Duration limit) {
  Logging& logging = TheLogging();
  logging.sink->PostAndWait([&] { logging.logger->flush(); }, limit);
}

}  // namespace gridclock
