#include "server/core/kernel_table.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

DeviceInfo Device(const std::string& name) {
  DeviceInfo info;
  info.name = name;
  info.traits.kind = name.substr(0, name.find(':'));
  return info;
}

KernelSpec Spec(const std::string& words, const std::string& kind,
                const std::vector<std::string>& variants) {
  KernelSpec spec = *ParseKernelSpec(words);
  for (const std::string& name : variants) {
    VariantSpec variant;
    variant.name = name;
    variant.device_kind = kind;
    spec.variants.push_back(variant);
  }
  return spec;
}

TEST(KernelTable, ADeviceThatIsQuarantinedIsNotSaidToStart) {
  KernelTable table({"cpu", "cuda:0"});
  const absl::Status down = WithReason(absl::UnavailableError("quarantined"), "WORKER_CRASHED");
  table.SetState("cuda:0", WorkerState::kQuarantined, down);
  EXPECT_THAT(table.Find("square"), ReasonIs("WORKER_STARTING"));
  table.SetState("cpu", WorkerState::kQuarantined, down);
  EXPECT_THAT(table.Find("square"), ReasonIs("WORKER_CRASHED"));
  EXPECT_EQ(table.CheckLearned(), down);
  table.SetState("cpu", WorkerState::kStarting);
  EXPECT_THAT(table.Find("square"), ReasonIs("WORKER_STARTING"));
}

TEST(KernelTable, KnowsNothingBeforeTheFirstHello) {
  const KernelTable table({"cpu"});
  EXPECT_THAT(table.CheckLearned(), ReasonIs("WORKER_STARTING"));
  EXPECT_THAT(table.Find("square"), StatusIs(Code::kUnavailable, HasSubstr("starting")));
  EXPECT_THAT(table.Find("square"), ReasonIs("WORKER_STARTING"));
  ASSERT_EQ(table.Devices().size(), 1u);
  EXPECT_EQ(table.Devices()[0].info.traits.kind, "cpu");
  EXPECT_EQ(table.Devices()[0].state, WorkerState::kStarting);
}

TEST(KernelTable, C1_NamesTheThreeNearest) {
  KernelTable table({"cpu"});
  std::vector<KernelSpec> specs;
  for (const char* name : {"sup", "sun", "sum", "sub", "product"}) {
    specs.push_back(Spec(absl::StrCat(name, " x: f32[*] -> y: f32[*]"), "cpu", {}));
  }
  ASSERT_THAT(table.Learn(Device("cpu"), specs), IsOk());
  EXPECT_THAT(table.Find("suk"),
              StatusIs(Code::kNotFound, "no kernel 'suk'; the nearest are 'sub', 'sum', 'sun'"));
}

TEST(KernelTable, NamesNearKernelsButNoDiagnosticOnes) {
  KernelTable table({"cpu"});
  KernelSpec spin = Spec("spine", "cpu", {});
  spin.diagnostic = true;
  ASSERT_THAT(table.Learn(Device("cpu"), {Spec("gelu x: f32[*] -> y: f32[*]", "cpu", {}),
                                          Spec("sum x: f32[*] -> y: f32[*]", "cpu", {}),
                                          Spec("square x: f32[*] -> y: f32[*]", "cpu", {}),
                                          Spec("softmax x: f32[*] -> y: f32[*]", "cpu", {}), spin}),
              IsOk());
  EXPECT_THAT(table.Find("sqare"),
              StatusIs(Code::kNotFound, "no kernel 'sqare'; the nearest are 'square'"));
  EXPECT_THAT(table.Find("convolution"),
              StatusIs(Code::kNotFound,
                       "no kernel 'convolution'; none of the 4 that there are is "
                       "near: ListKernels names them"));
  EXPECT_THAT(table.Find("spin"), StatusIs(Code::kNotFound, testing::Not(HasSubstr("spine"))));
  EXPECT_THAT(table.Find("gelu"), IsOk());
}

TEST(KernelTable, JoinsTheVariantsOfSeveralDevicesAndReplacesThoseOfARestart) {
  KernelTable table({"cpu", "cuda:0"});
  const std::string words = "square x: f32[*] -> y: f32[*]";
  ASSERT_THAT(table.Learn(Device("cpu"), {Spec(words, "cpu", {"plain", "simd"})}), IsOk());
  ASSERT_THAT(table.Learn(Device("cuda:0"), {Spec(words, "cuda", {"naive"})}), IsOk());
  ASSERT_THAT(table.Learn(Device("cpu"), {Spec(words, "cpu", {"simd"})}), IsOk());
  std::vector<std::string> names;
  for (const VariantSpec& variant : (*table.Find("square"))->variants) {
    names.push_back(variant.device_kind + "." + variant.name);
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("cuda.naive", "cpu.simd"));
}

TEST(KernelTable, ARestartLeavesTheOrderOfTheVariants) {
  KernelTable table({"cpu"});
  KernelSpec spec = Spec("square x: f32[*] -> y: f32[*]", "cpu", {"naive", "simd"});
  spec.variants.push_back({.name = "vec4", .device_kind = "cuda", .summary = "", .clauses = {}});
  ASSERT_THAT(table.Learn(Device("cpu"), {spec}), IsOk());
  const std::shared_ptr<const KernelSpec> before = *table.Find("square");
  ASSERT_THAT(table.Learn(Device("cpu"), {spec}), IsOk());
  EXPECT_EQ(*table.Find("square"), before);
  EXPECT_EQ((*table.Find("square"))->variants, spec.variants);
}

TEST(KernelTable, WordsThatDisagreeAreNotTaken) {
  KernelTable table({"cpu"});
  ASSERT_THAT(table.Learn(Device("cpu"), {Spec("f x: f32[*] -> y: f32[*]", "cpu", {})}), IsOk());
  EXPECT_THAT(table.Learn(Device("cpu"), {Spec("g x: f32[*] -> y: f32[*]", "cpu", {}),
                                          Spec("f x: f64[*] -> y: f64[*]", "cpu", {})}),
              StatusIs(Code::kInternal, HasSubstr("f64")));
  EXPECT_THAT(table.Find("g"), testing::Not(IsOk()));
}

TEST(KernelTable, AHelloOfAStrangeDeviceIsNotTaken) {
  KernelTable table({"cpu"});
  EXPECT_THAT(table.Learn(Device("cuda:0"), {}), StatusIs(Code::kInternal, HasSubstr("cuda:0")));
}

TEST(KernelTable, ChoicesAreByNameByKindOrAll) {
  const KernelTable table({"cpu", "cuda:0", "cuda:1"});
  EXPECT_EQ(table.Choices("")->size(), 3u);
  EXPECT_EQ(table.Choices("cuda")->size(), 2u);
  EXPECT_EQ(table.Choices("cuda:1")->at(0).name, "cuda:1");
  EXPECT_THAT(table.Choices("cuda:2"), StatusIs(Code::kNotFound, HasSubstr("'cuda:1'")));
  EXPECT_THAT(KernelTable({"cpu"}).Choices("cuda"), ReasonIs("NO_DEVICE"));
}

TEST(KernelTable, CountsRestartsAndKeepsStates) {
  KernelTable table({"cpu"});
  table.SetState("cpu", WorkerState::kReady);
  table.CountRestart("cpu");
  EXPECT_EQ(table.Devices()[0].state, WorkerState::kReady);
  EXPECT_EQ(table.Devices()[0].restarts, 1u);
}

}  // namespace
}  // namespace gridclock
