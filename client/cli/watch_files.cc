#include "client/cli/watch_files.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace gridclock::cli {
namespace {

constexpr absl::Duration kQuiet = absl::Milliseconds(50);
constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_MODIFY;

// A file that is written anew has another inode, size or time.
std::string StateOf(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return "missing";
  return absl::StrCat(found.st_ino, " ", found.st_size, " ", found.st_mtim.tv_sec, ".",
                      found.st_mtim.tv_nsec);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileWatch>> FileWatch::Create(
    const std::vector<std::string>& files) {
  UniqueFd fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (fd.get() < 0) return ErrnoToStatus(errno, "inotify_init1");
  for (const std::string& file : files) {
    const std::string parent = std::filesystem::path(file).parent_path().string();
    const std::string folder = parent.empty() ? "." : parent;
    if (inotify_add_watch(fd.get(), folder.c_str(), kEvents) < 0) {
      return ErrnoToStatus(errno, absl::StrCat("watch ", folder));
    }
  }
  std::unique_ptr<FileWatch> watch(new FileWatch(std::move(fd)));
  watch->files_ = files;
  watch->state_ = watch->State();
  return watch;
}

std::map<std::string, std::string> FileWatch::State() const {
  std::map<std::string, std::string> state;
  for (const std::string& file : files_) state[file] = StateOf(file);
  return state;
}

absl::StatusOr<bool> FileWatch::WaitForEvent(absl::Duration timeout) {
  pollfd poll_fd{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  const auto wait =
      timeout == absl::InfiniteDuration()
          ? -1
          : static_cast<int>(std::max<std::int64_t>(0, absl::ToInt64Milliseconds(timeout)));
  const int ready = poll(&poll_fd, 1, wait);
  if (ready < 0 && errno != EINTR) return ErrnoToStatus(errno, "poll");
  if (ready <= 0) return false;
  char events[4096];
  while (read(fd_.get(), events, sizeof(events)) > 0) {
  }
  return true;
}

absl::StatusOr<bool> FileWatch::WaitForChange(absl::Duration timeout) {
  const absl::Time end = absl::Now() + timeout;
  while (absl::Now() < end) {
    const auto now = State();
    if (now != state_ && now.at(files_.front()) != "missing") {
      bool busy = true;
      while (busy) {
        GC_ASSIGN_OR_RETURN(busy, WaitForEvent(kQuiet));
      }
      state_ = State();
      return true;
    }
    GC_RETURN_IF_ERROR(WaitForEvent(end - absl::Now()).status());
  }
  return false;
}

}  // namespace gridclock::cli
