#include "client/cli/shapes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "client/cli/format.h"
#include "client/cli/names.h"

namespace gridclock::cli {
namespace {

absl::StatusOr<Shape> ParseShape(absl::string_view text) {
  if (absl::StartsWith(text, "x") || absl::EndsWith(text, "x") || absl::StrContains(text, "xx")) {
    return absl::InvalidArgumentError(absl::StrCat("want sizes as in 8x1024, got '", text, "'"));
  }
  Shape shape;
  for (const absl::string_view part : absl::StrSplit(text, 'x', absl::SkipEmpty())) {
    GC_ASSIGN_OR_RETURN(const std::int64_t size, ParseSize(part));
    shape.push_back(size);
  }
  return shape;
}

// The names of dimensions and runs that the inputs have, in order of appearance.
struct Names {
  std::vector<std::string> dims, runs;
  bool lists = false;
};

void AddTo(std::vector<std::string>* names, const std::string& name) {
  if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
}

void CollectExpr(const Expr& expr, Names* names) {
  if (expr.op == Expr::Op::kName && !expr.name.empty() && expr.name[0] >= 'A' &&
      expr.name[0] <= 'Z') {
    AddTo(&names->dims, expr.name);
  }
  for (const Expr& arg : expr.args) CollectExpr(arg, names);
}

void Collect(const std::vector<Dim>& dims, Names* names) {
  for (const Dim& dim : dims) {
    switch (dim.kind) {
      case Dim::Kind::kExpr:
        CollectExpr(dim.expr, names);
        break;
      case Dim::Kind::kRun:
      case Dim::Kind::kSwap:
        AddTo(&names->runs, dim.name);
        break;
      case Dim::Kind::kAt:
        AddTo(&names->dims, dim.name);
        break;
      case Dim::Kind::kChoose:
        Collect(dim.yes, names);
        Collect(dim.no, names);
        break;
    }
  }
}

Names NamesOf(const KernelSpec& spec) {
  Names names;
  for (const OperandSpec& input : spec.inputs) {
    Collect(input.dims, &names);
    names.lists |= input.is_list;
  }
  return names;
}

bool IsOneOf(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string RunName(const std::string& name) {
  return name == "*" ? name : std::string(absl::StripPrefix(name, "*"));
}

// True if a wish for `name`, made for a kernel with the names `all`, is one for `some` of them.
bool Uses(const Names& all, const Names& some, const std::string& name) {
  if (name[0] != '*' && IsOneOf(all.dims, name)) return IsOneOf(some.dims, name);
  if (IsOneOf(all.runs, RunName(name))) return IsOneOf(some.runs, RunName(name));
  if (name == "*") return !some.runs.empty();
  return all.dims.empty() && all.runs.size() == 1 && !some.runs.empty();
}

bool UsesDType(const OperandSpec& input, const std::string& name) {
  return name.empty() ? !ParseDType(input.elem).has_value() : input.elem == name;
}

class Solver final : public Scope {
 public:
  Solver(const KernelSpec& spec, const ShapeWishes& wishes) : spec_(spec), wishes_(wishes) {}

  absl::Status Prepare(const std::vector<NamedAttribute>& given) {
    GC_RETURN_IF_ERROR(BindAttributes(given));
    names_ = NamesOf(spec_);
    if (wishes_.shapes.empty() && !wishes_.default_dim.has_value() &&
        !(names_.dims.empty() && names_.runs.empty())) {
      return absl::InvalidArgumentError(absl::StrCat("how large? Say --shape ",
                                                     names_.dims.empty() ? "N" : names_.dims[0],
                                                     "=1M; names: ", AllNames()));
    }
    for (const auto& [name, shapes] : wishes_.shapes) {
      GC_RETURN_IF_ERROR(Assign(name, shapes));
    }
    if (!all_leading_.empty() && !runs_.empty()) return Contradicts("*");
    return CheckDTypes();
  }

  absl::StatusOr<NamedOperand> Solve(const OperandSpec& input) {
    NamedOperand out{.name = input.name, .value = {}};
    out.value.is_list = input.is_list;
    GC_ASSIGN_OR_RETURN(const DType dtype, Elem(input));
    for (element_ = 0; element_ < (input.is_list ? length_ : 1); ++element_) {
      TensorSpec tensor{.dtype = dtype, .shape = {}};
      GC_RETURN_IF_ERROR(Append(input.dims, &tensor.shape));
      out.value.tensors.push_back(std::move(tensor));
    }
    return out;
  }

  absl::StatusOr<Value> Lookup(absl::string_view name) const override {
    for (const auto& [attribute, value] : attributes_) {
      if (attribute == name) return value;
    }
    if (const auto dtype = dtypes_.find(std::string(name)); dtype != dtypes_.end()) {
      return dtype->second;
    }
    for (const AttributeSpec& attribute : spec_.attributes) {
      const auto& words = attribute.words;
      if (std::find(words.begin(), words.end(), name) != words.end()) return std::string(name);
    }
    return DimOf(std::string(name));
  }

  absl::StatusOr<std::int64_t> Measure(absl::string_view function, absl::string_view name,
                                       std::int64_t) const override {
    return absl::InvalidArgumentError(
        absl::StrCat(function, "(", name, ") cannot be solved for; give the inputs as x=..."));
  }

 private:
  std::string AllNames() const {
    std::vector<std::string> all = names_.dims;
    for (const std::string& run : names_.runs) all.push_back(run == "*" ? "*" : "*" + run);
    return absl::StrJoin(all, ", ");
  }

  absl::Status BindAttributes(const std::vector<NamedAttribute>& given) {
    for (const AttributeSpec& attribute : spec_.attributes) {
      const auto found = std::find_if(given.begin(), given.end(), [&](const NamedAttribute& g) {
        return g.name == attribute.name;
      });
      if (found != given.end()) {
        attributes_.emplace_back(attribute.name, found->value);
      } else if (attribute.default_value.has_value()) {
        attributes_.emplace_back(attribute.name, *attribute.default_value);
      } else {
        return absl::InvalidArgumentError(absl::StrCat(
            "attribute '", attribute.name, "' has no default; say ", attribute.name, "=..."));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Assign(const std::string& name, const std::vector<Shape>& shapes) {
    const std::string run = RunName(name);
    if (shapes.size() > 1) {
      if (!names_.lists) {
        return absl::InvalidArgumentError(
            absl::StrCat("--shape ", name, ": several shapes are for kernels that take a list"));
      }
      if (length_ > 1 && length_ != shapes.size()) {
        return absl::InvalidArgumentError(absl::StrCat("--shape ", name, ": ", shapes.size(),
                                                       " shapes, ", length_, " elsewhere"));
      }
      length_ = shapes.size();
    }
    if (name[0] != '*' && IsOneOf(names_.dims, name)) {
      for (const Shape& shape : shapes) {
        if (shape.size() == 1) continue;
        return absl::InvalidArgumentError(
            absl::StrCat("--shape ", name, ": want one size, got ", ToText(shape)));
      }
      dims_[name] = shapes;
    } else if (IsOneOf(names_.runs, run)) {
      if (!runs_.emplace(run, shapes).second) return Contradicts(name);
    } else if (name == "*" && !names_.runs.empty()) {
      all_leading_ = shapes;
    } else if (name == "N" && names_.dims.empty() && names_.runs.size() == 1) {
      if (!runs_.emplace(names_.runs[0], shapes).second) return Contradicts(name);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("--shape: '", spec_.name, "' has no '", name, "'; it has ", AllNames()));
    }
    return absl::OkStatus();
  }

  static absl::Status Contradicts(const std::string& name) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--shape ", name, ": another --shape says the same dimensions; want one of them"));
  }

  absl::Status CheckDTypes() {
    std::set<std::string> variables;
    for (const OperandSpec& input : spec_.inputs) {
      if (!ParseDType(input.elem).has_value()) variables.insert(input.elem);
    }
    for (const auto& [name, dtype] : wishes_.dtypes) {
      if (!name.empty() && variables.count(name) == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("--dtype: '", spec_.name, "' has no '", name, "'; it has ",
                         variables.empty() ? "none" : absl::StrJoin(variables, ", ")));
      }
    }
    for (const std::string& variable : variables) dtypes_[variable] = Pick(variable);
    return absl::OkStatus();
  }

  DType Pick(const std::string& variable) const {
    for (const std::string& key : {variable, std::string()}) {
      if (const auto wish = wishes_.dtypes.find(key); wish != wishes_.dtypes.end()) {
        return wish->second;
      }
    }
    for (const Condition& condition : spec_.conditions) {
      if (condition.variable != variable || condition.dtypes.empty()) continue;
      const auto& all = condition.dtypes;
      const bool f32 = std::find(all.begin(), all.end(), DType::kF32) != all.end();
      return f32 ? DType::kF32 : all[0];
    }
    return DType::kF32;
  }

  absl::StatusOr<DType> Elem(const OperandSpec& input) const {
    if (const auto fixed = ParseDType(input.elem); fixed.has_value()) return *fixed;
    for (const auto& [name, value] : attributes_) {
      if (name == input.elem && std::holds_alternative<DType>(value)) {
        return std::get<DType>(value);
      }
    }
    return dtypes_.at(input.elem);
  }

  absl::StatusOr<std::int64_t> DimOf(const std::string& name) const {
    if (const auto dim = dims_.find(name); dim != dims_.end()) {
      return dim->second[std::min(element_, dim->second.size() - 1)][0];
    }
    if (wishes_.default_dim.has_value()) return *wishes_.default_dim;
    return absl::InvalidArgumentError(
        absl::StrCat("--shape ", name, "=... is missing; names: ", AllNames()));
  }

  Shape RunOf(const std::string& name) const {
    const auto run = runs_.find(name);
    if (run == runs_.end()) return {};
    return run->second[std::min(element_, run->second.size() - 1)];
  }

  absl::Status Append(const std::vector<Dim>& dims, Shape* shape) {
    if (!all_leading_.empty() && runs_.empty()) return AppendAround(dims, shape);
    for (const Dim& dim : dims) GC_RETURN_IF_ERROR(AppendOne(dim, shape));
    return absl::OkStatus();
  }

  absl::Status AppendOne(const Dim& dim, Shape* shape) {
    switch (dim.kind) {
      case Dim::Kind::kExpr: {
        GC_ASSIGN_OR_RETURN(const std::int64_t size, EvaluateInt(dim.expr, *this));
        shape->push_back(size);
        return absl::OkStatus();
      }
      case Dim::Kind::kRun: {
        const Shape run = RunOf(dim.name);
        shape->insert(shape->end(), run.begin(), run.end());
        return absl::OkStatus();
      }
      case Dim::Kind::kAt: {
        GC_ASSIGN_OR_RETURN(const std::int64_t size, DimOf(dim.name));
        shape->push_back(size);
        return absl::OkStatus();
      }
      case Dim::Kind::kChoose: {
        GC_ASSIGN_OR_RETURN(const bool yes, EvaluateBool(dim.expr, *this));
        for (const Dim& each : yes ? dim.yes : dim.no) GC_RETURN_IF_ERROR(AppendOne(each, shape));
        return absl::OkStatus();
      }
      case Dim::Kind::kSwap:
        break;
    }
    return absl::InvalidArgumentError("an input with a swapped run; give the inputs as x=...");
  }

  // "*=8x16" of `*A, N @ axis, *B`: all other dimensions, N goes where the attribute says.
  absl::Status AppendAround(const std::vector<Dim>& dims, Shape* shape) {
    Shape rest = all_leading_[std::min(element_, all_leading_.size() - 1)];
    const auto at = std::find_if(dims.begin(), dims.end(),
                                 [](const Dim& dim) { return dim.kind == Dim::Kind::kAt; });
    if (at == dims.end()) {
      runs_[names_.runs[0]] = all_leading_;
      return Append(dims, shape);
    }
    GC_ASSIGN_OR_RETURN(const Value value, Lookup(at->at));
    const auto rank = static_cast<std::int64_t>(rest.size()) + 1;
    std::int64_t axis = std::holds_alternative<std::int64_t>(value) ? std::get<0>(value) : 0;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) {
      return absl::InvalidArgumentError(absl::StrCat(at->at, ": rank ", rank, " has no such axis"));
    }
    GC_ASSIGN_OR_RETURN(const std::int64_t size, DimOf(at->name));
    rest.insert(rest.begin() + axis, size);
    *shape = std::move(rest);
    return absl::OkStatus();
  }

  const KernelSpec& spec_;
  const ShapeWishes& wishes_;
  Names names_;
  std::vector<std::pair<std::string, Value>> attributes_;
  std::map<std::string, std::vector<Shape>> dims_, runs_;
  std::vector<Shape> all_leading_;  // "*=" where the words name their runs.
  std::map<std::string, DType> dtypes_;
  std::size_t length_ = 1;   // Of the lists.
  std::size_t element_ = 0;  // Of the list, now.
};

}  // namespace

absl::Status AddShape(absl::string_view text, ShapeWishes* wishes) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  if (parts.first.empty() || !absl::StrContains(text, '=')) {
    return absl::InvalidArgumentError(
        absl::StrCat("--shape: want NAME=SIZE or '*=8x1024', got '", text, "'",
                     ParseSize(text).ok() ? absl::StrCat("; say --shape N=", text) : ""));
  }
  std::vector<Shape> shapes;
  for (const absl::string_view one : absl::StrSplit(parts.second, ',')) {
    auto shape = ParseShape(one);
    if (!shape.ok()) return Annotate(shape.status(), absl::StrCat("--shape ", parts.first));
    shapes.push_back(*std::move(shape));
  }
  if (!wishes->shapes.emplace(std::string(parts.first), std::move(shapes)).second) {
    return absl::InvalidArgumentError(absl::StrCat("--shape: '", parts.first, "' is there twice"));
  }
  return absl::OkStatus();
}

