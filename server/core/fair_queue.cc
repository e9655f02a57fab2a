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
  const auto start = lines_.upper_bound(served_);
  const auto first = [&](const auto& wanted) {
    const auto after = std::find_if(start, lines_.end(), wanted);
    if (after != lines_.end()) return after;
    const auto before = std::find_if(lines_.begin(), start, wanted);
    return before != start ? before : lines_.end();
  };
  const auto ready = [](const auto& line) { return !line.second.ready.empty(); };
  if (charged_ == 0) return first(ready);
  const auto free = first([&](const auto& line) { return ready(line) && line.second.charge == 0; });
  return free != lines_.end() ? free : first(ready);
}

std::optional<JobId> FairQueue::Next() const {
  if (!put_back_.empty()) return put_back_.front().first;
  const auto turn = Turn();
  if (turn == lines_.end()) return std::nullopt;
  return turn->second.ready.front();
}

std::optional<JobId> FairQueue::NextOf(absl::string_view principal) const {
  for (const auto& [id, owner] : put_back_) {
    if (owner == principal) return id;
  }
  const auto line = lines_.find(principal);
  if (line == lines_.end() || line->second.ready.empty()) return std::nullopt;
  return line->second.ready.front();
}

bool FairQueue::HasOthers(absl::string_view principal) const {
  return std::any_of(put_back_.begin(), put_back_.end(),
                     [&](const auto& entry) { return entry.second != principal; }) ||
         std::any_of(lines_.begin(), lines_.end(), [&](const auto& line) {
           return line.first != principal && !line.second.ready.empty();
         });
}

void FairQueue::Take(absl::string_view principal, JobId id) {
  const auto line = LineOf(principal);
  const auto is_it = [id](const auto& entry) { return entry.first == id; };
  const auto back = std::find_if(put_back_.begin(), put_back_.end(), is_it);
  if (back != put_back_.end()) {
    put_back_.erase(back);
    return Leave(line);
  }
  if (!line->second.ready.empty() && line->second.ready.front() == id)
    line->second.ready.pop_front();
  else
    std::erase(line->second.ready, id);
  if (charged_ > 0) PayCharges(line);
  served_ = line->first;
  Leave(line);
}

void FairQueue::Charge(absl::string_view principal, int turns) {
  const auto line = LineOf(principal);
  if (line->second.charge == 0 && turns > 0) ++charged_;
  line->second.charge += turns;
}

void FairQueue::PayCharges(Lines::const_iterator taken) {
  for (auto line = lines_.begin(); line != lines_.end(); ++line) {
    if (line == taken || line->second.charge == 0) continue;
    if (--line->second.charge == 0) --charged_;
  }
}

void FairQueue::Leave(Lines::iterator line) {
  --size_;
  if (--line->second.size > 0 || lines_.size() <= kIdleLines) return;
  if (line->second.charge > 0) --charged_;
  lines_.erase(line);
}

int FairQueue::size(absl::string_view principal) const {
  const auto found = lines_.find(principal);
  return found == lines_.end() ? 0 : found->second.size;
}

int FairQueue::most_of_one() const {
  int most = 0;
  for (const auto& [principal, line] : lines_) most = std::max(most, line.size);
  return most;
}

}  // namespace gridclock
