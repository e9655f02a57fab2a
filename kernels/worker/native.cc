#include "kernels/worker/native.h"

#include "absl/strings/str_cat.h"

namespace gridclock {
namespace {

class NativeLaunch final : public EntryLaunch {
 public:
  NativeLaunch(NativeFn function, const BoundLaunch& launch)
      : function_(function), launch_(launch) {}

  absl::Status Launch(std::span<void* const> params) override {
    function_({.launch = launch_, .params = params});
    return absl::OkStatus();
  }

 private:
  const NativeFn function_;
  const BoundLaunch launch_;
};

class NativeModule final : public DeviceModule {
 public:
  explicit NativeModule(const Natives& natives) : natives_(natives) {}

  absl::StatusOr<std::unique_ptr<EntryLaunch>> Prepare(const std::string& entry,
                                                       const BoundLaunch& launch) override {
    const auto found = natives_.functions.find(entry);
    if (found == natives_.functions.end()) {
      return absl::NotFoundError(absl::StrCat("this worker has no native function '", entry, "'"));
    }
    return std::make_unique<NativeLaunch>(found->second, launch);
  }
  absl::StatusOr<Global> FindGlobal(const std::string& name) override {
    const auto found = natives_.variables.find(name);
    if (found != natives_.variables.end()) return found->second;
    return absl::NotFoundError("native functions have none");
  }

 private:
  const Natives& natives_;
};

}  // namespace

std::unique_ptr<DeviceModule> MakeNativeModule(const Natives& natives) {
  return std::make_unique<NativeModule>(natives);
}

}  // namespace gridclock
