#include "kernels/worker/cpu_level.h"

#include <gtest/gtest.h>

namespace gridclock {
namespace {

constexpr unsigned kOfV2[] = {kSse42, kPopcnt};
constexpr unsigned kOfV3[] = {kAvx2, kFma, kBmi, kBmi2, kLzcnt, kMovbe, kF16c};
constexpr unsigned kOfV4[] = {kAvx512F, kAvx512Bw, kAvx512Cd, kAvx512Dq, kAvx512Vl};

template <std::size_t kCount>
unsigned Together(const unsigned (&features)[kCount]) {
  unsigned all = 0;
  for (const unsigned feature : features) all |= feature;
  return all;
}
const unsigned kV2Cpu = Together(kOfV2);
const unsigned kV3Cpu = kV2Cpu | Together(kOfV3);
const unsigned kV4Cpu = kV3Cpu | Together(kOfV4);

TEST(CpuLevel, IsTheBestThatTheCpuHas) {
  EXPECT_STREQ(ChooseLevel(kV4Cpu, ""), "v4");
  EXPECT_STREQ(ChooseLevel(kV3Cpu, ""), "v3");
  EXPECT_STREQ(ChooseLevel(kV2Cpu, ""), "v2");
  EXPECT_EQ(ChooseLevel(0, ""), nullptr);
}

TEST(CpuLevel, WantsEveryFeatureOfIt) {
  for (const unsigned hidden : kOfV4) EXPECT_STREQ(ChooseLevel(kV4Cpu & ~hidden, ""), "v3");
  for (const unsigned hidden : kOfV3) EXPECT_STREQ(ChooseLevel(kV4Cpu & ~hidden, ""), "v2");
  for (const unsigned hidden : kOfV2) EXPECT_EQ(ChooseLevel(kV4Cpu & ~hidden, ""), nullptr);
}

TEST(CpuLevel, CanBeForcedDownButNotUp) {
  EXPECT_STREQ(ChooseLevel(kV4Cpu, "v2"), "v2");
  EXPECT_STREQ(ChooseLevel(kV4Cpu, "v3"), "v3");
  EXPECT_EQ(ChooseLevel(kV3Cpu, "v4"), nullptr);
  EXPECT_EQ(ChooseLevel(kV4Cpu & ~unsigned{kLzcnt}, "v3"), nullptr);
}

TEST(CpuLevel, MustBeCalledByItsName) {
  for (const char* name : {"v1", "v5", "V2", "x86-64-v2", " v2", "../v2"}) {
    EXPECT_EQ(ChooseLevel(kV4Cpu, name), nullptr) << name;
  }
}

TEST(CpuLevel, HasTheOthersBelowIt) {
  EXPECT_STREQ(LevelBelow("v4"), "v3");
  EXPECT_STREQ(LevelBelow("v3"), "v2");
  EXPECT_EQ(LevelBelow("v2"), nullptr);
}

TEST(CpuLevel, ThisMachineHasOne) {
  EXPECT_NE(ChooseLevel(FeaturesHere(), ""), nullptr);
}

}  // namespace
}  // namespace gridclock
