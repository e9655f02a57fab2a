#include "server/fleet/fleet.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/fleet/device_runner.h"
#include "server/fleet/runnable.h"

namespace gridclock {
namespace {

constexpr std::chrono::milliseconds kTick{5};

}  // namespace

void Strike(const FleetContext& context, const JobProgram& program, absl::string_view why) {
  for (const ProgramModule& module : program.modules) {
    context.strikes->Add(module.id, why);
    if (const absl::Status runs = context.strikes->Check(module.id); !runs.ok()) {
      context.scheduler.EndProgramsOf(module.id, runs);
    }
  }
}

absl::StatusOr<std::unique_ptr<Fleet>> Fleet::Create(const FleetOptions& options,
                                                     const FleetContext& context) {
  std::error_code error;
  FleetOptions resolved = options;
  // Workers start in "/", so the path must not depend on where the server stands.
  resolved.worker_path = std::filesystem::absolute(options.worker_path, error).string();
  if (error) resolved.worker_path = options.worker_path;
  GC_RETURN_IF_ERROR(CheckRunnable("a worker program", resolved.worker_path));
  const std::uint64_t want = context.allocator.capacity() + OwnBytes(options.devices.size());
  if (context.arena.size() < want) {
    return absl::FailedPreconditionError(
        absl::StrCat("want an arena of ", want, " bytes or more, got ", context.arena.size()));
  }
  return std::unique_ptr<Fleet>(new Fleet(resolved, context));
}

Fleet::Fleet(const FleetOptions& options, const FleetContext& context) : context_(context) {
  const auto copiers = std::make_shared<Copiers>(options.copiers);
  MemoryRange canary = {.offset = context.allocator.capacity(), .size = ArenaAllocator::kPage};
  for (const std::string& device : options.devices) {
    links_.emplace_back(new DeviceLink{
        .device = device, .canary = canary, .generations = generations_, .copiers = copiers});
    canary.offset += canary.size;
  }
  for (const auto& link : links_) {
    runners_.push_back(
        std::make_unique<DeviceRunner>(options, context, *link, WorkerRole::kTrusted));
    if (options.guest_bytes == 0) continue;
    runners_.push_back(std::make_unique<DeviceRunner>(options, context, *link, WorkerRole::kGuest));
    context.scheduler.AddGuests(link->device, *runners_.back());
  }
}

Fleet::~Fleet() {
  Stop();
}

void Fleet::Start() {
  for (const auto& runner : runners_) runner->StartThread();
  ticker_ = std::thread([this] { TickUntilStopped(); });
}

void Fleet::TickUntilStopped() {
  while (!stopping_) {
    context_.scheduler.Tick();
    std::this_thread::sleep_for(kTick);
  }
}

void Fleet::Stop() {
  for (const auto& runner : runners_) runner->Stop();
  for (const auto& runner : runners_) runner->Join();
  stopping_ = true;
  if (ticker_.joinable()) ticker_.join();
}

}  // namespace gridclock
