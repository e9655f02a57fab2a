#include "kernels/worker/heartbeat.h"

#include <chrono>
#include <string>
#include <utility>

#include <unistd.h>

#include "gridclock/worker/v1/worker.pb.h"
#include "proto/codec/vitals.h"

namespace gridclock {

Heartbeat::Heartbeat(Link& link, const std::atomic<std::uint64_t>& dropped, Vitals vitals)
    : link_(link), dropped_(dropped), vitals_(std::move(vitals)), heart_([this] { Beat(); }) {
  if (vitals_) asker_ = std::thread([this] { Ask(); });
}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  heart_.join();
  if (asker_.joinable()) asker_.join();
}

bool Heartbeat::Pause(std::unique_lock<std::mutex>& lock) {
  return !wake_.wait_for(lock, std::chrono::seconds(1), [this] { return stop_; });
}

void Heartbeat::Ask() {
  std::unique_lock lock(mutex_);
  do {
    lock.unlock();
    auto answer = vitals_();
    lock.lock();
    answer_ = std::move(answer);
  } while (Pause(lock));
}

void Heartbeat::Beat() {
  worker::v1::ToServer message;
  std::unique_lock lock(mutex_);
  while (Pause(lock)) {
    const auto vitals = std::exchange(answer_, std::nullopt);
    lock.unlock();
    message.mutable_heartbeat()->set_dropped_frames(dropped_.load(std::memory_order_relaxed));
    message.mutable_heartbeat()->clear_vitals();
    if (vitals) Encode(*vitals, message.mutable_heartbeat()->mutable_vitals());
    const std::string frame = message.SerializeAsString();
    if (!link_.Send(std::span(&frame, 1)).ok()) _exit(0);
    lock.lock();
  }
}

}  // namespace gridclock
