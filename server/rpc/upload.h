// Tensor bytes on their way from messages into the arena.
#ifndef GRIDCLOCK_SERVER_RPC_UPLOAD_H_
#define GRIDCLOCK_SERVER_RPC_UPLOAD_H_

#include <memory>
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
  Upload(const KernelTable& table, const ArenaMemory& memory, std::shared_ptr<const ActiveJob> job);

  bool complete() const { return missing_ == 0; }
  // "input 'b': 12 of 4096 bytes came": the first one that is incomplete.
  std::string Missing() const;
  // INVALID_ARGUMENT for a chunk that is not the next one of its input; nothing is copied then.
  absl::Status Take(const StreamChunk& chunk, Slices message);

 private:
  struct Input {
    std::string name;
    std::uint64_t size = 0;
    OperandCursor cursor;
  };
  absl::Status Check(const Input* input, const StreamChunk& chunk) const;
  Input* Find(absl::string_view name);

  const ArenaMemory& memory_;
  std::shared_ptr<const ActiveJob> job_;  // Shared with the scheduler; null once complete.
  std::vector<Input> inputs_;
  std::size_t missing_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_UPLOAD_H_
