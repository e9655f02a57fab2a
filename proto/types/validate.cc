// The rules of docs/signatures.md that words must keep before any call.
#include "proto/types/validate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/types/attribute.h"
#include "proto/types/expression_check.h"
#include "proto/types/kernel_spec.h"
#include "proto/types/lexer.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

constexpr std::size_t kMaxEntries = 64;       // Of each part of the words.
constexpr std::size_t kMaxWords = 64;         // Of all enums together.
constexpr std::size_t kMaxAlternatives = 64;  // That the choices of one operand make.
constexpr std::size_t kMaxDims = 16;          // Of one alternative.
constexpr std::size_t kMaxGeometry = 3;       // Dimensions of a grid, a block or a cluster.
constexpr std::size_t kMaxParams = 256;
constexpr int kMaxChoiceDepth = 17;
using Alternative = std::vector<const Dim*>;

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

absl::Status TooMany(absl::string_view what, std::size_t came, std::size_t most) {
  return Wrong(absl::StrCat("at most ", most, " ", what, ", got ", came));
}

bool IsFreeName(const std::string& name) {
  return IsName(name) && !IsReserved(name) && name != "sm";
}

// --- Attributes ---

absl::Status CheckBounds(const AttributeSpec& attribute) {
  const AttributeSpec::Range& range = *attribute.range;
  const bool whole = attribute.type == AttributeSpec::Type::kI64;
  if (!whole && attribute.type != AttributeSpec::Type::kF64) {
    return Wrong("a range is for i64 and f64");
  }
  if (!(range.low <= range.high) || (whole && range.low_int > range.high_int)) {
    return Wrong("the range is empty");
  }
  const auto agrees = [&](double bound, std::int64_t exact) {
    return std::isinf(bound) || bound == static_cast<double>(exact);
  };
  if (whole && (!agrees(range.low, range.low_int) || !agrees(range.high, range.high_int))) {
    return Wrong("the bounds of an i64 are whole numbers");
  }
  return absl::OkStatus();
}

absl::Status CheckWords(const AttributeSpec& attribute) {
  if ((attribute.type == AttributeSpec::Type::kEnum) == attribute.words.empty()) {
    return Wrong("words belong to an enum, and an enum has words");
  }
  for (std::size_t i = 0; i < attribute.words.size(); ++i) {
    const std::string& word = attribute.words[i];
    if (!IsFreeName(word)) return Wrong(absl::StrCat("no word can be called ", Quote(word)));
    if (std::find(attribute.words.begin(), attribute.words.begin() + i, word) !=
        attribute.words.begin() + i) {
      return Wrong(absl::StrCat("the word '", word, "' stands twice"));
    }
  }
  return absl::OkStatus();
}

// A value that the words themselves hold; unlike a caller's it is never widened.
absl::Status CheckOwnValue(const AttributeSpec& attribute, const AttributeValue& value) {
  AttributeValue copy = value;
  GC_RETURN_IF_ERROR(CheckAttribute(attribute, copy));
  return copy.index() == value.index() ? absl::OkStatus() : Wrong("want an f64, got an i64");
}

absl::Status CheckAttributeSpec(const AttributeSpec& attribute) {
  GC_RETURN_IF_ERROR(CheckWords(attribute));
  if (attribute.range) GC_RETURN_IF_ERROR(CheckBounds(attribute));
  AttributeSpec without_set = attribute;
  without_set.allowed.clear();
  if (attribute.allowed.size() > kMaxEntries) {
    return TooMany("values in the set", attribute.allowed.size(), kMaxEntries);
  }
  for (const AttributeValue& value : attribute.allowed) {
    GC_RETURN_IF_ERROR(CheckOwnValue(without_set, value));
  }
  return attribute.default_value ? CheckOwnValue(attribute, *attribute.default_value)
                                 : absl::OkStatus();
}

// --- Dimensions ---

absl::Status AddAlternatives(const std::vector<Dim>& dims, int depth,
                             std::vector<Alternative>& alternatives);

