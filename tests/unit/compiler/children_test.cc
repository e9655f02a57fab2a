// What a compile gives: facts, logs with the client's lines, PTX that can be loaded again.
#include <map>

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "kernels/compiler/cubin.h"
#include "tests/unit/compiler/compiles.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using worker::v1::CompilerAnswer;

using Compiles = WithNvrtc;

TEST_F(Compiles, AKernelHasFactsPtxAndACubin) {
  const Compiled got = CompileText(
      "__constant__ float table[64];\n"
      "__device__ int counter;\n"
      "__global__ void scale(const float* x, float* y, int n) {\n"
      "  __shared__ float s[256];\n"
      "  s[threadIdx.x] = x[threadIdx.x];\n"
      "  __syncthreads();\n"
      "  y[threadIdx.x] = s[n] * table[n] + counter;\n"
      "}\n");
  ASSERT_EQ(got.answer.end(), CompilerAnswer::DONE);
  ASSERT_FALSE(got.result.failed()) << got.log();
  const v1::Module& module = got.result.module();
  EXPECT_EQ(module.log(), "");
  EXPECT_EQ(module.constant_bytes(), 256u);
  EXPECT_EQ(module.global_bytes(), 4u);
  ASSERT_EQ(module.entries_size(), 1);
  const v1::Entry& entry = module.entries(0);
  EXPECT_EQ(entry.name(), "_Z5scalePKfPfi");
  EXPECT_EQ(entry.display(), "scale");
  EXPECT_GT(entry.registers(), 4u);
  EXPECT_EQ(entry.shared_bytes(), 1024u);
  EXPECT_EQ(entry.spill_store_bytes(), 0u);
  EXPECT_EQ(entry.max_threads(), 1024u);
  ASSERT_EQ(entry.parameters_size(), 3);
  EXPECT_EQ(entry.parameters(1).offset(), 8u);
  EXPECT_EQ(entry.parameters(2).size(), 4u);
  EXPECT_THAT(got.result.ptx(), HasSubstr(".target sm_90a"));
  EXPECT_EQ(got.result.cubin().substr(1, 3), "ELF");
}

TEST_F(Compiles, ABlockThatTheCodeDemandsIsTold) {
  const Compiled got = CompileText(
      "__global__ void __launch_bounds__(128) f(float* x) { *x = 1; }\n"
      "__global__ void __block_size__((32, 2, 1)) g(float* x) { *x = 1; }\n");
  ASSERT_FALSE(got.result.failed()) << got.log();
  ASSERT_EQ(got.result.module().entries_size(), 2);
  EXPECT_EQ(got.result.module().entries(0).max_threads(), 128u);
  EXPECT_EQ(got.result.module().entries(1).max_threads(), 64u);
  EXPECT_EQ(got.result.module().entries(1).required_block_size(), 3);
}

TEST_F(Compiles, TemplatesAreInstantiatedByName) {
  worker::v1::CompilerOrder order = SourceOrder(
      "template <typename T, int N> __global__ void fill(T* x) { x[threadIdx.x] = T(N); }\n");
  order.mutable_compile()->add_name_expressions("fill<float, 256>");
  order.mutable_compile()->add_name_expressions("fill<int, 3>");
  const Compiled got = Finish(order);
  ASSERT_FALSE(got.result.failed()) << got.log();
  ASSERT_EQ(got.result.module().entries_size(), 2);
  EXPECT_EQ(got.result.module().entries(0).display(), "fill<float, 256>");
  EXPECT_EQ(got.result.module().entries(0).name(), "_Z4fillIfLi256EEvPT_");
}

TEST_F(Compiles, F1_ErrorsCarryTheLinesOfTheClient) {
  const Compiled got = CompileText(
      "#include <vector>\n"
      "int main() { return 0; }\n"
      "__global__ void f(float* x) {\n"
      "  x[0] = y;\n"
      "}\n");
  EXPECT_TRUE(got.result.failed());
  EXPECT_THAT(got.log(), HasSubstr("kernel.cu(4): error: identifier \"y\" is undefined"));
  EXPECT_THAT(got.log(), HasSubstr("    x[0] = y;\n           ^\n"));
  ASSERT_EQ(got.result.module().notes_size(), 2);
  EXPECT_EQ(got.result.module().notes(1).first_line(), 2u);
}

