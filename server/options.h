// What a user may tell gridclock-server.
#ifndef GRIDCLOCK_SERVER_OPTIONS_H_
#define GRIDCLOCK_SERVER_OPTIONS_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/core/limits.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/auth.h"
#include "server/rpc/tls.h"

namespace gridclock {

struct ServerOptions {
  std::string listen = "127.0.0.1:8470";
  std::string metrics_listen = "127.0.0.1:8471";  // "": none.
  std::string worker;                             // "": gridclock-worker beside this program.
  std::string compiler;                           // "": gridclock-compiler beside this program.
  std::string cuda_home;                          // "": the compiler looks for it.
  std::string module_cache;                       // "": none.
  bool allow_submit = false;
  bool allow_cubin = false;
  bool weak_sandbox = false;
#ifdef GRIDCLOCK_TEST_BUILD
  std::vector<std::string> without_defences;  // As members of CheckDefences; "scratch", "shared".
  std::optional<int> copiers;  // As FleetOptions::copiers; else as many as there are CPUs for.
  std::string reload_pipe;  // Read to its end by each reload, first: a file that does not answer.
#endif
  std::string devices = "auto";
  std::string ready_file;
  bool exit_on_error = false;
  std::string token_file;
  std::string tls_cert, tls_key, tls_client_ca;
  bool insecure_public = false;
  bool allow_admin = false;
  std::string reflection = "auto";
  double drain_delay = -1;  // Seconds; below 0: 0 on loopback, 5 elsewhere.
  double drain_grace = 25;
  double arena_warm_bytes = 256.0 * 1024 * 1024;
  Limits limits;
};

// Reads flags and GRIDCLOCK_* of the environment. Ends the process for --help, --version and
// --hash-token, and for flags that do not exist.
ServerOptions ParseOptions(int argc, char** argv);

// What follows from the options once the files that they name are read.
struct Security {
  std::shared_ptr<TlsSource> tls;  // Null: plain text.
  Authenticator authenticator;
  ListenAddress listen;
  bool loopback = true;
};
// INVALID_ARGUMENT with a sentence for what would leave the server open: an address that others can
// reach without TLS, tokens in plain text to others, half of a key pair.
absl::StatusOr<Security> CheckSecurity(const ServerOptions& options);

// What the files of these flags hold now. INVALID_ARGUMENT names the flag and what is wrong, never
// what stands in the file.
absl::StatusOr<Tls> ReadTls(const ServerOptions& options);
absl::StatusOr<TokenFile> ReadTokens(const ServerOptions& options);

// Says in the log of which flags less comes than their operator may count on.
void LogDoubtfulFlags(const ServerOptions& options);

// The physical memory, or the least limit of a cgroup where that is smaller.
std::uint64_t MemoryBytes();

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_OPTIONS_H_
