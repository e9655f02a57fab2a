// What the commands share: how to reach the server, how to answer, how to fail.
#ifndef GRIDCLOCK_CLIENT_CLI_COMMAND_H_
#define GRIDCLOCK_CLIENT_CLI_COMMAND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/app.h"
#include "client/cli/terminal.h"
#include "client/cpp/client.h"

namespace CLI {
class App;
}

namespace gridclock::cli {

// Options of every command.
struct GlobalOptions {
  std::string server = "127.0.0.1:8470";
  std::string token_file, tls_ca, tls_cert, tls_key, tls_name;
  std::string timeout;
  bool tls = false;
  bool insecure_token = false;
  bool json = false;
};

// One run of the program.
struct Session {
  const GlobalOptions& options;
  Console& console;

  absl::StatusOr<ClientOptions> MakeClientOptions() const;
  absl::StatusOr<std::unique_ptr<Client>> Connect() const;
  // --timeout, or infinite.
  absl::StatusOr<absl::Duration> Timeout() const;
};

// --kernel-limit; zero, which is the server's default, if it is not said.
absl::StatusOr<absl::Duration> ParseKernelLimit(const std::string& text);

// gRPC's own words when no connection stands; with a reason it is the server that speaks.
bool IsUnreachable(const absl::Status& error);
// One sentence on what to do, or "".
std::string Advice(const absl::Status& error, const GlobalOptions& options);
// What a failed command says, on standard error or as JSON; and its exit code.
int Report(const Session& session, const absl::Status& error);

// Each command adds itself to the program; the returned function runs it.
using Command = std::function<absl::StatusOr<int>(const Session&)>;
struct CommandEntry {
  CLI::App* app;  // Borrowed from the program.
  Command run;
};
CommandEntry AddList(CLI::App& program);
CommandEntry AddDescribe(CLI::App& program);
CommandEntry AddDevices(CLI::App& program);
CommandEntry AddPing(CLI::App& program);
CommandEntry AddWait(CLI::App& program);
CommandEntry AddDoctor(CLI::App& program);
CommandEntry AddRun(CLI::App& program);
CommandEntry AddBench(CLI::App& program);
CommandEntry AddLoad(CLI::App& program);
CommandEntry AddCompile(CLI::App& program);
CommandEntry AddCheck(CLI::App& program);
CommandEntry AddWatch(CLI::App& program);

// A wrong command line.
absl::Status UsageError(absl::string_view message);
bool IsUsageError(const absl::Status& status);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_COMMAND_H_
