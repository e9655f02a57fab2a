#include "server/core/read_gate.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

std::size_t HowMany(double bytes, double of_each) {
  return static_cast<std::size_t>(std::max(bytes / of_each, 1.0));
}

}  // namespace

double MostCollected(const Limits& limits) {
  return std::min(2 * limits.message_bytes, double{std::numeric_limits<std::int32_t>::max()});
}

ReadGate::ReadGate(double bytes, const Limits& limits)
    : most_reading_(HowMany(bytes / 2, MostCollected(limits) + limits.window_bytes)),
      most_waiting_(HowMany(bytes / 2, limits.window_bytes)) {}

ReadGate::Entry ReadGate::Enter(const std::string& client, std::weak_ptr<Reader> reader,
                                bool has_read) {
  const MutexLock lock(mutex_);
  Client& of_client = clients_[client];
  if (of_client.reading < most_reading_) {
    ++of_client.reading;
    return Entry::kNow;
  }
  auto& waiting = of_client.waiting;
  if (waiting.size() >= most_waiting_) {
    std::erase_if(waiting, [](const std::weak_ptr<Reader>& one) { return one.expired(); });
  }
  if (waiting.size() >= most_waiting_ && !has_read) return Entry::kFull;
  waiting.push_back(std::move(reader));
  return Entry::kLater;
}

void ReadGate::Leave(const std::string& client) {
  for (auto next = Next(client); next != nullptr; next = Next(client)) {
    if (next->TakeTurn()) return;
  }
}

std::shared_ptr<ReadGate::Reader> ReadGate::Next(const std::string& client) {
  const MutexLock lock(mutex_);
  const auto found = clients_.find(client);
  Client& of_client = found->second;
  while (!of_client.waiting.empty()) {
    auto next = of_client.waiting.front().lock();
    of_client.waiting.pop_front();
    if (next != nullptr) return next;
  }
  if (--of_client.reading == 0) clients_.erase(found);
  return nullptr;
}

absl::Status ReadGate::Full() const {
  return WithDetails(absl::ResourceExhaustedError(absl::StrCat(
                         "messages of this client are on their way already: ", most_reading_,
                         " are read and ", most_waiting_, " wait for their turn; try again later")),
                     {.reason = "QUEUE_FULL",
                      .field = "",
                      .retry_after = absl::Milliseconds(100),
                      .metadata = {{"limit", "rpc_bytes"}}});
}

}  // namespace gridclock
