#include "base/log.h"

#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "spdlog/async.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace gridclock {
namespace {

constexpr size_t kQueuedLines = 8192;

spdlog::logger& Logger() {
  static const auto logger = [] {
    spdlog::init_thread_pool(kQueuedLines, 1);
    auto made = spdlog::create_async_nb<spdlog::sinks::stderr_sink_mt>("gridclock");
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %L %v");
    return made;
  }();
  return *logger;
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

}  // namespace

void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields) {
  std::string line(event);
  for (const auto& [key, value] : fields) {
    absl::StrAppend(&line, " ", key, "=\"", absl::Utf8SafeCHexEscape(value), "\"");
  }
  Logger().log(LevelOf(level), "{}", line);
}

}  // namespace gridclock
