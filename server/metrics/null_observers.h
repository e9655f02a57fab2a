// Observers for a server without metrics, so that nobody has to ask whether there is one.
#ifndef GRIDCLOCK_SERVER_METRICS_NULL_OBSERVERS_H_
#define GRIDCLOCK_SERVER_METRICS_NULL_OBSERVERS_H_

#include "server/core/observer.h"
#include "server/core/rpc_observer.h"

namespace gridclock {

class NullJobObserver final : public JobObserver {
 public:
  void OnRejected(absl::string_view, const absl::Status&) override {}
  void OnQueued(const Job&) override {}
  void OnDispatched(const Job&, absl::Duration) override {}
  void OnFinished(const Job&, const JobResult&) override {}
  void OnWorkerUp(absl::string_view) override {}
  void OnWorkerLost(absl::string_view, absl::string_view) override {}
};

class NullRpcObserver final : public RpcObserver {
 public:
  void OnRpcStarted(RpcMethod) override {}
  void OnRpcFinished(RpcMethod, absl::StatusCode, absl::Duration) override {}
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_NULL_OBSERVERS_H_
