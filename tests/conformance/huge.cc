#include "tests/conformance/huge.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "kernels/catalog/reduce_sizes.h"
#include "kernels/verify/verify.h"
#include "proto/types/convert.h"
#include "proto/types/generator.h"
#include "tests/conformance/deciders.h"
#include "tests/conformance/operand.h"
#include "tests/conformance/world.h"

namespace gridclock {
namespace {

constexpr std::int64_t kPattern = kHugePattern;
// Units of more elements take the host minutes: they are looked at in places,
// and what is wanted there follows from one repetition.
constexpr std::int64_t kMostElements = std::int64_t{1} << 24;
constexpr int kRandomPlaces = 200;

// What is wanted of one element, and the scale of its tolerance.
struct Wanted {
  double value = 0, scale = 0;
};

bool IsFloat(DType dtype) {
  return dtype <= DType::kBF16;
}

// Means over a row; those of exponentials are of exp(x - largest).
struct Moments {
  double largest = 0, exponential = 0, mean = 0, magnitude = 0, square = 0;
};

class HugeChecker {
 public:
  HugeChecker(Device& device, const RegisteredKernel& kernel, const Variant& variant,
              const Binding& binding, std::uint64_t seed)
      : device_(device), kernel_(kernel), variant_(variant), binding_(binding), seed_(seed) {}

  absl::Status Run(HugeResult* result) {
    GC_ASSIGN_OR_RETURN(scratch_values_, ScratchOf(kernel_, variant_, binding_));
    GC_RETURN_IF_ERROR(Prepare());
    if (IsLong()) GC_RETURN_IF_ERROR(PrepareLong());
    GC_RETURN_IF_ERROR(Launch(std::byte{0xAB}, result));
    GC_ASSIGN_OR_RETURN(const Units first, Look());
    for (const auto& [unit, bytes] : first) Compare(unit, bytes, result);
    if (IsElementwise()) GC_RETURN_IF_ERROR(LookAtAll(result));
    GC_RETURN_IF_ERROR(Launch(std::byte{0xFF}, result));
    GC_ASSIGN_OR_RETURN(const Units second, Look());
    if (first != second) result->problems.push_back("a second run gave other bits");
    return absl::OkStatus();
  }

 private:
  using Units = std::vector<std::pair<std::int64_t, std::vector<std::byte>>>;

  absl::Status Prepare() {
    for (const OperandValue& value : binding_.inputs) {
      const DType dtype = value.tensors[0].dtype;
      std::vector<std::byte> pattern(static_cast<std::size_t>(kPattern * SizeOf(dtype)));
      Generate(IsFloat(dtype) ? Generator{GeneratorKind::kRandn, 0, 0, seed_ + patterns_.size()}
                              : Generator{GeneratorKind::kRandint, 0, 2, seed_ + patterns_.size()},
               dtype, 0, pattern);
      GC_ASSIGN_OR_RETURN(Operand operand, Operand::Create(device_, value, {}));
      GC_RETURN_IF_ERROR(operand.PutRepeated(pattern));
      inputs_.push_back(std::move(operand));
      patterns_.push_back(std::move(pattern));
    }
    GC_RETURN_IF_ERROR(PutDecider());
    for (const OperandValue& value : binding_.outputs) {
      GC_ASSIGN_OR_RETURN(Operand operand, Operand::Create(device_, value, {}));
      outputs_.push_back(std::move(operand));
    }
    for (const OperandValue& value : scratch_values_) {
      GC_ASSIGN_OR_RETURN(Operand operand, Operand::Create(device_, value, {}));
      scratch_.push_back(std::move(operand));
    }
    return absl::OkStatus();
  }

  absl::Status Launch(std::byte poison, HugeResult* result) {
    for (Operand& output : outputs_) GC_RETURN_IF_ERROR(output.Fill(poison));
    const auto inputs = Views(inputs_), outputs = Views(outputs_), scratch = Views(scratch_);
    GC_RETURN_IF_ERROR(variant_.launch({.binding = &binding_,
                                        .inputs = inputs,
                                        .outputs = outputs,
                                        .scratch = scratch,
                                        .threads = device_.threads(),
                                        .stream = device_.stream()}));
    GC_RETURN_IF_ERROR(device_.Synchronize());
    for (const auto* operands : {&inputs_, &outputs_, &scratch_}) {
      for (const Operand& operand : *operands) {
        if (!operand.GuardsHold()) result->problems.push_back("bytes beside a tensor were written");
      }
    }
    return absl::OkStatus();
  }

  std::int64_t UnitElements() const { return kernel_.def.reference.unit_elements(binding_); }

  double Given(std::size_t input, std::int64_t element) const {
    const DType dtype = binding_.inputs[input].tensors[0].dtype;
    if (input == 0 && !last_.empty() && element == LastElement()) {
      return LoadAsDouble(dtype, last_.data(), 0);
    }
    return LoadAsDouble(dtype, patterns_[input].data(), element % kPattern);
  }

  std::int64_t LastElement() const { return Elements(binding_.inputs[0].tensors[0].shape) - 1; }

