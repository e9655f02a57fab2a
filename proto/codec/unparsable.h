#ifndef GRIDCLOCK_PROTO_CODEC_UNPARSABLE_H_
#define GRIDCLOCK_PROTO_CODEC_UNPARSABLE_H_

#include <google/protobuf/descriptor.h>

#include "absl/status/status.h"
#include "proto/codec/wire.h"

namespace gridclock {

// For bytes that protobuf refused as `message`: INVALID_ARGUMENT (UNPARSABLE) that names the field
// and says what is wrong there, which protobuf does not tell.
absl::Status Unparsable(const google::protobuf::Descriptor& message, WireReader bytes);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_CODEC_UNPARSABLE_H_
