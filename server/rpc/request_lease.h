#ifndef GRIDCLOCK_SERVER_RPC_REQUEST_LEASE_H_
#define GRIDCLOCK_SERVER_RPC_REQUEST_LEASE_H_

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "server/core/idempotency.h"

namespace gridclock {

// A request id that is in use by one call.
class RequestLease {
 public:
  RequestLease() = default;
  ~RequestLease() { Release(); }
  RequestLease(const RequestLease&) = delete;
  RequestLease& operator=(const RequestLease&) = delete;

  // The answer of the call that had this id, or null if this call is the first. An empty id leases
  // nothing.
  absl::StatusOr<RequestIds::Answer> Begin(RequestIds& ids, const std::string& principal,
                                           const std::string& id, std::uint64_t content) {
    if (id.empty()) return nullptr;
    auto known = ids.Begin(principal, id, content);
    if (!known.ok()) return known.status();
    if (auto* answer = std::get_if<RequestIds::Answer>(&*known)) return std::move(*answer);
    ids_ = &ids;
    principal_ = principal;
    id_ = id;
    return nullptr;
  }
  bool held() const { return ids_ != nullptr; }
  void Finish(RequestIds::Answer answer) {
    if (ids_ != nullptr) std::exchange(ids_, nullptr)->Finish(principal_, id_, std::move(answer));
  }
  // The call failed. MUST come before the client hears of it: a client that hears retries at once.
  // No effect after Finish.
  void Release() {
    if (ids_ != nullptr) std::exchange(ids_, nullptr)->Forget(principal_, id_);
  }

 private:
  RequestIds* ids_ = nullptr;
  std::string principal_, id_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_REQUEST_LEASE_H_
