#ifndef GRIDCLOCK_SERVER_RPC_CALLS_IN_FLIGHT_H_
#define GRIDCLOCK_SERVER_RPC_CALLS_IN_FLIGHT_H_

#include <atomic>

namespace gridclock {

// What a drain waits for: calls of our services until gRPC has taken all of their answers, which
// may be long after their jobs are over. Thread-safe.
class CallsInFlight {
 public:
  // One call, as long as this lives. Of null: none that a drain waits for.
  class Place {
   public:
    explicit Place(CallsInFlight* calls)
        : count_(calls == nullptr || calls->closed_ ? nullptr : &calls->count_) {
      if (count_ != nullptr) ++*count_;
    }
    ~Place() {
      if (count_ != nullptr) --*count_;
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    std::atomic<int>* const count_;
  };

  // Calls that come later are refused and count no more: they could keep it from ever being 0.
  void Close() { closed_ = true; }
  int count() const { return count_; }

 private:
  std::atomic<bool> closed_{false};
  std::atomic<int> count_{0};
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_CALLS_IN_FLIGHT_H_
