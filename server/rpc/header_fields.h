// Counts the fields of a header block (HPACK, RFC 7541) without their names and values: each of
// them may be one byte on the wire, and is 200 bytes of memory once gRPC has read it.
#ifndef GRIDCLOCK_SERVER_RPC_HEADER_FIELDS_H_
#define GRIDCLOCK_SERVER_RPC_HEADER_FIELDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace gridclock {

// Bytes of one block, as they come. Of bytes that are no HPACK it counts something; gRPC closes a
// connection that sends such.
class HeaderFields {
 public:
  void Feed(absl::Span<const std::uint8_t> bytes);
  std::size_t count() const { return count_; }

 private:
  enum class At : std::uint8_t { kField, kRestOfIndex, kLength, kRestOfLength, kText };

  void OnField(std::uint8_t first);
  void BeginText();
  void EndText();

  At at_ = At::kField;
  int texts_ = 0;  // That the field still has: its name, its value.
  std::uint64_t length_ = 0;
  int shift_ = 0;
  std::size_t count_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_HEADER_FIELDS_H_
