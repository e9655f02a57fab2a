// The optimizers step by step against their formulas, over lists of tensors of many sizes.
#include <cmath>
#include <initializer_list>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/api/registry.h"
#include "kernels/catalog/catalog.h"
#include "kernels/device/cpu/tbb_threads.h"
#include "kernels/verify/verify.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using List = std::vector<std::vector<float>>;

// Parameters and what is remembered of them: m and v of adam, nothing of sgd.
struct Model {
  List p, m, v;
};

struct Settings {
  double lr = 0.05, beta1 = 0.8, beta2 = 0.95, eps = 1e-6, weight_decay = 0.1;
};

// Sizes without and with elements, more than a thread takes at once, and no whole vectors.
const std::vector<std::int64_t>& Sizes() {
  static const std::vector<std::int64_t> sizes = {0, 1, 17, 0, 4096, 40'001, 3};
  return sizes;
}

List Filled(double a, double b) {
  List list;
  for (const std::int64_t size : Sizes()) {
    std::vector<float>& tensor = list.emplace_back();
    for (std::int64_t i = 0; i < size; ++i) {
      tensor.push_back(static_cast<float>(a * std::sin(b * static_cast<double>(i + size))));
    }
  }
  return list;
}

List Gradient(int step) {
  return Filled(1.0 / step, 0.37 + step);
}

OperandValue ValueOf(const List& list) {
  OperandValue value{.is_list = true, .tensors = {}};
  for (const auto& tensor : list) {
    value.tensors.push_back({DType::kF32, {static_cast<std::int64_t>(tensor.size())}});
  }
  return value;
}

std::vector<void*> PointersTo(List& list) {
  std::vector<void*> pointers;
  for (auto& tensor : list) pointers.push_back(tensor.data());
  return pointers;
}

using Operands = std::vector<std::pair<std::string, List*>>;

Operands OperandsOf(const RegisteredKernel& kernel, Model* model, List* gradient) {
  Operands operands = {{"p", &model->p}, {"g", gradient}};
  if (kernel.spec.inputs.size() > 2) {
    operands.insert(operands.end(), {{"m", &model->m}, {"v", &model->v}});
  }
  return operands;
}

// INVALID_ARGUMENT also for attributes that the kernel does not take together.
absl::StatusOr<Binding> BindOperands(const RegisteredKernel& kernel, const Operands& operands,
                                     const std::vector<NamedAttribute>& attributes) {
  std::vector<NamedOperand> named;
  for (const auto& [name, list] : operands) named.push_back({name, ValueOf(*list)});
  GC_ASSIGN_OR_RETURN(Binding binding, Bind(kernel.spec, named, attributes));
  GC_RETURN_IF_ERROR(kernel.def.validate(binding));
  return binding;
}

struct Views {
  std::vector<OperandView> inputs, outputs;
};

Views ViewsOf(const RegisteredKernel& kernel, const Binding& binding, const Operands& operands) {
  Views views;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    views.inputs.push_back({&binding.inputs[i], PointersTo(*operands[i].second)});
    if (kernel.spec.inputs[i].inout) views.outputs.push_back(views.inputs.back());
  }
  return views;
}

absl::Status Launch(const Variant& variant, const Binding& binding, const Views& views) {
  TbbThreads threads(3);
  return variant.launch({.binding = &binding,
                         .inputs = views.inputs,
                         .outputs = views.outputs,
                         .scratch = {},
                         .threads = &threads,
                         .stream = nullptr});
}

// One step by a variant of the catalogue; `model` is worked on in place.
absl::Status Step(const RegisteredKernel& kernel, const Variant& variant,
                  const std::vector<NamedAttribute>& attributes, List gradient, Model* model) {
  const Operands operands = OperandsOf(kernel, model, &gradient);
  GC_ASSIGN_OR_RETURN(const Binding binding, BindOperands(kernel, operands, attributes));
  return Launch(variant, binding, ViewsOf(kernel, binding, operands));
}

// The state of one parameter in double.
struct One {
  double p, m = 0, v = 0;
};

void AdamWStep(const Settings& s, int t, double g, One* one) {
  one->m = s.beta1 * one->m + (1 - s.beta1) * g;
  one->v = s.beta2 * one->v + (1 - s.beta2) * g * g;
  const double mean = one->m / (1 - std::pow(s.beta1, t));
  const double square = one->v / (1 - std::pow(s.beta2, t));
  one->p -= s.lr * s.weight_decay * one->p;
  one->p -= s.lr * mean / (std::sqrt(square) + s.eps);
}

void AdamStep(const Settings& s, int t, double g, One* one) {
  Settings without = s;
  without.weight_decay = 0;
  AdamWStep(without, t, g + s.weight_decay * one->p, one);
}

