// Every kernel, variant and dtype of the catalogue linked here, on the device of world.h, with
// calls made from the kernel's words. GRIDCLOCK_TEST_SEED repeats a run; GRIDCLOCK_TEST_TOOL says
// that a tool looks on, under which each launch takes a millisecond, and which of memory sees
// blocks and what was written: each tensor is then a block.
#include <algorithm>
#include <cstdio>
#include <memory>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "kernels/catalog/catalog.h"
#include "kernels/verify/verify.h"
#include "tests/conformance/harness.h"
#include "tests/conformance/huge.h"
#include "tests/conformance/skips.h"
#include "tests/conformance/world.h"

namespace gridclock {
namespace {

// Of large calls this much is compared with the reference, chosen anew by each seed: seconds.
constexpr std::int64_t kMostTerms = std::int64_t{1} << 22;
// The tag of a call of one row alone, which an exception may name.
constexpr const char* kHugeRow = "huge/one_row";

// One of each for the whole program; gtest wants its parameters before main begins.
struct World {
  std::unique_ptr<Device> device;
  std::unique_ptr<Registry> registry;
  std::uint64_t seed = TestSeed();
  std::string missing;  // Why there is no device here.
  std::string error;
};

// Where there is no device the kernels are left alone: a CPU of a lower level cannot even list
// them.
World MakeWorld() {
  World world;
  auto opened = OpenTestDevice();
  world.error = std::string(opened.status().message());
  if (!opened.ok()) return world;
  world.missing = opened->missing;
  if (opened->device == nullptr) return world;
  auto registry = Registry::Create(BuiltInKernels());
  world.error = std::string(registry.status().message());
  if (!registry.ok()) return world;
  world.device = std::move(opened->device);
  world.registry = std::make_unique<Registry>(*std::move(registry));
  std::printf("GRIDCLOCK_TEST_SEED=%llu\n", static_cast<unsigned long long>(world.seed));
  return world;
}

// Never destroyed: a GPU's libraries may end before the statics of a program do.
World& TheWorld() {
  static World& world = *new World(MakeWorld());
  return world;
}

const std::vector<Variant>& VariantsOf(const RegisteredKernel& kernel) {
  return std::string(TestDeviceKind()) == "cuda" ? kernel.def.cuda : kernel.def.cpu;
}

struct Case {
  const RegisteredKernel* kernel = nullptr;
  const Variant* variant = nullptr;
  DType dtype = DType::kF32;
  std::string Name() const {
    return absl::StrCat(TestDeviceKind(), "/", kernel->spec.name, "/", variant->name, "/",
                        gridclock::Name(dtype));
  }
};

void PrintTo(const Case& c, std::ostream* os) {
  *os << c.Name();
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  if (TheWorld().registry == nullptr) return cases;
  for (const auto& [name, kernel] : TheWorld().registry->kernels()) {
    for (const Variant& variant : VariantsOf(kernel)) {
      for (const DType dtype : DTypesOf(kernel.spec)) cases.push_back({&kernel, &variant, dtype});
    }
  }
  return cases;
}

std::string TestName(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.Name().substr(std::string(TestDeviceKind()).size() + 1);
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

class Conformance : public testing::TestWithParam<Case> {
 protected:
  // Plain loops are spared what takes them seconds where there is less: they have no other way for
  // it.
  static bool IsPlain(const Case& c) {
    if (std::string(TestDeviceKind()) == "cpu") return c.variant != &c.kernel->def.cpu.back();
    const std::string& name = c.variant->name;
    return name == "serial" || name == "one_block" || name == "naive";
  }

  // Whether it launches once and more for each tensor of a list.
  static bool LaunchesByTensor(const Case& c) {
    return c.variant->name == "naive" || c.variant->name == "per_tensor";
  }

  // Whether the words of the variant take the call.
  static bool Takes(const Case& c, const Instance& instance) {
    const auto binding = Bind(c.kernel->spec, instance.inputs, instance.attributes);
    return binding.ok() && ChooseVariant(c.kernel->spec, *binding, TheWorld().device->info().traits,
                                         c.variant->name)
                               .ok();
  }

  // The calls of this size that the variant takes.
  static std::vector<Instance> CallsFor(const Case& c, Size size) {
    std::vector<Instance> calls;
    for (Instance& instance : InstancesOf(c.kernel->spec, c.dtype, size)) {
      if (Takes(c, instance)) calls.push_back(std::move(instance));
    }
    EXPECT_FALSE(calls.empty()) << "no call of " << c.Name() << " can be made from its words";
    return calls;
  }

  static void AddRandomCalls(const Case& c, std::uint64_t seed, std::vector<Instance>* calls) {
    for (Instance& instance : RandomInstancesOf(c.kernel->spec, c.dtype, seed)) {
      if (Takes(c, instance)) calls->push_back(std::move(instance));
    }
  }

  static std::string NameOf(const char* tag) { return absl::StrCat(GetParam().Name(), "/", tag); }

  static void Conclude(const char* tag, const std::vector<std::string>& problems,
                       std::uint64_t seed) {
    EXPECT_TRUE(problems.empty()) << NameOf(tag) << ": " << problems.size()
                                  << " problems, the first:\n"
                                  << problems.front() << "\nGRIDCLOCK_TEST_SEED=" << seed;
  }

  static bool IsOneRow(const Instance& call) {
    return call.inputs[0].value.tensors[0].shape.size() == 1;
  }

  static Memory MemoryFor(const char* tag) {
    const std::string tool = TestTool();
    if (tool.empty()) return Memory::kGuarded;
    const bool unseen = ReasonFor(KnownExceptions().unseen, NameOf(tag)).has_value();
    return tool == "initcheck" && !unseen ? Memory::kUnwritten : Memory::kExact;
  }

  void CheckAll(const char* tag, const CheckOptions& options, Size size = Size::kSmall) {
    const Case& c = GetParam();
    if (const auto reason = ReasonFor(KnownExceptions().skipped, NameOf(tag))) {
      GTEST_SKIP() << *reason;
    }
    const std::int64_t& launches = LaunchesOf(*c.kernel, *c.variant);
    const std::int64_t before = launches;
    std::vector<std::string> problems;
    auto calls = CallsFor(c, size);
    if (size != Size::kSmall && IsPlain(c)) calls = ForPlainLoops(c.kernel->spec, calls);
    if (!TestTool().empty() && LaunchesByTensor(c)) {
      calls = OfShortLists(c.kernel->spec, calls);
    }
    if (size == Size::kSmall) AddRandomCalls(c, options.seed, &calls);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      CheckOptions own = options;
      own.memory = MemoryFor(tag);
      // Large calls are too dear to run aligned and misaligned: they take turns.
      if (size == Size::kLarge) own.misaligned = (i + static_cast<std::size_t>(c.dtype)) % 2 == 1;
      for (const auto& problem :
           CheckCall(*TheWorld().device, *c.kernel, *c.variant, calls[i], own)) {
        problems.push_back(absl::StrCat(ToText(calls[i]), ": ", problem));
      }
    }
    EXPECT_TRUE(launches > before || !problems.empty())
        << NameOf(tag) << " launched nothing: say why in skips.cc";
    Conclude(tag, problems, options.seed);
  }

  void CheckHuge(const char* tag, std::uint64_t seed) {
    const Case& c = GetParam();
    if (const auto reason = ReasonFor(KnownExceptions().skipped, NameOf(tag))) {
      GTEST_SKIP() << *reason;
    }
    std::vector<std::string> problems;
    int checked = 0;
    for (const Instance& call : CallsFor(c, Size::kHuge)) {
      if (const auto reason = ReasonFor(KnownExceptions().skipped, NameOf(kHugeRow));
          reason && IsOneRow(call)) {
        std::printf("%s: left out: %s\n", ToText(call).c_str(), reason->c_str());
        continue;
      }
      ++checked;
      const HugeResult result =
          CheckHugeCall(*TheWorld().device, *c.kernel, *c.variant, call, seed);
      EXPECT_TRUE(result.units > 0 || !CanVerify(c.kernel->def))
          << ToText(call) << ": nothing was compared";
      for (const auto& problem : result.problems) {
        problems.push_back(absl::StrCat(ToText(call), ": ", problem));
      }
    }
    EXPECT_GT(checked, 0) << NameOf(tag) << ": say why in skips.cc";
    Conclude(tag, problems, seed);
  }
};

TEST_P(Conformance, PlainNumbers) {
  CheckAll("plain", {.seed = TheWorld().seed});
}

TEST_P(Conformance, TensorsThatAreAlignedToTheirElementsAlone) {
  CheckAll("misaligned", {.seed = TheWorld().seed + 1, .misaligned = true});
}

TEST_P(Conformance, NumbersOverAWideRange) {
  CheckAll("wide", {.seed = TheWorld().seed + 2, .data = Data::kWide});
}

TEST_P(Conformance, NaNAndInfinities) {
  CheckAll("special", {.seed = TheWorld().seed + 3, .data = Data::kSpecial});
}

TEST_P(Conformance, LargestLeastAndSubnormalNumbers) {
  CheckAll("extreme", {.seed = TheWorld().seed + 4, .data = Data::kExtreme});
}

TEST_P(Conformance, HugeNumbers) {
  CheckAll("largest", {.seed = TheWorld().seed + 9, .data = Data::kHuge});
}

TEST_P(Conformance, TinyNumbers) {
  CheckAll("least", {.seed = TheWorld().seed + 10, .data = Data::kTiny});
}

TEST_P(Conformance, NumbersFarFromZero) {
  CheckAll("far", {.seed = TheWorld().seed + 6, .data = Data::kFar});
}

TEST_P(Conformance, NumbersWithSpikes) {
  CheckAll("spikes", {.seed = TheWorld().seed + 8, .data = Data::kSpikes});
}

TEST_P(Conformance, LargeTensors) {
  CheckAll("large", {.seed = TheWorld().seed + 5, .data = Data::kDecided, .most_terms = kMostTerms},
           Size::kLarge);
}

TEST_P(Conformance, MoreThanTwoToThe31Elements) {
  if (!TheWorld().device->uses_host_memory()) return CheckHuge("huge", TheWorld().seed + 7);
  CheckAll("huge", {.seed = TheWorld().seed + 7, .most_terms = kMostTerms}, Size::kHuge);
}

// What was launched under this filter, for who must know that nothing was left out: of each
// variant, also of one that no test came to.
class PrintLaunches : public testing::Environment {
 public:
  void SetUp() override {
    for (const Case& c : AllCases()) LaunchesOf(*c.kernel, *c.variant);
  }
  void TearDown() override {
    for (const auto& [name, launches] : AllLaunches()) {
      std::printf("launched %s %lld\n", name.c_str(), static_cast<long long>(launches));
    }
  }
};
[[maybe_unused]] const auto* const print_launches =
    testing::AddGlobalTestEnvironment(new PrintLaunches);

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Conformance);
INSTANTIATE_TEST_SUITE_P(All, Conformance, testing::ValuesIn(AllCases()), TestName);

TEST(Catalogue, CanBeTestedHere) {
  ASSERT_EQ(TheWorld().error, "");
  if (!TheWorld().missing.empty()) GTEST_SKIP() << TheWorld().missing;
  EXPECT_FALSE(AllCases().empty());
}

// Variants by cuBLASLt are there where it is installed.
bool NeedsMissingLibrary(const Exception& exception) {
  const auto& variants = VariantsOf(*TheWorld().registry->Find("matmul"));
  return exception.pattern.find("/cublaslt") != std::string::npos &&
         std::none_of(variants.begin(), variants.end(),
                      [](const Variant& variant) { return variant.name == "cublaslt"; });
}

TEST(Catalogue, EveryListedExceptionFitsATest) {
  if (!TheWorld().missing.empty()) GTEST_SKIP() << TheWorld().missing;
  std::vector<std::string> names;
  for (const Case& c : AllCases()) {
    for (const char* tag : {"plain", "misaligned", "wide", "special", "extreme", "largest", "least",
                            "far", "spikes", "large", "huge", kHugeRow}) {
      names.push_back(absl::StrCat(c.Name(), "/", tag));
    }
  }
  const auto& [skipped, unseen] = KnownExceptions();
  for (const auto* list : {&skipped, &unseen}) {
    for (const Exception& exception : *list) {
      if (exception.pattern.rfind(TestDeviceKind(), 0) != 0) continue;
      if (NeedsMissingLibrary(exception)) continue;
      const bool fits = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return Fits(exception.pattern, name);
      });
      EXPECT_TRUE(fits) << exception.pattern << " fits no test: take it out";
    }
  }
}

}  // namespace
}  // namespace gridclock
