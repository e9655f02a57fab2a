// Which compile is next: round robin between principals, first come first served within one, and
// nobody holds all places at once where there are several.
#ifndef GRIDCLOCK_SERVER_CORE_COMPILE_QUEUE_H_
#define GRIDCLOCK_SERVER_CORE_COMPILE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/core/limits.h"

namespace gridclock {

// Not thread-safe.
class CompileQueue {
 public:
  explicit CompileQueue(const Limits& limits);

  // RESOURCE_EXHAUSTED (QUEUE_FULL, with retry_after) if too many wait, of all or of this
  // principal.
  absl::Status Add(absl::string_view principal, std::uint64_t id);
  // Takes the one whose turn it is; it runs from now on. nullopt: none waits, or none may run.
  std::optional<std::uint64_t> Next();
  // It ended, or shall not run: true if it was waiting.
  bool Remove(std::uint64_t id);

  std::size_t waiting() const { return waiting_; }
  std::size_t running() const { return running_.size(); }

 private:
  struct Line {
    std::deque<std::uint64_t> waiting;
    std::size_t running = 0;
  };
  using Lines = std::map<std::string, Line, std::less<>>;
  bool MayRun(const Line& line) const;
  void DropIfIdle(Lines::iterator line);

  const std::size_t most_, most_of_one_, slots_, slots_of_one_;
  Lines lines_;
  std::map<std::uint64_t, std::string> running_;  // Principal by id.
  std::string served_;                            // Whose turn was last.
  std::size_t waiting_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_COMPILE_QUEUE_H_
