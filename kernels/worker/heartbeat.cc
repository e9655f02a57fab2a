#include "kernels/worker/heartbeat.h"

#include <chrono>
#include <string>

#include <unistd.h>

#include "gridclock/worker/v1/worker.pb.h"

namespace gridclock {

Heartbeat::Heartbeat(Link& link, const std::atomic<std::uint64_t>& dropped)
    : link_(link), dropped_(dropped), thread_([this] { Beat(); }) {}

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
    message.mutable_heartbeat()->set_dropped_frames(dropped_.load(std::memory_order_relaxed));
    const std::string frame = message.SerializeAsString();
    lock.unlock();
    if (!link_.Send(std::span(&frame, 1)).ok()) _exit(0);
    lock.lock();
  }
}

}  // namespace gridclock