  // In place of the pattern's last element, of a call of one row. What cumsum makes of a long one
  // follows from the pattern alone.
  absl::Status PutDecider() {
    const std::string& name = kernel_.spec.name;
    const bool is_one_row = IsLong() || Elements(binding_.outputs[0].tensors[0].shape) == 1;
    if (!is_one_row || !DeciderOf(name, 1) || name == "cumsum") return absl::OkStatus();
    const double decider = *DeciderOf(name, LastElement() + 1);
    const DType dtype = binding_.inputs[0].tensors[0].dtype;
    last_.resize(static_cast<std::size_t>(SizeOf(dtype)));
    Generate(Generator{GeneratorKind::kFull, decider, 0, 0}, dtype, 0, last_);
    auto* const x = static_cast<std::byte*>(inputs_[0].view().data[0]);
    GC_RETURN_IF_ERROR(device_.CopyIn(x + LastElement() * SizeOf(dtype), last_));
    return device_.Synchronize();
  }

  // Then the unit is all of the output, and its elements are looked at one by
  // one.
  bool IsLong() const { return CanVerify(kernel_.def) && UnitElements() > kMostElements; }
  std::int64_t PartElements() const { return IsLong() ? 1 : UnitElements(); }

  // One row, repeated, with another last element; of cumsum the sums of the repetitions are carried
  // on.
  absl::Status PrepareLong() {
    const std::string& name = kernel_.spec.name;
    if ((last_.empty() && name != "cumsum") || kernel_.def.reference.units(binding_) != 1) {
      return absl::UnimplementedError(
          absl::StrCat("say in huge.cc what ", name, " makes of a long unit"));
    }
    if (name == "cumsum") return absl::OkStatus();
    const double last = Given(0, LastElement());
    row_.largest = last;
    for (std::int64_t i = 0; i < kPattern; ++i) row_.largest = std::max(row_.largest, Given(0, i));
    const double n = static_cast<double>(UnitElements());
    const double times = n / kPattern;
    for (std::int64_t i = 0; i < kPattern; ++i) Count(Given(0, i), times / n);
    Count(Given(0, kPattern - 1), -1 / n);
    Count(last, 1 / n);
    return absl::OkStatus();
  }

  void Count(double x, double weight) {
    row_.exponential += weight * std::exp(x - row_.largest);
    row_.mean += weight * x;
    row_.magnitude += weight * std::fabs(x);
    row_.square += weight * x * x;
  }

  // The scales are those of the kernels' references.
  Wanted WantedOfLong(std::int64_t element) const {
    const std::string& name = kernel_.spec.name;
    if (name == "cumsum") return PrefixOf(element);
    const double n = static_cast<double>(UnitElements()), x = Given(0, element);
    const double distance = x - row_.largest, sum = n * row_.exponential;
    if (name == "softmax") {
      const double value = std::exp(distance) / sum;
      return {value, value * (1 + std::fabs(distance))};
    }
    if (name == "log_softmax") {
      const double value = distance - std::log(sum);
      return {value, 1 + std::fabs(value)};
    }
    const double eps = binding_.F64("eps"), weight = Given(1, element);
    if (name == "rmsnorm") {
      const double value = x / std::sqrt(row_.square + eps) * weight;
      return {value, std::fabs(value)};
    }
    const double deviation = std::sqrt(row_.square - row_.mean * row_.mean + eps);
    const double of_variance = (std::sqrt(n) - 1) / (4 + 64);  // For roots of more than 64.
    const double off = std::fabs(x) + row_.magnitude + of_variance * std::fabs(x - row_.mean);
    const double bias = Given(2, element);
    return {(x - row_.mean) / deviation * weight + bias,
            off / deviation * std::fabs(weight) + std::fabs(bias)};
  }

  // A column too meets all of the pattern before it meets any of it again, as
  // its width and the pattern's have no divisor in common.
  Wanted PrefixOf(std::int64_t element) const {
    const reduce::Sizes s = reduce::SizesOf(binding_);
    const std::int64_t terms = element / s.inner + 1, column = element % s.inner;
    Wanted all, rest;
    const auto add = [this](std::int64_t at, Wanted* sum) {
      const double term = Given(0, at);
      sum->value += term;
      sum->scale += std::fabs(term);
    };
    if (terms >= kPattern) {
      for (std::int64_t i = 0; i < kPattern; ++i) add(i, &all);
    }
    for (std::int64_t k = 0; k < terms % kPattern; ++k) add(column + k * s.inner, &rest);
    const std::int64_t whole = terms / kPattern;
    const auto times = static_cast<double>(whole);
    return {times * all.value + rest.value, times * all.scale + rest.scale};
  }

  std::set<std::int64_t> Choose() const {
    std::set<std::int64_t> chosen;
    if (!CanVerify(kernel_.def)) return chosen;
    const std::int64_t parts =
        Elements(binding_.outputs[0].tensors[0].shape) / std::max<std::int64_t>(1, PartElements());
    const auto add = [&](std::int64_t part) {
      if (part >= 0 && part < parts) chosen.insert(part);
    };
    for (const std::int64_t edge :
         {std::int64_t{0}, parts, (std::int64_t{1} << 31) / PartElements(),
          (std::int64_t{1} << 32) / PartElements()}) {
      for (std::int64_t offset = -2; offset <= 2; ++offset) add(edge + offset);
    }
    std::mt19937_64 random(seed_);
    for (int i = 0; i < kRandomPlaces; ++i) {
      add(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(parts)));
    }
    return chosen;
  }