void SgdStep(const Settings& s, int, double g, One* one) {
  one->p -= s.lr * (g + s.weight_decay * one->p);
}

using Formula = void (*)(const Settings& settings, int t, double g, One* one);

std::vector<NamedAttribute> AttributesOf(const std::string& kernel, const Settings& s, int t) {
  std::vector<NamedAttribute> attributes = {{"lr", s.lr}, {"weight_decay", s.weight_decay}};
  if (kernel == "sgd") return attributes;
  attributes.insert(attributes.end(), {{"beta1", s.beta1},
                                       {"beta2", s.beta2},
                                       {"eps", s.eps},
                                       {"step", static_cast<std::int64_t>(t)}});
  return attributes;
}

// The largest difference from the formula in any parameter after so many steps.
absl::StatusOr<double> Difference(const RegisteredKernel& kernel, const Variant& variant,
                                  Formula formula, int steps) {
  const Settings settings;
  Model model{.p = Filled(2, 0.11), .m = Filled(0, 0), .v = Filled(0, 0)};
  std::vector<One> truth;
  for (const auto& tensor : model.p) {
    for (const float p : tensor) truth.push_back({.p = p});
  }
  for (int t = 1; t <= steps; ++t) {
    const List gradient = Gradient(t);
    GC_RETURN_IF_ERROR(
        Step(kernel, variant, AttributesOf(kernel.spec.name, settings, t), gradient, &model));
    std::size_t next = 0;
    for (const auto& tensor : gradient) {
      for (const float g : tensor) formula(settings, t, g, &truth[next++]);
    }
  }
  double largest = 0;
  std::size_t next = 0;
  for (const auto& tensor : model.p) {
    for (const float p : tensor) largest = std::max(largest, std::fabs(p - truth[next++].p));
  }
  return largest;
}

// Twelve steps of some roundings of numbers up to 2 each.
TEST(Optimizers, FollowTheirFormulasStepByStep) {
  ASSERT_OK_AND_ASSIGN(const Registry registry, Registry::Create(BuiltInKernels()));
  const std::pair<const char*, Formula> kernels[] = {
      {"sgd", SgdStep}, {"adam", AdamStep}, {"adamw", AdamWStep}};
  for (const auto& [name, formula] : kernels) {
    const RegisteredKernel& kernel = *registry.Find(name);
    for (const Variant& variant : kernel.def.cpu) {
      ASSERT_OK_AND_ASSIGN(const double difference, Difference(kernel, variant, formula, 12));
      EXPECT_LT(difference, 2e-5) << name << "." << variant.name;
    }
  }
}

// The formulas differ enough that none passes for another.
TEST(Optimizers, AreNotEachOther) {
  ASSERT_OK_AND_ASSIGN(const Registry registry, Registry::Create(BuiltInKernels()));
  const RegisteredKernel& adamw = *registry.Find("adamw");
  ASSERT_OK_AND_ASSIGN(const double difference,
                       Difference(adamw, adamw.def.cpu.back(), AdamStep, 12));
  EXPECT_GT(difference, 1e-3);
}

// Numbers of all exponents of f32, subnormal ones and zeros among them, and of either sign.
class Extremes {
 public:
  explicit Extremes(unsigned seed) : random_(seed) {}
  double Positive(double least, double most) {
    return std::exp2(std::uniform_real_distribution(std::log2(least), std::log2(most))(random_));
  }
  double AnyOf(std::initializer_list<double> choices) {
    return choices.begin()[random_() % choices.size()];
  }
  List Numbers(std::int64_t size, bool negative) {
    List list(1);
    for (std::int64_t i = 0; i < size; ++i) {
      const double x =
          random_() % 8 == 0 ? AnyOf({0, 1, 1e-40, 0x1p-149, 3e38}) : Positive(1e-45, 3e38);
      list[0].push_back(static_cast<float>(negative && random_() % 2 == 0 ? -x : x));
    }
    return list;
  }
  Settings Some() {
    return {.lr = AnyOf({0, 1, 1e-46, 1e30, 1e-3, Positive(1e-46, 1e30)}),
            .beta1 = AnyOf({0, 0.5, 0.9, 1 - 1e-7}),
            .beta2 = AnyOf({0, 0.5, 0.999, 1 - 1e-9}),
            .eps = AnyOf({0, 1e-8, 1e-25, Positive(1e-35, 1e3)}),
            .weight_decay = AnyOf({0, 0.01, 1e-46, Positive(1e-46, 1e8)})};
  }

 private:
  std::mt19937 random_;
};

