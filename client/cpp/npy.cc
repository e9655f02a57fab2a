#include "client/cpp/npy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/cpp/file.h"

namespace gridclock {
namespace {

// The dtype that an item means by itself; nothing for raw items.
std::optional<DType> PlainDType(const NpyItem& item) {
  if (item.kind == 'V') return std::nullopt;
  if (item.kind == 'b') return item.bytes == 1 ? std::optional(DType::kBool) : std::nullopt;
  if (item.kind == 'f' && item.bytes == 1) return std::nullopt;
  return ParseDType(absl::StrCat(std::string(1, item.kind), item.bytes * 8));
}

// numpy's names count bytes, ours bits: its i8 is i64 here.
std::string ItemText(const NpyItem& item) {
  const std::optional<DType> plain = PlainDType(item);
  if (!plain.has_value()) return absl::StrCat("raw items of ", item.bytes, " bytes");
  return absl::StrCat(Name(*plain), " (numpy's ", std::string(1, item.kind), item.bytes, ")");
}

// numpy does not know these, so they come under other names.
bool IsForeign(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2;
}

// Walks the row-major order of `to`, keeping the position in the column-major `from`.
void Transpose(const NpyHeader& header, std::span<const std::byte> from, std::span<std::byte> to) {
  const Shape& shape = header.shape;
  const std::int64_t size = header.item.bytes;
  Shape stride(shape.size()), index(shape.size(), 0);
  std::int64_t step = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    stride[d] = step;
    step *= shape[d];
  }
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < step; ++i) {
    std::memcpy(to.data() + i * size, from.data() + at * size, static_cast<std::size_t>(size));
    for (std::size_t d = shape.size(); d-- > 0;) {
      at += stride[d];
      if (++index[d] < shape[d]) break;
      at -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
}

void SwapBytes(std::int64_t size, std::span<std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += static_cast<std::size_t>(size)) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i) + size);
  }
}

}  // namespace

absl::StatusOr<DType> NpyDType(const NpyItem& item, std::optional<DType> as) {
  const std::optional<DType> plain = PlainDType(item);
  if (!as.has_value()) {
    if (plain.has_value()) return *plain;
    return absl::InvalidArgumentError(absl::StrCat(
        "raw items of ", item.bytes,
        " bytes: say what they are, as in FILE.npy:", item.bytes == 1 ? "f8e4m3" : "bf16"));
  }
  if (plain == as) return *as;
  const bool same_size = SizeOf(*as) == item.bytes;
  if (same_size && item.kind == 'V') return *as;
  if (same_size && item.kind == 'u' && IsForeign(*as)) return *as;
  return absl::InvalidArgumentError(
      absl::StrCat("the file has ", ItemText(item), ", which cannot stand for ", Name(*as)));
}

absl::StatusOr<LoadedTensor> ArrangeNpy(const NpyHeader& header, DType dtype,
                                        std::span<const std::byte> elements,
                                        std::shared_ptr<const void> keeper) {
  LoadedTensor out{
      .spec = {.dtype = dtype, .shape = header.shape}, .bytes = elements, .keeper = {}};
  const bool turn = header.fortran_order && header.shape.size() > 1 && !elements.empty();
  if (!turn && !header.item.big_endian) {
    out.keeper = std::move(keeper);
    return out;
  }
  GC_ASSIGN_OR_RETURN(Buffer copy, Buffer::Create(elements.size()));
  if (turn) {
    Transpose(header, elements, copy.span());
  } else if (!elements.empty()) {
    std::memcpy(copy.span().data(), elements.data(), elements.size());
  }
  if (header.item.big_endian) SwapBytes(header.item.bytes, copy.span());
  const auto owner = std::make_shared<Buffer>(std::move(copy));
  out.bytes = owner->span();
  out.keeper = owner;
  return out;
}

absl::StatusOr<LoadedTensor> LoadNpy(const std::string& path, std::optional<DType> as) {
  const auto load = [&]() -> absl::StatusOr<LoadedTensor> {
    GC_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
    const std::span<const std::byte> bytes = file->bytes();
    GC_ASSIGN_OR_RETURN(
        const NpyHeader header,
        ParseNpyHeader({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    GC_ASSIGN_OR_RETURN(const DType dtype, NpyDType(header.item, as));
    const auto want = static_cast<std::uint64_t>(Bytes({.dtype = dtype, .shape = header.shape}));
    const std::uint64_t got = bytes.size() - header.data_offset;
    if (want != got) {
      return absl::InvalidArgumentError(absl::StrCat(ToText(header.shape), " of ",
                                                     ItemText(header.item), " needs ", want,
                                                     " bytes, the file has ", got));
    }
    return ArrangeNpy(header, dtype, bytes.subspan(header.data_offset), file);
  };
  auto loaded = load();
  if (!loaded.ok()) return Annotate(loaded.status(), path);
  return loaded;
}

absl::Status WriteNpy(const std::string& path, const TensorSpec& spec,
                      std::span<const std::byte> bytes) {
  const std::string header = MakeNpyHeader(spec);
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span<const char>(header)), bytes};
  return WriteFile(path, parts);
}

}  // namespace gridclock
