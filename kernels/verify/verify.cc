#include "kernels/verify/verify.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"
#include "proto/types/tensor.h"

namespace gridclock {
namespace {

// Enough work for a part that starting it does not show.
constexpr std::int64_t kTermsPerPart = 1 << 13;
// Of neighbouring units, where their pages are brought from a device: from so many places at least.
constexpr std::int64_t kLeastRuns = 64;
// What a thread does between two polls: some hundredths of a second.
constexpr std::int64_t kTermsPerRound = 1 << 21;
// Where pages are brought, the units of a round are listed: not more of them than this.
constexpr std::int64_t kMostListed = 1 << 20;
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

std::string NameOfOutput(const KernelSpec& spec, std::size_t output) {
  for (const OperandSpec& input : spec.inputs) {
    if (input.inout && output-- == 0) return input.name;
  }
  return output < spec.outputs.size() ? spec.outputs[output].name : "?";
}

// Of an output: roundings leave a few elements open that others vouch for, but no integer vouches
// for another.
bool TellsNothing(DType dtype, std::int64_t undecided, std::int64_t checked) {
  const bool exact = dtype == DType::kI64 || dtype == DType::kU64;
  return undecided > (exact ? 0 : checked / 2);
}

// Of an output: so few elements are far from what is wanted that they could be a chance.
bool IsAlike(std::int64_t apart, std::int64_t checked) {
  return 2 * apart < checked;
}

// A reference that rounds to fewer digits than a double's rounds once.
OperandElements::Integers IntegersFor(DType output) {
  switch (output) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return OperandElements::Integers::kToOdd;
    default:
      return OperandElements::Integers::kNearest;
  }
}

// In tolerances. Of a right result each element is within one of what was wanted, so that what is
// farther than two from another launch's is wanted by one of both alone.
constexpr double kApart = 2;

struct Mismatch {
  std::int64_t element = 0;
  std::string text;
};

// What one thread found of one output.
struct Tally {
  Verification found;                 // But for its texts.
  std::vector<Mismatch> lowest;       // Those of the lowest elements, in their order.
  std::vector<std::int64_t> missing;  // Units that need pages which are not here yet.

  void Count(const std::string& name, std::int64_t element, double got, double want, DType dtype,
             const Comparison& comparison) {
    ++found.checked;
    found.max_error = std::max(found.max_error, comparison.error);
    if (comparison.error > kApart) ++found.apart;
    CountDistance(got, want, dtype);
    if (comparison.ok()) {
      if (comparison.undecided) ++found.undecided;
      return;
    }
    if (std::isnan(got) != std::isnan(want)) ++found.nan_mismatches;
    Differ(name, element, want, got, comparison.tolerance);
  }
  // An integer of 64 bits, of which a double would keep 53.
  template <typename T>
  void CountWhole(const std::string& name, std::int64_t element, std::uint64_t got_bits,
                  std::uint64_t want_bits) {
    ++found.checked;
    if (got_bits == want_bits) return;
    ++found.apart;
    const T got = std::bit_cast<T>(got_bits), want = std::bit_cast<T>(want_bits);
    const double distance = std::abs(static_cast<double>(static_cast<__int128>(got) - want));
    found.max_error = std::numeric_limits<double>::infinity();
    found.max_abs = std::max(found.max_abs, distance);
    if (want != 0) {
      found.max_rel = std::max(found.max_rel, distance / std::abs(static_cast<double>(want)));
    }
    Differ(name, element, want, got, 0);
  }
  template <typename T>
  void Differ(const std::string& name, std::int64_t element, T want, T got, double tolerance) {
    ++found.mismatches;
    if (!IsAmongLowest(element)) return;
    Keep({element, absl::StrCat(name, "[", element, "]: want ", want, ", got ", got, ", tolerance ",
                                tolerance)});
  }
  bool IsAmongLowest(std::int64_t element) const {
    return lowest.size() < kMostNamedMismatches || element < lowest.back().element;
  }
  void Keep(Mismatch mismatch) {
    const auto place = std::upper_bound(
        lowest.begin(), lowest.end(), mismatch.element,
        [](std::int64_t element, const Mismatch& other) { return element < other.element; });
    lowest.insert(place, std::move(mismatch));
    if (lowest.size() > kMostNamedMismatches) lowest.pop_back();
  }
  void CountDistance(double got, double want, DType dtype) {
    if (got == want || !std::isfinite(got) || !std::isfinite(want)) return;
    const double distance = std::abs(got - want);
    found.max_abs = std::max(found.max_abs, distance);
    if (want != 0) found.max_rel = std::max(found.max_rel, distance / std::abs(want));
    found.max_ulp = std::max(found.max_ulp, UlpsBetween(got, want, dtype));
  }
  void Merge(const Tally& other) {
    missing.insert(missing.end(), other.missing.begin(), other.missing.end());
    for (const Mismatch& mismatch : other.lowest) {
      if (IsAmongLowest(mismatch.element)) Keep(mismatch);
    }
    found.Add(other.found);
  }
  Verification WithTexts() && {
    for (Mismatch& mismatch : lowest) found.NameMismatch(std::move(mismatch.text));
    return std::move(found);
  }
};

// Which units are checked: all, or a run of them at random from each of equal stretches.
struct Selection {
  std::int64_t units = 0, picked = 0;
  std::int64_t run = 1;  // Divides `picked` unless all are picked.
  std::uint64_t seed = 0;

