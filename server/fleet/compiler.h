// The compiler process of this server: spawned, fed, watched, replaced; and what it made, kept on
// disk.
#ifndef GRIDCLOCK_SERVER_FLEET_COMPILER_H_
#define GRIDCLOCK_SERVER_FLEET_COMPILER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "server/core/compile_observer.h"
#include "server/core/limits.h"
#include "server/core/module_maker.h"
#include "server/fleet/module_cache.h"
#include "server/fleet/supervisor.h"

namespace gridclock {

struct CompilerOptions {
  std::string path;                      // Of gridclock-compiler.
  std::string cuda_home;                 // "": it looks for itself.
  std::vector<std::string> environment;  // WorkerEnvironment().
  Supervisor::Options supervisor;
  std::uint64_t seed = 0;
  absl::Duration start_limit = absl::Seconds(30);
  // Beyond compile_seconds, until the compiler counts as hung: its children end within these.
  absl::Duration answer_grace = absl::Seconds(2);
};

// Thread-safe. Orders are answered on a thread of its own.
class Compiler : public ModuleMaker {
 public:
  // `cache` may be null. All that is borrowed outlives the compiler. FAILED_PRECONDITION if there
  // is no program at the path.
  static absl::StatusOr<std::unique_ptr<Compiler>> Create(const CompilerOptions& options,
                                                          const Limits& limits, const Clock& clock,
                                                          ModuleCache* cache,
                                                          CompileObserver& observer);
  // Spawns; returns at once.
  virtual void Start() = 0;
  // Ends the process; what waits or runs is answered UNAVAILABLE (DRAINING). May be called again.
  virtual void Stop() = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_COMPILER_H_
