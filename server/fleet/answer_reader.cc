#include "server/fleet/answer_reader.h"

#include <cerrno>
#include <utility>

#include <sched.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "base/status.h"

namespace gridclock {
namespace {

constexpr std::size_t kBatch = 32;
constexpr int kMostBatches =
    16;  // A worker that never stops talking keeps its thread from nothing.

}  // namespace

absl::StatusOr<std::shared_ptr<AnswerReader>> AnswerReader::Create(
    const FleetContext& context, std::string device, std::shared_ptr<Worker> worker,
    std::uint64_t generation, const MemoryRange& canary_memory) {
  UniqueFd watch(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {.events = EPOLLIN, .data = {}};
  if (!watch || epoll_ctl(watch.get(), EPOLL_CTL_ADD, worker->link().fd(), &event) != 0) {
    return ErrnoToStatus(errno, "watch the link to a worker");
  }
  return std::shared_ptr<AnswerReader>(new AnswerReader(
      context, std::move(device), std::move(worker), generation, canary_memory, std::move(watch)));
}

AnswerReader::AnswerReader(const FleetContext& context, std::string device,
                           std::shared_ptr<Worker> worker, std::uint64_t generation,
                           const MemoryRange& canary_memory, UniqueFd watch)
    : context_(context),
      device_(std::move(device)),
      worker_(std::move(worker)),
      generation_(generation),
      watch_(std::move(watch)),
      session_(context, device_, worker_, generation, canary_memory),
      batch_(kBatch, kFrameLimit),
      heard_(context.clock.Now()) {}

// The end of a link is reported even to who asks for no event.
void AnswerReader::Watch(bool on) const {
  epoll_event event = {.events = on ? EPOLLIN : 0U, .data = {}};
  epoll_ctl(watch_.get(), EPOLL_CTL_MOD, worker_->link().fd(), &event);
}

absl::Status AnswerReader::HearBatch() {
  absl::Status holds;
  for (std::size_t i = 0; i < batch_.size() && holds.ok(); ++i) {
    holds = session_.OnFrame(batch_[i], batch_.truncated(i));
  }
  holds.Update(session_.Deliver());
  return holds;
}

PacketSocket::Read AnswerReader::ReadBatch() {
  if (ended()) return PacketSocket::Read::kEnd;
  const auto read = worker_->link().Receive(batch_);
  if (read.ok() && *read == PacketSocket::Read::kNothing) return *read;
  heard_ = context_.clock.Now();
  if (read.ok() && *read == PacketSocket::Read::kPackets) {
    const absl::Status holds = HearBatch();
    // What a worker said meanwhile waits in the link.
    heard_ = context_.clock.Now();
    if (holds.ok()) return *read;
    Log(LogLevel::kError, "worker_broke_protocol",
        {{"device", device_}, {"error", std::string(holds.message())}});
    worker_->Kill("protocol");
  }
  ended_ = heard_;
  return PacketSocket::Read::kEnd;
}

void AnswerReader::Read(bool to_the_end) {
  MutexLock lock(mutex_);
  reader_ = std::this_thread::get_id();
  for (int i = 0; ReadBatch() == PacketSocket::Read::kPackets; ++i) {
    const bool enough = batch_.size() < kBatch || i == kMostBatches || session_.took_step();
    if (!to_the_end && enough) break;
  }
  reader_ = std::thread::id();
}

void AnswerReader::Await(JobId id) {
  if (reader_ == std::this_thread::get_id() || !mutex_.try_lock()) return;
  reader_ = std::this_thread::get_id();
  const absl::Time patience = context_.clock.Now() + kPatience;
  Watch(false);
  bool answered = context_.scheduler.Sent(id, generation_) == nullptr;
  while (!answered && !ended() && context_.clock.Now() < patience) {
    if (ReadBatch() == PacketSocket::Read::kPackets) {
      answered = context_.scheduler.Sent(id, generation_) == nullptr;
    } else {
      sched_yield();
    }
  }
  Watch(true);
  reader_ = std::thread::id();
  mutex_.unlock();
}

void AnswerReader::Close() {
  MutexLock lock(mutex_);
  if (!ended()) ended_ = context_.clock.Now();
}

AnswerReader::Progress AnswerReader::progress() const {
  MutexLock lock(mutex_);
  return {
      .ready = session_.ready(), .answers = session_.answers(), .heard = heard_, .ended = ended_};
}

std::string AnswerReader::calibration() const {
  MutexLock lock(mutex_);
  return session_.calibration();
}

}  // namespace gridclock
