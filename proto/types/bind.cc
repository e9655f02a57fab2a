// Bind: one walk over the words for one call. It runs for every request, so it allocates little and
// builds messages only when it fails.
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "proto/types/attribute.h"
#include "proto/types/binding.h"
#include "proto/types/lexer.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

using Dims = std::vector<std::pair<std::string, std::int64_t>>;
using Runs = std::vector<std::pair<std::string, Shape>>;
using FlatDims = absl::InlinedVector<const Dim*, 8>;
using Sizes = std::span<const std::int64_t>;

template <typename T>
const T* Find(const std::vector<std::pair<std::string, T>>& entries, absl::string_view name) {
  for (const auto& [key, value] : entries) {
    if (key == name) return &value;
  }
  return nullptr;
}

absl::Status Wrong(absl::string_view field, absl::string_view message) {
  return WithField(absl::InvalidArgumentError(message), field);
}

// The names of one element of the lists: its own, then those of the call.
class ElementScope final : public Scope {
 public:
  explicit ElementScope(const Binding& binding) : binding_(binding) {}
  Dims dims;
  Runs runs;

  absl::StatusOr<Value> Lookup(absl::string_view name) const override {
    if (const std::int64_t* dim = Find(dims, name)) return Value(*dim);
    return binding_.Lookup(name);
  }
  absl::StatusOr<std::int64_t> Measure(absl::string_view function, absl::string_view name,
                                       std::int64_t index) const override {
    if (const Shape* run = Find(runs, name)) {
      if (function == "numel") return CheckedElements(*run);
      if (function == "rank") return static_cast<std::int64_t>(run->size());
    }
    return binding_.Measure(function, name, index);
  }

 private:
  const Binding& binding_;
};

// Where the names of an operand are kept: in the binding, or in one element of the lists.
struct Names {
  Dims& dims;
  Runs& runs;
  const Scope& scope;
};

// One tensor of an operand, as messages name it.
struct Place {
  const OperandSpec& operand;
  std::size_t element = 0;
  bool is_output = false;

  std::string Name() const {
    return operand.is_list ? absl::StrCat("'", operand.name, "[", element, "]'")
                           : absl::StrCat("'", operand.name, "'");
  }
  std::string Field(absl::string_view part) const {
    return absl::StrCat(is_output ? "outputs." : "inputs.", operand.name,
                        operand.is_list ? absl::StrCat("[", element, "]") : "", ".", part);
  }
};

// An expression among the dimensions of an input, to be checked when all names are bound.
struct LateCheck {
  const OperandSpec* operand = nullptr;
  std::size_t element = 0;
  const Expr* expr = nullptr;
  std::int64_t got = 0;
};

std::string DimsText(const FlatDims& dims) {
  OperandSpec bare;
  for (const Dim* dim : dims) bare.dims.push_back(*dim);
  return ToText(bare).substr(2);  // ": [M, K]"
}

absl::Status Flatten(const std::vector<Dim>& dims, const Scope& scope, FlatDims& flat) {
  for (const Dim& dim : dims) {
    if (dim.kind != Dim::Kind::kChoose) {
      flat.push_back(&dim);
      continue;
    }
    GC_ASSIGN_OR_RETURN(const bool yes, EvaluateBool(dim.expr, scope));
    GC_RETURN_IF_ERROR(Flatten(yes ? dim.yes : dim.no, scope, flat));
  }
  return absl::OkStatus();
}

