// Cubins of the compiler are read in children_test; here is what no compiler makes.
#include "kernels/compiler/cubin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

TEST(Cubin, WhatIsNoneIsTold) {
  EXPECT_THAT(ReadCubin(""), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no cubin")));
  EXPECT_THAT(ReadCubin(std::string(64, 'x')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("does not begin")));
  std::string elf(64, '\0');
  elf.replace(0, 7, "\177ELF\2\1\1");
  elf[18] = 62;
  EXPECT_THAT(ReadCubin(elf),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("machine is 62")));
  elf[18] = static_cast<char>(190);
  elf[58] = 64;
  elf[60] = 3;
  EXPECT_THAT(ReadCubin(elf), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("sections")));
}

TEST(Cubin, NamesAreShownAsPeopleWriteThem) {
  EXPECT_EQ(DisplayName("plain"), "plain");
  EXPECT_EQ(DisplayName("_Z6squarePKfPfi"), "square");
  EXPECT_EQ(DisplayName("_Z5scaleIfLi256EEvPKT_PS0_fi"), "scale<float, 256>");
  EXPECT_EQ(DisplayName("_ZN2my4addsEPf"), "my::adds");
  EXPECT_EQ(DisplayName("_Z"), "_Z");
}

TEST(Cubin, MangledNamesTellTheTypesOfParameters) {
  using Types = std::vector<std::string>;
  EXPECT_EQ(ParameterTypes("plain"), Types{});
  EXPECT_EQ(ParameterTypes("_Z4nonev"), Types{});
  EXPECT_EQ(ParameterTypes("_Z6squarePKfPfi"), (Types{"float const*", "float*", "int"}));
  EXPECT_EQ(ParameterTypes("_Z5scaleIfLi256EEvPKT_PS0_f"),
            (Types{"float const*", "float*", "float"}));
  EXPECT_EQ(ParameterTypes("_Z4bothPK6__half4PairIiPFvifEE"),
            (Types{"__half const*", "Pair<int, void (*)(int, float)>"}));
}

}  // namespace
}  // namespace gridclock
