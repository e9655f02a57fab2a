#include "tests/conformance/harness.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/verify/verify.h"
#include "proto/types/convert.h"
#include "proto/types/generator.h"
#include "tests/conformance/bits.h"
#include "tests/conformance/deciders.h"
#include "tests/conformance/operand.h"

namespace gridclock {
namespace {

using HostTensors = std::vector<std::vector<std::byte>>;

std::vector<OperandView> Views(const std::vector<OperandValue>& values,
                               std::vector<HostTensors>& host) {
  std::vector<OperandView> views;
  for (std::size_t i = 0; i < values.size(); ++i) {
    views.push_back({.value = &values[i], .data = {}});
    for (auto& tensor : host[i]) views.back().data.push_back(tensor.data());
  }
  return views;
}

bool IsSmallFloat(DType dtype) {
  return dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2;
}
bool IsFloat(DType dtype) {
  return dtype <= DType::kBF16;
}

Generator GeneratorFor(DType dtype, Data data, std::uint64_t seed) {
  if (dtype == DType::kBool) return {GeneratorKind::kRandint, 0, 2, seed};
  if (!IsFloat(dtype) && !IsSmallFloat(dtype)) return {GeneratorKind::kRandint, 0, 100, seed};
  if (data == Data::kWide) return {GeneratorKind::kUniform, -1000, 1000, seed};
  if (data == Data::kFar && IsFloat(dtype)) {
    // 16 bits have few numbers there.
    return SizeOf(dtype) == 2 ? Generator{GeneratorKind::kUniform, 100, 130, seed}
                              : Generator{GeneratorKind::kUniform, 10000, 10004, seed};
  }
  return {GeneratorKind::kRandn, 0, 0, seed};
}

double LargestOf(DType dtype) {
  if (dtype == DType::kF8E4M3) return 448;
  if (dtype == DType::kF8E5M2) return 57344;
  if (dtype == DType::kF64) return std::numeric_limits<double>::max();
  if (dtype == DType::kF16) return 65504;
  if (dtype == DType::kBF16) return 3.3895313892515355e38;
  return std::numeric_limits<float>::max();
}

double LeastOf(DType dtype) {
  if (dtype == DType::kF8E4M3) return 0x1p-9;
  if (dtype == DType::kF8E5M2) return 0x1p-16;
  if (dtype == DType::kF64) return std::numeric_limits<double>::denorm_min();
  if (dtype == DType::kF16) return 5.960464477539063e-08;
  if (dtype == DType::kBF16) return 9.183549615799121e-41;
  return std::numeric_limits<float>::denorm_min();
}

// Numbers at the edges of the type; of integers, where casts meet them, its ends and those of
// others. What a type cannot hold becomes its own end.
std::vector<double> Extremes(DType dtype) {
  if (!IsFloat(dtype) && !IsSmallFloat(dtype)) {
    return {0x1p63, -0x1p63, 0x1p64, 0x1p31, -0x1p31, 65536, 32768, -32769, 449, 256,
            255,    128,     127,    -129,   -1,      0,     1,     17,     19,  2049};
  }
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double big = LargestOf(dtype), least = LeastOf(dtype);
  return {big, -big, least, -least, 0.0, -0.0, kInf, -kInf, big / 2, least * 3};
}

// What stands between the numbers of a generator, or in place of all of them.
std::vector<double> SprinkledValues(DType dtype, Data data) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const bool is_float = IsFloat(dtype) || IsSmallFloat(dtype);
  if (data == Data::kExtreme) return Extremes(dtype);
  if (data == Data::kSpecial && is_float) {
    return {std::numeric_limits<double>::quiet_NaN(), kInf, -kInf};
  }
  if (data == Data::kSpikes && IsFloat(dtype)) return {20000, -20000};
  return {};
}

double Share(std::mt19937_64& random) {
  return std::ldexp(static_cast<double>(random() >> 11), -53);
}

// Exponents of base 2.
struct Exponents {
  double low = 0, high = 0;
};

// Huge: from a quarter of the largest one up to one that is drawn for each tensor, so that sums of
// some tensors reach beyond the type and those of others do not. Tiny: from the least number up to
// one whose square is lost.
Exponents ExponentsOf(DType dtype, Data data, std::mt19937_64& random) {
  const double top = std::log2(LargestOf(dtype)), bottom = std::log2(LeastOf(dtype));
  if (data != Data::kHuge) return {.low = bottom, .high = bottom * 15 / 32};
  return {.low = top / 4, .high = top / 4 + top * 3 / 4 * Share(random)};
}

// Of either sign, with exponents spread evenly.
double OfASize(const Exponents& exponents, std::mt19937_64& random) {
  const double exponent = exponents.low + (exponents.high - exponents.low) * Share(random);
  return (random() % 2 == 0 ? 1 : -1) * std::exp2(exponent);
}

// What no double holds is given by its bits.
std::vector<std::uint64_t> SprinkledBits(DType dtype, Data data) {
  const bool is_long = dtype == DType::kI64 || dtype == DType::kU64;
  return is_long && data == Data::kExtreme ? LongIntegers() : std::vector<std::uint64_t>();
}

// Overwrites about one element in sixteen or fewer, or all of them with the extremes.
void Sprinkle(DType dtype, Data data, std::uint64_t seed, std::vector<std::byte>& tensor) {
  const std::vector<double> values = SprinkledValues(dtype, data);
  const std::vector<std::uint64_t> bits = SprinkledBits(dtype, data);
  const bool of_a_size =
      (data == Data::kHuge || data == Data::kTiny) && (IsFloat(dtype) || IsSmallFloat(dtype));
  if (values.empty() && !of_a_size) return;
  std::mt19937_64 random(seed);
  const Exponents exponents = ExponentsOf(dtype, data, random);
  const std::uint64_t one_in = data == Data::kSpecial ? 16 : data == Data::kSpikes ? 100 : 1;
  for (std::int64_t i = 0; i < std::ssize(tensor) / SizeOf(dtype); ++i) {
    if (random() % one_in != 0) continue;
    if (of_a_size) {
      StoreFromDouble(dtype, tensor.data(), i, OfASize(exponents, random));
      continue;
    }
    const std::size_t choice = random() % (values.size() + bits.size());
    if (choice < values.size()) {
      StoreFromDouble(dtype, tensor.data(), i, values[choice]);
    } else {
      std::memcpy(tensor.data() + i * 8, &bits[choice - values.size()], 8);
    }
  }
}

// The running mean of squares of an optimizer: below 0 its root is NaN, and near 0 each rounding is
// large beside it.
bool IsMeanOfSquares(const RegisteredKernel& kernel, std::size_t input) {
  return kernel.spec.inputs[input].name == "v" && kernel.spec.inputs[input].inout;
}

void MakePositive(DType dtype, std::vector<std::byte>& tensor) {
  for (std::int64_t i = 0; i < std::ssize(tensor) / SizeOf(dtype); ++i) {
    StoreFromDouble(dtype, tensor.data(), i, std::fabs(LoadAsDouble(dtype, tensor.data(), i)));
  }
}

// One call being checked.
class Checker {
 public:
  Checker(Device& device, const RegisteredKernel& kernel, const Variant& variant,
          const Binding& binding, std::vector<OperandValue> scratch, const CheckOptions& options)
      : device_(device),
        kernel_(kernel),
        variant_(variant),
        binding_(binding),
        options_(options),
        scratch_values_(std::move(scratch)) {}

