#include "client/cpp/npz.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <zip.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace gridclock {
namespace {

constexpr std::size_t kFirstRead = 4096;            // Holds nearly every header.
constexpr std::size_t kMaxPrefix = (1 << 20) + 12;  // The longest header that is accepted.

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, Discard>;
struct CloseEntry {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Entry = std::unique_ptr<zip_file_t, CloseEntry>;

absl::StatusOr<Archive> Open(const std::string& path, int flags) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), flags, &code));
  if (archive != nullptr) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return absl::InvalidArgumentError(text);
}

// Reads until `to` is full or the entry ends; returns how much came.
absl::StatusOr<std::size_t> ReadUpTo(zip_file_t* file, std::span<std::byte> to) {
  std::size_t size = 0;
  while (size < to.size()) {
    const zip_int64_t n = zip_fread(file, to.data() + size, to.size() - size);
    if (n < 0) return absl::InvalidArgumentError(zip_file_strerror(file));
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  return size;
}

// Grows `prefix` until it holds the header.
absl::StatusOr<NpyHeader> ReadHeader(zip_file_t* file, std::vector<std::byte>* prefix) {
  for (std::size_t want = kFirstRead;; want = kMaxPrefix) {
    const std::size_t had = prefix->size();
    prefix->resize(want);
    GC_ASSIGN_OR_RETURN(const std::size_t got, ReadUpTo(file, std::span(*prefix).subspan(had)));
    prefix->resize(had + got);
    auto header = ParseNpyHeader({reinterpret_cast<const char*>(prefix->data()), prefix->size()});
    if (!absl::IsOutOfRange(header.status()) || want == kMaxPrefix) return header;
  }
}

absl::StatusOr<LoadedTensor> ReadEntry(zip_t* archive, zip_uint64_t index,
                                       std::optional<DType> as) {
  const Entry file(zip_fopen_index(archive, index, 0));
  if (file == nullptr) return absl::InvalidArgumentError(zip_strerror(archive));
  std::vector<std::byte> prefix;
  GC_ASSIGN_OR_RETURN(const NpyHeader header, ReadHeader(file.get(), &prefix));
  GC_ASSIGN_OR_RETURN(const DType dtype, NpyDType(header.item, as));
  const auto want = static_cast<std::uint64_t>(Bytes({.dtype = dtype, .shape = header.shape}));
  GC_ASSIGN_OR_RETURN(Buffer buffer, Buffer::Create(want));
  const std::size_t early = std::min<std::uint64_t>(prefix.size() - header.data_offset, want);
  if (early > 0) std::memcpy(buffer.span().data(), prefix.data() + header.data_offset, early);
  GC_ASSIGN_OR_RETURN(const std::size_t late, ReadUpTo(file.get(), buffer.span().subspan(early)));
  // One more byte asked for, so that zip checks its sum at the end of the entry.
  std::byte more{};
  GC_ASSIGN_OR_RETURN(const std::size_t over, ReadUpTo(file.get(), std::span(&more, 1)));
  if (early + late != want || over != 0 || prefix.size() - header.data_offset > want) {
    return absl::InvalidArgumentError(absl::StrCat(ToText(header.shape), " needs ", want,
                                                   " bytes, the entry has another number"));
  }
  const auto keeper = std::make_shared<Buffer>(std::move(buffer));
  return ArrangeNpy(header, dtype, keeper->span(), keeper);
}

absl::StatusOr<std::vector<NamedTensor>> ReadAll(zip_t* archive, std::optional<DType> as) {
  std::vector<NamedTensor> out;
  const zip_int64_t entries = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < entries; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    const char* name = zip_get_name(archive, index, 0);
    if (name == nullptr || !absl::EndsWith(name, ".npy")) continue;
    auto tensor = ReadEntry(archive, index, as);
    if (!tensor.ok()) return Annotate(tensor.status(), name);
    out.push_back({std::string(absl::StripSuffix(name, ".npy")), *std::move(tensor)});
  }
  if (out.empty()) return absl::InvalidArgumentError("no array in it");
  return out;
}

