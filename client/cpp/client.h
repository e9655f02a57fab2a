// The client of a Gridclock server.
//
//   GC_ASSIGN_OR_RETURN(const auto client, Client::Connect({.server = "127.0.0.1:8470"}));
//   GC_ASSIGN_OR_RETURN(const RunResult result, client->Run({.kernel = "square", .inputs = {x}}));
//
// Thread-safe. It keeps two connections: one for small calls and one for streams of tensors, so
// that a small call does not wait behind a big one. A client that moves big tensors should keep
// freed memory: mallopt(M_TRIM_THRESHOLD, 1 << 30) and mallopt(M_ARENA_MAX, 2) early in main halve
// its cost.
#ifndef GRIDCLOCK_CLIENT_CPP_CLIENT_H_
#define GRIDCLOCK_CLIENT_CPP_CLIENT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/retry.h"
#include "client/cpp/run.h"
#include "gridclock/v1/admin.pb.h"
#include "gridclock/v1/kernels.pb.h"
#include "gridclock/v1/modules.pb.h"
#include "gridclock/v1/system.pb.h"
#include "proto/types/kernel_spec.h"

namespace gridclock {

struct TlsOptions {
  std::string ca_pem = {};    // Empty: the system's roots.
  std::string cert_pem = {};  // With key_pem: who the client is, for mutual TLS.
  std::string key_pem = {};
  std::string expected_name = {};  // The name in the server's certificate, if it is not the host's.
};

struct ClientOptions {
  std::string server = "127.0.0.1:8470";  // HOST:PORT.
  std::string token = {};                 // Sent as a bearer token.
  std::optional<TlsOptions> tls = {};
  // A token goes in plain text only to this host, unless this says that the network is trusted.
  bool allow_plaintext_token = false;
  RetryOptions retry = {};
  // A window for links with a long way: bandwidth times round trip.
  int stream_window_bytes = 4 << 20;
  // Of every call but Run, RunAsync and CheckHealth, which are told theirs; retries included. None:
  // 10 s, and 60 s of those that may compile.
  std::optional<absl::Duration> timeout = {};
};

// A call that runs. Dropping the handle does not end the call.
class RunHandle {
 public:
  class Task;
  RunHandle() = default;
  explicit RunHandle(std::weak_ptr<Task> task) : task_(std::move(task)) {}
  // The call ends soon, with CANCELLED unless it has ended before. Any thread, any time.
  void Cancel() const;

 private:
  std::weak_ptr<Task> task_;  // Owned by the calls of gRPC that it waits for.
};

class Client {
 public:
  // Checks the options; connects when the first call is made.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const ClientOptions& options);
  // Waits for calls that are under way; no call may be made any more.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  absl::StatusOr<std::vector<KernelSpec>> ListKernels(bool include_diagnostic = false) const;
  absl::StatusOr<KernelSpec> GetKernel(const std::string& name) const;
  absl::StatusOr<std::vector<v1::Device>> ListDevices() const;
  absl::StatusOr<v1::ServerInfo> GetServerInfo() const;

  // Submitted code (gridclock/v1/modules.proto). A source that does not compile is INVALID_ARGUMENT
  // with the reason COMPILE_FAILED; its whole log is GetModule's of the id in the error's metadata.
  absl::StatusOr<v1::Module> Compile(const v1::CompileRequest& request) const;
  absl::StatusOr<v1::Module> Load(const v1::LoadRequest& request) const;
  absl::StatusOr<v1::Module> GetModule(const v1::GetModuleRequest& request) const;
  absl::StatusOr<std::vector<v1::Module>> ListModules() const;
  // Sent once, as CancelJob and RestartWorker: where the answer is lost it may have been done.
  // Tried again only if the server says when.
  absl::Status DeleteModule(const std::string& id) const;

  // For operators (gridclock/v1/admin.proto).
  absl::StatusOr<std::vector<v1::ActiveJob>> ListJobs() const;
  absl::StatusOr<v1::ActiveJob> CancelJob(std::uint64_t id) const;
  absl::StatusOr<v1::DrainDeviceResponse> DrainDevice(const v1::DrainDeviceRequest& request) const;
  absl::StatusOr<v1::UndrainDeviceResponse> UndrainDevice(const std::string& device) const;
  absl::StatusOr<v1::RestartWorkerResponse> RestartWorker(
      const v1::RestartWorkerRequest& request) const;
  absl::StatusOr<v1::ReloadResponse> Reload() const;

  // One empty round trip (grpc.health.v1); how long it took.
  absl::StatusOr<absl::Duration> Ping() const;
  // OK if `service` ("": the server; "device/cpu") is SERVING. UNAVAILABLE if not, or if no
  // connection stands after 250 ms.
  absl::Status CheckHealth(const std::string& service = "",
                           absl::Duration timeout = absl::Seconds(5)) const;

  // Runs a kernel and waits for the result. See RunCall and RunEvents.
  absl::StatusOr<RunResult> Run(const RunCall& call, const RunEvents& events = {}) const;

  // The same without waiting and without a thread of its own. `call` and the bytes that it names
  // must live until `done` has been called; that happens exactly once, on a thread of the library.
  RunHandle RunAsync(const RunCall& call, RunEvents events,
                     std::function<void(absl::StatusOr<RunResult>)> done) const;

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_CLIENT_CPP_CLIENT_H_
