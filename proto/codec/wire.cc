#include "proto/codec/wire.h"

#include <algorithm>

namespace gridclock {
namespace {

constexpr int kMaxVarintBytes = 10;
constexpr int kMaxNesting = 100;  // As protobuf's own parser has it.
constexpr std::uint64_t kMaxField = (1u << 29) - 1;

std::uint64_t TotalBytes(Slices slices) {
  std::uint64_t total = 0;
  for (const auto& slice : slices) total += slice.size();
  return total;
}

}  // namespace

WireReader::WireReader(Slices slices) : slices_(slices), left_(TotalBytes(slices)) {
  Normalize();
}

WireReader::WireReader(Slices slices, const ByteRange& range)
    : slices_(slices), slice_(range.slice), offset_(range.offset), left_(range.size) {
  Normalize();
}

// Keeps the position inside a slice, so that reading a byte needs no loop.
void WireReader::Normalize() {
  while (slice_ < slices_.size() && offset_ == slices_[slice_].size()) {
    ++slice_;
    offset_ = 0;
  }
}

bool WireReader::Fail(absl::string_view error) {
  if (error_.empty()) error_ = error;
  return false;
}

bool WireReader::ReadVarint(std::uint64_t* value) {
  *value = 0;
  for (int i = 0; i < kMaxVarintBytes; ++i) {
    if (left_ == 0) return Fail("it ends inside a number");
    const auto byte = static_cast<std::uint64_t>(slices_[slice_][offset_]);
    ++offset_;
    --left_;
    Normalize();
    *value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) return true;
  }
  return Fail("a number has more than 10 bytes");
}

bool WireReader::ReadTag(std::uint32_t* field, WireType* type) {
  std::uint64_t tag = 0;
  if (!ReadVarint(&tag)) return false;
  if (tag >> 3 == 0 || tag >> 3 > kMaxField) return Fail("a field has a number that cannot be");
  if ((tag & 7) > 5) return Fail("a field has a type that does not exist");
  *field = static_cast<std::uint32_t>(tag >> 3);
  *type = static_cast<WireType>(tag & 7);
  return true;
}

bool WireReader::Advance(std::uint64_t size) {
  if (size > left_) return Fail("a length goes beyond the end of the message");
  left_ -= size;
  while (size > 0) {
    const std::uint64_t here = std::min<std::uint64_t>(size, slices_[slice_].size() - offset_);
    offset_ += here;
    size -= here;
    Normalize();
  }
  return true;
}

bool WireReader::ReadBytes(ByteRange* bytes) {
  std::uint64_t size = 0;
  if (!ReadVarint(&size)) return false;
  *bytes = {slice_, offset_, size};
  return Advance(size);
}

bool WireReader::Skip(std::uint32_t field, WireType type) {
  std::uint64_t ignored = 0;
  ByteRange range;
  switch (type) {
    case WireType::kVarint:
      return ReadVarint(&ignored);
    case WireType::kFixed64:
      return Advance(8);
    case WireType::kBytes:
      return ReadBytes(&range);
    case WireType::kGroup:
      return SkipGroup(field);
    case WireType::kEndGroup:
      return Fail("a group ends that did not begin");
    case WireType::kFixed32:
      return Advance(4);
  }
  return Fail("a field has a type that does not exist");
}

// With a stack of its own: recursion would let a message choose how deep the call stack grows.
bool WireReader::SkipGroup(std::uint32_t field) {
  std::uint32_t open[kMaxNesting] = {field};
  int depth = 1;
  while (depth > 0) {
    WireType type;
    if (!ReadTag(&field, &type)) return false;
    if (type == WireType::kGroup) {
      if (depth == kMaxNesting) return Fail("it nests deeper than 100 levels");
      open[depth++] = field;
    } else if (type == WireType::kEndGroup) {
      if (open[--depth] != field) return Fail("a group ends that did not begin");
    } else if (!Skip(field, type)) {
      return false;
    }
  }
  return true;
}

void WireReader::AppendSince(const ByteRange& start, std::string* out) const {
  const std::uint64_t size = start.size - left_;
  const std::size_t before = out->size();
  out->resize(before + size);
  CopyTo(slices_, {start.slice, start.offset, size},
         reinterpret_cast<std::byte*>(out->data() + before), Reuse::kSoon);
}

void WireReader::Copy(std::byte* to, std::uint64_t size, Reuse reuse) {
  left_ -= size;
  while (size > 0) {
    const std::uint64_t here = std::min<std::uint64_t>(size, slices_[slice_].size() - offset_);
    CopyBytes(to, slices_[slice_].data() + offset_, here, reuse);
    to += here;
    offset_ += here;
    size -= here;
    Normalize();
  }
}

void CopyTo(Slices slices, const ByteRange& range, std::byte* out, Reuse reuse) {
  WireReader(slices, range).Copy(out, range.size, reuse);
}

std::string ToString(Slices slices, const ByteRange& range) {
  std::string out(range.size, '\0');
  CopyTo(slices, range, reinterpret_cast<std::byte*>(out.data()), Reuse::kSoon);
  return out;
}

void AppendVarint(std::uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

void AppendTag(std::uint32_t field, WireType type, std::string* out) {
  AppendVarint(field << 3 | static_cast<std::uint32_t>(type), out);
}

std::uint64_t VarintBytes(std::uint64_t value) {
  std::uint64_t bytes = 1;
  while (value >= 0x80) {
    value >>= 7;
    ++bytes;
  }
  return bytes;
}

}  // namespace gridclock
