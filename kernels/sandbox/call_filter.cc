#include "kernels/sandbox/call_filter.h"

#include <cerrno>

#include "base/status.h"

namespace gridclock {

CallFilter::CallFilter(std::uint32_t action) : context_(seccomp_init(action)) {}

CallFilter::~CallFilter() {
  if (context_ != nullptr) seccomp_release(context_);
}

void CallFilter::CoverAllThreads() {
  if (context_ == nullptr || failed_ != 0) return;
  failed_ = seccomp_attr_set(context_, SCMP_FLTATR_CTL_TSYNC, 1);
}

absl::Status CallFilter::Load() {
  if (context_ == nullptr) return absl::InternalError("seccomp: no filter");
  if (failed_ == 0) failed_ = seccomp_load(context_);
  return failed_ == 0 ? absl::OkStatus() : ErrnoToStatus(-failed_, "seccomp");
}

}  // namespace gridclock
