#include "kernels/worker/session.h"

#include <algorithm>
#include <new>

#include <xxhash.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/verify/verify.h"

namespace gridclock {
namespace {

// Large and finite in every floating type, so that neither zero nor NaN can pass for it.
constexpr std::byte kPoison{0x7B};
constexpr double kQuickNs = 10e3;
// Of the timed launches so many terms are checked: enough for a result that is not of its inputs.
constexpr std::int64_t kTimedTerms = std::int64_t{1} << 22;

std::uint64_t Checksum(const OperandView& view) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_64bits_reset(state);
  for (std::size_t i = 0; i < view.data.size(); ++i) {
    XXH3_64bits_update(state, view.data[i],
                       static_cast<std::size_t>(Bytes(view.value->tensors[i])));
  }
  const std::uint64_t digest = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  return digest;
}

bool HasSeed(const WorkerOperand& input) {
  if (!input.generate) return false;
  const GeneratorKind kind = input.generate->kind;
  return kind == GeneratorKind::kRandn || kind == GeneratorKind::kUniform ||
         kind == GeneratorKind::kRandint;
}

void Raise(Flag flag, std::vector<Flag>* flags) {
  const auto place = std::lower_bound(flags->begin(), flags->end(), flag);
  if (place == flags->end() || *place != flag) flags->insert(place, flag);
}

void Point(std::byte* base, OperandView* view) {
  for (std::size_t i = 0; i < view->data.size(); ++i) {
    view->data[i] = base + TensorOffset(*view->value, i);
  }
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
  std::byte* At(const MemoryRange& range) const { return session_.arena_.data() + range.offset; }
  bool Repeats() const { return order_.measure.has_value() || order_.verify; }
  // A slope runs many launches on private copies: none of them is the one that is returned.
  bool CanCheck() const {
    return CanVerify(call_->kernel->def) &&
           !(order_.measure && order_.measure->method == Method::kBackToBack);
  }
  // Whether the timed launches work on values of another seed, so that those of the submitted one
  // are fresh when the last launch, the one that is returned, meets them.
  bool Freshens() const {
    return order_.measure && order_.verify && CanCheck() &&
           std::any_of(order_.inputs.begin(), order_.inputs.end(), HasSeed);
  }

  absl::Status Place();
  absl::Status AllocateScratch();
  absl::Status MakeInputs();
  void MakeValues(std::uint64_t seed_change);
  absl::Status SaveInputs();
  absl::Status LaunchOnFreshInputs();
  absl::Status Prepare();
  absl::Status LaunchOrMeasure();
  absl::StatusOr<Measurement> Time(const Target& target);
  absl::Status Launch();
  void Keep(Measurement measurement);
  absl::Status VerifyOutputs();
  absl::Status CheckOutputs();
  absl::StatusOr<Verification> Check(std::int64_t most_terms);
  absl::Status MayVerifyOn();
  void SumUp();
  void AddPhase(PhaseKind kind, std::int64_t start_ns, std::int64_t end_ns) {
    out_.phases.push_back({.kind = kind, .start_ns = start_ns, .end_ns = end_ns});
  }

  // An input that the kernel overwrites, and the values that were submitted.
  struct Saved {
    std::size_t input = 0;
    std::unique_ptr<DeviceBuffer> buffer;
  };

  Session& session_;
  Device& device_;
  const WorkerOrder& order_;
  SessionHost& host_;
  const LaunchWatch watch_;
  SessionReport& report_;
  Outcome& out_;
  BoundCall* call_ = nullptr;
  Call launch_;
  std::vector<Saved> saved_;
  std::vector<std::unique_ptr<DeviceBuffer>> scratch_;
  absl::Status interruption_;
  absl::Time verify_end_;         // Of the verification's own time.
  std::uint64_t rows_bytes_ = 0;  // What the verification's rows took.
};

absl::Status Session::Running::Go() {
  if (session_.clock_.Now() >= order_.deadline) {
    return absl::DeadlineExceededError("the deadline passed before the launch");
  }
  if (host_.Cancelled(order_)) return absl::CancelledError("cancelled before the launch");
  GC_ASSIGN_OR_RETURN(call_, session_.cache_.Find(order_));
  GC_RETURN_IF_ERROR(Place());
  GC_RETURN_IF_ERROR(MakeInputs());
  GC_RETURN_IF_ERROR(SaveInputs());
  GC_RETURN_IF_ERROR(LaunchOrMeasure());
  if (!interruption_.ok()) return interruption_;
  GC_RETURN_IF_ERROR(VerifyOutputs());
  SumUp();
  return absl::OkStatus();
}

absl::Status Session::Running::Place() {
  for (std::size_t i = 0; i < order_.inputs.size(); ++i) {
    Point(At(order_.inputs[i].memory), &call_->inputs[i]);
    out_.peak_device_bytes += order_.inputs[i].memory.size;
  }
  for (std::size_t i = 0; i < order_.outputs.size(); ++i) {
    const WorkerOperand& output = order_.outputs[i];
    const auto over = output.in_place_of;
    if (over && !(order_.inputs[*over].value == output.value)) {
      return absl::InvalidArgumentError(absl::StrCat("output ", i, " is not of the shape of input ",
                                                     *over, ", over which it is"));
    }
    Point(At(over ? order_.inputs[*over].memory : output.memory), &call_->outputs[i]);
    if (!over) out_.peak_device_bytes += output.memory.size;
  }
  out_.variant = order_.variant;
  GC_RETURN_IF_ERROR(AllocateScratch());
  launch_ = Call{.binding = &call_->binding,
                 .inputs = call_->inputs,
                 .outputs = call_->outputs,
                 .scratch = call_->scratch,
                 .threads = device_.threads(),
                 .stream = device_.stream()};
  return absl::OkStatus();
}

absl::Status Session::Running::AllocateScratch() {
  for (OperandView& view : call_->scratch) {
    GC_ASSIGN_OR_RETURN(auto buffer, device_.Allocate(OperandBytes(*view.value)));
    Point(static_cast<std::byte*>(buffer->data()), &view);
    out_.peak_device_bytes += buffer->size();
    scratch_.push_back(std::move(buffer));
  }
  return absl::OkStatus();
}

absl::Status Session::Running::MakeInputs() {
  const auto needs = [](const WorkerOperand& input) { return input.generate.has_value(); };
  if (std::none_of(order_.inputs.begin(), order_.inputs.end(), needs)) return absl::OkStatus();
  constexpr std::uint64_t kOtherSeed = 0x9E3779B97F4A7C15U;
  const std::int64_t start = NowNs();
  MakeValues(Freshens() ? kOtherSeed : 0);
  AddPhase(PhaseKind::kInputCopied, start, NowNs());
  return absl::OkStatus();
}

// `seed_change` 0 makes the submitted values.
void Session::Running::MakeValues(std::uint64_t seed_change) {
  for (std::size_t i = 0; i < order_.inputs.size(); ++i) {
    if (!order_.inputs[i].generate) continue;
    Generator generator = *order_.inputs[i].generate;
    generator.seed ^= seed_change;
    GenerateOperand(generator, call_->inputs[i], *device_.threads());
  }
}

absl::Status Session::Running::SaveInputs() {
  if (!Repeats()) return absl::OkStatus();
  for (const WorkerOperand& output : order_.outputs) {
    if (!output.in_place_of) continue;
    const auto input = static_cast<std::size_t>(*output.in_place_of);
    const std::uint64_t bytes = OperandBytes(order_.inputs[input].value);
    GC_ASSIGN_OR_RETURN(auto buffer, device_.Allocate(bytes));
    GC_RETURN_IF_ERROR(device_.Copy(buffer->data(), At(order_.inputs[input].memory), bytes));
    out_.peak_device_bytes += buffer->size();
    saved_.push_back({input, std::move(buffer)});
  }
  return absl::OkStatus();
}

// Untimed. A variant that keeps a result from an earlier launch has the wrong one now.
absl::Status Session::Running::LaunchOnFreshInputs() {
  if (host_.Cancelled(order_)) return absl::CancelledError("cancelled while verifying");
  MakeValues(0);
  for (const Saved& saved : saved_) {
    const WorkerOperand& input = order_.inputs[saved.input];
    if (!input.generate) continue;
    GC_RETURN_IF_ERROR(
        device_.Copy(saved.buffer->data(), At(input.memory), OperandBytes(input.value)));
  }
  GC_RETURN_IF_ERROR(Prepare());
  GC_RETURN_IF_ERROR(Launch());
  ++out_.launches.back().count;
  return device_.Synchronize();
}

absl::Status Session::Running::Prepare() {
  for (const Saved& saved : saved_) {
    const WorkerOperand& input = order_.inputs[saved.input];
    GC_RETURN_IF_ERROR(
        device_.Copy(At(input.memory), saved.buffer->data(), OperandBytes(input.value)));
  }
  // Poison costs a pass over the outputs and warms the cache with them, so it is laid only where
  // the outputs will be held against the reference.
  if (!order_.verify) return absl::OkStatus();
  for (const WorkerOperand& output : order_.outputs) {
    if (output.in_place_of) continue;
    GC_RETURN_IF_ERROR(device_.Fill(At(output.memory), kPoison, OperandBytes(output.value)));
  }
  return absl::OkStatus();
}

// A kernel that cannot get memory says so by its status or by an exception of the library; what it
// took until then may never come back, so the process is given up. Everything else that goes wrong
// in it ends the process at once.
absl::Status Session::Running::Launch() {
  absl::Status status;
  try {
    status = call_->variant->launch(launch_);
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError("out of memory");
  }
  if (status.code() != absl::StatusCode::kResourceExhausted) return status;
  report_.spoiled = true;
  return WithReason(absl::ResourceExhaustedError(
                        absl::StrCat("kernel '", call_->launch_name,
                                     "' could not get the memory it wanted: ", status.message())),
                    "MEMORY_FULL");
}

absl::Status Session::Running::LaunchOrMeasure() {
  const auto launch = [this] { return Launch(); };
  const auto prepare = [this] { return Prepare(); };
  auto measured = Time({.launch = launch,
                        .prepare = prepare,
                        .bytes = call_->binding.bytes,
                        .flops = call_->binding.flops,
                        .watch = &watch_});
  GC_RETURN_IF_ERROR(measured.status());
  Keep(*std::move(measured));
  return absl::OkStatus();
}

absl::StatusOr<Measurement> Session::Running::Time(const Target& target) {
  if (!order_.measure) {
    auto measured = LaunchOnce(device_, target);
    if (measured.ok()) call_->last_ns = measured->timing.samples_ns[0];
    return measured;
  }
  return Measure(
      device_, *order_.measure, target,
      {.clock = session_.clock_,
       .deadline = order_.deadline,
       .kernel_time_limit = order_.kernel_time_limit,
       .cancelled = [this] { return host_.Cancelled(order_); },
       .on_samples = [this](std::int64_t first, std::span<const double> samples,
                            bool warmup) { host_.OnSamples(order_, first, samples, warmup); }});
}

void Session::Running::Keep(Measurement measurement) {
  report_.launched = true;
  AddPhase(PhaseKind::kLaunched, measurement.first_start_ns, measurement.last_end_ns);
  AddPhase(PhaseKind::kFinished, measurement.first_start_ns, measurement.last_end_ns);
  gridclock::Launch& launched = out_.launches.emplace_back();
  launched.name = call_->launch_name;
  launched.count = measurement.launches;
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
  if (IsUndecided(*out_.verification)) Raise(Flag::kUnverified, &out_.flags);
  AddPhase(PhaseKind::kVerified, start, NowNs());
  return absl::OkStatus();
}

absl::Status Session::Running::CheckOutputs() {
  Verification timed;
  if (Freshens()) {
    GC_ASSIGN_OR_RETURN(timed, Check(kTimedTerms));
    GC_RETURN_IF_ERROR(LaunchOnFreshInputs());
  }
  GC_ASSIGN_OR_RETURN(out_.verification, Check(VerifyOptions().most_terms));
  if (timed.mismatches != 0) out_.verification = timed;
  return absl::OkStatus();
}

// The outputs as they lie there against the inputs of their launch.
absl::StatusOr<Verification> Session::Running::Check(std::int64_t most_terms) {
  std::vector<OperandView> inputs = call_->inputs;
  for (const Saved& saved : saved_) {
    Point(static_cast<std::byte*>(saved.buffer->data()), &inputs[saved.input]);
  }
  const KernelDef& def = call_->kernel->def;
  Threads& threads = *device_.threads();
  auto memory = device_.Allocate(VerifyBytes(def, call_->binding, threads.count()));
  if (!memory.ok()) {
    return Annotate(memory.status(), absl::StrCat("verifying '", call_->launch_name, "'"));
  }
  rows_bytes_ = std::max(rows_bytes_, (*memory)->size());
  return Verify(
      def, call_->binding, inputs, call_->outputs, threads,
      {static_cast<std::byte*>((*memory)->data()), (*memory)->size()},
      {.most_terms = most_terms, .seed = order_.id, .poll = [this] { return MayVerifyOn(); }});
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

void Session::Running::SumUp() {
  const auto asked = [](const WorkerOperand& output) { return output.checksum; };
  if (std::none_of(order_.outputs.begin(), order_.outputs.end(), asked)) return;
  const std::int64_t start = NowNs();
  for (std::size_t i = 0; i < order_.outputs.size(); ++i) {
    if (order_.outputs[i].checksum) out_.outputs[i].checksum = Checksum(call_->outputs[i]);
  }
  AddPhase(PhaseKind::kOutputCopied, start, NowNs());
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(Device& device, const Registry& registry,
                                                         const Clock& clock,
                                                         std::span<std::byte> arena) {
  if (!device.uses_host_memory()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "device '", device.info().name, "' cannot work on the arena, which is host memory"));
  }
  return std::unique_ptr<Session>(new Session(device, registry, clock, arena));
}

SessionReport Session::Run(const WorkerOrder& order, SessionHost& host) {
  SessionReport report;
  report.status = Running(*this, order, host, &report).Go();
  return report;
}

bool Session::IsQuick(const WorkerOrder& order) const {
  if (order.measure || order.verify) return false;
  const auto in_place = [](const WorkerOperand& output) { return output.in_place_of.has_value(); };
  if (std::any_of(order.outputs.begin(), order.outputs.end(), in_place)) return false;
  const BoundCall* call = cache_.Peek(order);
  return call != nullptr && call->last_ns < kQuickNs;
}

}  // namespace gridclock