bool BindsDimension(const Dim& dim) {
  return dim.kind == Dim::Kind::kAt ||
         (dim.kind == Dim::Kind::kExpr && dim.expr.op == Expr::Op::kName &&
          IsVariable(dim.expr.name));
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
    GC_RETURN_IF_ERROR(MatchInputs());
    GC_RETURN_IF_ERROR(CheckLate());
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
    return Wrong(absl::StrCat("attributes.", name), absl::StrCat("attribute '", name, "' ", what));
  }

  absl::Status UnknownAttribute() const {
    std::vector<absl::string_view> names;
    for (const AttributeSpec& attribute : spec_.attributes) names.push_back(attribute.name);
    for (const NamedAttribute& given : given_attributes_) {
      if (std::find(names.begin(), names.end(), given.name) != names.end()) continue;
      return Wrong(absl::StrCat("attributes.", Escape(given.name)),
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
    return Wrong("inputs", message);
  }

  static absl::Status CheckInput(const OperandSpec& operand, const OperandValue& value) {
    const auto error = [&](absl::string_view what) {
      return Wrong(absl::StrCat("inputs.", operand.name),
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
      if (IsVariable(operand.elem) && Find(result_.dtypes, operand.elem) == nullptr) {
        result_.dtypes.emplace_back(operand.elem, tensors[0].dtype);
      }
      GC_ASSIGN_OR_RETURN(const DType want, ElemOf({operand}));
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
    return Wrong(place.Field("dtype"), absl::StrCat(place.Name(), ": ", text));
  }

  absl::StatusOr<DType> ElemOf(const Place& place) const {
    const std::string& elem = place.operand.elem;
    if (const DType* bound = Find(result_.dtypes, elem)) return *bound;
    if (const auto dtype = ParseDType(elem)) return *dtype;
    absl::StatusOr<Value> value = result_.Lookup(elem);
    if (value.ok() && std::holds_alternative<DType>(*value)) return std::get<DType>(*value);
    return Wrong(place.Field("dtype"),
                 absl::StrCat(place.Name(), ": the dtype '", elem, "' is not bound"));
  }

  absl::Status CheckDomains() const {
    for (const Condition& condition : spec_.conditions) {
      if (condition.expr) continue;
      const DType* got = Find(result_.dtypes, condition.variable);
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
    return Wrong(absl::StrCat("inputs.", name, ".dtype"),
                 absl::StrCat("'", name, "': want ", condition.variable, " in {", domain, "}, got ",
                              got == nullptr ? "nothing" : Name(*got)));
  }

  // --- Inputs: their dimensions ---

  absl::Status MatchInputs() {
    const Names names{result_.dims, result_.runs, result_};
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      const OperandSpec& operand = spec_.inputs[i];
      const OperandValue& value = result_.inputs[i];
      if (!operand.is_list) {
        GC_RETURN_IF_ERROR(Match({operand}, value.tensors[0].shape, names));
        continue;
      }
      GC_RETURN_IF_ERROR(OpenElements(operand, value.tensors.size()));
      for (std::size_t k = 0; k < value.tensors.size(); ++k) {
        ElementScope& element = elements_[k];
        GC_RETURN_IF_ERROR(
            Match({operand, k}, value.tensors[k].shape, {element.dims, element.runs, element}));
      }
    }
    return absl::OkStatus();
  }

  absl::Status OpenElements(const OperandSpec& operand, std::size_t length) {
    if (elements_.empty()) {
      elements_.reserve(length);
      for (std::size_t i = 0; i < length; ++i) elements_.emplace_back(result_);
    }
    if (elements_.size() == length) return absl::OkStatus();
    return Wrong(absl::StrCat("inputs.", operand.name),
                 absl::StrCat("'", operand.name, "': lists have ", elements_.size(),
                              " tensors elsewhere, ", length, " here"));
  }

  absl::Status Match(const Place& place, const Shape& shape, const Names& names) {
    FlatDims flat;
    if (absl::Status status = Flatten(place.operand.dims, names.scope, flat); !status.ok()) {
      return WithField(Annotate(status, place.Name()), place.Field("shape"));
    }
    const auto is_at = [](const Dim* dim) { return dim->kind == Dim::Kind::kAt; };
    const auto at = std::find_if(flat.begin(), flat.end(), is_at);
    const std::span<const Dim* const> all(flat.data(), flat.size());
    const Sizes sizes(shape.data(), shape.size());
    if (at == flat.end()) return MatchPart(place, flat, all, sizes, shape, names);
    if (std::find_if(at + 1, flat.end(), is_at) != flat.end()) {
      return Wrong(place.Field("shape"), absl::StrCat(place.Name(), ": more than one '@'"));
    }
    GC_ASSIGN_OR_RETURN(const std::size_t axis, AxisOf((*at)->at, place, shape.size()));
    const std::size_t before = at - flat.begin();
    GC_RETURN_IF_ERROR(MatchPart(place, flat, all.first(before), sizes.first(axis), shape, names));
    GC_RETURN_IF_ERROR(BindDim(place, (*at)->name, shape[axis], names));
    return MatchPart(place, flat, all.subspan(before + 1), sizes.subspan(axis + 1), shape, names);
  }

  // The place that an attribute names, counted from the front.
  absl::StatusOr<std::size_t> AxisOf(absl::string_view attribute, const Place& place,
                                     std::size_t rank) const {
    GC_ASSIGN_OR_RETURN(const Value value, result_.Lookup(attribute));
    const auto* given = std::get_if<std::int64_t>(&value);
    if (given == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("'", attribute, "' is no i64"));
    }
    const auto count = static_cast<std::int64_t>(rank);
    if (*given >= -count && *given < count) return *given < 0 ? *given + count : *given;
    const std::string want = rank == 0 ? "no axis (it has rank 0)"
                                       : absl::StrCat("an axis from ", -count, " to ", count - 1,
                                                      " (it has rank ", rank, ")");
    return Wrong(absl::StrCat("attributes.", attribute),
                 absl::StrCat("attribute '", attribute, "': ", place.Name(), " has ", want,
                              ", got ", *given));
  }

  // How many dimensions `dim` covers; nothing for a run that is not bound yet.
  static std::optional<std::size_t> WidthOf(const Dim& dim, const Names& names) {
    if (dim.kind != Dim::Kind::kRun && dim.kind != Dim::Kind::kSwap) return 1;
    const Shape* run = Find(names.runs, dim.name);
    if (run == nullptr) return std::nullopt;
    return run->size();
  }

  absl::Status MatchPart(const Place& place, const FlatDims& all, std::span<const Dim* const> dims,
                         Sizes sizes, const Shape& shape, const Names& names) {
    std::size_t known = 0, unknown = 0;
    for (const Dim* dim : dims) {
      const std::optional<std::size_t> width = WidthOf(*dim, names);
      known += width.value_or(0);
      unknown += width ? 0 : 1;
    }
    if (unknown > 1) {
      return Wrong(place.Field("shape"),
                   absl::StrCat(place.Name(), ": ", DimsText(all), " has two unknown runs"));
    }
    if (known > sizes.size() || (unknown == 0 && known < sizes.size())) {
      return RankError(place, all, shape, names);
    }
    const std::size_t rest = sizes.size() - known;
    for (const Dim* dim : dims) {
      const std::size_t width = WidthOf(*dim, names).value_or(rest);
      GC_RETURN_IF_ERROR(MatchDim(place, *dim, sizes.first(width), names));
      sizes = sizes.subspan(width);
    }
    return absl::OkStatus();
  }

  // A run that is bound to other dimensions is the likelier mistake, so it is named first.
  static absl::Status RankError(const Place& place, const FlatDims& all, const Shape& shape,
                                const Names& names) {
    std::size_t singles = 0;
    const Dim* run = nullptr;
    for (const Dim* dim : all) {
      if (dim->kind == Dim::Kind::kRun)
        run = dim;
      else
        ++singles;
    }
    const Shape* bound = run == nullptr ? nullptr : Find(names.runs, run->name);
    if (bound != nullptr && run == all.front() && singles + 1 == all.size() &&
        shape.size() >= singles) {
      const Shape here(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(singles));
      return RunError(place, run->name, *bound, Sizes(here.data(), here.size()));
    }
    return Wrong(place.Field("shape"),
                 absl::StrCat(place.Name(), ": want ", DimsText(all), ", got ", ToText(shape)));
  }

  static absl::Status RunError(const Place& place, absl::string_view run, const Shape& elsewhere,
                               Sizes here) {
    return Wrong(
        place.Field("shape"),
        absl::StrCat(place.Name(), ": ", run == "*" ? "" : "*", run, " is ", ToText(elsewhere),
                     " elsewhere, ", ToText(Shape(here.begin(), here.end())), " here"));
  }

  absl::Status MatchDim(const Place& place, const Dim& dim, Sizes sizes, const Names& names) {
    if (dim.kind == Dim::Kind::kRun) return BindRun(place, dim.name, sizes, names);
    if (dim.kind == Dim::Kind::kSwap) {
      GC_ASSIGN_OR_RETURN(const Shape want, Swapped(place, dim, names));
      if (std::equal(want.begin(), want.end(), sizes.begin(), sizes.end())) return absl::OkStatus();
      return RunError(place, dim.name, want, sizes);
    }
    if (BindsDimension(dim)) {
      return BindDim(place, dim.expr.name, sizes[0], names);
    }
    late_.push_back({&place.operand, place.element, &dim.expr, sizes[0]});
    return absl::OkStatus();
  }

  static absl::Status BindRun(const Place& place, const std::string& name, Sizes sizes,
                              const Names& names) {
    const Shape* bound = Find(names.runs, name);
    if (bound == nullptr) {
      names.runs.emplace_back(name, Shape(sizes.begin(), sizes.end()));
      return absl::OkStatus();
    }
    if (std::equal(bound->begin(), bound->end(), sizes.begin(), sizes.end())) {
      return absl::OkStatus();
    }
    return RunError(place, name, *bound, sizes);
  }

  absl::Status BindDim(const Place& place, const std::string& name, std::int64_t size,
                       const Names& names) const {
    const std::int64_t* bound = Find(names.dims, name);
    if (bound == nullptr) {
      names.dims.emplace_back(name, size);
      return absl::OkStatus();
    }
    if (*bound == size) return absl::OkStatus();
    return Wrong(place.Field("shape"), absl::StrCat(place.Name(), ": ", name, " is ", *bound,
                                                    " elsewhere, ", size, " here", Shapes()));
  }

  // " (a is f32[2,3], b is f32[5,4])": both sides of a mismatch, if they are few.
  std::string Shapes() const {
    constexpr std::size_t kMost = 4;
    if (spec_.inputs.size() > kMost || !elements_.empty()) return "";
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      parts.push_back(
          absl::StrCat(spec_.inputs[i].name, " is ", ToText(result_.inputs[i].tensors[0])));
    }
    return absl::StrCat(" (", absl::StrJoin(parts, ", "), ")");
  }

  absl::StatusOr<Shape> Swapped(const Place& place, const Dim& dim, const Names& names) const {
    const Shape* run = Find(names.runs, dim.name);
    if (run == nullptr) {
      return Wrong(place.Field("shape"),
                   absl::StrCat(place.Name(), ": the run *", dim.name, " is not bound"));
    }
    Shape swapped = *run;
    GC_ASSIGN_OR_RETURN(const std::size_t i, AxisOf(dim.swap_i, place, run->size()));
    GC_ASSIGN_OR_RETURN(const std::size_t j, AxisOf(dim.swap_j, place, run->size()));
    std::swap(swapped[i], swapped[j]);
    return swapped;
  }

  absl::Status CheckLate() const {
    for (const LateCheck& check : late_) {
      const Place place{*check.operand, check.element};
      const Scope& scope =
          check.operand->is_list ? static_cast<const Scope&>(elements_[check.element]) : result_;
      const absl::StatusOr<std::int64_t> want = EvaluateInt(*check.expr, scope);
      if (!want.ok()) {
        return WithField(Annotate(want.status(), place.Name()), place.Field("shape"));
      }
      if (*want == check.got) continue;
      return Wrong(place.Field("shape"),
                   absl::StrCat(place.Name(), ": '", ToText(*check.expr), "' is ", *want,
                                " elsewhere, ", check.got, " here"));
    }
    return absl::OkStatus();
  }

  // --- Outputs ---

  absl::Status BuildOutputs() {
    result_.outputs.reserve(spec_.inputs.size() + spec_.outputs.size());
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      if (spec_.inputs[i].inout) result_.outputs.push_back(result_.inputs[i]);
    }
    for (const OperandSpec& operand : spec_.outputs) {
      OperandValue value{.is_list = operand.is_list, .tensors = {}};
      const std::size_t count = operand.is_list ? elements_.size() : 1;
      value.tensors.reserve(count);
      for (std::size_t k = 0; k < count; ++k) {
        GC_RETURN_IF_ERROR(BuildOutput({operand, k, true}, value));
      }
      GC_RETURN_IF_ERROR(CheckOver(operand, value));
      result_.outputs.push_back(std::move(value));
    }
    return absl::OkStatus();
  }

  absl::Status BuildOutput(const Place& place, OperandValue& value) {
    TensorSpec& tensor = value.tensors.emplace_back();
    GC_ASSIGN_OR_RETURN(tensor.dtype, ElemOf(place));
    absl::Status status;
    if (place.operand.is_list) {
      ElementScope& element = elements_[place.element];
      status = Build(place, {element.dims, element.runs, element}, tensor.shape);
    } else {
      status = Build(place, {result_.dims, result_.runs, result_}, tensor.shape);
    }
    if (status.ok()) status = CheckedBytes(tensor).status();
    if (status.ok() || !DetailsOf(status).field.empty()) return status;
    return WithField(Annotate(status, absl::StrCat("output ", place.Name())), place.Field("shape"));
  }

  absl::Status Build(const Place& place, const Names& names, Shape& shape) const {
    FlatDims flat;
    GC_RETURN_IF_ERROR(Flatten(place.operand.dims, names.scope, flat));
    const Dim* at = nullptr;
    std::size_t at_place = 0;
    for (const Dim* dim : flat) {
      if (dim->kind == Dim::Kind::kAt) {
        at = dim;
        at_place = shape.size();
      }
      GC_RETURN_IF_ERROR(Append(place, *dim, names, shape));
      // Before more is appended: runs of a hostile spec could make it long.
      if (shape.size() > kMaxRank) return CheckedElements(shape).status();
    }
    if (at == nullptr) return absl::OkStatus();
    GC_ASSIGN_OR_RETURN(const std::size_t axis, AxisOf(at->at, place, shape.size()));
    if (axis == at_place) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(at->name, " @ ", at->at, " stands at place ", at_place, ", want ", axis));
  }

  absl::Status Append(const Place& place, const Dim& dim, const Names& names, Shape& shape) const {
    switch (dim.kind) {
      case Dim::Kind::kRun: {
        const Shape* run = Find(names.runs, dim.name);
        if (run == nullptr) {
          return absl::InvalidArgumentError(absl::StrCat("the run *", dim.name, " is not bound"));
        }
        shape.insert(shape.end(), run->begin(), run->end());
        return absl::OkStatus();
      }
      case Dim::Kind::kSwap: {
        GC_ASSIGN_OR_RETURN(const Shape swapped, Swapped(place, dim, names));
        shape.insert(shape.end(), swapped.begin(), swapped.end());
        return absl::OkStatus();
      }
      case Dim::Kind::kAt:
        return AppendValue({.op = Expr::Op::kName, .name = dim.name}, names, shape);
      default:
        return AppendValue(dim.expr, names, shape);
    }
  }

  static absl::Status AppendValue(const Expr& expr, const Names& names, Shape& shape) {
    GC_ASSIGN_OR_RETURN(const std::int64_t size, EvaluateInt(expr, names.scope));
    if (size < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", ToText(expr), "' is ", size, "; want 0 or more"));
    }
    shape.push_back(size);
    return absl::OkStatus();
  }

  // An output over an input may be asked to use its buffer, so it must be as large.
  absl::Status CheckOver(const OperandSpec& operand, const OperandValue& value) const {
    if (operand.over.empty()) return absl::OkStatus();
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      if (spec_.inputs[i].name != operand.over) continue;
      const std::vector<TensorSpec>& under = result_.inputs[i].tensors;
      for (std::size_t k = 0; k < value.tensors.size() && k < under.size(); ++k) {
        if (Bytes(value.tensors[k]) == Bytes(under[k])) continue;
        return Wrong(absl::StrCat("outputs.", operand.name, ".shape"),
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
      return Wrong("inputs",
                   absl::StrCat("want ", ToText(*condition.expr), "; it does not hold", Shapes()));
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
    return Wrong("inputs",
                 absl::StrCat(what, ": '", ToText(expr), "' is ", *cost, "; want 0 or more"));
  }

  absl::Status CountBytes() {
    for (const auto* side : {&result_.inputs, &result_.outputs}) {
      for (const OperandValue& value : *side) {
        for (const TensorSpec& tensor : value.tensors) {
          if (!__builtin_add_overflow(result_.bytes, Bytes(tensor), &result_.bytes)) continue;
          return Wrong("inputs", "the bytes of all tensors together overflow 64 bits");
        }
      }
    }
    return absl::OkStatus();
  }

  const KernelSpec& spec_;
  const std::vector<NamedOperand>& given_;
  const std::vector<NamedAttribute>& given_attributes_;
  Binding result_;
  std::vector<ElementScope> elements_;  // Of the lists; they refer to result_.
  std::vector<LateCheck> late_;
};

}  // namespace

absl::StatusOr<Binding> Bind(const KernelSpec& spec, const std::vector<NamedOperand>& inputs,
                             const std::vector<NamedAttribute>& attributes) {
  return Binder(spec, inputs, attributes).Run();
}

}  // namespace gridclock
