// Code that was written to deceive: that it is right, or how fast it is. Each cheat must be found;
// its honest twin, which does the same work as one may, must pass the same check; and without the
// one defence that meets it the cheat must succeed, or this test would show nothing. Native
// functions of the test worker (kernels/worker/test_cheats.h) stand in for device code. What they
// have not got, lines that persist in an L2 and memory that blocks share, is of tests/gpu.
#include <algorithm>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gridclock/v1/modules.pb.h"
#include "proto/types/generator.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

constexpr char kLoadMethod[] = "/gridclock.v1.ModuleService/Load";
constexpr char kWords[] =
    "mine x: f32[N] -> y: f32[N]; known: f64 = 0 scratch t: f32[N + 1] grid (1) block (32) "
    "params x, y, n: int = N, known: float = known, t";
constexpr char kWordsInPlace[] =
    "mine x: f32[N] -> y: f32[N] over x; known: f64 = 0 grid (1) block (32) "
    "params x, y, n: int = N";
// They say that there is nothing to do.
constexpr char kIdleWords[] =
    "mine x: f32[N] -> y: f32[N]; known: f64 = 0 scratch t: f32[N + 1] bytes 0 flops 0 grid (1) "
    "block (32) params x, y, n: int = N, known: float = known, t";
constexpr int kLarge = 1 << 18;
constexpr std::uint64_t kSeed = 41;

// What a check says of a run.
enum class Verdict { kPasses, kDiffers, kForbidden, kImpossible, kFault, kTimeLimit };
enum class Values { kMade, kSent };

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order in which they are read.
struct Cheat {
  const char* name;
  const char* pretends;
  Verdict verdict;
  // The member of CheckDefences that meets it, or "scratch"; "": what cannot be switched off.
  const char* defence;
  const char* twin;  // The native that does what it does the honest way.
  Values values = Values::kMade;
  bool after_honest = false;  // An honest call on the same values came just before.
  const char* without = "";   // A defence that met it earlier, so that it comes to this one.
};

std::ostream& operator<<(std::ostream& out, const Cheat& cheat) {
  return out << cheat.name;
}

