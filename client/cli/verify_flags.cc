#include "client/cli/verify_flags.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/cli/show.h"
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

// Another kernel of a file: the server runs it beside, on the same values.
absl::Status TakeProgram(const Session& session, const Client& client, const VerifyFlags& flags,
                         v1::Reference* out) {
  GC_ASSIGN_OR_RETURN(const Subject other, FindSubject(session, client, flags.verify, {}, {}));
  const auto with = SortWords(other.spec, flags.with);
  if (!with.ok()) return UsageError(absl::StrCat("--verify-with: ", with.status().message()));
  *out->mutable_program() = *other.program;
  for (const NamedAttribute& given : with->attributes) {
    Encode(given.value, &(*out->mutable_attributes())[given.name]);
  }
  return absl::OkStatus();
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

absl::Status CheckVerifyFlags(const VerifyFlags& flags) {
  const std::string& other = flags.verify;
  const bool has_attributes = !other.empty() && other != VerifyFlags::kOwn && !NamesFile(other);
  if (flags.with.empty() || has_attributes) return absl::OkStatus();
  return UsageError("--verify-with: want --verify=REFERENCE too, the kernel whose attribute it is");
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
  call->reference.emplace();
  if (!NamesFile(flags.verify)) {
    GC_RETURN_IF_ERROR(code ? TakeProgram(session, client, flags, &*call->reference)
                            : TakeKernel(client, flags, &*call->reference));
    return Inputs{};
  }
  GC_ASSIGN_OR_RETURN(Inputs expected, LoadExpected(subject, flags.verify));
  for (CallInput& input : expected.inputs) call->inputs.push_back(std::move(input));
  return expected;
}

int VerifiedCode(const Session& session, const VerifyFlags& flags, const v1::RunSummary& summary) {
  if (!Passed(summary.verification())) return kMismatch;
  absl::string_view doubt;
  if (Has(summary, v1::UNVERIFIED) && !IsTimeAloneInDoubt(summary)) {
    doubt = "was run and could not be verified (UNVERIFIED): its values, or its time, may be wrong";
  } else if (HasNothingToCompare(summary)) {
    doubt = "has empty outputs, so nothing was compared: want a larger shape";
  } else if (Has(summary, v1::IMPOSSIBLE) && !Has(summary, v1::TEACHING_METHOD)) {
    doubt = "was faster than its device can be (IMPOSSIBLE): its time is not that of its work";
  }
  if (flags.verify.empty() || doubt.empty()) return kOk;
  session.console.err << "gridclock: --verify: " << Escape(summary.kernel())
                      << (summary.variant().empty() ? "" : ".") << Escape(summary.variant()) << " "
                      << doubt << "\n";
  return kFailed;
}

}  // namespace gridclock::cli
