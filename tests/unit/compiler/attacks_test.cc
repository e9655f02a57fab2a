// Source that shall read, write, or take the machine's memory and time: each in a child that can do
// none of it. Ids are those of the table of faults.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/compiler/compiles.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using worker::v1::CompilerAnswer;

// The limit of orders is 5 s; what a busy machine adds is no attack.
constexpr absl::Duration kAnswered = absl::Seconds(25);
constexpr char kCanary[] = "canary-7f3a9c";

// A file that anybody may read, with a secret.
std::string SecretFile() {
  const std::string path = absl::StrCat(::testing::TempDir(), "/gridclock_secret_", getpid());
  std::ofstream(path) << kCanary << "\n";
  return path;
}

using Attacks = WithNvrtc;

TEST_F(Attacks, F2_NoFileOfTheHostIsRead) {
  setenv("GC_CANARY", kCanary, 1);
  const std::string secret = SecretFile();
  for (const std::string& path :
       {secret, std::string("/etc/passwd"), std::string("/proc/self/environ"),
        std::string("/proc/self/maps"), std::string("/proc/self/fd/3"), std::string("/etc/shadow"),
        absl::StrCat("../../../../..", secret), std::string("/dev/stdin"), std::string("/")}) {
    const Compiled got =
        CompileText(absl::StrCat("#include \"", path, "\"\n__global__ void f() {}\n"));
    EXPECT_TRUE(got.result.failed()) << path;
    EXPECT_THAT(got.log(), HasSubstr("cannot open source file")) << path;
    EXPECT_THAT(got.answer.result(), Not(HasSubstr(kCanary))) << path;
    EXPECT_THAT(got.answer.result(), Not(HasSubstr("root:"))) << path;
  }
  std::filesystem::remove(secret);
}

TEST_F(Attacks, F3_NobodyLearnsWhetherAFileIsThere) {
  const std::string secret = SecretFile();
  const Compiled has = CompileText(absl::StrCat("#if __has_include(\"", secret,
                                                "\")\n#error there\n#endif\n"
                                                "__global__ void f() {}\n"));
  EXPECT_FALSE(has.result.failed()) << has.log();
  const auto log_of = [](const std::string& path) {
    return CompileText(absl::StrCat("#include \"", path, "\"\n")).log();
  };
  std::string there = log_of(secret);
  std::filesystem::remove(secret);
  EXPECT_EQ(there, log_of(secret));
  EXPECT_THAT(log_of("/etc/passwd/x"), Not(HasSubstr("directory")));  // ENOTDIR.
  EXPECT_THAT(log_of("/etc/" + std::string(300, 'x')), Not(HasSubstr("too long")));
  EXPECT_THAT(log_of("/etc/passwd/x"), HasSubstr("cannot open source file \"/etc/passwd/x\"\n"));
}

TEST_F(Attacks, F4_F5_OptionsAreNoStrings) {
  for (const char* value :
       {"a\n#include \"/etc/passwd\"", "1 --pre-include=/etc/passwd", "\"/etc/passwd\"", "x -I/"}) {
    worker::v1::CompilerOrder order = SourceOrder("__global__ void f() {}\n");
    (*order.mutable_compile()->mutable_options()->mutable_defines())["X"] = value;
    const Compiled got = Finish(order);
    // A macro with such a value is refused, or is a macro and nothing else.
    EXPECT_THAT(got.answer.result(), Not(HasSubstr("root:"))) << value;
  }
  worker::v1::CompilerOrder order = SourceOrder("__global__ void f() {}\n");
  order.mutable_compile()->mutable_options()->set_arch("sm_90 --create-pch=/tmp/x");
  EXPECT_EQ(Finish(order).answer.end(), CompilerAnswer::INTERNAL);
  order = SourceOrder("__global__ void f() {}\n");
  order.mutable_compile()->mutable_source()->set_name("../../tmp/x.cu");
  EXPECT_EQ(Finish(order).answer.end(), CompilerAnswer::INTERNAL);
}

// At the limits of orders.
Compiled AttackBy(const std::string& source) {
  return Finish(SourceOrder(source), TheTools(), Children::Limits());
}

// Either the compiler gives up by itself, or it is ended: at its limit of time, memory or output.
void ExpectEnded(const char* name, const std::string& source) {
  const Compiled got = AttackBy(source);
  EXPECT_LT(got.took, kAnswered) << name;
  const bool refused =
      got.answer.end() != CompilerAnswer::DONE || got.result.failed() || got.result.out_of_memory();
  EXPECT_TRUE(refused) << name << ": " << got.answer.ShortDebugString().substr(0, 200);
}

TEST_F(Attacks, F6_ExponentialTemplatesEnd) {
  ExpectEnded("two instances each",
              "template <int N, int M> struct A {\n"
              "  static const int v = A<N - 1, M * 2>::v + A<N - 1, M * 2 + 1>::v;\n};\n"
              "template <int M> struct A<0, M> { static const int v = 1; };\n"
              "__device__ int x = A<26, 0>::v;\n");
}

TEST_F(Attacks, F7_MacroBombsEnd) {
  std::string source = "#define A0 +1\n";
  for (int i = 1; i <= 9; ++i) {
    absl::StrAppend(&source, "#define A", i);
    for (int j = 0; j < 10; ++j) absl::StrAppend(&source, " A", i - 1);
    absl::StrAppend(&source, "\n");
  }
  ExpectEnded("10^9 terms", source + "__global__ void f(int* x) { *x = 0 A9; }\n");
}

