#include "kernels/worker/module_store.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {

absl::Status ModuleStore::Load(const WorkerProgram& program) {
  for (const WorkerModule& module : program.modules) {
    if (module.kind == ModuleKind::kTestNative || loaded_.contains(module.id)) continue;
    if (module.code.size == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("module '", module.id, "' was never given to this guest"));
    }
    auto loaded = device_.LoadModule(memory_.subspan(module.code.offset, module.code.size));
    if (!loaded.ok()) return Annotate(loaded.status(), absl::StrCat("module '", module.id, "'"));
    loaded_.emplace(module.id, *std::move(loaded));
  }
  return absl::OkStatus();
}

DeviceModule& ModuleStore::Find(const WorkerProgram& program, const std::string& id) {
  for (const WorkerModule& module : program.modules) {
    if (module.id == id && module.kind == ModuleKind::kTestNative) return *natives_;
  }
  return *loaded_.find(id)->second;
}

}  // namespace gridclock
