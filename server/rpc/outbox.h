// What a StreamRun has to say, in the order in which it is said.
#ifndef GRIDCLOCK_SERVER_RPC_OUTBOX_H_
#define GRIDCLOCK_SERVER_RPC_OUTBOX_H_

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/support/byte_buffer.h>

#include "gridclock/v1/kernels.pb.h"
#include "server/core/scheduler.h"
#include "server/rpc/backend.h"
#include "server/rpc/operand_cursor.h"

namespace gridclock {

// Not thread-safe. Messages are made when they are asked for: a slow reader makes samples wait in
// here, joined, and outputs in the arena.
class Outbox {
 public:
  explicit Outbox(const Backend& backend) : backend_(backend) {}

  void Accept(const Job& job, const AcceptedInfo& info);
  void AddSamples(std::int64_t first, std::span<const double> samples_ns, bool warmup);
  // The outputs of `job`, then the summary.
  void AddOutputs(std::shared_ptr<const ActiveJob> job, const Outcome& outcome);
  void AddSummary(v1::RunSummary summary) { summary_ = std::move(summary); }
  void Clear();

  // The summary, which comes last, is still to be asked for.
  bool has_summary() const { return summary_.has_value(); }

  // What waits for the client, outputs aside, which lie in the arena.
  std::uint64_t held_bytes() const;

  // The next message; nullopt if there is none now.
  std::optional<grpc::ByteBuffer> Next();

 private:
  struct Samples {
    std::int64_t first = 0;
    bool warmup = false;
    std::vector<double> values;
  };
  std::optional<grpc::ByteBuffer> NextOutput();
  grpc::ByteBuffer NextChunk(const JobOutput& output);

  const Backend& backend_;
  std::optional<v1::Accepted> accepted_;
  std::deque<Samples> samples_;
  std::uint64_t sample_count_ = 0;  // In samples_.
  // Held until the outputs are on their way; chunks on their way hold it too.
  std::shared_ptr<const ActiveJob> job_;
  std::vector<OutputResult> results_;
  std::size_t output_ = 0;
  std::optional<OperandCursor> cursor_;  // In the output that is being sent.
  std::optional<v1::RunSummary> summary_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_OUTBOX_H_
