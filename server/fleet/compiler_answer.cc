#include "server/fleet/compiler_answer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/codec/module.h"

namespace gridclock {
namespace {

using worker::v1::CompilerAnswer;

absl::Status Unavailable(absl::string_view text) {
  return WithDetails(absl::UnavailableError(text), {.reason = "COMPILER_LOST",
                                                    .field = "",
                                                    .retry_after = absl::Milliseconds(500),
                                                    .metadata = {}});
}

absl::Status OutOfMemory(const Limits& limits) {
  return WithReason(absl::ResourceExhaustedError(
                        absl::StrCat("the compiler wanted more than ", limits.compile_memory_bytes,
                                     " bytes for this (limit compile_memory_bytes)")),
                    "COMPILE_MEMORY");
}

}  // namespace

CompilerFacts FactsOf(const worker::v1::CompilerHello& hello) {
  return {.known = true,
          .ready = true,
          .toolchain = hello.toolchain(),
          .fingerprint = hello.fingerprint(),
          .sandbox = hello.sandbox(),
          .architectures = {hello.architectures().begin(), hello.architectures().end()},
          .no_cuda = hello.no_cuda(),
          .no_ptx = hello.no_ptx(),
          .no_sass = hello.no_sass()};
}

absl::StatusOr<worker::v1::CompilerResult> ResultOf(const CompilerAnswer& answer,
                                                    const Limits& limits) {
  worker::v1::CompilerResult result;
  switch (answer.end()) {
    case CompilerAnswer::DONE:
      if (!result.ParseFromString(answer.result())) break;
      if (result.out_of_memory()) return OutOfMemory(limits);
      return result;
    case CompilerAnswer::TIME:
      return WithReason(
          absl::DeadlineExceededError(absl::StrCat(
              "compiling took longer than ", limits.compile_seconds, " s (limit compile_seconds)")),
          "COMPILE_TIME");
    case CompilerAnswer::MEMORY:
      return OutOfMemory(limits);
    case CompilerAnswer::OUTPUT:
      return WithReason(absl::ResourceExhaustedError("the compiler made more output than is taken"),
                        "COMPILE_OUTPUT");
    case CompilerAnswer::CANCELLED:
      return absl::CancelledError("cancelled by the client");
    case CompilerAnswer::NO_TOOL:
      return WithReason(absl::FailedPreconditionError(
                            absl::StrCat("this server cannot do that: ", answer.detail())),
                        "NO_TOOLCHAIN");
    case CompilerAnswer::INTERNAL:
      return absl::InternalError(absl::StrCat("the compiler: ", answer.detail()));
    default:
      break;
  }
  return WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          "the compiler crashed on this", answer.detail().empty() ? "" : ": ", answer.detail())),
      "COMPILE_CRASHED");
}

absl::StatusOr<ModuleCode> ModuleOf(worker::v1::CompilerResult result) {
  GC_ASSIGN_OR_RETURN(ModuleFacts facts, Decode(result.module()));
  return ModuleCode{std::move(facts), std::move(*result.mutable_ptx()),
                    std::move(*result.mutable_cubin())};
}

CompileOutcome OutcomeOf(const absl::Status& status, bool failed) {
  if (status.ok()) return failed ? CompileOutcome::kFailed : CompileOutcome::kOk;
  const std::string reason = DetailsOf(status).reason;
  if (reason == "COMPILE_TIME") return CompileOutcome::kTime;
  if (reason == "COMPILE_MEMORY") return CompileOutcome::kMemory;
  if (reason == "COMPILE_OUTPUT") return CompileOutcome::kOutput;
  if (reason == "COMPILE_CRASHED") return CompileOutcome::kCrashed;
  return absl::IsCancelled(status) ? CompileOutcome::kCancelled : CompileOutcome::kLost;
}

absl::Status CompilerLost() {
  return Unavailable("the compiler was lost; it is being started again");
}
absl::Status CompilerStarting() {
  return Unavailable("the compiler is starting");
}

}  // namespace gridclock