absl::Status AddChoice(const Dim& dim, int depth, std::vector<Alternative>& alternatives) {
  if (depth >= kMaxChoiceDepth) return Wrong("choices stand too deep within one another");
  std::vector<Alternative> other = alternatives;
  GC_RETURN_IF_ERROR(AddAlternatives(dim.yes, depth + 1, alternatives));
  GC_RETURN_IF_ERROR(AddAlternatives(dim.no, depth + 1, other));
  alternatives.insert(alternatives.end(), other.begin(), other.end());
  if (alternatives.size() <= kMaxAlternatives) return absl::OkStatus();
  return Wrong(absl::StrCat("the choices make more than ", kMaxAlternatives, " alternatives"));
}

// Appends `dims` to each alternative, and doubles them at each choice.
absl::Status AddAlternatives(const std::vector<Dim>& dims, int depth,
                             std::vector<Alternative>& alternatives) {
  for (const Dim& dim : dims) {
    if (dim.kind == Dim::Kind::kChoose) {
      GC_RETURN_IF_ERROR(AddChoice(dim, depth, alternatives));
      continue;
    }
    for (Alternative& alternative : alternatives) {
      alternative.push_back(&dim);
      if (alternative.size() > kMaxDims) {
        return TooMany("dimensions of an operand", alternative.size(), kMaxDims);
      }
    }
  }
  return absl::OkStatus();
}

bool IsBareVariable(const Dim& dim) {
  return dim.kind == Dim::Kind::kExpr && dim.expr.op == Expr::Op::kName &&
         IsVariable(dim.expr.name);
}

// Calls `check` once with each dimension that is no choice, on whichever side of one it stands.
template <typename Check>
absl::Status ForEachDim(const std::vector<Dim>& dims, const Check& check) {
  for (const Dim& dim : dims) {
    if (dim.kind != Dim::Kind::kChoose) {
      GC_RETURN_IF_ERROR(check(dim));
      continue;
    }
    GC_RETURN_IF_ERROR(ForEachDim(dim.yes, check));
    GC_RETURN_IF_ERROR(ForEachDim(dim.no, check));
  }
  return absl::OkStatus();
}

void AddOnce(std::vector<std::string>& names, const std::string& name) {
  if (!Contains(names, name)) names.push_back(name);
}

void KeepCommon(std::vector<std::string>& names, const std::vector<std::string>& others) {
  names.erase(std::remove_if(names.begin(), names.end(),
                             [&](const std::string& name) { return !Contains(others, name); }),
              names.end());
}

struct BoundNames {
  std::vector<std::string> dims, runs;
};

// --- The whole ---

class Validator {
 public:
  explicit Validator(const KernelSpec& spec) : spec_(spec) {
    singles_.attributes = lists_.attributes = &spec.attributes;
  }

  absl::Status Run() {
    if (!IsName(spec_.name))
      return Wrong(absl::StrCat("no kernel can be called ", Quote(spec_.name)));
    GC_RETURN_IF_ERROR(CheckSizes());
    GC_RETURN_IF_ERROR(CheckNames());
    for (const AttributeSpec& attribute : spec_.attributes) {
      GC_RETURN_IF_ERROR(
          At(absl::StrCat("attribute '", attribute.name, "'"), CheckAttributeSpec(attribute)));
    }
    for (const OperandSpec& operand : spec_.inputs) {
      GC_RETURN_IF_ERROR(At(operand, CheckInput(operand)));
    }
    GC_RETURN_IF_ERROR(CheckApart());
    for (const OperandSpec& operand : spec_.inputs) {
      GC_RETURN_IF_ERROR(At(operand, CheckLate(operand)));
    }
    for (const OperandSpec& operand : spec_.outputs) {
      GC_RETURN_IF_ERROR(At(operand, CheckOutput(operand)));
    }
    for (const Condition& condition : spec_.conditions) {
      GC_RETURN_IF_ERROR(At("where", CheckCondition(condition)));
    }
    GC_RETURN_IF_ERROR(CheckClauses(spec_.clauses));
    return CheckVariants();
  }

