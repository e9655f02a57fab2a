// check: a kernel of a file, or a variant, held against a kernel of the catalogue.
#include <memory>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "client/cli/check.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/measure_flags.h"
#include "client/cli/subject.h"

namespace gridclock::cli {
namespace {

struct CheckOptions {
  CallFlags call;
  CodeFlags code;
  CheckFlags check;
};

absl::StatusOr<int> RunCheck(const Session& session, const CheckOptions& options) {
  GC_ASSIGN_OR_RETURN(const auto client, session.Connect());
  GC_ASSIGN_OR_RETURN(const Subject subject, FindSubject(session, *client, options.call.kernel,
                                                         options.code, TensorWords(options.call)));
  GC_ASSIGN_OR_RETURN(const CheckResult result,
                      Check(session, *client, subject, options.call, options.check));
  if (session.options.json) {
    session.console.out << Dump(ToJson(result)) << "\n";
  } else {
    session.console.out << CheckText(result, session.console.terminal);
  }
  return result.ok() ? kOk : kMismatch;
}

}  // namespace

CommandEntry AddCheck(CLI::App& program) {
  auto* app = program.add_subcommand("check");
  const auto options = std::make_shared<CheckOptions>();
  AddCallFlags(*app, &options->call);
  AddCodeFlags(*app, &options->code);
  app->add_option("--against", options->check.against)->required();
  AddCheckFlags(*app, &options->check);
  return {app, [options](const Session& session) { return RunCheck(session, *options); }};
}

}  // namespace gridclock::cli