const Cheat kCheats[] = {
    // Results of earlier launches meet values that are new in each.
    {"memoise", "gives its first result for ever", Verdict::kDiffers, "fresh",
     "honest_remembering"},
    {"memoise_by_address", "knows a call by its pointers", Verdict::kDiffers, "fresh",
     "honest_remembering"},
    {"memoise_half", "computes one half of it", Verdict::kDiffers, "fresh", "honest_by_halves"},
    {"memoise_all_but_ends", "is right where spot checks look", Verdict::kDiffers, "fresh",
     "honest_remembering"},
    // What is not written meets outputs that are random before each launch.
    {"write_once", "leaves the outputs of an earlier launch", Verdict::kDiffers, "poison",
     "honest_every_other", Values::kSent},
    {"write_half", "leaves one half of them", Verdict::kDiffers, "poison", "honest_by_halves",
     Values::kSent},
    {"write_every_other", "leaves every other one", Verdict::kDiffers, "poison",
     "honest_every_other", Values::kSent},
    {"write_if_bytes", "works where it sees constant poison", Verdict::kDiffers, "poison",
     "honest_reading_outputs", Values::kSent},
    {"write_if_nan", "works where it sees NaN", Verdict::kDiffers, "poison",
     "honest_reading_outputs", Values::kSent},
    {"write_if_zero", "works where it sees zeros", Verdict::kDiffers, "poison",
     "honest_reading_outputs", Values::kSent},
    {"read_earlier_job", "gives what an earlier call left in memory", Verdict::kDiffers, "poison",
     "square", Values::kSent, true},
    // A time that no work fits in meets the work of the reference, whatever the words say.
    {"impossible", "is done before it began", Verdict::kImpossible, "roofline", "square",
     Values::kSent, true, "poison"},
    // Writes beside operands meet margins.
    {"write_behind", "overwrites its neighbour", Verdict::kForbidden, "margins",
     "honest_to_the_ends"},
    {"write_one_too_many", "forgets the end of its last block", Verdict::kForbidden, "margins",
     "honest_to_the_ends"},
    {"write_before", "overwrites the one before", Verdict::kForbidden, "margins",
     "honest_to_the_ends"},
    {"write_far_behind", "overwrites one farther away", Verdict::kForbidden, "margins",
     "honest_to_the_ends"},
    {"write_before_input", "overwrites what lies before an input", Verdict::kForbidden, "margins",
     "honest_to_the_ends"},
    {"keep_results_behind", "hides its results for later", Verdict::kForbidden, "margins",
     "honest_keeping_in_scratch"},
    // Writes to inputs meet sums of them.
    {"change_input", "changes an input", Verdict::kForbidden, "inputs", "honest_in_scratch"},
    {"square_in_input", "takes an input for scratch memory", Verdict::kForbidden, "inputs",
     "honest_in_scratch"},
    {"zero_last_input", "makes work easier for later launches", Verdict::kForbidden, "inputs",
     "honest_in_scratch"},
    {"swap_inputs", "changes their order", Verdict::kForbidden, "inputs", "honest_in_scratch"},
    // Work that is left out where it is timed meets checks of the timed launches.
    {"skip", "does nothing when timed", Verdict::kDiffers, "timed", "honest_looking"},
    {"half", "does half of it when timed", Verdict::kDiffers, "timed", "honest_by_halves"},
    {"zeros", "gives zeros when timed", Verdict::kDiffers, "timed", "honest_looking"},
    {"copy_input", "copies when timed", Verdict::kDiffers, "timed", "honest_by_scratch"},
    {"nan", "gives a NaN when timed", Verdict::kDiffers, "timed", "honest_looking"},
    {"lower_precision", "is bf16 when timed", Verdict::kDiffers, "timed", "honest_in_double"},
    {"one_wrong", "is a little wrong in one place when timed", Verdict::kDiffers, "timed",
     "honest_looking"},
    {"every_fourth", "works in every fourth timed launch", Verdict::kDiffers, "timed",
     "honest_counting"},
    {"leave_to_later", "leaves its work to the next launch", Verdict::kDiffers, "timed",
     "honest_counting"},
    // Scratch memory is overwritten between launches.
    {"memoise_in_scratch", "keeps its result in scratch memory", Verdict::kDiffers, "scratch",
     "honest_keeping_in_scratch", Values::kSent},
    {"uninitialised", "reads what it does not write", Verdict::kDiffers, "scratch",
     "honest_clearing"},
    {"uninitialised_end", "reads one element that it does not write", Verdict::kDiffers, "scratch",
     "honest_clearing"},
    // What ends or takes over its process gets no time.
    {"endless", "never ends when timed", Verdict::kTimeLimit, "", "honest_looking"},
    {"crash", "crashes when timed", Verdict::kFault, "", "honest_looking"},
    {"forge_steps", "says that launches were looked at", Verdict::kFault, "", "honest_printing"},
    {"forge_samples", "says how fast it was", Verdict::kFault, "", "honest_printing"},
};

bool HasFlag(const v1::RunResponse& response, v1::Flag flag) {
  const auto& flags = response.summary().flags();
  return std::count(flags.begin(), flags.end(), flag) != 0;
}

Verdict VerdictOf(const absl::Status& status, const v1::RunResponse& response) {
  if (status.code() == absl::StatusCode::kDeadlineExceeded) {
    EXPECT_THAT(status, ReasonIs("KERNEL_TIME_LIMIT"));
    return Verdict::kTimeLimit;
  }
  if (!status.ok()) {
    EXPECT_THAT(status, ReasonIs("KERNEL_FAULT"));
    return Verdict::kFault;
  }
  const v1::Verification& found = response.summary().verification();
  EXPECT_GT(found.checked(), 0);
  EXPECT_EQ(found.checked(), found.total());
  if (found.violations() > 0) return Verdict::kForbidden;
  if (found.mismatches() > 0) return Verdict::kDiffers;
  return HasFlag(response, v1::IMPOSSIBLE) ? Verdict::kImpossible : Verdict::kPasses;
}

// A server without some of its defences, started when it is first wanted.
class Servers {
 public:
  std::shared_ptr<grpc::Channel> Without(const std::set<std::string>& defences) {
    auto& server = servers_[defences];
    if (server == nullptr) {
      std::vector<std::string> flags = {"--allow-submit"};
      if (!defences.empty()) {
        flags.push_back(absl::StrCat("--without-defence=", absl::StrJoin(defences, ",")));
      }
      auto started = ServerProcess::Start({.flags = flags, .program = "gridclock-test-server"});
      EXPECT_THAT(started.status(), IsOk());
      if (!started.ok()) return nullptr;
      server = *std::move(started);
    }
    return Connect(server->address());
  }