TEST_F(Attacks, F8_AGiantArrayEnds) {
  ExpectEnded("4 GiB with a value", "__device__ int a[1u << 30] = {1};\n");
}

TEST_F(Attacks, F9_AGiantArrayWithoutValuesIsTold) {
  const Compiled got = CompileText(
      "__device__ char a[1ull << 40];\n__global__ void f(int* x) { x[0] = a[x[1]]; }\n");
  ASSERT_FALSE(got.result.failed()) << got.log();
  EXPECT_EQ(got.result.module().global_bytes(), std::uint64_t{1} << 40);
}

TEST_F(Attacks, F10_F11_CodeThatTakesLongEnds) {
  std::string branches = "__global__ void f(int* x) {\n  if (x[0] == 0) x[1] = 0;\n";
  for (int i = 1; i < 6000; ++i) {
    absl::StrAppend(&branches, "else if(x[", i, "]==x[", i * 7, "])x[x[", i, "]]=x[x[x[", i,
                    "]]];\n");
  }
  const Compiled got = AttackBy(branches + "}\n");
  EXPECT_LT(got.took, kAnswered);
  std::string loops = "template <int N> __device__ float g(float v) {\n";
  for (int i = 0; i < 12; ++i) absl::StrAppend(&loops, "  v = v * g<N - 1>(v + ", i, ".f);\n");
  ExpectEnded("12^8 inlined calls",
              loops +
                  "  return v;\n}\ntemplate <> __device__ float g<0>(float v) { return v * v; }\n"
                  "__global__ void f(float* x) { *x = g<8>(*x); }\n");
}

TEST_F(Attacks, F12_NestingEnds) {
  const std::string open(120'000, '('), close(120'000, ')');
  const Compiled got =
      AttackBy(absl::StrCat("__global__ void f(int* x) { *x = ", open, "1", close, "; }\n"));
  EXPECT_LT(got.took, kAnswered);
}

TEST_F(Attacks, F13_F14_LongLogsAreCut) {
  const Compiled deep = CompileText(
      "template <int N> struct R { static const int v = R<N + 1>::v; };\n"
      "__device__ int x = R<0>::v;\n");
  EXPECT_TRUE(deep.result.failed());
  EXPECT_LE(deep.log().size(), 16u * 1024);
  std::string many = "__global__ void f() {\n";
  for (int i = 0; i < 2000; ++i) absl::StrAppend(&many, "undefined_", i, "();\n");
  const Compiled got = CompileText(many + "}\n");
  EXPECT_LE(got.log().size(), 16u * 1024);
}

TEST_F(Attacks, F17_NothingReachesATerminal) {
  const Compiled got = CompileText(
      "#pragma message(\"\x1b[31mred\")\n#warning \xe2\x80\xae"
      "backwards\n"
      "#line 1 \"/etc/passwd\"\n__global__ void f() { wrong; }\n");
  EXPECT_TRUE(got.result.failed());
  EXPECT_THAT(got.log(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(got.log(), Not(HasSubstr("\xe2\x80\xae")));
}

TEST_F(Attacks, F19_PtxIncludesNothing) {
  if (TheTools().toolkit.ptxas.empty() || TheTools().landlock == 0) {
    GTEST_SKIP() << "no ptxas, or no Landlock to run it in";
  }
  const std::string secret = SecretFile();
  worker::v1::CompilerOrder order;
  order.set_id(2);
  order.mutable_load()->set_arch("sm_90a");
  order.mutable_load()->set_ptx(
      absl::StrCat(".version 8.0\n.target sm_90\n.include \"", secret, "\"\n"));
  const Compiled got = Finish(order);
  EXPECT_TRUE(got.result.failed());
  EXPECT_THAT(got.log(), Not(HasSubstr(kCanary)));
  std::filesystem::remove(secret);
}

TEST_F(Attacks, F21_MutatedSourceAndPtxEndNobody) {
  const std::string source =
      "template <int N> __global__ void f(float* x) { x[threadIdx.x % N] *= 2.5f; }\n"
      "template __global__ void f<3>(float*);\n";
  const std::string ptx = CompileText(source).result.ptx();
  std::minstd_rand random(7);
  const auto mutate = [&](std::string text) {
    for (int i = 0; i < 3; ++i)
      text[random() % text.size()] = static_cast<char>(33 + random() % 94);
    return text;
  };
  for (int i = 0; i < 40; ++i) {
    const std::string text = mutate(source);
    EXPECT_EQ(CompileText(text).answer.end(), CompilerAnswer::DONE) << text;
    worker::v1::CompilerOrder order;
    order.set_id(2);
    order.mutable_load()->set_arch("sm_90a");
    order.mutable_load()->set_ptx(mutate(ptx));
    const auto end = Finish(order).answer.end();
    EXPECT_TRUE(end == CompilerAnswer::DONE || end == CompilerAnswer::NO_TOOL)
        << order.load().ptx();
  }
}

TEST_F(Attacks, F22_BrokenCubinsEndNobody) {
  const Compiled source = CompileText("__global__ void f(float* x) { *x = 2; }\n");
  worker::v1::CompilerOrder order;
  order.set_id(2);
  for (std::size_t at = 0; at < source.result.cubin().size(); at += 97) {
    std::string broken = source.result.cubin();
    broken[at] = static_cast<char>(~broken[at]);
    order.mutable_load()->set_cubin(broken);
    EXPECT_EQ(Finish(order).answer.end(), CompilerAnswer::DONE) << "byte " << at;
  }
}

}  // namespace
}  // namespace gridclock
