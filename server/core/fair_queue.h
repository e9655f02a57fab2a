// The waiting line of one device: round robin between principals, first come first served within
// one. A job that is not ready keeps its place and is passed over. One that is to run alone, in a
// process that runs nothing else, has its turn like its principal's others.
#ifndef GRIDCLOCK_SERVER_CORE_FAIR_QUEUE_H_
#define GRIDCLOCK_SERVER_CORE_FAIR_QUEUE_H_

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "proto/types/job.h"

namespace gridclock {

// Not thread-safe. Ids grow with time: they are the order of arrival.
class FairQueue {
 public:
  void Add(absl::string_view principal, JobId id);
  void SetReady(absl::string_view principal, JobId id, bool alone = false);
  // A job that was taken and did not run: it stands before all others, and is ready.
  void PutBack(absl::string_view principal, JobId id);
  // Wherever it stands.
  void Remove(absl::string_view principal, JobId id);

  // Whose turn it is, if anyone is ready.
  std::optional<JobId> Next() const;
  // The next of this principal that need not run alone.
  std::optional<JobId> NextOf(absl::string_view principal) const;
  // True if anyone else's job is ready, or one of this principal's that is to run alone.
  bool HasOthers(absl::string_view principal) const;
  // True if anyone else's job is ready.
  bool HasReadyOfOthers(absl::string_view principal) const;
  // Takes a job that is ready: that of Next() or NextOf().
  void Take(absl::string_view principal, JobId id);
  // So many turns of others go before this principal's next, where others are ready. It had a
  // turn before.
  void Charge(absl::string_view principal, int turns);

  int size() const { return size_; }
  int size(absl::string_view principal) const;
  // Principals that are remembered, with jobs or without.
  std::size_t lines() const { return lines_.size(); }

 private:
  struct Ready {
    JobId id = 0;
    bool alone = false;
  };
  struct Line {
    int size = 0;             // Ready or not, put back ones too.
    int charge = 0;           // Turns that it lets others have.
    std::deque<Ready> ready;  // Ascending.
  };
  using Lines = std::map<std::string, Line, std::less<>>;

  Lines::iterator LineOf(absl::string_view principal);
  // The first line with a ready job after the one that was served last, one that is charged only if
  // no other has any; end() if none has.
  Lines::const_iterator Turn() const;
  void Leave(Lines::iterator line);
  void EraseIfIdle(Lines::iterator line);
  static const Ready* FirstBesideOthers(const Line& line);
  // A turn was taken by this line while others were charged.
  void PayCharges(Lines::const_iterator taken);

  Lines lines_;
  std::deque<std::pair<JobId, std::string>> put_back_;  // Ascending.
  std::string served_;                                  // The principal whose turn was last.
  int size_ = 0;
  int charged_ = 0;  // Lines with a charge.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_FAIR_QUEUE_H_