  // After Run. The scratch that `params` may name is the words' own.
  absl::Status RunLaunch(const Clauses& clauses) const {
    return CheckLaunched(clauses, spec_.clauses.scratch);
  }

 private:
  static absl::Status At(absl::string_view place, const absl::Status& status) {
    return status.ok() ? status : Annotate(status, place);
  }
  static absl::Status At(const OperandSpec& operand, const absl::Status& status) {
    return status.ok() ? status : Annotate(status, absl::StrCat("'", operand.name, "'"));
  }

  absl::Status CheckSizes() const {
    const std::size_t most =
        std::max({spec_.inputs.size(), spec_.outputs.size(), spec_.attributes.size(),
                  spec_.conditions.size(), spec_.variants.size()});
    if (most > kMaxEntries) {
      return TooMany("operands, attributes, conditions or variants", most, kMaxEntries);
    }
    std::size_t words = 0;
    for (const AttributeSpec& attribute : spec_.attributes) words += attribute.words.size();
    return words <= kMaxWords ? absl::OkStatus() : TooMany("words of enums", words, kMaxWords);
  }

  // Operands, attributes and words share one space of names, but two enums may share a word.
  absl::Status CheckNames() const {
    std::vector<std::string> names;
    const auto add = [&](const std::string& name) {
      if (!IsFreeName(name)) return Wrong(absl::StrCat("nothing can be called ", Quote(name)));
      if (Contains(names, name)) return Wrong(absl::StrCat("two things are called '", name, "'"));
      names.push_back(name);
      return absl::OkStatus();
    };
    for (const OperandSpec& operand : spec_.inputs) GC_RETURN_IF_ERROR(add(operand.name));
    for (const OperandSpec& operand : spec_.outputs) GC_RETURN_IF_ERROR(add(operand.name));
    for (const AttributeSpec& attribute : spec_.attributes) GC_RETURN_IF_ERROR(add(attribute.name));
    for (const AttributeSpec& attribute : spec_.attributes) {
      for (const std::string& word : attribute.words) {
        if (Contains(names, word)) {
          return Wrong(absl::StrCat("'", word, "' is a word and the name of something else"));
        }
      }
    }
    return absl::OkStatus();
  }

  KnownNames& NamesOf(const OperandSpec& operand) { return operand.is_list ? lists_ : singles_; }

  absl::Status CheckElem(const OperandSpec& operand, bool binds) {
    if (IsVariable(operand.elem)) {
      if (binds) AddOnce(singles_.dtypes, operand.elem);
      if (binds) AddOnce(lists_.dtypes, operand.elem);
      if (Contains(singles_.dtypes, operand.elem)) return absl::OkStatus();
      return Wrong(absl::StrCat("no input binds the dtype ", operand.elem));
    }
    if (ParseDType(operand.elem)) return absl::OkStatus();
    const AttributeSpec* attribute = FindAttribute(spec_.attributes, operand.elem);
    if (attribute != nullptr && attribute->type == AttributeSpec::Type::kDType) {
      return absl::OkStatus();
    }
    return Wrong(absl::StrCat("want a dtype, a dtype variable or an attribute of type dtype, got ",
                              Quote(operand.elem)));
  }

  absl::Status CheckInput(const OperandSpec& operand) {
    if (!operand.over.empty()) return Wrong("'over' is for outputs");
    GC_RETURN_IF_ERROR(CheckElem(operand, true));
    KnownNames& names = NamesOf(operand);
    GC_RETURN_IF_ERROR(CheckChoices(operand.dims, names, 0));
    std::vector<Alternative> alternatives(1);
    GC_RETURN_IF_ERROR(AddAlternatives(operand.dims, 0, alternatives));
    std::optional<BoundNames> common;
    for (const Alternative& alternative : alternatives) {
      GC_ASSIGN_OR_RETURN(BoundNames bound, CheckInputDims(alternative, names));
      for (const std::string& name : bound.dims) AddOnce(SeenOf(operand), name);
      for (const std::string& name : bound.runs) AddOnce(SeenOf(operand), name);
      if (!common) common = bound;
      KeepCommon(common->dims, bound.dims);
      KeepCommon(common->runs, bound.runs);
    }
    for (const std::string& name : common->dims) AddOnce(names.dims, name);
    for (const std::string& name : common->runs) AddOnce(names.runs, name);
    singles_.operands.push_back(&operand);
    lists_.operands.push_back(&operand);
    return absl::OkStatus();
  }

