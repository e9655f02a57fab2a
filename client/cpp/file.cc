#include "client/cpp/file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace gridclock {
namespace {

absl::Status WriteAll(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, absl::StrCat("write ", path));
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return absl::OkStatus();
}

// A file that it makes has `mode` if one is given, else what the umask leaves of 0666.
absl::Status WriteParts(const std::string& path, int flags, std::optional<mode_t> mode,
                        std::span<const std::span<const std::byte>> parts) {
  UniqueFd fd(open(path.c_str(), flags, mode.value_or(0666)));
  if (!fd) return ErrnoToStatus(errno, absl::StrCat("open ", path));
  if (mode.has_value() && fchmod(fd.get(), *mode) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("chmod ", path));
  }
  for (const auto& part : parts) GC_RETURN_IF_ERROR(WriteAll(fd.get(), part, path));
  // Some file systems say only here that the bytes were lost.
  if (close(fd.release()) != 0) return ErrnoToStatus(errno, absl::StrCat("close ", path));
  return absl::OkStatus();
}

std::optional<mode_t> ModeOf(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_mode & 0777;
}

bool IsSpecial(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

bool IsFolder(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return ErrnoToStatus(errno, "open");
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return ErrnoToStatus(errno, "stat");
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError("no regular file");
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile({}));
  void* at = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (at == MAP_FAILED) return ErrnoToStatus(errno, "map");
  return std::shared_ptr<const MappedFile>(
      new MappedFile({static_cast<const std::byte*>(at), size}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

absl::Status WriteFile(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  if (IsSpecial(path)) return WriteParts(path, O_WRONLY | O_CLOEXEC, std::nullopt, parts);
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".part");
  absl::Cleanup remove = [&] { unlink(temporary.c_str()); };
  GC_RETURN_IF_ERROR(
      WriteParts(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, ModeOf(path), parts));
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("rename to ", path));
  }
  std::move(remove).Cancel();
  return absl::OkStatus();
}

absl::Status CheckWritable(const std::string& path) {
  const auto cannot = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": ", why));
  };
  if (IsFolder(path)) return cannot("it is a folder");
  if (IsSpecial(path)) {
    return access(path.c_str(), W_OK) == 0 ? absl::OkStatus() : cannot(std::strerror(errno));
  }
  const std::size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
  if (!IsFolder(folder)) return cannot("no folder " + folder);
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return cannot(absl::StrCat("the folder ", folder, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  constexpr std::size_t kLimit = 1 << 20;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return ErrnoToStatus(errno, absl::StrCat("open ", path));
  std::string out(kLimit + 1, '\0');
  std::size_t size = 0;
  while (size < out.size()) {
    const ssize_t n = read(fd.get(), out.data() + size, out.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, absl::StrCat("read ", path));
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  if (size > kLimit) return absl::InvalidArgumentError(absl::StrCat(path, ": over 1 MiB"));
  out.resize(size);
  return out;
}

}  // namespace gridclock
