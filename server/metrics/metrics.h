// The metrics of a server, behind one door: what main hands out as observers and what an HTTP
// listener shows of them, to Prometheus and to people.
//
//   GC_ASSIGN_OR_RETURN(auto metrics, Metrics::Create({.address = "127.0.0.1:8471", ...}));
//   Scheduler scheduler(clock, limits, arena, metrics->job_observer());
//   metrics->Watch({.devices = [&] { return table.Devices(); }, ...});
//   ...
//   metrics->Stop();  // Before what Watch() reads goes away.
#ifndef GRIDCLOCK_SERVER_METRICS_METRICS_H_
#define GRIDCLOCK_SERVER_METRICS_METRICS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/core/compile_observer.h"
#include "server/core/observer.h"
#include "server/core/rpc_observer.h"
#include "server/metrics/exposition.h"
#include "server/metrics/http_server.h"
#include "server/metrics/registry.h"
#include "server/metrics/sources.h"

namespace gridclock {

// Thread-safe. Outlives everyone who holds one of its observers.
class Metrics {
 public:
  struct Options {
    std::string address = "127.0.0.1:8471";  // Port 0 takes a free one.
    std::string version = "";                // Of this build.
    std::string revision = "";
    std::string cuda = "none";         // Version of the CUDA toolkit it was built with.
    Registry::Caps caps = {};          // Registry::CapsFor its devices.
    MetricsServer::Options http = {};  // `address` above replaces the one here.
  };

  // Listens when it returns: /metrics and /healthz answer 200, /readyz 503 until Watch() says more.
  // UNAVAILABLE or INVALID_ARGUMENT if the address cannot be had.
  static absl::StatusOr<std::unique_ptr<Metrics>> Create(Options options);
  virtual ~Metrics() = default;

  virtual JobObserver& job_observer() = 0;
  virtual RpcObserver& rpc_observer() = 0;
  virtual CompileObserver& compile_observer() = 0;

  // What a scrape reads besides the observers, and what /readyz says. Until it is called no kernel
  // name is known, so that a job would count as kernel "other": call it before the first job.
  virtual void Watch(Sources sources) = 0;

  virtual int port() const = 0;
  // The page that /metrics serves.
  virtual std::string Text(Format format = Format::kText) const = 0;
  // Ends the listener and forgets the sources; the observers stay usable. Idempotent. Waits for
  // answers that are under way, as long as MetricsServer lets their clients take.
  virtual void Stop() = 0;
};

// For a server without metrics, so that nobody has to ask whether there are any. Stateless.
JobObserver& NullJobObserver();
RpcObserver& NullRpcObserver();
CompileObserver& NullCompileObserver();

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_METRICS_H_