  std::vector<std::string>& SeenOf(const OperandSpec& operand) {
    return operand.is_list ? seen_in_lists_ : seen_in_singles_;
  }

  absl::Status CheckChoices(const std::vector<Dim>& dims, const KnownNames& names, int depth) {
    for (const Dim& dim : dims) {
      if (dim.kind != Dim::Kind::kChoose) continue;
      if (depth >= kMaxChoiceDepth) return Wrong("choices stand too deep within one another");
      if (dim.yes.empty() || dim.no.empty())
        return Wrong("a choice needs dimensions on both sides");
      GC_RETURN_IF_ERROR(CheckKind(dim.expr, names, ValueKind::kTruth));
      GC_RETURN_IF_ERROR(CheckChoices(dim.yes, names, depth + 1));
      GC_RETURN_IF_ERROR(CheckChoices(dim.no, names, depth + 1));
    }
    return absl::OkStatus();
  }

  absl::Status CheckAxis(const std::string& name) const {
    const AttributeSpec* attribute = FindAttribute(spec_.attributes, name);
    if (attribute != nullptr && attribute->type == AttributeSpec::Type::kI64) {
      return absl::OkStatus();
    }
    return Wrong(absl::StrCat("want an attribute of type i64, got ", Quote(name)));
  }

  absl::Status CheckSwap(const Dim& dim, const KnownNames& names) const {
    GC_RETURN_IF_ERROR(CheckAxis(dim.swap_i));
    GC_RETURN_IF_ERROR(CheckAxis(dim.swap_j));
    if (Contains(names.runs, dim.name)) return absl::OkStatus();
    return Wrong(absl::StrCat("no input binds the run *", dim.name));
  }

