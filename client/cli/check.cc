#include "client/cli/check.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "client/cli/inputs.h"
#include "client/cli/progress.h"
#include "client/cli/show.h"
#include "client/cli/terminal.h"

namespace gridclock::cli {
namespace {

std::string InputNames(const KernelSpec& spec) {
  return absl::StrJoin(spec.inputs, ", ",
                       [](std::string* out, const OperandSpec& input) { out->append(input.name); });
}

// The names that the reference has for the inputs of `spec`: the same ones if it has them all, else
// in order.
absl::StatusOr<std::vector<std::string>> ReferenceNames(const KernelSpec& spec,
                                                        const KernelSpec& reference) {
  if (spec.inputs.size() != reference.inputs.size()) {
    return UsageError(absl::StrCat("'", spec.name, "' takes ", InputNames(spec), " and '",
                                   reference.name, "' takes ", InputNames(reference),
                                   ": want as many inputs of both"));
  }
  const auto has = [&](const OperandSpec& input) {
    return std::any_of(reference.inputs.begin(), reference.inputs.end(),
                       [&](const OperandSpec& other) { return other.name == input.name; });
  };
  const bool same = std::all_of(spec.inputs.begin(), spec.inputs.end(), has);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    names.push_back(same ? spec.inputs[i].name : reference.inputs[i].name);
  }
  return names;
}

// The call of the reference on the inputs of `call`, and the attributes that both have.
absl::StatusOr<RunCall> ReferenceCall(const RunCall& call, const KernelSpec& spec,
                                      const KernelSpec& reference, const CheckFlags& flags) {
  GC_ASSIGN_OR_RETURN(const std::vector<std::string> names, ReferenceNames(spec, reference));
  const auto with = SortWords(reference, flags.with);
  if (!with.ok()) return UsageError(absl::StrCat("--with: ", with.status().message()));
  RunCall out;
  const KernelName name = ParseKernelName(flags.against);
  out.kernel = name.kernel;
  out.variant = name.variant;
  out.device = call.device;
  out.timeout = call.timeout;
  out.verify = true;
  out.inputs = call.inputs;
  for (std::size_t i = 0; i < out.inputs.size(); ++i) out.inputs[i].name = names[i];
  out.attributes = with->attributes;
  for (const NamedAttribute& given : call.attributes) {
    const auto named = [&](const auto& one) { return one.name == given.name; };
    const bool has = std::any_of(reference.attributes.begin(), reference.attributes.end(), named) &&
                     std::none_of(out.attributes.begin(), out.attributes.end(), named);
    if (has) out.attributes.push_back(given);
  }
  return out;
}

absl::Status CheckReference(const v1::RunSummary& summary, const std::string& against) {
  if (summary.verification().mismatches() != 0) {
    return absl::InternalError(absl::StrCat("'", against, "' itself differs from its reference: ",
                                            MismatchesText(summary.verification(), "; ")));
  }
  if (Has(summary, v1::UNVERIFIED)) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", against,
                     "' itself could not be verified on these inputs, so they tell "
                     "nothing: want values of ordinary size"));
  }
  return absl::OkStatus();
}

// The reference's outputs beside `mine`: by name if it has all of the names, else in order.
std::vector<const CallOutput*> PairedWith(const std::vector<CallOutput>& mine,
                                          const std::vector<CallOutput>& theirs) {
  std::vector<const CallOutput*> by_name, in_order;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    in_order.push_back(&theirs[i]);
    const auto same = std::find_if(theirs.begin(), theirs.end(), [&](const CallOutput& output) {
      return output.name == mine[i].name;
    });
    if (same != theirs.end()) by_name.push_back(&*same);
  }
  return by_name.size() == mine.size() ? by_name : in_order;
}

absl::Status Round(const Session& session, const Client& client, const Subject& subject,
                   const KernelSpec& reference, const CallFlags& call_flags,
                   const CheckFlags& flags, CheckResult* result) {
  GC_ASSIGN_OR_RETURN(MadeCall made, MakeCall(subject.spec, call_flags, std::nullopt));
  RunCall& call = made.call;
  subject.NameIn(&call);
  GC_ASSIGN_OR_RETURN(call.timeout, session.Timeout());
  GC_ASSIGN_OR_RETURN(const RunCall wanted, ReferenceCall(call, subject.spec, reference, flags));
  ProgressLine line(session.console);
  GC_ASSIGN_OR_RETURN(const RunResult got, RunWithProgress(client, call, subject.spec.name, line));
  GC_ASSIGN_OR_RETURN(const RunResult want, RunWithProgress(client, wanted, flags.against, line));
  GC_RETURN_IF_ERROR(CheckReference(want.summary, flags.against));
  result->device = got.summary.device();
  return CompareOutputs(got, want, flags, result);
}

std::string TextOf(const OperandValue& value) {
  return absl::StrJoin(value.tensors, " ", [](std::string* out, const TensorSpec& tensor) {
    absl::StrAppend(out, ToText(tensor));
  });
}

}  // namespace

