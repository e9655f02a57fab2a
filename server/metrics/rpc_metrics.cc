#include "server/metrics/rpc_metrics.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

constexpr absl::string_view ResultWord(ConnectionEvent event) {
  switch (event) {
    case ConnectionEvent::kAccepted:
      return "accepted";
    case ConnectionEvent::kRejectedTotal:
      return "rejected_total";
    case ConnectionEvent::kRejectedPeer:
      return "rejected_peer";
    case ConnectionEvent::kRejectedDescriptors:
      return "rejected_descriptors";
    case ConnectionEvent::kCutOffHeaders:
      return "cut_off_headers";
    case ConnectionEvent::kCutOffCalls:
      return "cut_off_calls";
  }
  return "";
}

// Refused, or ended in the queue, because the device or the server goes out of service by an
// operator's wish, or is not in service yet.
bool IsDrain(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return false;
  const std::string reason = DetailsOf(status).reason;
  return reason == "DRAINING" || reason == "DEVICE_DRAINED" || reason == "WORKER_STARTING" ||
         reason == "COMPILER_STARTING" || reason == "RELOADING";
}

// For want of room. What no retry would help asked for more than there is at all.
bool IsTurnedAway(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status) && !absl::IsDeadlineExceeded(status)) return false;
  const ErrorDetails details = DetailsOf(status);
  const bool full = details.reason == "QUEUE_FULL" || details.reason == "MEMORY_FULL";
  return (full && details.retry_after) || details.reason == "QUEUE_WAIT";
}

}  // namespace

RpcMetrics::RpcMetrics(Registry& registry) : registry_(registry) {
  for (std::size_t i = 0; i < kRpcMethodCount; ++i) {
    const RpcMethodName name = NameOf(static_cast<RpcMethod>(i));
    MethodSeries& series = methods_[i];
    series.name = absl::StrCat(name.service, "/", name.method);
    // Failures of the server too: a series that begins with its first burst has no rate.
    for (const auto code :
         {absl::StatusCode::kOk, absl::StatusCode::kUnknown, absl::StatusCode::kInternal,
          absl::StatusCode::kUnavailable, absl::StatusCode::kDataLoss}) {
      Requests(series, code);
    }
    series.drained = &registry.TallyOf(Metric::kRpcDrained, {series.name});
    series.turned_away = &registry.TallyOf(Metric::kRpcTurnedAway, {series.name});
    series.in_flight = &registry.TallyOf(Metric::kRpcInFlight, {series.name});
    series.received = &registry.TallyOf(Metric::kRpcBytes, {series.name, "in"});
    series.sent = &registry.TallyOf(Metric::kRpcBytes, {series.name, "out"});
    series.duration = &registry.HistogramOf(Metric::kRpcDuration, {series.name});
  }
  for (const auto event : {ConnectionEvent::kAccepted, ConnectionEvent::kRejectedTotal,
                           ConnectionEvent::kRejectedPeer, ConnectionEvent::kRejectedDescriptors,
                           ConnectionEvent::kCutOffHeaders, ConnectionEvent::kCutOffCalls}) {
    registry.TallyOf(Metric::kConnections, {std::string(ResultWord(event))});
  }
}

// Two threads may both look it up: they get the same tally.
Tally& RpcMetrics::Requests(MethodSeries& series, absl::StatusCode code) {
  const std::size_t index = static_cast<std::size_t>(code);
  if (index >= series.codes.size()) return Requests(series, absl::StatusCode::kUnknown);
  std::atomic<Tally*>& cached = series.codes[index];
  Tally* tally = cached.load(std::memory_order_acquire);
  if (tally == nullptr) {
    tally = &registry_.TallyOf(Metric::kRpcRequests, {series.name, absl::StatusCodeToString(code)});
    cached.store(tally, std::memory_order_release);
  }
  return *tally;
}

void RpcMetrics::OnRpcStarted(RpcMethod method) {
  SeriesOf(method).in_flight->Add(1);
}

void RpcMetrics::OnRpcFinished(RpcMethod method, const absl::Status& status,
                               absl::Duration duration) {
  MethodSeries& series = SeriesOf(method);
  series.in_flight->Add(-1);
  series.duration->Observe(absl::ToDoubleSeconds(duration));
  Requests(series, status.code()).Add(1);
  if (status.ok()) return;
  if (IsDrain(status)) series.drained->Add(1);
  if (IsTurnedAway(status)) series.turned_away->Add(1);
}

void RpcMetrics::OnRpcBytes(RpcMethod method, std::uint64_t received, std::uint64_t sent) {
  MethodSeries& series = SeriesOf(method);
  series.received->Add(static_cast<std::int64_t>(received));
  series.sent->Add(static_cast<std::int64_t>(sent));
}

void RpcMetrics::OnConnection(ConnectionEvent event) {
  registry_.TallyOf(Metric::kConnections, {std::string(ResultWord(event))}).Add(1);
}

}  // namespace gridclock
