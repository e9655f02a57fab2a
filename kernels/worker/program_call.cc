#include "kernels/worker/program_call.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/worker/global_value.h"
#include "proto/types/quote.h"
#include "proto/types/tensor.h"

namespace gridclock {
namespace {

using Kind = ParamSpec::Kind;
using Side = BoundParam::Side;

// The array of pointers in a kernel may be longer than the list: what follows the list is zero, up
// to all that a kernel can take.
constexpr std::size_t kMostParameterBytes = 32 * 1024;
constexpr std::size_t kParameterAlignment = 16;

bool HasTable(const BoundParam& param) {
  return param.kind == Kind::kTable || param.kind == Kind::kSizes;
}

const OperandValue& ValueOf(const BoundParam& param, const Binding& binding,
                            const std::vector<OperandValue>& scratch) {
  if (param.side == Side::kInput) return binding.inputs[param.index];
  return param.side == Side::kOutput ? binding.outputs[param.index] : scratch[param.index];
}

const OperandView& ViewOf(const BoundParam& param, const Call& call) {
  if (param.side == Side::kInput) return call.inputs[param.index];
  return param.side == Side::kOutput ? call.outputs[param.index] : call.scratch[param.index];
}

absl::Status NoVariable(const ProgramGlobal& global, const absl::Status& why) {
  return UnknownName("program.globals",
                     absl::StrCat("module ", Quote(global.module), " has no variable ",
                                  Quote(global.name), ": ", why.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProgramCall>> ProgramCall::Make(const WorkerProgram& program,
                                                               const Binding& binding,
                                                               Device& device,
                                                               ModuleStore& modules) {
  GC_ASSIGN_OR_RETURN(BoundProgram bound,
                      BindProgram(program.program, binding, device.info().traits));
  auto call = std::make_unique<ProgramCall>();
  call->scratch_ = std::move(bound.scratch);
  for (std::size_t i = 0; i < bound.launches.size(); ++i) {
    const ProgramLaunch& launch = program.program.launches[i];
    const absl::Status added =
        call->Add(launch, bound.launches[i], modules.Find(program, launch.module));
    if (!added.ok()) return Annotate(added, absl::StrCat("launches[", i, "]"));
  }
  for (const ProgramGlobal& global : program.program.globals) {
    GC_RETURN_IF_ERROR(call->AddGlobal(global, binding, modules.Find(program, global.module)));
  }
  GC_RETURN_IF_ERROR(call->AddTables(binding, device));
  return call;
}

absl::Status ProgramCall::Add(const ProgramLaunch& launch, const BoundLaunch& bound,
                              DeviceModule& module) {
  if (bound.is_empty()) return absl::OkStatus();
  OneLaunch out;
  GC_ASSIGN_OR_RETURN(out.entry, module.Prepare(launch.entry, bound));
  std::size_t end = 0;
  for (const BoundParam& param : bound.params) {
    out.params.push_back({.bound = param, .offset = end, .contents = {}, .table = nullptr});
    const std::size_t size = param.kind == Kind::kPointers ? kMostParameterBytes : param.size;
    end += (size + kParameterAlignment - 1) / kParameterAlignment * kParameterAlignment;
  }
  out.bytes.resize(end);
  for (const Parameter& param : out.params) {
    out.pointers.push_back(out.bytes.data() + param.offset);
    if (param.bound.kind != Kind::kValue) continue;
    std::memcpy(out.pointers.back(), param.bound.value.data(), param.bound.size);
  }
  launches_.push_back(std::move(out));
  return absl::OkStatus();
}

absl::Status ProgramCall::AddTables(const Binding& binding, Device& device) {
  for (OneLaunch& launch : launches_) {
    for (Parameter& param : launch.params) {
      if (!HasTable(param.bound)) continue;
      const OperandValue& value = ValueOf(param.bound, binding, scratch_);
      for (const TensorSpec& tensor : value.tensors) {
        param.contents.push_back(static_cast<std::uint64_t>(Elements(tensor.shape)));
      }
      GC_ASSIGN_OR_RETURN(param.table,
                          device.Allocate(param.contents.size() * sizeof(std::uint64_t)));
    }
  }
  return absl::OkStatus();
}

absl::Status ProgramCall::AddGlobal(const ProgramGlobal& global, const Binding& binding,
                                    DeviceModule& module) {
  Global out;
  auto place = module.FindGlobal(global.name);
  if (absl::IsNotFound(place.status())) return NoVariable(global, place.status());
  GC_ASSIGN_OR_RETURN(out.place, std::move(place));
  const std::vector<OperandSpec>& inputs = binding.spec->inputs;
  const auto named = [&](const OperandSpec& input) { return input.name == global.from; };
  out.input = std::find_if(inputs.begin(), inputs.end(), named) - inputs.begin();
  if (out.input == inputs.size()) {
    GC_ASSIGN_OR_RETURN(const AttributeValue value, binding.Lookup(global.from));
    GC_ASSIGN_OR_RETURN(out.value, GlobalValue(global, value, out.place.size));
  } else {
    GC_RETURN_IF_ERROR(CheckGlobalInput(global, binding.inputs[out.input], out.place.size));
  }
  globals_.push_back(std::move(out));
  return absl::OkStatus();
}

std::uint64_t ProgramCall::table_bytes() const {
  std::uint64_t bytes = 0;
  for (const OneLaunch& launch : launches_) {
    for (const Parameter& param : launch.params) {
      if (param.table != nullptr) bytes += param.table->size();
    }
  }
  return bytes;
}

absl::Status ProgramCall::Point(Parameter& param, const OperandView& view, std::byte* bytes,
                                Device& device) {
  if (param.bound.kind == Kind::kOperand || param.bound.kind == Kind::kPointers) {
    std::memcpy(bytes, view.data.data(), view.data.size() * sizeof(void*));
    return absl::OkStatus();
  }
  if (param.bound.kind == Kind::kTable) {
    std::memcpy(param.contents.data(), view.data.data(), view.data.size() * sizeof(void*));
  }
  void* const table = param.table->data();
  std::memcpy(bytes, &table, sizeof(table));
  return device.CopyIn(table, std::as_bytes(std::span(param.contents)));
}

absl::Status ProgramCall::Point(const Call& call, Device& device) {
  for (OneLaunch& launch : launches_) {
    for (Parameter& param : launch.params) {
      if (param.bound.kind == Kind::kValue || param.bound.kind == Kind::kNull) continue;
      GC_RETURN_IF_ERROR(
          Point(param, ViewOf(param.bound, call), launch.bytes.data() + param.offset, device));
    }
  }
  return absl::OkStatus();
}

absl::Status ProgramCall::SetGlobals(const Call& call, Device& device) {
  for (const Global& global : globals_) {
    GC_RETURN_IF_ERROR(
        global.value.empty()
            ? device.Copy(global.place.data, call.inputs[global.input].data[0], global.place.size)
            : device.CopyIn(global.place.data, global.value));
  }
  return absl::OkStatus();
}

absl::Status ProgramCall::Launch() {
  for (OneLaunch& launch : launches_) {
    GC_RETURN_IF_ERROR(launch.entry->Launch(launch.pointers));
  }
  return absl::OkStatus();
}

}  // namespace gridclock
