#include <string>

#include "client/cpp/npy.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

// A version-1 file of this dict, as numpy pads it or not.
std::string File(const std::string& dict, char version = 1) {
  std::string out = "\x93NUMPY";
  out += version;
  out += '\0';
  out += static_cast<char>(dict.size() & 0xFF);
  out += static_cast<char>(dict.size() >> 8);
  if (version > 1) out += std::string(2, '\0');
  return out + dict;
}

TEST(NpyHeaderTest, ReadsWhatNumpyWrites) {
  ASSERT_OK_AND_ASSIGN(
      const NpyHeader header,
      ParseNpyHeader(File("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }      \n")));
  EXPECT_EQ(header.item.kind, 'f');
  EXPECT_EQ(header.item.bytes, 4);
  EXPECT_FALSE(header.item.big_endian);
  EXPECT_FALSE(header.fortran_order);
  EXPECT_EQ(header.shape, (Shape{3, 4}));
}

TEST(NpyHeaderTest, OrderOfKeysQuotesAndBlanksAreFree) {
  ASSERT_OK_AND_ASSIGN(
      const NpyHeader header,
      ParseNpyHeader(File("{\"shape\":(7L,),\"descr\":\">i8\",\"fortran_order\":True}", 3)));
  EXPECT_EQ(header.shape, (Shape{7}));
  EXPECT_TRUE(header.item.big_endian);
  EXPECT_TRUE(header.fortran_order);
}

TEST(NpyHeaderTest, ScalarsAndEmptyTensors) {
  EXPECT_EQ(ParseNpyHeader(File("{'descr':'|b1','fortran_order':False,'shape':()}"))->shape,
            Shape{});
  EXPECT_EQ(ParseNpyHeader(File("{'descr':'|b1','fortran_order':False,'shape':(0,5)}"))->shape,
            (Shape{0, 5}));
}

struct BadCase {
  const char* dict;
  const char* message;
};
class BadNpyHeaderTest : public testing::TestWithParam<BadCase> {};

TEST_P(BadNpyHeaderTest, IsRefusedWithTheReason) {
  EXPECT_THAT(ParseNpyHeader(File(GetParam().dict)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadNpyHeaderTest,
    testing::Values(
        BadCase{"{'descr':'|O','fortran_order':False,'shape':(1,)}", "object array"},
        BadCase{"{'descr':'|O8','fortran_order':False,'shape':(1,)}", "object array"},
        BadCase{"{'descr':[('a','<f4')],'fortran_order':False,'shape':(1,)}", "structured"},
        BadCase{"{'descr':'<c8','fortran_order':False,'shape':(1,)}", "'<c8'"},
        BadCase{"{'descr':'<M8[D]','fortran_order':False,'shape':(1,)}", "by .astype('i8')"},
        BadCase{"{'descr':'<fx','fortran_order':False,'shape':(1,)}", "want one like '<f4'"},
        BadCase{"{'descr':'<U9','fortran_order':False,'shape':(1,)}", "'<U9'"},
        BadCase{"{'descr':'<f16','fortran_order':False,'shape':(1,)}", "'<f16'"},
        BadCase{"{'descr':'<f4','fortran_order':False}", "want the keys"},
        BadCase{"{'descr':'<f4','descr':'<f4','fortran_order':False,'shape':()}", "twice"},
        BadCase{"{'descr':'<f4','fortran_order':False,'shape':(),'more':'x'}", "unknown"},
        BadCase{"{'descr':'<f4','fortran_order':0,'shape':()}", "True or False"},
        BadCase{"{'descr':'<f4','fortran_order':False,'shape':(-1,)}", "whole numbers"},
        BadCase{"{'descr':'<f4','fortran_order':False,'shape':(9999999999999999999,)}", "63 bits"},
        BadCase{"{'descr':'<f8','fortran_order':False,'shape':(4611686018427387904,)}",
                "too large"},
        BadCase{"{'descr':'<f4','fortran_order':False,'shape':(4294967296,4294967296)}",
                "overflow"},
        BadCase{"{'descr':'<f4','fortran_order':False,'shape':(1,1,1,1,1,1,1,1,1)}", "rank"},
        BadCase{"{'descr':'<f4','fortran_order':False,'shape':()} + exit()", "after the dict"},
        BadCase{"{'descr':'<f4", "quote"}, BadCase{"", "want '{'"}));

TEST(NpyHeaderTest, WhatIsNoNpyFile) {
  EXPECT_THAT(ParseNpyHeader("PK\x03\x04"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no .npy file")));
  EXPECT_THAT(ParseNpyHeader(File("{}", 9)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("version 9")));
}

TEST(NpyHeaderTest, AHugeHeaderIsRefusedUnread) {
  std::string file = File("", 2);
  file[11] = '\x7f';
  EXPECT_THAT(ParseNpyHeader(file),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 MiB")));
}

TEST(NpyHeaderTest, EveryCutIsNoticed) {
  const std::string file = File("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n");
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_EQ(ParseNpyHeader(file.substr(0, size)).status().code(), absl::StatusCode::kOutOfRange)
        << size;
  }
}

TEST(NpyHeaderTest, OursIsReadBackAndAligned) {
  for (const DType dtype : AllDTypes()) {
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{0, 3}, Shape{1, 2, 3, 4, 5, 6, 7, 8}}) {
      const std::string text = MakeNpyHeader({.dtype = dtype, .shape = shape});
      EXPECT_EQ(text.size() % 64, 0U);
      ASSERT_OK_AND_ASSIGN(const NpyHeader header, ParseNpyHeader(text));
      EXPECT_EQ(header.shape, shape);
      EXPECT_EQ(header.data_offset, text.size());
      EXPECT_EQ(*NpyDType(header.item, dtype), dtype);
    }
  }
}

TEST(NpyDTypeTest, RawItemsNeedAName) {
  const NpyItem raw{.kind = 'V', .bytes = 2};
  EXPECT_THAT(NpyDType(raw, {}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(":bf16")));
  EXPECT_EQ(*NpyDType(raw, DType::kBF16), DType::kBF16);
  EXPECT_FALSE(NpyDType(raw, DType::kF32).ok());
}

TEST(NpyDTypeTest, UnsignedIntegersMayStandForWhatNumpyLacks) {
  EXPECT_EQ(*NpyDType({.kind = 'u', .bytes = 2}, DType::kBF16), DType::kBF16);
  EXPECT_EQ(*NpyDType({.kind = 'u', .bytes = 1}, DType::kF8E5M2), DType::kF8E5M2);
  EXPECT_THAT(NpyDType({.kind = 'u', .bytes = 2}, DType::kF16),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("u2")));
  EXPECT_FALSE(NpyDType({.kind = 'f', .bytes = 4}, DType::kI32).ok());
}

}  // namespace
}  // namespace gridclock
