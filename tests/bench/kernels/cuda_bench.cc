// How fast the variants are on a GPU, beside its own copy: every case of the goals and every
// variant that takes it, launched again and again without a pause. For choosing between variants;
// what a launch costs by itself is the matter of kernels/timing.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "kernels/api/registry.h"
#include "kernels/catalog/catalog.h"
#include "kernels/device/cuda/cuda_device.h"
#include "proto/types/generator.h"
#include "tests/conformance/operand.h"

namespace gridclock {
namespace {

struct Case {
  std::string kernel;
  DType dtype = DType::kF32;
  std::vector<Shape> shapes;  // Of the inputs, in order.
  std::vector<NamedAttribute> attributes = {};
  double goal = 0;  // The least part of the copy's rate for the default variant; 0: none.
  std::vector<Shape> list = {};  // In place of `shapes`: of the tensors of each input, a list.
};

// As the parameters of a model: 1,000 tensors of 1 K to 64 K elements.
std::vector<Shape> Parameters() {
  std::vector<Shape> shapes;
  for (std::int64_t i = 0; i < 1000; ++i) shapes.push_back({1024 + i * 7919 % 64513});
  return shapes;
}

void AddElements(std::vector<Case>* cases) {
  constexpr std::int64_t kMany = std::int64_t{1} << 28;
  for (const char* kernel : {"relu", "sigmoid", "silu", "pow"}) {
    cases->push_back({.kernel = kernel, .shapes = {{kMany}}, .goal = 0.92});
  }
  cases->push_back({.kernel = "silu", .dtype = DType::kBF16, .shapes = {{kMany}}});
  cases->push_back({.kernel = "mul", .shapes = {{kMany}, {kMany}}, .goal = 0.92});
  for (const DType to : {DType::kBF16, DType::kF8E4M3, DType::kI32}) {
    cases->push_back(
        {.kernel = "cast", .shapes = {{kMany}}, .attributes = {{"to", to}}, .goal = 0.92});
  }
}

void AddProducts(std::vector<Case>* cases) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const std::int64_t n : {512, 1024, 4096, 8192}) {
      cases->push_back({.kernel = "matmul", .dtype = dtype, .shapes = {{n, n}, {n, n}}});
      cases->push_back(
          {.kernel = "matmul_bias_gelu", .dtype = dtype, .shapes = {{n, n}, {n, n}, {n}}});
    }
  }
  for (const double p : {2.0, 1.0}) {
    cases->push_back(
        {.kernel = "cdist", .shapes = {{8192, 128}, {8192, 128}}, .attributes = {{"p", p}}});
  }
}

void AddLists(std::vector<Case>* cases) {
  for (const char* kernel : {"foreach_add", "foreach_mul", "sgd", "adam", "adamw"}) {
    for (const std::int64_t bytes : {4096, 32764}) {
      cases->push_back({.kernel = kernel,
                        .shapes = {},
                        .attributes = {{"arg_bytes", bytes}},
                        .goal = 0.8,
                        .list = Parameters()});
    }
  }
}

std::vector<Case> Cases() {
  constexpr std::int64_t kMany = std::int64_t{1} << 28;
  const NamedAttribute first{.name = "axis", .value = std::int64_t{0}};
  const NamedAttribute exact{.name = "approximate", .value = std::string("none")};
  std::vector<Case> cases = {
      {.kernel = "copy", .shapes = {{kMany}}},
      {.kernel = "square", .shapes = {{kMany}}, .goal = 0.92},
      {.kernel = "vector_add", .shapes = {{kMany}, {kMany}}, .goal = 0.92},
      {.kernel = "gelu", .shapes = {{kMany}}, .goal = 0.92},
      {.kernel = "gelu", .shapes = {{kMany}}, .attributes = {exact}},
      {.kernel = "gelu", .dtype = DType::kBF16, .shapes = {{kMany}}},
      {.kernel = "softmax", .shapes = {{8192, 1024}}},
      {.kernel = "softmax", .shapes = {{65536, 1024}}, .goal = 0.85},
      {.kernel = "softmax", .shapes = {{8192, 8192}}, .goal = 0.85},
      {.kernel = "softmax", .shapes = {{1024, 131072}}},
      {.kernel = "softmax", .dtype = DType::kBF16, .shapes = {{8192, 8192}}},
      {.kernel = "sum", .shapes = {{kMany}}},
  };
  for (const Shape& shape : {Shape{8192, 1024}, Shape{8192, 8192}, Shape{1024, 131072}}) {
    cases.push_back({.kernel = "sum", .shapes = {shape}});
    cases.push_back({.kernel = "sum", .shapes = {shape}, .attributes = {first}});
  }
  AddProducts(&cases);
  AddElements(&cases);
  AddLists(&cases);
  return cases;
}

