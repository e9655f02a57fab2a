#include "kernels/verify/verify.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"
#include "proto/types/convert.h"
#include "proto/types/tensor.h"

namespace gridclock {
namespace {

// Enough work for a part that starting it does not show.
constexpr std::int64_t kTermsPerPart = 1 << 13;
// What a thread does between two polls: some hundredths of a second.
constexpr std::int64_t kTermsPerRound = 1 << 21;
// Rows of the reference that are longer than this together are made by fewer threads.
constexpr std::int64_t kMostRowBytes = std::int64_t{256} << 20;

// Work as a count of terms; what does not fit is above every budget.
std::int64_t Product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::int64_t{1} << 62 : product;
}

std::int64_t UnitElements(const KernelDef& def, const Binding& binding) {
  return std::max<std::int64_t>(1, def.reference.unit_elements(binding));
}

std::int64_t Accumulation(const KernelDef& def, const Binding& binding) {
  return std::max<std::int64_t>(1, def.reference.accumulation(binding));
}

std::int64_t UnitTerms(const KernelDef& def, const Binding& binding) {
  if (def.reference.unit_terms != nullptr) {
    return std::max<std::int64_t>(1, def.reference.unit_terms(binding));
  }
  return Product(UnitElements(def, binding), Accumulation(def, binding));
}

// Doubles that one thread works on: what is wanted of a unit and its scale. Whole cache lines, so
// that no two threads write one.
std::int64_t RowDoubles(std::int64_t unit_elements) {
  constexpr std::int64_t kLine = 16;
  return (2 * unit_elements + kLine - 1) / kLine * kLine;
}

std::int64_t ElementsOf(const OperandValue& value) {
  std::int64_t elements = 0;
  for (const TensorSpec& tensor : value.tensors) elements += Elements(tensor.shape);
  return elements;
}

// Element `index` of an operand; those of a list follow one another.
double Load(const OperandView& view, std::int64_t index) {
  std::size_t tensor = 0;
  const auto& tensors = view.value->tensors;
  while (tensor + 1 < tensors.size() && index >= Elements(tensors[tensor].shape)) {
    index -= Elements(tensors[tensor++].shape);
  }
  return LoadAsDouble(tensors[tensor].dtype, view.data[tensor], index);
}

std::string NameOfOutput(const KernelSpec& spec, std::size_t output) {
  for (const OperandSpec& input : spec.inputs) {
    if (input.inout && output-- == 0) return input.name;
  }
  return output < spec.outputs.size() ? spec.outputs[output].name : "?";
}

// What one thread found; the mismatch kept is the one of the lowest element.
struct Tally {
  Verification found;
  std::int64_t first_element = 0;

  void Count(const std::string& name, std::int64_t element, double got, double want,
             const Comparison& comparison) {
    ++found.checked;
    found.max_error = std::max(found.max_error, comparison.error);
    if (comparison.ok()) {
      if (comparison.undecided) ++found.undecided;
      return;
    }
    if (found.mismatches++ != 0 && element >= first_element) return;
    first_element = element;
    found.first_mismatch = absl::StrCat(name, "[", element, "]: want ", want, ", got ", got,
                                        ", tolerance ", comparison.tolerance);
  }
  void Merge(const Tally& other) {
    if (other.found.mismatches != 0 &&
        (found.mismatches == 0 || other.first_element < first_element)) {
      first_element = other.first_element;
      found.first_mismatch = other.found.first_mismatch;
    }
    found.checked += other.found.checked;
    found.mismatches += other.found.mismatches;
    found.undecided += other.found.undecided;
    found.max_error = std::max(found.max_error, other.found.max_error);
  }
};

// Which units are checked: all, or one at random from each of `picked` equal stretches.
struct Selection {
  std::int64_t units = 0, picked = 0;
  std::uint64_t seed = 0;

