// Submitted code through a real server and a real compiler process: what is compiled, refused, kept
// and kept apart.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSquare[] =
    "#include <torch/extension.h>\n"
    "__global__ void square(const float* x, float* y, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] = x[i] * x[i];\n"
    "}\n"
    "int main() { square<<<1, 1>>>(nullptr, nullptr, 0); }\n";

// The names of its stages, all of which took some time.
std::vector<std::string> StagesOf(const v1::Module& module) {
  std::vector<std::string> names;
  for (const v1::CompileStage& stage : module.stages()) {
    EXPECT_GT(stage.milliseconds(), 0) << stage.name();
    names.push_back(stage.name());
  }
  return names;
}

v1::CompileRequest Source(const std::string& text) {
  v1::CompileRequest request;
  request.mutable_source()->set_name("kernel.cu");
  request.mutable_source()->set_text(text);
  request.mutable_options()->set_arch("sm_90a");
  return request;
}

std::unique_ptr<Client> ClientOf(const ServerProcess& server, const std::string& token = "") {
  ClientOptions options;
  options.server = server.address();
  options.token = token;
  options.allow_plaintext_token = true;
  auto client = Client::Connect(options);
  EXPECT_THAT(client, IsOk());
  return *std::move(client);
}

// What is compiled here in a moment takes a busy machine longer than the limit that servers have.
constexpr int kTimeToCompile = 60;

std::string LimitOf(int compile_seconds) {
  return absl::StrCat("--limit-compile-seconds=", compile_seconds);
}

// What the server's compiler says of itself once it is ready.
v1::Compiler ReadyCompilerOf(const Client& client) {
  v1::Compiler compiler;
  EXPECT_TRUE(Eventually([&] {
    const auto info = client.GetServerInfo();
    if (info.ok()) compiler = info->compiler();
    return compiler.ready();
  }));
  return compiler;
}

// A server that compiles, ready to. Skips the test where there is no NVRTC.
class Modules : public ::testing::Test {
 protected:
  void StartServer(std::vector<std::string> flags = {}, int compile_seconds = kTimeToCompile) {
    flags.insert(flags.begin(), {"--allow-submit", LimitOf(compile_seconds)});
    auto server = ServerProcess::Start({.flags = std::move(flags)});
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    client_ = ClientOf(*server_);
    compiler_ = ReadyCompilerOf(*client_);
    ASSERT_TRUE(compiler_.ready()) << server_->Log();
    if (!compiler_.no_cuda().empty()) GTEST_SKIP() << compiler_.no_cuda();
  }

  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
  v1::Compiler compiler_;
};

TEST_F(Modules, AFileAsPeopleHaveItIsCompiled) {
  StartServer();
  if (IsSkipped() || HasFatalFailure()) return;
  EXPECT_THAT(compiler_.toolchain(), HasSubstr("NVRTC"));
  EXPECT_THAT(compiler_.sandbox(), HasSubstr("seccomp"));
  v1::CompileRequest request = Source(kSquare);
  request.mutable_view()->set_ptx(true);
  ASSERT_OK_AND_ASSIGN(const v1::Module module, client_->Compile(request));
  EXPECT_EQ(module.id().size(), 32u);
  EXPECT_EQ(module.origin(), v1::Module::COMPILED);
  ASSERT_EQ(module.entries_size(), 1);
  EXPECT_EQ(module.entries(0).display(), "square");
  ASSERT_EQ(module.entries(0).parameters_size(), 3);
  EXPECT_EQ(module.entries(0).parameters(1).type(), "float*");
  EXPECT_EQ(module.entries(0).parameters(2).name(), "n");
  EXPECT_EQ(module.entries(0).occupancy().max_warps(), 64u);
  EXPECT_THAT(module.ptx(), HasSubstr("_Z6squarePKfPfi"));
  EXPECT_EQ(module.cubin(), "");
  EXPECT_GT(module.cubin_bytes(), 0u);
  ASSERT_EQ(module.notes_size(), 2);
  EXPECT_EQ(module.notes(1).text(), "host function main");
  EXPECT_THAT(StagesOf(module), ElementsAre("scan", "nvrtc", "ptxas", "inspect"));

  ASSERT_OK_AND_ASSIGN(const v1::Module again, client_->Compile(request));
  EXPECT_EQ(again.id(), module.id());
  EXPECT_EQ(again.origin(), v1::Module::MEMORY);
  ASSERT_OK_AND_ASSIGN(const auto listed, client_->ListModules());
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].id(), module.id());
  EXPECT_THAT(client_->DeleteModule(module.id()), IsOk());
  EXPECT_THAT(client_->DeleteModule(module.id()), ReasonIs("NO_MODULE"));
  v1::GetModuleRequest get;
  get.set_id(module.id());
  EXPECT_THAT(client_->GetModule(get),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(module.id())));
  EXPECT_THAT(server_->Metrics(),
              HasSubstr("gridclock_compiles_total{kind=\"cuda\",outcome=\"ok\"} 1\n"));
  EXPECT_THAT(server_->Metrics(),
              HasSubstr("gridclock_module_answers_total{origin=\"memory\"} 1\n"));
}

