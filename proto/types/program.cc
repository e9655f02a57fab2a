#include "proto/types/program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/types/expression_check.h"
#include "proto/types/quote.h"
#include "proto/types/validate.h"

namespace gridclock {

absl::Status CheckSymbol(absl::string_view field, absl::string_view name) {
  if (!name.empty() && name.size() <= kLongestSymbol) return absl::OkStatus();
  return InvalidField(
      field, absl::StrCat("want a name of 1 to ", kLongestSymbol, " bytes, got ", name.size()));
}

bool HasModule(const JobProgram& program, absl::string_view id) {
  return std::any_of(program.modules.begin(), program.modules.end(),
                     [&](const ProgramModule& module) { return module.id == id; });
}

namespace {

// Names, numbers and operators in the clauses of all launches.
constexpr std::size_t kMostTerms = 16 * 1024;

absl::Status CheckCount(absl::string_view what, std::size_t got, std::size_t least,
                        std::size_t most) {
  if (got >= least && got <= most) return absl::OkStatus();
  return InvalidField(absl::StrCat("program.", what),
                      absl::StrCat("want ", least, " to ", most, ", got ", got));
}

void Default(const std::vector<Expr>& from, std::vector<Expr>* to) {
  if (to->empty()) *to = from;
}

// The clause that a launch has and must not have; "" if there is none.
absl::string_view OwnOfWords(const Clauses& clauses) {
  if (clauses.flops) return "flops";
  if (clauses.bytes) return "bytes";
  if (clauses.when) return "when";
  return clauses.scratch.empty() ? "" : "scratch";
}

void AddDefaults(const Clauses& words, Clauses* clauses) {
  Default(words.grid, &clauses->grid);
  Default(words.block, &clauses->block);
  Default(words.cluster, &clauses->cluster);
  if (!clauses->shared) clauses->shared = words.shared;
  if (clauses->params.empty()) clauses->params = words.params;
}

absl::Status CompleteClauses(const KernelSpec& words, const ClauseCheck& check, Clauses* clauses) {
  if (const absl::string_view word = OwnOfWords(*clauses); !word.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", word, "' is of all launches together: it stands in the program's words"));
  }
  GC_RETURN_IF_ERROR(check(*clauses));
  AddDefaults(words.clauses, clauses);
  for (const auto& [word, exprs] :
       {std::pair("grid", &clauses->grid), {"block", &clauses->block}}) {
    if (!exprs->empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("no '", word, "': want the clause, as in \"", word,
                     " (256)\", in the words of the launch or in those of the program"));
  }
  return absl::OkStatus();
}

absl::Status CompleteLaunch(const KernelSpec& words, const ClauseCheck& check, std::size_t index,
                            ProgramLaunch* launch) {
  const std::string place = absl::StrCat("program.launches[", index, "]");
  GC_RETURN_IF_ERROR(CheckSymbol(absl::StrCat(place, ".module"), launch->module));
  GC_RETURN_IF_ERROR(CheckSymbol(absl::StrCat(place, ".entry"), launch->entry));
  const absl::Status status = CompleteClauses(words, check, &launch->clauses);
  if (status.ok()) return status;
  return WithField(Annotate(status, absl::StrCat("launches[", index, "]")),
                   absl::StrCat(place, ".words"));
}

std::size_t CountTerms(const Expr& expr) {
  std::size_t terms = 1;
  for (const Expr& arg : expr.args) terms += CountTerms(arg);
  return terms;
}

std::size_t CountTerms(const Clauses& clauses) {
  std::size_t terms = clauses.shared ? CountTerms(*clauses.shared) : 0;
  for (const std::vector<Expr>* exprs : {&clauses.grid, &clauses.block, &clauses.cluster}) {
    for (const Expr& expr : *exprs) terms += CountTerms(expr);
  }
  for (const ParamSpec& param : clauses.params) terms += param.expr ? CountTerms(*param.expr) : 1;
  return terms;
}

// What every launch has of the words is kept with each.
absl::Status CheckTerms(const std::vector<ProgramLaunch>& launches) {
  std::size_t terms = 0;
  for (const ProgramLaunch& launch : launches) terms += CountTerms(launch.clauses);
  if (terms <= kMostTerms) return absl::OkStatus();
  return InvalidField("program.launches",
                      absl::StrCat("want at most ", kMostTerms,
                                   " names, numbers and operators in the clauses of all launches, "
                                   "with those that they have of the program's words, got ",
                                   terms));
}

bool IsSource(const KernelSpec& words, const std::string& name) {
  if (FindAttribute(words.attributes, name) != nullptr) return true;
  return std::any_of(words.inputs.begin(), words.inputs.end(), [&](const OperandSpec& input) {
    return input.name == name && !input.is_list;
  });
}

absl::Status CheckGlobal(const Program& program, std::size_t index) {
  const ProgramGlobal& global = program.globals[index];
  const std::string place = absl::StrCat("program.globals[", index, "]");
  GC_RETURN_IF_ERROR(CheckSymbol(absl::StrCat(place, ".name"), global.name));
  if (!IsSource(program.words, global.from)) {
    return InvalidField(
        absl::StrCat(place, ".from"),
        absl::StrCat("want an attribute or an input of one tensor of the words, got ",
                     Quote(global.from)));
  }
  const auto launched = [&](const ProgramLaunch& launch) { return launch.module == global.module; };
  if (std::none_of(program.launches.begin(), program.launches.end(), launched)) {
    return InvalidField(absl::StrCat(place, ".module"),
                        absl::StrCat("want the module of a launch, got ", Quote(global.module)));
  }
  const auto same = [&](const ProgramGlobal& other) {
    return other.module == global.module && other.name == global.name;
  };
  if (std::any_of(program.globals.begin(), program.globals.begin() + index, same)) {
    return InvalidField(absl::StrCat(place, ".name"), absl::StrCat("want each variable once, got ",
                                                                   Quote(global.name), " again"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Program> CompleteProgram(Program program) {
  GC_RETURN_IF_ERROR(CheckCount("launches", program.launches.size(), 1, kMostLaunches));
  GC_RETURN_IF_ERROR(CheckCount("globals", program.globals.size(), 0, kMostGlobals));
  const absl::StatusOr<ClauseCheck> check = ValidateWords(program.words);
  if (!check.ok()) return WithField(check.status(), "program.words");
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    GC_RETURN_IF_ERROR(CompleteLaunch(program.words, *check, i, &program.launches[i]));
  }
  GC_RETURN_IF_ERROR(CheckTerms(program.launches));
  for (std::size_t i = 0; i < program.globals.size(); ++i) {
    GC_RETURN_IF_ERROR(CheckGlobal(program, i));
  }
  return program;
}

}  // namespace gridclock
