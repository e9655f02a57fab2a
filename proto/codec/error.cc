#include "proto/codec/error.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "google/protobuf/util/time_util.h"
#include "google/rpc/error_details.pb.h"

namespace gridclock {
namespace {

constexpr char kDomain[] = "gridclock";

// Cuts behind a whole UTF-8 character.
std::string Cut(absl::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  constexpr absl::string_view kMark = " ...";
  std::size_t end = limit - kMark.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), kMark);
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  return google::protobuf::util::TimeUtil::NanosecondsToDuration(
      absl::ToInt64Nanoseconds(duration));
}

void AddErrorInfo(const ErrorDetails& details, google::rpc::Status* out) {
  if (details.reason.empty() && details.metadata.empty()) return;
  google::rpc::ErrorInfo info;
  info.set_reason(details.reason);
  info.set_domain(kDomain);
  for (const auto& [key, value] : details.metadata) (*info.mutable_metadata())[key] = value;
  out->add_details()->PackFrom(info);
}

google::rpc::Status ToProto(const absl::Status& status, const ErrorDetails& details) {
  google::rpc::Status out;
  out.set_code(static_cast<int>(status.code()));
  out.set_message(ErrorMessage(status));
  AddErrorInfo(details, &out);
  if (!details.field.empty()) {
    google::rpc::BadRequest bad;
    auto* violation = bad.add_field_violations();
    violation->set_field(Cut(details.field, 256));
    violation->set_description(Cut(status.message(), 256));
    out.add_details()->PackFrom(bad);
  }
  if (details.retry_after) {
    google::rpc::RetryInfo retry;
    *retry.mutable_retry_delay() = ToProto(*details.retry_after);
    out.add_details()->PackFrom(retry);
  }
  return out;
}

v1::RunSummary WithoutSamples(const v1::RunSummary& summary) {
  v1::RunSummary out = summary;
  out.mutable_timing()->clear_samples_ns();
  return out;
}

bool AddIfItFits(const v1::RunSummary& summary, google::rpc::Status* out) {
  out->add_details()->PackFrom(summary);
  if (out->ByteSizeLong() <= kMaxErrorDetails) return true;
  out->mutable_details()->RemoveLast();
  return false;
}

void Take(const google::protobuf::Any& detail, ErrorDetails* out,
          std::optional<v1::RunSummary>* summary) {
  if (google::rpc::ErrorInfo info; detail.Is<google::rpc::ErrorInfo>() && detail.UnpackTo(&info)) {
    out->reason = info.reason();
    for (const auto& [key, value] : info.metadata()) out->metadata[key] = value;
  } else if (google::rpc::BadRequest bad;
             detail.Is<google::rpc::BadRequest>() && detail.UnpackTo(&bad)) {
    if (bad.field_violations_size() > 0) out->field = bad.field_violations(0).field();
  } else if (google::rpc::RetryInfo retry;
             detail.Is<google::rpc::RetryInfo>() && detail.UnpackTo(&retry)) {
    const auto& delay = retry.retry_delay();
    out->retry_after = absl::Seconds(delay.seconds()) + absl::Nanoseconds(delay.nanos());
  } else if (v1::RunSummary run; detail.Is<v1::RunSummary>() && detail.UnpackTo(&run)) {
    *summary = std::move(run);
  }
}

}  // namespace

std::string ErrorMessage(const absl::Status& status) {
  return Cut(status.message(), kMaxErrorMessage);
}

std::string EncodeError(const absl::Status& status, const v1::RunSummary* summary) {
  ErrorDetails details = DetailsOf(status);
  google::rpc::Status out = ToProto(status, details);
  if (out.ByteSizeLong() > kMaxErrorDetails) {
    details.metadata.clear();
    out = ToProto(status, details);
  }
  if (summary != nullptr) {
    v1::RunSummary small = WithoutSamples(*summary);
    if (!AddIfItFits(small, &out)) {
      small.clear_device_kernels();
      AddIfItFits(small, &out);
    }
  }
  return out.SerializeAsString();
}

DecodedError DecodeError(absl::StatusCode code, absl::string_view message,
                         absl::string_view details) {
  DecodedError out{absl::Status(code, message), std::nullopt};
  google::rpc::Status status;
  if (details.empty() || !status.ParseFromArray(details.data(), static_cast<int>(details.size()))) {
    return out;
  }
  ErrorDetails decoded;
  for (const auto& detail : status.details()) Take(detail, &decoded, &out.summary);
  out.status = WithDetails(std::move(out.status), decoded);
  return out;
}

}  // namespace gridclock