absl::Status CompareOutputs(const RunResult& got, const RunResult& want, const CheckFlags& flags,
                            CheckResult* result) {
  if (got.outputs.size() != want.outputs.size()) {
    return UsageError(absl::StrCat("it gives ", got.outputs.size(), " outputs, '", flags.against,
                                   "' gives ", want.outputs.size()));
  }
  const std::vector<const CallOutput*> paired = PairedWith(got.outputs, want.outputs);
  result->outputs.resize(got.outputs.size());
  for (std::size_t i = 0; i < got.outputs.size(); ++i) {
    const CallOutput &mine = got.outputs[i], &theirs = *paired[i];
    if (!(mine.value == theirs.value)) {
      return UsageError(absl::StrCat("output '", mine.name, "' and '", theirs.name, "' of '",
                                     flags.against, "' have other shapes or dtypes: want ",
                                     TextOf(theirs.value), ", got ", TextOf(mine.value)));
    }
    CheckedOutput& out = result->outputs[i];
    out.name = mine.name;
    std::size_t at = 0;
    for (const TensorSpec& tensor : mine.value.tensors) {
      out.tolerance = flags.tolerance.value_or(ToleranceOf(tensor.dtype));
      const auto size = static_cast<std::size_t>(Bytes(tensor));
      out.difference.Add(Compare(tensor, mine.bytes.subspan(at, size),
                                 theirs.bytes.subspan(at, size), out.tolerance));
      at += size;
    }
  }
  return absl::OkStatus();
}

void AddCheckFlags(CLI::App& app, CheckFlags* flags) {
  app.add_option("--with", flags->with)->allow_extra_args(false);
  app.add_option("--rounds", flags->rounds)->check(CLI::Range(1, 1000));
  app.add_option("--tolerance", flags->tolerance)->check(Between(0.0, 1.0));
}

bool CheckResult::ok() const {
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const CheckedOutput& output) { return output.difference.mismatches == 0; });
}

absl::StatusOr<CheckResult> Check(const Session& session, const Client& client,
                                  const Subject& subject, const CallFlags& call,
                                  const CheckFlags& flags) {
  GC_ASSIGN_OR_RETURN(const KernelSpec reference,
                      client.GetKernel(ParseKernelName(flags.against).kernel));
  CheckResult result;
  result.against = flags.against;
  result.rounds = flags.rounds;
  result.seed = call.seed.has_value() ? *call.seed : std::random_device{}();
  CallFlags round = call;
  round.words = subject.Renamed(call.words);
  for (int i = 0; i < flags.rounds; ++i) {
    // Inputs of one round take the seeds behind its own.
    constexpr std::uint64_t kSeedsOfRound = 1000;
    round.seed = result.seed + kSeedsOfRound * static_cast<std::uint64_t>(i);
    GC_RETURN_IF_ERROR(Round(session, client, subject, reference, round, flags, &result));
  }
  const bool empty =
      std::all_of(result.outputs.begin(), result.outputs.end(),
                  [](const CheckedOutput& output) { return output.difference.values == 0; });
  if (empty) {
    return absl::FailedPreconditionError(
        "the outputs are empty, so nothing was compared: want a larger shape");
  }
  return result;
}

std::string CheckText(const CheckResult& result, const Terminal& terminal) {
  std::string out;
  for (const CheckedOutput& output : result.outputs) {
    const Difference& found = output.difference;
    const bool good = found.mismatches == 0;
    const std::string verdict = good
                                    ? absl::StrCat(Paint(terminal, Ink::kGreen, "same"), " as ")
                                    : absl::StrCat(Paint(terminal, Ink::kRed, "DIFFERS"), " from ");
    absl::StrAppend(&out, Escape(output.name), ": ", verdict, result.against,
                    absl::StrFormat(" in %d of %d values, %d rounds, seed %d, on %s\n",
                                    good ? found.values : found.mismatches, found.values,
                                    result.rounds, result.seed, Escape(result.device)),
                    absl::StrFormat("  max abs %.3g, max rel %.3g, max ULP %d, tolerance %.3g\n",
                                    found.max_abs, found.max_rel, found.max_ulp, output.tolerance));
    if (found.nan_mismatches > 0) {
      absl::StrAppend(&out, "  NaN on one side alone: ", found.nan_mismatches, "\n");
    }
    for (const std::string& text : found.first) absl::StrAppend(&out, "  at ", text, "\n");
  }
  return out;
}

Json ToJson(const CheckResult& result) {
  Json outputs = Json::array();
  for (const CheckedOutput& output : result.outputs) {
    const Difference& found = output.difference;
    outputs.push_back({{"name", output.name},
                       {"values", found.values},
                       {"mismatches", found.mismatches},
                       {"nan_mismatches", found.nan_mismatches},
                       {"max_abs", found.max_abs},
                       {"max_rel", found.max_rel},
                       {"max_ulp", found.max_ulp},
                       {"tolerance", output.tolerance},
                       {"first", found.first}});
  }
  return {{"against", result.against}, {"ok", result.ok()},   {"device", result.device},
          {"rounds", result.rounds},   {"seed", result.seed}, {"outputs", outputs}};
}

}  // namespace gridclock::cli