  absl::Status Run() {
    GC_RETURN_IF_ERROR(Prepare());
    GC_ASSIGN_OR_RETURN(std::vector<HostTensors> first, Launch(std::byte{0xAB}));
    GC_RETURN_IF_ERROR(Check(first, "the result"));
    CheckInputs();
    GC_ASSIGN_OR_RETURN(const std::vector<HostTensors> second, Launch(std::byte{0xFF}));
    if (first != second) Complain("a second run gave other bits, or left some as they were");
    return RunInPlace();
  }
  std::vector<std::string> TakeProblems() { return std::move(problems_); }
  // Why the comparison told nothing; empty if it told something.
  const std::string& undecided() const { return undecided_; }

 private:
  void Complain(std::string problem) { problems_.push_back(std::move(problem)); }

  absl::Status Prepare() {
    const Layout layout{.misaligned = options_.misaligned,
                        .exact = options_.memory != Memory::kGuarded};
    for (std::size_t i = 0; i < binding_.inputs.size(); ++i) {
      const OperandValue& value = binding_.inputs[i];
      GC_ASSIGN_OR_RETURN(Operand operand, Operand::Create(device_, value, layout));
      HostTensors tensors;
      for (const TensorSpec& tensor : value.tensors) {
        const std::uint64_t seed = options_.seed + 1000 * i + tensors.size();
        tensors.emplace_back(static_cast<std::size_t>(Bytes(tensor)));
        Generate(GeneratorFor(tensor.dtype, options_.data, seed), tensor.dtype, 0, tensors.back());
        Sprinkle(tensor.dtype, options_.data, seed, tensors.back());
        if (IsMeanOfSquares(kernel_, i)) MakePositive(tensor.dtype, tensors.back());
        if (options_.data == Data::kDecided && i == 0) PutDeciders(binding_, tensors.back());
      }
      GC_RETURN_IF_ERROR(operand.Put(tensors));
      inputs_.push_back(std::move(operand));
      given_.push_back(std::move(tensors));
    }
    for (const OperandValue& value : binding_.outputs) {
      GC_ASSIGN_OR_RETURN(Operand operand, Operand::Create(device_, value, layout));
      outputs_.push_back(std::move(operand));
    }
    for (const OperandValue& value : scratch_values_) {
      GC_ASSIGN_OR_RETURN(Operand operand,
                          Operand::Create(device_, value, {.exact = layout.exact}));
      scratch_.push_back(std::move(operand));
    }
    return absl::OkStatus();
  }

