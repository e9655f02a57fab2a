#include "server/fleet/runnable.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <elf.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gridclock {
namespace {

// The start of a file, as much of it as there is.
Elf64_Ehdr HeaderOf(const std::string& path) {
  Elf64_Ehdr header{};
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&header), sizeof(header));
  return header;
}

// What keeps the system from running what begins so; "" if nothing does.
std::string WhyNone(const Elf64_Ehdr& header) {
  const absl::string_view start(reinterpret_cast<const char*>(header.e_ident), SELFMAG);
  if (absl::StartsWith(start, "#!")) return "";
  if (start != absl::string_view(ELFMAG, SELFMAG)) return "the file is no program";
  const Elf64_Ehdr own = HeaderOf("/proc/self/exe");
  if (std::memcmp(header.e_ident, own.e_ident, EI_VERSION) == 0 &&
      header.e_machine == own.e_machine) {
    return "";
  }
  return absl::StrCat("it is made for another architecture, ELF machine ", header.e_machine,
                      "; this one is ", own.e_machine);
}

std::string WhyNotRunnable(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return std::strerror(EISDIR);
  if (access(path.c_str(), X_OK) != 0) return std::strerror(errno);
  // Who may run a program may not always read it.
  return access(path.c_str(), R_OK) == 0 ? WhyNone(HeaderOf(path)) : "";
}

}  // namespace

absl::Status CheckRunnable(const std::string& what, const std::string& path) {
  const std::string why = WhyNotRunnable(path);
  if (why.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("want ", what, " that can be run at '", path, "': ", why));
}

}  // namespace gridclock
