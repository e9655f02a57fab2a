#include "kernels/worker/loop.h"

#include <algorithm>
#include <string>
#include <thread>

#include <sched.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

constexpr std::size_t kBatchPackets = 32;
constexpr std::size_t kHeldBack = 16;
// A caller that waits for each answer is back within this time, also where threads are woken late.
constexpr absl::Duration kLookForOne = absl::Milliseconds(1);
// Of several the next ones come sooner, or need the CPU.
constexpr absl::Duration kLookForMore = absl::Microseconds(300);
constexpr absl::Duration kKeepFor = absl::Milliseconds(20);
constexpr absl::Duration kLookEvery = absl::Milliseconds(1);

}  // namespace

Loop::Loop(const Parts& parts)
    : parts_(parts),
      outbox_(parts.link),
      batch_(kBatchPackets, kFrameLimit),
      patience_(static_cast<int>(std::thread::hardware_concurrency())) {}

absl::Status Loop::SayHello(const WorkerHello& hello) {
  GC_ASSIGN_OR_RETURN(const std::vector<worker::v1::ToServer> frames, EncodeHello(hello));
  for (const worker::v1::ToServer& frame : frames) GC_RETURN_IF_ERROR(outbox_.Add(frame));
  return outbox_.Flush();
}

absl::Status Loop::Run() {
  while (!stop_) {
    GC_RETURN_IF_ERROR(AwaitFrames());
    GC_RETURN_IF_ERROR(RunQueue());
    GC_RETURN_IF_ERROR(parts_.session.early().CopyPiece());
  }
  return broken_;
}

bool Loop::HasWork() const {
  return stop_ || !waiting_.empty() || parts_.session.early().pending();
}

absl::Status Loop::AwaitFrames() {
  if (HasWork()) return Read(Wait::kNo);
  if (patience_.MayLook()) {
    const absl::Time end = parts_.clock.Now() + (came_ == 1 ? kLookForOne : kLookForMore);
    do {
      GC_RETURN_IF_ERROR(Read(Wait::kNo));
      if (HasWork()) {
        patience_.Found();
        return absl::OkStatus();
      }
      sched_yield();
    } while (parts_.clock.Now() < end);
    patience_.FoundNothing();
  }
  // Another process may serve the same device next. By then nothing is timed: it warms up longer.
  if (parts_.session.HoldsMuch() && !parts_.link.Comes(kKeepFor)) parts_.session.GiveBack();
  return Read(Wait::kYes);
}

absl::Status Loop::Read(Wait wait) {
  GC_ASSIGN_OR_RETURN(const PacketSocket::Read read, parts_.link.Receive(batch_, wait));
  if (read == PacketSocket::Read::kEnd) stop_ = true;
  if (read != PacketSocket::Read::kPackets) return absl::OkStatus();
  came_ = batch_.size();
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    if (batch_.truncated(i)) {
      Drop();
    } else {
      Take(batch_[i], /*may_be_long=*/true);
    }
  }
  return absl::OkStatus();
}

void Loop::Take(std::span<const std::byte> frame, bool may_be_long) {
  if (!incoming_.ParseFromArray(frame.data(), static_cast<int>(frame.size()))) return Drop();
  switch (incoming_.message_case()) {
    case worker::v1::FromServer::kOrder:
      return TakeOrder(incoming_.order());
    case worker::v1::FromServer::kArrival:
      return TakeArrival(incoming_.arrival());
    case worker::v1::FromServer::kComparison:
      return TakeComparison(incoming_.comparison());
    case worker::v1::FromServer::kCheckStepDone:
      return TakeStep(incoming_.check_step_done());
    case worker::v1::FromServer::kCancel:
      return TakeCancel(incoming_.cancel().id());
    case worker::v1::FromServer::kYield:
      yields_ |= incoming_.yield().id() == running_;
      return;
    case worker::v1::FromServer::kShutdown:
      stop_ = true;
      return;
    case worker::v1::FromServer::kLongMessage:
      return may_be_long ? TakeLong(worker::v1::Range(incoming_.long_message())) : Drop();
    case worker::v1::FromServer::MESSAGE_NOT_SET:
      return Drop();
  }
}

