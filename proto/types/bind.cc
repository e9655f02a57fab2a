// Bind: one walk over the words for one call. It runs for every request, so it allocates little and
// builds messages only when it fails.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "proto/types/attribute.h"
#include "proto/types/bind_errors.h"
#include "proto/types/binding.h"
#include "proto/types/lexer.h"
#include "proto/types/quote.h"
#include "proto/types/shape_binder.h"

namespace gridclock {
namespace {

absl::StatusOr<DType> ElemOf(const Place& place, const Binding& binding) {
  const std::string& elem = place.operand.elem;
  if (const DType* bound = FindBound(binding.dtypes, elem)) return *bound;
  if (const auto dtype = ParseDType(elem)) return *dtype;
  absl::StatusOr<Value> value = binding.Lookup(elem);
  if (value.ok() && std::holds_alternative<DType>(*value)) return std::get<DType>(*value);
  return WrongField(place.Field("dtype"),
                    absl::StrCat(place.Name(), ": the dtype '", elem, "' is not bound"));
}

absl::Status BuildShape(const Place& place, ShapeBinder& shapes, TensorSpec& tensor) {
  absl::Status status = shapes.BuildOutput(place, tensor.shape);
  if (status.ok()) status = CheckedBytes(tensor).status();
  if (status.ok() || !DetailsOf(status).field.empty()) return status;
  return WithField(Annotate(status, absl::StrCat(place.kind, " ", place.Name())),
                   place.Field("shape"));
}

class Binder {
 public:
  Binder(const KernelSpec& spec, const std::vector<NamedOperand>& inputs,
         const std::vector<NamedAttribute>& attributes)
      : spec_(spec), given_(inputs), given_attributes_(attributes) {
    result_.spec = &spec;
  }

  absl::StatusOr<Binding> Run() {
    GC_RETURN_IF_ERROR(BindAttributes());
    GC_RETURN_IF_ERROR(TakeInputs());
    GC_RETURN_IF_ERROR(BindDTypes());
    GC_RETURN_IF_ERROR(CheckDomains());
    GC_RETURN_IF_ERROR(shapes_.MatchInputs());
    GC_RETURN_IF_ERROR(shapes_.CheckLate());
    GC_RETURN_IF_ERROR(BuildOutputs());
    GC_RETURN_IF_ERROR(CheckConditions());
    GC_RETURN_IF_ERROR(CountCosts());
    return std::move(result_);
  }

 private:
  // --- Attributes ---

  absl::Status BindAttributes() {
    if (spec_.attributes.empty() && given_attributes_.empty()) return absl::OkStatus();
    result_.attributes.reserve(spec_.attributes.size());
    std::size_t used = 0;
    for (const AttributeSpec& attribute : spec_.attributes) {
      const AttributeValue* given = nullptr;
      for (const NamedAttribute& candidate : given_attributes_) {
        if (candidate.name != attribute.name) continue;
        if (given != nullptr) return AttributeError(attribute.name, "is given twice");
        given = &candidate.value;
        ++used;
      }
      if (given == nullptr && !attribute.default_value) {
        return AttributeError(attribute.name, absl::StrCat("is missing: want ", WantOf(attribute)));
      }
      result_.attributes.push_back(given != nullptr ? *given : *attribute.default_value);
      GC_RETURN_IF_ERROR(CheckAttribute(attribute, result_.attributes.back()));
    }
    return used == given_attributes_.size() ? absl::OkStatus() : UnknownAttribute();
  }

  static absl::Status AttributeError(absl::string_view name, absl::string_view what) {
    return WrongField(absl::StrCat("attributes.", name),
                      absl::StrCat("attribute '", name, "' ", what));
  }

  absl::Status UnknownAttribute() const {
    std::vector<absl::string_view> names;
    for (const AttributeSpec& attribute : spec_.attributes) names.push_back(attribute.name);
    for (const NamedAttribute& given : given_attributes_) {
      if (std::find(names.begin(), names.end(), given.name) != names.end()) continue;
      return WrongField(absl::StrCat("attributes.", Escape(given.name)),
                        absl::StrCat("expected attributes ", QuoteList(names), "; unexpected ",
                                     QuoteList({given.name})));
    }
    return absl::InternalError("an attribute was counted twice");
  }

  // --- Inputs: which, and of which dtype ---

  absl::Status TakeInputs() {
    result_.inputs.reserve(spec_.inputs.size());
    if (given_.size() != spec_.inputs.size()) return InputNamesError();
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      const NamedOperand* given = FindGiven(i);
      if (given == nullptr) return InputNamesError();
      GC_RETURN_IF_ERROR(CheckInput(spec_.inputs[i], given->value));
      result_.inputs.push_back(given->value);
    }
    return absl::OkStatus();
  }

