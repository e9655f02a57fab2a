#include "server/rpc/grpc_log.h"

#include <string>
#include <utility>

#include <grpc/support/log.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"

namespace gridclock {
namespace {

constexpr int kLinesPerSecond = 5;
constexpr std::size_t kLongest = 256;

void Write(gpr_log_func_args* said) {
  static LineBudget& budget = *new LineBudget(kLinesPerSecond);  // gRPC logs until the very end.
  const std::optional<std::uint64_t> held_back = budget.Take(absl::Now());
  if (!held_back) return;
  const absl::string_view text = said->message;
  Log(said->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning : LogLevel::kInfo, "grpc",
      {{"text", std::string(text.substr(0, kLongest))}, {"held_back", absl::StrCat(*held_back)}});
}

}  // namespace

std::optional<std::uint64_t> LineBudget::Take(absl::Time now) {
  const MutexLock lock(mutex_);
  if (now - second_ >= absl::Seconds(1) || now < second_) {
    second_ = now;
    taken_ = 0;
  }
  if (taken_ >= most_) {
    ++held_back_;
    return std::nullopt;
  }
  ++taken_;
  return std::exchange(held_back_, 0);
}

void TameGrpcLog() {
  gpr_set_log_function(&Write);
}

}  // namespace gridclock