  std::int64_t Unit(std::int64_t i) const {
    if (picked == units) return i;
    const std::int64_t stretches = picked / run, stretch = i / run;
    const auto low = static_cast<std::int64_t>(static_cast<__int128>(stretch) * units / stretches);
    const auto high =
        static_cast<std::int64_t>(static_cast<__int128>(stretch + 1) * units / stretches);
    const auto places = static_cast<std::uint64_t>(high - low - run + 1);
    return low + static_cast<std::int64_t>(Random(stretch) % places) + i % run;
  }
  std::uint64_t Random(std::int64_t i) const {  // SplitMix64.
    std::uint64_t z = seed + 0x9E3779B97F4A7C15U * (static_cast<std::uint64_t>(i) + 1);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
};

// The units that a thread checks, by number.
using UnitAt = absl::FunctionRef<std::int64_t(std::int64_t i)>;

using Inputs = absl::FunctionRef<double(std::size_t input, std::int64_t element)>;

// One output against the reference.
class Checker {
 public:
  Checker(const KernelDef& def, const Binding& binding, std::span<const OperandView> inputs,
          const OperandView& got, std::size_t output, std::span<double> memory,
          const VerifyOptions& options)
      : def_(def),
        binding_(binding),
        got_(got, options.reader != nullptr, OperandElements::Bools::kBytes),
        output_(output),
        memory_(memory),
        name_(NameOfOutput(*binding.spec, output)),
        unit_elements_(UnitElements(def, binding)),
        unit_terms_(UnitTerms(def, binding)),
        elements_(ElementsOf(*got.value)),
        dtype_(got.value->tensors[0].dtype),
        own_way_(options.magnitude != nullptr),
        magnitude_(own_way_ ? options.magnitude : def.reference.magnitude),
        tolerance_(ToleranceOf(def.reference.roundings, dtype_, Accumulation(def, binding),
                               options.rounds_on_the_way)) {
    for (const OperandView& input : inputs) {
      inputs_.emplace_back(input, options.reader != nullptr, OperandElements::Bools::kTruth,
                           IntegersFor(dtype_));
    }
  }

  // Pages are brought whole, so units of one page are checked together.
  Selection Select(const VerifyOptions& options) const {
    Selection selection{
        .units = def_.reference.units(binding_), .picked = 0, .run = 1, .seed = options.seed};
    const std::int64_t most = std::max<std::int64_t>(1, options.most_terms / unit_terms_);
    selection.picked = std::min(selection.units, most);
    if (options.reader == nullptr || selection.picked == selection.units) return selection;
    const auto page =
        static_cast<std::int64_t>(OperandElements::kPageBytes) / SizeOf(dtype_) / unit_elements_;
    selection.run = std::clamp<std::int64_t>(std::min(page, selection.picked / kLeastRuns), 1,
                                             selection.picked);
    selection.picked -= selection.picked % selection.run;
    return selection;
  }

