// Tensor bytes on their way from messages into the arena.
#ifndef GRIDCLOCK_SERVER_RPC_UPLOAD_H_
#define GRIDCLOCK_SERVER_RPC_UPLOAD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/codec/request.h"
#include "server/rpc/backend.h"
#include "server/rpc/operand_cursor.h"

namespace gridclock {

// Copies the inline data of `run` to where `job`, which was made of it, has its inputs. `data` are
// the slices that run.data speaks of.
void CopyInline(const Backend& backend, const DecodedRun& run, Slices data, const Job& job);

// The inputs of one StreamRun that come as chunks. The job's memory is kept until all have come:
// the job may end meanwhile, and what still comes must not reach memory that is another job's by
// then.
class Upload {
 public:
  // What `arrived` hears of: so much more of an input, the latter of a program's, or the end of one
  // of which it heard, while others are still to come.
  static constexpr std::uint64_t kArrivalBytes = std::uint64_t{16} << 20;
  static constexpr std::uint64_t kGuestArrivalBytes = std::uint64_t{512} << 10;
  using Arrived = std::function<void(const InputArrival&)>;

  Upload(const KernelTable& table, const ArenaMemory& memory, std::shared_ptr<const ActiveJob> job,
         Arrived arrived);

  bool complete() const { return missing_ == 0; }
  // "input 'b': 12 of 4096 bytes came": the first one that is incomplete.
  std::string Missing() const;
  // INVALID_ARGUMENT for a chunk that is not the next one of its input; nothing is copied then.
  absl::Status Take(const StreamChunk& chunk, Slices message);

 private:
  struct Input {
    std::string name;
    std::optional<std::size_t> index;  // In job.inputs; none: of expected values.
    std::uint64_t size = 0;            // On the wire.
    OperandCursor cursor;
    std::uint64_t start = 0;             // Of its memory.
    std::uint64_t placed = 0, told = 0;  // Of its memory.
  };
  void Expect(const JobInput& input, const std::string& name, std::optional<std::size_t> index);
  void Tell(Input& input) const;
  absl::Status Check(const Input* input, const StreamChunk& chunk) const;
  Input* Find(absl::string_view name);

  const ArenaMemory& memory_;
  const Arrived arrived_;
  const std::uint64_t arrival_bytes_;
  std::shared_ptr<const ActiveJob> job_;  // Shared with the scheduler; null once complete.
  std::vector<Input> inputs_;
  std::size_t missing_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_UPLOAD_H_