 private:
  std::map<std::set<std::string>, std::unique_ptr<ServerProcess>> servers_;
};

// Of x^2 by native functions, measured and held against the catalogue's square.
class Measured : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { servers_ = new Servers; }
  static void TearDownTestSuite() {
    delete servers_;
    servers_ = nullptr;
  }

  // Sizes are of one call each: what a cheat remembers of another does not count.
  static int NewSize() {
    static int n = 256;
    return ++n;
  }

  Verdict Send(const std::shared_ptr<grpc::Channel>& channel, const v1::RunRequest& request) {
    const RawResult result = RawCall(channel, kRunMethod, {request.SerializeAsString()});
    v1::RunResponse response;
    if (result.status.ok()) response.ParseFromString(result.messages.at(0));
    last_ = response.summary().verification();
    unverified_ = HasFlag(response, v1::UNVERIFIED);
    return VerdictOf(result.status, response);
  }

  static v1::RunRequest Request(const std::shared_ptr<grpc::Channel>& channel,
                                const std::string& native, Values values, int n,
                                const char* words = kWords) {
    std::vector<float> x(n);
    const Generator randn = {.kind = GeneratorKind::kRandn, .seed = kSeed};
    Generate(randn, DType::kF32, 0, std::as_writable_bytes(std::span(x)));
    v1::RunRequest request = InlineRequest("", x);
    if (values == Values::kMade) {
      request.mutable_inputs(0)->clear_data();
      request.mutable_inputs(0)->mutable_generate()->set_kind(v1::Generator::RANDN);
      request.mutable_inputs(0)->mutable_generate()->set_seed(kSeed);
    }
    (*request.mutable_attributes())["known"].set_f64(x[0]);
    request.mutable_program()->set_words(words);
    v1::Program::Launch* launch = request.mutable_program()->add_launches();
    launch->set_module(Load(channel, native));
    launch->set_entry(native);
    request.set_verify(true);
    request.mutable_reference()->set_kernel("square");
    request.mutable_measure()->set_max_samples(12);
    request.mutable_measure()->set_min_samples(12);
    request.mutable_measure()->set_budget_seconds(30);
    request.mutable_measure()->set_warmup_limit_seconds(0.01);
    // Of the comparison too, which a busy machine must have time for.
    request.set_kernel_time_limit_seconds(native == "cheat_endless" ? 2 : 30);
    return request;
  }

  static std::string Load(const std::shared_ptr<grpc::Channel>& channel,
                          const std::string& native) {
    v1::LoadRequest request;
    request.set_test_native(native);
    RawResult result;
    // The first guest may be starting.
    Eventually([&] {
      result = RawCall(channel, kLoadMethod, {request.SerializeAsString()});
      return DetailsOf(result.status).reason != "WORKER_STARTING";
    });
    EXPECT_THAT(result.status, IsOk());
    v1::Module module;
    if (!result.messages.empty()) module.ParseFromString(result.messages[0]);
    return module.id();
  }

  v1::Verification last_;
  bool unverified_ = false;
  static Servers* servers_;
};

Servers* Measured::servers_ = nullptr;

// What honest kernels do too is no cheat.
using HonestCase = std::tuple<const char*, Values>;
class Honest : public Measured, public ::testing::WithParamInterface<HonestCase> {};

TEST_P(Honest, Passes) {
  const auto& [name, values] = GetParam();
  const auto channel = servers_->Without({});
  ASSERT_NE(channel, nullptr);
  const bool in_place = std::string(name) == "in_place";
  v1::RunRequest request = Request(channel, in_place ? "square" : absl::StrCat("honest_", name),
                                   values, NewSize(), in_place ? kWordsInPlace : kWords);
  if (in_place) request.add_in_place("y");
  EXPECT_EQ(Send(channel, request), Verdict::kPasses) << last_.DebugString();
  EXPECT_EQ(last_.launches(), values == Values::kMade ? 13 : 12);
}

