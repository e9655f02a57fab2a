// Submissions by the thousand through one server: every answer is right, and nothing is kept. What
// it took is printed, for people; what is to end has its time. Nightly, as it takes minutes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tests/integration/server/submitted_fixture.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kCompileMethod[] = "/gridclock.v1.ModuleService/Compile";
constexpr char kGetMethod[] = "/gridclock.v1.ModuleService/Get";
constexpr char kDeleteMethod[] = "/gridclock.v1.ModuleService/Delete";
constexpr double kMiB = 1024.0 * 1024.0;

// Of /proc/PID/smaps_rollup; 0 of a process that is gone. Without pages of files: those of programs
// count less while another server runs.
double PssOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/smaps_rollup"));
  double sum = 0;
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    double kib = 0;
    if (words.size() == 3 && (words[0] == "Pss_Anon:" || words[0] == "Pss_Shmem:") &&
        absl::SimpleAtod(words[1], &kib)) {
      sum += kib * 1024;
    }
  }
  return sum;
}

// Of /proc/PID/status, in bytes.
double StatusOf(pid_t pid, const std::string& name) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    double kib = 0;
    if (words.size() == 3 && words[0] == name + ":" && absl::SimpleAtod(words[1], &kib)) {
      return kib * 1024;
    }
  }
  return 0;
}

v1::CompileRequest SourceOf(const std::string& text) {
  v1::CompileRequest request;
  request.mutable_source()->set_name("kernel.cu");
  request.mutable_source()->set_text(text);
  request.mutable_options()->set_arch("sm_90a");
  return request;
}

class Submissions : public Submitted {
 protected:
  absl::Status Compile(const std::string& token, const v1::CompileRequest& request) {
    return Call(token, kCompileMethod, {request.SerializeAsString()}).status;
  }
  absl::Status Compile(const std::string& token, const std::string& text) {
    return Compile(token, SourceOf(text));
  }
  // Again and again where a busy machine has no time for it.
  absl::Status CompileAtLast(const std::string& text) {
    absl::Status status;
    Eventually([&] {
      status = Compile(kAnn, text);
      return DetailsOf(status).reason != "COMPILE_TIME";
    });
    return status;
  }
  // Whether anything can be compiled here; waits until the compiler is there.
  bool Compiles() {
    absl::Status status;
    Eventually([&] {
      status = CompileAtLast("__global__ void first() {}\n");
      return status.code() != absl::StatusCode::kUnavailable;
    });
    return status.ok();
  }
  // The server and all that it started, those after them included.
  std::vector<pid_t> Processes() const {
    std::vector<pid_t> all = server_->Workers();
    all.push_back(server_->pid());
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::ifstream children(absl::StrCat("/proc/", all[i], "/task/", all[i], "/children"));
      for (pid_t child = 0; children >> child;) {
        if (std::find(all.begin(), all.end(), child) == all.end()) all.push_back(child);
      }
    }
    return all;
  }
  double Pss() const {
    double sum = 0;
    for (const pid_t pid : Processes()) sum += PssOf(pid);
    return sum;
  }
  // Once it stands still for 2 s: the compiler's children warm up behind an answer.
  double SettledPss() const {
    double last = Pss();
    absl::Time moved = absl::Now();
    Eventually([&] {
      const double now = Pss();
      if (std::abs(now - last) >= 0.1 * kMiB) moved = absl::Now();
      last = now;
      return absl::Now() - moved >= absl::Seconds(2);
    });
    return last;
  }
  void ExpectSameCompiler() const {
    EXPECT_THAT(server_->Metrics(), HasSubstr("gridclock_compiler_restarts_total 0\n"));
  }
};

// ---- A thousand, 30 % of them faulty. ----

