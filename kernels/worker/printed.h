// What code prints while an order runs: standard output and standard error of the process, caught.
#ifndef GRIDCLOCK_KERNELS_WORKER_PRINTED_H_
#define GRIDCLOCK_KERNELS_WORKER_PRINTED_H_

#include <memory>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "proto/types/job.h"

namespace gridclock {

class Printed {
 public:
  static absl::StatusOr<std::unique_ptr<Printed>> Create();

  // From now until End it is caught.
  void Begin();
  // What was printed since Begin, as UTF-8 and cut to kMostPrinted bytes.
  void End(Outcome* outcome);

 private:
  Printed(UniqueFd caught, UniqueFd output, UniqueFd error)
      : caught_(std::move(caught)), output_(std::move(output)), error_(std::move(error)) {}
  const UniqueFd caught_;
  const UniqueFd output_, error_;  // What standard output and error were, and are again.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_PRINTED_H_
