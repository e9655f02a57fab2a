#include "server/fleet/launch_check.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/fleet/output_result.h"

namespace gridclock {
namespace {

// SplitMix64: bytes that are there, not bytes that are secret.
void FillRandom(std::span<std::byte> bytes, std::uint64_t seed) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(seed)) {
    seed += 0x9E3779B97F4A7C15U;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    z ^= z >> 31;
    std::memcpy(&bytes[at], &z, std::min(sizeof(z), bytes.size() - at));
  }
}

std::uint64_t NewSeed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

// The elements of an operand that has margins.
MemoryRange Inside(const MemoryRange& whole) {
  return {.offset = whole.offset + kCheckMargin, .size = whole.size - 2 * kCheckMargin};
}

const std::string& InputName(const Job& job, std::size_t index) {
  return job.program->program.words.inputs[index].name;
}

bool IsOverwritten(const Job& job, std::size_t input) {
  return std::any_of(job.outputs.begin(), job.outputs.end(), [&](const JobOutput& output) {
    return output.in_place_of == static_cast<int>(input);
  });
}

// All operands of the guest's memory get values; poison and margins are random.
void FillAll(const LaunchCheck::Parts& parts, std::uint64_t seed_change, bool poison) {
  for (std::size_t i = 0; i < parts.job.inputs.size(); ++i) {
    const JobInput& input = parts.job.inputs[i];
    const MemoryRange& whole = parts.placed.inputs[i].memory;
    const std::span<std::byte> all = parts.guest.At(whole);
    FillRandom(all.first(kCheckMargin), NewSeed());
    FillRandom(all.last(kCheckMargin), NewSeed());
    const std::span<std::byte> to = parts.guest.At(Inside(whole));
    if (input.source == SourceKind::kGenerate) {
      Generator generator = input.generator;
      generator.seed ^= seed_change;
      GenerateOperand(generator, input.value, to.data());
    } else {
      std::memcpy(to.data(), parts.arena.At(input.memory).data(), to.size());
    }
  }
  for (const JobOutput& output : parts.placed.outputs) {
    if (output.in_place_of) continue;
    const std::span<std::byte> all = parts.guest.At(output.memory);
    FillRandom(all.first(kCheckMargin), NewSeed());
    FillRandom(all.last(kCheckMargin), NewSeed());
    if (poison) FillRandom(parts.guest.At(Inside(output.memory)), NewSeed());
  }
}

absl::Status OutOfTurn(const Job& job, absl::string_view step, std::uint32_t index) {
  return absl::InvalidArgumentError(absl::StrCat("job ", job.id, ": step ", step,
                                                 " of checked launch ", index, " is out of turn"));
}

}  // namespace

LaunchCheck::LaunchCheck() {
  static_assert(sizeof(secret_) >= XXH3_SECRET_SIZE_MIN);
  std::random_device device;
  for (std::uint32_t& word : secret_) word = device();
}

XXH128_hash_t LaunchCheck::SumOf(std::span<const std::byte> bytes) const {
  return XXH3_128bits_withSecret(bytes.data(), bytes.size(), secret_.data(), sizeof(secret_));
}

void LaunchCheck::FillForWarmUp(const Parts& parts) {
  FillAll(parts,
          parts.job.check->fresh && parts.defences.fresh ? parts.job.check->secrets.back() : 0,
          parts.defences.poison);
}

absl::Status LaunchCheck::Fill(const Parts& parts, std::uint32_t index, bool submitted) {
  const JobCheck& check = *parts.job.check;
  const bool in_turn = !filled_ && !last_submitted_ && index == seed_changes_.size() &&
                       index < static_cast<std::uint32_t>(check.most_launches);
  if (!in_turn) return OutOfTurn(parts.job, "fill", index);
  const bool fresh = check.fresh && !submitted && parts.defences.fresh;
  seed_changes_.push_back(check.replays || fresh ? check.secrets[index] : 0);
  FillAll(parts, seed_changes_.back(), parts.defences.poison);
  filled_ = true;
  last_submitted_ = submitted;
  NoteSums(parts);
  return absl::OkStatus();
}

