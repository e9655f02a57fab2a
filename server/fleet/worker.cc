#include "server/fleet/worker.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/codec/worker.h"
#include "server/fleet/answer_reader.h"

namespace gridclock {

absl::StatusOr<StatusMemory> StatusMemory::Create() {
  UniqueFd fd(memfd_create("gridclock-status", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // A worker holds it too, and one that empties it must not kill who reads it here.
  if (!fd || ftruncate(fd.get(), sizeof(StatusPage)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return ErrnoToStatus(errno, "status page");
  }
  void* page = mmap(nullptr, sizeof(StatusPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (page == MAP_FAILED) return ErrnoToStatus(errno, "map status page");
  return StatusMemory(std::move(fd), new (page) StatusPage);
}

StatusMemory::StatusMemory(StatusMemory&& other) noexcept
    : fd_(std::move(other.fd_)), page_(std::exchange(other.page_, nullptr)) {}

StatusMemory::~StatusMemory() {
  if (page_ != nullptr) munmap(page_, sizeof(StatusPage));
}

WorkerPort::Running StatusMemory::running() const {
  // The worker writes the times of an order after those of the order before, and the id behind
  // them, so the times read after the id are the id's or later ones.
  const JobId id = page_->running.load(std::memory_order_acquire);
  const std::int64_t since = page_->since_ns.load(std::memory_order_relaxed);
  const std::int64_t launched = page_->kernel_since_ns.load(std::memory_order_relaxed);
  const auto time = [](std::int64_t ns) { return absl::UnixEpoch() + absl::Nanoseconds(ns); };
  return {.id = id,
          .since = time(since),
          .launched = launched == 0 ? absl::InfiniteFuture() : time(launched)};
}

bool Worker::SendFrames(std::span<const std::string> frames) {
  if (!deaf_ && !parts_.link->Send(frames)) deaf_ = true;
  if (deaf_ || parts_.link->pending()) parts_.wake();
  return !deaf_;
}

void Worker::SendMessage(const worker::v1::FromServer& message) {
  const std::string frame = message.SerializeAsString();
  SendFrames({&frame, 1});
}

void Worker::Flush() {
  if (!parts_.link->Flush()) deaf_ = true;
}

absl::StatusOr<MemoryRange> Worker::OrderRange(const Job& job, std::uint64_t bytes) {
  if (parts_.guest_memory != nullptr) {
    GC_ASSIGN_OR_RETURN(auto block, parts_.guest_memory->allocator().Reserve(bytes, ""));
    const MemoryRange range{.offset = block.range().offset, .size = bytes};
    MutexLock lock(mutex_);
    long_orders_.insert_or_assign(job.id, std::move(block));
    return range;
  }
  if (bytes <= job.order.size) return MemoryRange{.offset = job.order.offset, .size = bytes};
  return absl::InternalError(
      absl::StrCat("an order of ", bytes, " bytes has room for ", job.order.size));
}

absl::StatusOr<std::string> Worker::LongFrame(const Job& job, const std::string& order) {
  GC_ASSIGN_OR_RETURN(const MemoryRange range, OrderRange(job, order.size()));
  const Arena& arena = parts_.guest_memory != nullptr ? parts_.guest_memory->arena() : parts_.arena;
  std::memcpy(arena.At(range).data(), order.data(), order.size());
  worker::v1::FromServer message;
  message.mutable_long_message()->set_offset(range.offset);
  message.mutable_long_message()->set_size(range.size);
  return message.SerializeAsString();
}

absl::StatusOr<std::string> Worker::Frame(const Job& job, std::uint64_t generation) {
  // Kept by each thread: its parts are allocated once. One worker's words never meet another's.
  thread_local worker::v1::FromServer message;
  message.Clear();
  // Code of a client runs in guests alone: another worker gets what came of it.
  if (parts_.role == WorkerRole::kTrusted && job.check)
    EncodeComparison(job, generation, message.mutable_comparison());
  else
    Encode(job, generation, message.mutable_order());
  std::string frame = message.SerializeAsString();
  if (frame.size() <= kFrameLimit) return frame;
  return LongFrame(job, frame);
}

bool Worker::Send(const Job& job, std::uint64_t generation) {
  const Job* one = &job;
  return SendAll({&one, 1}, generation);
}

bool Worker::SendAll(std::span<const Job* const> jobs, std::uint64_t generation) {
  if (parts_.guest_memory != nullptr) return SendToGuest(jobs, generation);
  absl::InlinedVector<std::string, 4> frames;
  for (const Job* job : jobs) {
    absl::StatusOr<std::string> frame = Frame(*job, generation);
    if (frame.ok())
      frames.push_back(*std::move(frame));
    else
      parts_.on_unsendable(job->id, Annotate(frame.status(), "the way to the worker"));
  }
  return frames.empty() || SendFrames(frames);
}

void Worker::Cancel(JobId id) {
  if (parts_.guest_memory != nullptr) {
    MutexLock lock(mutex_);
    if (!waiting_.empty()) {
      waiting_.push_back({.order = std::nullopt, .generation = 0, .cancel = id});
      return;
    }
  }
  SendCancel(id);
}

void Worker::SendCancel(JobId id) {
  if (!WasGiven(id)) return parts_.guest_memory->DropEarly(id);
  worker::v1::FromServer message;
  message.mutable_cancel()->set_id(id);
  SendMessage(message);
}

void Worker::Yield(JobId id) {
  worker::v1::FromServer message;
  message.mutable_yield()->set_id(id);
  SendMessage(message);
}

// Left unsaid where other words wait: what is behind on those must not be kept by this.
void Worker::Arrived(const Job& job, std::uint64_t generation, const InputArrival& arrival) {
  if (parts_.guest_memory != nullptr) return CopyEarly(job, arrival);
  if (parts_.link->pending()) return;
  worker::v1::FromServer message;
  Encode(WorkerArrival{.id = job.id,
                       .generation = generation,
                       .input = arrival.input,
                       .memory = job.inputs[arrival.input].memory,
                       .bytes = arrival.bytes},
         message.mutable_arrival());
  SendMessage(message);
}

void Worker::Await(JobId id) {
  const std::shared_ptr<AnswerReader> reader = [&] {
    MutexLock lock(mutex_);
    return reader_.lock();
  }();
  if (reader != nullptr) reader->Await(id);
}

void Worker::SetReader(const std::shared_ptr<AnswerReader>& reader) {
  MutexLock lock(mutex_);
  reader_ = reader;
}

void Worker::Shutdown() {
  worker::v1::FromServer message;
  message.mutable_shutdown();
  SendMessage(message);
}

void Worker::Kill(absl::string_view reason) {
  {
    MutexLock lock(mutex_);
    if (kill_reason_.empty()) kill_reason_ = std::string(reason);
  }
  parts_.process.Signal(SIGKILL);
}

void Worker::Forget(JobId id) {
  if (parts_.guest_memory == nullptr) return;
  {
    MutexLock lock(mutex_);
    long_orders_.erase(id);
  }
  parts_.guest_memory->Forget(id);
  if (SomethingWaits()) parts_.wake();
}

std::string Worker::kill_reason() const {
  MutexLock lock(mutex_);
  return kill_reason_;
}

}  // namespace gridclock
