#include "client/cpp/npz.h"

#include <cstdio>
#include <cstring>
#include <string>

#include <unistd.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

class NpzTest : public testing::Test {
 protected:
  ~NpzTest() override { unlink(path_.c_str()); }
  const std::string path_ = testing::TempDir() + "npz_test_" + std::to_string(getpid()) + ".npz";
};

TEST_F(NpzTest, WhatIsWrittenIsReadInOrder) {
  const std::string text(100'000, 'x');
  const auto bytes = std::as_bytes(std::span<const char>(text));
  const TensorSpec big{.dtype = DType::kF16, .shape = {500, 100}};
  ASSERT_THAT(WriteNpz(path_, {{"z", big, bytes},
                               {"a", {.dtype = DType::kU8, .shape = {0}}, {}},
                               {"m", {.dtype = DType::kF64, .shape = {}}, bytes.first(8)}}),
              IsOk());
  ASSERT_OK_AND_ASSIGN(const auto tensors, LoadNpz(path_));
  ASSERT_EQ(tensors.size(), 3U);
  EXPECT_EQ(tensors[0].name, "z");
  EXPECT_EQ(tensors[0].tensor.spec, big);
  EXPECT_EQ(std::memcmp(tensors[0].tensor.bytes.data(), text.data(), text.size()), 0);
  EXPECT_EQ(tensors[1].name, "a");
  EXPECT_EQ(tensors[2].tensor.spec.shape, Shape{});
}

TEST_F(NpzTest, OneArrayIsReadWithoutTheOthers) {
  const std::string text(16, 'x');
  const auto bytes = std::as_bytes(std::span<const char>(text));
  // Raw items that nobody says the type of: the whole archive cannot be read.
  ASSERT_THAT(WriteNpz(path_, {{"raw", {.dtype = DType::kBF16, .shape = {8}}, bytes},
                               {"a", {.dtype = DType::kF64, .shape = {2}}, bytes}}),
              IsOk());
  EXPECT_FALSE(LoadNpz(path_).ok());
  ASSERT_OK_AND_ASSIGN(const LoadedTensor a, LoadNpzMember(path_, "a"));
  EXPECT_EQ(ToText(a.spec), "f64[2]");
  EXPECT_EQ(std::memcmp(a.bytes.data(), text.data(), text.size()), 0);
  ASSERT_OK_AND_ASSIGN(const LoadedTensor raw, LoadNpzMember(path_, "raw", DType::kBF16));
  EXPECT_EQ(ToText(raw.spec), "bf16[8]");
  EXPECT_THAT(LoadNpzMember(path_, "b"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no array 'b'; it has raw, a")));
}

TEST_F(NpzTest, WhatIsNoArchiveIsRefused) {
  EXPECT_FALSE(LoadNpz("/nowhere/a.npz").ok());
  std::FILE* file = std::fopen(path_.c_str(), "wb");
  std::fputs("this is no zip file at all", file);
  std::fclose(file);
  EXPECT_THAT(LoadNpz(path_), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path_)));
}

TEST_F(NpzTest, AnOldFileIsReplacedWhole) {
  const auto write = [&](const char* name) {
    return WriteNpz(path_, {{name, {.dtype = DType::kU8, .shape = {0}}, {}}});
  };
  ASSERT_THAT(write("old"), IsOk());
  ASSERT_THAT(write("new"), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto tensors, LoadNpz(path_));
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_EQ(tensors[0].name, "new");
}

}  // namespace
}  // namespace gridclock