void LaunchCheck::NoteSums(const Parts& parts) {
  sums_.clear();
  const auto note = [&](const MemoryRange& range, bool margin, std::string what) {
    sums_.push_back({.range = range,
                     .value = SumOf(parts.guest.At(range)),
                     .margin = margin,
                     .what = std::move(what)});
  };
  // Before the operand, and behind each of its tensors up to where the next one or the margin
  // begins.
  const auto note_beside = [&](const OperandValue& value, const MemoryRange& whole,
                               const std::string& name) {
    note({.offset = whole.offset, .size = kCheckMargin}, true,
         absl::StrCat("memory before '", name, "' was written"));
    std::uint64_t at = Inside(whole).offset;
    for (std::size_t i = 0; i < value.tensors.size(); ++i) {
      const std::uint64_t begin = at + static_cast<std::uint64_t>(Bytes(value.tensors[i]));
      at = (begin + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
      const bool is_last = i + 1 == value.tensors.size();
      const std::uint64_t end = is_last ? whole.offset + whole.size : at;
      if (begin == end) continue;
      note({.offset = begin, .size = end - begin}, true,
           absl::StrCat("memory behind '", name, "' was written"));
    }
  };
  for (std::size_t i = 0; i < parts.placed.inputs.size(); ++i) {
    const MemoryRange& whole = parts.placed.inputs[i].memory;
    note_beside(parts.placed.inputs[i].value, whole, InputName(parts.job, i));
    if (IsOverwritten(parts.job, i)) continue;
    note(Inside(whole), false, absl::StrCat("input '", InputName(parts.job, i), "' was changed"));
  }
  for (const JobOutput& output : parts.placed.outputs) {
    if (!output.in_place_of) note_beside(output.value, output.memory, output.name);
  }
}

absl::Status LaunchCheck::Take(const Parts& parts, std::uint32_t index) {
  if (!filled_ || index + 1 != seed_changes_.size()) return OutOfTurn(parts.job, "take", index);
  filled_ = false;
  for (std::size_t i = 0; i < parts.placed.outputs.size(); ++i) {
    const JobOutput& output = parts.placed.outputs[i];
    const MemoryRange& whole =
        output.in_place_of ? parts.placed.inputs[*output.in_place_of].memory : output.memory;
    const MemoryRange to = CheckedOutput(parts.job, index, i);
    std::memcpy(parts.arena.At(to).data(), parts.guest.At(Inside(whole)).data(), to.size);
  }
  for (const Sum& sum : sums_) {
    const bool looked_at = sum.margin ? parts.defences.margins : parts.defences.inputs;
    if (!looked_at || XXH128_isEqual(SumOf(parts.guest.At(sum.range)), sum.value)) continue;
    ++violations_;
    if (first_violation_.empty()) {
      first_violation_ = absl::StrCat(sum.what, ", in checked launch ", index + 1);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OutputResult>> LaunchCheck::Finish(const Parts& parts,
                                                              std::size_t samples) {
  const Job& job = parts.job;
  const bool batches = job.measure && job.measure->method == Method::kBackToBack;
  const std::size_t timed = seed_changes_.size() - (last_submitted_ ? 1 : 0);
  const bool complete = !filled_ && !seed_changes_.empty() && timed == (batches ? 0 : samples) &&
                        (last_submitted_ || !job.check->fresh);
  const auto most = static_cast<std::size_t>(job.check->most_launches);
  if (!complete || (job.check->replays && seed_changes_.size() != most)) {
    return absl::InvalidArgumentError(
        absl::StrCat("job ", job.id, ": ", samples, " samples are reported and ",
                     seed_changes_.size(), " launches were given to be checked"));
  }
  const std::size_t last = seed_changes_.size() - 1;
  std::vector<OutputResult> results;
  for (std::size_t i = 0; i < job.outputs.size(); ++i) {
    const std::span<const std::byte> from = parts.arena.At(CheckedOutput(job, last, i));
    results.push_back(ResultOf(job.outputs[i], from));
    const MemoryRange& to = job.outputs[i].memory;
    if (to.size > 0) std::memcpy(parts.arena.At(to).data(), from.data(), from.size());
  }
  *job.check->done = {.seed_changes = seed_changes_,
                      .first = parts.defences.timed ? 0 : last,
                      .violations = violations_,
                      .first_violation = first_violation_};
  if (job.check->program != nullptr) {
    job.check->done->reference = std::make_shared<const Job>(ReferenceJob(job));
  }
  return results;
}

}  // namespace gridclock
