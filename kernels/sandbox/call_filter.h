// System calls that a process may make for the rest of its life, by seccomp.
#ifndef GRIDCLOCK_KERNELS_SANDBOX_CALL_FILTER_H_
#define GRIDCLOCK_KERNELS_SANDBOX_CALL_FILTER_H_

#include <cstdint>

#include <seccomp.h>

#include "absl/status/status.h"

namespace gridclock {

class CallFilter {
 public:
  // `action` is what meets a call that no rule names: SCMP_ACT_KILL_PROCESS, SCMP_ACT_ALLOW.
  explicit CallFilter(std::uint32_t action);
  ~CallFilter();
  CallFilter(const CallFilter&) = delete;
  CallFilter& operator=(const CallFilter&) = delete;

  // Conditions are of <seccomp.h>: SCMP_A0(SCMP_CMP_EQ, 0, 0). What fails is told by Load.
  template <typename... Conditions>
  void Add(std::uint32_t action, int call, Conditions... conditions) {
    if (context_ == nullptr || failed_ != 0) return;
    failed_ = seccomp_rule_add(context_, action, call, sizeof...(conditions), conditions...);
  }
  // Of all threads, not only of the calling one and those that it starts.
  void CoverAllThreads();
  absl::Status Load();

 private:
  scmp_filter_ctx context_;
  int failed_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_SANDBOX_CALL_FILTER_H_
