#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>

#include <cxxabi.h>

#include "kernels/device/cuda/cupti.h"

namespace gridclock {
namespace {

struct Free {
  void operator()(char* text) const { std::free(text); }
};

std::string Demangle(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, Free> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status));
  return status == 0 && text != nullptr ? text.get() : name;
}

bool Alike(const DeviceActivity& a, const DeviceActivity& b) {
  return a.kind == b.kind && a.name == b.name && std::equal(a.grid, a.grid + 3, b.grid) &&
         std::equal(a.block, a.block + 3, b.block);
}

// Serial records, 1.2 us longer than others, are then at most 2 % off. Blocks that take longer hide
// what their stamps cost; those of a device that is still on its way up look longer.
constexpr double kManyBlocks = 1 << 16, kShortNs = 200, kPerhapsShortNs = 2 * kShortNs;

// How long a multiprocessor has for each block of a launch of one kernel; endless if they are few.
double NsOfManyBlocks(std::span<const DeviceActivity> activities, int multiprocessors) {
  if (activities.size() != 1) return std::numeric_limits<double>::infinity();
  const DeviceActivity& kernel = activities[0];
  const double blocks = 1.0 * kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
  if (blocks < kManyBlocks) return std::numeric_limits<double>::infinity();
  return SpanNs(activities) * multiprocessors / blocks;
}

}  // namespace

double SpanNs(std::span<const DeviceActivity> activities) {
  std::uint64_t start = activities.front().start_ns, end = activities.front().end_ns;
  for (const DeviceActivity& activity : activities) {
    start = std::min(start, activity.start_ns);
    end = std::max(end, activity.end_ns);
  }
  return static_cast<double>(end - start);
}

bool RecordsChoice::Take(std::span<const DeviceActivity> record) {
  constexpr int kLooks = 3;
  if (!may_change_) return true;
  const double block_ns = NsOfManyBlocks(record, multiprocessors_);
  if (block_ns < kShortNs) {
    records_ = KernelRecords::kSerial;
    may_change_ = false;
    return false;
  }
  may_change_ = block_ns < kPerhapsShortNs && ++looks_ < kLooks;
  return !may_change_;
}

std::vector<Launch> SummariseActivities(std::span<const DeviceActivity> activities) {
  std::vector<Launch> launches;
  std::vector<const DeviceActivity*> firsts;  // Of each of them.
  for (const DeviceActivity& activity : activities) {
    const auto known = std::find_if(firsts.begin(), firsts.end(), [&](const DeviceActivity* first) {
      return Alike(*first, activity);
    });
    if (known != firsts.end()) {
      ++launches[static_cast<std::size_t>(known - firsts.begin())].count;
      continue;
    }
    firsts.push_back(&activity);
    Launch& launch = launches.emplace_back();
    launch.name = Demangle(activity.name);
    launch.count = 1;
    std::copy(activity.grid, activity.grid + 3, launch.grid);
    std::copy(activity.block, activity.block + 3, launch.block);
  }
  return launches;
}

std::int64_t CopiesAmong(std::span<const DeviceActivity> activities) {
  return std::count_if(activities.begin(), activities.end(), [](const DeviceActivity& activity) {
    return activity.kind == ActivityKind::kCopy;
  });
}

bool SameLaunches(std::span<const Launch> a, std::span<const Launch> b) {
  const auto same = [](const Launch& x, const Launch& y) {
    return x.name == y.name && x.count == y.count && std::equal(x.grid, x.grid + 3, y.grid) &&
           std::equal(x.block, x.block + 3, y.block);
  };
  return std::is_permutation(a.begin(), a.end(), b.begin(), b.end(), same);
}

}  // namespace gridclock
