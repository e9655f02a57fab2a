#include "server/core/placement.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "proto/types/launch.h"
#include "proto/types/status_page.h"
#include "server/core/reference.h"

namespace gridclock {
namespace {

absl::Status TooLarge(absl::string_view what, absl::string_view bytes, absl::string_view limit,
                      double value) {
  const std::string bound = absl::StrCat(static_cast<std::uint64_t>(value));
  return WithDetails(
      absl::ResourceExhaustedError(
          absl::StrCat(what, " needs ", bytes, " bytes; the limit ", limit, " is ", bound)),
      {.reason = "TOO_LARGE",
       .field = "",
       .retry_after = std::nullopt,
       .metadata = {
           {"limit", std::string(limit)}, {"value", bound}, {"needed", std::string(bytes)}}});
}

// The bytes of an operand with each tensor at its boundary; nullopt if they do not fit 63 bits.
std::optional<std::uint64_t> BlockBytes(const OperandValue& value) {
  std::int64_t total = 0;
  for (const TensorSpec& tensor : value.tensors) {
    const absl::StatusOr<std::int64_t> bytes = CheckedBytes(tensor);
    const auto padding = static_cast<std::int64_t>(kTensorAlignment) - 1;
    std::int64_t padded = 0;
    if (!bytes.ok() || __builtin_add_overflow(*bytes, padding, &padded) ||
        __builtin_add_overflow(total, padded & ~padding, &total)) {
      return std::nullopt;
    }
  }
  return static_cast<std::uint64_t>(total);
}

// Adds up; nullopt once it does not fit.
void Add(const OperandValue& value, std::optional<std::uint64_t>* total) {
  const std::optional<std::uint64_t> bytes = BlockBytes(value);
  std::uint64_t sum = 0;
  if (!*total || !bytes || __builtin_add_overflow(**total, *bytes, &sum)) {
    total->reset();
  } else {
    *total = sum;
  }
}

std::optional<std::uint64_t> OperandsBytes(const Job& job) {
  std::optional<std::uint64_t> total = 0;
  for (const JobInput& input : job.inputs) Add(input.value, &total);
  for (const JobOutput& output : job.outputs) {
    if (!output.in_place_of) Add(output.value, &total);
  }
  return total;
}

// Of the kernel whose threads have most: a process has one local memory for all.
std::uint64_t LocalBytes(const JobProgram* program, const DeviceChoice& device) {
  std::uint64_t most = 0;
  if (program == nullptr || device.host_memory) return most;
  for (const ProgramModule& module : program->modules) {
    if (module.code == nullptr) continue;
    for (const ModuleEntry& entry : module.code->facts.entries) {
      most = std::max(most, entry.local_bytes);
    }
  }
  return LocalMemoryBytes(SmLimitsOf(device.traits), device.units, most);
}

// Of the variables that a program's modules declare, and local memory; nullopt likewise.
std::optional<std::uint64_t> ProgramBytes(const JobProgram* program, const DeviceChoice& device) {
  std::uint64_t total = LocalBytes(program, device);
  if (program == nullptr) return total;
  for (const ProgramModule& module : program->modules) {
    const std::uint64_t bytes = module.code == nullptr ? 0 : module.code->facts.global_bytes;
    if (__builtin_add_overflow(total, bytes, &total) || total >> 63 != 0) return std::nullopt;
  }
  return total;
}

// What the device must hold at once: operands, scratch, what the program's code takes, and where
// launches repeat the submitted values of inputs that they overwrite.
absl::StatusOr<std::optional<std::uint64_t>> DeviceBytes(const Job& job, const JobProgram* program,
                                                         const DeviceChoice& device,
                                                         const Clauses& clauses,
                                                         const Binding& binding) {
  std::optional<std::uint64_t> total = OperandsBytes(job);
  const std::optional<std::uint64_t> of_code = ProgramBytes(program, device);
  if (!total || !of_code) return std::nullopt;
  *total += *of_code;
  GC_ASSIGN_OR_RETURN(const auto scratch, BindScratch(clauses, binding));
  for (const OperandValue& value : scratch) Add(value, &total);
  if (job.check && total) *total += 2 * kCheckMargin * (job.inputs.size() + job.outputs.size());
  if (!job.measure && !job.verify) return total;
  for (const JobOutput& output : job.outputs) {
    if (output.in_place_of) Add(output.value, &total);
  }
  return total;
}

absl::Status CheckMethod(const Job& job, const DeviceChoice& device, const KernelTable& table) {
  if (!job.measure) return absl::OkStatus();
  const Method method = job.measure->method;
  const bool gpu_only = method == Method::kDeviceTime || method == Method::kBackToBack ||
                        method == Method::kHostNoSync;
  std::string message;
  if (gpu_only && device.traits.kind == "cpu") {
    message =
        "a GPU is wanted for this method; a device of kind 'cpu' has ISOLATED, HOST_SYNC and "
        "EVENT_PAIR";
  } else if (std::string why = table.WhyMissing(device.name, method); !why.empty()) {
    message = absl::StrCat("device '", device.name, "' does not have this method: ", why);
  }
  if (message.empty()) return absl::OkStatus();
  return InvalidField("measure.method", message);
}

// Who reads of gigabytes and sent a megabyte should learn why.
std::string LocalWords(const JobProgram* program, const DeviceChoice& device) {
  const std::uint64_t bytes = LocalBytes(program, device);
  if (bytes == 0) return "";
  return absl::StrCat(", with ", bytes, " bytes of local memory for all threads that fit its ",
                      device.units, " multiprocessors at once,");
}

absl::Status CheckDeviceMemory(const Job& job, const JobProgram* program,
                               const DeviceChoice& device, const Clauses& clauses,
                               const Binding& binding) {
  if (device.host_memory || device.memory_bytes == 0) return absl::OkStatus();
  GC_ASSIGN_OR_RETURN(const auto bytes, DeviceBytes(job, program, device, clauses, binding));
  if (bytes && *bytes <= device.memory_bytes) return absl::OkStatus();
  return TooLarge(
      absl::StrCat("this call on device '", device.name, "'", LocalWords(program, device)),
      bytes ? absl::StrCat(*bytes) : "more than 2^63", "device_memory",
      static_cast<double>(device.memory_bytes));
}

absl::Status NotStarted(const DeviceChoice& device) {
  if (!device.why_down.ok()) return device.why_down;
  return WithDetails(
      absl::UnavailableError(absl::StrCat("the first worker of device '", device.name,
                                          "' is starting; what it can do is not known yet")),
      {.reason = "WORKER_STARTING",
       .field = "",
       .retry_after = absl::Milliseconds(200),
       .metadata = {}});
}

// ---- Submitted code. ----

// "compute capability 9.0 and later 9.x": what code for this target runs on.
struct Target {
  std::int64_t major = 0, minor = 0;
  bool exact = false;  // "sm_90a".

