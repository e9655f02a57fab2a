// Tensors in numpy's .npz files: zip archives of .npy files.
#ifndef GRIDCLOCK_CLIENT_CPP_NPZ_H_
#define GRIDCLOCK_CLIENT_CPP_NPZ_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/npy.h"
#include "proto/types/tensor.h"

namespace gridclock {

struct NamedTensor {
  std::string name;
  LoadedTensor tensor;
};

// Every array of the archive, in the archive's order, which is the order they were saved in.
// Stored and deflated entries. The memory taken is what the headers of the arrays say.
absl::StatusOr<std::vector<NamedTensor>> LoadNpz(const std::string& path,
                                                 std::optional<DType> as = {});

// One array of the archive; the others are not looked at, so they may be of any kind. NOT_FOUND
// names those that are there.
absl::StatusOr<LoadedTensor> LoadNpzMember(const std::string& path, const std::string& name,
                                           std::optional<DType> as = {});

struct NamedBytes {
  std::string name;
  TensorSpec spec;
  std::span<const std::byte> bytes;
};
// Stored without compression: tensors seldom shrink.
absl::Status WriteNpz(const std::string& path, const std::vector<NamedBytes>& tensors);

}  // namespace gridclock

#endif  // GRIDCLOCK_CLIENT_CPP_NPZ_H_
