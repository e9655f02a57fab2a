// The memory that the server shares with one guest. Never the arena: code of a client can write all
// that is mapped beside it. What a job needs is copied in when its order goes out, what arrives of
// a large input before that, and its outputs are copied out when it is done; the guest names no
// range.
#ifndef GRIDCLOCK_SERVER_FLEET_GUEST_MEMORY_H_
#define GRIDCLOCK_SERVER_FLEET_GUEST_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "proto/types/job.h"
#include "server/core/arena_allocator.h"
#include "server/core/scheduler.h"
#include "server/fleet/arena.h"
#include "server/fleet/copiers.h"
#include "server/fleet/launch_check.h"

namespace gridclock {

// Thread-safe. One for each guest process: it ends with it.
class GuestMemory {
 public:
  static constexpr std::size_t kMostModules = 128;
  static constexpr std::uint64_t kMostCodeBytes = 256ULL * 1024 * 1024;
  static constexpr std::uint64_t kMostHeldBytes = 4ULL * 1024 * 1024 * 1024;
  // What CopyEarly copies at a time: an order that comes meanwhile waits for no more than this.
  static constexpr std::uint64_t kEarlyPiece = 2ULL * 1024 * 1024;

  static absl::StatusOr<std::unique_ptr<GuestMemory>> Create(std::uint64_t bytes,
                                                             std::shared_ptr<Copiers> copiers,
                                                             const CheckDefences& defences = {});

  const Arena& arena() const { return arena_; }
  ArenaAllocator& allocator() { return allocator_; }

  // `job`, whose tensors lie in `from`, as the guest gets it: its ranges here, its inputs and the
  // code that the guest does not have copied. RESOURCE_EXHAUSTED: TOO_LARGE, or MEMORY_FULL if
  // there is room once another job was forgotten.
  absl::StatusOr<Job> Place(const Job& job, const Arena& from) ABSL_LOCKS_EXCLUDED(mutex_);
  // What has arrived of an input of `job`, which has no check and may never come: copies the next
  // piece. Place does the rest. A cache: where there is no room, code must go too or the upload
  // needs all CPUs, nothing is copied, and Place of another job drops it all, since that one's code
  // may write there. For one thread at a time, Place and DropEarly among what it does.
  void CopyEarly(const Job& job, const InputArrival& arrival, const Arena& from)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The job will not come.
  void DropEarly(JobId id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of a job with a check, as LaunchCheck: `to` is what `from` of Place was.
  enum class Step { kFill, kFillSubmitted, kTake };
  absl::Status CheckLaunch(const Job& job, const Arena& to, std::uint32_t index, Step step)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<OutputResult>> FinishCheck(const Job& job, const Arena& to,
                                                        std::size_t samples)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Copies what is returned of the outputs, of a job without one, and sums up those of which a
  // checksum is wanted. NOT_FOUND if the job was not placed.
  absl::StatusOr<std::vector<OutputResult>> TakeOutputs(const Job& job, const Arena& to) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the guest was given it: nothing that it says of others is true.
  bool Holds(JobId id) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The job ended well: the guest has its modules.
  void NoteRan(JobId id) ABSL_LOCKS_EXCLUDED(mutex_);
  // The guest, which forgets no module, holds more of them than it should, or of the device's
  // memory for their variables and for what their threads have each.
  bool worn() const ABSL_LOCKS_EXCLUDED(mutex_);
  // No job has room here, but for early copies.
  bool empty() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives back the job's room.
  void Forget(JobId id) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Room {
    ArenaAllocator::Block block;
    std::vector<std::uint64_t> copied;  // Of the memory of each input.
  };
  struct Placed {
    ArenaAllocator::Block block;
    std::uint64_t shift = 0;           // From the arena's offsets to those here, modulo 2^64.
    std::vector<std::string> modules;  // Whose code goes with it.
    // Of a job with a check; Forget may come while a step is made, so it is shared.
    struct Checked {
      Job placed;
      LaunchCheck check = {};
    };
    std::shared_ptr<Checked> checked = nullptr;
  };

  GuestMemory(Arena arena, std::shared_ptr<Copiers> copiers, const CheckDefences& defences)
      : arena_(std::move(arena)),
        allocator_(arena_.size(), arena_.size()),
        copiers_(std::move(copiers)),
        defences_(defences) {}
  absl::StatusOr<std::shared_ptr<Placed::Checked>> FindChecked(JobId id) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The modules whose code must go with the job; their place counts from the end of its tensors.
  std::uint64_t AddCode(Job& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the job runs well or not, its guest may have loaded its modules.
  void NoteHeld(const Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<ArenaAllocator::Block> Reserve(std::uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // That with early copies of this job, or one of `bytes`. What there is of others is dropped.
  absl::StatusOr<Room> RoomFor(const Job& job, std::uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Null: nothing can be copied early.
  Room* EarlyRoomFor(const Job& job) ABSL_LOCKS_EXCLUDED(mutex_);
  void CopyIn(const Job& job, const Job& placed, std::span<const std::uint64_t> copied,
              const Arena& from) const;

  const Arena arena_;
  ArenaAllocator allocator_;
  const std::shared_ptr<Copiers> copiers_;
  const CheckDefences defences_;
  mutable Mutex mutex_;
  std::map<JobId, Placed> placed_ ABSL_GUARDED_BY(mutex_);
  std::map<JobId, Room> early_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> modules_ ABSL_GUARDED_BY(mutex_);     // That the guest has.
  std::set<std::string> given_ ABSL_GUARDED_BY(mutex_);       // That it may have.
  std::uint64_t code_bytes_ ABSL_GUARDED_BY(mutex_) = 0;      // Of those.
  std::uint64_t variable_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Of those.
  std::uint64_t local_bytes_ ABSL_GUARDED_BY(mutex_) = 0;     // Of the job that takes most.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_GUEST_MEMORY_H_
