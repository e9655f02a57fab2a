#include "proto/types/binding.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/types/bind_errors.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

template <typename T>
const T& FindOrDie(const T* found, absl::string_view name) {
  if (found != nullptr) return *found;
  std::fprintf(stderr, "the words of this kernel bind no '%s'\n", std::string(name).c_str());
  std::abort();
}

const AttributeValue* FindAttribute(const Binding& binding, absl::string_view name) {
  for (std::size_t i = 0; i < binding.attributes.size(); ++i) {
    if (binding.spec->attributes[i].name == name) return &binding.attributes[i];
  }
  return nullptr;
}

template <typename T>
const T& AttributeOrDie(const Binding& binding, absl::string_view name) {
  return FindOrDie(std::get_if<T>(&FindOrDie(FindAttribute(binding, name), name)), name);
}

bool IsWordOf(const KernelSpec& spec, absl::string_view name) {
  return std::any_of(spec.attributes.begin(), spec.attributes.end(), [&](const auto& attribute) {
    return std::find(attribute.words.begin(), attribute.words.end(), name) != attribute.words.end();
  });
}

// Outputs are found under their own names, so `inout` ones are skipped: the input says the same.
const OperandValue* FindOperand(const Binding& binding, absl::string_view name) {
  std::size_t inouts = 0;
  for (std::size_t i = 0; i < binding.spec->inputs.size(); ++i) {
    if (binding.spec->inputs[i].inout) ++inouts;
    if (binding.spec->inputs[i].name == name) return &binding.inputs[i];
  }
  for (std::size_t i = 0; i < binding.spec->outputs.size(); ++i) {
    if (binding.spec->outputs[i].name != name) continue;
    return inouts + i < binding.outputs.size() ? &binding.outputs[inouts + i] : nullptr;
  }
  return nullptr;
}

absl::StatusOr<std::int64_t> SumOver(const OperandValue& value, bool bytes) {
  std::int64_t sum = 0;
  for (const TensorSpec& tensor : value.tensors) {
    // Each was checked, but together they may still be too many.
    const std::int64_t part = bytes ? Bytes(tensor) : Elements(tensor.shape);
    if (__builtin_add_overflow(sum, part, &sum)) {
      return absl::InvalidArgumentError("overflow of 64 bits");
    }
  }
  return sum;
}

absl::StatusOr<std::int64_t> DimOf(const Shape& shape, absl::string_view name, std::int64_t index) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t at = index < 0 ? index + rank : index;
  if (at >= 0 && at < rank) return shape[at];
  return absl::InvalidArgumentError(
      absl::StrCat("dim(", name, ", ", index, "): '", name, "' has rank ", rank));
}

absl::StatusOr<std::int64_t> MeasureOperand(absl::string_view function, absl::string_view name,
                                            std::int64_t index, const OperandValue& value) {
  if (function == "numel" || function == "bytes") return SumOver(value, function == "bytes");
  if (function == "count") return static_cast<std::int64_t>(value.tensors.size());
  if (!value.is_list) return MeasureShape(function, name, index, value.tensors[0].shape);
  return absl::InvalidArgumentError(
      absl::StrCat(function, " wants one tensor, '", name, "' is a list"));
}

// What a `when` sees: the binding, and the device.
class DeviceScope final : public Scope {
 public:
  DeviceScope(const Binding& binding, const DeviceTraits& device)
      : binding_(binding), device_(device) {}

  absl::StatusOr<Value> Lookup(absl::string_view name) const override {
    if (name == "sm") return Value(device_.sm);
    return binding_.Lookup(name);
  }
  absl::StatusOr<std::int64_t> Measure(absl::string_view function, absl::string_view name,
                                       std::int64_t index) const override {
    return binding_.Measure(function, name, index);
  }
  absl::Status Spend(std::int64_t steps) const override { return binding_.Spend(steps); }

 private:
  const Binding& binding_;
  const DeviceTraits& device_;
};

absl::StatusOr<bool> Holds(const VariantSpec& variant, const Binding& binding,
                           const DeviceTraits& device) {
  absl::StatusOr<bool> holds = HoldsWhen(variant.clauses, binding, device);
  if (holds.ok()) return holds;
  return Annotate(holds.status(), absl::StrCat("variant '", variant.name, "'"));
}

absl::StatusOr<const VariantSpec*> NamedVariant(const KernelSpec& spec, const Binding& binding,
                                                const DeviceTraits& device,
                                                absl::string_view wanted) {
  std::vector<absl::string_view> names;
  for (const VariantSpec& variant : spec.variants) {
    if (variant.device_kind != device.kind) continue;
    names.push_back(variant.name);
    if (variant.name != wanted) continue;
    GC_ASSIGN_OR_RETURN(const bool holds, Holds(variant, binding, device));
    if (holds) return &variant;
    return WithField(absl::InvalidArgumentError(absl::StrCat("variant '", variant.name, "' of '",
                                                             spec.name, "' takes only calls where ",
                                                             ToText(*variant.clauses.when))),
                     "variant");
  }
  return UnknownName("variant",
                     absl::StrCat("kernel '", spec.name, "' has no variant ", Quote(wanted), " on ",
                                  device.kind, "; it has ", QuoteList(names)));
}

}  // namespace

