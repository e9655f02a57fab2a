#include "client/cli/verify_flags.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "proto/codec/values.h"
#include "proto/types/program.h"

namespace gridclock::cli {
namespace {

absl::Status TakeKernel(const Client& client, const VerifyFlags& flags, v1::Reference* out) {
  GC_ASSIGN_OR_RETURN(const KernelSpec spec, client.GetKernel(flags.verify));
  const auto with = SortWords(spec, flags.with);
  if (!with.ok()) return UsageError(absl::StrCat("--verify-with: ", with.status().message()));
  out->set_kernel(flags.verify);
  for (const NamedAttribute& given : with->attributes) {
    Encode(given.value, &(*out->mutable_attributes())[given.name]);
  }
  return absl::OkStatus();
}

std::vector<std::string> OutputNames(const KernelSpec& spec) {
  std::vector<std::string> names;
  for (const OperandSpec& input : spec.inputs) {
    if (input.inout) names.push_back(input.name);
  }
  for (const OperandSpec& output : spec.outputs) names.push_back(output.name);
  return names;
}

// Those that are given, then those of the call that the other kernel has too.
std::vector<NamedAttribute> AttributesFor(const KernelSpec& spec, std::vector<NamedAttribute> given,
                                          const RunCall& call) {
  for (const NamedAttribute& own : call.attributes) {
    const auto named = [&](const auto& one) { return one.name == own.name; };
    const bool has = std::any_of(spec.attributes.begin(), spec.attributes.end(), named) &&
                     std::none_of(given.begin(), given.end(), named);
    if (has) given.push_back(own);
  }
  return given;
}

// The same inputs, in order, for another kernel of a file.
absl::StatusOr<RunCall> CallOf(const Subject& other, const VerifyFlags& flags,
                               const RunCall& call) {
  const KernelSpec& spec = other.spec;
  if (spec.inputs.size() != call.inputs.size()) {
    return UsageError(absl::StrCat("--verify: '", spec.name, "' takes ", spec.inputs.size(),
                                   " inputs; want ", call.inputs.size()));
  }
  const auto with = SortWords(spec, flags.with);
  if (!with.ok()) return UsageError(absl::StrCat("--verify-with: ", with.status().message()));
  RunCall out;
  other.NameIn(&out);
  out.device = call.device;
  out.timeout = call.timeout;
  out.kernel_time_limit = call.kernel_time_limit;
  out.inputs = call.inputs;
  for (std::size_t i = 0; i < out.inputs.size(); ++i) out.inputs[i].name = spec.inputs[i].name;
  out.attributes = AttributesFor(spec, with->attributes, call);
  return out;
}

// What another kernel of a file gives of the same inputs.
absl::StatusOr<Inputs> MakeExpected(const Session& session, const Client& client,
                                    const Subject& subject, const VerifyFlags& flags,
                                    const RunCall& call) {
  GC_ASSIGN_OR_RETURN(const Subject other, FindSubject(session, client, flags.verify, {}, {}));
  GC_ASSIGN_OR_RETURN(const RunCall other_call, CallOf(other, flags, call));
  auto ran = client.Run(other_call);
  if (!ran.ok()) return Annotate(ran.status(), flags.verify);
  const auto result = std::make_shared<const RunResult>(*std::move(ran));
  const std::vector<std::string> names = OutputNames(subject.spec);
  if (names.size() != result->outputs.size()) {
    return UsageError(absl::StrCat("--verify: '", other.spec.name, "' gives ",
                                   result->outputs.size(), " outputs; want ", names.size()));
  }
  Inputs out;
  out.keepers.push_back(result);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const CallOutput& output = result->outputs[i];
    CallInput& input = out.inputs.emplace_back();
    input.name = kExpectedPrefix + names[i];
    input.value = output.value;
    std::size_t at = 0;
    for (const TensorSpec& tensor : output.value.tensors) {
      input.bytes.push_back(output.bytes.subspan(at, static_cast<std::size_t>(Bytes(tensor))));
      at += input.bytes.back().size();
    }
  }
  return out;
}

absl::StatusOr<Inputs> LoadExpected(const Subject& subject, const std::string& text) {
  const std::size_t at = text.find('=');
  const std::vector<std::string> names = OutputNames(subject.spec);
  if (names.size() != 1) {
    return UsageError(absl::StrCat("--verify=", text, ": for kernels of one output; '",
                                   subject.spec.name, "' has ", names.size()));
  }
  if (at != std::string::npos && text.substr(0, at) != names[0]) {
    return UsageError(absl::StrCat("--verify: the output is called '", names[0], "', got '",
                                   text.substr(0, at), "'"));
  }
  GC_ASSIGN_OR_RETURN(Source source,
                      ParseSource(at == std::string::npos ? text : text.substr(at + 1)));
  const std::string name = kExpectedPrefix + names[0];
  KernelSpec spec;  // It has the one operand that is to be loaded.
  spec.inputs.push_back({.name = name, .elem = "", .dims = {}, .over = ""});
  Words words;
  words.operands.push_back({name, {std::move(source)}});
  return MakeInputs(spec, words, {}, {.make_on = MakeOn::kClient});
}

}  // namespace

void AddVerifyFlags(CLI::App& app, VerifyFlags* flags) {
  app.add_flag("--verify{reference}", flags->verify);
  app.add_option("--verify-with", flags->with)->allow_extra_args(false);
}

absl::StatusOr<Inputs> AddVerification(const Session& session, const Client& client,
                                       const Subject& subject, const VerifyFlags& flags,
                                       RunCall* call) {
  call->verify = !flags.verify.empty();
  if (!call->verify) return Inputs{};
  const bool own = flags.verify == VerifyFlags::kOwn;
  if (!subject.program.has_value()) {
    if (own) return Inputs{};
    return UsageError(
        "--verify=REFERENCE: for kernels of a file; one of the catalogue has its own");
  }
  if (own) {
    return UsageError(
        "--verify: say what a kernel of a file is compared with, as --verify=softmax or "
        "--verify=expected.npy");
  }
  const bool code = ParseCodeTarget(flags.verify).has_value();
  const bool file =
      absl::StrContains(flags.verify, ".npy") || absl::StrContains(flags.verify, ".npz");
  call->reference.emplace();
  if (!code && !file) {
    GC_RETURN_IF_ERROR(TakeKernel(client, flags, &*call->reference));
    return Inputs{};
  }
  GC_ASSIGN_OR_RETURN(Inputs expected, code ? MakeExpected(session, client, subject, flags, *call)
                                            : LoadExpected(subject, flags.verify));
  for (CallInput& input : expected.inputs) call->inputs.push_back(std::move(input));
  return expected;
}

}  // namespace gridclock::cli
