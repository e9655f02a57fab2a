// Certificates that may be replaced while the server runs.
#ifndef GRIDCLOCK_SERVER_RPC_TLS_H_
#define GRIDCLOCK_SERVER_RPC_TLS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <grpcpp/security/server_credentials.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/mutex.h"

namespace gridclock {

struct Tls {
  std::string certificate, key;  // PEM.
  std::string client_authority;  // PEM; if set, clients must show a certificate that it signed.
  absl::Time read = absl::Now();
};

// Thread-safe.
class TlsSource {
 public:
  explicit TlsSource(Tls tls) : tls_(std::move(tls)) {}

  // From the next connection on; those that stand keep what they began with. `tls` asks for a
  // client's certificate if and only if the first one did.
  void Replace(Tls tls) ABSL_LOCKS_EXCLUDED(mutex_);

  Tls current() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts the replacements.
  std::uint64_t version() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  Tls tls_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t version_ ABSL_GUARDED_BY(mutex_) = 1;
};

// Plain text if `source` is null.
std::shared_ptr<grpc::ServerCredentials> CredentialsOf(std::shared_ptr<const TlsSource> source);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_TLS_H_
