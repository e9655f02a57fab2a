#include "kernels/worker/outbox.h"

#include "absl/strings/str_cat.h"
#include "proto/types/status_page.h"

namespace gridclock {

absl::Status Outbox::Add(const worker::v1::ToServer& message) {
  if (message.ByteSizeLong() > kFrameLimit) {
    return absl::InternalError(absl::StrCat("a report of ", message.ByteSizeLong(),
                                            " bytes does not fit a frame of ", kFrameLimit));
  }
  if (used_ == frames_.size()) frames_.emplace_back();
  message.SerializeToString(&frames_[used_++]);
  return absl::OkStatus();
}

absl::Status Outbox::Flush() {
  if (used_ == 0) return absl::OkStatus();
  const absl::Status status = link_.Send(std::span(frames_.data(), used_));
  used_ = 0;
  return status;
}

}  // namespace gridclock