  // Poisons the outputs, calls the variant, and returns the outputs. What is `inout` is worked on
  // where the outputs are, from the values given.
  absl::StatusOr<std::vector<HostTensors>> Launch(std::byte poison) {
    if (options_.memory != Memory::kUnwritten) {
      for (Operand& output : outputs_) GC_RETURN_IF_ERROR(output.Fill(poison));
      for (Operand& scratch : scratch_) GC_RETURN_IF_ERROR(scratch.Fill(poison));
    }
    std::vector<OperandView> inputs = Views(inputs_);
    GC_RETURN_IF_ERROR(PutInouts(&inputs).status());
    return Call(inputs);
  }

  // How many there are; they are the first outputs.
  absl::StatusOr<std::size_t> PutInouts(std::vector<OperandView>* inputs) {
    std::size_t output = 0;
    for (std::size_t i = 0; i < inputs->size(); ++i) {
      if (!kernel_.spec.inputs[i].inout) continue;
      GC_RETURN_IF_ERROR(outputs_[output].Put(given_[i]));
      (*inputs)[i].data = outputs_[output++].view().data;
    }
    return output;
  }

  absl::StatusOr<std::vector<HostTensors>> Call(const std::vector<OperandView>& inputs) {
    const std::vector<OperandView> outputs = Views(outputs_), scratch = Views(scratch_);
    const gridclock::Call call{.binding = &binding_,
                               .inputs = inputs,
                               .outputs = outputs,
                               .scratch = scratch,
                               .threads = device_.threads(),
                               .stream = device_.stream()};
    GC_RETURN_IF_ERROR(variant_.launch(call));
    GC_RETURN_IF_ERROR(device_.Synchronize());
    ++LaunchesOf(kernel_, variant_);
    std::vector<HostTensors> results;
    for (const Operand& operand : scratch_) {
      if (!operand.GuardsHold()) Complain("bytes beside a scratch tensor were written");
    }
    for (const Operand& output : outputs_) {
      if (!output.GuardsHold()) Complain("bytes beside an output were written");
      GC_ASSIGN_OR_RETURN(HostTensors tensors, output.Get());
      results.push_back(std::move(tensors));
    }
    return results;
  }

  absl::Status Check(std::vector<HostTensors>& results, const char* what) {
    if (!CanVerify(kernel_.def)) return absl::OkStatus();
    const auto inputs = Views(binding_.inputs, given_);
    const auto outputs = Views(binding_.outputs, results);
    Threads& threads = *device_.threads();
    std::vector<std::byte> memory(VerifyBytes(kernel_.def, binding_, threads.count()));
    GC_ASSIGN_OR_RETURN(const Verification found,
                        Verify(kernel_.def, binding_, inputs, outputs, threads, memory,
                               {.most_terms = options_.most_terms,
                                .seed = options_.seed,
                                .magnitude = variant_.magnitude}));
    if (options_.data == Data::kExtreme) {
      const auto wrong = WrongBits(kernel_.def, binding_, inputs, outputs);
      if (wrong) Complain(absl::StrCat(what, ": ", *wrong));
    }
    // Of subnormal numbers and the like no tolerance is narrow.
    const bool is_normal = options_.data == Data::kPlain || options_.data == Data::kDecided;
    if (is_normal && IsUndecided(found)) {
      undecided_ = absl::StrCat(what, ": the tolerance of ", found.undecided, " of ", found.checked,
                                " is wider than the value");
    }
    if (found.checked != found.total && options_.most_terms == CheckOptions{}.most_terms) {
      Complain(absl::StrCat(what, ": only ", found.checked, " of ", found.total, " were checked"));
    }
    if (found.mismatches != 0) {
      Complain(absl::StrCat(what, ": ", found.mismatches, " of ", found.total, " differ, error ",
                            found.max_error, " of the tolerance; ", found.first_mismatch));
    }
    return absl::OkStatus();
  }

