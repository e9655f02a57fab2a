// A call of a kernel and its result, as the client sees them.
#ifndef GRIDCLOCK_CLIENT_CPP_RUN_H_
#define GRIDCLOCK_CLIENT_CPP_RUN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/buffer.h"
#include "gridclock/v1/kernels.pb.h"
#include "proto/types/binding.h"
#include "proto/types/generator.h"
#include "proto/types/measure.h"
#include "proto/types/tensor.h"

namespace gridclock {

// One input. Either its bytes, or a generator that makes it on the server.
struct CallInput {
  std::string name = {};
  OperandValue value = {};
  // One span for each tensor of `value`, dense and little-endian. Borrowed until the call has
  // ended.
  std::vector<std::span<const std::byte>> bytes = {};
  std::optional<Generator> generator = {};
};

enum class Sink : std::uint8_t { kReturn = 1, kDiscard = 2, kChecksum = 3 };

struct OutputWish {
  std::string name = {};
  Sink sink = Sink::kReturn;
};

// How the bytes travel. kAuto takes one round trip where all fits a message, and a stream
// elsewhere.
enum class Way : std::uint8_t { kAuto, kUnary, kStream };

struct RunCall {
  std::string kernel = {};   // Empty beside `program`.
  std::string variant = {};  // Empty: the fastest that fits.
  std::string device = {};   // "cpu", "cuda:0", a kind, or empty for any.
  std::vector<CallInput> inputs = {};
  std::vector<NamedAttribute> attributes = {};
  std::vector<OutputWish> outputs = {};  // Those not named are returned.
  std::vector<std::string> in_place = {};
  std::optional<MeasureOptions> measure = {};  // None: one launch.
  bool verify = false;
  absl::Duration kernel_time_limit = absl::ZeroDuration();  // Zero: the server's default.
  absl::Duration timeout = absl::InfiniteDuration();        // Of the whole call, retries included.
  // Makes retries safe. Empty: the client makes one where it may retry.
  std::string request_id = {};
  Way way = Way::kAuto;
  // Submitted code in place of a kernel of the catalogue: launches of modules that Client::Compile
  // or Client::Load made.
  std::optional<v1::Program> program = {};
  // Of a program with `verify`: a kernel of the catalogue, another program, or neither and inputs
  // called "expected.NAME".
  std::optional<v1::Reference> reference = {};
};

// Told while a call runs, on threads of the library, one at a time. They must return soon and may
// not start or wait for a call of the same client. Set `accepted`, `samples` or `moved`: the call
// then goes by StreamRun. After a retry the story begins again with `accepted`.
struct RunEvents {
  std::function<void(const v1::Accepted&)> accepted = {};
  std::function<void(const v1::StreamRunResponse::Samples&)> samples = {};
  // Bytes of tensors so far, both ways.
  std::function<void(std::uint64_t sent, std::uint64_t received)> moved = {};
  // Before a retry: why, and how long it waits.
  std::function<void(const absl::Status&, absl::Duration)> retry = {};
  // Where the bytes of an output shall go. Exactly WireBytes(value) bytes; they must outlive the
  // call. An empty span, or no function: the result owns them.
  std::function<std::span<std::byte>(const std::string& name, const OperandValue& value)> place =
      {};
};

struct CallOutput {
  std::string name;
  OperandValue value;
  std::optional<std::uint64_t> checksum;
  std::span<const std::byte> bytes;  // In `owned`, or where RunEvents::place said.
  Buffer owned;
};

struct RunResult {
  v1::RunSummary summary;
  std::vector<CallOutput> outputs;  // In the order of the kernel's words; `inout` inputs first.
  int attempts = 1;
};

// No output differs from the reference, and submitted code wrote nothing that it must not.
bool Passed(const v1::Verification& verification);

// What was measured before a failed call failed; nullopt if nothing was.
std::optional<v1::RunSummary> PartialSummary(const absl::Status& status);

}  // namespace gridclock

#endif  // GRIDCLOCK_CLIENT_CPP_RUN_H_
