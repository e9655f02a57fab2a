#include "kernels/worker/compare_launches.h"

#include <algorithm>
#include <new>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/verify/verify.h"
#include "proto/types/job.h"
#include "proto/types/tensor.h"
#include "proto/types/tensor_offsets.h"

namespace gridclock {
namespace {

// Of the reference, for all launches but the last, which has as many as any verification.
constexpr std::int64_t kTimedTerms = std::int64_t{1} << 27;

OperandView ViewAt(const OperandValue& value, std::byte* base) {
  OperandView view{&value, {}};
  for (const std::uint64_t offset : TensorOffsets(value)) view.data.push_back(base + offset);
  return view;
}

void NameLaunch(absl::string_view prefix, Verification* found) {
  if (found->first_mismatch.empty()) return;
  found->first_mismatch = absl::StrCat(prefix, found->first_mismatch);
  for (std::string& text : found->more_mismatches) text = absl::StrCat(prefix, text);
}

// The inputs of the launches, in the arena: there the job pays for them.
class Inputs {
 public:
  Inputs(const WorkerComparison& comparison, std::span<std::byte> arena)
      : inputs_(comparison.inputs), arena_(arena) {
    for (const WorkerOperand& input : inputs_) {
      views_.push_back(ViewAt(input.value, At(input)));
    }
  }

  std::span<const OperandView> views() const { return views_; }

  // The values of the launch of this change of the seeds.
  void Make(std::uint64_t seed_change) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].generate || (made_once_ && !MadeFromSeed(*inputs_[i].generate))) continue;
      Generator generator = *inputs_[i].generate;
      generator.seed ^= seed_change;
      GenerateOperand(generator, inputs_[i].value, At(inputs_[i]));
    }
    made_once_ = true;
  }

 private:
  std::byte* At(const WorkerOperand& input) const { return arena_.data() + input.memory.offset; }

  const std::vector<WorkerOperand>& inputs_;
  const std::span<std::byte> arena_;
  std::vector<OperandView> views_;
  bool made_once_ = false;
};

class Comparer {
 public:
  Comparer(const WorkerComparison& comparison, const CompareParts& parts)
      : comparison_(comparison),
        parts_(parts),
        end_(std::min(comparison.deadline, parts.clock.Now() + comparison.time_limit)),
        seed_(std::random_device{}()) {}

  absl::StatusOr<Verification> Run() {
    if (!comparison_.kernel.empty()) GC_RETURN_IF_ERROR(FindReference());
    Inputs inputs(comparison_, parts_.arena);
    Verification all;
    const std::size_t launches = comparison_.seed_changes.size();
    for (std::size_t i = 0; i < launches; ++i) {
      const bool last = i + 1 == launches;
      const std::uint64_t change = comparison_.seed_changes[i];
      GC_ASSIGN_OR_RETURN(
          Verification found,
          comparison_.kernel.empty()
              ? AgainstExpected(i, i)
              : AgainstKernel(i, inputs, change,
                              last ? VerifyOptions().most_terms
                                   : kTimedTerms / static_cast<std::int64_t>(launches)));
      if (launches > 1) NameLaunch(absl::StrCat("launch ", i + 1, " of ", launches, ": "), &found);
      found.launches = 1;
      found.fresh_launches = change == 0 ? 0 : 1;
      all.Add(found);
    }
    if (all.mismatches != 0) return all;
    GC_ASSIGN_OR_RETURN(const bool tells, TellsLaunchesApart(inputs));
    all.undecided_output = all.undecided_output || !tells;
    return all;
  }

 private:
  // Whether most launches, which are right, would have been wrong as the last one, where that had
  // other values. If not, a result that was kept, or known without looking, would have passed too.
  // `inputs`: as the last launch had them.
  absl::StatusOr<bool> TellsLaunchesApart(const Inputs& inputs) {
    const std::vector<std::uint64_t>& changes = comparison_.seed_changes;
    const std::int64_t most_terms = kTimedTerms / std::ssize(changes);
    int compared = 0, alike = 0;
    for (std::size_t i = 0; i + 1 < changes.size(); ++i) {
      if (changes[i] == changes.back()) continue;
      GC_ASSIGN_OR_RETURN(const Verification stale, comparison_.kernel.empty()
                                                        ? AgainstExpected(i, changes.size() - 1)
                                                        : VerifyLaunch(i, inputs, most_terms));
      ++compared;
      if (stale.alike_output) ++alike;
    }
    return compared == 0 || 2 * alike < compared;
  }

