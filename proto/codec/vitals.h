#ifndef GRIDCLOCK_PROTO_CODEC_VITALS_H_
#define GRIDCLOCK_PROTO_CODEC_VITALS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "gridclock/v1/types.pb.h"
#include "gridclock/worker/v1/worker.pb.h"
#include "proto/types/vitals.h"

namespace gridclock {

void Encode(const DeviceState& in, v1::DeviceState* out);
DeviceState Decode(const v1::DeviceState& in);

// Numbers that can be ones, and few reasons: a worker may say anything.
bool IsState(const DeviceState& state);

void Encode(const DeviceVitals& in, worker::v1::Vitals* out);
// INVALID_ARGUMENT for numbers that are none.
absl::StatusOr<DeviceVitals> Decode(const worker::v1::Vitals& in);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_CODEC_VITALS_H_
