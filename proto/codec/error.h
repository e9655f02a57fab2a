// Errors on the wire: absl::Status with its details <-> google.rpc.Status, the bytes of the trailer
// grpc-status-details-bin.
#ifndef GRIDCLOCK_PROTO_CODEC_ERROR_H_
#define GRIDCLOCK_PROTO_CODEC_ERROR_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gridclock/v1/kernels.pb.h"

namespace gridclock {

// Trailers are headers to HTTP/2, and clients refuse more than 8 KiB of those in all.
inline constexpr std::size_t kMaxErrorDetails = 4 * 1024;
inline constexpr std::size_t kMaxErrorMessage = 1024;

// At most kMaxErrorMessage bytes of the message, UTF-8 kept whole, and " ..." where it was cut.
std::string ErrorMessage(const absl::Status& status);

// At most kMaxErrorDetails bytes. `summary` (may be null): what was measured before the failure; it
// goes without its samples, and is the first to be left out if there is not room for all.
std::string EncodeError(const absl::Status& status, const v1::RunSummary* summary);

struct DecodedError {
  absl::Status status;  // With ErrorDetails, if the server sent any.
  std::optional<v1::RunSummary> summary;
};
// What a client makes of an ended call. Details that cannot be read are left out: the code and the
// message alone are what a server must send.
DecodedError DecodeError(absl::StatusCode code, absl::string_view message,
                         absl::string_view details);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_CODEC_ERROR_H_
