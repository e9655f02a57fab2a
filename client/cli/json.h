// Results as JSON: every field of the contract under its own name, times in nanoseconds, numbers as
// numbers. What is not known is null.
#ifndef GRIDCLOCK_CLIENT_CLI_JSON_H_
#define GRIDCLOCK_CLIENT_CLI_JSON_H_

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "client/cpp/run.h"
#include "gridclock/v1/kernels.pb.h"
#include "gridclock/v1/system.pb.h"
#include "proto/types/kernel_spec.h"

namespace gridclock::cli {

using Json = nlohmann::ordered_json;

Json ToJson(const v1::RunSummary& summary, bool with_samples);
Json ToJson(const CallOutput& output);  // Without values.
Json ToJson(const v1::Device& device);
Json ToJson(const v1::ServerInfo& info);
Json ToJson(const KernelSpec& spec);
Json ToJson(const absl::Status& error);

// One line of ASCII, so that no text of a server steers a terminal. What is no UTF-8 is replaced.
std::string Dump(const Json& json);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_JSON_H_