// The names of the arrays, to tell what there is.
std::string ArrayNames(zip_t* archive) {
  constexpr zip_int64_t kShown = 20;
  std::vector<std::string> names;
  const zip_int64_t entries = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < std::min(entries, kShown); ++i) {
    const char* name = zip_get_name(archive, static_cast<zip_uint64_t>(i), 0);
    if (name != nullptr && absl::EndsWith(name, ".npy")) {
      names.emplace_back(absl::StripSuffix(name, ".npy"));
    }
  }
  if (names.empty()) return "none, that is no entry NAME.npy";
  return absl::StrJoin(names, ", ") + (entries > kShown ? ", ..." : "");
}

absl::StatusOr<LoadedTensor> ReadMember(zip_t* archive, const std::string& name,
                                        std::optional<DType> as) {
  const zip_int64_t index = zip_name_locate(archive, (name + ".npy").c_str(), 0);
  if (index < 0) {
    return absl::NotFoundError(absl::StrCat("no array '", name, "'; it has ", ArrayNames(archive)));
  }
  auto tensor = ReadEntry(archive, static_cast<zip_uint64_t>(index), as);
  if (!tensor.ok()) return Annotate(tensor.status(), name);
  return tensor;
}

absl::Status AddEntry(zip_t* archive, const NamedBytes& tensor, const std::string& header) {
  zip_error_t error;
  zip_error_init(&error);
  zip_buffer_fragment_t parts[] = {
      {reinterpret_cast<zip_uint8_t*>(const_cast<char*>(header.data())), header.size()},
      {reinterpret_cast<zip_uint8_t*>(const_cast<std::byte*>(tensor.bytes.data())),
       tensor.bytes.size()}};
  zip_source_t* source =
      zip_source_buffer_fragment_create(parts, tensor.bytes.empty() ? 1 : 2, 0, &error);
  zip_error_fini(&error);
  if (source == nullptr) return absl::ResourceExhaustedError("zip: no memory");
  const zip_int64_t index =
      zip_file_add(archive, (tensor.name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return absl::InvalidArgumentError(zip_strerror(archive));
  }
  zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
  return absl::OkStatus();
}

absl::Status WriteAll(const std::string& path, const std::vector<NamedBytes>& tensors) {
  GC_ASSIGN_OR_RETURN(Archive archive, Open(path, ZIP_CREATE | ZIP_TRUNCATE));
  std::vector<std::string> headers;  // Read when the archive is closed.
  headers.reserve(tensors.size());
  for (const NamedBytes& tensor : tensors) {
    headers.push_back(MakeNpyHeader(tensor.spec));
    GC_RETURN_IF_ERROR(AddEntry(archive.get(), tensor, headers.back()));
  }
  // Writes beside the file and gives it its name at the end.
  if (zip_close(archive.get()) != 0) return absl::InternalError(zip_strerror(archive.get()));
  (void)archive.release();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> LoadNpz(const std::string& path, std::optional<DType> as) {
  auto archive = Open(path, ZIP_RDONLY);
  if (!archive.ok()) return Annotate(archive.status(), path);
  auto out = ReadAll(archive->get(), as);
  if (!out.ok()) return Annotate(out.status(), path);
  return out;
}

absl::StatusOr<LoadedTensor> LoadNpzMember(const std::string& path, const std::string& name,
                                           std::optional<DType> as) {
  auto archive = Open(path, ZIP_RDONLY);
  if (!archive.ok()) return Annotate(archive.status(), path);
  auto out = ReadMember(archive->get(), name, as);
  if (!out.ok()) return Annotate(out.status(), path);
  return out;
}

absl::Status WriteNpz(const std::string& path, const std::vector<NamedBytes>& tensors) {
  const absl::Status status = WriteAll(path, tensors);
  return status.ok() ? status : Annotate(status, path);
}

}  // namespace gridclock