TEST_F(Modules, CudasOwnHeadersCompile) {
  StartServer();
  if (IsSkipped() || HasFatalFailure()) return;
  const std::pair<const char*, const char*> uses[] = {
      {"cuda_fp16.h", "*x = __half2float(__hadd(__float2half(*x), __float2half(1)));"},
      {"cuda_bf16.h", "*x = __bfloat162float(__float2bfloat16(*x));"},
      {"cuda_fp8.h", "*x = float(__nv_fp8_e4m3(*x));"},
      {"mma.h",
       "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> c; "
       "nvcuda::wmma::fill_fragment(c, *x); "
       "nvcuda::wmma::store_matrix_sync(x, c, 16, nvcuda::wmma::mem_row_major);"},
      {"cooperative_groups.h", "cooperative_groups::this_thread_block().sync();"},
      {"cuda/std/array", "*x = cuda::std::array<float, 2>{1, *x}[1];"},
      {"cub/block/block_reduce.cuh",
       "__shared__ cub::BlockReduce<float, 32>::TempStorage t; "
       "*x = cub::BlockReduce<float, 32>(t).Sum(*x);"}};
  for (const auto& [header, use] : uses) {
    const auto made = client_->Compile(Source(
        absl::StrCat("#include <", header, ">\n__global__ void f(float* x) { ", use, " }\n")));
    EXPECT_THAT(made, IsOk()) << header;
  }
  // As docs/compile.md says.
  const auto all_of_cub =
      client_->Compile(Source("#include <cub/cub.cuh>\n__global__ void f(float* x) { *x = 1; }\n"));
  EXPECT_THAT(all_of_cub, ReasonIs("COMPILE_FAILED"));
  EXPECT_THAT(DetailsOf(all_of_cub.status()).metadata["log"],
              HasSubstr("A function explicitly marked as a __host__ function is not allowed in JIT "
                        "mode"));
}

// It makes types without end.
v1::CompileRequest Bomb() {
  return Source(
      "template <int N, int M> struct A {\n"
      "  static const int v = A<N - 1, M * 2>::v + A<N - 1, M * 2 + 1>::v;\n};\n"
      "template <int M> struct A<0, M> { static const int v = 1; };\n"
      "__device__ int x = A<26, 0>::v;\n");
}

// However many types a fast machine makes in a second, there is memory for them.
constexpr char kMuchMemory[] = "--limit-compile-memory-bytes=64G";

