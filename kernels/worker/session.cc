#include "kernels/worker/session.h"

#include <algorithm>
#include <new>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/verify/verify.h"
#include "kernels/worker/check.h"
#include "kernels/worker/compare_launches.h"
#include "kernels/worker/operands.h"

namespace gridclock {
namespace {

constexpr double kQuickNs = 10e3;
// Of the timed launches so many terms are checked: enough for a result that is not of its inputs.
constexpr std::int64_t kTermsOfOneCheck = std::int64_t{1} << 22;

bool HasSeed(const WorkerOperand& input) {
  return input.generate && MadeFromSeed(*input.generate);
}

// What a kernel computes in is what it is given, as far as its rate is concerned, unless it says
// otherwise.
std::optional<DType> ComputesIn(const BoundCall& call) {
  if (call.variant != nullptr && call.variant->arithmetic) return call.variant->arithmetic;
  if (call.inputs.empty() || call.inputs[0].value->tensors.empty()) return std::nullopt;
  return call.inputs[0].value->tensors[0].dtype;
}

std::int64_t BytesOf(const std::vector<OperandValue>& values) {
  std::int64_t bytes = 0;
  for (const OperandValue& value : values) {
    for (const TensorSpec& tensor : value.tensors) bytes += Bytes(tensor);
  }
  return bytes;
}

// Such a call has nothing to do, whatever a kernel's loops would make of a dimension of 2^60 beside
// one of 0.
bool MakesNothing(const Binding& binding) {
  return !binding.outputs.empty() &&
         std::all_of(
             binding.outputs.begin(), binding.outputs.end(), [](const OperandValue& output) {
               return std::all_of(output.tensors.begin(), output.tensors.end(),
                                  [](const auto& tensor) { return Elements(tensor.shape) == 0; });
             });
}

void Raise(Flag flag, std::vector<Flag>* flags) {
  const auto place = std::lower_bound(flags->begin(), flags->end(), flag);
  if (place == flags->end() || *place != flag) flags->insert(place, flag);
}

absl::Status TookTooLong(absl::Duration took, absl::Duration limit) {
  return WithReason(
      absl::DeadlineExceededError(absl::StrCat("the launch took ", absl::FormatDuration(took),
                                               "; the limit is ", absl::FormatDuration(limit))),
      "KERNEL_TIME_LIMIT");
}

}  // namespace

// One order on its way.
class Session::Running {
 public:
  Running(Session& session, const WorkerOrder& order, SessionHost& host, SessionReport* report)
      : session_(session),
        device_(session.device_),
        order_(order),
        host_(host),
        watch_{session.clock_, host.kernel_since_ns()},
        report_(*report),
        out_(report->outcome) {}

  absl::Status Go();

 private:
  std::int64_t NowNs() const { return absl::ToUnixNanos(session_.clock_.Now()); }
  bool Repeats() const { return order_.measure.has_value() || order_.verify; }
  std::uint64_t DeviceBytes() const {
    return operands_->bytes() + (call_->program == nullptr ? 0 : call_->program->table_bytes());
  }
  // The server checks launches of this order.
  bool IsChecked() const { return order_.checked_launches > 0; }
  bool CanCheck() const { return call_->kernel != nullptr && CanVerify(call_->kernel->def); }
  bool IsBackToBack() const {
    return order_.measure && order_.measure->method == Method::kBackToBack;
  }
  // Launches back to back find in place and in variables what the one before left: what is returned
  // is of a launch of its own.
  bool Accumulates() const {
    const auto in_place = [](const WorkerOperand& output) {
      return output.in_place_of.has_value();
    };
    return IsBackToBack() && (std::any_of(order_.outputs.begin(), order_.outputs.end(), in_place) ||
                              (order_.program && !order_.program->program.globals.empty()));
  }
  // Whether the timed launches work on values of another seed, so that those of the submitted one
  // are fresh when the last launch, the one that is returned, meets them.
  bool Freshens() const {
    return order_.measure && order_.verify && CanCheck() &&
           std::any_of(order_.inputs.begin(), order_.inputs.end(), HasSeed);
  }

