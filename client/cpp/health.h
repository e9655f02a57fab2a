// grpc.health.v1.Health/Check: two fields, written and read by hand.
#ifndef GRIDCLOCK_CLIENT_CPP_HEALTH_H_
#define GRIDCLOCK_CLIENT_CPP_HEALTH_H_

#include <cstdint>
#include <string>

#include <grpcpp/client_context.h>
#include <grpcpp/impl/codegen/channel_interface.h>

#include "absl/status/statusor.h"

namespace gridclock {

enum class HealthState : std::uint8_t { kUnknown = 0, kServing = 1, kNotServing = 2 };

absl::StatusOr<HealthState> HealthCheck(grpc::ChannelInterface& channel, const std::string& service,
                                        grpc::ClientContext* rpc);

}  // namespace gridclock

#endif  // GRIDCLOCK_CLIENT_CPP_HEALTH_H_
