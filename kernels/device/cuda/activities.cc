#include <algorithm>
#include <cstdlib>
#include <memory>

#include <cxxabi.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
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

// Where both kinds read the same on an H200: of twice as many blocks their stamps show in
// concurrent records, of half as many serial ones read 0.1 us more.
constexpr double kManyBlocks = 1 << 11;

// 0 of a launch of several kernels.
double BlocksOf(std::span<const DeviceActivity> activities) {
  if (activities.size() != 1) return 0;
  const DeviceActivity& kernel = activities[0];
  return 1.0 * kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
}

std::string Words(std::span<const Launch> kernels) {
  return absl::StrJoin(kernels, ", ", [](std::string* out, const Launch& kernel) {
    absl::StrAppend(out, kernel.count, " x '", kernel.name, "'");
  });
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

double RecordsChoice::TimeOf(std::span<const DeviceActivity> record) const {
  return SpanNs(record) - (records_ == KernelRecords::kSerial ? serial_beyond_ns_ : 0);
}

bool RecordsChoice::Take(std::span<const DeviceActivity> record) {
  if (!may_change_) return true;
  may_change_ = false;
  if (BlocksOf(record) < kManyBlocks) return true;
  records_ = KernelRecords::kSerial;
  return false;
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

absl::StatusOr<bool> LaunchList::Take(const std::vector<Launch>& ran) {
  constexpr int kMostOthers = 3;  // The first is one.
  const bool same = SameLaunches(ran_, ran);
  if (!same && (known_ || ++others_ > kMostOthers)) {
    return WithReason(
        absl::UnavailableError(absl::StrCat("CUPTI recorded ", Words(ran), " of this launch, ",
                                            Words(ran_), " of the one before: not trusted")),
        "RECORD_LOST");
  }
  known_ = same;
  ran_ = ran;
  return known_;
}

}  // namespace gridclock
