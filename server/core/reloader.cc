#include "server/core/reloader.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

absl::Status Reloading(absl::Duration since) {
  return WithDetails(
      absl::UnavailableError(absl::StrCat("a reload that began ", absl::ToInt64Seconds(since),
                                          " s ago still reads its files: try again once it has "
                                          "ended")),
      {.reason = "RELOADING", .field = "", .retry_after = absl::Milliseconds(200), .metadata = {}});
}

}  // namespace

Reloader::Reloader(std::function<absl::Time()> now)
    : now_(std::move(now)), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void Reloader::Add(std::string name, Read read) {
  MutexLock lock(mutex_);
  parts_.push_back({.name = std::move(name), .last = absl::OkStatus(), .read = now_()});
  reads_.push_back(std::move(read));
}

absl::Status Reloader::Reload(Done done) {
  MutexLock lock(mutex_);
  if (!stopped_.ok()) return stopped_;
  if (running_) return Reloading(now_() - began_);
  Begin(std::move(done));
  return absl::OkStatus();
}

bool Reloader::ReloadNowOrNext(Done done) {
  MutexLock lock(mutex_);
  if (!stopped_.ok()) return true;
  const bool now = !running_;
  if (now)
    Begin(std::move(done));
  else
    next_ = std::move(done);
  return now;
}

void Reloader::Begin(Done done) {
  running_ = true;
  began_ = now_();
  done_ = std::move(done);
  ordered_.notify_one();
}

void Reloader::Stop(const absl::Status& why) {
  MutexLock ending(ending_);
  Done waits;
  {
    MutexLock lock(mutex_);
    stopped_ = why;
    next_ = nullptr;
    waits = std::exchange(done_, nullptr);
  }
  if (waits) waits(why);
}

bool Reloader::is_reading() const {
  MutexLock ending(ending_);
  MutexLock lock(mutex_);
  return running_;
}

std::vector<Reloader::Part> Reloader::parts() const {
  MutexLock lock(mutex_);
  return parts_;
}

void Reloader::Run(const std::stop_token& stop) {
  while (WaitForOrder(stop)) {
    ReadAll();
    End();
  }
}

bool Reloader::WaitForOrder(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  const auto is_ordered = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return running_; };
  return ordered_.wait(mutex_, stop, is_ordered);
}

void Reloader::ReadAll() {
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
}

void Reloader::End() {
  MutexLock ending(ending_);
  Done waits;
  std::vector<Part> parts;
  {
    // Before anybody hears of it: who does may ask for the next one at once.
    MutexLock lock(mutex_);
    running_ = false;
    waits = std::exchange(done_, nullptr);
    parts = parts_;
    if (next_) Begin(std::exchange(next_, nullptr));
  }
  if (waits) waits(parts);
}

}  // namespace gridclock
