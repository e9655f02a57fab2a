// Files of the client.
#ifndef GRIDCLOCK_CLIENT_CPP_FILE_H_
#define GRIDCLOCK_CLIENT_CPP_FILE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gridclock {

// A file seen as memory. Pages come from the disk when they are touched.
class MappedFile {
 public:
  // INVALID_ARGUMENT for what is no regular file.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

// Writes the parts to a file beside `path` that then takes its name: readers see the old file or
// the new one, which has the old one's permissions. A device or pipe is written to in place.
absl::Status WriteFile(const std::string& path, std::span<const std::span<const std::byte>> parts);

// Whether WriteFile can: "cannot write /nosuch/out.npy: no folder /nosuch". Nothing is written.
absl::Status CheckWritable(const std::string& path);

// A whole small file as text, at most 1 MiB.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

}  // namespace gridclock

#endif  // GRIDCLOCK_CLIENT_CPP_FILE_H_
