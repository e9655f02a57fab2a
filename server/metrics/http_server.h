// The HTTP side of a server, on a listener of its own: what Prometheus scrapes, what probes ask,
// and pages for people. It reads and never changes anything.
#ifndef GRIDCLOCK_SERVER_METRICS_HTTP_SERVER_H_
#define GRIDCLOCK_SERVER_METRICS_HTTP_SERVER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gridclock {

// GET or HEAD of /healthz (200 while the process lives), /readyz (200 or 503) and of the pages that
// it is given. A client holds one thread no longer than both timeouts together, however it
// trickles: who comes behind many that hang waits that long at most for each `threads` of them. On
// loopback it answers 421 to requests whose Host is neither an address, nor localhost, nor what it
// was told to listen on.
class MetricsServer {
 public:
  struct Options {
    std::string address;                        // "127.0.0.1:8471", "[::1]:0", "0.0.0.0:8471".
    int threads = 128;                          // They sleep, while clients hang.
    absl::Duration timeout = absl::Seconds(1);  // To send a request.
    absl::Duration answer_timeout = absl::Seconds(3);  // To read the answer.
  };
  struct Page {
    std::string type;  // Of its content.
    std::string body;
  };
  // Called from several threads at once.
  struct Pages {
    // Nullopt: there is no such page. `accept` is the client's header, or "".
    std::function<std::optional<Page>(absl::string_view path, absl::string_view accept)> page;
    std::function<std::string()> not_ready;  // Why; "": it is.
  };

  // Listens when it returns. INVALID_ARGUMENT for an address that is none, UNAVAILABLE for one that
  // cannot be bound.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Create(const Options& options, Pages pages);
  // Waits for the handlers that run.
  virtual ~MetricsServer() = default;

  virtual int port() const = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_HTTP_SERVER_H_
