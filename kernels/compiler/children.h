// The children that compile: forked warm, watched, ended at their limits. A few stand by: what a
// child's first compile writes to is copied page by page, where page faults are slow for longer
// than a small compile takes, so they have compiled a line before their order comes.
#ifndef GRIDCLOCK_KERNELS_COMPILER_CHILDREN_H_
#define GRIDCLOCK_KERNELS_COMPILER_CHILDREN_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "gridclock/worker/v1/compiler.pb.h"
#include "kernels/compiler/work.h"

namespace gridclock {

// For one thread.
class Children {
 public:
  struct Limits {
    WorkLimits work;
    absl::Duration wall = absl::Seconds(5);
    std::size_t result_bytes = 40 * 1024 * 1024;
    // A quarter of them, one to four, have a child that stands by, as long as no compile needs
    // them. 0: none has.
    std::size_t cpus = 0;
  };
  // Borrows `tools`, which every child inherits. `forget_others` runs in each child, before all
  // else: it frees what the process holds of other orders.
  Children(
      const Tools& tools, const Limits& limits, const Clock& clock,
      std::function<void()> forget_others = [] {})
      : tools_(tools), limits_(limits), clock_(clock), forget_others_(std::move(forget_others)) {}
  // Ends those that are left, and those that stand by.
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // Forks those that shall stand by and are missing: to be called before each wait.
  void Prepare();
  // Each order is answered once, by TakeAnswers().
  void Start(const worker::v1::CompilerOrder& order);
  void Cancel(std::uint64_t id);

  // To wait on: a descriptor of each child, and until when at most.
  void AddPolled(std::vector<pollfd>* out) const;
  absl::Time NextDeadline() const;
  // Reads what children wrote, ends those that are over a limit, and hands out what has ended.
  std::vector<worker::v1::CompilerAnswer> TakeAnswers();

 private:
  using End = worker::v1::CompilerAnswer::End;
  struct Child {
    pid_t pid = -1;
    UniqueFd link = UniqueFd();  // Its order goes there, and the result comes from there.
    std::string unsent = {};     // Of its order.
    absl::Time deadline = absl::InfiniteFuture();
    std::string written = {};
    End killed_for = worker::v1::CompilerAnswer::END_UNSPECIFIED;
    bool closed = false;  // Its end of the link.
  };
  // It begins with what of the order its link takes, and warms up where there is none.
  absl::StatusOr<Child> Fork(std::string order);
  [[noreturn]] void RunChild(int link);
  void ForgetOthers();
  std::size_t StandbysWanted() const;
  void DropDeadStandbys();
  absl::StatusOr<Child> ChildFor(const worker::v1::CompilerOrder& order);
  static void SendOrder(Child& child);
  void Read(Child& child) const;
  static void Kill(Child& child, End why);
  bool UsedItsTime(const rusage& used) const;
  worker::v1::CompilerAnswer AnswerOf(const Child& child, int status, const rusage& used) const;

  const Tools& tools_;
  const Limits limits_;
  const Clock& clock_;
  const std::function<void()> forget_others_;
  std::map<std::uint64_t, Child> children_;  // By their orders.
  std::deque<Child> standbys_;               // The oldest first: it is warm before the others.
  std::string last_arch_;                    // Asked for: who stands by is warm for it.
  absl::Time next_standby_ = absl::InfinitePast();
  std::vector<worker::v1::CompilerAnswer> unstarted_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_COMPILER_CHILDREN_H_
