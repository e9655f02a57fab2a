#include "server/core/compile_queue.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

absl::Status Full(std::size_t waiting, absl::string_view whose) {
  return WithDetails(absl::ResourceExhaustedError(absl::StrCat(waiting, " compiles", whose,
                                                               " wait already; try again later")),
                     {.reason = "QUEUE_FULL",
                      .field = "",
                      .retry_after = absl::Milliseconds(200),
                      .metadata = {{"limit", "compile_queue"}}});
}

}  // namespace

CompileQueue::CompileQueue(const Limits& limits)
    : most_(static_cast<std::size_t>(limits.compile_queue)),
      most_of_one_(std::max<std::size_t>(most_ / 2, 1)),
      slots_(static_cast<std::size_t>(limits.compiles)),
      slots_of_one_(std::max<std::size_t>(slots_ - 1, 1)) {}

absl::Status CompileQueue::Add(absl::string_view principal, std::uint64_t id) {
  if (waiting_ >= most_) return Full(waiting_, "");
  Line& line = lines_[std::string(principal)];
  if (line.waiting.size() >= most_of_one_) return Full(line.waiting.size(), " of this client");
  line.waiting.push_back(id);
  ++waiting_;
  return absl::OkStatus();
}

bool CompileQueue::MayRun(const Line& line) const {
  return !line.waiting.empty() && line.running < slots_of_one_;
}

std::optional<std::uint64_t> CompileQueue::Next() {
  if (running_.size() >= slots_) return std::nullopt;
  const auto may = [this](const auto& line) { return MayRun(line.second); };
  const auto start = lines_.upper_bound(served_);
  auto turn = std::find_if(start, lines_.end(), may);
  if (turn == lines_.end()) {
    turn = std::find_if(lines_.begin(), start, may);
    if (turn == start) return std::nullopt;
  }
  const std::uint64_t id = turn->second.waiting.front();
  turn->second.waiting.pop_front();
  ++turn->second.running;
  --waiting_;
  served_ = turn->first;
  running_.emplace(id, turn->first);
  return id;
}

void CompileQueue::DropIfIdle(Lines::iterator line) {
  if (line->second.waiting.empty() && line->second.running == 0) lines_.erase(line);
}

bool CompileQueue::Remove(std::uint64_t id) {
  if (const auto ran = running_.find(id); ran != running_.end()) {
    const auto line = lines_.find(ran->second);
    --line->second.running;
    running_.erase(ran);
    DropIfIdle(line);
    return false;
  }
  for (auto line = lines_.begin(); line != lines_.end(); ++line) {
    if (std::erase(line->second.waiting, id) == 0) continue;
    --waiting_;
    DropIfIdle(line);
    return true;
  }
  return false;
}

}  // namespace gridclock
