#include "kernels/worker/heartbeat.h"

#include <chrono>
#include <string>
#include <utility>

#include <unistd.h>

#include "gridclock/worker/v1/worker.pb.h"
#include "proto/codec/vitals.h"

namespace gridclock {

Heartbeat::Heartbeat(Link& link, const std::atomic<std::uint64_t>& dropped, Vitals vitals)
    : link_(link), dropped_(dropped), vitals_(std::move(vitals)), thread_([this] { Beat(); }) {}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Heartbeat::Beat() {
  worker::v1::ToServer message;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::seconds(1), [this] { return stop_; })) {
    lock.unlock();
    message.mutable_heartbeat()->set_dropped_frames(dropped_.load(std::memory_order_relaxed));
    message.mutable_heartbeat()->clear_vitals();
    if (const auto vitals = vitals_ ? vitals_() : std::nullopt) {
      Encode(*vitals, message.mutable_heartbeat()->mutable_vitals());
    }
    const std::string frame = message.SerializeAsString();
    if (!link_.Send(std::span(&frame, 1)).ok()) _exit(0);
    lock.lock();
  }
}

}  // namespace gridclock