  // The bytes of the chosen parts of output 0.
  absl::StatusOr<Units> Look() const {
    Units units;
    const std::int64_t bytes = PartElements() * SizeOf(OutType());
    for (const std::int64_t unit : Choose()) {
      GC_ASSIGN_OR_RETURN(auto part, outputs_[0].GetPart(static_cast<std::size_t>(unit * bytes),
                                                         static_cast<std::size_t>(bytes)));
      units.emplace_back(unit, std::move(part));
    }
    return units;
  }

  // Then all of the output repeats with the inputs' pattern.
  bool IsElementwise() const {
    const auto same = [this](const OperandValue& value) {
      return value.tensors[0].shape == binding_.outputs[0].tensors[0].shape;
    };
    return CanVerify(kernel_.def) && UnitElements() == 1 && !binding_.inputs.empty() &&
           std::all_of(binding_.inputs.begin(), binding_.inputs.end(), same);
  }

  // The first repetition against the reference, the others against the first.
  absl::Status LookAtAll(HugeResult* result) {
    const auto size = static_cast<std::size_t>(SizeOf(OutType()));
    const std::size_t piece = kPattern * size;
    const auto all =
        static_cast<std::size_t>(Elements(binding_.outputs[0].tensors[0].shape)) * size;
    GC_ASSIGN_OR_RETURN(const std::vector<std::byte> first, outputs_[0].GetPart(0, piece));
    for (std::int64_t unit = 0; unit < kPattern && result->problems.empty(); ++unit) {
      const auto begin = first.begin() + unit * static_cast<std::ptrdiff_t>(size);
      Compare(unit, {begin, begin + static_cast<std::ptrdiff_t>(size)}, result);
    }
    GC_ASSIGN_OR_RETURN(const bool repeats,
                        Repeats(device_, outputs_[0].view().data[0], all, piece));
    if (!repeats) result->problems.push_back("elements differ from those one repetition before");
    result->units = static_cast<std::int64_t>(all / size);
    return absl::OkStatus();
  }

  DType OutType() const { return binding_.outputs[0].tensors[0].dtype; }

  std::vector<Wanted> WantedOfUnit(std::int64_t unit) const {
    const Reference& reference = kernel_.def.reference;
    const auto in = [this](std::size_t input, std::int64_t element) {
      return Given(input, element);
    };
    std::vector<double> values(static_cast<std::size_t>(UnitElements()));
    reference.compute(binding_, in, unit, 0, values);
    std::vector<double> scales = values;
    const auto magnitude = variant_.magnitude != nullptr ? variant_.magnitude : reference.magnitude;
    if (magnitude != nullptr) magnitude(binding_, in, unit, 0, scales);
    std::vector<Wanted> wanted;
    for (std::size_t k = 0; k < values.size(); ++k) wanted.push_back({values[k], scales[k]});
    return wanted;
  }

  void Compare(std::int64_t part, const std::vector<std::byte>& got, HugeResult* result) const {
    const Reference& reference = kernel_.def.reference;
    const std::vector<Wanted> wanted =
        IsLong() ? std::vector<Wanted>{WantedOfLong(part)} : WantedOfUnit(part);
    const Tolerance tolerance =
        ToleranceOf(reference.roundings, OutType(), reference.accumulation(binding_));
    ++result->units;
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      const auto [want, scale] = wanted[k];
      const double value = LoadAsDouble(OutType(), got.data(), static_cast<std::int64_t>(k));
      const Comparison found = gridclock::Compare(value, want, scale, OutType(), tolerance);
      if (found.ok()) continue;
      result->problems.push_back(absl::StrCat(IsLong() ? "place " : "unit ", part, ", element ", k,
                                              ": want ", want, ", got ", value, ", error ",
                                              found.error, " of the tolerance"));
      return;
    }
  }

  Device& device_;
  const RegisteredKernel& kernel_;
  const Variant& variant_;
  const Binding& binding_;
  const std::uint64_t seed_;
  std::vector<OperandValue> scratch_values_;
  std::vector<Operand> inputs_, outputs_, scratch_;
  std::vector<std::vector<std::byte>> patterns_;
  std::vector<std::byte> last_;  // The last element of input 0; empty: the pattern's.
  Moments row_;                  // Of a long row.
};

}  // namespace

HugeResult CheckHugeCall(Device& device, const RegisteredKernel& kernel, const Variant& variant,
                         const Instance& instance, std::uint64_t seed) {
  HugeResult result;
  const auto binding = Bind(kernel.spec, instance.inputs, instance.attributes);
  if (!binding.ok()) return {{binding.status().ToString()}, 0};
  const absl::Status status = HugeChecker(device, kernel, variant, *binding, seed).Run(&result);
  if (!status.ok()) result.problems.push_back(status.ToString());
  return result;
}

}  // namespace gridclock
