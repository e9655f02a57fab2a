#include "kernels/compiler/toolkit.h"

#include <cstdlib>
#include <filesystem>

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gridclock {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibraries[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
constexpr const char* kLibraryFolders[] = {"lib64", "lib", "targets/x86_64-linux/lib"};

std::string Real(const fs::path& path) {
  std::error_code missing;
  const fs::path real = fs::canonical(path, missing);
  return missing ? "" : real.string();
}

std::vector<std::string> LibrariesIn(const std::string& home) {
  std::vector<std::string> found;
  for (const char* folder : kLibraryFolders) {
    for (const char* library : kLibraries) {
      const std::string path = absl::StrCat(home, "/", folder, "/", library);
      if (!Real(path).empty()) found.push_back(path);
    }
  }
  return found;
}

std::string HomeOf(const std::string& home) {
  if (!home.empty()) return home;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && !LibrariesIn(value).empty()) return value;
  }
  return "/usr/local/cuda";
}

}  // namespace

Toolkit FindToolkit(const std::string& wanted) {
  const std::string home = HomeOf(wanted);
  Toolkit out;
  out.nvrtc = LibrariesIn(home);
  if (wanted.empty()) out.nvrtc.insert(out.nvrtc.end(), {kLibraries[0], kLibraries[1]});
  for (const char* folder : {"include", "include/cccl"}) {
    const std::string path = Real(fs::path(home) / folder);
    if (!path.empty()) out.includes.push_back(path);
  }
  out.ptxas = Real(fs::path(home) / "bin/ptxas");
  out.nvdisasm = Real(fs::path(home) / "bin/nvdisasm");
  return out;
}

std::string Fingerprint(const std::vector<std::string>& paths) {
  std::vector<std::string> parts;
  for (const std::string& path : paths) {
    struct stat facts {};
    if (stat(path.c_str(), &facts) != 0) continue;
    parts.push_back(
        absl::StrCat(facts.st_size, ".", facts.st_mtim.tv_sec, ".", facts.st_mtim.tv_nsec));
  }
  return absl::StrJoin(parts, "-");
}

}  // namespace gridclock
