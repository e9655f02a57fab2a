// The frames of a compiler process, read.
#ifndef GRIDCLOCK_SERVER_FLEET_COMPILER_ANSWER_H_
#define GRIDCLOCK_SERVER_FLEET_COMPILER_ANSWER_H_

#include <string>

#include "absl/status/statusor.h"
#include "gridclock/worker/v1/compiler.pb.h"
#include "server/core/compile_observer.h"
#include "server/core/limits.h"
#include "server/fleet/compiler.h"

namespace gridclock {

CompilerFacts FactsOf(const worker::v1::CompilerHello& hello);

// What a child wrote, held to be a client's doing. The statuses are those of modules.proto.
absl::StatusOr<worker::v1::CompilerResult> ResultOf(const worker::v1::CompilerAnswer& answer,
                                                    const Limits& limits);
absl::StatusOr<ModuleCode> ModuleOf(worker::v1::CompilerResult result);
// `failed`: the source does not compile.
CompileOutcome OutcomeOf(const absl::Status& status, bool failed);

absl::Status CompilerLost();
absl::Status CompilerStarting();

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_COMPILER_ANSWER_H_