  // Most callers keep the order of the words. As many were given as are wanted and the wanted are
  // distinct, so if each is found, none was given twice.
  const NamedOperand* FindGiven(std::size_t i) const {
    const std::string& name = spec_.inputs[i].name;
    if (given_[i].name == name) return &given_[i];
    for (const NamedOperand& candidate : given_) {
      if (candidate.name == name) return &candidate;
    }
    return nullptr;
  }

  absl::Status InputNamesError() const {
    std::vector<absl::string_view> wanted, missing, unexpected, twice, seen;
    for (const OperandSpec& operand : spec_.inputs) wanted.push_back(operand.name);
    const auto holds = [](const std::vector<absl::string_view>& names, absl::string_view name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    // Only so many names fit the message; a hostile request may have a million.
    for (std::size_t i = 0; i < given_.size() && unexpected.size() < 16; ++i) {
      const absl::string_view name = given_[i].name;
      if (!holds(wanted, name))
        unexpected.push_back(name);
      else if (!holds(seen, name))
        seen.push_back(name);
      else if (!holds(twice, name))
        twice.push_back(name);
    }
    for (const absl::string_view name : wanted) {
      if (!holds(seen, name)) missing.push_back(name);
    }
    std::string message = absl::StrCat("expected inputs ", QuoteList(wanted));
    if (!missing.empty()) absl::StrAppend(&message, "; missing ", QuoteList(missing));
    if (!unexpected.empty()) absl::StrAppend(&message, "; unexpected ", QuoteList(unexpected));
    if (!twice.empty()) absl::StrAppend(&message, "; given twice ", QuoteList(twice));
    return WrongField("inputs", message);
  }

  static absl::Status CheckInput(const OperandSpec& operand, const OperandValue& value) {
    const auto error = [&](absl::string_view what) {
      return WrongField(absl::StrCat("inputs.", operand.name),
                        absl::StrCat("'", operand.name, "': ", what));
    };
    if (value.is_list != operand.is_list) {
      return error(value.is_list ? "want one tensor, got a list" : "want a list, got one tensor");
    }
    if (value.tensors.empty()) return error("a list has at least one tensor, got none");
    if (!operand.is_list && value.tensors.size() != 1) return error("want one tensor, got more");
    for (std::size_t i = 0; i < value.tensors.size(); ++i) {
      const absl::Status sane = CheckedBytes(value.tensors[i]).status();
      if (sane.ok()) continue;
      const Place place{operand, i};
      return WithField(Annotate(sane, place.Name()), place.Field("shape"));
    }
    return absl::OkStatus();
  }

  absl::Status BindDTypes() {
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      const OperandSpec& operand = spec_.inputs[i];
      const std::vector<TensorSpec>& tensors = result_.inputs[i].tensors;
      if (IsVariable(operand.elem) && FindBound(result_.dtypes, operand.elem) == nullptr) {
        result_.dtypes.emplace_back(operand.elem, tensors[0].dtype);
      }
      GC_ASSIGN_OR_RETURN(const DType want, ElemOf({operand}, result_));
      for (std::size_t k = 0; k < tensors.size(); ++k) {
        if (tensors[k].dtype != want) return DTypeError({operand, k}, want, tensors[k].dtype);
      }
    }
    return absl::OkStatus();
  }

  static absl::Status DTypeError(const Place& place, DType want, DType got) {
    const bool variable = IsVariable(place.operand.elem);
    const std::string text = variable ? absl::StrCat(place.operand.elem, " is ", Name(want),
                                                     " elsewhere, ", Name(got), " here")
                                      : absl::StrCat("want ", Name(want), ", got ", Name(got));
    return WrongField(place.Field("dtype"), absl::StrCat(place.Name(), ": ", text));
  }

  absl::Status CheckDomains() const {
    for (const Condition& condition : spec_.conditions) {
      if (condition.expr) continue;
      const DType* got = FindBound(result_.dtypes, condition.variable);
      const std::vector<DType>& domain = condition.dtypes;
      if (got != nullptr && std::find(domain.begin(), domain.end(), *got) != domain.end()) continue;
      return DomainError(condition, got);
    }
    return absl::OkStatus();
  }

  absl::Status DomainError(const Condition& condition, const DType* got) const {
    std::string name;
    for (const OperandSpec& operand : spec_.inputs) {
      if (operand.elem == condition.variable && name.empty()) name = operand.name;
    }
    const std::string domain =
        absl::StrJoin(condition.dtypes, ", ",
                      [](std::string* out, DType dtype) { absl::StrAppend(out, Name(dtype)); });
    return WrongField(absl::StrCat("inputs.", name, ".dtype"),
                      absl::StrCat("'", name, "': want ", condition.variable, " in {", domain,
                                   "}, got ", got == nullptr ? "nothing" : Name(*got)));
  }

  // --- Outputs ---