  std::int64_t Unit(std::int64_t i) const {
    if (picked == units) return i;
    const auto low = static_cast<std::int64_t>(static_cast<__int128>(i) * units / picked);
    const auto high = static_cast<std::int64_t>(static_cast<__int128>(i + 1) * units / picked);
    return low + static_cast<std::int64_t>(Random(i) % static_cast<std::uint64_t>(high - low));
  }
  std::uint64_t Random(std::int64_t i) const {  // SplitMix64.
    std::uint64_t z = seed + 0x9E3779B97F4A7C15U * (static_cast<std::uint64_t>(i) + 1);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
};

// One output against the reference.
class Checker {
 public:
  Checker(const KernelDef& def, const Binding& binding, std::span<const OperandView> inputs,
          const OperandView& got, std::size_t output, std::span<double> memory)
      : def_(def),
        binding_(binding),
        inputs_(inputs),
        got_(got),
        output_(output),
        memory_(memory),
        name_(NameOfOutput(*binding.spec, output)),
        unit_elements_(UnitElements(def, binding)),
        unit_terms_(UnitTerms(def, binding)),
        elements_(ElementsOf(*got.value)),
        tolerance_(ToleranceFor(got.value->tensors[0].dtype, Accumulation(def, binding))) {}

  Selection Select(const VerifyOptions& options) const {
    Selection selection{.units = def_.reference.units(binding_), .picked = 0, .seed = options.seed};
    const std::int64_t most = std::max<std::int64_t>(1, options.most_terms / unit_terms_);
    selection.picked = std::min(selection.units, most);
    return selection;
  }

  absl::StatusOr<Verification> Check(const Selection& selection, Threads& threads,
                                     const std::function<absl::Status()>& poll) const {
    Tally all;
    const std::int64_t workers = static_cast<std::int64_t>(memory_.size()) / RowDoubles();
    const std::int64_t round = workers * std::max<std::int64_t>(1, kTermsPerRound / unit_terms_);
    for (std::int64_t begin = 0; begin < selection.picked; begin += round) {
      if (poll != nullptr) GC_RETURN_IF_ERROR(poll());
      const std::int64_t end = std::min(selection.picked, begin + round);
      all.Merge(CheckRound(selection, begin, end, workers, threads));
    }
    all.found.total = elements_;
    return all.found;
  }

 private:
  std::int64_t RowDoubles() const { return gridclock::RowDoubles(unit_elements_); }

  // Each worker has a row of the memory and an equal share of the units.
  Tally CheckRound(const Selection& selection, std::int64_t begin, std::int64_t end,
                   std::int64_t workers, Threads& threads) const {
    const std::int64_t grain = std::max<std::int64_t>(1, kTermsPerPart / unit_terms_);
    const std::int64_t units = end - begin;
    workers = std::min(workers, (units - 1) / grain + 1);
    Mutex mutex;
    Tally all;
    threads.ParallelFor(workers, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t worker = first; worker < last; ++worker) {
        const Tally part = CheckUnits(selection, begin + units * worker / workers,
                                      begin + units * (worker + 1) / workers,
                                      memory_.subspan(worker * RowDoubles(), RowDoubles()));
        MutexLock lock(mutex);
        all.Merge(part);
      }
    });
    return all;
  }

  Tally CheckUnits(const Selection& selection, std::int64_t begin, std::int64_t end,
                   std::span<double> row) const {
    Tally tally;
    const std::span<double> want = row.first(unit_elements_);
    const std::span<double> scale = row.subspan(unit_elements_, unit_elements_);
    const auto in = [this](std::size_t input, std::int64_t element) {
      return Load(inputs_[input], element);
    };
    const auto& magnitude = def_.reference.magnitude;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t unit = selection.Unit(i);
      def_.reference.compute(binding_, in, unit, output_, want);
      if (magnitude != nullptr) magnitude(binding_, in, unit, output_, scale);
      CountUnit(unit, want, magnitude != nullptr ? scale : want, &tally);
    }
    return tally;
  }

  void CountUnit(std::int64_t unit, std::span<const double> want, std::span<const double> scale,
                 Tally* tally) const {
    const DType dtype = got_.value->tensors[0].dtype;
    for (std::int64_t k = 0; k < unit_elements_; ++k) {
      const std::int64_t element = unit * unit_elements_ + k;
      if (element >= elements_) return;
      const double got = Load(got_, element);
      // A wide integer that a double cannot hold is compared as the double nearest to it.
      tally->Count(name_, element, got, want[k],
                   Compare(got, want[k], scale[k], dtype, tolerance_));
    }
  }

  const KernelDef& def_;
  const Binding& binding_;
  std::span<const OperandView> inputs_;
  const OperandView& got_;
  const std::size_t output_;
  const std::span<double> memory_;
  const std::string name_;
  const std::int64_t unit_elements_;
  const std::int64_t unit_terms_;
  const std::int64_t elements_;
  const Tolerance tolerance_;
};