// Copied before it is parsed: nobody may change what was checked.
void Loop::TakeLong(const worker::v1::Range& range) {
  constexpr std::uint64_t kMost = 64 << 20;
  const std::uint64_t size = parts_.arena.size();
  if (range.size() > kMost || range.offset() > size || range.size() > size - range.offset()) {
    return Drop();
  }
  const auto bytes = parts_.arena.subspan(range.offset(), range.size());
  const std::vector<std::byte> copy(bytes.begin(), bytes.end());
  Take(copy, /*may_be_long=*/false);
}

void Loop::TakeOrder(const worker::v1::Order& order) {
  if (order.id() == 0 || order.generation() < generation_) return Drop();
  generation_ = order.generation();
  Waiting next;
  if (!spare_.empty()) {
    next = std::move(spare_.back());
    spare_.pop_back();
  }
  next.status = Decode(order, parts_.arena.size(), &next.order);
  waiting_.push_back(std::move(next));
}

void Loop::TakeComparison(const worker::v1::Comparison& frame) {
  if (frame.id() == 0 || frame.generation() < generation_) return Drop();
  generation_ = frame.generation();
  Waiting next;
  next.order.id = frame.id();
  next.order.generation = frame.generation();
  auto comparison = Decode(frame, parts_.arena.size());
  next.status = comparison.status();
  if (comparison.ok()) next.comparison = *std::move(comparison);
  waiting_.push_back(std::move(next));
}

void Loop::TakeStep(const worker::v1::CheckStepDone& frame) {
  const bool awaited = frame.id() == running_ && awaited_ && awaited_->first == frame.index() &&
                       static_cast<int>(awaited_->second) == static_cast<int>(frame.step());
  if (!awaited) return Drop();
  awaited_.reset();
}

void Loop::TakeArrival(const worker::v1::Arrival& frame) {
  if (frame.id() == 0 || frame.generation() < generation_) return Drop();
  const auto arrival = Decode(frame, parts_.arena.size());
  if (!arrival.ok() || !parts_.session.early().Note(*arrival)) Drop();
}

void Loop::TakeCancel(std::uint64_t id) {
  parts_.session.early().Forget(id);
  if (id == running_) cancelled_ = true;
  for (Waiting& waiting : waiting_) {
    if (waiting.order.id == id) waiting.status = absl::CancelledError("cancelled before it ran");
  }
}

absl::Status Loop::RunQueue() {
  while (!waiting_.empty() && !stop_) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    GC_RETURN_IF_ERROR(
        next.status.ok()
            ? (next.comparison ? RunComparison(next.order, *next.comparison) : RunOrder(next.order))
            : Report(next.order, {.status = next.status, .launched = false, .outcome = {}}));
    parts_.session.early().Forget(next.order.id);
    if (!next.comparison && spare_.size() < kHeldBack) spare_.push_back(std::move(next));
  }
  GC_RETURN_IF_ERROR(outbox_.Flush());
  parts_.page.running.store(0, std::memory_order_release);
  return broken_;
}

// Reports of orders that are over may wait for those of the next ones only if these are known to
// be quick and no buffer was overwritten: should this process die meanwhile, the server runs again
// whatever was not reported.
absl::Status Loop::RunOrder(const WorkerOrder& order) {
  GC_RETURN_IF_ERROR(parts_.session.early().SettleBefore(order));
  const bool quick = parts_.session.IsQuick(order);
  if (!quick || outbox_.size() >= kHeldBack) GC_RETURN_IF_ERROR(outbox_.Flush());
  BeginOrder(order.id);
  const SessionReport report = [&] {
    // Whoever asks the device how it is has ended before anything is measured. A plain call does
    // not wait for them: a driver that ends a process on another GPU answers 0.2 s later.
    std::unique_lock lock(parts_.in_use, std::defer_lock);
    order.measure ? lock.lock() : static_cast<void>(lock.try_lock());
    return parts_.session.Run(order, *this);
  }();
  running_ = 0;
  GC_RETURN_IF_ERROR(Report(order, report));
  if (report.spoiled) {
    // The page keeps its order: whoever reads it then knows that none behind it began.
    GC_RETURN_IF_ERROR(outbox_.Flush());
    return absl::InternalError(
        absl::StrCat("this process is of no more use: ", report.status.message()));
  }
  return quick ? absl::OkStatus() : outbox_.Flush();
}