TEST_F(Modules, WhatTakesTooLongIsToldAsThat) {
  StartServer({kMuchMemory}, 1);
  if (IsSkipped() || HasFatalFailure()) return;
  const auto bomb = client_->Compile(Bomb());
  EXPECT_THAT(bomb, StatusIs(absl::StatusCode::kDeadlineExceeded,
                             HasSubstr("longer than 1 s (limit compile_seconds)")));
  EXPECT_THAT(bomb, ReasonIs("COMPILE_TIME"));
}

// Its workers neither: all of them stand still with the server, and go on a little behind it.
TEST_F(Modules, ACompilerIsNotHungForATimeInWhichTheServerStoodStillToo) {
  for (int tries = 3;; --tries) {
    StartServer({kMuchMemory}, 1);
    if (IsSkipped() || HasFatalFailure()) return;
    auto bomb = std::async(std::launch::async, [&] { return client_->Compile(Bomb()).status(); });
    Eventually([&] { return server_->Metric("gridclock_usage{name=\"compiles\"}") == 1; },
               absl::Seconds(1));
    const std::vector<pid_t> children = server_->Workers();
    server_->Signal(SIGSTOP);
    for (const pid_t child : children) kill(child, SIGSTOP);
    absl::SleepFor(absl::Seconds(5));
    const absl::Time went_on = absl::Now();
    server_->Signal(SIGCONT);
    absl::SleepFor(absl::Milliseconds(500));
    for (const pid_t child : children) kill(child, SIGCONT);
    const bool late = absl::Now() - went_on > absl::Seconds(1);
    const absl::Status status = bomb.get();
    if (tries > 1 && late) continue;  // A busy machine kept us from letting them go on.
    EXPECT_THAT(status, ReasonIs("COMPILE_TIME"));
    const std::string metrics = server_->Metrics();
    EXPECT_THAT(metrics, HasSubstr("gridclock_compiler_restarts_total 0\n"));
    EXPECT_THAT(metrics, HasSubstr("restarts_total{device=\"cpu\",reason=\"hang\"} 0\n"));
    return;
  }
}

TEST_F(Modules, F1_WhatDoesNotCompileHasALogUnderItsId) {
  StartServer();
  if (IsSkipped() || HasFatalFailure()) return;
  const auto failed = client_->Compile(Source("__global__ void f(float* x) {\n  x[0] = y;\n}\n"));
  EXPECT_THAT(failed, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("kernel.cu(2): error: identifier \"y\" is undefined")));
  EXPECT_THAT(failed, ReasonIs("COMPILE_FAILED"));
  auto metadata = DetailsOf(failed.status()).metadata;
  EXPECT_THAT(metadata["log"], HasSubstr("kernel.cu(2)"));
  v1::GetModuleRequest get;
  get.set_id(metadata["module"]);
  ASSERT_OK_AND_ASSIGN(const v1::Module module, client_->GetModule(get));
  EXPECT_TRUE(module.failed());
  EXPECT_THAT(module.log(), HasSubstr("    x[0] = y;\n           ^"));
  std::string many = "__global__ void f() {\n";
  for (int i = 0; i < 3000; ++i) absl::StrAppend(&many, "  undefined_", i, "();\n");
  const auto long_log = client_->Compile(Source(many + "}\n"));
  EXPECT_THAT(long_log, ReasonIs("COMPILE_FAILED"));
  EXPECT_LE(DetailsOf(long_log.status()).metadata["log"].size(), 3u * 1024);
  EXPECT_GT(DetailsOf(long_log.status()).metadata["log"].size(), 2u * 1024);
  ASSERT_OK_AND_ASSIGN(const auto listed, client_->ListModules());
  EXPECT_TRUE(listed.empty());
}

