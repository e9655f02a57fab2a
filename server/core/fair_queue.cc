#include "server/core/fair_queue.h"

#include <algorithm>
#include <iterator>

namespace gridclock {
namespace {

// Lines without jobs or a charge are kept up to this number, so that a lone client's calls allocate
// nothing.
constexpr std::size_t kIdleLines = 64;
// Of one line. Who is charged has had a turn, and every turn pays for one of all others: so this
// bounds the charged lines too, however many principals come and do not return.
constexpr int kMostCharge = 64;

}  // namespace

FairQueue::Lines::iterator FairQueue::LineOf(absl::string_view principal) {
  const auto found = lines_.find(principal);
  return found != lines_.end() ? found : lines_.emplace(std::string(principal), Line{}).first;
}

void FairQueue::Add(absl::string_view principal, JobId /*id*/) {
  ++LineOf(principal)->second.size;
  ++size_;
}

void FairQueue::SetReady(absl::string_view principal, JobId id, bool alone) {
  std::deque<Ready>& ready = LineOf(principal)->second.ready;
  auto place = ready.end();
  // Nearly always the youngest.
  while (place != ready.begin() && std::prev(place)->id > id) --place;
  ready.insert(place, {id, alone});
}

void FairQueue::PutBack(absl::string_view principal, JobId id) {
  Add(principal, id);
  std::pair<JobId, std::string> entry(id, std::string(principal));
  put_back_.insert(std::lower_bound(put_back_.begin(), put_back_.end(), entry), std::move(entry));
}

void FairQueue::Remove(absl::string_view principal, JobId id) {
  const auto line = LineOf(principal);
  std::erase_if(line->second.ready, [id](const Ready& job) { return job.id == id; });
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
  return turn->second.ready.front().id;
}

const FairQueue::Ready* FairQueue::FirstBesideOthers(const Line& line) {
  const auto first = std::find_if(line.ready.begin(), line.ready.end(),
                                  [](const Ready& job) { return !job.alone; });
  return first == line.ready.end() ? nullptr : &*first;
}

std::optional<JobId> FairQueue::NextOf(absl::string_view principal) const {
  for (const auto& [id, owner] : put_back_) {
    if (owner == principal) return id;
  }
  const auto line = lines_.find(principal);
  if (line == lines_.end()) return std::nullopt;
  const Ready* first = FirstBesideOthers(line->second);
  return first != nullptr ? std::optional(first->id) : std::nullopt;
}

bool FairQueue::HasOthers(absl::string_view principal) const {
  if (HasReadyOfOthers(principal)) return true;
  const auto line = lines_.find(principal);
  if (line == lines_.end()) return false;
  const std::deque<Ready>& ready = line->second.ready;
  return std::any_of(ready.begin(), ready.end(), [](const Ready& job) { return job.alone; });
}

bool FairQueue::HasReadyOfOthers(absl::string_view principal) const {
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
  std::deque<Ready>& ready = line->second.ready;
  if (!ready.empty() && ready.front().id == id)
    ready.pop_front();
  else
    std::erase_if(ready, [id](const Ready& job) { return job.id == id; });
  if (charged_ > 0) PayCharges(line);
  served_ = line->first;
  Leave(line);
}

void FairQueue::Charge(absl::string_view principal, int turns) {
  const auto line = LineOf(principal);
  if (line->second.charge == 0 && turns > 0) ++charged_;
  line->second.charge = std::min(line->second.charge + turns, kMostCharge);
}

void FairQueue::PayCharges(Lines::const_iterator taken) {
  for (auto next = lines_.begin(); next != lines_.end();) {
    const auto line = next++;
    if (line == taken || line->second.charge == 0) continue;
    if (--line->second.charge > 0) continue;
    --charged_;
    EraseIfIdle(line);
  }
}

void FairQueue::Leave(Lines::iterator line) {
  --size_;
  --line->second.size;
  EraseIfIdle(line);
}

void FairQueue::EraseIfIdle(Lines::iterator line) {
  if (line->second.size > 0 || line->second.charge > 0 || lines_.size() <= kIdleLines) return;
  lines_.erase(line);
}

int FairQueue::size(absl::string_view principal) const {
  const auto found = lines_.find(principal);
  return found == lines_.end() ? 0 : found->second.size;
}

}  // namespace gridclock
