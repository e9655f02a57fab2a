#include "server/fleet/session.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "proto/codec/scratch.h"
#include "proto/codec/vitals.h"
#include "server/core/admission.h"

namespace gridclock {
namespace {

// Above every id that the scheduler gives.
constexpr JobId kCanaryId = std::uint64_t{1} << 63;
constexpr char kCanaryKernel[] = "square";
constexpr std::array<float, 4> kCanaryInput = {1, -2, 3, 0.5};
constexpr std::array<float, 4> kCanaryOutput = {1, 4, 9, 0.25};
constexpr int kForgivenStrangers = 1;
// What a guest may say of its device; it would be the service's failure.
constexpr std::array<absl::string_view, 3> kDeviceReasons = {"DEVICE_FAULT", "DEVICE_UNAVAILABLE",
                                                             "RECORD_LOST"};

JobRequest CanaryRequest(const std::string& device, absl::Time now) {
  JobRequest request;
  request.kernel = kCanaryKernel;
  request.device = device;
  request.arrived = now;
  InputRequest input;
  input.operand = {"x", {.is_list = false, .tensors = {{DType::kF32, {kCanaryInput.size()}}}}};
  input.inline_bytes = sizeof(kCanaryInput);
  request.inputs.push_back(std::move(input));
  return request;
}

bool IsOfTheService(absl::StatusCode code) {
  return code == absl::StatusCode::kUnknown || code == absl::StatusCode::kInternal ||
         code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kDataLoss;
}

// Submitted code may have its process say anything, and by some of that an operator would be
// called: what is not the device's is the code's.
absl::Status FromGuest(const absl::Status& said, const Job& job) {
  if (!IsOfTheService(said.code())) return said;
  const std::string reason = DetailsOf(said).reason;
  Log(LogLevel::kWarning, "guest_failed",
      {{"device", job.device},
       {"status", said.ToString(absl::StatusToStringMode::kWithNoExtraData)},
       {"reason", reason},
       {"job", absl::StrCat(job.id)},
       {"client", job.principal},
       {"request_id", job.request_id},
       {"trace_id", TraceId(job.trace)}});
  const bool by_device = std::ranges::count(kDeviceReasons, reason) != 0;
  if (by_device && absl::IsUnavailable(said)) return said;
  return WithReason(absl::FailedPreconditionError(
                        absl::StrCat("the process of the submitted code failed: ",
                                     absl::StatusCodeToString(said.code()), ": ", said.message())),
                    "KERNEL_FAULT");
}

// No launch that a guest timed was before its call came, or is yet to be.
absl::Status CheckSamples(const Outcome& outcome, absl::Duration since_arrival) {
  if (!outcome.timing) return absl::OkStatus();
  const std::vector<double>& samples = outcome.timing->samples_ns;
  const double total_ns = std::accumulate(samples.begin(), samples.end(), 0.0);
  // Twice: a device has a clock of its own.
  if (total_ns <= 2 * absl::ToDoubleNanoseconds(since_arrival)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("its samples are ", total_ns,
                                                 " ns in all, of a call that came ",
                                                 absl::FormatDuration(since_arrival), " ago"));
}

// A warm-up sample stands for a window of launches. More of them than there was time for would keep
// the scheduler from everybody else.
constexpr absl::Duration kLeastWindow = absl::Milliseconds(10);

absl::Status CheckWarmUps(std::int64_t warmups, absl::Duration since_arrival) {
  if (warmups <= 1 + since_arrival / kLeastWindow) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(warmups, " warm-up samples of a call that came ",
                                                 absl::FormatDuration(since_arrival), " ago"));
}

}  // namespace

Session::Session(const FleetContext& context, std::string device, std::shared_ptr<Worker> worker,
                 std::uint64_t generation, const MemoryRange& canary_memory)
    : context_(context),
      device_(std::move(device)),
      worker_(std::move(worker)),
      generation_(generation),
      canary_memory_(canary_memory) {}