TEST_F(Modules, F2_F8_AttacksAreAnsweredAndHurtNobody) {
  StartServer({}, 5);
  if (IsSkipped() || HasFatalFailure()) return;
  // The first compile has 5 s as well, with all that the compiler must still load for it.
  absl::StatusOr<v1::Module> read;
  Eventually([&] {
    read = client_->Compile(Source("#include \"/etc/passwd\"\n__global__ void f() {}\n"));
    return DetailsOf(read.status()).reason != "COMPILE_TIME";
  });
  EXPECT_THAT(read, ReasonIs("COMPILE_FAILED"));
  EXPECT_THAT(DetailsOf(read.status()).metadata["log"], Not(HasSubstr("root:")));
  const absl::Time start = absl::Now();
  const auto bomb = client_->Compile(Source("__device__ int a[1u << 30] = {1};\n"));
  EXPECT_LT(absl::Now() - start, absl::Seconds(25));
  EXPECT_THAT(DetailsOf(bomb.status()).reason,
              ::testing::AnyOf("COMPILE_CRASHED", "COMPILE_MEMORY", "COMPILE_TIME"));
  // It has 5 s too, on a machine that may still be clearing gigabytes away.
  EXPECT_TRUE(Eventually([&] { return client_->Compile(Source(kSquare)).ok(); }));
  EXPECT_THAT(server_->Metrics(), HasSubstr("gridclock_compiler_restarts_total 0\n"));
}

TEST_F(Modules, TheCacheOutlivesTheServerAndDropsWhatIsCorrupt) {
  const std::string folder = NewFolder() + "/modules";
  StartServer({"--module-cache=" + folder});
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_OK_AND_ASSIGN(const v1::Module first, client_->Compile(Source(kSquare)));
  StartServer({"--module-cache=" + folder});
  v1::GetModuleRequest get;
  get.set_id(first.id());
  get.mutable_view()->set_cubin(true);
  ASSERT_OK_AND_ASSIGN(const v1::Module kept, client_->GetModule(get));
  EXPECT_EQ(kept.origin(), v1::Module::DISK);
  EXPECT_EQ(kept.cubin().size(), first.cubin_bytes());
  EXPECT_EQ(kept.entries(0).registers(), first.entries(0).registers());
  // Without Get: what is missing here is a GPU.
  StartServer({"--module-cache=" + folder});
  RunCall call;
  call.program.emplace().set_words(
      "mine x: f32[N] -> y: f32[N] grid (1) block (32) params x, y, n: int = N");
  call.program->add_launches()->set_module(first.id());
  call.program->mutable_launches(0)->set_entry("square");
  const float one = 1;
  call.inputs.push_back({.name = "x",
                         .value = {.is_list = false, .tensors = {{DType::kF32, {1}}}},
                         .bytes = {std::as_bytes(std::span(&one, 1))}});
  EXPECT_THAT(client_->Run(call), ReasonIs("NO_DEVICE"));
  call.program->mutable_launches(0)->set_module("none");
  EXPECT_THAT(client_->Run(call), ReasonIs("NO_MODULE"));
  StartServer({"--module-cache=" + folder});
  ASSERT_OK_AND_ASSIGN(const v1::Module again, client_->Compile(Source(kSquare)));
  EXPECT_EQ(again.id(), first.id());
  EXPECT_EQ(again.origin(), v1::Module::DISK);
  std::filesystem::resize_file(absl::StrCat(folder, "/", first.id(), ".module"), 100);
  StartServer({"--module-cache=" + folder});
  ASSERT_OK_AND_ASSIGN(const v1::Module anew, client_->Compile(Source(kSquare)));
  EXPECT_EQ(anew.origin(), v1::Module::COMPILED);
  EXPECT_THAT(server_->FinalLog(), HasSubstr("module_dropped"));
}

TEST_F(Modules, C11_AnotherSourceOfTheSameNameReplacesNothing) {
  StartServer();
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_OK_AND_ASSIGN(const v1::Module first, client_->Compile(Source(kSquare)));
  ASSERT_OK_AND_ASSIGN(const v1::Module second,
                       client_->Compile(Source("__global__ void square(float* x) { *x = 2; }\n")));
  EXPECT_EQ(first.name(), second.name());
  EXPECT_NE(first.id(), second.id());
  v1::GetModuleRequest get;
  get.set_id(first.id());
  get.mutable_view()->set_ptx(true);
  ASSERT_OK_AND_ASSIGN(const v1::Module still, client_->GetModule(get));
  EXPECT_EQ(still.entries(0).parameters_size(), 3);
  EXPECT_THAT(still.ptx(), HasSubstr("_Z6squarePKfPfi"));
}

