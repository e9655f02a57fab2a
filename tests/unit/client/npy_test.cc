#include "client/cpp/npy.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NpyTest : public testing::Test {
 protected:
  ~NpyTest() override { unlink(path_.c_str()); }

  void Write(const std::string& text) {
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    ASSERT_EQ(std::fwrite(text.data(), 1, text.size(), file), text.size());
    std::fclose(file);
  }
  template <typename T>
  static std::vector<T> As(const LoadedTensor& tensor) {
    std::vector<T> out(tensor.bytes.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
    return out;
  }

  const std::string path_ = testing::TempDir() + "npy_test_" + std::to_string(getpid()) + ".npy";
};

std::string Header(const char* dict) {
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(std::strlen(dict));
  out += '\0';
  return out + dict;
}

TEST_F(NpyTest, WhatIsWrittenIsRead) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const TensorSpec spec{.dtype = DType::kF32, .shape = {2, 3}};
  ASSERT_THAT(WriteNpy(path_, spec, std::as_bytes(std::span(values))), IsOk());
  ASSERT_OK_AND_ASSIGN(const LoadedTensor tensor, LoadNpy(path_));
  EXPECT_EQ(tensor.spec, spec);
  EXPECT_EQ(As<float>(tensor), values);
}

TEST_F(NpyTest, AFileThatIsReplacedKeepsItsMode) {
  for (const mode_t mode : {0600U, 0664U}) {
    Write("old");
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    ASSERT_THAT(WriteNpy(path_, {.dtype = DType::kU8, .shape = {0}}, {}), IsOk());
    struct stat info {};
    ASSERT_EQ(stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, mode);
    EXPECT_GT(info.st_size, 3);
  }
}

TEST_F(NpyTest, BigEndianIsConverted) {
  Write(Header("{'descr':'>i2','fortran_order':False,'shape':(2,)}") +
        std::string("\x01\x02\xff\xfe"));
  ASSERT_OK_AND_ASSIGN(const LoadedTensor tensor, LoadNpy(path_));
  EXPECT_THAT(As<std::int16_t>(tensor), ElementsAre(0x0102, -2));
}

TEST_F(NpyTest, FortranOrderIsConverted) {
  // [[1, 2, 3], [4, 5, 6]] by columns.
  Write(Header("{'descr':'|u1','fortran_order':True,'shape':(2,3)}") + "\x01\x04\x02\x05\x03\x06");
  ASSERT_OK_AND_ASSIGN(const LoadedTensor tensor, LoadNpy(path_));
  EXPECT_THAT(As<std::uint8_t>(tensor), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(NpyTest, EmptyTensorsAndScalars) {
  Write(Header("{'descr':'<f8','fortran_order':True,'shape':(3,0)}"));
  EXPECT_EQ(LoadNpy(path_)->bytes.size(), 0U);
  Write(Header("{'descr':'|u1','fortran_order':False,'shape':()}") + "\x07");
  EXPECT_THAT(As<std::uint8_t>(*LoadNpy(path_)), ElementsAre(7));
}

TEST_F(NpyTest, TheSizeOfTheFileIsCheckedFirst) {
  Write(Header("{'descr':'<f8','fortran_order':True,'shape':(1000000,100000)}") + "1234");
  EXPECT_THAT(LoadNpy(path_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the file has 4")));
  Write(Header("{'descr':'<f4','fortran_order':False,'shape':(1,)}") + "12345");
  EXPECT_THAT(LoadNpy(path_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the file has 5")));
}

TEST_F(NpyTest, ErrorsNameTheFile) {
  EXPECT_THAT(LoadNpy("/nowhere/a.npy"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/a.npy")));
  EXPECT_THAT(LoadNpy("/dev/zero"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no regular file")));
  Write("");
  EXPECT_FALSE(LoadNpy(path_).ok());
}

TEST_F(NpyTest, AFailedWriteLeavesNothing) {
  const std::string path = "/nowhere/a.npy";
  EXPECT_FALSE(WriteNpy(path, {.dtype = DType::kU8, .shape = {0}}, {}).ok());
}

}  // namespace
}  // namespace gridclock