class Thousand : public Submissions {
 protected:
  // x^2 of five numbers, held against the catalogue's in every second one.
  void Right(const std::string& token, int i) {
    v1::RunRequest request = Square(token, {1, 2, 3, 4, 5});
    if (i % 2 == 0) {
      request.set_verify(true);
      request.mutable_reference()->set_kernel("square");
    }
    const Answer answer = Run(token, request);
    ASSERT_THAT(answer.status, IsOk()) << i;
    ASSERT_THAT(answer.Output(), ::testing::ElementsAre(1, 4, 9, 16, 25)) << i;
    ASSERT_EQ(answer.response.summary().verification().mismatches(), 0) << i;
  }
  // A source that nobody has compiled before.
  void Compiled(const std::string& token, int i) {
    const v1::CompileRequest request = SourceOf(
        absl::StrCat("__global__ void mine(float* x) { x[threadIdx.x] *= ", i + 2, "; }\n"));
    const RawResult result = Call(token, kCompileMethod, {request.SerializeAsString()});
    ASSERT_THAT(result.status, IsOk()) << i;
    v1::Module module;
    ASSERT_TRUE(module.ParseFromString(result.messages.at(0)));
    ASSERT_EQ(module.origin(), v1::Module::COMPILED) << i;
    ASSERT_EQ(module.entries_size(), 1) << i;
    v1::DeleteModuleRequest gone;
    gone.set_id(module.id());
    ASSERT_THAT(Call(token, kDeleteMethod, {gone.SerializeAsString()}).status, IsOk()) << i;
  }
  // Every fourth one compiles.
  void Good(const std::string& token, int i) {
    if (good_++ % 4 == 0 && compiles_) return Compiled(token, i);
    Right(token, i);
  }
  void DoesNotCompile(const std::string& token, int i) {
    const absl::Status status =
        Compile(token, absl::StrCat("__global__ void f() { nosuch_", i, "(); }\n"));
    ASSERT_THAT(status, StatusIs(compiles_ ? Code::kInvalidArgument : Code::kFailedPrecondition,
                                 HasSubstr(compiles_ ? absl::StrCat("nosuch_", i) : "")));
  }
  void WrongSignature(const std::string& token, int i) {
    v1::RunRequest request =
        Request(token, "square",
                "mine a: f32[N] -> y: f32[N] grid (1) block (32) params a, y, n: int = N", {1, 2});
    ASSERT_THAT(Run(token, request).status, StatusIs(Code::kInvalidArgument, HasSubstr("'a'")))
        << i;
  }
  void IllegalAddress(const std::string& token, int i) {
    const std::string native = absl::StrCat("crash_", i / 20);
    ASSERT_THAT(Run(token, Request(token, native, "crash grid (1) block (1)", {})).status,
                StatusIs(Code::kFailedPrecondition, HasSubstr("ended its worker")))
        << i;
  }
  void Endless(const std::string& token, int i) {
    v1::RunRequest request =
        Request(token, absl::StrCat("endless_", i / 20), "endless grid (1) block (1)", {});
    request.set_kernel_time_limit_seconds(0.02);
    const absl::Status status = Run(token, request).status;
    ASSERT_EQ(status.code(), Code::kDeadlineExceeded) << status;
    ASSERT_EQ(DetailsOf(status).reason, "KERNEL_TIME_LIMIT") << i;
  }
  void TooMuchSharedMemory(const std::string& token, int i) {
    const absl::Status status =
        Compile(token, absl::StrCat("__global__ void f(float* x) {\n  __shared__ float s[",
                                    300'000 + i, "];\n  s[threadIdx.x] = *x;\n  *x = s[0];\n}\n"));
    ASSERT_THAT(status, StatusIs(compiles_ ? Code::kInvalidArgument : Code::kFailedPrecondition,
                                 HasSubstr(compiles_ ? "shared" : "")));
  }
  void WrongResult(const std::string& token, int i) {
    v1::RunRequest request = Request(
        token, "add", "twice x: f32[N] -> y: f32[N] grid (1) block (32) params x, x, y, n: int = N",
        {1, 3, 5});
    request.set_verify(true);
    request.mutable_reference()->set_kernel("square");
    const Answer answer = Run(token, request);
    ASSERT_THAT(answer.status, IsOk()) << i;
    ASSERT_EQ(answer.response.summary().verification().mismatches(), 3) << i;
  }

  void One(int i) {
    const std::string token = i % 2 == 0 ? kAnn : kBob;
    switch (i % 20) {
      case 2:
        return DoesNotCompile(token, i);
      case 5:
        return WrongSignature(token, i);
      case 8:
        return IllegalAddress(token, i);
      case 11:
        return Endless(token, i);
      case 14:
        return TooMuchSharedMemory(token, i);
      case 17:
        return WrongResult(token, i);
      default:
        return Good(token, i);
    }
  }

  bool compiles_ = false;
  int good_ = 0;
};

TEST_F(Thousand, FromTwoPrincipalsAreAnsweredRightAndNothingIsKept) {
  ASSERT_NO_FATAL_FAILURE(StartServer({"--limit-compile-seconds=60"}));
  compiles_ = Compiles();
  double before = 0;
  absl::Time start = absl::Now();
  for (int i = 0; i < 1000; ++i) {
    if (i == 500) {
      const absl::Time paused = absl::Now();
      before = SettledPss();
      start += absl::Now() - paused;
    }
    ASSERT_NO_FATAL_FAILURE(One(i)) << "submission " << i;
  }
  const double took = absl::ToDoubleSeconds(absl::Now() - start), after = SettledPss();
  std::printf(
      "1,000 submissions in %.1f s, %.1f/s; PSS after 500: %.1f MiB, after 1,000: %.1f MiB\n", took,
      1000 / took, before / kMiB, after / kMiB);
  RecordProperty("submissions_per_second", absl::StrCat(1000 / took));
  ExpectSameCompiler();
  if (!compiles_) std::printf("nothing compiles here: 100 of them were refused for that\n");
  if (before == 0) GTEST_SKIP() << "who is not root cannot measure these processes";
  RecordProperty("pss_rise_mib", absl::StrCat((after - before) / kMiB));
  EXPECT_LT(after - before, 5 * kMiB);
}

// ---- Compile bombs, and files that are not the client's. ----

std::string Repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// `base`^`depth` copies of `leaf`, by macros.
std::string MacroBomb(const std::string& leaf, int base, int depth) {
  std::string out = absl::StrCat("#define A0 ", leaf, "\n");
  for (int i = 1; i <= depth; ++i) {
    absl::StrAppend(&out, "#define A", i, Repeated(absl::StrCat(" A", i - 1), base), "\n");
  }
  return out;
}

// Instances that each need two more.
std::string Doubling(const std::string& body, int depth) {
  return absl::StrCat("template <int N, int M> struct A { ", body,
                      " };\ntemplate <int M> struct A<0, M> { static const int v = 1; };\n"
                      "__device__ int x = A<",
                      depth, ", 0>::v;\n");
}

std::vector<v1::CompileRequest> Requests(const std::vector<std::string>& sources) {
  std::vector<v1::CompileRequest> out;
  out.reserve(sources.size());
  for (const std::string& source : sources) out.push_back(SourceOf(source));
  return out;
}

std::vector<v1::CompileRequest> Bombs() {
  std::vector<std::string> out;
  for (const int depth : {24, 26, 28}) {
    out.push_back(
        Doubling("static const int v = A<N - 1, M * 2>::v + A<N - 1, M * 2 + 1>::v;", depth));
  }
  for (const int depth : {9, 10, 12}) {
    out.push_back(MacroBomb("+1", 10, depth) +
                  absl::StrCat("__global__ void f(int* x) { *x = 0 A", depth, "; }\n"));
  }
  out.push_back(MacroBomb("int m;", 10, 9) + "struct S { A9 };\n__global__ void f() {}\n");
  for (const char* size : {"1u << 30", "1u << 31", "3u << 29"}) {
    out.push_back(absl::StrCat("__device__ int a[", size, "] = {1};\n__global__ void f() {}\n"));
  }
  for (const int depth : {8, 9, 10}) {
    out.push_back(
        absl::StrCat("template <int N> __device__ float g(float v) {\n",
                     Repeated("  v = v * g<N - 1>(v + 1.f);\n", 12),
                     "  return v;\n}\ntemplate <> __device__ float g<0>(float v) { return v "
                     "* v; }\n__global__ void f(float* x) { *x = g<",
                     depth, ">(*x); }\n"));
  }
  out.push_back(
      "template <int N> struct R { static const int v = R<N + 1>::v; };\n"
      "__device__ int x = R<0>::v;\n");
  out.push_back("template <class T> struct P { P<T*> next; };\n__device__ P<int> x;\n");
  out.push_back(
      "constexpr int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
      "__device__ int x = f(60);\n__global__ void g() { static_assert(f(60) > 0, \"\"); }\n");
  out.push_back(
      "constexpr int f(int n) { int s = 0; for (int i = 0; i < n; ++i) for (int j = 0; j < n; "
      "++j) s ^= j; return s; }\n__global__ void g() { static_assert(f(2000000) >= 0, \"\"); }\n");
  out.push_back(absl::StrCat("__global__ void f() {\n", Repeated("  nosuch();\n", 15'000), "}\n"));
  out.push_back("#include \"kernel.cu\"\n__global__ void f() { wrong; }\n");
  out.push_back(
      absl::StrCat("__global__ void f(int* x) { *x = ", std::string(100'000, '('), "1; }\n"));
  return Requests(out);
}

// By source and by options. None may find a byte of a file, and none may make one.
std::vector<v1::CompileRequest> Intrusions(const std::string& secret, const std::string& made) {
  std::vector<std::string> out;
  for (const std::string& path :
       {secret, std::string("/etc/passwd"), std::string("/etc/shadow"),
        std::string("/proc/self/environ"), std::string("/proc/self/maps"),
        std::string("/proc/self/mem"), std::string("/proc/self/fd/3"),
        std::string("/proc/1/cmdline"), std::string("/dev/stdin"), std::string("/dev/zero"),
        std::string("/dev/random"), absl::StrCat("../../../../../../../..", secret),
        absl::StrCat("//", secret), std::string("/"), absl::StrCat(secret, "/."),
        std::string("/sys/kernel/notes")}) {
    out.push_back(absl::StrCat("#include \"", path, "\"\n__global__ void f() {}\n"));
  }
  out.push_back(
      absl::StrCat("__asm__(\".incbin \\\"", secret, "\\\"\");\n__global__ void f() {}\n"));
  out.push_back(absl::StrCat("__global__ void f() { asm(\".include \\\"", secret, "\\\"\"); }\n"));
  out.push_back(
      absl::StrCat("#pragma GCC pch_preprocess \"", made, "\"\n__global__ void f() { wrong; }\n"));
  out.push_back(absl::StrCat("#embed \"", secret, "\"\n__global__ void f() {}\n"));
  std::vector<v1::CompileRequest> requests = Requests(out);
  const std::string include = absl::StrCat("\n#include \"", secret, "\"\n");
  v1::CompileRequest* request = &requests.emplace_back(SourceOf("int a = X;\n"));
  (*request->mutable_options()->mutable_defines())["X"] = "1" + include;
  request = &requests.emplace_back(SourceOf("int a = X;\n"));
  (*request->mutable_options()->mutable_defines())["X"] = absl::StrCat("1 --pre-include=", secret);
  request = &requests.emplace_back(SourceOf("__global__ void f() {}\n"));
  request->mutable_options()->set_arch(absl::StrCat("sm_90 --pre-include=", secret));
  request = &requests.emplace_back(SourceOf("#include __FILE__\n__global__ void f() { wrong; }\n"));
  request->mutable_source()->set_name(secret);
  request = &requests.emplace_back(SourceOf("template <int N> __global__ void f() {}\n"));
  request->add_name_expressions("f<1>);" + include);
  return requests;
}

class Attacks : public Submissions {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartServer());
    if (!Compiles()) GTEST_SKIP() << "nothing can be compiled here";
  }
  // The message, what rides on the status beside it, and the whole log of the compile.
  std::vector<std::string> AllSaid(const std::string& token, const absl::Status& status) {
    std::vector<std::string> said = {std::string(status.message())};
    for (const auto& [key, value] : DetailsOf(status).metadata) said.push_back(value);
    if (DetailsOf(status).reason != "COMPILE_FAILED") return said;
    v1::GetModuleRequest get;
    get.set_id(DetailsOf(status).metadata.at("module"));
    const RawResult result = Call(token, kGetMethod, {get.SerializeAsString()});
    EXPECT_THAT(result.status, IsOk());
    v1::Module module;
    EXPECT_TRUE(!result.messages.empty() && module.ParseFromString(result.messages[0]));
    EXPECT_NE(module.log(), "");
    said.push_back(module.DebugString());
    return said;
  }
  // The answer, within a second behind the limit of 5; what a busy machine kept waiting may try
  // again.
  absl::Status CompileInTime(const std::string& token, const v1::CompileRequest& request) {
    for (int tries = 5;; --tries) {
      const absl::Time start = absl::Now();
      const absl::Status status = Compile(token, request);
      const absl::Duration took = absl::Now() - start;
      if (took >= absl::Seconds(6) && tries > 1) continue;
      EXPECT_LT(took, absl::Seconds(6)) << request.source().text().substr(0, 300);
      longest_ = std::max(longest_, took);
      return status;
    }
  }
  // Open files and processes, of the server and of all that it started.
  std::size_t Held() const {
    const std::vector<pid_t> all = Processes();
    std::size_t held = all.size();
    for (const pid_t pid : all) {
      std::error_code error;
      // One that ends meanwhile is an error, and has none.
      std::filesystem::directory_iterator file(absl::StrCat("/proc/", pid, "/fd"), error);
      for (; !error && file != end(file); file.increment(error)) ++held;
    }
    return held;
  }
  // Each ends with such an error; says how long the longest took and what the server had more than
  // before, at its most.
  void AllAreRefused(const char* what, const std::vector<v1::CompileRequest>& requests,
                     bool (*is_right)(const absl::Status&)) {
    ASSERT_GE(requests.size(), 20U);
    const double others = SettledPss(), before = StatusOf(server_->pid(), "VmRSS");
    const std::size_t held = Held();
    std::ofstream(absl::StrCat("/proc/", server_->pid(), "/clear_refs")) << 5;  // Its peak is now.
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const std::string token = i % 2 == 0 ? kAnn : kBob;
      const absl::Status status = CompileInTime(token, requests[i]);
      EXPECT_TRUE(is_right(status))
          << what << " " << i << ": " << status << ", reason '" << DetailsOf(status).reason << "'\n"
          << requests[i].source().text().substr(0, 300);
      for (const std::string& said : AllSaid(token, status)) {
        EXPECT_THAT(said, Not(HasSubstr(kSecret))) << i;
        EXPECT_THAT(said, Not(HasSubstr("root:"))) << i;
      }
    }
    const double peak = StatusOf(server_->pid(), "VmHWM") - before, more = SettledPss() - others;
    std::printf(
        "%zu %s: the longest took %.2f s; the server had %.2f MiB more at its most, all "
        "have %.2f MiB more\n",
        requests.size(), what, absl::ToDoubleSeconds(longest_), peak / kMiB, more / kMiB);
    EXPECT_TRUE(Eventually([&] { return Held() <= held; })) << Held() << ", before " << held;
    EXPECT_THAT(CompileAtLast("__global__ void again() {}\n"), IsOk());
    ExpectSameCompiler();
    RecordProperty("longest_seconds", absl::StrCat(absl::ToDoubleSeconds(longest_)));
    if (others == 0) GTEST_SKIP() << "who is not root cannot measure these processes";
    RecordProperty("server_peak_mib", absl::StrCat(peak / kMiB));
    RecordProperty("all_more_mib", absl::StrCat(more / kMiB));
    EXPECT_LT(peak, 10 * kMiB);
    EXPECT_LT(more, 10 * kMiB);
  }
  absl::Duration longest_;
  static constexpr char kSecret[] = "canary-7f3a9c";
};

// The source is wrong, or took more than a compile may have.
bool IsEndOfABomb(const absl::Status& status) {
  switch (status.code()) {
    case Code::kInvalidArgument:
    case Code::kDeadlineExceeded:
      return true;
    case Code::kResourceExhausted:
      return absl::StartsWith(DetailsOf(status).reason, "COMPILE_");
    default:
      return false;
  }
}

TEST_F(Attacks, BombsAreErrors) {
  AllAreRefused("compile bombs", Bombs(), IsEndOfABomb);
}

TEST_F(Attacks, IntrusionsAreErrorsAndSeeNothing) {
  const std::string folder = NewFolder(), made = folder + "/made";
  const std::string secret = folder + "/secret";
  std::ofstream(secret) << kSecret << "\n";
  // What is looked for is where a log can show it.
  const absl::Status own = Compile(kAnn, absl::StrCat("#error ", kSecret, "\n"));
  EXPECT_THAT(AllSaid(kAnn, own), ::testing::Contains(HasSubstr(kSecret)));
  AllAreRefused("attempts to read or write files", Intrusions(secret, made),
                absl::IsInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(made));
}

}  // namespace
}  // namespace gridclock