TEST_F(Modules, F20_PtxIsLoadedAndCubinsOnlyWhereTheyAreAllowed) {
  StartServer();
  if (IsSkipped() || HasFatalFailure()) return;
  if (!compiler_.no_ptx().empty()) GTEST_SKIP() << compiler_.no_ptx();
  v1::CompileRequest source = Source(kSquare);
  source.mutable_view()->set_ptx(true);
  source.mutable_view()->set_cubin(true);
  ASSERT_OK_AND_ASSIGN(const v1::Module module, client_->Compile(source));
  v1::LoadRequest load;
  load.set_arch("sm_90a");
  load.set_ptx(module.ptx());
  ASSERT_OK_AND_ASSIGN(const v1::Module loaded, client_->Load(load));
  EXPECT_EQ(loaded.kind(), v1::Module::PTX);
  EXPECT_NE(loaded.id(), module.id());
  EXPECT_EQ(loaded.entries(0).registers(), module.entries(0).registers());
  EXPECT_THAT(StagesOf(loaded), ElementsAre("ptxas", "inspect"));
  load.set_ptx("no ptx at all");
  EXPECT_THAT(client_->Load(load), ReasonIs("COMPILE_FAILED"));
  load.set_ptx(
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry f() { bogus.u32 %r1; }\n");
  EXPECT_THAT(client_->Load(load), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("input.ptx(4): error: Not a name")));
  load.set_ptx(".version 9.0\n.target sm_100\n.address_size 64\n.visible .entry f() { ret; }\n");
  EXPECT_THAT(client_->Load(load),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("is for sm_100"), HasSubstr("wants sm_90a"))));
  load.set_ptx(".version 99.9\n.target sm_90\n.address_size 64\n.visible .entry f() { ret; }\n");
  EXPECT_THAT(client_->Load(load), StatusIs(absl::StatusCode::kInvalidArgument,
                                            AllOf(HasSubstr("Unsupported .version 99.9"),
                                                  HasSubstr("current version is"))));
  load.set_ptx(".version 9.0\n.target sm_90a\n.address_size 64\n.visible .func f() { ret; }\n");
  const absl::Status no_entry = client_->Load(load).status();
  EXPECT_THAT(no_entry, ReasonIs("COMPILE_FAILED"));
  EXPECT_THAT(no_entry.message(), HasSubstr("error: no .entry was found"));
  EXPECT_THAT(no_entry.message(), Not(HasSubstr("tmp"))) << "no file of the server";
  load.set_cubin(module.cubin());
  EXPECT_THAT(client_->Load(load),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--allow-cubin")));
  StartServer({"--allow-cubin"});
  ASSERT_OK_AND_ASSIGN(const v1::Module cubin, client_->Load(load));
  EXPECT_EQ(cubin.kind(), v1::Module::CUBIN);
  load.set_cubin(std::string("\177ELF") + std::string(100, '\1'));
  EXPECT_THAT(client_->Load(load), ReasonIs("COMPILE_FAILED"));
}

