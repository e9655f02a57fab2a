#include "kernels/worker/printed.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/status.h"
#include "base/text.h"

namespace gridclock {
namespace {

// No more than this can be written: the file is sealed at this size.
constexpr off_t kRoom = 4 * static_cast<off_t>(kMostPrinted);

}  // namespace

absl::StatusOr<std::unique_ptr<Printed>> Printed::Create() {
  UniqueFd caught(memfd_create("printed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!caught) return ErrnoToStatus(errno, "memfd for what is printed");
  if (ftruncate(caught.get(), kRoom) != 0 ||
      fcntl(caught.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    return ErrnoToStatus(errno, "seal the memfd for what is printed");
  }
  UniqueFd output(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  UniqueFd error(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  if (!output || !error) return ErrnoToStatus(errno, "keep standard output and error");
  // What found no room must not be kept for the next order.
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  return std::unique_ptr<Printed>(
      new Printed(std::move(caught), std::move(output), std::move(error)));
}

void Printed::Begin() {
  std::fflush(stdout);
  std::clearerr(stdout);
  std::clearerr(stderr);
  lseek(caught_.get(), 0, SEEK_SET);
  dup2(caught_.get(), STDOUT_FILENO);
  dup2(caught_.get(), STDERR_FILENO);
}

void Printed::End(Outcome* outcome) {
  dup2(output_.get(), STDOUT_FILENO);
  dup2(error_.get(), STDERR_FILENO);
  const off_t end = std::clamp<off_t>(lseek(caught_.get(), 0, SEEK_CUR), 0, kRoom);
  if (end == 0 && std::ferror(stdout) == 0) return;
  std::string text(static_cast<std::size_t>(end), '\0');
  const ssize_t got = pread(caught_.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  bool cut = false;
  outcome->printed = CutText(CleanText(text), kMostPrinted, &cut);
  outcome->printed_truncated = cut || std::ferror(stdout) != 0 || std::ferror(stderr) != 0;
}

}  // namespace gridclock