void Loop::BeginOrder(std::uint64_t id) {
  running_ = id;
  cancelled_ = yields_ = false;
  awaited_.reset();
  parts_.page.since_ns.store(absl::ToUnixNanos(parts_.clock.Now()), std::memory_order_relaxed);
  parts_.page.running.store(id, std::memory_order_release);
}

absl::Status Loop::RunComparison(const WorkerOrder& head, const WorkerComparison& comparison) {
  GC_RETURN_IF_ERROR(outbox_.Flush());
  BeginOrder(head.id);
  const SessionReport report = parts_.session.Compare(comparison, [&] { return Cancelled(head); });
  running_ = 0;
  GC_RETURN_IF_ERROR(Report(head, report));
  return outbox_.Flush();
}

absl::Status Loop::Step(const WorkerOrder& order, std::uint32_t index, CheckStep step) {
  worker::v1::ToServer frame;
  worker::v1::CheckStep* asked = frame.mutable_check_step();
  asked->set_id(order.id);
  asked->set_generation(order.generation);
  asked->set_index(index);
  asked->set_step(static_cast<worker::v1::CheckStep::Step>(step));
  awaited_.emplace(index, step);
  GC_RETURN_IF_ERROR(outbox_.Add(frame));
  GC_RETURN_IF_ERROR(outbox_.Flush());
  while (awaited_ && !cancelled_ && !stop_) {
    if (const absl::Status read = Read(Wait::kYes); !read.ok()) {
      broken_ = read;
      stop_ = true;
    }
  }
  if (!awaited_) return absl::OkStatus();
  return absl::CancelledError("cancelled between launches that are checked");
}

absl::Status Loop::Report(const WorkerOrder& order, const SessionReport& report) {
  outgoing_.Clear();
  if (report.status.ok()) {
    EncodeDone(order.id, order.generation, report.outcome, outgoing_.mutable_done());
  } else {
    EncodeFailed(order.id, order.generation, report.status, report.spoiled,
                 report.launched ? &report.outcome : nullptr, outgoing_.mutable_failed());
  }
  return outbox_.Add(outgoing_);
}

bool Loop::Cancelled(const WorkerOrder&) {
  const absl::Time now = parts_.clock.Now();
  if (now - last_look_ < kLookEvery) return cancelled_ || stop_;
  last_look_ = now;
  if (const absl::Status status = Read(Wait::kNo); !status.ok()) {
    broken_ = status;
    stop_ = true;
  }
  return cancelled_ || stop_;
}

void Loop::OnSamples(const WorkerOrder& order, std::int64_t first,
                     std::span<const double> samples_ns, bool warmup) {
  if (warmup && !order.stream_samples) return;
  while (!samples_ns.empty()) {
    const auto part = samples_ns.first(std::min(samples_ns.size(), kSamplesPerFrame));
    worker::v1::ToServer frame;
    EncodeSamples(order.id, first, part, warmup, &frame);
    absl::Status status = outbox_.Add(frame);
    if (status.ok()) status = outbox_.Flush();
    if (!status.ok()) {
      broken_ = status;
      stop_ = true;
      return;
    }
    first += static_cast<std::int64_t>(part.size());
    samples_ns = samples_ns.subspan(part.size());
  }
}

}  // namespace gridclock
