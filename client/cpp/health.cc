#include "client/cpp/health.h"

#if __has_include(<grpcpp/impl/client_unary_call.h>)
#include <grpcpp/impl/client_unary_call.h>
#else
#include <grpcpp/impl/codegen/client_unary_call.h>
#endif
#include <grpcpp/support/byte_buffer.h>

#include "client/cpp/messages.h"
#include "proto/codec/wire.h"

namespace gridclock {

absl::StatusOr<HealthState> HealthCheck(grpc::ChannelInterface& channel, const std::string& service,
                                        grpc::ClientContext* rpc) {
  std::string text;
  AppendTag(1, WireType::kBytes, &text);
  AppendVarint(service.size(), &text);
  text += service;
  const grpc::Slice slice(text);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  const grpc::internal::RpcMethod method("/grpc.health.v1.Health/Check",
                                         grpc::internal::RpcMethod::NORMAL_RPC);
  const grpc::Status status =
      grpc::internal::BlockingUnaryCall(&channel, method, rpc, request, &response);
  if (!status.ok()) return ToStatus(status);
  grpc::Slice bytes;
  if (!response.DumpToSingleSlice(&bytes).ok()) return Broken("an unreadable health answer");
  const std::span<const std::byte> span =
      std::as_bytes(std::span<const std::uint8_t>(bytes.begin(), bytes.size()));
  WireReader reader{Slices(&span, 1)};
  std::uint32_t field = 0;
  WireType type{};
  std::uint64_t state = 0;  // An empty answer is UNKNOWN.
  if (!reader.done() && (!reader.ReadTag(&field, &type) || field != 1 ||
                         type != WireType::kVarint || !reader.ReadVarint(&state))) {
    return Broken("an unreadable health answer");
  }
  return static_cast<HealthState>(state > 2 ? 0 : state);
}

}  // namespace gridclock
