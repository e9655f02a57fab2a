#include "server/core/reloader.h"

#include <utility>

namespace gridclock {

void Reloader::Add(std::string name, Read read) {
  MutexLock lock(mutex_);
  parts_.push_back({.name = std::move(name), .last = absl::OkStatus(), .read = now_()});
  reads_.push_back(std::move(read));
}

std::vector<Reloader::Part> Reloader::Reload() {
  MutexLock reading(reading_);
  const std::vector<Read> reads = [this] {
    MutexLock lock(mutex_);
    return reads_;
  }();
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const absl::Status status = reads[i]();
    MutexLock lock(mutex_);
    parts_[i].last = status;
    if (status.ok()) parts_[i].read = now_();
  }
  return parts();
}

std::vector<Reloader::Part> Reloader::parts() const {
  MutexLock lock(mutex_);
  return parts_;
}

}  // namespace gridclock
