// Any text as words; what parses must come back from its own text, and binding it to any shapes
// must end in a binding whose sizes are sane or in an error; so must the launches that they have.
// The input: text, a NUL, bytes that become shapes and attributes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "proto/types/binding.h"
#include "proto/types/generator.h"
#include "proto/types/kernel_spec.h"
#include "proto/types/launch.h"
#include "proto/types/tensor.h"
#include "tests/fuzz/check.h"

namespace gridclock {
namespace {

class Source {
 public:
  Source(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::uint8_t Next() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

std::int64_t NextSize(Source& bytes) {
  constexpr std::int64_t kHostile[] = {-1,
                                       0,
                                       std::int64_t{1} << 31,
                                       std::int64_t{1} << 32,
                                       std::int64_t{1} << 61,
                                       std::int64_t{1} << 62,
                                       std::numeric_limits<std::int64_t>::max(),
                                       std::numeric_limits<std::int64_t>::min()};
  const std::uint8_t byte = bytes.Next();
  return byte < 248 ? byte % 8 : kHostile[byte - 248];
}

TensorSpec NextTensor(Source& bytes) {
  TensorSpec tensor;
  tensor.dtype = AllDTypes()[bytes.Next() % kDTypeCount];
  const int rank = bytes.Next() % 10;
  for (int i = 0; i < rank; ++i) tensor.shape.push_back(NextSize(bytes));
  return tensor;
}

std::vector<NamedOperand> NextInputs(const KernelSpec& spec, Source& bytes) {
  std::vector<NamedOperand> inputs;
  for (const OperandSpec& operand : spec.inputs) {
    NamedOperand input{operand.name, {.is_list = operand.is_list, .tensors = {}}};
    const int count = operand.is_list ? bytes.Next() % 4 : 1;
    for (int i = 0; i < count; ++i) input.value.tensors.push_back(NextTensor(bytes));
    inputs.push_back(std::move(input));
  }
  return inputs;
}

AttributeValue NextValue(const AttributeSpec& spec, Source& bytes) {
  switch (bytes.Next() % 6) {
    case 0:
      return NextSize(bytes);
    case 1:
      return static_cast<double>(NextSize(bytes)) / 4;
    case 2:
      return bytes.Next() % 2 == 0;
    case 3:
      return AllDTypes()[bytes.Next() % kDTypeCount];
    case 4:
      return spec.words.empty() ? std::string("none") : spec.words[0];
    default:
      return spec.default_value.value_or(AttributeValue(std::int64_t{1}));
  }
}

std::vector<NamedAttribute> NextAttributes(const KernelSpec& spec, Source& bytes) {
  std::vector<NamedAttribute> attributes;
  for (const AttributeSpec& attribute : spec.attributes) {
    if (attribute.default_value && bytes.Next() % 2 == 0) continue;
    attributes.push_back({attribute.name, NextValue(attribute, bytes)});
  }
  return attributes;
}

void CheckBinding(const KernelSpec& spec, const Binding& binding) {
  FUZZ_CHECK(binding.inputs.size() == spec.inputs.size());
  FUZZ_CHECK(binding.attributes.size() == spec.attributes.size());
  FUZZ_CHECK(binding.flops >= 0 && binding.bytes >= 0);
  for (const OperandValue& output : binding.outputs) {
    FUZZ_CHECK(output.is_list ? !output.tensors.empty() : output.tensors.size() == 1);
    for (const TensorSpec& tensor : output.tensors) FUZZ_CHECK(CheckedBytes(tensor).ok());
  }
  const auto scratch = BindScratch(spec.clauses, binding);
  if (!scratch.ok()) return;
  for (const OperandValue& value : *scratch) FUZZ_CHECK(CheckedBytes(value.tensors[0]).ok());
}

void CheckLaunches(const KernelSpec& spec, const Binding& binding) {
  const ProgramLaunch launch = {.module = "m", .entry = "e", .clauses = {}};
  const auto program = CompleteProgram({.words = spec, .launches = {launch}, .globals = {}});
  if (!program.ok()) return;
  const DeviceTraits device = {.kind = "cuda", .sm = 90};
  const auto bound = BindProgram(*program, binding, device);
  if (!bound.ok()) return;
  const LaunchLimits limits = LaunchLimitsOf(device);
  const BoundLaunch& first = bound->launches[0];
  FUZZ_CHECK(first.block_threads() >= 1 && first.block_threads() <= 1024);
  FUZZ_CHECK(first.shared_bytes <= static_cast<std::uint64_t>(limits.shared_bytes));
  FUZZ_CHECK(first.params.size() == program->launches[0].clauses.params.size());
  for (const BoundParam& param : first.params) {
    FUZZ_CHECK(param.size <= static_cast<std::uint64_t>(limits.parameter_bytes));
    const auto& side = param.side == BoundParam::Side::kInput    ? binding.inputs
                       : param.side == BoundParam::Side::kOutput ? binding.outputs
                                                                 : bound->scratch;
    const bool operand =
        param.kind != ParamSpec::Kind::kValue && param.kind != ParamSpec::Kind::kNull;
    FUZZ_CHECK(!operand || param.index < side.size());
  }
}

void FuzzWords(absl::string_view text, Source bytes) {
  const auto spec = ParseKernelSpec(text);
  if (!spec.ok()) return;
  const auto again = ParseKernelSpec(ToText(*spec));
  // Text that was close to the limit may grow beyond it.
  if (text.size() < 4096) FUZZ_CHECK(again.ok());
  if (again.ok()) FUZZ_CHECK(*again == *spec && SameWords(*again, *spec));
  const auto binding = Bind(*spec, NextInputs(*spec, bytes), NextAttributes(*spec, bytes));
  if (!binding.ok()) return;
  CheckBinding(*spec, *binding);
  CheckLaunches(*spec, *binding);
}

void FuzzParts(absl::string_view text) {
  if (const auto expr = ParseExpr(text); expr.ok() && text.size() < 4096) {
    const auto again = ParseExpr(ToText(*expr));
    FUZZ_CHECK(again.ok() && *again == *expr);
  }
  if (const auto tensor = ParseTensorSpec(text); tensor.ok()) {
    FUZZ_CHECK(CheckedBytes(*tensor).ok());
  }
  if (const auto generator = ParseGenerator(text); generator.ok()) {
    std::byte out[64];
    for (const DType dtype : AllDTypes()) Generate(*generator, dtype, 3, out);
  }
}

}  // namespace
}  // namespace gridclock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::uint8_t* const end = std::find(data, data + size, 0);
  const absl::string_view text(reinterpret_cast<const char*>(data), end - data);
  const std::size_t rest = end == data + size ? size : end - data + 1;
  gridclock::FuzzParts(text);
  gridclock::FuzzWords(text, gridclock::Source(data + rest, size - rest));
  return 0;
}
