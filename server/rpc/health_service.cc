#include "server/rpc/health_service.h"

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"
#include "proto/codec/wire.h"
#include "server/rpc/buffer.h"
#include "server/rpc/peer.h"
#include "server/rpc/unary_call.h"

namespace gridclock {
namespace {

// Of rpc_bytes: anybody may ask, and there may be 16 addresses with all the connections they may.
constexpr double kRequestsOfOne = 1.0 / 16;
constexpr std::size_t kMostRequest = 1024;
// A client's channel watches once for each connection; some watch devices too.
constexpr double kWatchesOfConnection = 4;

// HealthCheckResponse.ServingStatus.
enum class ServingStatus : char { kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

ServingStatus StatusOf(std::optional<bool> serves) {
  if (!serves) return ServingStatus::kServiceUnknown;
  return *serves ? ServingStatus::kServing : ServingStatus::kNotServing;
}

grpc::ByteBuffer ResponseOf(ServingStatus status) {
  std::string text;
  AppendTag(1, WireType::kVarint, &text);
  AppendVarint(static_cast<std::uint64_t>(status), &text);
  return ToBuffer(text);
}

// HealthCheckRequest.service.
absl::StatusOr<std::string> NameIn(const grpc::ByteBuffer& request) {
  if (request.Length() > kMostRequest) {
    return WithReason(
        absl::InvalidArgumentError(absl::StrCat("want a HealthCheckRequest of at most ",
                                                kMostRequest, " bytes, got ", request.Length())),
        "BAD_VALUE");
  }
  const MessageView view(request);
  WireReader reader(view.slices());
  std::string name;
  std::uint32_t field = 0;
  WireType type{};
  while (!reader.done()) {
    ByteRange bytes;
    bool read = reader.ReadTag(&field, &type);
    if (read && field == 1 && type == WireType::kBytes) {
      read = reader.ReadBytes(&bytes);
      if (read) name = ToString(view.slices(), bytes);
    } else if (read) {
      read = reader.Skip(field, type);
    }
    if (!read) {
      return WithReason(
          absl::InvalidArgumentError("cannot parse grpc.health.v1.HealthCheckRequest"),
          "UNPARSABLE");
    }
  }
  return name;
}

class HealthCall : public UnaryCall {
 public:
  HealthCall(Backend& backend, RpcMethod method, grpc::CallbackServerContext& context,
             ReadGate& gate, Health& health)
      : UnaryCall(backend, method, context, SmallRequests(backend, gate)), health_(health) {}

 protected:
  Health& health_;

 private:
  absl::StatusOr<std::string> Authorize() override { return SiteOf(context_.peer()); }
};

class CheckCall final : public HealthCall {
 public:
  using HealthCall::HealthCall;

 private:
  absl::Status Accept(const grpc::ByteBuffer& request) override {
    GC_ASSIGN_OR_RETURN(const std::string name, NameIn(request));
    const std::optional<bool> serves = health_.Serves(name);
    if (!serves) {
      return WithReason(absl::NotFoundError("no health is known of this name"), "UNKNOWN_NAME");
    }
    Reply(ResponseOf(StatusOf(serves)));
    return absl::OkStatus();
  }
};

// Says each change until its client leaves. One message is under way at a time.
class WatchCall final : public HealthCall, public Health::Watcher {
 public:
  WatchCall(Backend& backend, RpcMethod method, grpc::CallbackServerContext& context,
            ReadGate& gate, Health& health, Watches& watches)
      : HealthCall(backend, method, context, gate, health), watches_(watches) {}
  ~WatchCall() override {
    if (counted_) watches_.Return(principal_);
  }

  void Look() override {
    const MutexLock lock(mutex_);
    Say();
  }

  void OnWriteDone(bool ok) override {
    {
      const MutexLock lock(mutex_);
      writing_ = false;
      if (!leaving_ && ok) return Say();
      if (!leaving_) return;  // OnCancel comes.
    }
    End(CancelReason(context_, meter_.age()));
  }

 private:
  absl::Status Accept(const grpc::ByteBuffer& request) override {
    GC_ASSIGN_OR_RETURN(std::string name, NameIn(request));
    GC_RETURN_IF_ERROR(watches_.Take(principal_));
    counted_ = true;
    health_.Watch(std::static_pointer_cast<WatchCall>(shared_from_this()));
    const MutexLock lock(mutex_);
    if (leaving_) return CancelReason(context_, meter_.age());
    name_ = std::move(name);
    Say();
    return absl::OkStatus();
  }

  void Abandon() override {
    {
      const MutexLock lock(mutex_);
      leaving_ = true;
      // Else Accept() ends the call, or OnWriteDone() does.
      if (!name_ || writing_) return;
      name_.reset();
    }
    End(CancelReason(context_, meter_.age()));
  }

  void Say() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!name_ || writing_ || leaving_) return;
    const ServingStatus now = StatusOf(health_.Serves(*name_));
    if (said_ == now) return;
    said_ = now;
    writing_ = true;
    message_ = ResponseOf(now);
    StartWrite(&message_);
  }

  Watches& watches_;
  bool counted_ = false;  // Among them.
  Mutex mutex_;
  std::optional<std::string> name_ ABSL_GUARDED_BY(mutex_);  // Once the request is here.
  std::optional<ServingStatus> said_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false, leaving_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ByteBuffer message_;  // Of the write that is under way.
};

}  // namespace

absl::Status Watches::Take(const std::string& address) {
  const MutexLock lock(mutex_);
  std::size_t& of_address = watching_[address];
  if (of_address < most_) {
    ++of_address;
    return absl::OkStatus();
  }
  return WithDetails(absl::ResourceExhaustedError(absl::StrCat(
                         "streams of this address that watch health: want at most ", most_,
                         ", four for each ", "connection that it may have; end one first")),
                     {.reason = "QUEUE_FULL",
                      .field = "",
                      .retry_after = absl::Seconds(1),
                      .metadata = {{"limit", "peer_connections"}}});
}

void Watches::Return(const std::string& address) {
  const MutexLock lock(mutex_);
  const auto found = watching_.find(address);
  if (--found->second == 0) watching_.erase(found);
}

HealthService::HealthService(Backend& backend, Health& health)
    : requests_(backend.limits.rpc_bytes * kRequestsOfOne, backend.limits),
      watches_(static_cast<std::size_t>(backend.limits.peer_connections * kWatchesOfConnection)) {
  Add(RpcMethod::kCheckHealth, [this, &backend, &health](grpc::CallbackServerContext* context) {
    return BeginCall<CheckCall>(backend, RpcMethod::kCheckHealth, *context, requests_, health);
  });
  Add(RpcMethod::kWatchHealth, [this, &backend, &health](grpc::CallbackServerContext* context) {
    return BeginCall<WatchCall>(backend, RpcMethod::kWatchHealth, *context, requests_, health,
                                watches_);
  });
}

}  // namespace gridclock