  absl::Status Poll() const {
    if (parts_.cancelled()) return absl::CancelledError("cancelled while verifying");
    if (parts_.clock.Now() < end_) return absl::OkStatus();
    return WithReason(
        absl::DeadlineExceededError(absl::StrCat(
            "the launches ended in time, but comparing their outputs took longer than ",
            absl::FormatDuration(comparison_.time_limit),
            "; ask for fewer samples, or raise kernel_time_limit")),
        "VERIFY_TIME_LIMIT");
  }

  absl::Status FindReference() {
    kernel_ = parts_.registry.Find(comparison_.kernel);
    if (kernel_ == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("this worker has no kernel '", comparison_.kernel, "'"));
    }
    const KernelSpec& spec = kernel_->spec;
    if (!CanVerify(kernel_->def)) {
      return InvalidField(
          "reference.kernel",
          absl::StrCat("want a kernel with a reference of its own, got '", spec.name, "'"));
    }
    const bool fits = spec.inputs.size() == comparison_.inputs.size() &&
                      spec.attributes.size() == comparison_.attributes.size();
    if (!fits) return absl::InvalidArgumentError("the comparison does not fit its kernel's words");
    std::vector<NamedOperand> operands;
    for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
      operands.push_back({spec.inputs[i].name, comparison_.inputs[i].value});
    }
    std::vector<NamedAttribute> attributes;
    for (std::size_t i = 0; i < spec.attributes.size(); ++i) {
      attributes.push_back({spec.attributes[i].name, comparison_.attributes[i]});
    }
    GC_ASSIGN_OR_RETURN(binding_, Bind(spec, operands, attributes));
    if (kernel_->def.validate != nullptr) GC_RETURN_IF_ERROR(kernel_->def.validate(binding_));
    const auto bytes = VerifyBytes(kernel_->def, binding_, parts_.threads.count());
    GC_RETURN_IF_ERROR(CheckRowBytes(bytes, parts_.arena.size()));
    rows_.resize(static_cast<std::size_t>(bytes) / sizeof(double) + 1);
    return absl::OkStatus();
  }

  std::vector<OperandView> OutputsOf(const MemoryRange& launches, std::size_t launch) const {
    std::vector<OperandView> views;
    std::byte* at = parts_.arena.data() + launches.offset + launch * comparison_.launch_bytes;
    for (const WorkerOperand& output : comparison_.outputs) {
      views.push_back(ViewAt(output.value, at));
      at += OperandBytes(output.value);
    }
    return views;
  }

  absl::StatusOr<Verification> AgainstKernel(std::size_t launch, Inputs& inputs,
                                             std::uint64_t seed_change, std::int64_t most_terms) {
    GC_RETURN_IF_ERROR(Poll());
    inputs.Make(seed_change);
    return VerifyLaunch(launch, inputs, most_terms);
  }

  absl::StatusOr<Verification> VerifyLaunch(std::size_t launch, const Inputs& inputs,
                                            std::int64_t most_terms) {
    const std::vector<OperandView> outputs = OutputsOf(comparison_.launches, launch);
    return Verify(kernel_->def, binding_, inputs.views(), outputs, parts_.threads,
                  std::as_writable_bytes(std::span(rows_)),
                  {.most_terms = std::max<std::int64_t>(1, most_terms),
                   .seed = seed_ + launch,
                   .rounds_on_the_way = true,
                   .poll = [this] { return Poll(); }});
  }

  // `reference`: of which launch, where each has one of its own.
  absl::StatusOr<Verification> AgainstExpected(std::size_t launch, std::size_t reference) {
    const std::vector<OperandView> got = OutputsOf(comparison_.launches, launch);
    std::vector<OperandView> want;
    if (comparison_.references) want = OutputsOf(*comparison_.references, reference);
    for (std::size_t i = 0; i < comparison_.expected.size(); ++i) {
      want.push_back(ViewAt(comparison_.outputs[i].value,
                            parts_.arena.data() + comparison_.expected[i].offset));
    }
    return VerifyExpected(
        {.got = got, .want = want, .names = comparison_.output_names, .terms = comparison_.terms},
        [this] { return Poll(); });
  }

  const WorkerComparison& comparison_;
  const CompareParts& parts_;
  const absl::Time end_;
  const std::uint64_t seed_;  // Of the subsets that are checked: nobody may know them.
  const RegisteredKernel* kernel_ = nullptr;
  Binding binding_;
  std::vector<double> rows_;
};

}  // namespace

absl::StatusOr<Verification> CompareLaunches(const WorkerComparison& comparison,
                                             const CompareParts& parts) {
  try {
    return Comparer(comparison, parts).Run();
  } catch (const std::bad_alloc&) {
    return WithReason(absl::ResourceExhaustedError("comparing outputs: out of memory"),
                      "MEMORY_FULL");
  }
}

}  // namespace gridclock
