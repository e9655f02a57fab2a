#ifndef GRIDCLOCK_SERVER_RPC_PARSE_H_
#define GRIDCLOCK_SERVER_RPC_PARSE_H_

#include <grpcpp/support/byte_buffer.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/rpc/answer.h"

namespace gridclock {

// RESOURCE_EXHAUSTED for more than `most` bytes, INVALID_ARGUMENT for what is no such message.
template <typename Message>
absl::StatusOr<Message> ParseRequest(const grpc::ByteBuffer& buffer, double most) {
  if (static_cast<double>(buffer.Length()) > most) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this request has ", buffer.Length(), " bytes, at most ", most));
  }
  Message message;
  if (message.ParseFromString(Flatten(buffer))) return message;
  return absl::InvalidArgumentError(
      absl::StrCat("cannot parse ", Message::descriptor()->full_name()));
}

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_PARSE_H_