TEST_F(Compiles, HeadersOfTheClientAndOfCudaAreFound) {
  worker::v1::CompilerOrder order = SourceOrder(
      "#include \"mine/scale.h\"\n#include <cuda_fp16.h>\n#include <cmath>\n#include <limits>\n"
      "__global__ void f(__half* x, uint32_t* n) {\n"
      "  x[0] = __float2half(scaled(std::max(1.0f, INFINITY)) + "
      "std::numeric_limits<float>::max());\n"
      "}\n");
  v1::SourceFile* header = order.mutable_compile()->add_headers();
  header->set_name("mine/scale.h");
  header->set_text("__device__ inline float scaled(float v) { return SCALE * v; }\n");
  (*order.mutable_compile()->mutable_options()->mutable_defines())["SCALE"] = "2.5f";
  if (TheTools().landlock == 0) GTEST_SKIP() << "no Landlock: CUDA's headers cannot be read safely";
  const Compiled got = Finish(order);
  EXPECT_FALSE(got.result.failed()) << got.log();
}

// A file that is included within a kernel holds statements: a call and a loop are no declarations
// of functions of the host. And what a header calls a function of the device is said by the source.
TEST_F(Compiles, AFileThatIsIncludedWithinAKernelIsLeftWhole) {
  worker::v1::CompilerOrder order = SourceOrder(
      "#define DEV __device__ __forceinline__\n#include \"ops.h\"\n"
      "__global__ void f(float* x) {\n#include \"body.inc\"\n}\n");
  v1::SourceFile* body = order.mutable_compile()->add_headers();
  body->set_name("body.inc");
  body->set_text(
      "atomicAdd(&x[0], squared(x[1])); __syncthreads();\nfor (int i = 0; i < 3; ++i) { "
      "x[i] += 1; }\n");
  v1::SourceFile* ops = order.mutable_compile()->add_headers();
  ops->set_name("ops.h");
  ops->set_text("DEV float squared(float v) { return v * v; }\n");
  for (const bool host_code : {false, true}) {  // Headers are cut where they do not compile uncut.
    if (host_code) ops->mutable_text()->append("#include <iostream>\nstd::ostream& log();\n");
    const Compiled got = Finish(order);
    EXPECT_FALSE(got.result.failed()) << got.log();
    EXPECT_THAT(got.result.ptx(), HasSubstr("bar.sync"));
    EXPECT_THAT(got.result.ptx(), HasSubstr(".global.add.f32"));
    EXPECT_EQ(got.result.module().notes().empty(), !host_code);
  }
}

// As a course has it: one header for all files, with checks and timers of the host.
TEST_F(Compiles, HostCodeInAClientsHeaderIsSetAside) {
  worker::v1::CompilerOrder order = SourceOrder(
      "// One of many.\n#include \"common.h\"\n__global__ void f(float* x) { x[0] = halved(x[1]) + "
      "OFFSET; }\n");
  v1::SourceFile* header = order.mutable_compile()->add_headers();
  header->set_name("common.h");
  header->set_text(
      "#pragma once\n#include <cublas_v2.h>\n#include <iostream>\n#include <string>\n"
      "#define OFFSET 3\n"
      "inline void check(cudaError_t error, const std::string& file) {\n"
      "  if (error != cudaSuccess) std::cerr << file << std::endl;\n"
      "}\n"
      "__device__ inline float halved(float v) { return v / 2; }\n");
  const Compiled got = Finish(order);
  ASSERT_FALSE(got.result.failed()) << got.log();
  ASSERT_EQ(got.result.module().notes_size(), 3);
  const v1::Note& note = got.result.module().notes(2);
  EXPECT_EQ(note.first_line(), 2u);
  EXPECT_EQ(note.last_line(), 2u);
  EXPECT_EQ(note.text(), "in common.h, lines 6-8: host function check");
}

// cuBLAS's header brings the types of half precision along, cuFFT's its complex numbers.
TEST_F(Compiles, WhatHeadersOfHostLibrariesBringForDeviceCodeIsThere) {
  const Compiled got =
      Finish(SourceOrder("#include <cublas_v2.h>\n#include <cufft.h>\ncublasHandle_t handle;\n"
                         "void check(cublasStatus_t status) {}\nvoid plan(cufftHandle handle) {}\n"
                         "__global__ void f(__nv_bfloat16* x, half* y, cufftComplex* z, uint n) {\n"
                         "  z[n].x = __bfloat162float(x[n]) + __half2float(y[n]);\n}\n"));
  EXPECT_FALSE(got.result.failed()) << got.log();
}

// <sys/types.h> of hosts has it as unsigned long, which is their uint64_t: nvcc takes both.
TEST_F(Compiles, ASourceMayHaveAUlongOfItsOwn) {
  const std::string kernel = "__global__ void f(ulong* x) { x[0] += 1; }\n";
  for (const char* own : {"", "#include <stdint.h>\ntypedef uint64_t ulong;\n",
                          "using ulong = unsigned long long;\n"}) {
    const Compiled got = Finish(SourceOrder(own + kernel));
    EXPECT_FALSE(got.result.failed()) << own << got.log();
  }
}

