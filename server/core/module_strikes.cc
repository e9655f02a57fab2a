#include "server/core/module_strikes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

auto Is(absl::string_view module) {
  return [module](const auto& struck) { return struck.module == module; };
}

}  // namespace

void ModuleStrikes::Add(absl::string_view module, absl::string_view why) {
  MutexLock lock(mutex_);
  Struck now{.module = std::string(module), .why = std::string(why)};
  const auto found = std::find_if(struck_.begin(), struck_.end(), Is(module));
  if (found != struck_.end()) {
    now.times = found->times;
    struck_.erase(found);
  } else if (struck_.size() == kMostModules) {
    struck_.pop_front();
  }
  ++now.times;
  struck_.push_back(std::move(now));
}

absl::Status ModuleStrikes::Check(absl::string_view module) const {
  MutexLock lock(mutex_);
  const auto found = std::find_if(struck_.begin(), struck_.end(), Is(module));
  if (found == struck_.end() || found->times < kMost) return absl::OkStatus();
  return WithDetails(
      absl::FailedPreconditionError(absl::StrCat(
          "module '", module, "' is run no more: ", found->times,
          " of its runs ended their process, the last by ", found->why, "; submit it corrected")),
      {.reason = "QUARANTINED",
       .field = "program",
       .retry_after = std::nullopt,
       .metadata = {{"module", std::string(module)}}});
}

std::size_t ModuleStrikes::quarantined() const {
  MutexLock lock(mutex_);
  return static_cast<std::size_t>(std::count_if(
      struck_.begin(), struck_.end(), [](const Struck& struck) { return struck.times >= kMost; }));
}

}  // namespace gridclock