std::vector<NamedOperand> InputsOf(const Case& c, const KernelSpec& spec) {
  std::vector<NamedOperand> inputs;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    OperandValue value{.is_list = !c.list.empty(), .tensors = {}};
    const std::vector<Shape> shapes = value.is_list ? c.list : std::vector<Shape>{c.shapes[i]};
    for (const Shape& shape : shapes) value.tensors.push_back({c.dtype, shape});
    inputs.push_back({spec.inputs[i].name, std::move(value)});
  }
  return inputs;
}

// Seconds of one launch: the median of some rounds, each long enough for the host's clock.
absl::StatusOr<double> Measure(Device& device, const Variant& variant, const Call& call) {
  using Clock = std::chrono::steady_clock;
  constexpr double kRound = 0.02;
  constexpr int kRounds = 7;
  std::vector<double> seconds;
  int launches = 1;
  for (int round = -2; round < kRounds; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < launches; ++i) GC_RETURN_IF_ERROR(variant.launch(call));
    GC_RETURN_IF_ERROR(device.Synchronize());
    const double one = std::chrono::duration<double>(Clock::now() - start).count() / launches;
    if (round >= 0) seconds.push_back(one);
    if (round < 0) launches = std::clamp(static_cast<int>(kRound / one), 1, 1000);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

constexpr std::int64_t kPattern = 1'000'003;

enum class Filled { kNo, kYes };

absl::StatusOr<std::vector<Operand>> Operands(Device& device,
                                              const std::vector<OperandValue>& values,
                                              Filled filled) {
  std::vector<Operand> operands;
  for (const OperandValue& value : values) {
    GC_ASSIGN_OR_RETURN(Operand operand, Operand::Create(device, value, {}));
    if (filled == Filled::kNo) {
      operands.push_back(std::move(operand));
      continue;
    }
    // Equal numbers would spare a GPU power, and with it time.
    const DType dtype = value.tensors[0].dtype;
    std::vector<std::byte> pattern(static_cast<std::size_t>(kPattern * SizeOf(dtype)));
    // The mean of squares of an optimizer has a root.
    Generate(value.is_list ? Generator{GeneratorKind::kUniform, 0, 1, operands.size()}
                           : Generator{GeneratorKind::kRandn, 0, 0, operands.size()},
             dtype, 0, pattern);
    GC_RETURN_IF_ERROR(operand.PutRepeated(pattern));
    operands.push_back(std::move(operand));
  }
  return operands;
}

class Bench {
 public:
  Bench(Device& device, const Registry& registry) : device_(device), registry_(registry) {}

  absl::Status Run(const Case& c) {
    const RegisteredKernel& kernel = *registry_.Find(c.kernel);
    GC_ASSIGN_OR_RETURN(const Binding binding,
                        Bind(kernel.spec, InputsOf(c, kernel.spec), c.attributes));
    GC_ASSIGN_OR_RETURN(const VariantSpec* best,
                        ChooseVariant(kernel.spec, binding, device_.info().traits, ""));
    GC_ASSIGN_OR_RETURN(const auto inputs, Operands(device_, binding.inputs, Filled::kYes));
    GC_ASSIGN_OR_RETURN(const auto outputs, Operands(device_, binding.outputs, Filled::kNo));
    for (const Variant& variant : kernel.def.cuda) {
      const bool is_slow = variant.name == "serial" || variant.name == "one_block";
      const bool takes =
          ChooseVariant(kernel.spec, binding, device_.info().traits, variant.name).ok();
      if (is_slow || !takes) continue;
      GC_ASSIGN_OR_RETURN(const double seconds, Time(kernel, variant, binding, inputs, outputs));
      Print(c, variant.name, binding, seconds, variant.name == best->name);
    }
    return absl::OkStatus();
  }
  bool missed() const { return missed_; }

 private:
  absl::StatusOr<double> Time(const RegisteredKernel& kernel, const Variant& variant,
                              const Binding& binding, const std::vector<Operand>& inputs,
                              const std::vector<Operand>& outputs) {
    GC_ASSIGN_OR_RETURN(const auto scratch_values, ScratchOf(kernel, variant, binding));
    GC_ASSIGN_OR_RETURN(const auto scratch, Operands(device_, scratch_values, Filled::kNo));
    const auto in = Views(inputs), temp = Views(scratch);
    auto out = Views(outputs);
    for (std::size_t i = 0, next = 0; i < in.size(); ++i) {
      if (kernel.spec.inputs[i].inout) out[next++].data = in[i].data;
    }
    return Measure(device_, variant,
                   {.binding = &binding,
                    .inputs = in,
                    .outputs = out,
                    .scratch = temp,
                    .threads = device_.threads(),
                    .stream = device_.stream()});
  }

  // The first case is the copy, whose last variant is the driver's: the yardstick of all others.
  void Print(const Case& c, const std::string& variant, const Binding& binding, double seconds,
             bool is_default) {
    const double rate = static_cast<double>(binding.bytes) / seconds;
    if (c.kernel == "copy") copy_rate_ = rate;
    const double part = rate / copy_rate_;
    std::string verdict;
    if (is_default && c.goal > 0) {
      verdict = absl::StrFormat("goal %.0f %%: %s", 100 * c.goal, part >= c.goal ? "PASS" : "FAIL");
      missed_ = missed_ || part < c.goal;
    }
    const std::string name = absl::StrCat(c.kernel, ".", variant, is_default ? " *" : "");
    const std::string shape =
        absl::StrCat(c.list.empty() ? ToText(TensorSpec{c.dtype, c.shapes[0]})
                                    : absl::StrCat(c.list.size(), " tensors"),
                     c.attributes.empty() ? "" : absl::StrCat(" ", ToText(c.attributes[0].value)));
    absl::PrintF("%-22s %-24s %10.1f us %8.0f GB/s %5.0f %% %9.1f TFLOP/s  %s\n", name, shape,
                 1e6 * seconds, 1e-9 * rate, 100 * part,
                 1e-12 * static_cast<double>(binding.flops) / seconds, verdict);
  }

  Device& device_;
  const Registry& registry_;
  double copy_rate_ = 1;
  bool missed_ = false;
};

// Of all cases, or of those of some kernels; the yardstick always.
absl::StatusOr<bool> RunAll(const std::vector<std::string>& kernels) {
  GC_ASSIGN_OR_RETURN(const auto device, CudaDevice::Create({.bare = true}));
  GC_ASSIGN_OR_RETURN(const Registry registry, Registry::Create(BuiltInKernels()));
  absl::PrintF("%s; * is the variant that a call gets\n", device->info().model);
  Bench bench(*device, registry);
  for (const Case& c : Cases()) {
    const bool asked = kernels.empty() || c.kernel == "copy" ||
                       std::find(kernels.begin(), kernels.end(), c.kernel) != kernels.end();
    if (asked) GC_RETURN_IF_ERROR(bench.Run(c));
  }
  return bench.missed();
}

}  // namespace
}  // namespace gridclock

// kernels_cuda_bench [KERNEL...]
int main(int count, char** words) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // Each line as it is measured, in a pipe too.
  const absl::StatusOr<bool> missed = gridclock::RunAll({words + 1, words + count});
  if (!missed.ok()) {
    std::fprintf(stderr, "%s\n", missed.status().ToString().c_str());
    return 2;
  }
  return *missed ? 1 : 0;
}