TEST_F(Compiles, OptionsReachTheCompiler) {
  worker::v1::CompilerOrder order =
      SourceOrder("__global__ void f(float* x) { x[0] = x[1] * x[2] + x[3]; }\n");
  EXPECT_THAT(Finish(order).result.ptx(), HasSubstr("fma.rn.f32"));
  order.mutable_compile()->mutable_options()->set_fmad(false);
  EXPECT_THAT(Finish(order).result.ptx(), Not(HasSubstr("fma.rn.f32")));
  order.mutable_compile()->mutable_options()->set_arch("sm_80");
  EXPECT_THAT(Finish(order).result.ptx(), HasSubstr(".target sm_80"));
}

TEST_F(Compiles, F20_ATargetThatTheToolchainLacksIsAnError) {
  worker::v1::CompilerOrder order = SourceOrder("__global__ void f() {}\n");
  order.mutable_compile()->mutable_options()->set_arch("sm_20");
  const Compiled got = Finish(order);
  EXPECT_TRUE(got.result.failed());
  EXPECT_THAT(got.log(), HasSubstr("architecture"));
}

TEST_F(Compiles, PtxIsAssembledAgainToTheSameNeeds) {
  if (TheTools().toolkit.ptxas.empty() || TheTools().landlock == 0) {
    GTEST_SKIP() << "no ptxas, or no Landlock to run it in";
  }
  const Compiled source = CompileText("__global__ void f(float* x) { x[threadIdx.x] *= 2; }\n");
  worker::v1::CompilerOrder order;
  order.set_id(2);
  order.mutable_load()->set_arch("sm_90a");
  order.mutable_load()->set_ptx(source.result.ptx());
  const Compiled got = Finish(order);
  ASSERT_EQ(got.answer.end(), CompilerAnswer::DONE) << got.answer.detail();
  ASSERT_FALSE(got.result.failed()) << got.log();
  ASSERT_EQ(got.result.module().entries_size(), 1);
  EXPECT_EQ(got.result.module().entries(0).registers(),
            source.result.module().entries(0).registers());
  EXPECT_EQ(got.result.module().entries(0).spill_load_bytes(), 0u);

  order.mutable_load()->set_ptx(".version 8.0\n.target sm_90\n.bogus\n");
  const Compiled wrong = Finish(order);
  EXPECT_TRUE(wrong.result.failed());
  EXPECT_THAT(wrong.log(), HasSubstr("input.ptx(3)"));
  EXPECT_THAT(wrong.log(), Not(HasSubstr("/proc")));
}

TEST_F(Compiles, AResultThatIsTooLongIsRefused) {
  if (TheTools().toolkit.ptxas.empty() || TheTools().landlock == 0) {
    GTEST_SKIP() << "no ptxas, or no Landlock to run it in";
  }
  worker::v1::CompilerOrder order;
  order.set_id(2);
  order.mutable_load()->set_arch("sm_90");
  order.mutable_load()->set_ptx(
      ".version 8.0\n.target sm_90\n.address_size 64\n.global .b8 a[18000000] = {1};\n"
      ".visible .entry f() { ret; }\n");
  EXPECT_EQ(Finish(order).answer.end(), CompilerAnswer::OUTPUT);
}

TEST_F(Compiles, CodeWithoutAKernelFails) {
  const Compiled got = CompileText("int main() { return 0; }\n__device__ int x = 1;\n");
  ASSERT_EQ(got.answer.end(), CompilerAnswer::DONE);
  EXPECT_TRUE(got.result.failed());
  EXPECT_THAT(got.log(), HasSubstr("error: no __global__ function was found"));
  EXPECT_THAT(got.log(), HasSubstr("lines 1-1 set aside: host function main\n"));
  EXPECT_EQ(got.result.cubin(), "");
}

// The compiler takes them, a module does not.
TEST_F(Compiles, TooManyKernelsAndTooLongNamesAreAnErrorOfTheSource) {
  std::string many;
  for (int i = 0; i < 1100; ++i) absl::StrAppend(&many, "__global__ void f", i, "() {}\n");
  const std::string name(5000, 'n');
  for (const auto& [source, why] :
       {std::pair(many, "more than 1024 kernels"),
        std::pair(absl::StrCat("__global__ void ", name, "() {}\n"), "4096")}) {
    const Compiled got = CompileText(source);
    ASSERT_EQ(got.answer.end(), CompilerAnswer::DONE) << got.answer.detail();
    EXPECT_TRUE(got.result.failed());
    EXPECT_THAT(got.log(), HasSubstr(why));
    EXPECT_EQ(got.result.cubin(), "");
  }
}

