// Every kernel, variant and dtype of the catalogue linked here, on the CPU device, with calls made
// from the kernel's words. GRIDCLOCK_TEST_SEED repeats a run.
#include <cstdio>
#include <memory>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "kernels/catalog/catalog.h"
#include "kernels/device/cpu/cpu_device.h"
#include "kernels/worker/cpu_level.h"
#include "tests/conformance/harness.h"
#include "tests/conformance/skips.h"

namespace gridclock {
namespace {

// More threads than this machine may have, so that work is cut into parts everywhere.
constexpr int kThreads = 4;

// Whether this machine has the instructions that the catalogue linked here was built for.
bool LevelIsHere() {
  const absl::string_view level = BuiltInLevel();
  return ChooseLevel(FeaturesHere(), std::string(level.substr(level.rfind('-') + 1))) != nullptr;
}

// Of large calls this much is compared with the reference, chosen anew by each seed: seconds.
constexpr std::int64_t kMostTerms = std::int64_t{1} << 22;

// One of each for the whole program; gtest wants its parameters before main begins.
struct World {
  std::unique_ptr<CpuDevice> device;
  std::unique_ptr<Registry> registry;
  std::uint64_t seed = TestSeed();
  std::string error;
};

World MakeWorld() {
  World world;
  if (!LevelIsHere()) return world;
  auto device =
      CpuDevice::Create({.threads = kThreads, .level = BuiltInLevel(), .calibrate = false});
  auto registry = Registry::Create(BuiltInKernels());
  world.error = absl::StrCat(device.status().message(), registry.status().message());
  if (!world.error.empty()) return world;
  world.device = *std::move(device);
  world.registry = std::make_unique<Registry>(*std::move(registry));
  std::printf("GRIDCLOCK_TEST_SEED=%llu\n", static_cast<unsigned long long>(world.seed));
  return world;
}

World& TheWorld() {
  static World world = MakeWorld();
  return world;
}

struct Case {
  const RegisteredKernel* kernel = nullptr;
  const Variant* variant = nullptr;
  DType dtype = DType::kF32;
  std::string Name() const {
    return absl::StrCat("cpu/", kernel->spec.name, "/", variant->name, "/", gridclock::Name(dtype));
  }
};

void PrintTo(const Case& c, std::ostream* os) {
  *os << c.Name();
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  if (TheWorld().registry == nullptr) return cases;
  for (const auto& [name, kernel] : TheWorld().registry->kernels()) {
    for (const Variant& variant : kernel.def.cpu) {
      for (const DType dtype : DTypesOf(kernel.spec)) cases.push_back({&kernel, &variant, dtype});
    }
  }
  return cases;
}

std::string TestName(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.Name().substr(std::string("cpu/").size());
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

class Conformance : public testing::TestWithParam<Case> {
 protected:
  // Plain loops are spared what takes them seconds: they have no other way for it.
  static bool IsFor(const Case& c, const Instance& instance) {
    return c.variant == &c.kernel->def.cpu.back() || IsQuick(c.kernel->spec, instance);
  }

  void CheckAll(const char* tag, const CheckOptions& options, Size size = Size::kSmall) {
    const Case& c = GetParam();
    const std::string name = absl::StrCat(c.Name(), "/", tag);
    if (const auto reason = ReasonFor(KnownExceptions().skipped, name)) GTEST_SKIP() << *reason;
    std::vector<std::string> problems;
    const auto instances = InstancesOf(c.kernel->spec, c.dtype, size);
    EXPECT_FALSE(instances.empty()) << "no call of " << c.Name() << " can be made from its words";
    for (std::size_t i = 0; i < instances.size(); ++i) {
      if (size != Size::kSmall && !IsFor(c, instances[i])) continue;
      CheckOptions own = options;
      // Large calls are too dear to run aligned and misaligned: they take turns.
      if (size == Size::kLarge) own.misaligned = (i + static_cast<std::size_t>(c.dtype)) % 2 == 1;
      for (const auto& problem :
           CheckCall(*TheWorld().device, *c.kernel, *c.variant, instances[i], own)) {
        problems.push_back(absl::StrCat(ToText(instances[i]), ": ", problem));
      }
    }
    const auto verdict = Judge(KnownExceptions(), name, problems);
    EXPECT_FALSE(verdict) << *verdict << "\nGRIDCLOCK_TEST_SEED=" << options.seed;
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

TEST_P(Conformance, LargeTensors) {
  CheckAll("large", {.seed = TheWorld().seed + 5, .most_terms = kMostTerms}, Size::kLarge);
}

TEST_P(Conformance, MoreThanTwoToThe31Elements) {
  CheckAll("huge", {.seed = TheWorld().seed + 7, .most_terms = kMostTerms}, Size::kHuge);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Conformance);
INSTANTIATE_TEST_SUITE_P(Cpu, Conformance, testing::ValuesIn(AllCases()), TestName);

TEST(Catalogue, CanBeTestedHere) {
  if (!LevelIsHere()) GTEST_SKIP() << "this machine has no " << BuiltInLevel();
  ASSERT_EQ(TheWorld().error, "");
  EXPECT_FALSE(AllCases().empty());
}

TEST(Catalogue, EveryListedExceptionFitsATest) {
  if (!LevelIsHere()) GTEST_SKIP() << "this machine has no " << BuiltInLevel();
  std::vector<std::string> names;
  for (const Case& c : AllCases()) {
    for (const char* tag : {"plain", "misaligned", "wide", "special", "extreme", "large", "huge"}) {
      names.push_back(absl::StrCat(c.Name(), "/", tag));
    }
  }
  for (const auto* list : {&KnownExceptions().skipped, &KnownExceptions().expected}) {
    for (const Exception& exception : *list) {
      const bool fits = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return Fits(exception.pattern, name);
      });
      EXPECT_TRUE(fits) << exception.pattern << " fits no test: take it out";
    }
  }
}

}  // namespace
}  // namespace gridclock
