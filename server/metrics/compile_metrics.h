// Counts compiles of submitted code.
#ifndef GRIDCLOCK_SERVER_METRICS_COMPILE_METRICS_H_
#define GRIDCLOCK_SERVER_METRICS_COMPILE_METRICS_H_

#include "server/core/compile_observer.h"
#include "server/metrics/registry.h"

namespace gridclock {

// Thread-safe. A compile takes milliseconds: its series is looked up each time.
class CompileMetrics final : public CompileObserver {
 public:
  // Borrows `registry`.
  explicit CompileMetrics(Registry& registry);

  void OnCompiled(ModuleKind kind, CompileOutcome outcome, absl::Duration took) override;
  void OnModule(ModuleOrigin origin) override;
  void OnCompilerLost() override;

 private:
  Registry& registry_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_COMPILE_METRICS_H_
