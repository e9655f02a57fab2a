#include "client/cli/app.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/cmd_admin.h"
#include "client/cli/cmd_modules.h"
#include "client/cli/cmd_top.h"
#include "client/cli/command.h"
#include "client/cli/help.h"
#include "proto/types/near_names.h"
#include "proto/types/quote.h"

#ifndef GRIDCLOCK_VERSION
#define GRIDCLOCK_VERSION "unknown"
#endif

namespace gridclock::cli {
namespace {

constexpr absl::string_view kEnvironment = "GRIDCLOCK_";

void AddGlobals(CLI::App& program, GlobalOptions& options) {
  program.add_option("--server", options.server)->envname("GRIDCLOCK_SERVER");
  program.add_option("--token-file", options.token_file)->envname("GRIDCLOCK_TOKEN_FILE");
  program.add_flag("--tls", options.tls)->envname("GRIDCLOCK_TLS");
  program.add_option("--tls-ca", options.tls_ca)->envname("GRIDCLOCK_TLS_CA");
  program.add_option("--tls-cert", options.tls_cert)->envname("GRIDCLOCK_TLS_CERT");
  program.add_option("--tls-key", options.tls_key)->envname("GRIDCLOCK_TLS_KEY");
  program.add_option("--tls-name", options.tls_name)->envname("GRIDCLOCK_TLS_NAME");
  program.add_option("--timeout", options.timeout);
  program.add_flag("--insecure-token", options.insecure_token);
  program.add_flag("--json", options.json);
}

std::vector<CommandEntry> AddCommands(CLI::App& program) {
  return {AddList(program),  AddDescribe(program), AddDevices(program), AddDoctor(program),
          AddRun(program),   AddBench(program),    AddLoad(program),    AddCompile(program),
          AddCheck(program), AddWatch(program),    AddModules(program), AddWait(program),
          AddPing(program),  AddTop(program),      AddAdmin(program)};
}

// Options that all words after them belong to would swallow -h; so it is looked for first.
bool WantsHelp(const std::vector<std::string>& args) {
  return std::any_of(args.begin(), args.end(),
                     [](const std::string& arg) { return arg == "--help" || arg == "-h"; });
}

std::string CommandIn(const std::vector<std::string>& args,
                      const std::vector<CommandEntry>& commands) {
  for (const std::string& arg : args) {
    for (const CommandEntry& command : commands) {
      if (command.app->get_name() == arg) return arg;
    }
  }
  return "";
}

// A first word that is no command; "" if there is none.
std::string NoCommandIn(const std::vector<std::string>& args,
                        const std::vector<CommandEntry>& commands) {
  if (args.empty() || absl::StartsWith(args[0], "-")) return "";
  std::string names;
  for (const CommandEntry& command : commands) {
    if (command.app->get_name() == args[0]) return "";
    absl::StrAppend(&names, names.empty() ? "" : ", ", command.app->get_name());
  }
  return absl::StrCat("no command '", args[0], "'; there are ", names);
}

void AddFlags(const CLI::App& app, std::vector<std::string>* flags) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags->push_back("--" + name);
  }
}

// Flags that those which nobody knows may have been meant for: "; the nearest are '--device'".
std::string NearFlags(const CLI::App& program, const std::string& command,
                      const std::vector<std::string>& args) {
  std::vector<std::string> flags;
  AddFlags(program, &flags);
  if (!command.empty()) {
    const CLI::App& of_command = *program.get_subcommand(command);
    AddFlags(of_command, &flags);
    for (const CLI::App* sub : of_command.get_subcommands({})) AddFlags(*sub, &flags);
  }
  for (const std::string& arg : args) {
    const std::string flag = arg.substr(0, arg.find('='));
    if (!absl::StartsWith(flag, "--") || absl::c_linear_search(flags, flag)) continue;
    const std::string near = NearestNames(flag, {flags.begin(), flags.end()});
    if (!near.empty()) return absl::StrCat("; the nearest are ", near);
  }
  return "";
}

void AddVariables(const CLI::App& app, std::vector<std::string>* names) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string whole = option->get_envname();
    absl::string_view name = whole;
    if (absl::ConsumePrefix(&name, kEnvironment)) names->emplace_back(name);
  }
}

// A variable that is misspelt would not say where the call goes. Others that begin so are not ours:
// flags of the server, and what Kubernetes gives to a service's neighbours.
absl::Status CheckEnvironment(const CLI::App& program, const std::vector<CommandEntry>& commands) {
  std::vector<std::string> known = {"TOKEN"};
  AddVariables(program, &known);
  for (const CommandEntry& command : commands) AddVariables(*command.app, &known);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    absl::string_view name(*entry, std::strcspn(*entry, "="));
    if (!absl::ConsumePrefix(&name, kEnvironment) || absl::c_linear_search(known, name)) continue;
    if (IsOfAService(name)) continue;
    const std::string near = NearestNames(name, {known.begin(), known.end()});
    if (near.empty()) continue;
    return UsageError(absl::StrCat("the environment has ", Quote(absl::StrCat(kEnvironment, name)),
                                   ", which nothing reads: behind ", kEnvironment,
                                   " the nearest are ", near));
  }
  return absl::OkStatus();
}

int RunCommand(const std::vector<CommandEntry>& commands, const Session& session) {
  for (const CommandEntry& command : commands) {
    if (!command.app->parsed()) continue;
    const absl::StatusOr<int> code = command.run(session);
    return code.ok() ? *code : Report(session, code.status());
  }
  session.console.err << HelpOf(CliPage(), "");
  return kUsage;
}

int Dispatch(const std::vector<std::string>& args, Console& console) {
  CLI::App program;
  GlobalOptions options;
  const Session session{options, console};
  program.set_help_flag();
  program.fallthrough();
  program.require_subcommand(0, 1);
  AddGlobals(program, options);
  bool version = false;
  program.add_flag("--version", version);
  const std::vector<CommandEntry> commands = AddCommands(program);
  for (const CommandEntry& command : commands) {
    command.app->set_help_flag();
    command.app->fallthrough();
  }
  if (WantsHelp(args) || (!args.empty() && args[0] == "help")) {
    console.out << HelpOf(CliPage(), CommandIn(args, commands));
    return kOk;
  }
  try {
    program.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& error) {  // The library's way to say so.
    const std::string command = CommandIn(args, commands);
    const std::string unknown = NoCommandIn(args, commands);
    if (!unknown.empty()) return Report(session, UsageError(unknown));
    return Report(session, UsageError(absl::StrCat(error.what(), NearFlags(program, command, args),
                                                   "; see gridclock ", command,
                                                   command.empty() ? "" : " ", "--help")));
  }
  if (version) {
    console.out << "gridclock " << GRIDCLOCK_VERSION << "\n";
    return kOk;
  }
  const absl::Status environment = CheckEnvironment(program, commands);
  return environment.ok() ? RunCommand(commands, session) : Report(session, environment);
}

}  // namespace

int Main(const std::vector<std::string>& args, Console& console) {
  const int code = Dispatch(args, console);
  console.out.flush();
  if (console.out) return code;
  console.err << "gridclock: standard output could not be written: what was printed is not whole\n";
  return code == kOk ? kFailed : code;
}

}  // namespace gridclock::cli
