#include "server/rpc/operand_cursor.h"

#include <gtest/gtest.h>

namespace gridclock {
namespace {

TEST(OperandCursor, OneTensorIsOnePiece) {
  const OperandValue value{.is_list = false, .tensors = {{DType::kF32, {3}}}};
  OperandCursor cursor(value, {.offset = 640, .size = 64});
  EXPECT_EQ(cursor.left(), 12u);
  EXPECT_EQ(cursor.Next(100), (MemoryRange{640, 12}));
  EXPECT_EQ(cursor.left(), 0u);
}

TEST(OperandCursor, TensorsOfAListLieAtTheirBoundaries) {
  const OperandValue value{
      .is_list = true,
      .tensors = {{DType::kU8, {0}}, {DType::kU8, {70}}, {DType::kU8, {0}}, {DType::kU8, {5}}}};
  OperandCursor cursor(value, {.offset = 64, .size = 192});
  EXPECT_EQ(cursor.left(), 75u);
  EXPECT_EQ(cursor.Next(50), (MemoryRange{64, 50}));
  EXPECT_EQ(cursor.Next(50), (MemoryRange{114, 20}));
  EXPECT_EQ(cursor.position(), 70u);
  EXPECT_EQ(cursor.Next(50), (MemoryRange{192, 5}));
  EXPECT_EQ(cursor.left(), 0u);
}

TEST(OperandCursor, NothingIsLeftOfNothing) {
  const OperandValue value{.is_list = true, .tensors = {{DType::kF64, {0, 4}}}};
  EXPECT_EQ(OperandCursor(value, {.offset = 0, .size = 0}).left(), 0u);
}

}  // namespace
}  // namespace gridclock
