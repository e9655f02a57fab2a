// Tensor bytes on their way from messages into the arena.
#ifndef GRIDCLOCK_SERVER_RPC_UPLOAD_H_
#define GRIDCLOCK_SERVER_RPC_UPLOAD_H_

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

// The inputs of one StreamRun that come as chunks. `job` is borrowed.
class Upload {
 public:
  Upload(const Backend& backend, const Job& job);

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

  const Backend& backend_;
  std::vector<Input> inputs_;
  std::size_t missing_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_UPLOAD_H_
