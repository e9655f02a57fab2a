#include "server/rpc/status.h"

#include "proto/codec/error.h"

namespace gridclock {

grpc::Status ToGrpc(const absl::Status& status, const v1::RunSummary* summary) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), ErrorMessage(status),
                      EncodeError(status, summary));
}

}  // namespace gridclock
