#include "client/cli/inspect.h"

#include <gmock/gmock.h>

namespace gridclock::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kPtx[] =
    "\t.loc\t1 2 3\n"
    "\tld.param.u64 \t%rd1, [f_param_0];\n"
    "\t.reg .b32 %r<3>;\n"
    "\t@%p3 bra \t$L__BB0_2;\n"
    "\t.loc\t1 3 5, function_name $L__info, inlined_at 1 9 2\n"
    "\tld.global.nc.v4.f32 \t{%f1, %f2, %f3, %f4}, [%rd5];\n"
    "\tst.shared.f64 \t[%r1], %f2;\n"
    "\tatom.global.add.f32 \t%f2, [%rd1], %f1;\n"
    "$L__BB0_2:\n"
    "\t.loc\t2 3 5\n"
    "\tret;\n"
    "\t.file\t1 \"/k.cu\"\n"
    "\t.file\t2 \"/other/ok.cu\"\n";

constexpr char kSass[] =
    "\t.section\t.text.f\n"
    "\t//## File \"/k.cu\", line 2\n"
    "        /*0000*/                   LDC R1, c[0x0][0x28] ;\n"
    "        /*0010*/               @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;\n"
    "\t//## File \"/k.cu\", line 3 inlined at \"/k.cu\", line 9\n"
    "        /*0020*/                   STS.U8 [R4], R7 ;\n"
    "        /*0030*/                   STS.U8 [R5], R7 ;\n"
    "\t//## File \"/ok.cu\", line 3\n"
    "        /*0040*/                   EXIT ;\n"
    "        /*0050*/                   NOP;\n";

TEST(Inspect, PtxAloneTellsMemoryToo) {
  const CodeOfLines lines = InspectLines(kPtx, "", "k.cu");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines.at(2).ptx, 2);
  EXPECT_TRUE(lines.at(2).memory.empty());
  EXPECT_EQ(lines.at(3).ptx, 3);
  EXPECT_THAT(lines.at(3).memory,
              ElementsAre(Pair("atomic global 4 B", 1), Pair("load global 16 B", 1),
                          Pair("store shared 8 B", 1)));
  EXPECT_EQ(lines.at(0).ptx, 1) << "another file's line 3 is none of ours";
  EXPECT_THAT(InspectText(lines, "\nauto v = x[i];\n"), ContainsRegex("2 +2 +- +auto v"));
  EXPECT_TRUE(ToJson(lines)[1]["sass"].is_null()) << "nobody counted";
}

TEST(Inspect, TheMachinesInstructionsAreThoseThatMoveBytes) {
  const CodeOfLines lines = InspectLines(kPtx, kSass, "k.cu");
  EXPECT_EQ(lines.at(2).sass, 2);
  EXPECT_THAT(lines.at(2).memory, ElementsAre(Pair("load global 16 B", 1)));
  EXPECT_THAT(lines.at(3).memory, ElementsAre(Pair("store shared 1 B", 2)));
  EXPECT_EQ(lines.at(0).sass, 1);
  const std::string text = InspectText(lines, "// k\nauto v = x[i];\ns[i] = v;\n");
  EXPECT_THAT(text, HasSubstr("load global 16 B      auto v = x[i];"));
  EXPECT_THAT(text, HasSubstr("2 x store shared 1 B  s[i] = v;"));
  EXPECT_EQ(ToJson(lines)[1]["line"], 2);
  EXPECT_EQ(ToJson(lines)[1]["sass"], 2);
}

TEST(Inspect, AnyTextIsTaken) {
  EXPECT_TRUE(InspectLines("", "", "").empty());
  InspectLines(".file 1 \"\n.loc x y\n@;\n.loc 1\n", "//## File \"\n/*\n/**/\n@\n", "k.cu");
}

}  // namespace
}  // namespace gridclock::cli
