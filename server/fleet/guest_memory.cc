#include "server/fleet/guest_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/fleet/output_result.h"

namespace gridclock {
namespace {

std::uint64_t Aligned(std::uint64_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

bool IsReturned(const JobOutput& output) {
  return output.sink == SinkKind::kInline || output.sink == SinkKind::kStream;
}

// All but the first `bytes`.
MemoryRange Behind(const MemoryRange& range, std::uint64_t bytes) {
  return {.offset = range.offset + bytes, .size = range.size - bytes};
}

// Each operand apart from the others. The server makes what is generated: the guest knows no seed.
void PlaceWithMargins(Job& placed) {
  std::uint64_t at = placed.memory.offset;
  const auto place = [&at](const OperandValue& value, MemoryRange& memory) {
    memory = {.offset = at, .size = OperandBytes(value) + 2 * kCheckMargin};
    at += memory.size;
  };
  for (JobInput& input : placed.inputs) {
    place(input.value, input.memory);
    input.source = SourceKind::kInline;
    input.generator = {};
  }
  for (JobOutput& output : placed.outputs) {
    if (output.in_place_of)
      output.memory = placed.inputs[*output.in_place_of].memory;
    else
      place(output.value, output.memory);
  }
  placed.check->secrets.clear();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GuestMemory>> GuestMemory::Create(std::uint64_t bytes,
                                                                 std::shared_ptr<Copiers> copiers,
                                                                 const CheckDefences& defences) {
  GC_ASSIGN_OR_RETURN(Arena arena, Arena::Create(bytes, /*warm_bytes=*/0));
  return std::unique_ptr<GuestMemory>(
      new GuestMemory(std::move(arena), std::move(copiers), defences));
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
  if (block.ok() || !empty()) return block;
  return WithDetails(
      absl::ResourceExhaustedError(absl::StrCat(
          "this call with its code needs ", bytes, " bytes beside its code's process; ",
          "the limit guest_bytes is ", allocator_.capacity())),
      {.reason = "TOO_LARGE",
       .field = "",
       .retry_after = std::nullopt,
       .metadata = {{"limit", "guest_bytes"}, {"value", absl::StrCat(allocator_.capacity())}}});
}

absl::StatusOr<GuestMemory::Room> GuestMemory::RoomFor(const Job& job, std::uint64_t bytes) {
  {
    MutexLock lock(mutex_);
    auto early = early_.extract(job.id);
    early_.clear();
    if (!early.empty()) return std::move(early.mapped());
  }
  GC_ASSIGN_OR_RETURN(ArenaAllocator::Block block, Reserve(bytes));
  return Room{.block = std::move(block),
              .copied = std::vector<std::uint64_t>(job.inputs.size(), 0)};
}

GuestMemory::Room* GuestMemory::EarlyRoomFor(const Job& job) {
  {
    MutexLock lock(mutex_);
    const auto found = early_.find(job.id);
    if (found != early_.end()) return &found->second;
  }
  Job placed = job;
  if (AddCode(placed) > 0) return nullptr;
  auto block = allocator_.Reserve(Aligned(GuestBytes(job)), "");
  if (!block.ok()) return nullptr;
  Room room{.block = *std::move(block), .copied = std::vector<std::uint64_t>(job.inputs.size(), 0)};
  MutexLock lock(mutex_);
  return &early_.emplace(job.id, std::move(room)).first->second;
}

void GuestMemory::CopyEarly(const Job& job, const InputArrival& arrival, const Arena& from) {
  if (copiers_->alone()) return;
  Room* room = EarlyRoomFor(job);
  if (room == nullptr || arrival.bytes <= room->copied[arrival.input]) return;
  std::uint64_t& copied = room->copied[arrival.input];
  MemoryRange piece = Behind(job.inputs[arrival.input].memory, copied);
  piece.size = std::min(arrival.bytes - copied, kEarlyPiece);
  const std::span<const std::byte> source = from.At(piece);
  piece.offset += room->block.range().offset - job.memory.offset;
  std::memcpy(arena_.At(piece).data(), source.data(), source.size());
  copied += piece.size;
}

void GuestMemory::DropEarly(JobId id) {
  MutexLock lock(mutex_);
  early_.erase(id);
}

void GuestMemory::CopyIn(const Job& job, const Job& placed, std::span<const std::uint64_t> copied,
                         const Arena& from) const {
  if (job.check) {
    LaunchCheck::FillForWarmUp(
        {.job = job, .placed = placed, .arena = from, .guest = arena_, .defences = defences_});
  }
  for (std::size_t i = 0; !job.check && i < job.inputs.size(); ++i) {
    if (job.inputs[i].source == SourceKind::kGenerate || job.inputs[i].memory.size == 0) continue;
    copiers_->Copy(arena_.At(Behind(placed.inputs[i].memory, copied[i])),
                   from.At(Behind(job.inputs[i].memory, copied[i])));
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
  const std::uint64_t tensors = Aligned(GuestBytes(job));
  GC_ASSIGN_OR_RETURN(Room room, RoomFor(job, tensors + code_bytes));
  const std::uint64_t shift = room.block.range().offset - job.memory.offset;
  placed.memory.offset += shift;
  if (job.check) {
    PlaceWithMargins(placed);
    if (!defences_.roofline) placed.check->bytes = placed.check->flops = 0;
  } else {
    for (JobInput& input : placed.inputs) input.memory.offset += shift;
    for (JobOutput& output : placed.outputs) output.memory.offset += shift;
  }
  Placed note{.block = std::move(room.block), .shift = shift, .modules = {}};
  for (std::size_t i = 0; i < placed.module_code.size(); ++i) {
    if (placed.module_code[i].size == 0) continue;
    placed.module_code[i].offset += placed.memory.offset + tensors;
    note.modules.push_back(placed.program->modules[i].id);
  }
  CopyIn(job, placed, room.copied, from);
  if (job.check) note.checked = std::make_shared<Placed::Checked>(Placed::Checked{placed});
  MutexLock lock(mutex_);
  NoteHeld(job);
  placed_.insert_or_assign(job.id, std::move(note));
  return placed;
}

absl::StatusOr<std::shared_ptr<GuestMemory::Placed::Checked>> GuestMemory::FindChecked(
    JobId id) const {
  MutexLock lock(mutex_);
  const auto found = placed_.find(id);
  if (found != placed_.end() && found->second.checked != nullptr) return found->second.checked;
  return absl::NotFoundError(absl::StrCat("order ", id, " has no launches to check"));
}

absl::Status GuestMemory::CheckLaunch(const Job& job, const Arena& to, std::uint32_t index,
                                      Step step) {
  GC_ASSIGN_OR_RETURN(const auto checked, FindChecked(job.id));
  const LaunchCheck::Parts parts = {
      .job = job, .placed = checked->placed, .arena = to, .guest = arena_, .defences = defences_};
  if (step == Step::kTake) return checked->check.Take(parts, index);
  return checked->check.Fill(parts, index, step == Step::kFillSubmitted);
}

absl::StatusOr<std::vector<OutputResult>> GuestMemory::FinishCheck(const Job& job, const Arena& to,
                                                                   std::size_t samples) {
  GC_ASSIGN_OR_RETURN(const auto checked, FindChecked(job.id));
  return checked->check.Finish(
      {.job = job, .placed = checked->placed, .arena = to, .guest = arena_, .defences = defences_},
      samples);
}

absl::StatusOr<std::vector<OutputResult>> GuestMemory::TakeOutputs(const Job& job,
                                                                   const Arena& to) const {
  std::uint64_t shift = 0;
  {
    MutexLock lock(mutex_);
    const auto found = placed_.find(job.id);
    if (found == placed_.end()) {
      return absl::NotFoundError(absl::StrCat("order ", job.id, " was not given to this guest"));
    }
    shift = found->second.shift;
  }
  std::vector<OutputResult> results;
  for (const JobOutput& output : job.outputs) {
    MemoryRange from = output.memory;
    if (from.size > 0) from.offset += shift;
    results.push_back(ResultOf(output, arena_.At(from)));
    if (IsReturned(output)) copiers_->Copy(to.At(output.memory), arena_.At(from));
  }
  return results;
}

bool GuestMemory::empty() const {
  MutexLock lock(mutex_);
  return placed_.empty();
}

bool GuestMemory::Holds(JobId id) const {
  MutexLock lock(mutex_);
  return placed_.contains(id);
}

void GuestMemory::NoteRan(JobId id) {
  MutexLock lock(mutex_);
  const auto found = placed_.find(id);
  if (found == placed_.end()) return;
  modules_.insert(found->second.modules.begin(), found->second.modules.end());
}

void GuestMemory::NoteHeld(const Job& job) {
  for (const ProgramModule& module : job.program->modules) {
    if (module.code == nullptr || !given_.insert(module.id).second) continue;
    code_bytes_ += module.code->cubin.size();
    variable_bytes_ += std::min(module.code->facts.global_bytes, ~variable_bytes_);
  }
  local_bytes_ = std::max(local_bytes_, job.local_bytes);
}

bool GuestMemory::worn() const {
  MutexLock lock(mutex_);
  return given_.size() >= kMostModules || code_bytes_ >= kMostCodeBytes ||
         variable_bytes_ >= kMostHeldBytes || local_bytes_ >= kMostHeldBytes - variable_bytes_;
}

void GuestMemory::Forget(JobId id) {
  MutexLock lock(mutex_);
  placed_.erase(id);
}

}  // namespace gridclock
