// Memory lent to gRPC, and the moment when all of it is back.
#ifndef GRIDCLOCK_CLIENT_CPP_LOAN_H_
#define GRIDCLOCK_CLIENT_CPP_LOAN_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include <grpcpp/alarm.h>
#include <grpcpp/support/slice.h>

namespace gridclock {

// A transport may hold a slice after the call that sent it has ended. The owner of the memory is
// told when the call has ended and no slice is left. Frees itself then.
class Loan {
 public:
  explicit Loan(std::function<void()> returned) : returned_(std::move(returned)) {}
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  // A slice of borrowed memory. Thread-safe, before End.
  grpc::Slice Lend(std::span<const std::byte> bytes) {
    ++out_;
    return {const_cast<std::byte*>(bytes.data()), bytes.size(),
            [](void* loan) { static_cast<Loan*>(loan)->GiveBack(); }, this};
  }

  // The call has ended. `returned` is called now, or from another thread when the last slice is
  // back.
  void End() {
    if (--out_ == 0) Finish();
  }

 private:
  // Called inside the transport, which may hold locks: the rest happens on a thread of gRPC's pool.
  void GiveBack() {
    if (--out_ > 0) return;
    auto* alarm = new grpc::Alarm;
    alarm->Set(gpr_time_0(GPR_CLOCK_MONOTONIC), [this, alarm](bool) {
      delete alarm;
      Finish();
    });
  }
  void Finish() {
    auto returned = std::move(returned_);
    delete this;
    returned();
  }

  std::function<void()> returned_;
  std::atomic<int> out_{1};  // The call itself counts.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_CLIENT_CPP_LOAN_H_
