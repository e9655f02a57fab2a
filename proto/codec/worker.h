// The private words between server and worker: messages of gridclock.worker.v1 <-> plain types.
// Each side takes the other's frames as untrusted: what does not hold is an error, never a crash.
#ifndef GRIDCLOCK_PROTO_CODEC_WORKER_H_
#define GRIDCLOCK_PROTO_CODEC_WORKER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gridclock/worker/v1/worker.pb.h"
#include "proto/types/device.h"
#include "proto/types/job.h"

namespace gridclock {

// ---- Hello: who a worker is and what it can run. ----

struct WorkerHello {
  std::uint32_t protocol = 0;
  WorkerRole role = WorkerRole::kTrusted;
  DeviceInfo device;
  std::vector<KernelSpec> kernels;
  std::string calibration = "";                // What it measured, in words that only workers read.
  std::vector<std::string> test_natives = {};  // Of a guest of a test build.
  std::string sandbox = "";                    // Of a guest: "landlock 7, seccomp".
};

// As frames, each within kFrameLimit. INTERNAL if one spec alone is too long for a frame.
absl::StatusOr<std::vector<worker::v1::ToServer>> EncodeHello(const WorkerHello& hello);

// Puts the frames of a hello together again.
class HelloAssembler {
 public:
  // True once the hello is complete. An error (wrong protocol, bad spec, numbers that cannot be,
  // more after the end) means that the worker must not be used.
  absl::StatusOr<bool> Add(const worker::v1::Hello& frame);
  const WorkerHello& hello() const { return hello_; }