  absl::StatusOr<Verification> Check(const Selection& selection, Threads& threads,
                                     const VerifyOptions& options) {
    Tally all;
    std::int64_t round = Workers() * std::max<std::int64_t>(1, kTermsPerRound / unit_terms_);
    std::optional<PageStore> store;
    if (options.reader != nullptr) {
      store.emplace(*options.reader, options.most_page_bytes);
      round = std::min(round, kMostListed);
    }
    for (std::int64_t begin = 0; begin < selection.picked; begin += round) {
      const std::int64_t units = std::min(selection.picked - begin, round);
      const auto unit_at = [&](std::int64_t i) { return selection.Unit(begin + i); };
      if (store) {
        std::vector<std::int64_t> left;
        for (std::int64_t i = 0; i < units; ++i) left.push_back(unit_at(i));
        GC_RETURN_IF_ERROR(CheckPaged(std::move(left), *store, threads, options, &all));
        continue;
      }
      if (options.poll != nullptr) GC_RETURN_IF_ERROR(options.poll());
      all.Merge(CheckRound(units, unit_at, threads));
    }
    all.found.total = elements_;
    return std::move(all).WithTexts();
  }

 private:
  std::int64_t RowDoubles() const { return gridclock::RowDoubles(unit_elements_); }
  std::int64_t Workers() const { return static_cast<std::int64_t>(memory_.size()) / RowDoubles(); }

  // A unit whose pages are not all here asks for them and is checked again once they are. Where
  // units together ask for more than there is room for, fewer of them are checked at a time.
  absl::Status CheckPaged(std::vector<std::int64_t> left, PageStore& store, Threads& threads,
                          const VerifyOptions& options, Tally* all) {
    std::vector<OperandElements*> operands = {&got_};
    for (OperandElements& input : inputs_) operands.push_back(&input);
    std::int64_t most = std::ssize(left);
    bool alone = false;  // All that is here was asked for by the one unit at hand.
    while (!left.empty()) {
      if (options.poll != nullptr) GC_RETURN_IF_ERROR(options.poll());
      const std::int64_t count = std::min<std::int64_t>(most, std::ssize(left));
      const std::int64_t first = std::ssize(left) - count;
      Tally tally = CheckRound(
          count, [&](std::int64_t i) { return left[first + i]; }, threads);
      left.resize(first);
      left.insert(left.end(), tally.missing.begin(), tally.missing.end());
      const bool stuck = std::ssize(tally.missing) == count;
      tally.missing.clear();
      all->Merge(tally);
      GC_ASSIGN_OR_RETURN(const bool room, store.Bring(operands));
      if (!stuck) alone = false;
      if (room || !stuck) continue;
      if (alone) return TooLarge(options.most_page_bytes);
      store.Clear(operands);
      most = std::max<std::int64_t>(1, count / 2);
      alone = count == 1;
    }
    return absl::OkStatus();
  }

  absl::Status TooLarge(std::uint64_t most_bytes) const {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat(
            "checking one unit of '", name_, "' (", unit_elements_, " elements) reads more than ",
            most_bytes,
            " bytes of operands, the most that are brought from a device: call without verify")),
        "TOO_LARGE");
  }

