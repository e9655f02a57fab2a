#include "server/rpc/status.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "proto/codec/error.h"

namespace gridclock {

grpc::Status EndOf(grpc::ServerContextBase& context, const absl::Status& status,
                   const v1::RunSummary* summary) {
  if (status.ok()) return grpc::Status::OK;
  if (const auto wait = DetailsOf(status).retry_after) {
    const auto millis = absl::ToInt64Milliseconds(absl::Ceil(*wait, absl::Milliseconds(1)));
    context.AddTrailingMetadata("grpc-retry-pushback-ms", absl::StrCat(millis));
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), ErrorMessage(status),
                      EncodeError(status, summary));
}

}  // namespace gridclock
