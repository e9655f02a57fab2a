// Who makes modules of what clients submit.
#ifndef GRIDCLOCK_SERVER_CORE_MODULE_MAKER_H_
#define GRIDCLOCK_SERVER_CORE_MODULE_MAKER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/types/module.h"

namespace gridclock {

// What the compiler said of itself when it started; kept while it is replaced.
struct CompilerFacts {
  bool known = false;
  bool lost = false;  // The last process ended, or could not be started.
  bool ready = false;
  std::string toolchain, fingerprint, sandbox;
  std::vector<std::string> architectures;
  std::string no_cuda, no_ptx, no_sass;
};

struct MadeModule {
  ModuleCode code;
  ModuleOrigin origin = ModuleOrigin::kCompiled;
};

// Thread-safe. Each order is answered once, maybe before the call that makes it returns.
class ModuleMaker {
 public:
  using Done = std::function<void(absl::StatusOr<MadeModule>)>;
  using TextDone = std::function<void(absl::StatusOr<std::string>)>;
  using Ticket = std::uint64_t;
  virtual ~ModuleMaker() = default;

  // From the cache, or compiled. Statuses as in gridclock/v1/modules.proto; a source that does not
  // compile is a module that failed.
  virtual Ticket Make(const std::string& principal, const std::string& id, ModuleSource source,
                      Done done) = 0;
  // From the cache alone; NOT_FOUND.
  virtual Ticket Fetch(const std::string& principal, const std::string& id, Done done) = 0;
  // The SASS of the module's cubin.
  virtual Ticket Disassemble(const std::string& principal, std::shared_ptr<const ModuleCode> module,
                             TextDone done) = 0;
  // From the cache; true if this principal had it there.
  virtual bool Forget(const std::string& principal, const std::string& id) = 0;
  // The order is answered soon, with CANCELLED unless it was before.
  virtual void Cancel(Ticket ticket) = 0;

  virtual CompilerFacts facts() const = 0;
  struct Usage {
    std::size_t waiting = 0, running = 0;
  };
  virtual Usage usage() const = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_MODULE_MAKER_H_
