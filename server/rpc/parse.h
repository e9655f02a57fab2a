#ifndef GRIDCLOCK_SERVER_RPC_PARSE_H_
#define GRIDCLOCK_SERVER_RPC_PARSE_H_

#include <cstdint>
#include <span>
#include <string>

#include <grpcpp/support/byte_buffer.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/codec/unparsable.h"
#include "server/core/limits.h"
#include "server/rpc/answer.h"

namespace gridclock {

// How long a message may be, and the server's limit that says so; "" if no flag does.
struct MostBytes {
  double bytes = 0;
  absl::string_view limit = "";
};

inline absl::Status MessageTooLarge(absl::string_view message, std::uint64_t came,
                                    const MostBytes& most, absl::string_view advice = "") {
  const std::string value = absl::StrCat(static_cast<std::uint64_t>(most.bytes));
  ErrorDetails details;
  details.reason = "TOO_LARGE";
  details.metadata["value"] = value;
  if (!most.limit.empty()) details.metadata["limit"] = std::string(most.limit);
  return WithDetails(absl::ResourceExhaustedError(absl::StrCat(message, ": want at most ", value,
                                                               " bytes, got ", came, advice)),
                     details);
}

// RESOURCE_EXHAUSTED (TOO_LARGE) for one that is longer than the server takes of any method.
inline absl::Status CheckMessageBytes(const grpc::ByteBuffer& buffer, const Limits& limits) {
  const MostBytes most = {limits.message_bytes, "message_bytes"};
  if (static_cast<double>(buffer.Length()) <= most.bytes) return absl::OkStatus();
  return MessageTooLarge("a message", buffer.Length(), most,
                         "; tensors go by StreamRun, in chunks that fit a message");
}

// RESOURCE_EXHAUSTED (TOO_LARGE) for a longer one, INVALID_ARGUMENT (UNPARSABLE) for what is no
// such message.
template <typename Message>
absl::StatusOr<Message> ParseRequest(const grpc::ByteBuffer& buffer, const MostBytes& most) {
  if (static_cast<double>(buffer.Length()) > most.bytes) {
    return MessageTooLarge(Message::descriptor()->full_name(), buffer.Length(), most);
  }
  Message message;
  const std::string text = Flatten(buffer);
  if (message.ParseFromString(text)) return message;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return Unparsable(*Message::descriptor(), WireReader({&bytes, 1}));
}

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_PARSE_H_