absl::StatusOr<std::int64_t> MeasureShape(absl::string_view function, absl::string_view name,
                                          std::int64_t index, const Shape& shape) {
  if (function == "rank") return static_cast<std::int64_t>(shape.size());
  if (function == "dim") return DimOf(shape, name, index);
  if (function == "numel") return CheckedElements(shape);
  return absl::InvalidArgumentError(
      absl::StrCat(function, " wants an operand, got the run ", name));
}

std::int64_t Binding::Dim(absl::string_view name) const {
  return FindOrDie(FindBound(dims, name), name);
}
const Shape& Binding::Run(absl::string_view name) const {
  return FindOrDie(FindBound(runs, name), name);
}
DType Binding::Type(absl::string_view variable) const {
  return FindOrDie(FindBound(dtypes, variable), variable);
}
std::int64_t Binding::I64(absl::string_view attribute) const {
  return AttributeOrDie<std::int64_t>(*this, attribute);
}
double Binding::F64(absl::string_view attribute) const {
  return AttributeOrDie<double>(*this, attribute);
}
bool Binding::Bool(absl::string_view attribute) const {
  return AttributeOrDie<bool>(*this, attribute);
}
DType Binding::DTypeOf(absl::string_view attribute) const {
  return AttributeOrDie<DType>(*this, attribute);
}
const std::string& Binding::Word(absl::string_view attribute) const {
  return AttributeOrDie<std::string>(*this, attribute);
}

absl::Status Binding::Spend(std::int64_t steps) const {
  if (steps <= steps_left) {
    steps_left -= steps;
    return absl::OkStatus();
  }
  steps_left = 0;
  return absl::InvalidArgumentError(
      absl::StrCat("the words take more than ", kMostSteps,
                   " steps with these operands: want shorter expressions or shorter lists"));
}

absl::StatusOr<Value> Binding::Lookup(absl::string_view name) const {
  GC_RETURN_IF_ERROR(Spend(std::ssize(dims) + std::ssize(attributes) + std::ssize(dtypes)));
  if (const auto* dim = FindBound(dims, name)) return Value(*dim);
  if (const auto* attribute = FindAttribute(*this, name)) return *attribute;
  if (const auto* dtype = FindBound(dtypes, name)) return Value(*dtype);
  if (IsWordOf(*spec, name)) return Value(std::string(name));
  return absl::InvalidArgumentError(absl::StrCat("unbound name '", name, "'"));
}

absl::StatusOr<std::int64_t> Binding::Measure(absl::string_view function, absl::string_view name,
                                              std::int64_t index) const {
  GC_RETURN_IF_ERROR(Spend(std::ssize(runs) + std::ssize(inputs) + std::ssize(outputs)));
  if (const Shape* run = FindBound(runs, name)) return MeasureShape(function, name, index, *run);
  const OperandValue* value = FindOperand(*this, name);
  if (value != nullptr) GC_RETURN_IF_ERROR(Spend(std::ssize(value->tensors)));
  if (value != nullptr && !value->tensors.empty()) {
    return MeasureOperand(function, name, index, *value);
  }
  return absl::InvalidArgumentError(absl::StrCat("unbound name '", name, "'"));
}

absl::StatusOr<bool> HoldsWhen(const Clauses& clauses, const Binding& binding,
                               const DeviceTraits& device) {
  if (!clauses.when) return true;
  return EvaluateBool(*clauses.when, DeviceScope(binding, device));
}

absl::StatusOr<const VariantSpec*> ChooseVariant(const KernelSpec& spec, const Binding& binding,
                                                 const DeviceTraits& device,
                                                 absl::string_view wanted) {
  if (!wanted.empty()) return NamedVariant(spec, binding, device, wanted);
  bool any = false;
  for (auto variant = spec.variants.rbegin(); variant != spec.variants.rend(); ++variant) {
    if (variant->device_kind != device.kind) continue;
    any = true;
    GC_ASSIGN_OR_RETURN(const bool holds, Holds(*variant, binding, device));
    if (holds) return &*variant;
  }
  if (any) {
    return absl::InvalidArgumentError(absl::StrCat("kernel '", spec.name, "' has no variant on ",
                                                   device.kind, " that takes this call"));
  }
  return UnknownName("kernel",
                     absl::StrCat("kernel '", spec.name, "' has no variant on ", device.kind));
}

}  // namespace gridclock