  // Each worker has a row of the memory and an equal share of the units.
  Tally CheckRound(std::int64_t units, UnitAt unit_at, Threads& threads) const {
    const std::int64_t grain = std::max<std::int64_t>(1, kTermsPerPart / unit_terms_);
    const std::int64_t workers = std::min(Workers(), (units - 1) / grain + 1);
    Mutex mutex;
    Tally all;
    threads.ParallelFor(workers, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t worker = first; worker < last; ++worker) {
        const Tally part =
            CheckUnits(units * worker / workers, units * (worker + 1) / workers, unit_at,
                       memory_.subspan(worker * RowDoubles(), RowDoubles()));
        MutexLock lock(mutex);
        all.Merge(part);
      }
    });
    return all;
  }

  Tally CheckUnits(std::int64_t begin, std::int64_t end, UnitAt unit_at,
                   std::span<double> row) const {
    Tally tally;
    const std::span<double> want = row.first(unit_elements_);
    const std::span<double> scale = row.subspan(unit_elements_, unit_elements_);
    bool missing = false;
    const auto in = [this, &missing](std::size_t input, std::int64_t element) {
      return inputs_[input].Load(element, &missing);
    };
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t unit = unit_at(i);
      missing = false;
      AskForOutput(unit, &missing);
      def_.reference.compute(binding_, in, unit, output_, want);
      if (magnitude_ != nullptr) magnitude_(binding_, in, unit, output_, scale);
      if (missing) {
        tally.missing.push_back(unit);
      } else {
        CountUnit(unit, in, want, magnitude_ != nullptr ? scale : want, &tally);
      }
    }
    return tally;
  }

  std::int64_t EndOf(std::int64_t unit) const {
    return std::min(elements_, (unit + 1) * unit_elements_);
  }

  void AskForOutput(std::int64_t unit, bool* missing) const {
    if (!got_.paged()) return;
    for (std::int64_t element = unit * unit_elements_; element < EndOf(unit); ++element) {
      got_.Load(element, missing);
    }
  }

  void CountUnit(std::int64_t unit, Inputs in, std::span<const double> want,
                 std::span<const double> scale, Tally* tally) const {
    bool missing = false;
    std::optional<bool> overflows;
    std::optional<std::vector<bool>> unsettled;
    for (std::int64_t element = unit * unit_elements_; element < EndOf(unit); ++element) {
      const std::int64_t k = element - unit * unit_elements_;
      const double got = got_.Load(element, &missing);
      // A wide integer that a double cannot hold is compared as the double nearest to it.
      Comparison found = Compare(got, want[k], scale[k], dtype_, tolerance_);
      if (!found.ok() && !std::isfinite(got) && !unsettled) unsettled = Unsettled(unit, in);
      if (!found.ok() && !std::isfinite(got) && (*unsettled)[static_cast<std::size_t>(k)]) {
        found = {.error = 0, .tolerance = found.tolerance, .undecided = true};
      } else if (!found.ok()) {
        if (!overflows) overflows = MayOverflow(unit, in);
        if (*overflows || (std::isnan(got) && own_way_ && std::isnan(scale[k]))) {
          found = {.error = 0, .tolerance = found.tolerance, .undecided = true};
          tally->found.undecided_output =
              true;  // It differs: that the others are right is no help.
        }
      }
      tally->Count(name_, element, got, want[k], dtype_, found);
    }
  }

  std::vector<bool> Unsettled(std::int64_t unit, Inputs in) const {
    std::vector<bool> which(static_cast<std::size_t>(unit_elements_), false);
    if (def_.reference.unsettled != nullptr) {
      def_.reference.unsettled(binding_, in, unit, output_, which);
    }
    return which;
  }

  bool MayOverflow(std::int64_t unit, Inputs in) const {
    if (def_.reference.reach == nullptr) return false;
    const auto finite = [in](std::size_t input, std::int64_t element) {
      const double value = in(input, element);
      return std::isfinite(value) ? value : 0;
    };
    // A part below the end: sums are off by roundings.
    const double most = 0.99 * (dtype_ == DType::kF64 ? std::numeric_limits<double>::max()
                                                      : double{std::numeric_limits<float>::max()});
    return !(def_.reference.reach(binding_, finite, unit, output_) < most);
  }

  const KernelDef& def_;
  const Binding& binding_;
  std::vector<OperandElements> inputs_;
  OperandElements got_;
  const std::size_t output_;
  const std::span<double> memory_;
  const std::string name_;
  const std::int64_t unit_elements_;
  const std::int64_t unit_terms_;
  const std::int64_t elements_;
  const DType dtype_;
  const bool own_way_;  // The magnitude is of the variant, not of the reference.
  const decltype(Reference::magnitude) magnitude_;
  const Tolerance tolerance_;
};

