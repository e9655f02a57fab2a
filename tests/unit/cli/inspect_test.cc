#include "client/cli/inspect.h"

#include <gmock/gmock.h>

namespace gridclock::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

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

constexpr char kSource[] = "// k\nauto v = x[i];\ns[i] = v;\n";

TEST(Inspect, PtxAloneTellsMemoryToo) {
  const CodeOfLines lines = InspectLines(kPtx, "", "k.cu");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines.at(2).ptx, SizeIs(2));
  EXPECT_TRUE(lines.at(2).memory.empty());
  EXPECT_THAT(lines.at(3).ptx, SizeIs(3));
  EXPECT_THAT(lines.at(3).memory,
              ElementsAre(Pair("atomic global 4 B", 1), Pair("load global 16 B", 1),
                          Pair("store shared 8 B", 1)));
  EXPECT_THAT(lines.at(0).ptx, SizeIs(1)) << "another file's line 3 is none of ours";
  EXPECT_THAT(InspectText(lines, "\nauto v = x[i];\n", {}, {}), ContainsRegex("2 +2 +- +auto v"));
  EXPECT_TRUE(ToJson(lines, {})[1]["sass"].is_null()) << "nobody counted";
}

TEST(Inspect, TheMachinesInstructionsAreThoseThatMoveBytes) {
  const CodeOfLines lines = InspectLines(kPtx, kSass, "k.cu");
  EXPECT_THAT(lines.at(2).sass, SizeIs(2));
  EXPECT_THAT(lines.at(2).memory, ElementsAre(Pair("load global 16 B", 1)));
  EXPECT_THAT(lines.at(3).memory, ElementsAre(Pair("store shared 1 B", 2)));
  EXPECT_THAT(lines.at(0).sass, SizeIs(1));
  const std::string text = InspectText(lines, kSource, {}, {});
  EXPECT_THAT(text, HasSubstr("load global 16 B      auto v = x[i];"));
  EXPECT_THAT(text, HasSubstr("2 x store shared 1 B  s[i] = v;"));
  EXPECT_EQ(ToJson(lines, {})[1]["line"], 2);
  EXPECT_EQ(ToJson(lines, {})[1]["sass"], 2);
}

TEST(Inspect, TheCodeOfALineStandsUnderIt) {
  const CodeOfLines lines = InspectLines(kPtx, kSass, "k.cu");
  EXPECT_EQ(InspectText(lines, kSource, {.ptx = true, .sass = true}, {}),
            "line  PTX  SASS  memory                source\n"
            "   0    1     1                        (elsewhere: headers, the compiler's own)\n"
            "      PTX   ret;\n"
            "      SASS  0040 EXIT ;\n"
            "   2    2     2  load global 16 B      auto v = x[i];\n"
            "      PTX   ld.param.u64 %rd1, [f_param_0];\n"
            "      PTX   @%p3 bra $L__BB0_2;\n"
            "      SASS  0000 LDC R1, c[0x0][0x28] ;\n"
            "      SASS  0010 @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;\n"
            "   3    3     2  2 x store shared 1 B  s[i] = v;\n"
            "      PTX   ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd5];\n"
            "      PTX   st.shared.f64 [%r1], %f2;\n"
            "      PTX   atom.global.add.f32 %f2, [%rd1], %f1;\n"
            "      SASS  0020 STS.U8 [R4], R7 ;\n"
            "      SASS  0030 STS.U8 [R5], R7 ;\n");
  const std::string ptx = InspectText(lines, kSource, {.ptx = true, .sass = false}, {});
  EXPECT_THAT(ptx, HasSubstr("      PTX   ret;\n   2    2"));
  EXPECT_THAT(ptx, Not(HasSubstr("EXIT")));
  EXPECT_THAT(InspectText(lines, kSource, {}, {}), Not(HasSubstr("ret;")));
}

TEST(Inspect, ATerminalIsGivenColoursAndNothingElseThatSteersIt) {
  const CodeOfLines lines =
      InspectLines(".loc 1 1 1\nmov \x1b[2J\xc2\x9b;\n.file 1 \"k.cu\"\n", "", "k.cu");
  const Terminal terminal{.colour = true};
  const std::string text =
      InspectText(lines, "\x1b]0;title\a\n", {.ptx = true, .sass = false}, terminal);
  EXPECT_THAT(text, HasSubstr("\x1b[36mPTX \x1b[0m  mov \\x1b[2J\\xc2\\x9b;\n"));
  EXPECT_THAT(text, HasSubstr("\\x1b]0;title\\x07\x1b[0m\n"));
  EXPECT_THAT(InspectText(lines, "", {.ptx = true, .sass = false}, {}), Not(HasSubstr("\x1b")));
}

TEST(Inspect, JsonHasTheInstructionsThatWereAskedFor) {
  const CodeOfLines lines = InspectLines(kPtx, kSass, "k.cu");
  const Json both = ToJson(lines, {.ptx = true, .sass = true})[0];
  EXPECT_EQ(both["ptx_code"], Json::array({"ret;"}));
  EXPECT_EQ(both["sass_code"], Json::array({"0040 EXIT ;"}));
  EXPECT_EQ(both["ptx"], 1);
  EXPECT_FALSE(ToJson(lines, {.ptx = false, .sass = true})[0].contains("ptx_code"));
  EXPECT_FALSE(ToJson(lines, {})[0].contains("sass_code"));
}

TEST(Inspect, AnyTextIsTaken) {
  EXPECT_TRUE(InspectLines("", "", "").empty());
  InspectLines(".file 1 \"\n.loc x y\n@;\n.loc 1\n", "//## File \"\n/*\n/**/\n@\n", "k.cu");
  InspectLines("cp;\ncp.async.shared.global;\nldmatrix.x;\n.;\nld.v;\n",
               "/**/UBLKCP\n/**/LDSM.\n/**/LDC\n/**/.\n", "k.cu");
}

}  // namespace
}  // namespace gridclock::cli