  // "At most one @, and an anonymous * first", of inputs and outputs alike.
  absl::Status CheckForm(const Alternative& dims) const {
    int ats = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const Dim& dim = *dims[i];
      const bool anonymous = dim.kind == Dim::Kind::kRun && dim.name == "*";
      if (anonymous && i != 0) return Wrong("an anonymous '*' stands first");
      if (dim.kind != Dim::Kind::kExpr && !anonymous && !IsVariable(dim.name)) {
        return Wrong(absl::StrCat("no dimension or run can be called ", Quote(dim.name)));
      }
      if (dim.kind != Dim::Kind::kAt) continue;
      if (++ats > 1) return Wrong("an operand has at most one '@'");
      GC_RETURN_IF_ERROR(CheckAxis(dim.at));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<BoundNames> CheckInputDims(const Alternative& dims, const KnownNames& names) {
    GC_RETURN_IF_ERROR(CheckForm(dims));
    BoundNames bound;
    int unknown = 0;
    for (const Dim* dim : dims) {
      if (dim->kind == Dim::Kind::kSwap) GC_RETURN_IF_ERROR(CheckSwap(*dim, names));
      if (dim->kind == Dim::Kind::kAt) unknown = 0;
      if (dim->kind == Dim::Kind::kAt) bound.dims.push_back(dim->name);
      if (IsBareVariable(*dim)) bound.dims.push_back(dim->expr.name);
      if (dim->kind != Dim::Kind::kRun) continue;
      bound.runs.push_back(dim->name);
      if (!Contains(names.runs, dim->name) && ++unknown > 1) {
        return Wrong("two runs of unknown length stand only on either side of an '@'");
      }
    }
    return bound;
  }

  // Rule 4, and one meaning for each name.
  absl::Status CheckApart() const {
    for (const std::string& name : seen_in_lists_) {
      if (!Contains(seen_in_singles_, name)) continue;
      return Wrong(absl::StrCat("'", name, "' is bound by a list and by an operand that is none"));
    }
    for (const KnownNames* names : {&singles_, &lists_}) {
      for (const std::string& dim : names->dims) {
        if (Contains(names->runs, dim) || Contains(names->dtypes, dim)) {
          return Wrong(absl::StrCat("'", dim, "' is a dimension and something else"));
        }
      }
      for (const std::string& run : names->runs) {
        if (Contains(names->dtypes, run)) {
          return Wrong(absl::StrCat("'", run, "' is a run and a dtype"));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckLate(const OperandSpec& operand) {
    return ForEachDim(operand.dims, [&](const Dim& dim) {
      const bool late = dim.kind == Dim::Kind::kExpr && !IsBareVariable(dim);
      return late ? CheckKind(dim.expr, NamesOf(operand), ValueKind::kWhole) : absl::OkStatus();
    });
  }

  absl::Status CheckBuilt(const OperandSpec& operand) {
    GC_RETURN_IF_ERROR(CheckElem(operand, false));
    const KnownNames& names = NamesOf(operand);
    GC_RETURN_IF_ERROR(CheckChoices(operand.dims, names, 0));
    std::vector<Alternative> alternatives(1);
    GC_RETURN_IF_ERROR(AddAlternatives(operand.dims, 0, alternatives));
    for (const Alternative& dims : alternatives) GC_RETURN_IF_ERROR(CheckForm(dims));
    return ForEachDim(operand.dims, [&](const Dim& dim) { return CheckBuiltDim(dim, names); });
  }

  absl::Status CheckBuiltDim(const Dim& dim, const KnownNames& names) const {
    if (dim.kind == Dim::Kind::kExpr) return CheckKind(dim.expr, names, ValueKind::kWhole);
    if (dim.kind == Dim::Kind::kSwap) return CheckSwap(dim, names);
    const bool run = dim.kind == Dim::Kind::kRun;
    if (Contains(run ? names.runs : names.dims, dim.name)) return absl::OkStatus();
    return Wrong(absl::StrCat("no input binds ", run && dim.name != "*" ? "*" : "", dim.name));
  }

  absl::Status CheckOutput(const OperandSpec& operand) {
    if (operand.inout) return Wrong("'inout' is for inputs");
    const auto is_list = [](const OperandSpec& input) { return input.is_list; };
    if (operand.is_list && std::none_of(spec_.inputs.begin(), spec_.inputs.end(), is_list)) {
      return Wrong("a list of outputs needs a list of inputs");
    }
    GC_RETURN_IF_ERROR(CheckBuilt(operand));
    if (!operand.over.empty()) GC_RETURN_IF_ERROR(CheckOver(operand));
    singles_.operands.push_back(&operand);
    lists_.operands.push_back(&operand);
    return absl::OkStatus();
  }

  absl::Status CheckOver(const OperandSpec& operand) const {
    for (const OperandSpec& output : spec_.outputs) {
      if (&output != &operand && output.over == operand.over) {
        return Wrong(absl::StrCat("two outputs lie over '", operand.over, "'"));
      }
    }
    for (const OperandSpec& input : spec_.inputs) {
      if (input.name != operand.over) continue;
      if (input.inout) return Wrong(absl::StrCat("'", input.name, "' is returned itself"));
      if (input.is_list == operand.is_list) return absl::OkStatus();
      return Wrong("one of an output and the input under it is a list, the other is none");
    }
    return Wrong(absl::StrCat("no input is called ", Quote(operand.over)));
  }

  absl::Status CheckCondition(const Condition& condition) const {
    if (condition.expr) {
      if (!condition.variable.empty() || !condition.dtypes.empty()) {
        return Wrong("a condition is a domain or an expression, not both");
      }
      return CheckKind(*condition.expr, singles_, ValueKind::kTruth);
    }
    if (!Contains(singles_.dtypes, condition.variable)) {
      return Wrong(absl::StrCat("no input has the dtype ", Quote(condition.variable)));
    }
    if (condition.dtypes.empty()) return Wrong("a domain has at least one dtype");
    return condition.dtypes.size() <= kDTypeCount ? absl::OkStatus()
                                                  : Wrong("a dtype stands twice in a domain");
  }

  absl::Status CheckWhole(absl::string_view word, const std::optional<Expr>& expr) const {
    return expr ? At(word, CheckKind(*expr, singles_, ValueKind::kWhole)) : absl::OkStatus();
  }

  absl::Status CheckClauses(const Clauses& clauses) {
    GC_RETURN_IF_ERROR(CheckWhole("flops", clauses.flops));
    GC_RETURN_IF_ERROR(CheckWhole("bytes", clauses.bytes));
    KnownNames with_device = singles_;
    with_device.sm = true;
    if (clauses.when) {
      GC_RETURN_IF_ERROR(At("when", CheckKind(*clauses.when, with_device, ValueKind::kTruth)));
    }
    GC_RETURN_IF_ERROR(At("scratch", CheckScratch(clauses.scratch)));
    return CheckLaunched(clauses, clauses.scratch);
  }

  absl::Status CheckLaunched(const Clauses& clauses,
                             const std::vector<OperandSpec>& scratch) const {
    GC_RETURN_IF_ERROR(CheckWhole("shared", clauses.shared));
    GC_RETURN_IF_ERROR(At("grid", CheckGeometry(clauses.grid)));
    GC_RETURN_IF_ERROR(At("block", CheckGeometry(clauses.block)));
    GC_RETURN_IF_ERROR(At("cluster", CheckGeometry(clauses.cluster)));
    return At("params", CheckParams(clauses.params, scratch));
  }

  absl::Status CheckGeometry(const std::vector<Expr>& exprs) const {
    if (exprs.size() > kMaxGeometry) return TooMany("dimensions", exprs.size(), kMaxGeometry);
    for (const Expr& expr : exprs) {
      GC_RETURN_IF_ERROR(CheckKind(expr, singles_, ValueKind::kWhole));
    }
    return absl::OkStatus();
  }

  absl::Status CheckScratch(const std::vector<OperandSpec>& scratch) {
    if (scratch.size() > kMaxEntries) return TooMany("tensors", scratch.size(), kMaxEntries);
    for (std::size_t i = 0; i < scratch.size(); ++i) {
      const OperandSpec& operand = scratch[i];
      const auto same = [&](const OperandSpec& other) { return other.name == operand.name; };
      if (!IsFreeName(operand.name) || FindOperand(operand.name) != nullptr ||
          FindAttribute(spec_.attributes, operand.name) != nullptr ||
          std::any_of(scratch.begin(), scratch.begin() + i, same)) {
        return Wrong(absl::StrCat("no scratch can be called ", Quote(operand.name)));
      }
      if (operand.inout || operand.is_list || !operand.over.empty()) {
        return Wrong("scratch is one plain tensor: no inout, no list, no over");
      }
      GC_RETURN_IF_ERROR(At(operand, CheckBuilt(operand)));
    }
    return absl::OkStatus();
  }

  const OperandSpec* FindOperand(const std::string& name) const {
    for (const OperandSpec* operand : singles_.operands) {
      if (operand->name == name) return operand;
    }
    return nullptr;
  }

  absl::Status CheckParams(const std::vector<ParamSpec>& params,
                           const std::vector<OperandSpec>& scratch) const {
    if (params.size() > kMaxParams) return TooMany("parameters", params.size(), kMaxParams);
    for (const ParamSpec& param : params) {
      if (param.promise < 0) return Wrong("a promise is a number above 0");
      GC_RETURN_IF_ERROR(CheckParam(param, scratch));
    }
    return absl::OkStatus();
  }

  absl::Status CheckParam(const ParamSpec& param, const std::vector<OperandSpec>& scratch) const {
    if (param.kind == ParamSpec::Kind::kNull) return absl::OkStatus();
    if (param.kind == ParamSpec::Kind::kValue) return CheckValueParam(param);
    const OperandSpec* operand = FindOperand(param.name);
    for (const OperandSpec& tensor : scratch) {
      if (tensor.name == param.name) operand = &tensor;
    }
    if (operand == nullptr) return Wrong(absl::StrCat("no operand is called ", Quote(param.name)));
    const bool wants_list = param.kind != ParamSpec::Kind::kOperand;
    if (operand->is_list == wants_list) return absl::OkStatus();
    return Wrong(absl::StrCat("'", param.name, "' is ", operand->is_list ? "a list" : "no list"));
  }

  absl::Status CheckValueParam(const ParamSpec& param) const {
    if (!IsName(param.name) || IsReserved(param.name)) {
      return Wrong(absl::StrCat("no parameter can be called ", Quote(param.name)));
    }
    if (!param.expr) return Wrong(absl::StrCat("'", param.name, "' has no value"));
    constexpr absl::string_view kWhole[] = {"int", "unsigned", "int64", "uint64"};
    if (std::find(std::begin(kWhole), std::end(kWhole), param.ctype) != std::end(kWhole)) {
      return CheckKind(*param.expr, singles_, ValueKind::kWhole);
    }
    if (param.ctype == "bool") return CheckKind(*param.expr, singles_, ValueKind::kTruth);
    if (param.ctype != "float" && param.ctype != "double") {
      return Wrong(absl::StrCat("no parameter has the type ", Quote(param.ctype)));
    }
    GC_ASSIGN_OR_RETURN(const ValueKind kind, KindOf(*param.expr, singles_));
    return kind == ValueKind::kWhole ? absl::OkStatus()
                                     : CheckKind(*param.expr, singles_, ValueKind::kDouble);
  }

  absl::Status CheckVariants() {
    for (std::size_t i = 0; i < spec_.variants.size(); ++i) {
      const VariantSpec& variant = spec_.variants[i];
      if (!IsName(variant.name)) {
        return Wrong(absl::StrCat("no variant can be called ", Quote(variant.name)));
      }
      GC_RETURN_IF_ERROR(At(absl::StrCat("variant '", variant.name, "'"), CheckVariant(i)));
    }
    return absl::OkStatus();
  }

  absl::Status CheckVariant(std::size_t index) {
    const VariantSpec& variant = spec_.variants[index];
    if (variant.device_kind != "cpu" && variant.device_kind != "cuda") {
      return Wrong(
          absl::StrCat("want the device kind cpu or cuda, got ", Quote(variant.device_kind)));
    }
    for (std::size_t i = 0; i < index; ++i) {
      if (spec_.variants[i].name == variant.name &&
          spec_.variants[i].device_kind == variant.device_kind) {
        return Wrong(absl::StrCat("stands twice on ", variant.device_kind));
      }
    }
    if (variant.clauses.flops || variant.clauses.bytes) {
      return Wrong("flops and bytes belong to the kernel: they are the same for all variants");
    }
    return CheckClauses(variant.clauses);
  }

  const KernelSpec& spec_;
  // What expressions may use: outside of lists, and among the dimensions of lists.
  KnownNames singles_, lists_;
  std::vector<std::string> seen_in_singles_, seen_in_lists_;
};

}  // namespace

absl::Status Validate(const KernelSpec& spec) {
  return ValidateWords(spec).status();
}

absl::StatusOr<ClauseCheck> ValidateWords(const KernelSpec& words) {
  const auto annotated = [&words](const absl::Status& status) {
    return status.ok() ? status : Annotate(status, absl::StrCat("kernel ", Quote(words.name)));
  };
  auto validator = std::make_shared<Validator>(words);
  GC_RETURN_IF_ERROR(annotated(validator->Run()));
  return [validator, annotated](const Clauses& clauses) {
    return annotated(validator->RunLaunch(clauses));
  };
}

}  // namespace gridclock
