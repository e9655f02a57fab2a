#include "tests/conformance/huge.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "kernels/verify/verify.h"
#include "proto/types/convert.h"
#include "proto/types/generator.h"
#include "tests/conformance/operand.h"
#include "tests/conformance/world.h"

namespace gridclock {
namespace {

// A prime, so that the pattern repeats with no size of a tensor or a block.
constexpr std::int64_t kPattern = 1'000'003;
// More elements of a unit than this take the host minutes.
constexpr std::int64_t kMostElements = std::int64_t{1} << 24;
constexpr int kRandomUnits = 200;

class HugeChecker {
 public:
  HugeChecker(Device& device, const RegisteredKernel& kernel, const Variant& variant,
              const Binding& binding, std::uint64_t seed)
      : device_(device), kernel_(kernel), variant_(variant), binding_(binding), seed_(seed) {}

  absl::Status Run(HugeResult* result) {
    GC_ASSIGN_OR_RETURN(scratch_values_, ScratchOf(kernel_, variant_, binding_));
    GC_RETURN_IF_ERROR(Prepare());
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
      const bool is_float = dtype <= DType::kBF16;
      Generate(is_float ? Generator{GeneratorKind::kRandn, 0, 0, seed_ + patterns_.size()}
                        : Generator{GeneratorKind::kRandint, 0, 2, seed_ + patterns_.size()},
               dtype, 0, pattern);
      GC_ASSIGN_OR_RETURN(Operand operand, Operand::Create(device_, value, false));
      GC_RETURN_IF_ERROR(operand.PutRepeated(pattern));
      inputs_.push_back(std::move(operand));
      patterns_.push_back(std::move(pattern));
    }
    for (const OperandValue& value : binding_.outputs) {
      GC_ASSIGN_OR_RETURN(Operand operand, Operand::Create(device_, value, false));
      outputs_.push_back(std::move(operand));
    }
    for (const OperandValue& value : scratch_values_) {
      GC_ASSIGN_OR_RETURN(Operand operand, Operand::Create(device_, value, false));
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

  std::set<std::int64_t> Choose() const {
    std::set<std::int64_t> chosen;
    if (!CanVerify(kernel_.def) || UnitElements() > kMostElements) return chosen;
    const std::int64_t units = kernel_.def.reference.units(binding_);
    const auto add = [&](std::int64_t unit) {
      if (unit >= 0 && unit < units) chosen.insert(unit);
    };
    for (const std::int64_t edge :
         {std::int64_t{0}, units, (std::int64_t{1} << 31) / UnitElements(),
          (std::int64_t{1} << 32) / UnitElements()}) {
      for (std::int64_t offset = -2; offset <= 2; ++offset) add(edge + offset);
    }
    std::mt19937_64 random(seed_);
    for (int i = 0; i < kRandomUnits; ++i) {
      add(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(units)));
    }
    return chosen;
  }

  // The bytes of the chosen units of output 0.
  absl::StatusOr<Units> Look() const {
    Units units;
    const std::int64_t bytes = UnitElements() * SizeOf(OutType());
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

  void Compare(std::int64_t unit, const std::vector<std::byte>& got, HugeResult* result) const {
    const Reference& reference = kernel_.def.reference;
    const auto in = [this](std::size_t input, std::int64_t element) {
      return LoadAsDouble(binding_.inputs[input].tensors[0].dtype, patterns_[input].data(),
                          element % kPattern);
    };
    std::vector<double> want(static_cast<std::size_t>(UnitElements()));
    reference.compute(binding_, in, unit, 0, want);
    std::vector<double> scale = want;
    const auto magnitude = variant_.magnitude != nullptr ? variant_.magnitude : reference.magnitude;
    if (magnitude != nullptr) magnitude(binding_, in, unit, 0, scale);
    const Tolerance tolerance =
        ToleranceOf(reference.roundings, OutType(), reference.accumulation(binding_));
    ++result->units;
    for (std::size_t k = 0; k < want.size(); ++k) {
      const double value = LoadAsDouble(OutType(), got.data(), static_cast<std::int64_t>(k));
      const Comparison found = gridclock::Compare(value, want[k], scale[k], OutType(), tolerance);
      if (found.ok()) continue;
      result->problems.push_back(absl::StrCat("unit ", unit, ", element ", k, ": want ", want[k],
                                              ", got ", value, ", error ", found.error,
                                              " of the tolerance"));
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