void Append(const Verification& one, Verification* all) {
  all->checked += one.checked;
  all->total += one.total;
  all->mismatches += one.mismatches;
  all->undecided += one.undecided;
  all->max_error = std::max(all->max_error, one.max_error);
  if (all->first_mismatch.empty()) all->first_mismatch = one.first_mismatch;
}

}  // namespace

bool CanVerify(const KernelDef& def) {
  const Reference& reference = def.reference;
  return reference.units != nullptr && reference.unit_elements != nullptr &&
         reference.compute != nullptr && reference.accumulation != nullptr;
}

bool IsUndecided(const Verification& verification) {
  return verification.mismatches == 0 && verification.undecided > verification.checked / 2;
}

std::int64_t VerifyBytes(const KernelDef& def, const Binding& binding, int threads) {
  const std::int64_t row = RowDoubles(UnitElements(def, binding)) * std::int64_t{sizeof(double)};
  return row * std::clamp<std::int64_t>(kMostRowBytes / row, 1, threads);
}

absl::StatusOr<Verification> Verify(const KernelDef& def, const Binding& binding,
                                    std::span<const OperandView> inputs,
                                    std::span<const OperandView> outputs, Threads& threads,
                                    std::span<std::byte> memory, const VerifyOptions& options) {
  if (!CanVerify(def)) {
    return absl::UnimplementedError(
        absl::StrCat("kernel '", binding.spec->name, "' has no reference to verify against"));
  }
  if (inputs.size() != binding.inputs.size() || outputs.size() != binding.outputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "verify '", binding.spec->name, "': want ", binding.inputs.size(), " inputs and ",
        binding.outputs.size(), " outputs, got ", inputs.size(), " and ", outputs.size()));
  }
  const std::int64_t bytes = VerifyBytes(def, binding, threads.count());
  if (static_cast<std::int64_t>(memory.size()) < bytes) {
    return absl::InvalidArgumentError(absl::StrCat("verify '", binding.spec->name, "': want ",
                                                   bytes, " bytes of memory, got ", memory.size()));
  }
  const std::span rows(reinterpret_cast<double*>(memory.data()), memory.size() / sizeof(double));
  Verification all;
  for (std::size_t output = 0; output < outputs.size(); ++output) {
    const Checker checker(def, binding, inputs, outputs[output], output, rows);
    GC_ASSIGN_OR_RETURN(const Verification found,
                        checker.Check(checker.Select(options), threads, options.poll));
    Append(found, &all);
  }
  return all;
}

void GenerateOperand(const Generator& generator, const OperandView& operand, Threads& threads) {
  // Whole vectors and pages for each part, so that no two threads write one cache line.
  constexpr std::int64_t kGrain = 1 << 16;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < operand.data.size(); ++i) {
    const TensorSpec& tensor = operand.value->tensors[i];
    const std::int64_t size = SizeOf(tensor.dtype);
    auto* data = static_cast<std::byte*>(operand.data[i]);
    const std::int64_t elements = Elements(tensor.shape);
    threads.ParallelFor(elements, kGrain, [&](std::int64_t begin, std::int64_t end) {
      Generate(generator, tensor.dtype, first + begin,
               std::span(data + begin * size, static_cast<std::size_t>((end - begin) * size)));
    });
    first += elements;
  }
}

}  // namespace gridclock
