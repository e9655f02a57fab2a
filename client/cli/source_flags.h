// Options of a compile on a command line, and the module that a file becomes by them.
#ifndef GRIDCLOCK_CLIENT_CLI_SOURCE_FLAGS_H_
#define GRIDCLOCK_CLIENT_CLI_SOURCE_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "gridclock/v1/modules.pb.h"

namespace CLI {
class App;
}

namespace gridclock::cli {

struct SourceFlags {
  std::string arch, standard;
  std::vector<std::string> defines;
  bool fast_math = false, no_fmad = false, line_info = false;
  std::uint32_t max_registers = 0;
};
void AddSourceFlags(CLI::App& app, SourceFlags* flags);

// What is to become a module, beside its options.
struct SourceTarget {
  std::string file;                    // .ptx and .cubin are loaded, all else is compiled.
  std::vector<std::string> instances;  // Name expressions.
  v1::ModuleView view = {};
};

// Of a source that does not compile: the whole log, and what was set aside. None of other errors.
std::optional<v1::Module> FailedModule(const Client& client, const absl::Status& error);

// What the compiler said of a source that does not compile is shown on standard error first.
absl::StatusOr<v1::Module> MakeModule(const Session& session, const Client& client,
                                      const SourceFlags& flags, const SourceTarget& target);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_SOURCE_FLAGS_H_