 private:
  absl::Status AddNatives(const worker::v1::Hello& frame);
  WorkerHello hello_;
  bool complete_ = false;
};

// ---- Orders, server to worker. ----

// The ranges of job.inputs and job.outputs are offsets in the arena, not in the job's block. The
// order may be longer than a frame: then it must go as a long message.
void Encode(const Job& job, std::uint64_t generation, worker::v1::Order* out);

// One operand as the worker sees it.
struct WorkerOperand {
  OperandValue value;
  MemoryRange memory;
  std::optional<Generator> generate;
  bool checksum = false;
  std::optional<int> in_place_of;  // Index of the input whose buffer an output uses.
};
// Submitted code, for a guest.
struct WorkerModule {
  std::string id;
  ModuleKind kind = ModuleKind::kCubin;
  MemoryRange code;  // Empty: this guest was given it before, or it has none.
};
struct WorkerProgram {
  Program program;
  std::vector<WorkerModule> modules;
};
struct WorkerOrder {
  std::uint64_t id = 0, generation = 0;
  absl::Time deadline = absl::InfiniteFuture();
  std::string kernel, variant;
  std::vector<WorkerOperand> inputs, outputs;
  std::vector<AttributeValue> attributes;
  std::optional<MeasureOptions> measure;
  bool verify = false;
  bool stream_samples = false;
  absl::Duration kernel_time_limit = absl::InfiniteDuration();
  std::optional<WorkerProgram> program;  // In place of a kernel of the catalogue.
  std::string program_message;           // That it was decoded from: a call is often repeated.
  // The most launches that the server checks; 0: none. Operands then have margins of kCheckMargin.
  std::uint32_t checked_launches = 0;
  std::int64_t bytes = 0, flops = 0;  // Of launches that are checked: as JobCheck has them.
};
// Every range lies inside an arena of `arena_bytes`, is aligned and holds its operand, or is empty:
// the operand has its place on the device alone. `out` is overwritten; its buffers are used again.
absl::Status Decode(const worker::v1::Order& order, std::uint64_t arena_bytes, WorkerOrder* out);

// What a guest asks of the server around a launch that is checked.
enum class CheckStep : std::uint8_t { kValues = 1, kSubmittedValues, kTake };

// Outputs of checked launches of a guest, for a trusted worker to hold against a reference.
struct WorkerComparison {
  std::uint64_t id = 0, generation = 0;
  absl::Time deadline = absl::InfiniteFuture();
  absl::Duration time_limit = absl::InfiniteDuration();
  std::string kernel;  // Whose reference; empty: `references` or `expected`.
  std::vector<AttributeValue> attributes;
  std::vector<WorkerOperand> inputs, outputs;  // Outputs have no memory.
  std::vector<std::string> output_names;
  std::vector<MemoryRange> expected;  // By output.
  std::int64_t terms = 1;
  MemoryRange launches;  // Launch i begins at launches.offset + i * launch_bytes.
  std::uint64_t launch_bytes = 0;
  std::vector<std::uint64_t> seed_changes;  // By launch.
  std::optional<MemoryRange> references;    // What they are held against, as `launches`.
};
// Of job.check, whose `done` says which launches there were.
void EncodeComparison(const Job& job, std::uint64_t generation, worker::v1::Comparison* out);
absl::StatusOr<WorkerComparison> Decode(const worker::v1::Comparison& comparison,
                                        std::uint64_t arena_bytes);

// The first bytes of an input, which are in the arena before the order comes.
struct WorkerArrival {
  std::uint64_t id = 0, generation = 0;  // Of that order.
  std::size_t input = 0;                 // Its index there.
  MemoryRange memory = {};               // Of the whole input.
  std::uint64_t bytes = 0;               // From its start.
};
void Encode(const WorkerArrival& arrival, worker::v1::Arrival* out);
// INVALID_ARGUMENT unless the range lies inside an arena of `arena_bytes`, is aligned, and holds
// the bytes, which are some.
absl::StatusOr<WorkerArrival> Decode(const worker::v1::Arrival& arrival, std::uint64_t arena_bytes);

// ---- Reports, worker to server. Times are CLOCK_MONOTONIC there, since the arrival here. ----

// At most this many samples are in one frame.
inline constexpr std::size_t kSamplesPerFrame = 4000;
void EncodeSamples(std::uint64_t id, std::int64_t first, std::span<const double> samples_ns,
                   bool warmup, worker::v1::ToServer* out);
// Samples travel ahead of it; those in outcome.timing are left out. Phases are copied as they are.
void EncodeDone(std::uint64_t id, std::uint64_t generation, const Outcome& outcome,
                worker::v1::Done* out);
// `partial` may be null: nothing was launched.
void EncodeFailed(std::uint64_t id, std::uint64_t generation, const absl::Status& status,
                  bool sticky, const Outcome* partial, worker::v1::Failed* out);

// The samples of one job, put together from its frames. One per job in flight on the server.
class SampleBuffer {
 public:
  // INVALID_ARGUMENT if a frame does not continue where the last one ended, holds a number that is
  // no time, or brings none or more samples than `job` may have. Warm-up samples, which a job that
  // is streamed has alone, are checked, not kept.
  absl::Status Add(const worker::v1::Samples& frame, const Job& job);
  std::int64_t warmups() const { return warmups_; }
  std::vector<double> Take() { return std::move(samples_); }

 private:
  std::vector<double> samples_;
  std::int64_t warmups_ = 0;
};

// What a worker says came of `job`, held against what it was ordered. INVALID_ARGUMENT says what
// does not hold: the worker broke the protocol.
absl::StatusOr<Outcome> Decode(const worker::v1::Done& done, const Job& job,
                               std::vector<double> samples);

// What a trusted worker says came of the comparison of `job`. INVALID_ARGUMENT as above.
absl::StatusOr<Outcome> DecodeCompared(const worker::v1::Done& done, const Job& job);

struct WorkerFailure {
  absl::Status status;             // Never OK.
  bool sticky = false;             // The worker is of no more use and ends.
  std::optional<Outcome> partial;  // What was measured before the failure.
};
absl::StatusOr<WorkerFailure> Decode(const worker::v1::Failed& failed, const Job& job,
                                     std::vector<double> samples);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_CODEC_WORKER_H_
