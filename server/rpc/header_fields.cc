#include "server/rpc/header_fields.h"

#include <algorithm>

namespace gridclock {
namespace {

constexpr std::uint8_t kMore = 0x80;  // Of a number: another byte follows.
constexpr int kLongestShift = 28;     // Longer numbers are none that may come.

}  // namespace

void HeaderFields::Feed(absl::Span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    if (at_ == At::kText) {
      const auto skipped = std::min<std::uint64_t>(length_, bytes.size());
      length_ -= skipped;
      bytes.remove_prefix(skipped);
      if (length_ == 0) EndText();
      continue;
    }
    const std::uint8_t byte = bytes.front();
    bytes.remove_prefix(1);
    switch (at_) {
      case At::kField:
        OnField(byte);
        break;
      case At::kRestOfIndex:
        if ((byte & kMore) == 0) at_ = texts_ > 0 ? At::kLength : At::kField;
        break;
      case At::kLength:  // Its first bit says whether the text is Huffman's.
        length_ = byte & 0x7f;
        shift_ = 0;
        if (length_ == 0x7f)
          at_ = At::kRestOfLength;
        else
          BeginText();
        break;
      case At::kRestOfLength:
        if (shift_ <= kLongestShift) length_ += std::uint64_t{byte & 0x7fU} << shift_;
        shift_ += 7;
        if ((byte & kMore) == 0) BeginText();
        break;
      case At::kText:
        break;
    }
  }
}

// An entry of the tables (1...), a size of the dynamic one (001...), or texts: with a name of the
// tables, or, where that is number 0, one of their own.
void HeaderFields::OnField(std::uint8_t first) {
  ++count_;
  const bool indexed = (first & 0x80) != 0, kept = (first & 0x40) != 0;
  const bool resized = !indexed && !kept && (first & 0x20) != 0;
  const std::uint8_t most = indexed ? 0x7f : kept ? 0x3f : resized ? 0x1f : 0x0f;
  const std::uint8_t index = first & most;
  texts_ = indexed || resized ? 0 : index == 0 ? 2 : 1;
  at_ = index == most ? At::kRestOfIndex : texts_ > 0 ? At::kLength : At::kField;
}

void HeaderFields::BeginText() {
  at_ = At::kText;
  if (length_ == 0) EndText();
}

void HeaderFields::EndText() {
  at_ = --texts_ > 0 ? At::kLength : At::kField;
}

}  // namespace gridclock