TEST_F(Modules, F20_B4_BadRequestsAreToldApart) {
  StartServer();
  if (IsSkipped() || HasFatalFailure()) return;
  v1::CompileRequest request = Source(kSquare);
  request.mutable_options()->set_arch("sm_42");
  EXPECT_THAT(client_->Compile(request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want one of sm_")));
  request.mutable_options()->set_arch("sm_75a");
  EXPECT_THAT(
      client_->Compile(request),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          HasSubstr("want an a of sm_90 and later alone, an f of sm_100 and later, got 'sm_75a'")));
  request = Source(std::string(256 * 1024 + 1, ' '));
  EXPECT_THAT(client_->Compile(request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("262144")));
  request = Source(kSquare);
  request.mutable_view()->set_block_threads(4096);
  EXPECT_THAT(client_->Compile(request), ReasonIs("BAD_VALUE"));
  const auto channel = Connect(server_->address());
  constexpr char kCompile[] = "/gridclock.v1.ModuleService/Compile";
  // Field 1, of it field 2: bytes that are no UTF-8.
  const RawResult bytes = RawCall(channel, kCompile, {std::string("\x0a\x04\x12\x02\xff\xfe")});
  EXPECT_THAT(bytes.status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cannot parse")));
  EXPECT_THAT(RawCall(channel, kCompile, {std::string(2 * 1024 * 1024, 'x')}).status.code(),
              absl::StatusCode::kResourceExhausted);
  if (!compiler_.no_sass().empty()) {
    request = Source(kSquare);
    request.mutable_view()->set_sass(true);
    EXPECT_THAT(client_->Compile(request),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("nvdisasm")));
  }
  EXPECT_THAT(server_->Metrics(), Not(ContainsRegex("code=\"INTERNAL\"} [1-9]")));
}

TEST_F(Modules, EachClientHasAQuota) {
  StartServer({"--limit-client-modules=1"});
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_THAT(client_->Compile(Source(kSquare)), IsOk());
  EXPECT_THAT(client_->Compile(Source(kSquare)), IsOk());
  EXPECT_THAT(client_->Compile(Source("__global__ void f() {}\n")), ReasonIs("MODULE_QUOTA"));
}

// A source of about this many bytes of code.
std::string LargeSource(int kib) {
  return absl::StrCat("__device__ int table[", kib, " * 256] = {1};\n",
                      "__global__ void f(int* y) { *y = table[*y]; }\n");
}

TEST_F(Modules, WhatMemoryHasNoRoomForIsNotKeptOnDiskEither) {
  const std::string folder = NewFolder() + "/modules";
  StartServer({"--module-cache=" + folder, "--limit-module-memory-bytes=1000000"});
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_THAT(client_->Compile(Source(kSquare)), IsOk());
  EXPECT_THAT(client_->Compile(Source(LargeSource(800))), ReasonIs("MEMORY_FULL"));
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    files += file.path().extension() == ".module" ? 1 : 0;
  }
  EXPECT_EQ(files, 1);
}

std::string Hash(const std::string& token) {
  std::string out;
  FILE* pipe =
      popen(absl::StrCat("printf ", token, " | ", BinaryPath("gridclock-server"), " --hash-token")
                .c_str(),
            "r");
  char buffer[256];
  while (fgets(buffer, sizeof(buffer), pipe) != nullptr) out += buffer;
  pclose(pipe);
  return out;
}

// Until they are half of all bytes. How many that are.
int FillWithModules(const Client& client) {
  for (int i = 0; i < 100; ++i) {
    const auto made = client.Compile(Source(LargeSource(100 + i)));
    if (DetailsOf(made.status()).reason == "MEMORY_FULL") return i;
    EXPECT_THAT(made, IsOk());
  }
  return 0;
}

