// The words that people and programs use for the contract's enums.
#ifndef GRIDCLOCK_CLIENT_CLI_NAMES_H_
#define GRIDCLOCK_CLIENT_CLI_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gridclock/v1/admin.pb.h"
#include "gridclock/v1/kernels.pb.h"
#include "gridclock/v1/system.pb.h"
#include "gridclock/v1/types.pb.h"
#include "proto/types/measure.h"

namespace gridclock::cli {

std::string NameOf(v1::Method method);           // "isolated"
std::string NameOf(v1::L2State state);           // "cold_clean"
std::string NameOf(v1::Timing::Stop stop);       // "interval"
std::string NameOf(v1::Phase::Kind kind);        // "input_copied"
std::string NameOf(v1::Flag flag);               // "NOISY": flags stand out.
std::string NameOf(v1::Device::State state);     // "ready"
std::string NameOf(v1::ActiveJob::State state);  // "waits for memory"
std::string CodeName(absl::StatusCode code);     // "UNAVAILABLE"

absl::StatusOr<Method> ParseMethod(absl::string_view text);
absl::StatusOr<L2State> ParseL2(absl::string_view text);
// "1:5:100:2": wait, warm-up, active, repeat.
absl::StatusOr<Schedule> ParseSchedule(absl::string_view text);
// Those that measure, then those that teach.
std::vector<Method> AllMethods();

// "no dtype 'float16'; f16? There are ...".
std::string NoSuchDType(absl::string_view text);
// A message of the server with the methods' names as the command line takes them.
std::string WithOurNames(absl::string_view message);

// "f32[2,3]"; of a list all its tensors.
std::string SpecText(const v1::TensorSpec& spec);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_NAMES_H_
