// Tensors in numpy's .npy files, versions 1 to 3. Read: every dtype of Gridclock in either byte
// order and either layout; bf16 and f8, which numpy does not know, from raw items ("V2", "V1") or
// unsigned integers where the caller says which. Object arrays are refused: they are pickled code.
#ifndef GRIDCLOCK_CLIENT_CPP_NPY_H_
#define GRIDCLOCK_CLIENT_CPP_NPY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/buffer.h"
#include "proto/types/tensor.h"

namespace gridclock {

// What a header says of the elements.
struct NpyItem {
  char kind = 'f';         // As in numpy: f i u b V.
  std::int64_t bytes = 4;  // Of one element.
  bool big_endian = false;
};
struct NpyHeader {
  NpyItem item;
  Shape shape;
  bool fortran_order = false;
  std::uint64_t data_offset = 0;  // Where the elements begin.
};

// Reads the beginning of a file. `start` may be longer than the header. Never reads past it, and
// checks that the elements' size does not overflow. INVALID_ARGUMENT says what is wrong;
// OUT_OF_RANGE: the header goes on beyond `start`.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view start);

// The dtype of the elements. `as`: what the caller says they are; must fit the item.
absl::StatusOr<DType> NpyDType(const NpyItem& item, std::optional<DType> as);

// The header of a file of `spec`; its length is a multiple of 64. bf16 and f8 become raw items.
std::string MakeNpyHeader(const TensorSpec& spec);

// A tensor and what holds its bytes: a mapped file or memory.
struct LoadedTensor {
  TensorSpec spec;
  std::span<const std::byte> bytes;    // Dense, row-major, little-endian.
  std::shared_ptr<const void> keeper;  // Owns `bytes`; shared by the tensors of one file.
};

// Elements that lie in memory as `header` says, as a tensor: as they are, or converted to a copy.
// `elements` must be exactly the array's.
absl::StatusOr<LoadedTensor> ArrangeNpy(const NpyHeader& header, DType dtype,
                                        std::span<const std::byte> elements,
                                        std::shared_ptr<const void> keeper);

// Maps the file rather than reading it, so a huge tensor costs no memory until it is used. The file
// must not be cut while the tensor lives.
absl::StatusOr<LoadedTensor> LoadNpy(const std::string& path, std::optional<DType> as = {});

// Writes a whole file or, on failure, none: it takes its name when it is complete.
absl::Status WriteNpy(const std::string& path, const TensorSpec& spec,
                      std::span<const std::byte> bytes);

}  // namespace gridclock

#endif  // GRIDCLOCK_CLIENT_CPP_NPY_H_