TEST_F(Modules, TwoClientsThatFillAllMemoryKeepNoThirdFromCompiling) {
  const std::string tokens = NewFolder() + "/tokens";
  std::ofstream(tokens) << "alice read,submit " << Hash("alice-secret") << "bob read,submit "
                        << Hash("bob-secret") << "carol read,submit " << Hash("carol-secret");
  auto server = ServerProcess::Start(
      {.flags = {"--allow-submit", LimitOf(kTimeToCompile), "--token-file=" + tokens,
                 "--limit-module-memory-bytes=2000000"}});
  ASSERT_THAT(server, IsOk());
  const auto alice = ClientOf(**server, "alice-secret"), bob = ClientOf(**server, "bob-secret"),
             carol = ClientOf(**server, "carol-secret");
  ReadyCompilerOf(*carol);
  const auto hers = carol->Compile(Source(kSquare));
  if (absl::IsFailedPrecondition(hers.status())) GTEST_SKIP() << hers.status();
  ASSERT_THAT(hers, IsOk());
  EXPECT_GT(FillWithModules(*alice), 1);
  EXPECT_GT(FillWithModules(*bob), 1);
  ASSERT_OK_AND_ASSIGN(const auto before, alice->ListModules());
  ASSERT_OK_AND_ASSIGN(const v1::Module large, carol->Compile(Source(LargeSource(300))));
  ASSERT_OK_AND_ASSIGN(const auto after, alice->ListModules());
  ASSERT_OK_AND_ASSIGN(const auto his, bob->ListModules());
  ASSERT_OK_AND_ASSIGN(const auto all_hers, carol->ListModules());
  EXPECT_LT(after.size(), before.size());
  ASSERT_FALSE(after.empty());
  EXPECT_EQ(after.back().id(), before.back().id()) << "what was used last stays";
  EXPECT_FALSE(his.empty());
  ASSERT_EQ(all_hers.size(), 2u) << "who has least loses nothing";
  EXPECT_EQ(all_hers[0].id(), hers->id());
  EXPECT_EQ(all_hers[1].id(), large.id());
}

TEST_F(Modules, F24_H2_RolesAndPrincipalsAreHeldApart) {
  const std::string tokens = NewFolder() + "/tokens";
  std::ofstream(tokens) << "alice submit " << Hash("alice-secret") << "bob read,submit "
                        << Hash("bob-secret") << "carol read,run " << Hash("carol-secret");
  auto server = ServerProcess::Start(
      {.flags = {"--allow-submit", LimitOf(kTimeToCompile), "--token-file=" + tokens}});
  ASSERT_THAT(server, IsOk());
  const auto alice = ClientOf(**server, "alice-secret"), bob = ClientOf(**server, "bob-secret"),
             carol = ClientOf(**server, "carol-secret");
  ReadyCompilerOf(*bob);
  EXPECT_THAT(carol->ListModules(),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("'submit'")));
  EXPECT_THAT(carol->Compile(Source(kSquare)), ReasonIs("ROLE_MISSING"));
  const auto hers = alice->Compile(Source(kSquare));
  if (absl::IsFailedPrecondition(hers.status())) GTEST_SKIP() << hers.status();
  ASSERT_THAT(hers, IsOk());
  v1::GetModuleRequest get;
  get.set_id(hers->id());
  EXPECT_THAT(bob->GetModule(get), ReasonIs("NO_MODULE"));
  EXPECT_THAT(bob->DeleteModule(hers->id()), ReasonIs("NO_MODULE"));
  ASSERT_OK_AND_ASSIGN(const v1::Module his, bob->Compile(Source(kSquare)));
  EXPECT_NE(his.id(), hers->id());
  EXPECT_EQ(his.origin(), v1::Module::COMPILED) << "what another compiled must not show";
  EXPECT_THAT(alice->GetModule(get), IsOk());
}

TEST(ModulesOff, SubmissionIsOffByDefault) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto client = ClientOf(*server);
  const auto refused = client->Compile(Source(kSquare));
  EXPECT_THAT(refused,
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--allow-submit")));
  EXPECT_THAT(refused, ReasonIs("SUBMIT_OFF"));
  EXPECT_THAT(client->ListModules(), ReasonIs("SUBMIT_OFF"));
  ASSERT_OK_AND_ASSIGN(const auto info, client->GetServerInfo());
  EXPECT_FALSE(info.has_compiler());
}