  absl::Status Run();
  absl::Status Place();
  absl::Status FillInputs();
  absl::Status PointProgram();
  absl::Status LaunchAgain();
  absl::Status LaunchUntimed();
  absl::Status TakeValues(CheckStep values);
  absl::Status GiveOutputs();
  absl::Status LaunchSubmitted();
  absl::Status Prepare();
  absl::Status LaunchOrMeasure();
  absl::StatusOr<Measurement> Time(const Target& target);
  bool HasWork() const;
  Work WorkOfOne() const;
  absl::Status Launch();
  std::int64_t LaunchesOfOne() const;
  void Keep(Measurement measurement);
  void CountLaunches();
  absl::Status VerifyOutputs();
  absl::Status CheckOutputs();
  absl::StatusOr<Verification> Check(std::int64_t most_terms);
  absl::Status MayVerifyOn();
  absl::Status ReturnOutputs();
  absl::Status Lost(const absl::Status& why);
  void AddPhase(PhaseKind kind, std::int64_t start_ns, std::int64_t end_ns) {
    out_.phases.push_back({.kind = kind, .start_ns = start_ns, .end_ns = end_ns});
  }

  Session& session_;
  Device& device_;
  const WorkerOrder& order_;
  SessionHost& host_;
  const LaunchWatch watch_;
  SessionReport& report_;
  Outcome& out_;
  BoundCall* call_ = nullptr;
  Call launch_;
  std::optional<Operands> operands_;
  std::vector<gridclock::Launch> one_launch_;  // What one launch runs on the device.
  std::int64_t launches_ = 0;
  std::uint32_t checked_ = 0;      // Launches that the server gave values for.
  std::int64_t gpu_launches_ = 0;  // Of the variant's last call, as far as it counts them.
  absl::Status interruption_;
  absl::Time verify_end_;         // Of the verification's own time.
  std::uint64_t rows_bytes_ = 0;  // What the verification's rows took.
};

// Whatever call it was that failed, a device that is lost was lost to this order's kernel: all that
// orders ask of it has ended before they do.
absl::Status Session::Running::Go() {
  absl::Status status = Run();
  if (!status.ok() && !device_.uses_host_memory()) {
    // Nothing may still come from or go to memory that is given back now.
    const absl::Status ended = device_.Synchronize();
    if (!ended.ok() && device_.poisoned() && DetailsOf(status).reason != "KERNEL_FAULT") {
      status = ended;
    }
  }
  return device_.poisoned() ? Lost(status) : status;
}

absl::Status Session::Running::Lost(const absl::Status& why) {
  report_.spoiled = true;
  const std::string kernel = call_ != nullptr ? call_->launch_name : order_.kernel;
  // The device knows a fault of the kernel from one of its own.
  const std::string reason = DetailsOf(why).reason;
  if (reason == "KERNEL_FAULT" || reason == "DEVICE_FAULT") {
    return Annotate(why, absl::StrCat("kernel '", kernel, "'"));
  }
  return WithReason(absl::FailedPreconditionError(
                        absl::StrCat("kernel '", kernel, "' broke its device: ", why.message())),
                    "KERNEL_FAULT");
}

absl::Status Session::Running::Run() {
  if (session_.clock_.Now() >= order_.deadline) {
    return absl::DeadlineExceededError("the deadline passed before the launch");
  }
  if (host_.Cancelled(order_)) return absl::CancelledError("cancelled before the launch");
  GC_ASSIGN_OR_RETURN(call_, session_.cache_.Find(order_));
  GC_RETURN_IF_ERROR(Place());
  GC_RETURN_IF_ERROR(FillInputs());
  GC_RETURN_IF_ERROR(LaunchOrMeasure());
  if (!interruption_.ok()) return interruption_;
  GC_RETURN_IF_ERROR(VerifyOutputs());
  return ReturnOutputs();
}

absl::Status Session::Running::Place() {
  operands_.emplace(Operands::Parts{.device = device_,
                                    .staging = session_.staging_,
                                    .early = session_.early_,
                                    .arena = session_.arena_,
                                    .order = order_,
                                    .call = *call_});
  out_.variant = order_.variant;
  GC_RETURN_IF_ERROR(operands_->Place());
  // Measuring takes memory too, beside the operands: none of it may be held for others.
  if (order_.measure) session_.early_.Clear();
  out_.peak_device_bytes = operands_->bytes();
  launch_ = Call{.binding = &call_->binding,
                 .inputs = call_->inputs,
                 .outputs = call_->outputs,
                 .scratch = call_->scratch,
                 .threads = device_.threads(),
                 .stream = device_.stream(),
                 .launches = &gpu_launches_};
  return absl::OkStatus();
}

absl::Status Session::Running::FillInputs() {
  constexpr std::uint64_t kOtherSeed = 0x9E3779B97F4A7C15U;
  const auto made = [](const WorkerOperand& input) { return input.generate.has_value(); };
  const bool copies = operands_->own_memory() && !order_.inputs.empty();
  if (IsChecked()) {
    GC_RETURN_IF_ERROR(operands_->TakeAll());
  } else if (copies || std::any_of(order_.inputs.begin(), order_.inputs.end(), made)) {
    const std::int64_t start = NowNs();
    GC_RETURN_IF_ERROR(operands_->Fill(Freshens() ? kOtherSeed : 0));
    AddPhase(PhaseKind::kInputCopied, start, NowNs());
  }
  if (call_->program != nullptr) GC_RETURN_IF_ERROR(PointProgram());
  if (!Repeats()) return absl::OkStatus();
  GC_RETURN_IF_ERROR(operands_->Save());
  out_.peak_device_bytes = DeviceBytes();
  return absl::OkStatus();
}

// What submitted code does not write must not be what an earlier order left there.
absl::Status Session::Running::PointProgram() {
  // Of a launch that is checked the server has poisoned them.
  if (!IsChecked()) GC_RETURN_IF_ERROR(operands_->Poison());
  GC_RETURN_IF_ERROR(call_->program->Point(launch_, device_));
  out_.peak_device_bytes = DeviceBytes();
  return device_.Synchronize();
}

// Untimed, on the submitted values.
absl::Status Session::Running::LaunchAgain() {
  if (host_.Cancelled(order_)) return absl::CancelledError("cancelled before the last launch");
  GC_RETURN_IF_ERROR(Prepare());
  return LaunchUntimed();
}

absl::Status Session::Running::LaunchUntimed() {
  host_.kernel_since_ns().store(NowNs(), std::memory_order_relaxed);
  absl::Status status = Launch();
  if (status.ok()) status = device_.Synchronize();
  host_.kernel_since_ns().store(0, std::memory_order_relaxed);
  ++launches_;
  CountLaunches();
  return status;
}

absl::Status Session::Running::TakeValues(CheckStep values) {
  GC_RETURN_IF_ERROR(host_.Step(order_, checked_, values));
  GC_RETURN_IF_ERROR(operands_->TakeAll());
  if (!session_.keeps_scratch_) GC_RETURN_IF_ERROR(operands_->PoisonScratch());
  // Of the last launch alone, which is not timed: a multiprocessor cuts one memory into the L1 and
  // what blocks share, and would cut it for a timed launch as it was cut for this.
  if (values == CheckStep::kSubmittedValues && !session_.keeps_shared_) {
    GC_RETURN_IF_ERROR(device_.FillShared(std::random_device{}()));
  }
  GC_RETURN_IF_ERROR(PointProgram());
  GC_RETURN_IF_ERROR(call_->program->SetGlobals(launch_, device_));
  return device_.Synchronize();
}

absl::Status Session::Running::GiveOutputs() {
  GC_RETURN_IF_ERROR(operands_->GiveAll());
  return host_.Step(order_, checked_++, CheckStep::kTake);
}

// What is returned is of a launch of its own where the timed ones had other values.
absl::Status Session::Running::LaunchSubmitted() {
  if (checked_ == order_.checked_launches) return absl::OkStatus();
  GC_RETURN_IF_ERROR(TakeValues(CheckStep::kSubmittedValues));
  GC_RETURN_IF_ERROR(LaunchUntimed());
  return GiveOutputs();
}

void Session::Running::CountLaunches() {
  out_.launches = one_launch_;
  for (gridclock::Launch& kernel : out_.launches) kernel.count *= launches_;
}

absl::Status Session::Running::Prepare() {
  GC_RETURN_IF_ERROR(operands_->Restore());
  if (call_->program != nullptr) GC_RETURN_IF_ERROR(call_->program->SetGlobals(launch_, device_));
  // Poison costs a pass over the outputs and warms the cache with them, so it is laid only where
  // the outputs will be held against the reference.
  if (order_.verify) GC_RETURN_IF_ERROR(operands_->Poison());
  // What is timed next must not wait for what was done here.
  return operands_->own_memory() ? device_.Synchronize() : absl::OkStatus();
}

// A GPU's variants see for themselves that there is nothing to launch.
bool Session::Running::HasWork() const {
  return !device_.uses_host_memory() || !MakesNothing(call_->binding);
}

// A kernel that cannot get memory says so by its status or by an exception of the library; what it
// took of the host's until then may never come back, so the process is given up. Everything else
// that goes wrong in it ends the process at once.
absl::Status Session::Running::Launch() {
  absl::Status status;
  gpu_launches_ = 0;
  try {
    if (call_->program != nullptr) {
      status = call_->program->Launch();
    } else if (HasWork()) {
      status = call_->variant->launch(launch_);
    }
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError("out of memory");
  }
  if (status.code() != absl::StatusCode::kResourceExhausted) return status;
  report_.spoiled = device_.uses_host_memory();
  return WithReason(absl::ResourceExhaustedError(
                        absl::StrCat("kernel '", call_->launch_name,
                                     "' could not get the memory it wanted: ", status.message())),
                    "MEMORY_FULL");
}

// What the words count is not done where nothing is launched: no time of that is too short.
// Submitted code may launch for outputs without elements too.
Work Session::Running::WorkOfOne() const {
  const bool idle =
      call_->program != nullptr ? call_->program->is_empty() : MakesNothing(call_->binding);
  if (idle) return {};
  return {.bytes = IsChecked() ? order_.bytes : call_->binding.bytes,
          .flops = IsChecked() ? order_.flops : call_->binding.flops,
          .written = BytesOf(call_->binding.outputs),
          .dtype = ComputesIn(*call_),
          .part_of_rate = call_->variant != nullptr ? call_->variant->part_of_rate : 1};
}

absl::Status Session::Running::LaunchOrMeasure() {
  const auto launch = [this] { return Launch(); };
  const auto prepare = [this] { return Prepare(); };
  const SampleSteps checked = {.before = [this] { return TakeValues(CheckStep::kValues); },
                               .after = [this] { return GiveOutputs(); }};
  const bool batches = order_.measure && order_.measure->method == Method::kBackToBack;
  auto measured = Time({.launch = launch,
                        .prepare = prepare,
                        .work = WorkOfOne(),
                        .watch = &watch_,
                        .steps = IsChecked() && !batches ? &checked : nullptr});
  GC_RETURN_IF_ERROR(measured.status());
  Keep(*std::move(measured));
  if (interruption_.ok() && IsChecked()) return LaunchSubmitted();
  if (!interruption_.ok() || !Accumulates() || Freshens()) return absl::OkStatus();
  return LaunchAgain();
}

absl::StatusOr<Measurement> Session::Running::Time(const Target& target) {
  if (!order_.measure) {
    auto measured = LaunchOnce(device_, target);
    if (!measured.ok()) return measured;
    call_->last_ns = measured->timing.samples_ns[0];
    const absl::Duration took = absl::Nanoseconds(call_->last_ns);
    if (took > order_.kernel_time_limit) {
      measured->interruption = TookTooLong(took, order_.kernel_time_limit);
    }
    return measured;
  }
  return Measure(
      device_, *order_.measure, target,
      {.clock = session_.clock_,
       .deadline = order_.deadline,
       .kernel_time_limit = order_.kernel_time_limit,
       .cancelled = [this] { return host_.Cancelled(order_); },
       .yields = [this] { return host_.Yields(); },
       .on_samples = [this](std::int64_t first, std::span<const double> samples,
                            bool warmup) { host_.OnSamples(order_, first, samples, warmup); }});
}

// How often the variant launched on the device, which is never where its tensors are empty. What it
// does on the host counts as one, and so does submitted code.
std::int64_t Session::Running::LaunchesOfOne() const {
  if (call_->program != nullptr) return call_->program->is_empty() ? 0 : 1;
  if (operands_->own_memory()) return gpu_launches_;
  return HasWork() ? 1 : 0;
}

void Session::Running::Keep(Measurement measurement) {
  report_.launched = true;
  AddPhase(PhaseKind::kLaunched, measurement.first_start_ns, measurement.last_return_ns);
  AddPhase(PhaseKind::kFinished, measurement.first_start_ns, measurement.last_end_ns);
  one_launch_ = std::move(measurement.kernels);
  const std::int64_t count = LaunchesOfOne();
  if (one_launch_.empty() && count > 0) {
    one_launch_.push_back({.name = call_->launch_name, .count = count});
  }
  launches_ = measurement.launches;
  CountLaunches();
  out_.timing = std::move(measurement.timing);
  out_.flags = std::move(measurement.flags);
  out_.outputs.resize(order_.outputs.size());
  interruption_ = std::move(measurement.interruption);
}

absl::Status Session::Running::VerifyOutputs() {
  if (!order_.verify) return absl::OkStatus();
  if (!CanCheck()) {
    Raise(Flag::kUnverified, &out_.flags);
    return absl::OkStatus();
  }
  const std::int64_t start = NowNs();
  verify_end_ = session_.clock_.Now() + order_.kernel_time_limit;
  try {
    GC_RETURN_IF_ERROR(CheckOutputs());
  } catch (const std::bad_alloc&) {
    return WithReason(absl::ResourceExhaustedError(
                          absl::StrCat("verifying '", call_->launch_name, "': out of memory")),
                      "MEMORY_FULL");
  }
  out_.peak_device_bytes += rows_bytes_;
  // What was compared is of a launch of its own, none of those that a graph held and that were
  // timed.
  if (IsUndecided(*out_.verification) || IsBackToBack()) Raise(Flag::kUnverified, &out_.flags);
  AddPhase(PhaseKind::kVerified, start, NowNs());
  return absl::OkStatus();
}

absl::Status Session::Running::CheckOutputs() {
  Verification timed;
  if (Freshens()) {
    if (!Accumulates()) {
      GC_ASSIGN_OR_RETURN(timed, Check(kTermsOfOneCheck));
    }
    // A variant that keeps a result from an earlier launch has the wrong one now.
    GC_RETURN_IF_ERROR(operands_->Refresh());
    GC_RETURN_IF_ERROR(LaunchAgain());
  }
  GC_ASSIGN_OR_RETURN(out_.verification, Check(VerifyOptions().most_terms));
  if (timed.mismatches != 0) out_.verification = timed;
  return absl::OkStatus();
}

absl::StatusOr<Verification> Session::Running::Check(std::int64_t most_terms) {
  GC_ASSIGN_OR_RETURN(const Checked checked,
                      gridclock::CheckOutputs({.device = device_,
                                               .arena = session_.arena_,
                                               .operands = *operands_,
                                               .call = *call_,
                                               .most_terms = most_terms,
                                               .seed = order_.id,
                                               .poll = [this] { return MayVerifyOn(); }}));
  rows_bytes_ = std::max(rows_bytes_, checked.device_bytes);
  return checked.verification;
}

// The server gives a verification as much time as the kernel: it must end by itself before that, as
// the server could only end the worker, and would not know what it was at.
absl::Status Session::Running::MayVerifyOn() {
  const absl::Time now = session_.clock_.Now();
  if (host_.Cancelled(order_)) return absl::CancelledError("cancelled while verifying");
  if (now >= order_.deadline) {
    return absl::DeadlineExceededError("the deadline passed while verifying");
  }
  if (now < verify_end_) return absl::OkStatus();
  return WithReason(
      absl::DeadlineExceededError(absl::StrCat(
          "the launch of '", call_->launch_name,
          "' ended in time, but verifying it took longer than ",
          absl::FormatDuration(order_.kernel_time_limit),
          ", the kernel's own limit; call without verify, or raise kernel_time_limit")),
      "VERIFY_TIME_LIMIT");
}

absl::Status Session::Running::ReturnOutputs() {
  const auto wanted = [this](const WorkerOperand& output) {
    return output.checksum || (operands_->own_memory() && output.memory.size > 0);
  };
  if (std::none_of(order_.outputs.begin(), order_.outputs.end(), wanted)) return absl::OkStatus();
  const std::int64_t start = NowNs();
  if (!IsChecked()) GC_RETURN_IF_ERROR(operands_->Return());
  for (std::size_t i = 0; i < order_.outputs.size(); ++i) {
    if (!order_.outputs[i].checksum) continue;
    GC_ASSIGN_OR_RETURN(out_.outputs[i].checksum, operands_->Checksum(i));
  }
  AddPhase(PhaseKind::kOutputCopied, start, NowNs());
  return absl::OkStatus();
}

Session::Session(Device& device, const Registry& registry, const Clock& clock,
                 std::span<std::byte> arena, const GuestParts* guest)
    : device_(device),
      registry_(registry),
      clock_(clock),
      arena_(arena),
      printed_(guest == nullptr ? nullptr : guest->printed),
      keeps_scratch_(guest != nullptr && guest->keep_scratch),
      keeps_shared_(guest != nullptr && guest->keep_shared),
      modules_(guest == nullptr ? nullptr
                                : std::make_unique<ModuleStore>(device, guest->natives, arena)),
      cache_(registry, device, modules_.get()),
      staging_(device),
      early_(device, arena) {}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(Device& device, const Registry& registry,
                                                         const Clock& clock,
                                                         std::span<std::byte> arena,
                                                         const GuestParts* guest) {
  if (!device.uses_host_memory()) {
    if (auto pinned = device.RegisterHost(arena); !pinned.ok()) {
      return Annotate(pinned, absl::StrCat("pinning the arena of ", arena.size(), " bytes"));
    }
  }
  return std::unique_ptr<Session>(new Session(device, registry, clock, arena, guest));
}

SessionReport Session::Run(const WorkerOrder& order, SessionHost& host) {
  SessionReport report;
  if (printed_ != nullptr) printed_->Begin();
  report.status = Running(*this, order, host, &report).Go();
  if (printed_ == nullptr) return report;
  printed_->End(&report.outcome);
  // What a kernel said before it failed tells why.
  if (!report.launched && !report.outcome.printed.empty()) {
    report.launched = true;
    report.outcome.variant = order.variant;
    report.outcome.outputs.resize(order.outputs.size());
  }
  return report;
}

SessionReport Session::Compare(const WorkerComparison& comparison,
                               const std::function<bool()>& cancelled) const {
  SessionReport report;
  const std::int64_t start = absl::ToUnixNanos(clock_.Now());
  auto found = CompareLaunches(comparison, {.registry = registry_,
                                            .threads = *device_.threads(),
                                            .arena = arena_,
                                            .clock = clock_,
                                            .cancelled = cancelled});
  report.status = found.status();
  if (!found.ok()) return report;
  if (IsUndecided(*found)) report.outcome.flags = {Flag::kUnverified};
  report.outcome.verification = *std::move(found);
  report.outcome.phases.push_back(
      {.kind = PhaseKind::kVerified, .start_ns = start, .end_ns = absl::ToUnixNanos(clock_.Now())});
  return report;
}

bool Session::IsQuick(const WorkerOrder& order) const {
  if (order.measure || order.verify || order.program) return false;
  const auto in_place = [](const WorkerOperand& output) { return output.in_place_of.has_value(); };
  if (std::any_of(order.outputs.begin(), order.outputs.end(), in_place)) return false;
  const BoundCall* call = cache_.Peek(order);
  return call != nullptr && call->last_ns < kQuickNs;
}

}  // namespace gridclock