class Integrity : public Measured, public ::testing::WithParamInterface<Cheat> {
 protected:
  Verdict Measure(const std::string& native, std::set<std::string> without = {}) {
    const Cheat& cheat = GetParam();
    if (*cheat.without != '\0') without.insert(cheat.without);
    const auto channel = servers_->Without(without);
    if (channel == nullptr) return Verdict::kFault;
    // It takes longer than nothing does only where it is large.
    const int n = cheat.verdict == Verdict::kImpossible ? kLarge : NewSize();
    const char* words = cheat.verdict == Verdict::kImpossible ? kIdleWords : kWords;
    if (cheat.after_honest) {
      EXPECT_EQ(Send(channel, Request(channel, "square", cheat.values, n)), Verdict::kPasses);
    }
    return Send(channel, Request(channel, native, cheat.values, n, words));
  }
};

TEST_P(Integrity, IsFoundAndItsHonestTwinPasses) {
  EXPECT_EQ(Measure(absl::StrCat("cheat_", GetParam().name)), GetParam().verdict)
      << GetParam().name << ", which " << GetParam().pretends << ":\n"
      << last_.DebugString();
  EXPECT_EQ(Measure(GetParam().twin), Verdict::kPasses) << GetParam().twin << ":\n"
                                                        << last_.DebugString();
  EXPECT_EQ(last_.launches(), GetParam().values == Values::kMade ? 13 : 12);
  EXPECT_EQ(last_.fresh_launches(), GetParam().values == Values::kMade ? 12 : 0);
  EXPECT_EQ(unverified_, GetParam().values == Values::kSent);
}

// What docs/submit.md says is not defended: inputs that are sent are the same in each launch and in
// each call, so that a result which was kept is right. So no time of such launches is vouched for.
class Remembered : public Integrity {};

TEST_P(Remembered, IsUnverifiedWhereInputsAreSentAsIsItsHonestTwin) {
  for (const std::string& native :
       {absl::StrCat("cheat_", GetParam().name), std::string(GetParam().twin)}) {
    EXPECT_EQ(Measure(native), Verdict::kPasses) << native << ": " << last_.DebugString();
    EXPECT_EQ(last_.launches(), 12);
    EXPECT_EQ(last_.fresh_launches(), 0);
    EXPECT_TRUE(unverified_) << native;
  }
}

class Undefended : public Integrity {};

TEST_P(Undefended, SucceedsWithoutTheDefenceThatMeetsIt) {
  EXPECT_EQ(Measure(absl::StrCat("cheat_", GetParam().name), {GetParam().defence}),
            Verdict::kPasses)
      << GetParam().name << " without " << GetParam().defence << ":\n"
      << last_.DebugString();
}

std::string NameOf(const ::testing::TestParamInfo<Cheat>& cheat) {
  return cheat.param.name;
}

std::vector<Cheat> WithDefences() {
  std::vector<Cheat> out;
  for (const Cheat& cheat : kCheats) {
    if (*cheat.defence != '\0') out.push_back(cheat);
  }
  return out;
}

// Those that keep results, on inputs that are sent.
std::vector<Cheat> Remembering() {
  std::vector<Cheat> out;
  for (Cheat cheat : kCheats) {
    if (std::string(cheat.defence) != "fresh") continue;
    cheat.values = Values::kSent;
    out.push_back(cheat);
  }
  return out;
}

std::string HonestName(const ::testing::TestParamInfo<HonestCase>& honest) {
  const auto& [name, values] = honest.param;
  return absl::StrCat(name, values == Values::kMade ? "_made" : "_sent");
}

INSTANTIATE_TEST_SUITE_P(Kernels, Honest,
                         ::testing::Combine(::testing::Values("by_scratch", "in_place", "printing",
                                                              "counting"),
                                            ::testing::Values(Values::kMade, Values::kSent)),
                         HonestName);
INSTANTIATE_TEST_SUITE_P(Cheats, Remembered, ::testing::ValuesIn(Remembering()), NameOf);
INSTANTIATE_TEST_SUITE_P(Cheats, Integrity, ::testing::ValuesIn(kCheats), NameOf);
INSTANTIATE_TEST_SUITE_P(Cheats, Undefended, ::testing::ValuesIn(WithDefences()), NameOf);

}  // namespace
}  // namespace gridclock
