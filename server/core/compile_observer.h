// Who wants to know what was compiled.
#ifndef GRIDCLOCK_SERVER_CORE_COMPILE_OBSERVER_H_
#define GRIDCLOCK_SERVER_CORE_COMPILE_OBSERVER_H_

#include <cstdint>

#include "absl/time/time.h"
#include "proto/types/module.h"

namespace gridclock {

// How a compile ended: a closed set, so it may label a metric.
enum class CompileOutcome : std::uint8_t {
  kOk,
  kFailed,  // The source does not compile.
  kTime,
  kMemory,
  kCrashed,
  kOutput,
  kCancelled,
  kLost,  // With the compiler, or it could not begin.
};
inline constexpr int kCompileOutcomeCount = 8;

// Must be thread-safe and quick.
class CompileObserver {
 public:
  virtual ~CompileObserver() = default;
  // Without the wait for its turn.
  virtual void OnCompiled(ModuleKind kind, CompileOutcome outcome, absl::Duration took) = 0;
  // A Compile or Load was answered with a module.
  virtual void OnModule(ModuleOrigin origin) = 0;
  virtual void OnCompilerLost() = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_COMPILE_OBSERVER_H_
