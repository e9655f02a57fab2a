// modules: what the server keeps of one's own code, and the way to have it forgotten.
#include "client/cli/cmd_modules.h"

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/cli/modules.h"

namespace gridclock::cli {
namespace {

struct ModulesOptions {
  std::vector<std::string> ids;
  bool all = false;
};

absl::StatusOr<int> List(const Session& session, const Client& client) {
  GC_ASSIGN_OR_RETURN(const std::vector<v1::Module> modules, client.ListModules());
  if (session.options.json) {
    Json out = Json::array();
    for (const v1::Module& module : modules) out.push_back(ToJson(module));
    session.console.out << Dump(out) << "\n";
  } else {
    session.console.out << ModulesText(modules);
  }
  return kOk;
}

// An answer of the server may not hold all of them.
absl::StatusOr<std::vector<std::string>> DeleteAll(const Client& client) {
  std::vector<std::string> deleted;
  for (;;) {
    GC_ASSIGN_OR_RETURN(const std::vector<v1::Module> modules, client.ListModules());
    if (modules.empty()) return deleted;
    for (const v1::Module& module : modules) {
      // Another command of the same client may have been quicker, or the server needed its memory.
      const absl::Status status = client.DeleteModule(module.id());
      if (!status.ok() && !absl::IsNotFound(status)) return status;
      if (status.ok()) deleted.push_back(module.id());
    }
  }
}

// A module that is on the server's disk alone is not listed: it needs its whole id.
absl::StatusOr<std::vector<std::string>> DeleteNamed(const Client& client,
                                                     const std::vector<std::string>& names) {
  GC_ASSIGN_OR_RETURN(const std::vector<v1::Module> modules, client.ListModules());
  std::vector<std::string> ids;
  for (const std::string& name : names) {
    GC_ASSIGN_OR_RETURN(ids.emplace_back(), IdThatBegins(name, modules));
  }
  for (const std::string& id : ids) {
    GC_RETURN_IF_ERROR(client.DeleteModule(id));
  }
  return ids;
}

absl::StatusOr<int> Delete(const Session& session, const Client& client,
                           const ModulesOptions& options) {
  if (options.all != options.ids.empty()) {
    return UsageError("modules delete: want the ids of modules, or --all");
  }
  GC_ASSIGN_OR_RETURN(const std::vector<std::string> deleted,
                      options.all ? DeleteAll(client) : DeleteNamed(client, options.ids));
  if (session.options.json) {
    session.console.out << Dump(Json{{"deleted", deleted}}) << "\n";
    return kOk;
  }
  for (const std::string& id : deleted) session.console.out << Escape(id) << " is deleted\n";
  if (deleted.empty()) session.console.out << "there was no module\n";
  return kOk;
}

}  // namespace

CommandEntry AddModules(CLI::App& program) {
  auto* app = program.add_subcommand("modules");
  const auto options = std::make_shared<ModulesOptions>();
  app->require_subcommand(0, 1);
  auto* list = app->add_subcommand("list");
  auto* remove = app->add_subcommand("delete");
  for (CLI::App* action : {list, remove}) {
    action->set_help_flag();
    action->fallthrough();
  }
  remove->add_option("ID", options->ids);
  remove->add_flag("--all", options->all);
  return {app, [options, remove](const Session& session) -> absl::StatusOr<int> {
            GC_ASSIGN_OR_RETURN(const auto client, session.Connect());
            return remove->parsed() ? Delete(session, *client, *options) : List(session, *client);
          }};
}

}  // namespace gridclock::cli
