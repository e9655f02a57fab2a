// Protobuf's wire format read straight from the pieces that a message came in, so that tensor bytes
// are found without being parsed or copied. Knows fields and lengths, no messages.
#ifndef GRIDCLOCK_PROTO_CODEC_WIRE_H_
#define GRIDCLOCK_PROTO_CODEC_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "base/copy.h"

namespace gridclock {

// The bytes of one message, in the pieces that the transport made. Borrowed.
using Slices = std::span<const std::span<const std::byte>>;

// A stretch of a message: where it begins, and its length. May go on over several slices.
struct ByteRange {
  std::size_t slice = 0;
  std::size_t offset = 0;
  std::uint64_t size = 0;
};

enum class WireType : std::uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5
};

// Reads forward. A method that answers false has met bytes that are no protobuf; error() says what
// was wrong. Nothing is allocated by what a length claims.
class WireReader {
 public:
  explicit WireReader(Slices slices);
  WireReader(Slices slices, const ByteRange& range);

  bool done() const { return left_ == 0; }
  std::uint64_t left() const { return left_; }
  absl::string_view error() const { return error_; }

  bool ReadVarint(std::uint64_t* value);
  bool ReadTag(std::uint32_t* field, WireType* type);
  // The length and the bytes of a field of type kBytes: hands out their place and steps over them.
  bool ReadBytes(ByteRange* bytes);
  // Steps over the value of a field whose tag was read.
  bool Skip(std::uint32_t field, WireType type);

  // The next bytes alone; `size` MUST be at most left().
  WireReader First(std::uint64_t size) const { return {slices_, {slice_, offset_, size}}; }
  // What lies between here and a place further on that was read from the same reader.
  ByteRange Here() const { return {slice_, offset_, left_}; }
  void AppendSince(const ByteRange& start, std::string* out) const;

  // `size` MUST be at most left().
  void Copy(std::byte* to, std::uint64_t size, Reuse reuse);

 private:
  void Normalize();
  bool Advance(std::uint64_t size);
  bool SkipGroup(std::uint32_t field);
  bool Fail(absl::string_view error);

  Slices slices_;
  std::size_t slice_ = 0, offset_ = 0;
  std::uint64_t left_ = 0;
  absl::string_view error_;
};

// All of `range`, which `out` has room for.
void CopyTo(Slices slices, const ByteRange& range, std::byte* out, Reuse reuse);
std::string ToString(Slices slices, const ByteRange& range);

// Writers for the frames around borrowed bytes.
void AppendVarint(std::uint64_t value, std::string* out);
void AppendTag(std::uint32_t field, WireType type, std::string* out);
std::uint64_t VarintBytes(std::uint64_t value);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_CODEC_WIRE_H_