TEST_F(Modules, AMissingToolkitIsNamed) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--allow-submit", "--cuda-home=/nosuch"}}));
  const auto client = ClientOf(*server);
  ReadyCompilerOf(*client);
  EXPECT_THAT(client->Compile(Source(kSquare)),
              ::testing::AllOf(StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("NVRTC")),
                               ReasonIs("NO_TOOLCHAIN")));
}

// Its process, which each compile is a child of.
pid_t CompilerOf(const ServerProcess& server) {
  for (const pid_t pid : server.Workers()) {
    std::ifstream name(absl::StrCat("/proc/", pid, "/comm"));
    std::string text;
    std::getline(name, text);
    if (text == "gridclock-compi") return pid;
  }
  return 0;
}

// The one at work: others stand by, with the limits that they came with.
pid_t CompilingChildOf(pid_t parent) {
  std::ifstream children(absl::StrCat("/proc/", parent, "/task/", parent, "/children"));
  for (pid_t child = 0; children >> child;) {
    std::ifstream limits(absl::StrCat("/proc/", child, "/limits"));
    const std::string text(std::istreambuf_iterator<char>(limits), {});
    if (std::regex_search(text, std::regex("Max open files +64 "))) return child;
  }
  return 0;
}

TEST_F(Modules, TheLogNamesWhoseCompileCrashed) {
  StartServer();
  if (IsSkipped() || HasFatalFailure()) return;
  // Would take all the time that a compile has: 2^24 types.
  const std::string slow =
      "template <int N, int M> struct Slow {\n"
      "  static const int value = Slow<N - 1, 2 * M>::value + Slow<N - 1, 2 * M + 1>::value;\n"
      "};\n"
      "template <int M> struct Slow<0, M> { static const int value = M; };\n"
      "__global__ void f(int* y) { *y = Slow<24, 0>::value; }\n";
  auto crashed = std::async(std::launch::async, [&] { return client_->Compile(Source(slow)); });
  const pid_t compiler = CompilerOf(*server_);
  ASSERT_GT(compiler, 0);
  pid_t child = 0;
  ASSERT_TRUE(Eventually([&] { return (child = CompilingChildOf(compiler)) > 0; }));
  kill(child, SIGKILL);
  EXPECT_THAT(crashed.get(), ReasonIs("COMPILE_CRASHED"));
  const std::regex line(" W compile_crashed module=\"[^\"]+\" client=\"local\" detail=\"");
  EXPECT_TRUE(Eventually([&] { return std::regex_search(server_->Log(), line); }))
      << server_->Log();
  EXPECT_THAT(server_->Log(), Not(HasSubstr("Slow")));
}

TEST_F(Modules, SourceIsNotInTheLog) {
  StartServer();
  if (IsSkipped() || HasFatalFailure()) return;
  EXPECT_THAT(client_->Compile(Source("#error marked_source\n")), ReasonIs("COMPILE_FAILED"));
  // What the compiler says of one that it takes is for its client.
  const auto taken =
      client_->Compile(Source("__global__ void f(int* y) { int marked_source; *y = 0; }\n"));
  ASSERT_THAT(taken, IsOk());
  EXPECT_THAT(taken->log(), HasSubstr("marked_source"));
  EXPECT_THAT(server_->FinalLog(), Not(HasSubstr("marked_source")));
}

TEST_F(Modules, ACompilerThatIsKilledIsReplaced) {
  StartServer();
  if (IsSkipped() || HasFatalFailure()) return;
  const pid_t compiler = CompilerOf(*server_);
  ASSERT_GT(compiler, 0);
  kill(compiler, SIGKILL);
  // The client library tries again while the compiler is not there.
  ASSERT_OK_AND_ASSIGN(const v1::Module module, client_->Compile(Source(kSquare)));
  EXPECT_EQ(module.entries_size(), 1);
  EXPECT_THAT(server_->Metrics(), HasSubstr("gridclock_compiler_restarts_total 1\n"));
}

}  // namespace
}  // namespace gridclock