TEST_F(Compiles, TooManyKernelsInPtxAreAnErrorToo) {
  if (TheTools().toolkit.ptxas.empty() || TheTools().landlock == 0) {
    GTEST_SKIP() << "no ptxas, or no Landlock to run it in";
  }
  std::string ptx = ".version 8.0\n.target sm_90\n.address_size 64\n";
  for (int i = 0; i < 1100; ++i) absl::StrAppend(&ptx, ".visible .entry f", i, "() { ret; }\n");
  worker::v1::CompilerOrder order;
  order.set_id(2);
  order.mutable_load()->set_arch("sm_90");
  order.mutable_load()->set_ptx(ptx);
  const Compiled got = Finish(order);
  ASSERT_EQ(got.answer.end(), CompilerAnswer::DONE) << got.answer.detail();
  EXPECT_TRUE(got.result.failed());
  EXPECT_THAT(got.log(), HasSubstr("more than 1024 kernels"));
}

TEST_F(Compiles, WhatAChildSaysOfItselfIsCleanAndShort) {
  worker::v1::CompilerOrder order = SourceOrder("__global__ void f() {}\n");
  order.mutable_compile()->mutable_options()->set_arch(
      absl::StrCat(std::string(5000, 'x'), "\x1b"));
  const Compiled got = Finish(order);
  EXPECT_EQ(got.answer.end(), CompilerAnswer::INTERNAL);
  EXPECT_LE(got.answer.detail().size(), 1024u);
}

TEST_F(Compiles, ACubinIsReadAndItsTargetCompared) {
  const Compiled source = CompileText("__global__ void f(float* x) { *x = 2; }\n");
  worker::v1::CompilerOrder order;
  order.set_id(2);
  order.mutable_load()->set_cubin(source.result.cubin());
  const Compiled got = Finish(order);
  ASSERT_FALSE(got.result.failed()) << got.log();
  EXPECT_EQ(got.result.module().arch(), "sm_90");
  EXPECT_FALSE(got.result.module().entries(0).has_spill_load_bytes());
  order.mutable_load()->set_arch("sm_80");
  EXPECT_THAT(Finish(order).log(), HasSubstr("want a cubin for sm_80, got one for sm_90"));
}

// Registers and shared memory are read from the cubin, spills from ptxas: here both tell of spills.
TEST_F(Compiles, SpillsAreCounted) {
  worker::v1::CompilerOrder order = SourceOrder(
      "__global__ void f(float* x) {\n"
      "  float v[64];\n"
      "  for (int i = 0; i < 64; ++i) v[i] = x[i * 32];\n"
      "  __syncthreads();\n"
      "  for (int i = 0; i < 64; ++i) x[i * 32 + 1] = v[i] * v[63 - i];\n"
      "}\n");
  order.mutable_compile()->mutable_options()->set_max_registers(24);
  const Compiled got = Finish(order);
  ASSERT_FALSE(got.result.failed()) << got.log();
  EXPECT_LE(got.result.module().entries(0).registers(), 24u);
  EXPECT_GT(got.result.module().entries(0).spill_store_bytes(), 0u);
  EXPECT_GT(got.result.module().entries(0).local_bytes(), 0u);
}

TEST_F(Compiles, F26_WhatDevicesMayDoCompiles) {
  const Compiled got = CompileText(
      "#include <cstdio>\n#include <cassert>\n"
      "__global__ void f(int* x) {\n"
      "  printf(\"%d\\n\", x[0]);\n  assert(x[1] == 0);\n"
      "  if (void* p = malloc(4)) free(p);\n  if (x[2]) __trap();\n}\n");
  EXPECT_FALSE(got.result.failed()) << got.log();
}

TEST(CompilesWithoutTools, AMissingToolIsNamed) {
  Tools none;
  none.no_nvrtc = "libnvrtc.so.13: not found";
  none.landlock = LandlockVersion();
  const Compiled got = Finish(SourceOrder("__global__ void f() {}\n"), none);
  EXPECT_EQ(got.answer.end(), CompilerAnswer::NO_TOOL);
  EXPECT_THAT(got.answer.detail(), HasSubstr("libnvrtc.so.13"));
  worker::v1::CompilerOrder order;
  order.set_id(3);
  order.set_disassemble("x");
  EXPECT_THAT(Finish(order, none).answer.detail(), HasSubstr("nvdisasm is missing"));
}

TEST_F(Compiles, ACancelledCompileEnds) {
  const MonotonicClock clock;
  Children children(TheTools(), {}, clock);
  children.Start(SourceOrder("__device__ int a[1u << 30] = {1};\n"));
  children.Cancel(1);
  std::vector<CompilerAnswer> answers;
  while (answers.empty()) answers = children.TakeAnswers();
  EXPECT_EQ(answers[0].end(), CompilerAnswer::CANCELLED);
}

}  // namespace
}  // namespace gridclock
