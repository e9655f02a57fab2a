// Counts calls and connections.
#ifndef GRIDCLOCK_SERVER_METRICS_RPC_METRICS_H_
#define GRIDCLOCK_SERVER_METRICS_RPC_METRICS_H_

#include <array>
#include <atomic>
#include <string>

#include "server/core/rpc_observer.h"
#include "server/metrics/registry.h"

namespace gridclock {

// Thread-safe; takes no lock but for the first call of a method that ends with some code, and for
// connections.
class RpcMetrics final : public RpcObserver {
 public:
  // Borrows `registry`.
  explicit RpcMetrics(Registry& registry);

  void OnRpcStarted(RpcMethod method) override;
  void OnRpcFinished(RpcMethod method, const absl::Status& status,
                     absl::Duration duration) override;
  void OnRpcBytes(RpcMethod method, std::uint64_t received, std::uint64_t sent) override;
  void OnConnection(ConnectionEvent event) override;

 private:
  struct MethodSeries {
    std::string name;
    std::array<std::atomic<Tally*>, 17> codes{};  // By absl::StatusCode; made at the first use.
    Tally* drained = nullptr;
    Tally* turned_away = nullptr;
    Tally* in_flight = nullptr;
    Tally* received = nullptr;
    Tally* sent = nullptr;
    Histogram* duration = nullptr;
  };
  Tally& Requests(MethodSeries& series, absl::StatusCode code);
  MethodSeries& SeriesOf(RpcMethod method) { return methods_[static_cast<std::size_t>(method)]; }

  Registry& registry_;
  std::array<MethodSeries, kRpcMethodCount> methods_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_RPC_METRICS_H_
