#include "server/fleet/guest_memory.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

std::uint64_t Aligned(std::uint64_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

bool IsReturned(const JobOutput& output) {
  return output.sink == SinkKind::kInline || output.sink == SinkKind::kStream;
}

void Copy(const Arena& from, const MemoryRange& source, const Arena& to,
          const MemoryRange& target) {
  std::memcpy(to.At(target).data(), from.At(source).data(), source.size);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GuestMemory>> GuestMemory::Create(std::uint64_t bytes) {
  GC_ASSIGN_OR_RETURN(Arena arena, Arena::Create(bytes, /*warm_bytes=*/0));
  return std::unique_ptr<GuestMemory>(new GuestMemory(std::move(arena)));
}

std::uint64_t GuestMemory::AddCode(Job& job) const {
  std::uint64_t bytes = 0;
  MutexLock lock(mutex_);
  for (const ProgramModule& module : job.program->modules) {
    MemoryRange& range = job.module_code.emplace_back();
    if (module.code == nullptr || modules_.contains(module.id)) continue;
    range = {.offset = bytes, .size = module.code->cubin.size()};
    bytes += Aligned(range.size);
  }
  return bytes;
}

absl::StatusOr<ArenaAllocator::Block> GuestMemory::Reserve(std::uint64_t bytes) {
  auto block = allocator_.Reserve(bytes, "");
  if (block.ok()) return block;
  MutexLock lock(mutex_);
  if (!placed_.empty()) return block.status();
  return WithDetails(
      absl::ResourceExhaustedError(absl::StrCat(
          "this call with its code needs ", bytes, " bytes beside its code's process; ",
          "the limit guest_bytes is ", allocator_.capacity())),
      {.reason = "TOO_LARGE",
       .field = "",
       .retry_after = std::nullopt,
       .metadata = {{"limit", "guest_bytes"}, {"value", absl::StrCat(allocator_.capacity())}}});
}

void GuestMemory::CopyIn(const Job& job, const Job& placed, const Arena& from) const {
  for (std::size_t i = 0; i < job.inputs.size(); ++i) {
    if (job.inputs[i].source == SourceKind::kGenerate || job.inputs[i].memory.size == 0) continue;
    Copy(from, job.inputs[i].memory, arena_, placed.inputs[i].memory);
  }
  for (std::size_t i = 0; i < placed.module_code.size(); ++i) {
    const MemoryRange& range = placed.module_code[i];
    if (range.size == 0) continue;
    std::memcpy(arena_.At(range).data(), job.program->modules[i].code->cubin.data(), range.size);
  }
}

absl::StatusOr<Job> GuestMemory::Place(const Job& job, const Arena& from) {
  Job placed = job;
  const std::uint64_t code_bytes = AddCode(placed);
  const std::uint64_t tensors = Aligned(job.memory.size);
  GC_ASSIGN_OR_RETURN(ArenaAllocator::Block block, Reserve(tensors + code_bytes));
  const std::uint64_t shift = block.range().offset - job.memory.offset;
  placed.memory.offset += shift;
  for (JobInput& input : placed.inputs) input.memory.offset += shift;
  for (JobOutput& output : placed.outputs) output.memory.offset += shift;
  Placed note{.block = std::move(block), .shift = shift, .modules = {}};
  for (std::size_t i = 0; i < placed.module_code.size(); ++i) {
    if (placed.module_code[i].size == 0) continue;
    placed.module_code[i].offset += placed.memory.offset + tensors;
    note.modules.push_back(placed.program->modules[i].id);
  }
  CopyIn(job, placed, from);
  MutexLock lock(mutex_);
  placed_.insert_or_assign(job.id, std::move(note));
  return placed;
}

absl::Status GuestMemory::TakeOutputs(const Job& job, const Arena& to) const {
  std::uint64_t shift = 0;
  {
    MutexLock lock(mutex_);
    const auto found = placed_.find(job.id);
    if (found == placed_.end()) {
      return absl::NotFoundError(absl::StrCat("order ", job.id, " was not given to this guest"));
    }
    shift = found->second.shift;
  }
  for (const JobOutput& output : job.outputs) {
    if (!IsReturned(output) || output.memory.size == 0) continue;
    Copy(arena_, {.offset = output.memory.offset + shift, .size = output.memory.size}, to,
         output.memory);
  }
  return absl::OkStatus();
}

void GuestMemory::NoteRan(JobId id) {
  MutexLock lock(mutex_);
  const auto found = placed_.find(id);
  if (found != placed_.end()) {
    modules_.insert(found->second.modules.begin(), found->second.modules.end());
  }
}

void GuestMemory::Forget(JobId id) {
  MutexLock lock(mutex_);
  placed_.erase(id);
}

}  // namespace gridclock