absl::Status AddDType(absl::string_view text, ShapeWishes* wishes) {
  std::string name;
  if (const auto at = text.find('='); at != absl::string_view::npos) {
    name = std::string(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  const auto dtype = ParseDType(text);
  if (!dtype.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("--dtype: ", NoSuchDType(text)));
  }
  if (!wishes->dtypes.emplace(name, *dtype).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype: ", name.empty() ? "one for all" : name, " is there twice"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<NamedOperand>> SolveShapes(const KernelSpec& spec,
                                                      const ShapeWishes& wishes,
                                                      const std::vector<NamedAttribute>& given,
                                                      const std::set<std::string>& told) {
  Solver solver(spec, wishes);
  GC_RETURN_IF_ERROR(solver.Prepare(given));
  std::vector<NamedOperand> out;
  for (const OperandSpec& input : spec.inputs) {
    if (told.count(input.name) > 0) continue;
    auto operand = solver.Solve(input);
    if (!operand.ok()) return Annotate(operand.status(), absl::StrCat("'", input.name, "'"));
    out.push_back(*std::move(operand));
  }
  return out;
}

absl::Status CheckWishes(const KernelSpec& spec, const ShapeWishes& wishes,
                         const std::map<std::string, std::string>& told) {
  const Names all = NamesOf(spec);
  const auto check = [&](absl::string_view wish, const auto& uses) -> absl::Status {
    std::string why;
    for (const OperandSpec& input : spec.inputs) {
      if (!uses(input)) continue;
      const auto found = told.find(input.name);
      if (found == told.end()) return absl::OkStatus();
      if (why.empty()) why = found->second;
    }
    if (why.empty()) why = absl::StrCat("no input of '", spec.name, "' takes it");
    return absl::InvalidArgumentError(absl::StrCat(wish, ": ", why));
  };
  for (const auto& [name, shapes] : wishes.shapes) {
    GC_RETURN_IF_ERROR(
        check(absl::StrCat("--shape ", name), [&, &name = name](const OperandSpec& input) {
          Names some;
          Collect(input.dims, &some);
          return Uses(all, some, name);
        }));
  }
  for (const auto& [name, dtype] : wishes.dtypes) {
    GC_RETURN_IF_ERROR(
        check(absl::StrCat("--dtype ", name.empty() ? Name(dtype) : name),
              [&name = name](const OperandSpec& input) { return UsesDType(input, name); }));
  }
  return absl::OkStatus();
}

}  // namespace gridclock::cli