  absl::Status BuildOutputs() {
    result_.outputs.reserve(spec_.inputs.size() + spec_.outputs.size());
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      if (spec_.inputs[i].inout) result_.outputs.push_back(result_.inputs[i]);
    }
    for (const OperandSpec& operand : spec_.outputs) {
      OperandValue value{.is_list = operand.is_list, .tensors = {}};
      const std::size_t count = operand.is_list ? shapes_.list_length() : 1;
      value.tensors.reserve(count);
      for (std::size_t k = 0; k < count; ++k) {
        GC_RETURN_IF_ERROR(BuildOutput({operand, k, "output"}, value));
      }
      GC_RETURN_IF_ERROR(CheckOver(operand, value));
      result_.outputs.push_back(std::move(value));
    }
    return absl::OkStatus();
  }

  absl::Status BuildOutput(const Place& place, OperandValue& value) {
    TensorSpec& tensor = value.tensors.emplace_back();
    GC_ASSIGN_OR_RETURN(tensor.dtype, ElemOf(place, result_));
    return BuildShape(place, shapes_, tensor);
  }

  // An output over an input may be asked to use its buffer, so it must be as large.
  absl::Status CheckOver(const OperandSpec& operand, const OperandValue& value) const {
    if (operand.over.empty()) return absl::OkStatus();
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      if (spec_.inputs[i].name != operand.over) continue;
      const std::vector<TensorSpec>& under = result_.inputs[i].tensors;
      for (std::size_t k = 0; k < value.tensors.size() && k < under.size(); ++k) {
        if (Bytes(value.tensors[k]) == Bytes(under[k])) continue;
        return WrongField(
            absl::StrCat("outputs.", operand.name, ".shape"),
            absl::StrCat("output '", operand.name, "' is ", ToText(value.tensors[k]),
                         " and cannot lie over '", operand.over, "', ", ToText(under[k])));
      }
    }
    return absl::OkStatus();
  }

  // --- The rest ---

  absl::Status CheckConditions() const {
    for (const Condition& condition : spec_.conditions) {
      if (!condition.expr) continue;
      GC_ASSIGN_OR_RETURN(const bool holds, EvaluateBool(*condition.expr, result_));
      if (holds) continue;
      return WrongField("inputs", absl::StrCat("want ", ToText(*condition.expr),
                                               "; it does not hold", ShapesText(result_)));
    }
    return absl::OkStatus();
  }

  absl::Status CountCosts() {
    if (spec_.clauses.flops) {
      GC_ASSIGN_OR_RETURN(result_.flops, CostOf(*spec_.clauses.flops, "flops"));
    }
    if (!spec_.clauses.bytes) return CountBytes();
    GC_ASSIGN_OR_RETURN(result_.bytes, CostOf(*spec_.clauses.bytes, "bytes"));
    return absl::OkStatus();
  }

  absl::StatusOr<std::int64_t> CostOf(const Expr& expr, absl::string_view what) const {
    absl::StatusOr<std::int64_t> cost = EvaluateInt(expr, result_);
    if (!cost.ok()) return WithField(Annotate(cost.status(), what), "inputs");
    if (*cost >= 0) return cost;
    return WrongField("inputs",
                      absl::StrCat(what, ": '", ToText(expr), "' is ", *cost, "; want 0 or more"));
  }

  absl::Status CountBytes() {
    for (const auto* side : {&result_.inputs, &result_.outputs}) {
      for (const OperandValue& value : *side) {
        for (const TensorSpec& tensor : value.tensors) {
          if (!__builtin_add_overflow(result_.bytes, Bytes(tensor), &result_.bytes)) continue;
          return WrongField("inputs", "the bytes of all tensors together overflow 64 bits");
        }
      }
    }
    return absl::OkStatus();
  }

  const KernelSpec& spec_;
  const std::vector<NamedOperand>& given_;
  const std::vector<NamedAttribute>& given_attributes_;
  Binding result_;
  ShapeBinder shapes_{result_};
};

}  // namespace

absl::StatusOr<Binding> Bind(const KernelSpec& spec, const std::vector<NamedOperand>& inputs,
                             const std::vector<NamedAttribute>& attributes) {
  return Binder(spec, inputs, attributes).Run();
}

absl::StatusOr<std::vector<OperandValue>> BindScratch(const Clauses& clauses,
                                                      const Binding& binding) {
  std::vector<OperandValue> scratch;
  Binding copy = binding;
  ShapeBinder shapes(copy);
  for (const OperandSpec& operand : clauses.scratch) {
    const Place place{operand, 0, "scratch"};
    TensorSpec tensor;
    GC_ASSIGN_OR_RETURN(tensor.dtype, ElemOf(place, copy));
    GC_RETURN_IF_ERROR(BuildShape(place, shapes, tensor));
    scratch.push_back({.is_list = false, .tensors = {std::move(tensor)}});
  }
  return scratch;
}

}  // namespace gridclock
