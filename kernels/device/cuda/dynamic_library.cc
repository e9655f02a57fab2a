#include "kernels/device/cuda/dynamic_library.h"

#include <array>

#include <dlfcn.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gridclock {

absl::StatusOr<DynamicLibrary> DynamicLibrary::Open(const std::vector<std::string>& names) {
  std::vector<std::string> failures;
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return DynamicLibrary(handle);
    const char* why = dlerror();
    failures.push_back(why == nullptr ? name : why);
  }
  return absl::NotFoundError(absl::StrJoin(failures, "; "));
}

void* DynamicLibrary::Symbol(const char* name) const {
  return dlsym(handle_, name);
}

std::string ProgramFolder() {
  std::array<char, 4096> path;
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) return "";
  const std::string text(path.data(), static_cast<std::size_t>(size));
  return text.substr(0, text.rfind('/') + 1);
}

}  // namespace gridclock
