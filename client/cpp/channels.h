// The connections of a client.
#ifndef GRIDCLOCK_CLIENT_CPP_CHANNELS_H_
#define GRIDCLOCK_CLIENT_CPP_CHANNELS_H_

#include <memory>

#include <grpcpp/channel.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/cpp/client.h"

namespace gridclock {

// "HOST:PORT", an IPv6 address in brackets: no URL.
bool IsHostAndPort(absl::string_view address);

// INVALID_ARGUMENT for options that cannot work or would give a token away.
absl::Status CheckOptions(const ClientOptions& options);

// Apart from all other channels of the process: a bulk stream must not share its connection.
std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options, int window_bytes);

}  // namespace gridclock

#endif  // GRIDCLOCK_CLIENT_CPP_CHANNELS_H_
