#include "kernels/compiler/ptxas_log.h"

#include <gtest/gtest.h>

namespace gridclock {
namespace {

TEST(PtxasLog, FactsAreTakenAndTheRestIsLeft) {
  const PtxasLog log = ReadPtxasLog(
      "kernel.cu(3): warning #177-D: variable \"q\" was declared but never referenced\n"
      "    int q;\n"
      "        ^\n"
      "ptxas info    : 4 bytes gmem\n"
      "ptxas info    : Compiling entry function '_Z1fPf' for 'sm_90a'\n"
      "ptxas info    : Function properties for _Z1fPf\n"
      "ptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 10 registers, used 1 barriers\n"
      "ptxas info    : Compile time = 12.5 ms\n"
      "ptxas info    : Function properties for g\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Compile time = 0.25 ms\n");
  EXPECT_EQ(log.rest,
            "kernel.cu(3): warning #177-D: variable \"q\" was declared but never referenced\n"
            "    int q;\n"
            "        ^\n");
  ASSERT_EQ(log.spills.size(), 2u);
  EXPECT_EQ(log.spills.at("_Z1fPf").stores, 8u);
  EXPECT_EQ(log.spills.at("_Z1fPf").loads, 12u);
  EXPECT_EQ(log.spills.at("g").loads, 0u);
  EXPECT_DOUBLE_EQ(log.milliseconds, 12.75);
}

TEST(PtxasLog, NothingSaidIsNothingLeft) {
  EXPECT_EQ(ReadPtxasLog("").rest, "");
  EXPECT_EQ(ReadPtxasLog("ptxas info    : 0 bytes gmem\n\n").rest, "");
}

}  // namespace
}  // namespace gridclock
