// watch: compiles, checks and times a kernel of a file again whenever the file is saved.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "client/cli/check.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/measure_flags.h"
#include "client/cli/modules.h"
#include "client/cli/progress.h"
#include "client/cli/show.h"
#include "client/cli/subject.h"
#include "client/cli/watch_files.h"

namespace gridclock::cli {
namespace {

struct WatchOptions {
  CallFlags call;
  CodeFlags code;
  CheckFlags check;
  std::string budget = "500ms";
  int times = 0;  // 0: until it is interrupted.
};

// What the last save took, if it could be measured and the time is to be trusted.
using LastNs = std::optional<double>;

// What the rounds before left.
struct Before {
  LastNs ns;
  std::string compiled;  // The module that was made for them; empty if others may have it too.
};

// Nothing is held against a time that may be wrong.
LastNs LastOf(const v1::RunSummary& summary) {
  const auto& flags = summary.flags();
  const bool wrong = std::any_of(flags.begin(), flags.end(), [](int flag) {
    return flag == v1::IMPOSSIBLE || flag == v1::SUSPECT;
  });
  if (wrong) return std::nullopt;
  return summary.timing().statistics().median_ns();
}

absl::StatusOr<v1::RunSummary> Measure(const Session& session, const Client& client,
                                       const Subject& subject, const WatchOptions& options) {
  CallFlags flags = options.call;
  flags.words = subject.Renamed(flags.words);
  GC_ASSIGN_OR_RETURN(MadeCall made, MakeCall(subject.spec, flags, std::nullopt));
  RunCall& call = made.call;
  subject.NameIn(&call);
  GC_ASSIGN_OR_RETURN(call.timeout, session.Timeout());
  GC_ASSIGN_OR_RETURN(call.measure.emplace().budget, ParseSeconds(options.budget));
  DiscardOutputs(subject.spec, &call);
  ProgressLine line(session.console);
  GC_ASSIGN_OR_RETURN(RunResult result, RunWithProgress(client, call, subject.spec.name, line));
  return std::move(result.summary);
}

// A hundred saves are not to leave a hundred modules, whether they could be run or not.
void DeleteReplaced(const Session& session, const Client& client, const UsedModule& used,
                    Before* before) {
  if (used.id.empty() || used.id == before->compiled) return;
  const std::string replaced = std::exchange(before->compiled, used.compiled ? used.id : "");
  if (replaced.empty()) return;
  const absl::Status deleted = client.DeleteModule(replaced);
  if (deleted.ok() || absl::IsNotFound(deleted)) return;
  session.console.err << "module " << replaced << " is still there: " << Escape(deleted.message())
                      << std::endl;
}

// The exit code of one round.
absl::StatusOr<int> Round(const Session& session, const Client& client, const WatchOptions& options,
                          Before* before) {
  int code = kOk;
  UsedModule used;
  const absl::StatusOr<Subject> found = FindSubject(session, client, options.call.kernel,
                                                    options.code, TensorWords(options.call), &used);
  DeleteReplaced(session, client, used, before);
  GC_RETURN_IF_ERROR(found.status());
  const Subject& subject = *found;
  if (!options.check.against.empty()) {
    GC_ASSIGN_OR_RETURN(const CheckResult checked,
                        Check(session, client, subject, options.call, options.check));
    session.console.out << CheckText(checked, session.console.terminal);
    if (!checked.ok()) code = kMismatch;
  }
  GC_ASSIGN_OR_RETURN(const v1::RunSummary summary, Measure(session, client, subject, options));
  session.console.out << subject.spec.name << ": "
                      << TimeText(summary, before->ns, session.console.terminal) << std::endl;
  before->ns = LastOf(summary);
  return code;
}

// The file, and those that it includes and that are sent with it. Where one of them cannot be read
// its correction is waited for, and so is that of the others.
std::vector<std::string> FilesOf(const std::string& file) {
  if (!absl::EndsWith(file, ".cu")) return {file};
  v1::CompileRequest request;
  std::vector<std::string> files;
  ReadSource(file, &request, &files).IgnoreError();
  return files;
}

// What no other text of the file can mend.
bool IsOfTheServer(const absl::Status& error) {
  const std::string reason = DetailsOf(error).reason;
  return IsUnreachable(error) || absl::IsUnauthenticated(error) ||
         absl::IsPermissionDenied(error) || reason == "SUBMIT_OFF" || reason == "NO_TOOLCHAIN";
}

absl::StatusOr<int> Watch(const Session& session, const WatchOptions& options) {
  if (session.options.json) {
    return UsageError("--json: watch is for people; want gridclock check or bench with --json");
  }
  const auto target = ParseCodeTarget(options.call.kernel);
  if (!target.has_value()) {
    return UsageError(absl::StrCat("want a file: k.cu:ENTRY, got '", options.call.kernel, "'"));
  }
  // A name that is mistyped would be waited for without end.
  if (std::error_code error; !std::filesystem::is_regular_file(target->file, error)) {
    return absl::NotFoundError(absl::StrCat("no file '", target->file, "' to watch"));
  }
  GC_ASSIGN_OR_RETURN(const auto client, session.Connect());
  Before before;
  int code = kOk;
  bool heard = false;  // Of a server that takes code.
  for (int round = 1;; ++round) {
    GC_ASSIGN_OR_RETURN(const auto watch, FileWatch::Create(FilesOf(target->file)));
    const absl::StatusOr<int> round_code = Round(session, *client, options, &before);
    // A server that went away may come back; one that was never there is told of at once.
    if (!heard && !round_code.ok() && IsOfTheServer(round_code.status())) return round_code;
    heard |= round_code.ok() || !DetailsOf(round_code.status()).reason.empty();
    code = round_code.ok() ? *round_code : Report(session, round_code.status());
    if (round == options.times) return code;
    session.console.err << "waiting for a change of " << target->file << std::endl;
    GC_RETURN_IF_ERROR(watch->WaitForChange().status());
    session.console.out << absl::FormatTime("%H:%M:%S", absl::Now(), absl::LocalTimeZone()) << "  "
                        << std::flush;
  }
}

}  // namespace

CommandEntry AddWatch(CLI::App& program) {
  auto* app = program.add_subcommand("watch");
  const auto options = std::make_shared<WatchOptions>();
  AddCallFlags(*app, &options->call);
  AddCodeFlags(*app, &options->code);
  app->add_option("--against", options->check.against);
  AddCheckFlags(*app, &options->check);
  app->add_option("--budget", options->budget);
  app->add_option("--times", options->times)->check(CLI::Range(0, 1'000'000));
  return {app, [options](const Session& session) { return Watch(session, *options); }};
}

}  // namespace gridclock::cli
