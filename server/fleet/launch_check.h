// The values of checked launches, and what a guest's code did to its memory beside writing outputs.
#ifndef GRIDCLOCK_SERVER_FLEET_LAUNCH_CHECK_H_
#define GRIDCLOCK_SERVER_FLEET_LAUNCH_CHECK_H_

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <xxhash.h>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/types/job.h"
#include "server/fleet/arena.h"

namespace gridclock {

// What meets code that was written to deceive. All are on but in tests of what each is good for.
struct CheckDefences {
  bool fresh = true;     // Inputs that can have new values have new ones in each timed launch.
  bool poison = true;    // Outputs are random bytes before each launch.
  bool margins = true;   // Writes beside operands are found.
  bool inputs = true;    // Writes to inputs are found.
  bool timed = true;     // Each timed launch is compared, not only the last.
  bool roofline = true;  // A time is held against the work of the kernel that is the reference.
};

// Of one job with a check, in the memory of one guest. For one thread at a time.
class LaunchCheck {
 public:
  LaunchCheck();

  // `placed` is the job as the guest has it: each operand's range with its margins. `arena` holds
  // what the client sent and takes the outputs. All are borrowed.
  struct Parts {
    const Job& job;
    const Job& placed;
    const Arena& arena;
    const Arena& guest;
    CheckDefences defences;
  };

  // Values for launches that nobody checks.
  static void FillForWarmUp(const Parts& parts);
  // Those of the next launch, `submitted` or new ones. INVALID_ARGUMENT if it is not this one's
  // turn.
  absl::Status Fill(const Parts& parts, std::uint32_t index, bool submitted);
  // What the launch left. INVALID_ARGUMENT likewise.
  absl::Status Take(const Parts& parts, std::uint32_t index);
  // The outputs of the last launch become the job's, and job.check->done says what there was. The
  // checksums that are wanted are of the bytes that will be compared. INVALID_ARGUMENT unless the
  // guest reports as many `samples` as it had launches checked, and the last was of the submitted
  // values.
  absl::StatusOr<std::vector<OutputResult>> Finish(const Parts& parts, std::size_t samples);

 private:
  // Of an operand, after Fill: what must not change.
  struct Sum {
    MemoryRange range;
    XXH128_hash_t value = {};
    bool margin = false;
    std::string what;  // "before 'y'"
  };
  void NoteSums(const Parts& parts);
  XXH128_hash_t SumOf(std::span<const std::byte> bytes) const;

  std::vector<std::uint64_t> seed_changes_;  // Of launches that were filled.
  std::vector<Sum> sums_;
  // Who does not know it finds no other bytes of the same sum.
  std::array<std::uint32_t, 48> secret_;
  bool filled_ = false, last_submitted_ = false;
  std::int64_t violations_ = 0;
  std::string first_violation_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_LAUNCH_CHECK_H_
