#include "server/children.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "server/fleet/worker_process.h"

namespace gridclock {
namespace {

// Of a program that lies beside this one.
std::string PathBeside(absl::string_view name) {
  char self[4096] = "";
  const ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
  const std::string path(self, size > 0 ? static_cast<std::size_t>(size) : 0);
  return absl::StrCat(path.substr(0, path.rfind('/') + 1), name);
}

}  // namespace

std::string WorkerPath(const ServerOptions& options) {
  return options.worker.empty() ? PathBeside("gridclock-worker") : options.worker;
}

CompilerOptions CompilerOptionsOf(const ServerOptions& options) {
  // It starts in "/", so its path must not depend on where this process stands.
  std::error_code error;
  const std::string path =
      options.compiler.empty() ? PathBeside("gridclock-compiler") : options.compiler;
  CompilerOptions out;
  out.path = std::filesystem::absolute(path, error).string();
  out.cuda_home = options.cuda_home;
  out.environment = WorkerEnvironment();
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) out.environment.push_back(absl::StrCat(name, "=", value));
  }
  out.seed = std::random_device()();
  return out;
}

DeviceList DevicesHere(const ServerOptions& options) {
  if (options.devices == "cpu") return {};
  constexpr absl::Duration kLimit = absl::Seconds(30);  // A driver may be slow to wake.
  auto list = ListDevices(WorkerPath(options), WorkerEnvironment(), kLimit);
  if (list.ok()) {
    if (!list->remarks.empty()) Log(LogLevel::kInfo, "devices", {{"remark", list->remarks}});
    return *std::move(list);
  }
  const std::string why(list.status().message());
  Log(LogLevel::kWarning, "devices_unknown", {{"error", why}, {"serving", "the CPU alone"}});
  return {.devices = {{"cpu", "cpu", "", ""}}, .remarks = why};
}

std::string WhyNoGpu(const DeviceList& list) {
  const bool any = std::any_of(list.devices.begin(), list.devices.end(),
                               [](const ListedDevice& device) { return device.kind == "cuda"; });
  return any ? "" : list.remarks;
}

}  // namespace gridclock
