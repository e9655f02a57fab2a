// Cubins of the compiler are read in children_test; here is what no compiler makes.
#include "kernels/compiler/cubin.h"

#include <cstring>
#include <string>

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

template <typename T>
void Put(T value, std::size_t at, std::string* out) {
  std::memcpy(out->data() + at, &value, sizeof(value));
}

// The symbols may say less than what the loader takes.
TEST(Cubin, VariablesAreAsLargeAsTheirSection) {
  const std::string zero(1, '\0'), names = zero + ".nv.global" + zero;
  constexpr std::size_t kHeader = 64, kRow = 64;
  std::string elf(kHeader, '\0');
  elf.replace(0, 7, "\177ELF\2\1\1");
  Put<std::uint16_t>(190, 18, &elf);
  Put<std::uint64_t>(kHeader, 40, &elf);
  Put<std::uint16_t>(kRow, 58, &elf);
  Put<std::uint16_t>(3, 60, &elf);
  elf.resize(kHeader + 3 * kRow);
  const auto section = [&](std::size_t row, std::uint32_t name, std::uint32_t type,
                           std::uint64_t size) {
    const std::size_t at = kHeader + row * kRow;
    Put(name, at, &elf);
    Put(type, at + 4, &elf);
    Put<std::uint64_t>(elf.size(), at + 24, &elf);
    Put(size, at + 32, &elf);
  };
  section(0, 0, 3, names.size());
  section(1, 0, 2, 0);
  section(2, 1, 8, std::uint64_t{7} << 30);
  ASSERT_OK_AND_ASSIGN(const CubinFacts facts, ReadCubin(elf + names));
  EXPECT_EQ(facts.global_bytes, std::uint64_t{7} << 30);
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
