#include "kernels/worker/call_cache.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

constexpr std::size_t kKept = 16;

// 0.0 == -0.0, but a kernel may tell one from the other.
bool IsSameAttribute(const AttributeValue& a, const AttributeValue& b) {
  const double* x = std::get_if<double>(&a);
  const double* y = std::get_if<double>(&b);
  if (x == nullptr || y == nullptr) return a == b;
  return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(*y);
}

bool IsSame(const BoundCall& call, const WorkerOrder& order) {
  if (call.kernel_name != order.kernel || call.variant_name != order.variant ||
      call.given_inputs.size() != order.inputs.size() ||
      !std::equal(call.given_attributes.begin(), call.given_attributes.end(),
                  order.attributes.begin(), order.attributes.end(), IsSameAttribute) ||
      call.given_program.has_value() != order.program.has_value()) {
    return false;
  }
  if (order.program && *call.given_program != order.program->program) return false;
  return std::equal(call.given_inputs.begin(), call.given_inputs.end(), order.inputs.begin(),
                    [](const OperandValue& value, const WorkerOperand& operand) {
                      return value == operand.value;
                    });
}

absl::StatusOr<Binding> BindOrder(const KernelSpec& spec, const WorkerOrder& order) {
  if (order.inputs.size() != spec.inputs.size() ||
      order.attributes.size() != spec.attributes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel '", spec.name, "' takes ", spec.inputs.size(), " inputs and ",
                     spec.attributes.size(), " attributes; the order has ", order.inputs.size(),
                     " and ", order.attributes.size()));
  }
  std::vector<NamedOperand> inputs;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    inputs.push_back({spec.inputs[i].name, order.inputs[i].value});
  }
  std::vector<NamedAttribute> attributes;
  for (std::size_t i = 0; i < spec.attributes.size(); ++i) {
    attributes.push_back({spec.attributes[i].name, order.attributes[i]});
  }
  return Bind(spec, inputs, attributes);
}

absl::Status CheckOutputs(const Binding& binding, const WorkerOrder& order) {
  bool same = order.outputs.size() == binding.outputs.size();
  for (std::size_t i = 0; same && i < order.outputs.size(); ++i) {
    same = order.outputs[i].value == binding.outputs[i];
  }
  if (same) return absl::OkStatus();
  return absl::InvalidArgumentError("the order's outputs are not those that the words give");
}

// The call must lie where it will stay: views point into its binding.
void MakeViews(const std::vector<OperandValue>& values, std::vector<OperandView>* views) {
  for (const OperandValue& value : values) {
    views->push_back({&value, std::vector<void*>(value.tensors.size())});
  }
}

}  // namespace

const BoundCall* CallCache::Peek(const WorkerOrder& order) const {
  for (const auto& call : calls_) {
    if (IsSame(*call, order)) return call.get();
  }
  return nullptr;
}

absl::StatusOr<BoundCall*> CallCache::Find(const WorkerOrder& order) {
  for (const auto& call : calls_) {
    if (!IsSame(*call, order)) continue;
    GC_RETURN_IF_ERROR(CheckOutputs(call->binding, order));
    return call.get();
  }
  GC_ASSIGN_OR_RETURN(std::unique_ptr<BoundCall> call, Bind(order));
  if (calls_.size() < kKept) return calls_.emplace_back(std::move(call)).get();
  next_ = (next_ + 1) % kKept;
  calls_[next_] = std::move(call);
  return calls_[next_].get();
}

absl::Status CallCache::BindKernel(const WorkerOrder& order, BoundCall* call) const {
  call->kernel = registry_.Find(order.kernel);
  if (call->kernel == nullptr) {
    return absl::NotFoundError(absl::StrCat("this worker has no kernel '", order.kernel, "'"));
  }
  const KernelSpec& spec = call->kernel->spec;
  const DeviceTraits& traits = device_.info().traits;
  GC_ASSIGN_OR_RETURN(call->binding, BindOrder(spec, order));
  GC_RETURN_IF_ERROR(CheckOutputs(call->binding, order));
  GC_ASSIGN_OR_RETURN(const VariantSpec* variant,
                      ChooseVariant(spec, call->binding, traits, order.variant));
  call->variant = Registry::FindVariant(*call->kernel, traits.kind, variant->name);
  if (call->variant == nullptr) {
    return absl::InternalError(
        absl::StrCat("variant '", variant->name, "' of '", spec.name, "' has no code"));
  }
  if (call->kernel->def.validate != nullptr) {
    GC_RETURN_IF_ERROR(call->kernel->def.validate(call->binding));
  }
  GC_ASSIGN_OR_RETURN(call->scratch_values, BindScratch(variant->clauses, call->binding));
  call->launch_name = absl::StrCat(spec.name, "/", variant->name);
  return absl::OkStatus();
}

absl::Status CallCache::BindProgram(const WorkerOrder& order, BoundCall* call) const {
  if (modules_ == nullptr) {
    return absl::FailedPreconditionError("a trusted worker runs no submitted code");
  }
  GC_RETURN_IF_ERROR(modules_->Load(*order.program));
  const KernelSpec& words = call->given_program.emplace(order.program->program).words;
  GC_ASSIGN_OR_RETURN(call->binding, BindOrder(words, order));
  GC_RETURN_IF_ERROR(CheckOutputs(call->binding, order));
  GC_ASSIGN_OR_RETURN(call->program,
                      ProgramCall::Make(*order.program, call->binding, device_, *modules_));
  call->scratch_values = call->program->scratch();
  call->launch_name = words.name;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BoundCall>> CallCache::Bind(const WorkerOrder& order) const {
  auto call = std::make_unique<BoundCall>();
  GC_RETURN_IF_ERROR(order.program ? BindProgram(order, call.get())
                                   : BindKernel(order, call.get()));
  call->kernel_name = order.kernel;
  call->variant_name = order.variant;
  for (const WorkerOperand& input : order.inputs) call->given_inputs.push_back(input.value);
  call->given_attributes = order.attributes;
  MakeViews(call->binding.inputs, &call->inputs);
  MakeViews(call->binding.outputs, &call->outputs);
  MakeViews(call->scratch_values, &call->scratch);
  return call;
}

}  // namespace gridclock