absl::StatusOr<Verification> VerifyExpectedOutput(const ExpectedOutputs& outputs, std::size_t i,
                                                  const std::function<absl::Status()>& poll) {
  constexpr std::int64_t kPerPoll = 1 << 20;
  const OperandElements got(outputs.got[i], /*paged=*/false, OperandElements::Bools::kBytes);
  const OperandElements want(outputs.want[i], /*paged=*/false);
  const std::int64_t elements = ElementsOf(*outputs.got[i].value);
  if (elements == 0) return Verification();
  const DType dtype = outputs.got[i].value->tensors[0].dtype;
  const Tolerance tolerance = ToleranceFor(dtype, outputs.terms);
  const std::string& name = outputs.names[i];
  Tally tally;
  bool missing = false;
  const auto count = [&](std::int64_t k) {
    if (dtype == DType::kI64)
      return tally.CountWhole<std::int64_t>(name, k, got.LoadBits(k), want.LoadBits(k));
    if (dtype == DType::kU64)
      return tally.CountWhole<std::uint64_t>(name, k, got.LoadBits(k), want.LoadBits(k));
    const double a = got.Load(k, &missing), b = want.Load(k, &missing);
    tally.Count(name, k, a, b, dtype, Compare(a, b, b, dtype, tolerance));
  };
  for (std::int64_t k = 0; k < elements; ++k) {
    if (k % kPerPoll == 0) GC_RETURN_IF_ERROR(poll());
    count(k);
  }
  tally.found.total = elements;
  tally.found.undecided_output = TellsNothing(dtype, tally.found.undecided, elements);
  tally.found.alike_output = IsAlike(tally.found.apart, elements);
  return std::move(tally).WithTexts();
}

}  // namespace

bool CanVerify(const KernelDef& def) {
  const Reference& reference = def.reference;
  return reference.units != nullptr && reference.unit_elements != nullptr &&
         reference.compute != nullptr && reference.accumulation != nullptr;
}

bool IsUndecided(const Verification& verification) {
  return verification.mismatches == 0 && verification.undecided_output;
}

std::int64_t VerifyBytes(const KernelDef& def, const Binding& binding, int threads) {
  // Rows of which there is none may be of any length.
  if (def.reference.units(binding) == 0) return 0;
  const std::int64_t row = RowDoubles(UnitElements(def, binding)) * std::int64_t{sizeof(double)};
  return row * std::clamp<std::int64_t>(kMostRowBytes / row, 1, threads);
}

absl::Status CheckRowBytes(std::int64_t bytes, std::uint64_t arena_bytes) {
  constexpr std::uint64_t kAlways = std::uint64_t{1} << 30;
  const std::uint64_t most = std::max(kAlways, arena_bytes / 4);
  if (static_cast<std::uint64_t>(bytes) <= most) return absl::OkStatus();
  return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                        "the reference of these outputs takes ", bytes, " bytes of memory, 16 for ",
                        "each value that it computes together, at most ", most,
                        ": verify smaller rows, or call without verify")),
                    "TOO_LARGE");
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
  if (def.reference.units(binding) == 0) return Verification();
  const std::int64_t bytes = VerifyBytes(def, binding, threads.count());
  if (static_cast<std::int64_t>(memory.size()) < bytes) {
    return absl::InvalidArgumentError(absl::StrCat("verify '", binding.spec->name, "': want ",
                                                   bytes, " bytes of memory, got ", memory.size()));
  }
  const std::span rows(reinterpret_cast<double*>(memory.data()), memory.size() / sizeof(double));
  Verification all;
  for (std::size_t output = 0; output < outputs.size(); ++output) {
    Checker checker(def, binding, inputs, outputs[output], output, rows, options);
    GC_ASSIGN_OR_RETURN(Verification found,
                        checker.Check(checker.Select(options), threads, options));
    found.undecided_output |=
        TellsNothing(outputs[output].value->tensors[0].dtype, found.undecided, found.checked);
    found.alike_output = IsAlike(found.apart, found.checked);
    all.Add(found);
  }
  return all;
}

absl::StatusOr<Verification> VerifyExpected(const ExpectedOutputs& outputs,
                                            const std::function<absl::Status()>& poll) {
  Verification all;
  for (std::size_t i = 0; i < outputs.got.size(); ++i) {
    GC_ASSIGN_OR_RETURN(const Verification found, VerifyExpectedOutput(outputs, i, poll));
    all.Add(found);
  }
  return all;
}

}  // namespace gridclock