// What the verification says of a step by a variant.
absl::StatusOr<Verification> Verified(const RegisteredKernel& kernel, const Variant& variant,
                                      const std::vector<NamedAttribute>& attributes, List gradient,
                                      Model before) {
  Model after = before;
  const Operands inputs = OperandsOf(kernel, &before, &gradient),
                 outputs = OperandsOf(kernel, &after, &gradient);
  GC_ASSIGN_OR_RETURN(const Binding binding, BindOperands(kernel, inputs, attributes));
  const Views written = ViewsOf(kernel, binding, outputs);
  GC_RETURN_IF_ERROR(Launch(variant, binding, written));
  TbbThreads threads(2);
  const auto bytes = static_cast<std::size_t>(VerifyBytes(kernel.def, binding, threads.count()));
  std::vector<double> memory(bytes / sizeof(double) + 1);
  return Verify(kernel.def, binding, ViewsOf(kernel, binding, inputs).inputs, written.outputs,
                threads, std::as_writable_bytes(std::span(memory)));
}

// One element of a thousandth more than it should be is seen.
TEST(Optimizers, AreSaidToBeWrongWhereTheyAre) {
  ASSERT_OK_AND_ASSIGN(const Registry registry, Registry::Create(BuiltInKernels()));
  Extremes some(11);
  const auto ordinary = [&](double least) {
    List list(1);
    for (int i = 0; i < 1000; ++i) list[0].push_back(static_cast<float>(some.Positive(least, 1)));
    return list;
  };
  for (const std::string name : {"sgd", "adam", "adamw"}) {
    const RegisteredKernel& kernel = *registry.Find(name);
    static LaunchFn right;
    right = kernel.def.cpu[0].launch;
    Variant wrong = kernel.def.cpu[0];
    wrong.launch = [](const Call& call) {
      GC_RETURN_IF_ERROR(right(call));
      call.Out<float>(0, 0)[471] *= 1.001F;
      return absl::OkStatus();
    };
    const Model model{.p = ordinary(0.1), .m = ordinary(0.1), .v = ordinary(0.1)};
    ASSERT_OK_AND_ASSIGN(
        const Verification said,
        Verified(kernel, wrong, AttributesOf(name, Settings(), 3), ordinary(0.1), model));
    EXPECT_EQ(said.mismatches, 1) << name;
    EXPECT_EQ(said.undecided, 0) << name;
  }
}

// Whatever the numbers are, no variant is said to be wrong.
TEST(Optimizers, AreVerifiedWithNumbersOfAllSizes) {
  constexpr std::int64_t kElements = 3001;
  ASSERT_OK_AND_ASSIGN(const Registry registry, Registry::Create(BuiltInKernels()));
  Extremes some(7);
  std::int64_t checked = 0, undecided = 0;
  for (int round = 0; round < 300; ++round) {
    const Settings settings = some.Some();
    const int t = round % 3 == 0 ? 1000 : round % 3;
    const List g = some.Numbers(kElements, true);
    const Model model{.p = some.Numbers(kElements, true),
                      .m = some.Numbers(kElements, true),
                      .v = some.Numbers(kElements, false)};
    for (const std::string name : {"sgd", "adam", "adamw"}) {
      const RegisteredKernel& kernel = *registry.Find(name);
      for (const Variant& variant : kernel.def.cpu) {
        const auto said = Verified(kernel, variant, AttributesOf(name, settings, t), g, model);
        if (absl::IsInvalidArgument(said.status())) continue;  // Numbers that f32 has not got.
        ASSERT_THAT(said, IsOk());
        EXPECT_EQ(said->mismatches, 0)
            << name << "." << variant.name << " lr " << settings.lr << " beta1 " << settings.beta1
            << " beta2 " << settings.beta2 << " eps " << settings.eps << " weight_decay "
            << settings.weight_decay << " step " << t << ": " << said->first_mismatch;
        checked += said->checked;
        undecided += said->undecided;
      }
    }
  }
  EXPECT_GT(checked, 1'000'000);
  EXPECT_LT(undecided, checked / 2);
}

// A list with one bad tensor says which.
TEST(Lists, NameTheTensorThatDoesNotFit) {
  ASSERT_OK_AND_ASSIGN(const Registry registry, Registry::Create(BuiltInKernels()));
  OperandValue good{.is_list = true, .tensors = {}};
  for (std::int64_t i = 0; i < 20; ++i) good.tensors.push_back({DType::kF32, {i}});
  OperandValue bad = good;
  bad.tensors[17].shape = {4, 4};
  EXPECT_THAT(
      Bind(registry.Find("adamw")->spec, {{"p", good}, {"g", good}, {"m", bad}, {"v", good}}, {}),
      StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("'m[17]'")));
  bad = good;
  bad.tensors[3].dtype = DType::kF64;
  EXPECT_THAT(Bind(registry.Find("foreach_mul")->spec, {{"a", good}, {"b", bad}}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("'b[3]'")));
}

}  // namespace
}  // namespace gridclock
