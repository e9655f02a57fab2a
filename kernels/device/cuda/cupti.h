// The device's own record of what ran on it, by CUPTI's activity interface.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_CUPTI_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_CUPTI_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "proto/types/measure.h"

namespace gridclock {

// A kernel may have any name, that of a copy too.
enum class ActivityKind : std::uint8_t { kKernel, kCopy, kFill };

// By the device's clock.
struct DeviceActivity {
  std::uint64_t start_ns = 0, end_ns = 0;
  std::string name;               // Mangled; "memcpy" of copies, "memset" of fills.
  std::uint32_t correlation = 0;  // Of the call that put it on the device.
  std::uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  ActivityKind kind = ActivityKind::kKernel;
};

// How kernels are recorded.
//   kConcurrent   by stamps that the kernel itself is made to leave: half a microsecond too much,
//                 and more where its blocks are many and compute, for the stamps are those of
//                 blocks (H200: of 2^12 blocks 0.1 to 0.3 us, of 2^14 0.9 to 1.3, of 2^18 22 to 25)
//   kSerial       by the device's front, which waits for each kernel before it goes on: 1.8 us too
//                 much, whatever the kernel. What that is beyond a concurrent record of an empty
//                 kernel is calibrated and taken off, so that all device times have one zero.
enum class KernelRecords { kConcurrent, kSerial };

class Cupti {
 public:
  // Loads the library: next to the program, where LD_LIBRARY_PATH says, in the toolkit's folders.
  // NOT_FOUND if it is in none, FAILED_PRECONDITION if it is not of this program's CUDA.
  static absl::StatusOr<std::unique_ptr<Cupti>> Load();
  virtual ~Cupti() = default;

  // Recording adds to what everything on the device takes, so it is on only while it is needed.
  virtual absl::Status Enable(KernelRecords kernels) = 0;
  // Where it fails something is still recorded, and the next call tries again.
  virtual absl::Status Disable() = 0;
  virtual std::optional<KernelRecords> enabled() const = 0;

  using Launch = absl::FunctionRef<absl::Status()>;
  // What `launch` ran on the device, by start. `run` is handed the launch to call it, once, and
  // returns when all its work there is done. Only what is called by `launch` itself on this thread
  // counts: what `run` does beside it, and what others did, is dropped. NOT_FOUND if there is
  // nothing; UNAVAILABLE if CUPTI lost some or could not time it.
  virtual absl::StatusOr<std::vector<DeviceActivity>> Record(
      Launch launch, absl::FunctionRef<absl::Status(Launch)> run) = 0;
};

// From the first start to the last end. `activities` MUST NOT be empty.
double SpanNs(std::span<const DeviceActivity> activities);
// Whether two launches ran the same kernels and copies equally often, in whatever order.
bool SameLaunches(std::span<const Launch> a, std::span<const Launch> b);
// What a launch runs, known once two records in a row tell the same: some may be missing in the
// first.
class LaunchList {
 public:
  // Of the next record: true if it is of what is known, false while that is not known.
  // UNAVAILABLE (RECORD_LOST) if it is of something else, or no two in a row were the same so far.
  absl::StatusOr<bool> Take(const std::vector<Launch>& ran);
  // By the last record.
  bool has_several() const { return ran_.size() > 1 || (!ran_.empty() && ran_[0].count > 1); }

 private:
  std::vector<Launch> ran_;
  int others_ = 0;  // Records that were not as the one before.
  bool known_ = false;
};

// By which records a launch is timed: serial ones if it is one kernel of 2^11 blocks or more, as
// its first records tell, which are concurrent; all other launches have concurrent ones. Blocks
// alone decide, so that no series has both kinds.
class RecordsChoice {
 public:
  // All records are of this kind.
  explicit RecordsChoice(KernelRecords records) : records_(records) {}
  // Serial ones, which work, are `serial_beyond_ns` longer than they ought to be.
  explicit RecordsChoice(double serial_beyond_ns)
      : may_change_(true), serial_beyond_ns_(serial_beyond_ns) {}
  // Of the next one.
  KernelRecords records() const { return records_; }
  // The time of a record, which MUST be of kind records().
  double TimeOf(std::span<const DeviceActivity> record) const;
  // True if all records from this one on are of its kind; false: it tells no time.
  bool Take(std::span<const DeviceActivity> record);

 private:
  bool may_change_ = false;
  double serial_beyond_ns_ = 0;
  KernelRecords records_ = KernelRecords::kConcurrent;
};
// One entry for each kind, name and shape, with readable names, in the order of first starts.
std::vector<Launch> SummariseActivities(std::span<const DeviceActivity> activities);
std::int64_t CopiesAmong(std::span<const DeviceActivity> activities);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_CUPTI_H_
