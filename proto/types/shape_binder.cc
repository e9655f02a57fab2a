#include "proto/types/shape_binder.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/types/bind_errors.h"
#include "proto/types/lexer.h"

namespace gridclock {
namespace {

std::string DimsText(const absl::InlinedVector<const Dim*, 8>& dims) {
  OperandSpec bare;
  for (const Dim* dim : dims) bare.dims.push_back(*dim);
  return ToText(bare).substr(2);  // ": [M, K]"
}

absl::Status Flatten(const std::vector<Dim>& dims, const Scope& scope,
                     absl::InlinedVector<const Dim*, 8>& flat) {
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

}  // namespace

absl::StatusOr<Value> ShapeBinder::Element::Lookup(absl::string_view name) const {
  GC_RETURN_IF_ERROR(Spend(std::ssize(dims)));
  if (const std::int64_t* dim = FindBound(dims, name)) return Value(*dim);
  return binding_.Lookup(name);
}

absl::StatusOr<std::int64_t> ShapeBinder::Element::Measure(absl::string_view function,
                                                           absl::string_view name,
                                                           std::int64_t index) const {
  GC_RETURN_IF_ERROR(Spend(std::ssize(runs)));
  const Shape* run = FindBound(runs, name);
  return run != nullptr ? MeasureShape(function, name, index, *run)
                        : binding_.Measure(function, name, index);
}

absl::Status ShapeBinder::MatchInputs() {
  const Names names{binding_.dims, binding_.runs, binding_};
  for (std::size_t i = 0; i < binding_.spec->inputs.size(); ++i) {
    const OperandSpec& operand = binding_.spec->inputs[i];
    const OperandValue& value = binding_.inputs[i];
    if (!operand.is_list) {
      GC_RETURN_IF_ERROR(Match({operand}, value.tensors[0].shape, names));
      continue;
    }
    GC_RETURN_IF_ERROR(OpenElements(operand, value.tensors.size()));
    for (std::size_t k = 0; k < value.tensors.size(); ++k) {
      Element& element = elements_[k];
      GC_RETURN_IF_ERROR(
          Match({operand, k}, value.tensors[k].shape, {element.dims, element.runs, element}));
    }
  }
  return absl::OkStatus();
}

absl::Status ShapeBinder::OpenElements(const OperandSpec& operand, std::size_t length) {
  if (elements_.empty()) {
    elements_.reserve(length);
    for (std::size_t i = 0; i < length; ++i) elements_.emplace_back(binding_);
  }
  if (elements_.size() == length) return absl::OkStatus();
  return WrongField(absl::StrCat("inputs.", operand.name),
                    absl::StrCat("'", operand.name, "': lists have ", elements_.size(),
                                 " tensors elsewhere, ", length, " here"));
}

absl::Status ShapeBinder::Match(const Place& place, const Shape& shape, const Names& names) {
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
    return WrongField(place.Field("shape"), absl::StrCat(place.Name(), ": more than one '@'"));
  }
  GC_ASSIGN_OR_RETURN(const std::size_t axis, AxisOf((*at)->at, place, shape.size()));
  const std::size_t before = at - flat.begin();
  GC_RETURN_IF_ERROR(MatchPart(place, flat, all.first(before), sizes.first(axis), shape, names));
  GC_RETURN_IF_ERROR(BindDim(place, (*at)->name, shape[axis], names));
  return MatchPart(place, flat, all.subspan(before + 1), sizes.subspan(axis + 1), shape, names);
}

// The place that an attribute names, counted from the front.
absl::StatusOr<std::size_t> ShapeBinder::AxisOf(absl::string_view attribute, const Place& place,
                                                std::size_t rank) const {
  GC_ASSIGN_OR_RETURN(const Value value, binding_.Lookup(attribute));
  const auto* given = std::get_if<std::int64_t>(&value);
  if (given == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("'", attribute, "' is no i64"));
  }
  const auto count = static_cast<std::int64_t>(rank);
  if (*given >= -count && *given < count) return *given < 0 ? *given + count : *given;
  const std::string want = rank == 0 ? "no axis (it has rank 0)"
                                     : absl::StrCat("an axis from ", -count, " to ", count - 1,
                                                    " (it has rank ", rank, ")");
  return WrongField(
      absl::StrCat("attributes.", attribute),
      absl::StrCat("attribute '", attribute, "': ", place.Name(), " has ", want, ", got ", *given));
}

// How many dimensions `dim` covers; nothing for a run that is not bound yet.
std::optional<std::size_t> ShapeBinder::WidthOf(const Dim& dim, const Names& names) {
  if (dim.kind != Dim::Kind::kRun && dim.kind != Dim::Kind::kSwap) return 1;
  const Shape* run = FindBound(names.runs, dim.name);
  if (run == nullptr) return std::nullopt;
  return run->size();
}

