// Hello and orders.
#include "proto/codec/worker.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/codec/values.h"
#include "proto/types/status_page.h"

namespace gridclock {
namespace {

// Room for the rest of the frame around the specs of a hello.
constexpr std::size_t kHelloRoom = kFrameLimit - 8192;
constexpr std::size_t kMostKernels = 4096;
constexpr std::size_t kLongestCalibration = 4096;
constexpr int kMostFacts = 64;
constexpr std::size_t kLongestText = 256;
constexpr int kMostNatives = 256;

void Encode(const DeviceInfo& in, worker::v1::DeviceFacts* out) {
  out->set_name(in.name);
  out->set_kind(in.traits.kind);
  out->set_model(in.model);
  out->set_uuid(in.uuid);
  out->set_level(in.level);
  out->set_units(in.units);
  out->set_memory_bytes(in.memory_bytes);
  out->set_memory_bandwidth(in.memory_bandwidth);
  out->set_launch_floor_ns(in.launch_floor_ns);
  out->set_clock_step_ns(in.clock_step_ns);
  out->set_sm(in.traits.sm);
  out->set_own_memory(!in.host_memory);
  out->set_l2_bytes(in.l2_bytes);
  out->set_sm_clock_hz(in.sm_clock_hz);
  out->set_memory_clock_hz(in.memory_clock_hz);
  out->set_driver(in.driver);
  out->set_cuda(in.cuda);
  out->set_launch_offset_ns(in.launch_offset_ns);
  out->set_kernel_offset_ns(in.kernel_offset_ns);
  out->set_copy_offset_ns(in.copy_offset_ns);
  out->set_serial_record_offset_ns(in.serial_record_offset_ns);
  out->set_empty_event_pair_ns(in.empty_event_pair_ns);
  out->set_device_timer_step_ns(in.device_timer_step_ns);
  out->set_l2_bandwidth(in.l2_bandwidth);
  out->set_partition(in.partition);
  out->set_pageable_access(in.pageable_access);
  for (const MethodFacts& method : in.methods) Encode(method, out->add_methods());
  for (const FlopRate& rate : in.flop_rates) Encode(rate, out->add_flop_rates());
}

bool IsAmount(double value) {
  return std::isfinite(value) && value >= 0;
}

bool AreAmounts(const worker::v1::DeviceFacts& in) {
  const double amounts[] = {in.memory_bandwidth(),    in.launch_floor_ns(),
                            in.clock_step_ns(),       in.sm_clock_hz(),
                            in.memory_clock_hz(),     in.launch_offset_ns(),
                            in.empty_event_pair_ns(), in.device_timer_step_ns(),
                            in.l2_bandwidth(),        in.serial_record_offset_ns()};
  return std::all_of(std::begin(amounts), std::end(amounts), IsAmount) &&
         std::isfinite(in.kernel_offset_ns()) && std::isfinite(in.copy_offset_ns()) &&
         std::all_of(in.methods().begin(), in.methods().end(),
                     [](const auto& method) { return IsAmount(method.floor_ns()); }) &&
         std::all_of(in.flop_rates().begin(), in.flop_rates().end(),
                     [](const auto& rate) { return IsAmount(rate.flops_per_second()); });
}

absl::Status DecodeRates(const worker::v1::DeviceFacts& in, DeviceInfo* out) {
  if (in.methods_size() > kMostFacts || in.flop_rates_size() > kMostFacts) {
    return absl::InvalidArgumentError(
        absl::StrCat("a hello brings more than ", kMostFacts, " methods or flop rates"));
  }
  for (const v1::Device::MethodFacts& wire : in.methods()) {
    if (wire.method() < v1::ISOLATED || wire.method() > v1::EVENT_PAIR) {
      return absl::InvalidArgumentError(absl::StrCat("a hello brings method ", wire.method()));
    }
    out->methods.push_back({.method = static_cast<Method>(wire.method()),
                            .floor_ns = wire.floor_ns(),
                            .missing = wire.missing().substr(0, kLongestText),
                            .note = wire.note().substr(0, kLongestText)});
  }
  for (const v1::Device::FlopRate& wire : in.flop_rates()) {
    GC_ASSIGN_OR_RETURN(const DType dtype, Decode(wire.dtype(), "flop_rates"));
    out->flop_rates.push_back({.dtype = dtype, .flops_per_second = wire.flops_per_second()});
  }
  return absl::OkStatus();
}

absl::StatusOr<DeviceInfo> DecodeFacts(const worker::v1::DeviceFacts& in) {
  if (in.name().empty() || in.kind().empty() || in.units() < 1) {
    return absl::InvalidArgumentError("a hello must name its device, kind and units");
  }
  if (!AreAmounts(in)) {
    return absl::InvalidArgumentError("a hello brings device facts that are not finite numbers");
  }
  DeviceInfo out;
  out.name = in.name();
  out.traits = {.kind = in.kind(), .sm = in.sm()};
  out.model = in.model();
  out.uuid = in.uuid();
  out.level = in.level();
  out.units = in.units();
  out.memory_bytes = in.memory_bytes();
  out.memory_bandwidth = in.memory_bandwidth();
  out.launch_floor_ns = in.launch_floor_ns();
  out.clock_step_ns = in.clock_step_ns();
  out.host_memory = !in.own_memory();
  out.l2_bytes = in.l2_bytes();
  out.sm_clock_hz = in.sm_clock_hz();
  out.memory_clock_hz = in.memory_clock_hz();
  out.driver = in.driver();
  out.cuda = in.cuda();
  out.launch_offset_ns = in.launch_offset_ns();
  out.kernel_offset_ns = in.kernel_offset_ns();
  out.copy_offset_ns = in.copy_offset_ns();
  out.serial_record_offset_ns = in.serial_record_offset_ns();
  out.empty_event_pair_ns = in.empty_event_pair_ns();
  out.device_timer_step_ns = in.device_timer_step_ns();
  out.l2_bandwidth = in.l2_bandwidth();
  out.partition = in.partition();
  out.pageable_access = in.pageable_access();
  GC_RETURN_IF_ERROR(DecodeRates(in, &out));
  return out;
}

worker::v1::Hello* BeginFrame(const WorkerHello& hello, std::vector<worker::v1::ToServer>* out) {
  worker::v1::Hello* frame = out->emplace_back().mutable_hello();
  frame->set_protocol(hello.protocol);
  frame->set_role(static_cast<worker::v1::Role>(hello.role));
  Encode(hello.device, frame->mutable_device());
  frame->set_calibration(hello.calibration);
  frame->set_sandbox(hello.sandbox);
  if (out->size() == 1) {
    for (const std::string& name : hello.test_natives) frame->add_test_natives(name);
  }
  return frame;
}

}  // namespace

absl::StatusOr<std::vector<worker::v1::ToServer>> EncodeHello(const WorkerHello& hello) {
  std::vector<worker::v1::ToServer> out;
  worker::v1::Hello* frame = BeginFrame(hello, &out);
  std::size_t used = 0;
  for (const KernelSpec& spec : hello.kernels) {
    v1::KernelSpec wire;
    Encode(spec, &wire);
    const std::size_t size = wire.ByteSizeLong() + 8;
    if (size > kHelloRoom) {
      return absl::InternalError(absl::StrCat("the words of kernel '", spec.name, "' take ", size,
                                              " bytes; a frame holds ", kHelloRoom));
    }
    if (used + size > kHelloRoom) {
      frame = BeginFrame(hello, &out);
      used = 0;
    }
    used += size;
    *frame->add_kernels() = std::move(wire);
  }
  frame->set_complete(true);
  return out;
}

absl::Status HelloAssembler::AddNatives(const worker::v1::Hello& frame) {
  if (hello_.test_natives.size() + frame.test_natives_size() > kMostNatives) {
    return absl::InvalidArgumentError(
        absl::StrCat("a hello of more than ", kMostNatives, " native functions"));
  }
  for (const std::string& name : frame.test_natives()) {
    hello_.test_natives.push_back(name.substr(0, kLongestText));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> HelloAssembler::Add(const worker::v1::Hello& frame) {
  if (complete_) return absl::InvalidArgumentError("a hello came after the hello had ended");
  if (frame.protocol() != kWorkerProtocol) {
    return absl::InvalidArgumentError(
        absl::StrCat("the worker speaks protocol ", frame.protocol(), "; want ", kWorkerProtocol));
  }
  if (frame.role() != worker::v1::TRUSTED && frame.role() != worker::v1::GUEST) {
    return absl::InvalidArgumentError(absl::StrCat("unknown worker role ", frame.role()));
  }
  hello_.protocol = frame.protocol();
  hello_.role = static_cast<WorkerRole>(frame.role());
  GC_ASSIGN_OR_RETURN(hello_.device, DecodeFacts(frame.device()));
  if (frame.calibration().size() > kLongestCalibration) {
    return absl::InvalidArgumentError("a hello brings a calibration that is too long");
  }
  hello_.calibration = frame.calibration();
  hello_.sandbox = frame.sandbox().substr(0, kLongestText);
  GC_RETURN_IF_ERROR(AddNatives(frame));
  if (hello_.kernels.size() + frame.kernels_size() > kMostKernels) {
    return absl::InvalidArgumentError(
        absl::StrCat("a hello of more than ", kMostKernels, " kernels"));
  }
  for (const v1::KernelSpec& spec : frame.kernels()) {
    auto decoded = Decode(spec);
    if (!decoded.ok()) {
      return Annotate(decoded.status(), absl::StrCat("kernel '", spec.name(), "' of a hello"));
    }
    hello_.kernels.push_back(*std::move(decoded));
  }
  complete_ = frame.complete();
  return complete_;
}

namespace {

void Encode(const MemoryRange& in, worker::v1::Range* out) {
  out->set_offset(in.offset);
  out->set_size(in.size);
}

void Encode(const JobInput& in, worker::v1::Operand* out) {
  Encode(in.value, out->mutable_spec());
  Encode(in.memory, out->mutable_memory());
  if (in.source == SourceKind::kGenerate) Encode(in.generator, out->mutable_generate());
}

void Encode(const Job& job, worker::v1::Program* out) {
  const Program& program = job.program->program;
  const std::vector<ProgramModule>& modules = job.program->modules;
  Encode(program.words, out->mutable_words());
  for (std::size_t i = 0; i < modules.size(); ++i) {
    worker::v1::Program::Module* module = out->add_modules();
    module->set_id(modules[i].id);
    module->set_kind(static_cast<v1::Module::Kind>(modules[i].kind));
    if (i < job.module_code.size()) Encode(job.module_code[i], module->mutable_code());
  }
  const auto index_of = [&](const std::string& id) {
    const auto has_id = [&](const ProgramModule& module) { return module.id == id; };
    return static_cast<std::uint32_t>(std::find_if(modules.begin(), modules.end(), has_id) -
                                      modules.begin());
  };
  for (const ProgramLaunch& in : program.launches) {
    worker::v1::Program::Launch* launch = out->add_launches();
    launch->set_module(index_of(in.module));
    launch->set_entry(in.entry);
    Encode(in.clauses, launch->mutable_clauses());
    launch->set_cooperative(in.cooperative);
  }
  for (const ProgramGlobal& in : program.globals) {
    worker::v1::Program::Global* global = out->add_globals();
    global->set_module(index_of(in.module));
    global->set_name(in.name);
    global->set_from(in.from);
  }
}

void Encode(const JobOutput& in, bool submitted, worker::v1::Operand* out) {
  Encode(in.value, out->mutable_spec());
  Encode(in.memory, out->mutable_memory());
  out->set_checksum(in.sink == SinkKind::kChecksum && !submitted);
  if (in.in_place_of) out->set_in_place_of(*in.in_place_of + 1);
}

}  // namespace

void Encode(const Job& job, std::uint64_t generation, worker::v1::Order* out) {
  out->Clear();
  out->set_id(job.id);
  out->set_generation(generation);
  if (job.deadline != absl::InfiniteFuture()) {
    out->set_deadline_ns(std::max<std::int64_t>(1, absl::ToUnixNanos(job.deadline)));
  }
  out->set_kernel(job.kernel);
  out->set_variant(job.variant);
  for (const JobInput& input : job.inputs) Encode(input, out->add_inputs());
  for (const JobOutput& output : job.outputs) {
    Encode(output, job.program != nullptr, out->add_outputs());
  }
  for (const AttributeValue& value : job.attributes) Encode(value, out->add_attributes());
  if (job.measure) Encode(*job.measure, out->mutable_measure());
  out->set_verify(job.verify && !job.check);
  if (job.check) {
    out->set_checked_launches(static_cast<std::uint32_t>(job.check->most_launches));
    out->set_bytes(job.check->bytes);
    out->set_flops(job.check->flops);
  }
  out->set_stream_samples(job.streamed);
  if (job.kernel_time_limit < absl::InfiniteDuration()) {
    out->set_kernel_time_limit_ns(absl::ToInt64Nanoseconds(job.kernel_time_limit));
  }
  if (job.program != nullptr) Encode(job, out->mutable_program());
}

namespace {

// The range lies inside the arena and is aligned.
absl::Status DecodeRange(const worker::v1::Range& in, std::uint64_t arena_bytes,
                         absl::string_view field, MemoryRange* out) {
  if (in.offset() > arena_bytes || in.size() > arena_bytes - in.offset()) {
    return WithField(
        absl::InvalidArgumentError(absl::StrCat(field, ": ", in.size(), " bytes at ", in.offset(),
                                                " lie outside the arena of ", arena_bytes)),
        field);
  }
  if (in.offset() % kTensorAlignment != 0) {
    return WithField(
        absl::InvalidArgumentError(absl::StrCat(field, ": offset ", in.offset(),
                                                " is not a multiple of ", kTensorAlignment)),
        field);
  }
  *out = {.offset = in.offset(), .size = in.size()};
  return absl::OkStatus();
}

// How far an operand's place is from being empty or large enough.
struct Places {
  std::uint64_t arena_bytes = 0;
  std::uint64_t margins = 0;  // Before and behind each operand, together.
};

absl::Status DecodePlace(const worker::v1::Range& in, const OperandValue& value,
                         const Places& places, absl::string_view field, MemoryRange* out) {
  GC_RETURN_IF_ERROR(DecodeRange(in, places.arena_bytes, field, out));
  const bool may_be_empty = places.margins == 0;
  if ((in.size() != 0 || !may_be_empty) && in.size() < OperandBytes(value) + places.margins) {
    return WithField(
        absl::InvalidArgumentError(absl::StrCat(field, ": the operand takes ", OperandBytes(value),
                                                " bytes, its memory ", in.size())),
        field);
  }
  return absl::OkStatus();
}

absl::Status DecodeOperand(const worker::v1::Operand& in, const Places& places, int inputs,
                           absl::string_view field, WorkerOperand* out) {
  GC_ASSIGN_OR_RETURN(out->value, Decode(in.spec(), field));
  GC_RETURN_IF_ERROR(DecodePlace(in.memory(), out->value, places, field, &out->memory));
  out->generate.reset();
  if (in.has_generate()) {
    GC_ASSIGN_OR_RETURN(out->generate, Decode(in.generate(), field));
    GC_RETURN_IF_ERROR(Validate(*out->generate, out->value.tensors[0].dtype));
  }
  out->checksum = in.checksum();
  out->in_place_of.reset();
  if (in.in_place_of() == 0) return absl::OkStatus();
  if (in.in_place_of() < 0 || in.in_place_of() > inputs) {
    return WithField(absl::InvalidArgumentError(
                         absl::StrCat(field, ": in_place_of wants 1 to ", inputs,
                                      " (an input, counted from 1) or 0, got ", in.in_place_of())),
                     field);
  }
  out->in_place_of = in.in_place_of() - 1;
  return absl::OkStatus();
}

absl::Status DecodeOperands(const worker::v1::Order& order, std::uint64_t arena_bytes,
                            WorkerOrder* out) {
  const int inputs = order.inputs_size();
  const Places places = {.arena_bytes = arena_bytes,
                         .margins = order.checked_launches() == 0 ? 0 : 2 * kCheckMargin};
  out->inputs.resize(inputs);
  for (int i = 0; i < inputs; ++i) {
    GC_RETURN_IF_ERROR(DecodeOperand(order.inputs(i), places, 0, "inputs", &out->inputs[i]));
  }
  out->outputs.resize(order.outputs_size());
  for (int i = 0; i < order.outputs_size(); ++i) {
    GC_RETURN_IF_ERROR(
        DecodeOperand(order.outputs(i), places, inputs, "outputs", &out->outputs[i]));
  }
  return absl::OkStatus();
}

absl::Status DecodeModules(const worker::v1::Program& in, std::uint64_t arena_bytes,
                           WorkerProgram* out) {
  for (const worker::v1::Program::Module& wire : in.modules()) {
    if (wire.id().empty() ||
        (wire.kind() != v1::Module::CUBIN && wire.kind() != v1::Module::TEST_NATIVE)) {
      return absl::InvalidArgumentError(
          absl::StrCat("program.modules: want an id and CUBIN or TEST_NATIVE, got '", wire.id(),
                       "' of kind ", wire.kind()));
    }
    WorkerModule& module = out->modules.emplace_back();
    module.id = wire.id();
    module.kind = static_cast<ModuleKind>(wire.kind());
    GC_RETURN_IF_ERROR(DecodeRange(wire.code(), arena_bytes, "program.modules.code", &module.code));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ModuleAt(const WorkerProgram& program, std::uint32_t index) {
  if (index < program.modules.size()) return program.modules[index].id;
  return absl::InvalidArgumentError(
      absl::StrCat("program: module ", index, " of ", program.modules.size(), " is named"));
}

absl::StatusOr<WorkerProgram> ReadProgram(const worker::v1::Program& in,
                                          std::uint64_t arena_bytes) {
  WorkerProgram out;
  GC_RETURN_IF_ERROR(DecodeModules(in, arena_bytes, &out));
  Program program;
  GC_ASSIGN_OR_RETURN(program.words, Decode(in.words()));
  for (const worker::v1::Program::Launch& wire : in.launches()) {
    ProgramLaunch& launch = program.launches.emplace_back();
    GC_ASSIGN_OR_RETURN(launch.module, ModuleAt(out, wire.module()));
    launch.entry = wire.entry();
    GC_ASSIGN_OR_RETURN(launch.clauses, Decode(wire.clauses(), "program.launches"));
    launch.cooperative = wire.cooperative();
  }
  for (const worker::v1::Program::Global& wire : in.globals()) {
    ProgramGlobal& global = program.globals.emplace_back();
    GC_ASSIGN_OR_RETURN(global.module, ModuleAt(out, wire.module()));
    global.name = wire.name();
    global.from = wire.from();
  }
  GC_ASSIGN_OR_RETURN(out.program, CompleteProgram(std::move(program)));
  return out;
}

// Words are text that takes longer to read than a small call to run.
absl::Status DecodeProgram(const worker::v1::Order& order, std::uint64_t arena_bytes,
                           WorkerOrder* out) {
  if (!order.has_program()) {
    out->program.reset();
    return absl::OkStatus();
  }
  std::string message = order.program().SerializeAsString();
  if (out->program && message == out->program_message) return absl::OkStatus();
  out->program.reset();
  GC_ASSIGN_OR_RETURN(out->program, ReadProgram(order.program(), arena_bytes));
  out->program_message = std::move(message);
  return absl::OkStatus();
}

}  // namespace

absl::Status Decode(const worker::v1::Order& order, std::uint64_t arena_bytes, WorkerOrder* out) {
  out->id = order.id();
  out->generation = order.generation();
  out->deadline =
      order.deadline_ns() == 0 ? absl::InfiniteFuture() : absl::FromUnixNanos(order.deadline_ns());
  out->kernel = order.kernel();
  out->variant = order.variant();
  GC_RETURN_IF_ERROR(DecodeOperands(order, arena_bytes, out));
  out->attributes.resize(order.attributes_size());
  for (int i = 0; i < order.attributes_size(); ++i) {
    GC_ASSIGN_OR_RETURN(out->attributes[i], Decode(order.attributes(i), "attributes"));
  }
  out->measure.reset();
  if (order.has_measure()) {
    GC_ASSIGN_OR_RETURN(out->measure, Decode(order.measure()));
  }
  out->verify = order.verify();
  out->checked_launches = order.checked_launches();
  out->bytes = order.bytes();
  out->flops = order.flops();
  out->stream_samples = order.stream_samples();
  out->kernel_time_limit = order.kernel_time_limit_ns() <= 0
                               ? absl::InfiniteDuration()
                               : absl::Nanoseconds(order.kernel_time_limit_ns());
  return DecodeProgram(order, arena_bytes, out);
}

void EncodeComparison(const Job& job, std::uint64_t generation, worker::v1::Comparison* out) {
  const JobCheck& check = *job.check;
  out->Clear();
  out->set_id(job.id);
  out->set_generation(generation);
  if (job.deadline != absl::InfiniteFuture()) {
    out->set_deadline_ns(std::max<std::int64_t>(1, absl::ToUnixNanos(job.deadline)));
  }
  out->set_time_limit_ns(absl::ToInt64Nanoseconds(job.kernel_time_limit));
  out->set_kernel(check.kernel);
  for (const AttributeValue& value : check.attributes) Encode(value, out->add_attributes());
  for (const JobInput& input : job.inputs) Encode(input, out->add_inputs());
  for (const JobOutput& output : job.outputs) {
    Encode(output.value, out->add_outputs()->mutable_spec());
    out->add_output_names(output.name);
  }
  for (const JobInput& expected : check.expected) Encode(expected.memory, out->add_expected());
  out->set_terms(check.terms);
  const std::size_t first = check.done->first, count = check.done->seed_changes.size() - first;
  const auto compared = [&](const MemoryRange& all) {
    return MemoryRange{.offset = all.offset + first * check.launch_bytes,
                       .size = count * check.launch_bytes};
  };
  Encode(compared(check.launches), out->mutable_launches());
  if (check.program != nullptr) Encode(compared(check.references), out->mutable_references());
  out->set_launch_bytes(check.launch_bytes);
  for (std::size_t i = first; i < first + count; ++i) {
    out->add_seed_changes(check.done->seed_changes[i]);
  }
}

namespace {

// What does not hold of the places that a comparison names.
absl::Status CheckPlaces(const WorkerComparison& comparison) {
  const std::size_t outputs = comparison.outputs.size();
  const bool sent = comparison.kernel.empty() && !comparison.references;
  const bool named =
      comparison.output_names.size() == outputs &&
      comparison.expected.size() == (sent ? outputs : 0) &&
      (!comparison.references ||
       (comparison.kernel.empty() && comparison.references->size == comparison.launches.size));
  const std::uint64_t bytes = OutputsBytes(comparison.outputs, outputs);
  const bool fits = comparison.launch_bytes == bytes && !comparison.seed_changes.empty() &&
                    comparison.launches.size / std::max<std::uint64_t>(bytes, 1) >=
                        (bytes == 0 ? 0 : comparison.seed_changes.size());
  if (named && fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("comparison ", comparison.id, ": want a name, expected values or a kernel, and ",
                   bytes, " bytes of each launch for ", outputs, " outputs"));
}

}  // namespace

absl::StatusOr<WorkerComparison> Decode(const worker::v1::Comparison& comparison,
                                        std::uint64_t arena_bytes) {
  WorkerComparison out;
  out.id = comparison.id();
  out.generation = comparison.generation();
  if (comparison.deadline_ns() != 0) out.deadline = absl::FromUnixNanos(comparison.deadline_ns());
  if (comparison.time_limit_ns() > 0) {
    out.time_limit = absl::Nanoseconds(comparison.time_limit_ns());
  }
  out.kernel = comparison.kernel();
  for (const v1::AttributeValue& value : comparison.attributes()) {
    GC_ASSIGN_OR_RETURN(out.attributes.emplace_back(), Decode(value, "attributes"));
  }
  const Places places = {.arena_bytes = arena_bytes, .margins = 0};
  for (const worker::v1::Operand& wire : comparison.inputs()) {
    GC_RETURN_IF_ERROR(DecodeOperand(wire, places, 0, "inputs", &out.inputs.emplace_back()));
    const WorkerOperand& input = out.inputs.back();
    if (input.memory.size >= OperandBytes(input.value)) continue;
    return absl::InvalidArgumentError("comparison: an input has no place in the arena");
  }
  for (const worker::v1::Operand& wire : comparison.outputs()) {
    GC_RETURN_IF_ERROR(DecodeOperand(wire, places, 0, "outputs", &out.outputs.emplace_back()));
  }
  out.output_names = {comparison.output_names().begin(), comparison.output_names().end()};
  for (int i = 0; i < std::min(comparison.expected_size(), comparison.outputs_size()); ++i) {
    GC_RETURN_IF_ERROR(DecodePlace(comparison.expected(i), out.outputs[i].value, places, "expected",
                                   &out.expected.emplace_back()));
  }
  out.terms = std::max<std::int64_t>(1, comparison.terms());
  GC_RETURN_IF_ERROR(DecodeRange(comparison.launches(), arena_bytes, "launches", &out.launches));
  if (comparison.has_references()) {
    GC_RETURN_IF_ERROR(
        DecodeRange(comparison.references(), arena_bytes, "references", &out.references.emplace()));
  }
  out.launch_bytes = comparison.launch_bytes();
  out.seed_changes = {comparison.seed_changes().begin(), comparison.seed_changes().end()};
  GC_RETURN_IF_ERROR(CheckPlaces(out));
  return out;
}

void Encode(const WorkerArrival& arrival, worker::v1::Arrival* out) {
  out->set_id(arrival.id);
  out->set_generation(arrival.generation);
  out->set_input(static_cast<std::uint32_t>(arrival.input));
  Encode(arrival.memory, out->mutable_memory());
  out->set_bytes(arrival.bytes);
}

absl::StatusOr<WorkerArrival> Decode(const worker::v1::Arrival& arrival,
                                     std::uint64_t arena_bytes) {
  WorkerArrival out = {.id = arrival.id(),
                       .generation = arrival.generation(),
                       .input = arrival.input(),
                       .bytes = arrival.bytes()};
  GC_RETURN_IF_ERROR(DecodeRange(arrival.memory(), arena_bytes, "arrival.memory", &out.memory));
  if (out.bytes == 0 || out.bytes > out.memory.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("arrival.bytes: want 1 to ", out.memory.size, ", got ", out.bytes));
  }
  return out;
}

}  // namespace gridclock
