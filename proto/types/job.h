// A request on its way through the server: JobRequest may be wrong, Job cannot be.
#ifndef GRIDCLOCK_PROTO_TYPES_JOB_H_
#define GRIDCLOCK_PROTO_TYPES_JOB_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/types/binding.h"
#include "proto/types/generator.h"
#include "proto/types/kernel_spec.h"
#include "proto/types/measure.h"
#include "proto/types/program.h"
#include "proto/types/trace.h"

namespace gridclock {

// A range of the shared arena. Offsets count from its start.
struct MemoryRange {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  friend bool operator==(const MemoryRange&, const MemoryRange&) = default;
};

enum class SourceKind : std::uint8_t { kInline = 1, kStream, kGenerate };
enum class SinkKind : std::uint8_t { kInline = 1, kStream, kDiscard, kChecksum };

struct InputRequest {
  NamedOperand operand;
  SourceKind source = SourceKind::kInline;
  Generator generator;             // Of kGenerate.
  std::uint64_t inline_bytes = 0;  // Of kInline: how many came.
};
struct OutputRequest {
  std::string name;
  SinkKind sink = SinkKind::kInline;
};

// As decoded: well-formed, not yet held against anything.
struct JobRequest {
  std::string kernel, variant;
  std::string device;      // "", "cpu", "cuda:0", "cuda"; "": any.
  std::string request_id;  // "": the client does not retry.
  std::vector<InputRequest> inputs;
  std::vector<OutputRequest> outputs;  // Those not named are returned inline (Run) or streamed.
  std::vector<NamedAttribute> attributes;
  std::vector<std::string> in_place;      // Outputs that use the buffer of the input they are over.
  std::optional<MeasureOptions> measure;  // None: launch once.
  bool verify = false;
  absl::Duration kernel_time_limit = absl::ZeroDuration();  // Zero: the server's default.
  std::optional<ProgramRequest> program;      // Submitted code; then `kernel` is to be empty.
  std::optional<ReferenceRequest> reference;  // Of a program that is verified.
  // Set by the server, not by the client:
  std::string principal;
  bool streamed = false;  // Came by StreamRun.
  TraceContext trace = {};
  absl::Time arrived;
  absl::Time deadline = absl::InfiniteFuture();
};

struct JobInput {
  OperandValue value;
  SourceKind source = SourceKind::kInline;
  Generator generator;
  MemoryRange memory;  // All tensors of the operand, each at a 64-byte boundary; empty: none.
};
struct JobOutput {
  std::string name;
  OperandValue value;
  SinkKind sink = SinkKind::kInline;
  MemoryRange memory;              // Of an output in place: its input's, if that has any.
  std::optional<int> in_place_of;  // Index of the input whose buffer it uses.
};

using JobId = std::uint64_t;

// What is known of the checked launches of a job once its guest has ended it.
struct CheckedLaunches {
  // By launch: what the seeds of generated inputs were XORed with. 0: the submitted values.
  std::vector<std::uint64_t> seed_changes;
  std::size_t first = 0;  // Of those whose outputs are compared.
  std::int64_t violations = 0;
  std::string first_violation;
  // The job of the program that they are held against, where it is one: it has no more to do than
  // to run once on the values of each.
  std::shared_ptr<const struct Job> reference = nullptr;
};

// Submitted code that is verified: what its outputs are held against.
struct JobCheck {
  std::string kernel;  // Of the catalogue; empty: `program` or `expected`.
  std::shared_ptr<const JobProgram> program = nullptr;
  std::vector<AttributeValue> attributes = {};  // In the order of the words of either.
  // Of a launch, by what it is held against; beside expected values by the words, but no less than
  // the outputs.
  std::int64_t bytes = 0, flops = 0;
  std::vector<JobInput> expected = {};  // By output; named ExpectedName.
  std::int64_t terms = 1;
  std::int64_t most_launches = 0;
  // Some inputs are made from a seed and may have other values: then the last launch is one more,
  // of the submitted values.
  bool fresh = false;
  // Drawn for this job, secret: one for each launch, and one for the values of the warm-up.
  std::vector<std::uint64_t> secrets = {};
  // The outputs of launch i begin at launches.offset + i * launch_bytes.
  MemoryRange launches = {};
  std::uint64_t launch_bytes = 0;
  MemoryRange references = {};             // The same, of `program`.
  std::vector<JobOutput> outputs_of = {};  // Of `program`, as its own words have them.
  // Launch i is of secrets[i] whatever is asked for, and all of them are to be made.
  bool replays = false;
  // Written by who feeds the guest, before the job is compared.
  std::shared_ptr<CheckedLaunches> done = std::make_shared<CheckedLaunches>();
};

// Admitted: kernel and device exist, the call fits the words, sizes are within the limits.
struct Job {
  JobId id = 0;                         // Unique for the life of the server.
  std::string kernel, variant, device;  // All resolved; device is one device's name.
  bool variant_named = false;           // By the client; else the server chose it.
  std::string request_id, principal;
  std::vector<JobInput> inputs;            // In the order of the spec.
  std::vector<JobOutput> outputs;          // In the order of Binding::outputs.
  std::vector<AttributeValue> attributes;  // In the order of the spec.
  std::optional<MeasureOptions> measure;
  bool verify = false;
  bool streamed = false;
  std::int64_t flops = 0, bytes = 0;
  // The one block of the arena that holds its tensors: all, or on a device with memory of its own
  // those that travel to or from the client. The ranges of the others are empty.
  MemoryRange memory;
  bool host_memory =
      true;  // Its device works in the arena; else operands are copied there and back.
  std::uint64_t operand_bytes = 0;  // Of all tensors, wherever they lie.
  std::uint64_t local_bytes = 0;    // Of its device, for what its program's threads have each.
  // Where its worker of the catalogue reads its order, in its block too; empty: a frame holds it.
  MemoryRange order = {};
  // Of submitted code; null: a kernel of the catalogue.
  std::shared_ptr<const JobProgram> program = nullptr;
  // Where the worker finds the code of each of the program's modules; empty: it was given it
  // before.
  std::vector<MemoryRange> module_code = {};
  std::optional<JobCheck> check = {};  // Of a program with `verify`.
  TraceContext trace = {};
  absl::Time arrived;
  absl::Time deadline;  // Of the whole call.
  absl::Duration kernel_time_limit;
};

// Bytes from the start of an operand's range to tensor `index` of it, and its whole size: tensors
// of a list follow one another, each at a 64-byte boundary.
inline constexpr std::uint64_t kTensorAlignment = 64;
std::uint64_t TensorOffset(const OperandValue& value, std::size_t index);
std::uint64_t OperandBytes(const OperandValue& value);
// The bytes as they go over the wire: tensors in order without gaps.
std::uint64_t WireBytes(const OperandValue& value);

// Around each operand of a checked launch: what nobody may write.
inline constexpr std::uint64_t kCheckMargin = 4096;
std::string ExpectedName(const JobOutput& output);
bool MadeFromSeed(const Generator& generator);
// The tensors of an operand, one run of elements, from `base` on where TensorOffset says.
void GenerateOperand(const Generator& generator, const OperandValue& value, std::byte* base);
// What a worker of the catalogue is told of this job, its order or what it is to compare, takes at
// most so many bytes.
std::uint64_t MostOrderBytes(const Job& job);
// What a guest's memory must hold of this job, its code aside.
std::uint64_t GuestBytes(const Job& job);
// Of the first `count` outputs in a row, as they lie in JobCheck::launches.
template <typename Outputs>
std::uint64_t OutputsBytes(const Outputs& outputs, std::size_t count) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) bytes += OperandBytes(outputs[i].value);
  return bytes;
}
// Where the outputs of a checked launch lie.
MemoryRange CheckedOutput(const Job& job, std::size_t launch, std::size_t output);

// Of a job whose check->done is there: that of the program that it is held against.
Job ReferenceJob(const Job& job);
// What a guest is given of a job: the job, or once that has run its reference's.
const Job& GivenNow(const Job& job);

// What came of a job: values are in the arena, this is the rest.
struct OutputResult {
  std::optional<std::uint64_t> checksum;  // XXH3-64 of the wire bytes, where the sink asks.
};
struct Outcome {
  std::string variant;
  std::optional<Timing> timing;
  std::vector<Phase> phases;
  std::vector<Flag> flags;  // Ascending, each once.
  std::vector<Launch> launches;
  std::vector<OutputResult> outputs;  // As Job::outputs.
  std::optional<Verification> verification;
  std::int64_t flops = 0, bytes = 0;
  std::uint64_t peak_device_bytes = 0;
  std::string printed = {};  // By submitted code: UTF-8, at most kMostPrinted bytes.
  bool printed_truncated = false;
};

inline constexpr std::size_t kMostPrinted = 16 * 1024;

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_JOB_H_