  void CheckInputs() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const auto now = inputs_[i].Get();
      if (!now.ok() || *now != given_[i]) {
        Complain(absl::StrCat("input '", kernel_.spec.inputs[i].name, "' was changed"));
      }
      if (!inputs_[i].GuardsHold()) Complain("bytes beside an input were written");
    }
  }

  // Each output that may stand over an input gets its bytes and its address.
  absl::Status RunInPlace() {
    std::vector<OperandView> inputs = Views(inputs_);
    GC_ASSIGN_OR_RETURN(const std::size_t inouts, PutInouts(&inputs));
    bool any = false;
    for (std::size_t o = inouts; o < outputs_.size(); ++o) {
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        if (kernel_.spec.outputs[o - inouts].over != kernel_.spec.inputs[i].name) continue;
        GC_RETURN_IF_ERROR(outputs_[o].Put(given_[i]));
        inputs[i].data = outputs_[o].view().data;
        any = true;
      }
    }
    if (!any) return absl::OkStatus();
    GC_ASSIGN_OR_RETURN(std::vector<HostTensors> results, Call(inputs));
    return Check(results, "in place");
  }

  Device& device_;
  const RegisteredKernel& kernel_;
  const Variant& variant_;
  const Binding& binding_;
  const CheckOptions& options_;
  const std::vector<OperandValue> scratch_values_;
  std::vector<Operand> inputs_, outputs_, scratch_;
  std::vector<HostTensors> given_;
  std::vector<std::string> problems_;
  std::string undecided_;
};

// A long sum of numbers of both signs comes to nearly zero once in fifty times, where no tolerance
// is narrower than it. Chance does not do that on several inputs in a row.
constexpr int kInputsUntilDecided = 4;

}  // namespace

std::vector<std::string> CheckCall(Device& device, const RegisteredKernel& kernel,
                                   const Variant& variant, const Instance& instance,
                                   const CheckOptions& options) {
  const auto binding = Bind(kernel.spec, instance.inputs, instance.attributes);
  if (!binding.ok()) return {binding.status().ToString()};
  auto scratch = ScratchOf(kernel, variant, *binding);
  if (!scratch.ok()) return {scratch.status().ToString()};
  CheckOptions own = options;
  for (int input = 1;; ++input) {
    Checker checker(device, kernel, variant, *binding, *scratch, own);
    const absl::Status status = checker.Run();
    std::vector<std::string> problems = checker.TakeProblems();
    if (!status.ok()) problems.push_back(status.ToString());
    if (!problems.empty() || checker.undecided().empty()) return problems;
    if (input == kInputsUntilDecided) return {checker.undecided()};
    own.seed += 0x9E3779B97F4A7C15U;
  }
}

namespace {
std::map<std::string, std::int64_t>& Launches() {
  static auto& launches = *new std::map<std::string, std::int64_t>;
  return launches;
}
}  // namespace

std::int64_t& LaunchesOf(const RegisteredKernel& kernel, const Variant& variant) {
  return Launches()[absl::StrCat(kernel.spec.name, ".", variant.name)];
}

const std::map<std::string, std::int64_t>& AllLaunches() {
  return Launches();
}

std::string TestTool() {
  const char* text = std::getenv("GRIDCLOCK_TEST_TOOL");
  return text == nullptr ? "" : text;
}

std::uint64_t TestSeed() {
  std::uint64_t seed = 0;
  const char* text = std::getenv("GRIDCLOCK_TEST_SEED");
  if (text != nullptr && absl::SimpleAtoi(text, &seed)) return seed;
  return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
}

}  // namespace gridclock
