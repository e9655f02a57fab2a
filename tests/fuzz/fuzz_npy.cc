// Bytes as a .npy file: as they are, and with the length of the header mended, so that the dict is
// read. A header that is taken must be sane, end inside the file, and hold for any longer or
// shorter piece of it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "client/cpp/npy.h"
#include "proto/types/tensor.h"
#include "tests/fuzz/check.h"

namespace gridclock {
namespace {

constexpr std::size_t kFixed = 10;  // Magic, version and length of a file of version 1.

void CheckHeader(const NpyHeader& header, std::size_t file_bytes) {
  FUZZ_CHECK(header.data_offset <= file_bytes);
  FUZZ_CHECK(header.shape.size() <= kMaxRank);
  for (const std::int64_t size : header.shape) FUZZ_CHECK(size >= 0);
  FUZZ_CHECK(absl::string_view("fiubV").find(header.item.kind) != absl::string_view::npos);
  const std::int64_t bytes = header.item.bytes;
  FUZZ_CHECK(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
  FUZZ_CHECK(CheckedElements(header.shape).ok());
}

bool Same(const NpyHeader& a, const NpyHeader& b) {
  return a.item.kind == b.item.kind && a.item.bytes == b.item.bytes &&
         a.item.big_endian == b.item.big_endian && a.shape == b.shape &&
         a.fortran_order == b.fortran_order && a.data_offset == b.data_offset;
}

// What begins a tensor that was read must read as that tensor.
void CheckWritten(const TensorSpec& spec) {
  const std::string start = MakeNpyHeader(spec);
  FUZZ_CHECK(start.size() % 64 == 0);
  const auto again = ParseNpyHeader(start);
  FUZZ_CHECK(again.ok() && again->shape == spec.shape && again->data_offset == start.size());
  const auto dtype = NpyDType(again->item, spec.dtype);
  FUZZ_CHECK(dtype.ok() && *dtype == spec.dtype);
}

void CheckElements(const NpyHeader& header, DType dtype, absl::string_view elements) {
  const auto bytes = std::as_bytes(std::span(elements.data(), elements.size()));
  const auto loaded = ArrangeNpy(header, dtype, bytes, nullptr);
  if (!loaded.ok()) return;
  FUZZ_CHECK(loaded->spec.shape == header.shape && loaded->bytes.size() == elements.size());
  // Reads them all: a converted copy has no byte that was not written.
  FUZZ_CHECK(std::count(loaded->bytes.begin(), loaded->bytes.end(), std::byte{0}) >= 0);
}

void FuzzFile(absl::string_view file) {
  const auto header = ParseNpyHeader(file);
  if (!header.ok()) return;
  CheckHeader(*header, file.size());
  const auto exact = ParseNpyHeader(file.substr(0, header->data_offset));
  FUZZ_CHECK(exact.ok() && Same(*exact, *header));
  FUZZ_CHECK(absl::IsOutOfRange(ParseNpyHeader(file.substr(0, header->data_offset - 1)).status()));
  const auto dtype = NpyDType(header->item, {});
  if (!dtype.ok()) return;
  const TensorSpec spec{.dtype = *dtype, .shape = header->shape};
  CheckWritten(spec);
  const absl::string_view elements = file.substr(header->data_offset);
  if (static_cast<std::uint64_t>(*CheckedBytes(spec)) == elements.size()) {
    CheckElements(*header, *dtype, elements);
  }
}

// All that follows the first ten bytes as the dict.
std::string Mended(absl::string_view file) {
  const std::size_t length = std::min<std::size_t>(file.size() - kFixed, 0xFFFF);
  std::string mended("\x93NUMPY\x01\x00", 8);
  mended += static_cast<char>(length & 0xFF);
  mended += static_cast<char>(length >> 8);
  return mended + std::string(file.substr(kFixed));
}

}  // namespace
}  // namespace gridclock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view file(reinterpret_cast<const char*>(data), size);
  gridclock::FuzzFile(file);
  if (size >= gridclock::kFixed) gridclock::FuzzFile(gridclock::Mended(file));
  return 0;
}
