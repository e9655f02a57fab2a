#include "server/core/fair_queue.h"

#include <algorithm>

namespace gridclock {
namespace {

// Lines without jobs are kept up to this number, so that a lone client's calls allocate nothing.
constexpr std::size_t kIdleLines = 64;

void InsertSorted(std::deque<JobId>& ids, JobId id) {
  // Nearly always the youngest.
  if (ids.empty() || ids.back() < id)
    ids.push_back(id);
  else
    ids.insert(std::lower_bound(ids.begin(), ids.end(), id), id);
}

}  // namespace

FairQueue::Lines::iterator FairQueue::LineOf(absl::string_view principal) {
  const auto found = lines_.find(principal);
  return found != lines_.end() ? found : lines_.emplace(std::string(principal), Line{}).first;
}

void FairQueue::Add(absl::string_view principal, JobId /*id*/) {
  ++LineOf(principal)->second.size;
  ++size_;
}

void FairQueue::SetReady(absl::string_view principal, JobId id) {
  InsertSorted(LineOf(principal)->second.ready, id);
}

void FairQueue::PutBack(absl::string_view principal, JobId id) {
  Add(principal, id);
  std::pair<JobId, std::string> entry(id, std::string(principal));
  put_back_.insert(std::lower_bound(put_back_.begin(), put_back_.end(), entry), std::move(entry));
}

void FairQueue::Remove(absl::string_view principal, JobId id) {
  const auto line = LineOf(principal);
  std::erase(line->second.ready, id);
  std::erase_if(put_back_, [id](const auto& entry) { return entry.first == id; });
  Leave(line);
}

FairQueue::Lines::const_iterator FairQueue::Turn() const {
  const auto ready = [](const auto& line) { return !line.second.ready.empty(); };
  const auto start = lines_.upper_bound(served_);
  const auto after = std::find_if(start, lines_.end(), ready);
  if (after != lines_.end()) return after;
  const auto before = std::find_if(lines_.begin(), start, ready);
  return before != start ? before : lines_.end();
}

std::optional<JobId> FairQueue::Next() const {
  if (!put_back_.empty()) return put_back_.front().first;
  const auto turn = Turn();
  if (turn == lines_.end()) return std::nullopt;
  return turn->second.ready.front();
}

void FairQueue::Pop() {
  if (!put_back_.empty()) {
    const auto line = LineOf(put_back_.front().second);
    put_back_.pop_front();
    return Leave(line);
  }
  const auto turn = LineOf(Turn()->first);
  turn->second.ready.pop_front();
  served_ = turn->first;
  Leave(turn);
}

void FairQueue::Leave(Lines::iterator line) {
  --size_;
  if (--line->second.size == 0 && lines_.size() > kIdleLines) lines_.erase(line);
}

int FairQueue::size(absl::string_view principal) const {
  const auto found = lines_.find(principal);
  return found == lines_.end() ? 0 : found->second.size;
}

}  // namespace gridclock
