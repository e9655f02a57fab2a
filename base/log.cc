#include "base/log.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/log_limit.h"
#include "base/mutex.h"
#include "base/text.h"
#include "spdlog/async.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/spdlog.h"

namespace gridclock {
namespace {

constexpr std::size_t kQueuedLines = 8192, kQueuedAudits = 1024;

// Past stdio, whose lock a reader that has stopped would hold for ever: exit() wants it too.
class StderrWriter {
 public:
  void Write(absl::string_view line) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    const std::string text = absl::StrCat(std::exchange(broken_off_, false) ? "\n" : "", line);
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
  std::uint64_t lost() const { return lost_; }

 private:
  // Whoever shares standard error may have told it not to block.
  static bool WaitForRoom() {
    pollfd output{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    return poll(&output, 1, 1000) > 0;
  }

  Mutex mutex_;
  bool broken_off_ ABSL_GUARDED_BY(mutex_) = false;  // The last line has no end.
  std::atomic<std::uint64_t> lost_ = 0;
};

// Of one queue. Beyond spdlog's own sinks it says when a flush that was asked for is done.
class QueueSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit QueueSink(StderrWriter& writer) : writer_(writer) {}
  // Flushes are done in the order in which they were posted.
  template <typename Post>
  void PostAndWait(const Post& post, absl::Duration limit) {
    std::unique_lock lock(flushes_);
    const int mine = ++posted_;
    post();
    changed_.wait_for(lock, absl::ToChronoMilliseconds(limit), [&] { return done_ >= mine; });
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    writer_.Write(absl::string_view(line.data(), line.size()));
  }
  void flush_() override {
    const std::lock_guard lock(flushes_);
    ++done_;
    changed_.notify_all();
  }

  StderrWriter& writer_;
  std::mutex flushes_;
  std::condition_variable changed_;
  int posted_ = 0, done_ = 0;  // Both of flushes_.
};

enum class Form { kJson, kPlain, kPretty };

absl::string_view FormatWord() {
  const char* said = std::getenv("GRIDCLOCK_LOG_FORMAT");
  return said == nullptr ? "" : said;
}

// GRIDCLOCK_LOG_FORMAT (json, plain, pretty); else pretty for a person, JSON lines for programs.
Form FormWanted() {
  const absl::string_view word = FormatWord();
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

// Lines on their way, and the thread that writes them.
struct Queue {
  Queue(StderrWriter& writer, Form form, std::size_t lines)
      : pool(std::make_shared<spdlog::details::thread_pool>(lines, 1)),
        sink(std::make_shared<QueueSink>(writer)),
        logger(std::make_shared<spdlog::async_logger>(
            "gridclock", sink, pool, spdlog::async_overflow_policy::overrun_oldest)) {
    if (form == Form::kJson) {
      logger->set_pattern("{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",\"level\":\"%l\",%v}",
                          spdlog::pattern_time_type::utc);
    } else {
      logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %L %v");
    }
  }
  void Flush(absl::Duration limit) {
    sink->PostAndWait([&] { logger->flush(); }, limit);
  }

  const std::shared_ptr<spdlog::details::thread_pool> pool;
  const std::shared_ptr<QueueSink> sink;  // The logger's too.
  const std::shared_ptr<spdlog::async_logger> logger;
};

struct Logging {
  // Most processes never have an audit line, and need no queue for them.
  Queue& Audits() ABSL_LOCKS_EXCLUDED(mutex) {
    const MutexLock lock(mutex);
    if (!audits) audits.emplace(writer, form, kQueuedAudits);
    return *audits;
  }
  Queue* AuditsIfAny() ABSL_LOCKS_EXCLUDED(mutex) {
    const MutexLock lock(mutex);
    return audits ? &*audits : nullptr;
  }

  const Form form = FormWanted();
  StderrWriter writer;
  LogLimit limit;
  Queue lines{writer, form, kQueuedLines};
  Mutex mutex;
  std::optional<Queue> audits ABSL_GUARDED_BY(mutex);
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

void Post(Queue& queue, LogLevel level, absl::string_view event,
          std::initializer_list<LogField> fields, std::uint64_t left_out) {
  const Form form = TheLogging().form;
  std::string line =
      form == Form::kJson ? JsonLine(event, fields, left_out) : TextLine(event, fields, left_out);
  if (form == Form::kPretty) line = absl::StrCat(ColourOf(level), line, "\x1b[0m");
  queue.logger->log(LevelOf(level), "{}", line);
}

}  // namespace

void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields) {
  const auto left_out = TheLogging().limit.Take(event, absl::Now());
  if (left_out) Post(TheLogging().lines, level, event, fields, *left_out);
}

void LogAudit(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields) {
  Post(TheLogging().Audits(), level, event, fields, /*left_out=*/0);
}

void LogLeftOut() {
  Logging& logging = TheLogging();
  for (const auto& [event, lines] : logging.limit.TakeQuiet(absl::Now())) {
    Post(logging.lines, LogLevel::kWarning, "log_left_out", {{"of", event}}, lines);
  }
}

absl::Status CheckLogFormat() {
  const absl::string_view word = FormatWord();
  if (word.empty() || word == "json" || word == "plain" || word == "pretty") {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "GRIDCLOCK_LOG_FORMAT: want json, plain or pretty, got '", CleanText(word), "'"));
}

std::uint64_t DroppedLogLines() {
  Logging& logging = TheLogging();
  const Queue* audits = logging.AuditsIfAny();
  return logging.lines.pool->overrun_counter() + logging.writer.lost() +
         (audits == nullptr ? 0 : audits->pool->overrun_counter());
}

void FlushLog(absl::Duration limit) {
  Logging& logging = TheLogging();
  const absl::Time end = absl::Now() + limit;
  logging.lines.Flush(limit);
  Queue* audits = logging.AuditsIfAny();
  if (audits != nullptr) audits->Flush(std::max(end - absl::Now(), absl::ZeroDuration()));
}

}  // namespace gridclock