absl::Status ShapeBinder::MatchPart(const Place& place, const FlatDims& all,
                                    std::span<const Dim* const> dims, Sizes sizes,
                                    const Shape& shape, const Names& names) {
  // Each of them is looked for among the names.
  GC_RETURN_IF_ERROR(
      binding_.Spend(std::ssize(dims) * (1 + std::ssize(names.dims) + std::ssize(names.runs))));
  std::size_t known = 0, unknown = 0;
  for (const Dim* dim : dims) {
    const std::optional<std::size_t> width = WidthOf(*dim, names);
    known += width.value_or(0);
    unknown += width ? 0 : 1;
  }
  if (unknown > 1) {
    return WrongField(place.Field("shape"),
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
absl::Status ShapeBinder::RankError(const Place& place, const FlatDims& all, const Shape& shape,
                                    const Names& names) {
  std::size_t singles = 0;
  const Dim* run = nullptr;
  for (const Dim* dim : all) {
    if (dim->kind == Dim::Kind::kRun)
      run = dim;
    else
      ++singles;
  }
  const Shape* bound = run == nullptr ? nullptr : FindBound(names.runs, run->name);
  if (bound != nullptr && run == all.front() && singles + 1 == all.size() &&
      shape.size() >= singles) {
    const Shape here(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(singles));
    return RunError(place, run->name, *bound, Sizes(here.data(), here.size()));
  }
  return WrongField(place.Field("shape"),
                    absl::StrCat(place.Name(), ": want ", DimsText(all), ", got ", ToText(shape)));
}

absl::Status ShapeBinder::RunError(const Place& place, absl::string_view run,
                                   const Shape& elsewhere, Sizes here) {
  return WrongField(
      place.Field("shape"),
      absl::StrCat(place.Name(), ": ", run == "*" ? "" : "*", run, " is ", ToText(elsewhere),
                   " elsewhere, ", ToText(Shape(here.begin(), here.end())), " here"));
}

absl::Status ShapeBinder::MatchDim(const Place& place, const Dim& dim, Sizes sizes,
                                   const Names& names) {
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

absl::Status ShapeBinder::BindRun(const Place& place, const std::string& name, Sizes sizes,
                                  const Names& names) {
  const Shape* bound = FindBound(names.runs, name);
  if (bound == nullptr) {
    names.runs.emplace_back(name, Shape(sizes.begin(), sizes.end()));
    return absl::OkStatus();
  }
  if (std::equal(bound->begin(), bound->end(), sizes.begin(), sizes.end())) {
    return absl::OkStatus();
  }
  return RunError(place, name, *bound, sizes);
}

absl::Status ShapeBinder::BindDim(const Place& place, const std::string& name, std::int64_t size,
                                  const Names& names) const {
  const std::int64_t* bound = FindBound(names.dims, name);
  if (bound == nullptr) {
    names.dims.emplace_back(name, size);
    return absl::OkStatus();
  }
  if (*bound == size) return absl::OkStatus();
  return WrongField(place.Field("shape"),
                    absl::StrCat(place.Name(), ": ", name, " is ", *bound, " elsewhere, ", size,
                                 " here", ShapesText(binding_)));
}

absl::StatusOr<Shape> ShapeBinder::Swapped(const Place& place, const Dim& dim,
                                           const Names& names) const {
  const Shape* run = FindBound(names.runs, dim.name);
  if (run == nullptr) {
    return WrongField(place.Field("shape"),
                      absl::StrCat(place.Name(), ": the run *", dim.name, " is not bound"));
  }
  Shape swapped = *run;
  GC_ASSIGN_OR_RETURN(const std::size_t i, AxisOf(dim.swap_i, place, run->size()));
  GC_ASSIGN_OR_RETURN(const std::size_t j, AxisOf(dim.swap_j, place, run->size()));
  std::swap(swapped[i], swapped[j]);
  return swapped;
}

absl::Status ShapeBinder::CheckLate() const {
  for (const LateCheck& check : late_) {
    const Place place{*check.operand, check.element};
    const Scope& scope =
        check.operand->is_list ? static_cast<const Scope&>(elements_[check.element]) : binding_;
    const absl::StatusOr<std::int64_t> want = EvaluateInt(*check.expr, scope);
    if (!want.ok()) {
      return WithField(Annotate(want.status(), place.Name()), place.Field("shape"));
    }
    if (*want == check.got) continue;
    return WrongField(place.Field("shape"),
                      absl::StrCat(place.Name(), ": '", ToText(*check.expr), "' is ", *want,
                                   " elsewhere, ", check.got, " here"));
  }
  return absl::OkStatus();
}

absl::Status ShapeBinder::BuildOutput(const Place& place, Shape& shape) {
  if (!place.operand.is_list) {
    return Build(place, {binding_.dims, binding_.runs, binding_}, shape);
  }
  Element& element = elements_[place.element];
  return Build(place, {element.dims, element.runs, element}, shape);
}

absl::Status ShapeBinder::Build(const Place& place, const Names& names, Shape& shape) const {
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

absl::Status ShapeBinder::Append(const Place& place, const Dim& dim, const Names& names,
                                 Shape& shape) const {
  switch (dim.kind) {
    case Dim::Kind::kRun: {
      const Shape* run = FindBound(names.runs, dim.name);
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

absl::Status ShapeBinder::AppendValue(const Expr& expr, const Names& names, Shape& shape) {
  GC_ASSIGN_OR_RETURN(const std::int64_t size, EvaluateInt(expr, names.scope));
  if (size < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", ToText(expr), "' is ", size, "; want 0 or more"));
  }
  shape.push_back(size);
  return absl::OkStatus();
}

}  // namespace gridclock
