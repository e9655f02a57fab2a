#include "kernels/compiler/host_code.h"

#include <algorithm>
#include <ctime>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The words that are left, and the notes as "first-last text".
std::string Left(const std::string& source) {
  const DeviceSource got = SetHostCodeAside(source, {});
  EXPECT_EQ(got.text.size(), source.size());
  std::vector<std::string> words =
      absl::StrSplit(got.text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  return absl::StrCat("", words.empty() ? "" : words[0]) + [&] {
    std::string rest;
    for (std::size_t i = 1; i < words.size(); ++i) absl::StrAppend(&rest, " ", words[i]);
    return rest;
  }();
}
std::vector<std::string> Notes(const std::string& source) {
  std::vector<std::string> out;
  for (const SourceNote& note : SetHostCodeAside(source, {}).notes) {
    out.push_back(absl::StrCat(note.first_line, "-", note.last_line, " ", note.text));
  }
  return out;
}

TEST(HostCode, AFirstCourseFileKeepsItsKernel) {
  const std::string source =
      "#include <torch/extension.h>\n"
      "#include <stdio.h>\n"
      "#include <iostream>\n"
      "\n"
      "__global__ void square(const float* in, float* out, int n) {\n"
      "  int i = threadIdx.x;\n"
      "  if (i < n) { out[i] = in[i] * in[i]; }\n"
      "}\n"
      "\n"
      "torch::Tensor run(torch::Tensor x) {\n"
      "  auto y = torch::empty_like(x);\n"
      "  square<<<1, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());\n"
      "  return y;\n"
      "}\n"
      "int main() { std::cout << \"}\"; return 0; }\n"
      "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"run\", &run); }\n";
  EXPECT_THAT(Notes(source),
              ElementsAre("1-1 header torch/extension.h, which only hosts have",
                          "3-3 header iostream, which only hosts have", "10-14 host function run",
                          "15-15 host function main", "16-16 host function PYBIND11_MODULE"));
  const DeviceSource got = SetHostCodeAside(source, {});
  const std::vector<std::string> lines = absl::StrSplit(got.text, '\n');
  EXPECT_EQ(lines[1], "#include <stdio.h>");
  EXPECT_EQ(lines[4], "__global__ void square(const float* in, float* out, int n) {");
  EXPECT_EQ(lines[9], std::string(36, ' '));
}

TEST(HostCode, WhatDevicesUseStays) {
  for (const char* source : {
           "__device__ float f(float x) { return x; }",
           "__host__ __device__ float f(float x) { return x; }",
           "template <typename T> __device__ T f(T x) { return x; }",
           "template <typename T, typename = decltype(f<T>(0))> __global__ void k(T* x) { }",
           "constexpr int f(int x) { return x + 1; }",
           "struct Pair { float a, b; Pair(float x) : a{x}, b{x} {} };",
           "struct __align__(8) Pair { float a, b; };",
           "enum class Mode { kA, kB };",
           "using T = float;",
           "typedef float (*Op)(float);",
           "static const int kBlock = 256;",
           "const float kTable[] = {1, 2, 3};",
           "__constant__ float table[64];",
           "extern __shared__ float s[];",
           "template <int N> struct A { static const int v = N; };",
           "template __global__ void k<float>(float*);",
           "static_assert(sizeof(int) == 4, \"want {\");",
           "extern \"C\" __global__ void k(float* x) { *x = 1; }",
           "__device__ float4 operator+(float4 a, float4 b) { return a; }",
           "DEFINE_KERNEL(float)",
           "DEFINE_KERNEL(float);",
           "auto f = [] __device__ (float x) { return x; };",
           "union Bits { float f; int i; } ;",
       }) {
    EXPECT_THAT(Notes(source), IsEmpty()) << source;
    EXPECT_EQ(SetHostCodeAside(source, {}).text, source);
  }
}

TEST(HostCode, WhatOnlyHostsUseGoes) {
  for (const char* source : {
           "void launch(float* x) { k<<<1, 2>>>(x); }",
           "void launch(float* x);",
           "template <typename T> void launch(T* x) { k<<<1, 2>>>(x); }",
           "extern \"C\" void launch(float* x, int n) { }",
           "static inline float f(float x) { return x; }",
           "__host__ void f() { }",
           "std::vector<float> f(int n) { return std::vector<float>(n); }",
           "std::vector<float> table;",
           "static std::mutex lock;",
           "struct Timer { cudaEvent_t start; };",
           "using torch::Tensor;",
           "using namespace torch::indexing;",
           "Timer::Timer() : a{1}, b(2) { start(); }",
           "int Timer::ms() const { return 1; }",
           "auto f() -> int { return 1; }",
           "TORCH_LIBRARY(name, m) { m.def(\"f\"); }",
           "const auto kNames = std::map<int, std::string>{{1, \"a\"}};",
       }) {
    EXPECT_EQ(Left(source), "") << source;
    EXPECT_EQ(Notes(source).size(), 1u) << source;
  }
}

TEST(HostCode, NamespacesAreLookedInto) {
  EXPECT_EQ(Left("namespace a { namespace b { void f() {} __device__ int g; } }\n"
                 "namespace { int h() { return 1; } }\nextern \"C\" { void i(); }\n"
                 "inline namespace v1 { __global__ void k() {} }"),
            "namespace a { namespace b { __device__ int g; } } namespace { } extern \"C\" { } "
            "inline namespace v1 { __global__ void k() {} }");
}

TEST(HostCode, AMacroThatSaysDeviceCounts) {
  EXPECT_EQ(Left("#define DEVICE __device__ __forceinline__\nDEVICE int f() { return 1; }\n"
                 "int g() { return 1; }"),
            "#define DEVICE __device__ __forceinline__ DEVICE int f() { return 1; }");
}

TEST(HostCode, DirectivesWithinStay) {
  EXPECT_EQ(Left("int main() {\n#ifdef DEBUG\n  f();\n#else\n  g();\n#endif\n}\n"),
            "#ifdef DEBUG #else #endif");
}

TEST(HostCode, TextThatLooksLikeCodeIsNone) {
  EXPECT_THAT(Notes("// int main() {\n/* void f() { */\n"
                    "__device__ const char* s = \"int main() { \\\" {\";\n"
                    "__device__ const char c = '{';\n"
                    "__device__ const char* r = R\"x(} \" int main() {)x\";\n"
                    "__device__ int n = 1'000'000;\n"),
              IsEmpty());
}

TEST(HostCode, HeadersThatTheClientSendsStay) {
  EXPECT_THAT(SetHostCodeAside("#include \"helper_cuda.h\"\n", {.known = {"helper_cuda.h"}}).notes,
              IsEmpty());
  EXPECT_THAT(Notes("#include \"helper_cuda.h\"\n# include <vector>\n"),
              ElementsAre("1-1 header helper_cuda.h, which only hosts have",
                          "2-2 header vector, which only hosts have"));
}

TEST(HostCode, UnbalancedCodeIsLeftToTheCompiler) {
  const std::string source = "#include <vector>\nint main() {\n__global__ void k() {}\n";
  EXPECT_THAT(Notes(source),
              ElementsAre("1-1 header vector, which only hosts have",
                          "1-4 braces do not balance here: host code, if any, is left in place"));
  EXPECT_EQ(Left(source), "int main() { __global__ void k() {}");
  EXPECT_EQ(Notes("} int main() {}").size(), 1u);
}

TEST(HostCode, LinesStayWhereTheyAreWithWindowsEndings) {
  const DeviceSource got = SetHostCodeAside("int f()\r\n{\r\n}\r\n__global__ void k() {}\r\n", {});
  EXPECT_EQ(got.text, "       \r\n \r\n \r\n__global__ void k() {}\r\n");
}

TEST(HostCode, MacrosOfMacrosAndThoseElsewhereSayWhatTheyMean) {
  const std::string source =
      "#define DEV_INLINE DEV inline\n"
      "HD float f(float x) { return 3 * x; }\n"
      "DEV_INLINE float g(float x) { return x; }\n"
      "OPTION float h(float x) { return x; }\n";
  const std::vector<std::string> elsewhere = {
      "#define OPTION __device__\n", "#define HD __host__ __device__\n#define DEV __device__\n"};
  EXPECT_EQ(SetHostCodeAside(source, {.device_macros = DeviceMacrosIn(elsewhere)}).text, source);
  EXPECT_NE(SetHostCodeAside(source, {}).text, source);
}

TEST(HostCode, SaysSoMuchAndNoMore) {
  std::string source;
  for (int i = 0; i < 300; ++i) source += "void f();\n";
  const DeviceSource got = SetHostCodeAside(source, {});
  ASSERT_EQ(got.notes.size(), 257U);
  EXPECT_EQ(got.notes.back().text, "and 44 more");
}

absl::Duration ProcessorTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

// The least of some tries.
absl::Duration TimeFor(const std::function<void()>& work) {
  absl::Duration least = absl::InfiniteDuration();
  for (int i = 0; i < 5; ++i) {
    const absl::Duration start = ProcessorTime();
    work();
    least = std::min(least, ProcessorTime() - start);
  }
  return least;
}

absl::Duration TimeForTemplates(int count) {
  std::string source;
  for (int i = 0; i < count; ++i) source += "template<";
  return TimeFor([&] { SetHostCodeAside(source, {}); });
}

// Each was looked through to its end: eight times as many took 64 times as long.
TEST(HostCode, TemplatesThatNeverCloseTakeTimeAsTheirNumber) {
  EXPECT_LT(TimeForTemplates(32000), 24 * TimeForTemplates(4000));
}

TEST(HostCode, CutsNoCharacterInTwo) {
  const std::string source = "void " + std::string(79, 'a') + "\xC3\xA9() {}\n";
  const DeviceSource got = SetHostCodeAside(source, {});
  ASSERT_EQ(got.notes.size(), 1U);
  EXPECT_EQ(got.notes[0].text.find('\xC3'), std::string::npos) << got.notes[0].text;
}

TEST(HostCode, TypesMadeOfTypesThatAreSetAsideGoToo) {
  const std::string header =
      "template <typename T> class Blob { std::vector<T> values; };\nstruct Plain { float x; };\n"
      "#ifdef HOST\nstruct Other { std::string name; };\n#else\nstruct Other { int name; "
      "};\n#endif\n";
  const std::string source =
      "class Layer : public Base { Blob<float>* in; Plain p; };\n"
      "typedef struct { Layer* all; } Network;\n"
      "Network net;\n"
      "struct Kept { Plain p; Other o; };\n"
      "__global__ void k(Kept kept) {}\n";
  const std::vector<absl::string_view> texts = {source, header};
  const SourceContext context{.host_types = HostTypesIn(texts, {})};
  EXPECT_THAT(context.host_types, ElementsAre("Blob", "Layer", "Network"));
  const DeviceSource got = SetHostCodeAside(source, context);
  EXPECT_EQ(std::string(absl::StripLeadingAsciiWhitespace(got.text)),
            "struct Kept { Plain p; Other o; };\n__global__ void k(Kept kept) {}\n");
  ASSERT_EQ(got.notes.size(), 3U);
  EXPECT_EQ(got.notes[0].text, "type that uses Blob");
}

TEST(HostCode, WhatIsOfCudasLibrariesForHostsGoes) {
  EXPECT_EQ(Left("cublasLtHandle_t handle;\nstatic cublasComputeType_t type;\nncclComm_t all;\n"
                 "#include <thrust/extrema.h>\n#include <thrust/tuple.h>\n"
                 "#include <thrust/iterator/zip_iterator.h>\n"
                 "__constant__ int cublas_is_no_type, nccl_t;\n"),
            "#include <thrust/tuple.h> #include <thrust/iterator/zip_iterator.h> __constant__ int "
            "cublas_is_no_type, nccl_t;");
}

TEST(HostCode, ASpecialisationDefinesNoTypeOfItsName) {
  const std::string source =
      "#include <string>\nstruct Config { std::string name; };\n"
      "namespace std { template <> struct hash<Config> { size_t operator()(const Config&); }; }\n"
      "struct Entry { unsigned hash; int value; };\n"
      "__global__ void f(Entry* e) { e->value = 1; }\n";
  const absl::string_view texts[] = {source};
  EXPECT_THAT(HostTypesIn(texts, {}), ElementsAre("Config"));
}

// Statements of a kernel look like declarations of functions.
TEST(HostCode, WhatIsIncludedWithinBracesIsKnownByItsName) {
  const std::vector<SourceText> files = {
      {.name = "main.cu",
       .text = "#include \"top.h\"\nnamespace a {\nextern \"C\" {\n#include \"deep.h\"\n}\n}\n"
               "__global__ void f(float* x) {\n#include \"parts/body.inc\"\n}\n"
               "__constant__ float t[] = {\n#include \"table.inc\"\n};\n"
               "struct S {\n#include \"members.inc\"\n};\n#include \"last.h\"\n"},
      {.name = "inner.inc", .text = "#include \"innermost.inc\"\n"},
      {.name = "parts/body.inc", .text = "#include \"inner.inc\"\n__syncthreads();\n"},
      {.name = "top.h", .text = "#include \"other.h\"\n"}};
  EXPECT_THAT(IncludedInBodies(files),
              ElementsAre("body.inc", "inner.inc", "innermost.inc", "members.inc", "table.inc"));
}

TEST(HostCode, FilesThatIncludeEachOtherInBodiesAreFoundOnce) {
  const std::vector<SourceText> files = {
      {.name = "main.cu", .text = "int t[] = {\n#include \"a.inc\"\n};\n"},
      {.name = "a.inc", .text = "#include \"b.inc\"\n"},
      {.name = "b.inc", .text = "#include \"a.inc\"\n"}};
  EXPECT_THAT(IncludedInBodies(files), ElementsAre("a.inc", "b.inc"));
}

absl::Duration TimeForNamespaces(int count) {
  std::string source;
  for (int i = 0; i < count; ++i) source += "namespace ";
  std::vector<SourceText> files = {{.name = "main.cu", .text = source}};
  for (int i = 0; i < 100; ++i) {
    files.push_back({.name = absl::StrCat(i, ".h"),
                     .text = absl::StrCat("{\n#include \"", i + 1, ".h\"\n", "}\n")});
  }
  return TimeFor([&] { EXPECT_EQ(IncludedInBodies(files).size(), 100U); });
}

// Each was looked through to the end, for each file anew: 26,000 took seconds.
TEST(HostCode, NamespacesThatNeverOpenTakeTimeAsTheirNumber) {
  EXPECT_LT(TimeForNamespaces(26'000), 24 * TimeForNamespaces(3250));
}

TEST(HostCode, WhatASetAsideBodyIncludesGoesWithIt) {
  EXPECT_EQ(Left("void host() {\n#include \"steps.inc\"\n#define N 4\n}\n"
                 "SOME_MACRO\n#include \"kernels.cuh\"\nint main() { return 0; }\n"
                 "__global__ void k() {\n#include \"body.inc\"\n}\n"),
            "#define N 4 #include \"kernels.cuh\" __global__ void k() { #include \"body.inc\" }");
}

TEST(HostCode, ATypeUlongOfTheSourceIsKnown) {
  EXPECT_TRUE(NamesUlong("typedef uint64_t ulong;\n"));
  EXPECT_TRUE(NamesUlong("using ulong = uint64_t;\n"));
  EXPECT_FALSE(
      NamesUlong("// typedef uint64_t ulong;\n__global__ void k(ulong n) { f((ulong)n); }\n"));
}

TEST(HostCode, ACallWithoutATypeIsAMacros) {
  for (const char* source : {"X(add) X(mul)", "X(add)\nX(mul)\n", "op(add);"}) {
    EXPECT_THAT(Notes(source), IsEmpty()) << source;
    EXPECT_EQ(SetHostCodeAside(source, {}).text, source);
  }
}

TEST(HostCode, AMacroSaysDeviceWhereverItIsDefined) {
  const std::vector<std::string> texts = {"#define INLINE DEV inline\n",
                                          "#define DEV __device__ __forceinline__\n"};
  EXPECT_THAT(DeviceMacrosIn(texts), ElementsAre("DEV", "INLINE"));
}

}  // namespace
}  // namespace gridclock
