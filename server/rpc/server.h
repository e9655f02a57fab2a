// The gRPC server as a whole: settings, credentials, services, acceptor.
#ifndef GRIDCLOCK_SERVER_RPC_SERVER_H_
#define GRIDCLOCK_SERVER_RPC_SERVER_H_

#include <memory>

#include <grpcpp/server.h>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/backend.h"
#include "server/rpc/health.h"
#include "server/rpc/tls.h"

namespace gridclock {

class RpcServer {
 public:
  struct Options {
    std::shared_ptr<const TlsSource> tls;  // Null: plain text.
    bool reflection = false;
    absl::Duration handshake_timeout = absl::Seconds(10);
    absl::Duration keepalive = absl::Seconds(60);
    absl::Duration keepalive_timeout = absl::Seconds(20);
    absl::Duration connection_idle = absl::Minutes(10);
  };

  // Serves when it returns. `acceptor` is not yet started and outlives the server; so does all that
  // `backend` names.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Create(const Options& options, Backend& backend,
                                                           Acceptor& acceptor);
  virtual ~RpcServer() = default;

  virtual Health& health() = 0;
  // Accepts no more connections, gives calls that are under way until `grace` has passed, then
  // cancels them. Returns when all have ended.
  virtual void Shutdown(absl::Duration grace) = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_SERVER_H_
