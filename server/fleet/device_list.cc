#include "server/fleet/device_list.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <optional>

#include <google/protobuf/util/json_util.h>
#include <poll.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/status.h"
#include "gridclock/worker/v1/worker.pb.h"
#include "server/fleet/worker_process.h"

namespace gridclock {
namespace {

constexpr std::size_t kMostBytes = 64 * 1024;

absl::StatusOr<ListedDevice> ParseLine(absl::string_view line) {
  worker::v1::DeviceFacts facts;
  // A worker program of another version may say more here; what it speaks is held against ours
  // when it starts.
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status =
      google::protobuf::util::JsonStringToMessage(std::string(line), &facts, options);
  if (!status.ok() || facts.name().empty() || facts.kind().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("want a device as JSON, got '", line.substr(0, 200), "'"));
  }
  return ListedDevice{facts.name(), facts.kind(), facts.uuid(), facts.model()};
}

absl::Status TooSlow(absl::Duration limit) {
  return absl::DeadlineExceededError(
      absl::StrCat("listing devices took longer than ", absl::FormatDuration(limit)));
}

// All that `process` prints, until it closes its output.
absl::StatusOr<std::string> ReadAll(const WorkerProcess& process, absl::Duration limit) {
  const MonotonicClock clock;
  const absl::Time end = clock.Now() + limit;
  std::string text;
  char buffer[4096];
  while (true) {
    const std::int64_t left = absl::ToInt64Milliseconds(end - clock.Now());
    if (left <= 0) return TooSlow(limit);
    pollfd fd = {.fd = process.output_fd(), .events = POLLIN, .revents = 0};
    if (poll(&fd, 1, static_cast<int>(std::min<std::int64_t>(left, 1000))) <= 0) continue;
    const ssize_t size = read(process.output_fd(), buffer, sizeof(buffer));
    if (size == 0) return text;
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (size < 0) return ErrnoToStatus(errno, "read the list of devices");
    text.append(buffer, static_cast<std::size_t>(size));
    if (text.size() > kMostBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("want a list of devices of at most ", kMostBytes, " bytes, got more"));
    }
  }
}

std::string Names(const DeviceList& list) {
  std::vector<std::string> names;
  for (const ListedDevice& device : list.devices) {
    names.push_back(device.uuid.empty() ? device.name
                                        : absl::StrCat(device.name, " (", device.uuid, ")"));
  }
  return absl::StrJoin(names, ", ");
}

std::vector<ListedDevice> Gpus(const DeviceList& list) {
  std::vector<ListedDevice> gpus;
  std::copy_if(list.devices.begin(), list.devices.end(), std::back_inserter(gpus),
               [](const ListedDevice& device) { return device.kind == "cuda"; });
  return gpus;
}

absl::Status NotHere(absl::string_view wanted, const DeviceList& list) {
  return WithReason(absl::FailedPreconditionError(absl::StrCat(
                        "--devices: no '", wanted, "' here; there are ", Names(list),
                        list.remarks.empty() ? "" : absl::StrCat(" (", list.remarks, ")"))),
                    "NO_DEVICE");
}

// A number for a device that is not listed, above all that are.
std::string FreeName(const DeviceList& list, const std::vector<ListedDevice>& taken) {
  return absl::StrCat("cuda:", Gpus(list).size() + taken.size());
}

absl::StatusOr<std::vector<ListedDevice>> SelectOne(absl::string_view wanted,
                                                    const DeviceList& list,
                                                    const std::vector<ListedDevice>& taken) {
  if (wanted == "cpu") return std::vector<ListedDevice>{{"cpu", "cpu", "", ""}};
  if (wanted == "cuda") {
    std::vector<ListedDevice> gpus = Gpus(list);
    if (gpus.empty()) return NotHere(wanted, list);
    return gpus;
  }
  const auto found = std::find_if(
      list.devices.begin(), list.devices.end(),
      [&](const ListedDevice& device) { return device.name == wanted || device.uuid == wanted; });
  if (found != list.devices.end()) return std::vector<ListedDevice>{*found};
  if (absl::StartsWith(wanted, "MIG-") && !Gpus(list).empty()) {
    return std::vector<ListedDevice>{{FreeName(list, taken), "cuda", std::string(wanted), ""}};
  }
  return NotHere(wanted, list);
}

}  // namespace

absl::StatusOr<DeviceList> ParseDeviceList(absl::string_view text) {
  DeviceList list;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    if (absl::StartsWith(line, "{")) {
      GC_ASSIGN_OR_RETURN(list.devices.emplace_back(), ParseLine(line));
    } else {
      absl::StrAppend(&list.remarks, list.remarks.empty() ? "" : "; ", line);
    }
  }
  return list;
}

absl::StatusOr<DeviceList> ListDevices(const std::string& worker_path,
                                       const std::vector<std::string>& environment,
                                       absl::Duration limit) {
  // It starts in "/", so its path must not depend on where this process stands.
  std::error_code error;
  const std::string path = std::filesystem::absolute(worker_path, error).string();
  GC_ASSIGN_OR_RETURN(
      WorkerProcess process,
      WorkerProcess::Spawn({.path = path, .args = {"--list-devices"}, .environment = environment}));
  GC_ASSIGN_OR_RETURN(const std::string text, ReadAll(process, limit));
  const std::optional<WorkerProcess::Exit> exit = process.Reap(limit);
  if (!exit) return TooSlow(limit);
  if (exit->signal != 0 || exit->code != 0) {
    return absl::InternalError(
        absl::StrCat("the list of devices ended by ", exit->signal != 0 ? "signal " : "exit code ",
                     exit->signal != 0 ? exit->signal : exit->code, ": ", text.substr(0, 500)));
  }
  return ParseDeviceList(text);
}

absl::StatusOr<std::vector<ListedDevice>> SelectDevices(absl::string_view wanted,
                                                        const DeviceList& list) {
  if (wanted == "auto") wanted = Gpus(list).empty() ? "cpu" : "cuda";
  std::vector<ListedDevice> selected;
  for (const absl::string_view name : absl::StrSplit(wanted, ',', absl::SkipEmpty())) {
    GC_ASSIGN_OR_RETURN(const auto found, SelectOne(name, list, selected));
    for (const ListedDevice& device : found) {
      const bool twice =
          std::any_of(selected.begin(), selected.end(), [&](const ListedDevice& other) {
            return other.name == device.name || (!other.uuid.empty() && other.uuid == device.uuid);
          });
      if (twice) {
        return absl::InvalidArgumentError(
            absl::StrCat("--devices: want each device once, got '", device.name, "' again"));
      }
      selected.push_back(device);
    }
  }
  if (selected.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices: want auto, or names like cpu,cuda:0, got '", wanted, "'"));
  }
  return selected;
}

}  // namespace gridclock
