#include "client/cli/source_words.h"

#include <gmock/gmock.h>

#include "proto/types/kernel_spec.h"
#include "tests/support/status_matchers.h"

namespace gridclock::cli {
namespace {

using ::testing::HasSubstr;

constexpr char kSource[] =
    "#include <stdio.h>\n"
    "// About it. gridclock: is no word here.\n"
    "// gridclock: ns::Softmax<float, 256> x: f32[M, N] -> y: f32[M, N]\n"
    "// gridclock:   grid(M) block(256)\n"
    "// gridclock:   params x, y\n"
    "\n"
    "/* gridclock: two_steps x: f32[N] -> total: f32[] scratch s: f32[4]\n"
    " * gridclock: launch zero grid(1) block(1) params total\n"
    " * gridclock: launch cooperative sum<4> grid(4) block(32)\n"
    " * gridclock:   params x, s, total\n"
    " * gridclock: global factor = x */\n"
    "// gridclock:\n"
    "// gridclock: cooperative own inout x: f32[*]\n";

TEST(SourceWords, BlocksOfLinesAreKernels) {
  ASSERT_OK_AND_ASSIGN(const auto all, ReadSourceWords(kSource));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].line, 3);
  EXPECT_EQ(all[0].entry, "ns::Softmax<float, 256>");
  EXPECT_EQ(all[0].words, "softmax x: f32[M, N] -> y: f32[M, N] grid(M) block(256) params x, y");
  EXPECT_THAT(ParseKernelSpec(all[0].words), IsOk());
  ASSERT_EQ(all[0].launches.size(), 1u);
  EXPECT_EQ(all[0].launches[0].entry, "ns::Softmax<float, 256>");
  EXPECT_EQ(all[0].launches[0].clauses, "");
}

TEST(SourceWords, SeveralLaunchesAreOneKernel) {
  ASSERT_OK_AND_ASSIGN(const auto all, ReadSourceWords(kSource));
  ASSERT_EQ(all.size(), 3u);
  const SourceWords& two = all[1];
  EXPECT_EQ(two.words, "two_steps x: f32[N] -> total: f32[] scratch s: f32[4]");
  ASSERT_GE(two.launches.size(), 2u);
  EXPECT_EQ(two.launches[0].entry, "zero");
  EXPECT_EQ(two.launches[0].clauses, "grid(1) block(1) params total");
  EXPECT_EQ(two.launches[1].entry, "sum<4>");
  EXPECT_EQ(two.launches[1].clauses, "grid(4) block(32) params x, s, total");
  EXPECT_TRUE(two.launches[1].cooperative);
  EXPECT_FALSE(two.launches[0].cooperative);
  ASSERT_EQ(two.globals.size(), 1u);
  EXPECT_EQ(two.globals[0].name, "factor");
  EXPECT_EQ(two.globals[0].from, "x");
  EXPECT_EQ(all[2].entry, "own");
  EXPECT_TRUE(all[2].launches[0].cooperative);
}

TEST(SourceWords, AnEntryIsCutFromItsWords) {
  EXPECT_EQ(CutEntry("square x: f32[*]").entry, "square");
  EXPECT_EQ(CutEntry("x: f32[*]").entry, "x");
  EXPECT_EQ(CutEntry("x: f32[*]").clauses, ": f32[*]");
  EXPECT_EQ(CutEntry("a::b<c<1>, 2> x: f32[*]").entry, "a::b<c<1>, 2>");
  EXPECT_EQ(CutEntry("cooperative f<(1>").entry, "f<(1>");
  EXPECT_TRUE(CutEntry("cooperative f").cooperative);
  EXPECT_EQ(CutEntry("-> y: f32[1]").entry, "");
}

TEST(SourceWords, AnEntryIsFoundByItsNameIfOnlyOneIsCalledSo) {
  ASSERT_OK_AND_ASSIGN(const auto all, ReadSourceWords("// gridclock: f<float> x: f32[*]\n\n"
                                                       "// gridclock: f<double> x: f64[*]\n\n"
                                                       "// gridclock: g<int, 2> x: i32[*]\n"));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(FindSourceWords(all, "f<double>"), &all[1]);
  EXPECT_EQ(FindSourceWords(all, "g<int,2>"), &all[2]);
  EXPECT_EQ(FindSourceWords(all, "g"), &all[2]);
  EXPECT_EQ(FindSourceWords(all, "f"), nullptr);
  EXPECT_EQ(FindSourceWords(all, ""), nullptr);
}

TEST(SourceWords, WhatIsIncompleteNamesItsLine) {
  EXPECT_THAT(ReadSourceWords("\n// gridclock: -> y\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 2: want the name")));
  EXPECT_THAT(ReadSourceWords("// gridclock: f x: f32[*]\n// gridclock: global a\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 2: want 'global")));
  EXPECT_THAT(ReadSourceWords("// gridclock: f\n// gridclock: launch <\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 2: want the name")));
}

}  // namespace
}  // namespace gridclock::cli
