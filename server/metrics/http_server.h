// The HTTP side of the metrics: three pages on a listener of its own.
#ifndef GRIDCLOCK_SERVER_METRICS_HTTP_SERVER_H_
#define GRIDCLOCK_SERVER_METRICS_HTTP_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gridclock {

// GET /metrics (text of the exposition format 0.0.4), /healthz (200 while the process lives),
// /readyz (200 or 503). A client that hangs holds one thread until the timeout, so that others are
// answered as long as fewer than `threads` hang at once.
class MetricsServer {
 public:
  struct Options {
    std::string address;  // "127.0.0.1:8471", "[::1]:0", "0.0.0.0:8471".
    int threads = 4;
    absl::Duration timeout = absl::Seconds(1);  // To send a request, and to read the answer.
  };
  // Called from several threads at once.
  struct Pages {
    std::function<std::string()> metrics;
    std::function<bool()> ready;
  };

  // Listens when it returns. INVALID_ARGUMENT for an address that is none, UNAVAILABLE for one that
  // cannot be bound.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Create(const Options& options, Pages pages);
  // Waits for the handlers that run; up to 2 s even where there are none.
  virtual ~MetricsServer() = default;

  virtual int port() const = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_HTTP_SERVER_H_