absl::Status Session::OnFrame(std::span<const std::byte> frame, bool truncated) {
  if (truncated) {
    return absl::InvalidArgumentError(
        absl::StrCat("want frames of at most ", kFrameLimit, " bytes, got a longer one"));
  }
  Scratch<worker::v1::ToServer> message;
  if (!message->ParseFromArray(frame.data(), static_cast<int>(frame.size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat("want a ToServer, got ", frame.size(), " bytes that are none"));
  }
  if (message->has_hello()) return OnHello(message->hello());
  // A heart may beat before the device is measured and the hello written.
  if (message->has_heartbeat()) return OnHeartbeat(message->heartbeat());
  if (hello_.hello().protocol == 0) return absl::InvalidArgumentError("want a hello first");
  switch (message->message_case()) {
    case worker::v1::ToServer::kSamples:
      return OnSamples(message->samples());
    case worker::v1::ToServer::kCheckStep:
      return OnCheckStep(message->check_step());
    case worker::v1::ToServer::kDone:
      return OnDone(message->done());
    case worker::v1::ToServer::kFailed:
      return OnFailed(message->failed());
    default:
      return absl::InvalidArgumentError("want a message in the frame, got none");
  }
}

absl::Status Session::OnHeartbeat(const worker::v1::Heartbeat& heartbeat) {
  // A guest is not believed.
  if (!heartbeat.has_vitals() || is_guest()) return absl::OkStatus();
  GC_ASSIGN_OR_RETURN(DeviceVitals vitals, Decode(heartbeat.vitals()));
  context_.table.SetVitals(device_, {.vitals = std::move(vitals), .at = absl::Now()});
  return absl::OkStatus();
}

// ---- Hello and canary. ----

absl::Status Session::OnHello(const worker::v1::Hello& frame) {
  GC_ASSIGN_OR_RETURN(const bool complete, hello_.Add(frame));
  if (!complete) return absl::OkStatus();
  const WorkerHello& hello = hello_.hello();
  if (hello.device.name != device_ || hello.role != worker_->role()) {
    return absl::InvalidArgumentError(
        absl::StrCat("want the hello of device '", device_, "', got one of another"));
  }
  if (is_guest()) {
    Log(LogLevel::kInfo, "guest", {{"device", device_}, {"sandbox", hello.sandbox}});
    context_.table.LearnGuest(device_, hello.sandbox, hello.test_natives);
    BecomeReady();
    return absl::OkStatus();
  }
  GC_RETURN_IF_ERROR(context_.table.Learn(hello.device, hello.kernels));
  for (const KernelSpec& kernel : hello.kernels) {
    if (kernel.name == kCanaryKernel) return SendCanary();
  }
  BecomeReady();
  return absl::OkStatus();
}

absl::Status Session::SendCanary() {
  Limits limits;
  limits.arena_bytes = static_cast<double>(context_.allocator.capacity());
  ResolveDefaults(limits, 0);
  GC_ASSIGN_OR_RETURN(Job job, Admit(CanaryRequest(device_, context_.clock.Now()), context_.table,
                                     limits, [](absl::string_view) { return 0; }));
  job.id = kCanaryId;
  job.inputs[0].memory.offset += canary_memory_.offset;
  job.outputs[0].memory.offset += canary_memory_.offset;
  std::memcpy(context_.arena.At(job.inputs[0].memory).data(), kCanaryInput.data(),
              sizeof(kCanaryInput));
  std::memset(context_.arena.At(job.outputs[0].memory).data(), 0xAB, sizeof(kCanaryOutput));
  worker_->Send(job, generation_);
  canary_ = std::move(job);
  return absl::OkStatus();
}

absl::Status Session::CheckCanary(const worker::v1::Done& done) {
  GC_RETURN_IF_ERROR(Decode(done, *canary_, {}).status());
  const std::span<std::byte> got = context_.arena.At(canary_->outputs[0].memory);
  if (std::memcmp(got.data(), kCanaryOutput.data(), sizeof(kCanaryOutput)) != 0) {
    return absl::InternalError("the canary gave wrong numbers");
  }
  canary_.reset();
  BecomeReady();
  return absl::OkStatus();
}

void Session::BecomeReady() {
  ready_ = true;
  if (is_guest()) return context_.scheduler.OnWorkerReady(GuestLane(device_), worker_, generation_);
  context_.table.SetState(device_, WorkerState::kReady);
  context_.scheduler.OnWorkerReady(device_, worker_, generation_);
}

// ---- Answers. ----

absl::Status Session::Stranger(JobId id) {
  Log(LogLevel::kWarning, "worker_unknown_id", {{"device", device_}, {"id", absl::StrCat(id)}});
  context_.observer.OnStrayAnswer(device_);
  if (++strangers_ <= kForgivenStrangers) return absl::OkStatus();
  culprit_ = id;  // None that it holds is to blame.
  return absl::InvalidArgumentError(
      absl::StrCat("want ids of orders that it holds, got ", id, ", the second that is none"));
}

absl::Status Session::Break(JobId id, const absl::Status& why) {
  culprit_ = id;
  // A guest's job ends with the guest, which this is the end of.
  if (is_guest()) return why;
  Answer(id, {.status = absl::InternalError(
                  absl::StrCat("the worker's answer does not fit its order: ", why.message())),
              .outcome = std::nullopt});
  return why;
}

void Session::Answer(JobId id, JobResult result, bool spoiled) {
  ++answers_;
  worker_->Forget(id);
  kept_.push_back({.id = id, .result = std::move(result), .spoiled = spoiled});
}

absl::Status Session::Deliver() {
  took_step_ = std::exchange(stepped_, false);
  if (kept_.empty()) return absl::OkStatus();
  const std::vector<JobId> strangers = context_.scheduler.OnDone(generation_, kept_);
  kept_.clear();
  for (const JobId id : strangers) GC_RETURN_IF_ERROR(Stranger(id));
  return absl::OkStatus();
}

std::vector<double> Session::TakeSamples(JobId id) {
  const auto found = samples_.find(id);
  if (found == samples_.end()) return {};
  std::vector<double> samples = found->second.Take();
  samples_.erase(found);
  return samples;
}

std::shared_ptr<const ActiveJob> Session::Held(JobId id) const {
  auto active = context_.scheduler.Sent(id, generation_);
  if (active == nullptr || active->job().device != device_) return nullptr;
  // A trusted worker compares what came of a program.
  const bool fits = is_guest() ? active->job().program != nullptr
                               : active->job().program == nullptr || active->job().check;
  return fits ? active : nullptr;
}

// What still waits to be copied to a guest is not its to end: the copy would read freed memory.
absl::Status Session::CheckGiven(JobId id) {
  if (worker_->WasGiven(id)) return absl::OkStatus();
  return Break(id, absl::NotFoundError(absl::StrCat("order ", id, " was not given to this guest")));
}

absl::Status Session::OnSamples(const worker::v1::Samples& samples) {
  const auto active = Held(samples.id());
  if (active == nullptr) return Stranger(samples.id());
  GC_RETURN_IF_ERROR(CheckGiven(samples.id()));
  const Job& job = GivenNow(active->job());
  SampleBuffer& buffer = samples_[samples.id()];
  absl::Status kept = buffer.Add(samples, job);
  if (kept.ok() && is_guest()) {
    kept = CheckWarmUps(buffer.warmups(), context_.clock.Now() - job.arrived);
  }
  if (!kept.ok()) return Break(samples.id(), kept);
  // The client asked for those of its program, not for its reference's.
  if (&job != &active->job()) return absl::OkStatus();
  context_.scheduler.OnSamples(
      samples.id(), generation_, samples.first(),
      std::span(samples.samples_ns().data(), static_cast<std::size_t>(samples.samples_ns_size())),
      samples.warmup());
  return absl::OkStatus();
}

absl::Status Session::OnDone(const worker::v1::Done& done) {
  if (canary_ && done.id() == kCanaryId) return CheckCanary(done);
  const auto active = Held(done.id());
  if (active == nullptr || done.generation() != generation_) return Stranger(done.id());
  GC_RETURN_IF_ERROR(CheckGiven(done.id()));
  const bool compares = !is_guest() && active->job().check;
  const Job& job = GivenNow(active->job());
  absl::StatusOr<Outcome> outcome =
      compares ? DecodeCompared(done, active->job()) : Decode(done, job, TakeSamples(done.id()));
  absl::Status holds = outcome.status();
  if (holds.ok() && is_guest()) holds = TakeResults(job, *outcome);
  if (!holds.ok()) return Break(done.id(), holds);
  CutPrinted(*outcome);
  Answer(done.id(), {.status = absl::OkStatus(), .outcome = *std::move(outcome)});
  return absl::OkStatus();
}

void Session::CutPrinted(Outcome& outcome) const {
  bool cut = false;
  outcome.printed = CutText(std::move(outcome.printed), context_.printed_bytes, &cut);
  outcome.printed_truncated = outcome.printed_truncated || cut;
}

absl::Status Session::TakeResults(const Job& job, Outcome& outcome) {
  const absl::Duration since_arrival = context_.clock.Now() - job.arrived;
  GC_RETURN_IF_ERROR(CheckSamples(outcome, since_arrival));
  for (const Phase& phase : outcome.phases) {
    if (absl::Nanoseconds(phase.end_ns) > since_arrival) {
      return absl::InvalidArgumentError(
          absl::StrCat("a phase ends at ", phase.end_ns, " ns, which is yet to come"));
    }
  }
  GC_ASSIGN_OR_RETURN(
      outcome.outputs,
      worker_->TakeOutputs(job, outcome.timing ? outcome.timing->samples_ns.size() : 0));
  return absl::OkStatus();
}

absl::Status Session::OnCheckStep(const worker::v1::CheckStep& step) {
  const auto active = Held(step.id());
  if (active == nullptr || !is_guest() || !active->job().check ||
      step.generation() != generation_) {
    return Stranger(step.id());
  }
  // What a guest that is being ended still asks for would keep its device's thread.
  if (worker_->deaf() || !worker_->kill_reason().empty()) return absl::OkStatus();
  if (std::exchange(stepped_, true)) {
    return Break(step.id(), absl::InvalidArgumentError(
                                "want one step of a check at a time, got one before the last was "
                                "answered"));
  }
  const absl::Status done = worker_->CheckLaunch(GivenNow(active->job()), step);
  return done.ok() ? done : Break(step.id(), done);
}

absl::Status Session::OnFailed(const worker::v1::Failed& failed) {
  if (canary_ && failed.id() == kCanaryId) {
    return absl::InternalError(absl::StrCat("the canary failed: ", failed.message()));
  }
  const auto active = Held(failed.id());
  if (active == nullptr || failed.generation() != generation_) return Stranger(failed.id());
  GC_RETURN_IF_ERROR(CheckGiven(failed.id()));
  const Job& job = is_guest() ? GivenNow(active->job()) : active->job();
  absl::StatusOr<WorkerFailure> failure = Decode(failed, job, TakeSamples(failed.id()));
  if (!failure.ok()) return Break(failed.id(), failure.status());
  if (failure->partial) CutPrinted(*failure->partial);
  if (is_guest()) {
    failure->status = FromGuest(failure->status, job);
    if (failure->partial) {
      const absl::Status holds =
          CheckSamples(*failure->partial, context_.clock.Now() - job.arrived);
      if (!holds.ok()) return Break(failed.id(), holds);
    }
  }
  spoiled_ = spoiled_ || failure->sticky;
  // What the device did is not the code's doing.
  if (failure->sticky && is_guest() && DetailsOf(failure->status).reason != "DEVICE_FAULT") {
    Strike(context_, *job.program, failure->status.message());
  }
  if (&job != &active->job()) {
    failure->status = Annotate(failure->status, "the reference program");
    failure->partial.reset();
  }
  Answer(failed.id(),
         {.status = std::move(failure->status), .outcome = std::move(failure->partial)},
         failure->sticky);
  return absl::OkStatus();
}

}  // namespace gridclock
