// Who hears of a call: the counterpart of JobObserver for rpcs of every kind.
#ifndef GRIDCLOCK_SERVER_CORE_RPC_OBSERVER_H_
#define GRIDCLOCK_SERVER_CORE_RPC_OBSERVER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gridclock {

// Every method of our services: a closed set, so it may label a metric.
enum class RpcMethod : std::uint8_t {
  kListKernels,
  kGetKernel,
  kRun,
  kStreamRun,
  kGetServerInfo,
  kListDevices,
  kCompile,
  kLoad,
  kGetModule,
  kListModules,
  kDeleteModule,
  kListJobs,
  kCancelJob,
  kDrainDevice,
  kUndrainDevice,
  kRestartWorker,
  kReload,
  kCheckHealth,
  kWatchHealth,
  kReflect
};
inline constexpr std::size_t kRpcMethodCount = 20;

struct RpcMethodName {
  absl::string_view service;  // "gridclock.v1.KernelService".
  absl::string_view method;   // "Run".
};
inline constexpr RpcMethodName NameOf(RpcMethod method) {
  constexpr absl::string_view kKernels = "gridclock.v1.KernelService";
  constexpr absl::string_view kSystem = "gridclock.v1.SystemService";
  constexpr absl::string_view kModules = "gridclock.v1.ModuleService";
  constexpr absl::string_view kAdmin = "gridclock.v1.AdminService";
  constexpr absl::string_view kHealth = "grpc.health.v1.Health";
  constexpr absl::string_view kReflection = "grpc.reflection.v1alpha.ServerReflection";
  constexpr std::array<RpcMethodName, kRpcMethodCount> kNames = {
      {{kKernels, "ListKernels"},  {kKernels, "GetKernel"},
       {kKernels, "Run"},          {kKernels, "StreamRun"},
       {kSystem, "GetServerInfo"}, {kSystem, "ListDevices"},
       {kModules, "Compile"},      {kModules, "Load"},
       {kModules, "Get"},          {kModules, "List"},
       {kModules, "Delete"},       {kAdmin, "ListJobs"},
       {kAdmin, "CancelJob"},      {kAdmin, "DrainDevice"},
       {kAdmin, "UndrainDevice"},  {kAdmin, "RestartWorker"},
       {kAdmin, "Reload"},         {kHealth, "Check"},
       {kHealth, "Watch"},         {kReflection, "ServerReflectionInfo"}}};
  return kNames[static_cast<std::size_t>(method)];
}

// What became of a connection.
enum class ConnectionEvent : std::uint8_t {
  kAccepted,
  kRejectedTotal,
  kRejectedPeer,
  kRejectedDescriptors,
  // After it was accepted.
  kCutOffHeaders,  // Headers without end.
  kCutOffCalls     // More calls at once than gRPC can be done with.
};

// Must be thread-safe and quick. For each OnRpcStarted one OnRpcFinished follows. Bytes are those
// of whole messages as they go over the wire, without HTTP/2.
class RpcObserver {
 public:
  virtual ~RpcObserver() = default;
  virtual void OnRpcStarted(RpcMethod method) = 0;
  virtual void OnRpcFinished(RpcMethod method, const absl::Status& status,
                             absl::Duration duration) = 0;
  virtual void OnRpcBytes(RpcMethod, std::uint64_t /*received*/, std::uint64_t /*sent*/) {}
  virtual void OnConnection(ConnectionEvent) {}
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_RPC_OBSERVER_H_