  bool RunsOn(std::int64_t sm) const {
    return sm / 10 == major && (exact ? sm % 10 == minor : sm % 10 >= minor);
  }
  std::string Words() const {
    return absl::StrCat("compute capability ", major, ".", minor,
                        exact ? " alone" : absl::StrCat(" and later ", major, ".x"));
  }
};

std::optional<Target> ParseTarget(absl::string_view arch) {
  if (!absl::ConsumePrefix(&arch, "sm_")) return std::nullopt;
  Target target;
  target.exact = absl::ConsumeSuffix(&arch, "a");
  absl::ConsumeSuffix(&arch, "f");
  std::int64_t number = 0;
  if (!absl::SimpleAtoi(arch, &number) || number < 10) return std::nullopt;
  target.major = number / 10;
  target.minor = number % 10;
  return target;
}

absl::Status NoDevice(const std::string& message) {
  return WithDetails(
      absl::FailedPreconditionError(message),
      {.reason = "NO_DEVICE", .field = "device", .retry_after = std::nullopt, .metadata = {}});
}

// "device 'cuda:0' of compute capability 8.0".
std::string Describe(const DeviceChoice& device) {
  const std::string name = absl::StrCat("device '", device.name, "'");
  if (device.traits.kind == "cpu") return absl::StrCat(name, ", which is no GPU");
  return absl::StrCat(name, " of compute capability ", device.traits.sm / 10, ".",
                      device.traits.sm % 10);
}

absl::Status CheckModule(const ProgramModule& module, const DeviceChoice& device) {
  if (module.kind == ModuleKind::kTestNative) {
    if (device.traits.kind == "cpu") return absl::OkStatus();
    return NoDevice(absl::StrCat("module '", module.id, "' is a native function of a test build, ",
                                 "which runs on the CPU device; got ", Describe(device)));
  }
  const std::string& arch = module.code->facts.arch;
  const std::optional<Target> target = ParseTarget(arch);
  if (device.traits.kind == "cuda" && target && target->RunsOn(device.traits.sm)) {
    return absl::OkStatus();
  }
  return NoDevice(absl::StrCat(
      "module '", module.id, "' is compiled for ", arch, ": it wants a GPU of ",
      target ? target->Words() : "an architecture that is not known", "; got ", Describe(device)));
}

const ModuleEntry* EntryOf(const JobProgram& program, const ProgramLaunch& launch) {
  for (const ProgramModule& module : program.modules) {
    if (module.id != launch.module || module.code == nullptr) continue;
    for (const ModuleEntry& entry : module.code->facts.entries) {
      if (entry.name == launch.entry) return &entry;
    }
  }
  return nullptr;  // Of a native function nothing is known.
}

absl::Status CheckLaunches(const JobProgram& program, const BoundProgram& bound,
                           const DeviceTraits& device) {
  const LaunchLimits limits = LaunchLimitsOf(device);
  for (std::size_t i = 0; i < bound.launches.size(); ++i) {
    const ProgramLaunch& launch = program.program.launches[i];
    const ModuleEntry* entry = EntryOf(program, launch);
    if (entry == nullptr) continue;
    const absl::Status fits = CheckEntry(*entry, launch.clauses.params, bound.launches[i], limits);
    if (fits.ok()) continue;
    const std::string field = absl::StrCat("program.launches[", i, "].words");
    return WithField(Annotate(fits, absl::StrCat("launches[", i, "]")), field);
  }
  return absl::OkStatus();
}

absl::Status FitProgram(const Job& job, const JobProgram& program, const DeviceChoice& device,
                        const Binding& binding) {
  for (const ProgramModule& module : program.modules) {
    GC_RETURN_IF_ERROR(CheckModule(module, device));
  }
  const Clauses& clauses = program.program.words.clauses;
  GC_ASSIGN_OR_RETURN(const bool holds, HoldsWhen(clauses, binding, device.traits));
  if (!holds) {
    return InvalidField("program.words",
                        absl::StrCat("this call does not keep 'when ", ToText(*clauses.when),
                                     "' on device '", device.name, "'"));
  }
  GC_ASSIGN_OR_RETURN(const BoundProgram bound,
                      BindProgram(program.program, binding, device.traits));
  GC_RETURN_IF_ERROR(CheckLaunches(program, bound, device.traits));
  return CheckDeviceMemory(job, &program, device, clauses, binding);
}

// The program that it is held against runs there too.
absl::Status FitReference(const Job& job, const DeviceChoice& device) {
  if (!job.check || job.check->program == nullptr) return absl::OkStatus();
  GC_ASSIGN_OR_RETURN(const Binding binding, BindReference(job));
  const absl::Status fits = FitProgram(job, *job.check->program, device, binding);
  return fits.ok() ? fits : WithField(Annotate(fits, "reference"), "reference.program");
}

// The variant that `job` gets there; none of a program.
absl::StatusOr<std::string> Fit(const Job& job, const DeviceChoice& device,
                                absl::string_view wanted, const Binding& binding,
                                const KernelTable& table) {
  if (!device.met) return NotStarted(device);
  if (job.program != nullptr) {
    GC_RETURN_IF_ERROR(FitProgram(job, *job.program, device, binding));
    GC_RETURN_IF_ERROR(FitReference(job, device));
    GC_RETURN_IF_ERROR(CheckMethod(job, device, table));
    return std::string();
  }
  GC_ASSIGN_OR_RETURN(const VariantSpec* variant,
                      ChooseVariant(*binding.spec, binding, device.traits, wanted));
  GC_RETURN_IF_ERROR(CheckMethod(job, device, table));
  GC_RETURN_IF_ERROR(CheckDeviceMemory(job, nullptr, device, variant->clauses, binding));
  return variant->name;
}

// Puts `value` at the end of the job's block.
absl::Status Append(const OperandValue& value, absl::string_view name, const Limits& limits,
                    Job& job, MemoryRange& memory) {
  const std::optional<std::uint64_t> bytes = BlockBytes(value);
  std::uint64_t end = 0;
  if (!bytes || __builtin_add_overflow(job.memory.size, *bytes, &end)) {
    return TooLarge(absl::StrCat("operand '", name, "'"), "more than 2^63", "arena_bytes",
                    limits.arena_bytes);
  }
  memory = {.offset = job.memory.size, .size = *bytes};
  job.memory.size = end;
  return absl::OkStatus();
}

// Expected values, and the outputs of all checked launches.
absl::Status AppendCheck(const Limits& limits, Job& job) {
  JobCheck& check = *job.check;
  for (std::size_t i = 0; i < check.expected.size(); ++i) {
    GC_RETURN_IF_ERROR(Append(check.expected[i].value, ExpectedName(job.outputs[i]), limits, job,
                              check.expected[i].memory));
  }
  const std::uint64_t bytes = check.launch_bytes * static_cast<std::uint64_t>(check.most_launches);
  check.launches = {.offset = job.memory.size, .size = bytes};
  job.memory.size += bytes;
  if (check.program == nullptr) return absl::OkStatus();
  check.references = {.offset = job.memory.size, .size = bytes};
  job.memory.size += bytes;
  return absl::OkStatus();
}

// The server wants the bytes: to return them, or of submitted code for a checksum of its own
// making. (Those of checked launches it has.)
bool Travels(const Job& job, const JobOutput& output) {
  const bool summed = output.sink == SinkKind::kChecksum && job.program != nullptr && !job.check;
  return summed || output.sink == SinkKind::kInline || output.sink == SinkKind::kStream;
}

// Reserved with the tensors: a call that has its memory never waits for more.
absl::Status AppendOrder(const Limits& limits, Job& job) {
  const bool has_order = job.program == nullptr || job.check;  // Guests have a memory of their own.
  const std::uint64_t bytes = has_order ? MostOrderBytes(job) : 0;
  if (bytes <= kFrameLimit) return absl::OkStatus();
  const OperandValue order = {.is_list = false,
                              .tensors = {{DType::kU8, {static_cast<std::int64_t>(bytes)}}}};
  return Append(order, "order", limits, job, job.order);
}

absl::Status CheckArena(const Limits& limits, const Job& job) {
  const auto total = static_cast<double>(job.memory.size);
  const std::string bytes = absl::StrCat(job.memory.size);
  if (total > limits.arena_bytes) {
    return TooLarge("this call with its outputs", bytes, "arena_bytes", limits.arena_bytes);
  }
  if (total > limits.client_arena_bytes) {
    return TooLarge("this call with its outputs", bytes, "client_arena_bytes",
                    limits.client_arena_bytes);
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<std::size_t> ChooseDevice(std::span<const Candidate> candidates) {
  const auto key = [](const Candidate& c) {
    return std::tuple(c.drained, c.state == WorkerState::kQuarantined, !c.gpu, !IsUp(c.state),
                      c.depth);
  };
  const auto best =
      std::min_element(candidates.begin(), candidates.end(),
                       [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
  if (best == candidates.end()) return std::nullopt;
  return static_cast<std::size_t>(best - candidates.begin());
}

absl::StatusOr<Placement> Place(const Job& job, absl::string_view wanted, absl::string_view variant,
                                const Binding& binding, const KernelTable& table,
                                const std::function<int(absl::string_view device)>& depth) {
  GC_ASSIGN_OR_RETURN(const DeviceChoices choices, table.Choices(wanted));
  absl::Status first_error;
  absl::InlinedVector<Candidate, 2> candidates;
  absl::InlinedVector<Placement, 2> places;
  for (const DeviceChoice& choice : choices) {
    absl::StatusOr<std::string> fits = Fit(job, choice, variant, binding, table);
    if (!fits.ok()) {
      if (first_error.ok()) first_error = fits.status();
      continue;
    }
    candidates.push_back({.state = choice.state,
                          .gpu = choice.traits.kind == "cuda",
                          .depth = choices.size() == 1 ? 0 : depth(choice.name),
                          .drained = choice.drained});
    places.push_back({.device = choice.name,
                      .variant = *std::move(fits),
                      .host_memory = choice.host_memory,
                      .local_bytes = LocalBytes(job.program.get(), choice)});
  }
  const std::optional<std::size_t> best = ChooseDevice(candidates);
  if (!best) return WithReasonIfNone(first_error, "SIGNATURE_MISMATCH");
  return std::move(places[*best]);
}

absl::Status LayOut(const KernelSpec& spec, const Limits& limits, bool host_memory, Job& job) {
  for (std::size_t i = 0; i < job.inputs.size(); ++i) {
    JobInput& input = job.inputs[i];
    // For a comparison they are made in the arena, whatever the device.
    if (!host_memory && input.source == SourceKind::kGenerate && !job.check) continue;
    GC_RETURN_IF_ERROR(Append(input.value, spec.inputs[i].name, limits, job, input.memory));
  }
  for (JobOutput& output : job.outputs) {
    if (!host_memory && !Travels(job, output)) continue;
    // What is compared later wants the input as it was sent.
    if (output.in_place_of && job.inputs[*output.in_place_of].memory.size > 0 && !job.check) {
      output.memory = job.inputs[*output.in_place_of].memory;
      continue;
    }
    GC_RETURN_IF_ERROR(Append(output.value, output.name, limits, job, output.memory));
  }
  if (job.check) GC_RETURN_IF_ERROR(AppendCheck(limits, job));
  GC_RETURN_IF_ERROR(AppendOrder(limits, job));
  job.host_memory = host_memory;
  job.operand_bytes = OperandsBytes(job).value_or(job.memory.size);
  return CheckArena(limits, job);
}

}  // namespace gridclock
