// What is different where a worker is a guest: it sees no arena, so tensors are copied.
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/fleet/worker.h"

namespace gridclock {
namespace {

absl::StatusOr<GuestMemory::Step> StepOf(const worker::v1::CheckStep& step) {
  switch (step.step()) {
    case worker::v1::CheckStep::VALUES:
      return GuestMemory::Step::kFill;
    case worker::v1::CheckStep::SUBMITTED_VALUES:
      return GuestMemory::Step::kFillSubmitted;
    case worker::v1::CheckStep::TAKE:
      return GuestMemory::Step::kTake;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "want a step VALUES, SUBMITTED_VALUES or TAKE of a check, got ", step.step()));
  }
}

// The values of a checked job are made on its way too, those of a generator among them.
std::uint64_t CopiedBytes(const Job& job) {
  if (job.check) return GuestBytes(job);
  std::uint64_t bytes = 0;
  for (const JobInput& input : job.inputs) bytes += input.memory.size;
  return bytes;
}

}  // namespace

// While tensors are copied it is the job's time that passes, and the guest does not hang.
WorkerPort::Running Worker::running() const {
  const Running said = parts_.status.running();
  if (said.id != 0 || parts_.guest_memory == nullptr) return said;
  const JobId out = copied_out_;
  return {.id = out != 0 ? out : copied_in_.load(), .since = absl::InfiniteFuture()};
}

bool Worker::worn() const {
  return parts_.guest_memory != nullptr && parts_.guest_memory->worn();
}

bool Worker::SomethingWaits() const {
  MutexLock lock(mutex_);
  return !waiting_.empty();
}

bool Worker::GiveToGuest(const Job& job, std::uint64_t generation) {
  copied_in_ = job.id;
  const absl::Cleanup copied = [this] { copied_in_ = 0; };
  auto placed = parts_.guest_memory->Place(job, parts_.arena);
  if (!placed.ok()) {
    if (DetailsOf(placed.status()).reason == "MEMORY_FULL") return false;
    parts_.on_unsendable(job.id, placed.status());
    return true;
  }
  absl::StatusOr<std::string> frame = Frame(*placed, generation);
  if (!frame.ok()) {
    parts_.guest_memory->Forget(job.id);
    const bool full = DetailsOf(frame.status()).reason == "MEMORY_FULL";
    if (full && !parts_.guest_memory->empty()) return false;
    parts_.on_unsendable(job.id, Annotate(frame.status(), "the way to the worker"));
    return true;
  }
  SendFrames({&*frame, 1});
  return true;
}

// While something waits the reading thread may be at the memory. Else it stays away: who calls is
// the only one that speaks to this guest.
void Worker::CopyEarly(const Job& job, const InputArrival& arrival) {
  if (SomethingWaits()) return;
  parts_.guest_memory->CopyEarly(job, arrival, parts_.arena);
}

bool Worker::SendToGuest(std::span<const Job* const> jobs, std::uint64_t generation) {
  for (const Job* sent : jobs) {
    const Job& job = GivenNow(*sent);
    const bool at_once = CopiedBytes(job) <= kCopiedAtOnce && !SomethingWaits();
    if (at_once && GiveToGuest(job, generation)) continue;
    {
      MutexLock lock(mutex_);
      waiting_.push_back({.order = job, .generation = generation, .cancel = 0});
    }
    parts_.wake();
  }
  return !deaf_;
}

// What waits stays in its place until it was sent: others see that they must wait behind it.
void Worker::FeedGuest() {
  if (parts_.guest_memory == nullptr) return;
  for (;;) {
    const Waiting* next = nullptr;
    {
      MutexLock lock(mutex_);
      if (waiting_.empty() || deaf_) return;
      next = &waiting_.front();
    }
    if (!next->order)
      SendCancel(next->cancel);
    else if (!GiveToGuest(*next->order, next->generation))
      return;
    MutexLock lock(mutex_);
    waiting_.pop_front();
  }
}

bool Worker::WasGiven(JobId id) const {
  return parts_.guest_memory == nullptr || parts_.guest_memory->Holds(id);
}

absl::Status Worker::CheckLaunch(const Job& job, const worker::v1::CheckStep& step) {
  GC_ASSIGN_OR_RETURN(const GuestMemory::Step what, StepOf(step));
  GC_RETURN_IF_ERROR(parts_.guest_memory->CheckLaunch(job, parts_.arena, step.index(), what));
  worker::v1::FromServer message;
  message.mutable_check_step_done()->set_id(job.id);
  message.mutable_check_step_done()->set_index(step.index());
  message.mutable_check_step_done()->set_step(step.step());
  SendMessage(message);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OutputResult>> Worker::TakeOutputs(const Job& job, std::size_t samples) {
  copied_out_ = job.id;
  const absl::Cleanup copied = [this] { copied_out_ = 0; };
  GuestMemory& memory = *parts_.guest_memory;
  GC_ASSIGN_OR_RETURN(auto results, job.check ? memory.FinishCheck(job, parts_.arena, samples)
                                              : memory.TakeOutputs(job, parts_.arena));
  memory.NoteRan(job.id);
  return results;
}

}  // namespace gridclock
