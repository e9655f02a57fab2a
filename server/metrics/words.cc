#include "server/metrics/words.h"

#include <algorithm>
#include <array>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/status.h"

namespace gridclock {
namespace {

constexpr std::array<absl::string_view, kFlagCount> kFlags = {
    "suspect",     "impossible", "throttled", "shared_device",  "noisy",
    "interrupted", "unverified", "emulated",  "teaching_method"};
constexpr absl::string_view kMethods[] = {"isolated",     "device_time", "back_to_back",
                                          "host_no_sync", "host_sync",   "event_pair"};
constexpr absl::string_view kStops[] = {"single_launch", "interval", "budget",
                                        "max_samples",   "schedule", "stop_interrupted",
                                        "yielded"};
constexpr std::array<absl::string_view, kPhaseCount> kPhases = {
    "received", "queued", "input_copied", "launched", "finished", "verified", "output_copied"};
constexpr absl::string_view kStates[] = {"starting", "ready", "busy", "dead", "quarantined"};
// As the worker names them (kernels/device/cuda/gpu_conditions.cc).
constexpr absl::string_view kClockReasons[] = {
    "gpu_idle",     "applications_clocks", "sw_power_cap",        "hw_slowdown",
    "sync_boost",   "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake",
    "display_clock"};
constexpr absl::string_view kLosses[] = {"exit",       "signal",   "hang",      "protocol",
                                         "time_limit", "deadline", "cancelled", "restart"};
// All of docs/errors.md: a refusal of a reason that is not here counts as its code.
constexpr absl::string_view kReasons[] = {
    "BAD_VALUE",       "SIGNATURE_MISMATCH", "UNKNOWN_NAME",       "BAD_CHUNK",
    "UNPARSABLE",      "USE_STREAM",         "LAUNCH_SHAPE",       "COMPILE_FAILED",
    "NO_MODULE",       "NO_ENTRY",           "IN_PROGRESS",        "DONE",
    "KERNEL_FAULT",    "QUARANTINED",        "NO_DEVICE",          "NO_KERNEL_IMAGE",
    "LAST_DEVICE",     "NO_WORKER",          "SUBMIT_OFF",         "CUBIN_OFF",
    "NO_TEST_NATIVE",  "NO_TOOLCHAIN",       "NOT_CAPTURABLE",     "LAUNCH_WAITED",
    "QUEUE_FULL",      "MEMORY_FULL",        "TOO_LARGE",          "MODULE_QUOTA",
    "COMPILE_MEMORY",  "COMPILE_OUTPUT",     "COMPILE_CRASHED",    "DEVICE_MEMORY",
    "WORKER_STARTING", "WORKER_CRASHED",     "COMPILER_LOST",      "DRAINING",
    "DEVICE_DRAINED",  "DEVICE_FAULT",       "DEVICE_UNAVAILABLE", "KERNEL_TIME_LIMIT",
    "NO_RECORD",       "RECORD_LOST",        "COMPILE_TIME",       "VERIFY_TIME_LIMIT",
    "WORK_TIME_LIMIT", "STREAM_STALLED",     "BY_OPERATOR",        "ROLE_MISSING",
    "QUEUE_WAIT",      "COMPILER_STARTING",  "RELOADING"};

constexpr absl::string_view kCompileOutcomes[kCompileOutcomeCount] = {
    "ok", "failed", "time", "memory", "crashed", "output", "cancelled", "lost"};
constexpr absl::string_view kKinds[] = {"cuda", "ptx", "cubin"};
constexpr absl::string_view kOrigins[] = {"compiled", "memory", "disk"};

// The numbers came from another process.
absl::string_view WordOf(std::span<const absl::string_view> words, std::size_t number) {
  return number >= 1 && number <= words.size() ? words[number - 1] : "unknown";
}

absl::string_view FailureWord(const absl::Status& status) {
  const std::string reason = DetailsOf(status).reason;
  if (reason == "KERNEL_FAULT") return "fault";
  if (absl::EndsWith(reason, "_TIME_LIMIT")) return "time_limit";
  if (reason == "WORKER_CRASHED") return "worker_lost";
  switch (status.code()) {
    case absl::StatusCode::kCancelled:
      return "cancelled";
    case absl::StatusCode::kDeadlineExceeded:
      return "deadline";
    case absl::StatusCode::kUnavailable:
      return "unavailable";
    case absl::StatusCode::kInvalidArgument:
      return "invalid";
    default:
      return "error";
  }
}

}  // namespace

absl::string_view FlagWord(Flag flag) {
  return WordOf(kFlags, static_cast<std::size_t>(flag));
}

absl::string_view MethodWord(Method method) {
  return WordOf(kMethods, static_cast<std::size_t>(method));
}

absl::string_view StopWord(StopReason stop) {
  return WordOf(kStops, static_cast<std::size_t>(stop));
}

absl::string_view PhaseLabel(PhaseKind kind) {
  return WordOf(kPhases, static_cast<std::size_t>(kind));
}

bool IsTeaching(Method method) {
  return method == Method::kHostNoSync || method == Method::kHostSync ||
         method == Method::kEventPair;
}

bool HasLatencies(const Outcome& outcome) {
  return outcome.timing && outcome.timing->method == Method::kIsolated &&
         std::ranges::count(outcome.flags, Flag::kImpossible) == 0;
}

std::span<const absl::string_view> ClockReasonWords() {
  return kClockReasons;
}

absl::string_view StateWord(WorkerState state) {
  return WordOf(kStates, static_cast<std::size_t>(state));
}

absl::string_view OutcomeWord(const JobResult& result) {
  if (!result.status.ok()) return FailureWord(result.status);
  const bool verified = result.outcome && result.outcome->verification;
  const bool wrong = verified && (result.outcome->verification->mismatches > 0 ||
                                  result.outcome->verification->violations > 0);
  return wrong ? "mismatch" : "ok";
}

std::span<const absl::string_view> Reasons() {
  return kReasons;
}

std::string RejectionWord(const absl::Status& status) {
  const std::string reason = DetailsOf(status).reason;
  const bool known = std::ranges::count(kReasons, absl::string_view(reason)) != 0;
  return absl::AsciiStrToLower(known ? reason : absl::StatusCodeToString(status.code()));
}

absl::string_view CompileOutcomeWord(CompileOutcome outcome) {
  return kCompileOutcomes[static_cast<std::size_t>(outcome)];
}
absl::string_view KindWord(ModuleKind kind) {
  return kKinds[static_cast<std::size_t>(kind) - 1];
}
absl::string_view OriginWord(ModuleOrigin origin) {
  return kOrigins[static_cast<std::size_t>(origin) - 1];
}

absl::string_view LossWord(absl::string_view reason) {
  const auto found = std::ranges::find(kLosses, reason);
  return found == std::end(kLosses) ? "other" : *found;
}

}  // namespace gridclock
