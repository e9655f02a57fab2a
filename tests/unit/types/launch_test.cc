#include "proto/types/launch.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
using Sizes = std::array<std::uint32_t, 3>;
const DeviceTraits kH100 = {.kind = "cuda", .sm = 90};

ProgramLaunch LaunchOf(const char* entry, const char* words) {
  return {.module = "m", .entry = entry, .clauses = *ParseClauses(words)};
}

Program ProgramOf(const char* words, std::vector<ProgramLaunch> launches) {
  return {.words = *ParseKernelSpec(words), .launches = std::move(launches), .globals = {}};
}

Program ProgramOf(const char* words) {
  return ProgramOf(words, {LaunchOf("entry", "")});
}

struct Given {
  const char* name;
  const char* tensors;  // "f32[3]"; of a list "f32[3] f32[4]".
};

absl::StatusOr<BoundProgram> BindCall(const Program& program, const std::vector<Given>& inputs,
                                      const std::vector<NamedAttribute>& attributes = {},
                                      const DeviceTraits& device = kH100) {
  GC_ASSIGN_OR_RETURN(const Program complete, CompleteProgram(program));
  std::vector<NamedOperand> operands;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    OperandValue value{.is_list = program.words.inputs[i].is_list, .tensors = {}};
    const std::string text = inputs[i].tensors;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find(' ', at), text.size());
      value.tensors.push_back(*ParseTensorSpec(text.substr(at, end - at)));
      at = end + 1;
    }
    operands.push_back({inputs[i].name, std::move(value)});
  }
  GC_ASSIGN_OR_RETURN(const Binding binding, Bind(complete.words, operands, attributes));
  return BindProgram(complete, binding, device);
}

template <typename T>
T ValueOf(const BoundParam& param) {
  EXPECT_EQ(param.size, sizeof(T));
  T value;
  std::memcpy(&value, param.value.data(), sizeof(T));
  return value;
}

constexpr const char* kBlur =
    "blur x: f32[H, W] -> y: f32[H, W]; k: f64 = 0.5, flip: bool = true "
    "grid (ceil_div(W, 16), ceil_div(H, 16)) block (16, 16) shared 4*W "
    "params x align 16, y, width: int = W multiple 4, k: float = k, flip: bool = flip, null";

TEST(BindProgram, ClausesBecomeNumbers) {
  ASSERT_OK_AND_ASSIGN(const BoundProgram bound, BindCall(ProgramOf(kBlur), {{"x", "f32[30,20]"}}));

  ASSERT_THAT(bound.launches, SizeIs(1));
  const BoundLaunch& launch = bound.launches[0];
  EXPECT_EQ(launch.grid, (Sizes{2, 2, 1}));
  EXPECT_EQ(launch.block, (Sizes{16, 16, 1}));
  EXPECT_FALSE(launch.has_cluster());
  EXPECT_FALSE(launch.is_empty());
  EXPECT_EQ(launch.shared_bytes, 80U);
  ASSERT_THAT(launch.params, SizeIs(6));
  EXPECT_EQ(launch.params[0].side, BoundParam::Side::kInput);
  EXPECT_EQ(launch.params[1].side, BoundParam::Side::kOutput);
  EXPECT_EQ(ValueOf<std::int32_t>(launch.params[2]), 20);
  EXPECT_EQ(ValueOf<float>(launch.params[3]), 0.5F);
  EXPECT_EQ(ValueOf<std::uint8_t>(launch.params[4]), 1);
  EXPECT_EQ(launch.params[5].kind, ParamSpec::Kind::kNull);
  EXPECT_EQ(ValueOf<std::uint64_t>(launch.params[5]), 0U);
}

TEST(BindProgram, EachCTypeHasItsBytes) {
  const Program program = ProgramOf(
      "p x: f32[N] -> y: f32[N]; e: f64 = 0.25 grid (1) block (1) params "
      "a: int = 0 - N, b: unsigned = 3000000000 + N, c: int64 = 0 - N, d: uint64 = N, e: double = "
      "e, "
      "f: float = N, g: double = N, h: bool = N > 5");
  ASSERT_OK_AND_ASSIGN(const BoundProgram bound, BindCall(program, {{"x", "f32[5]"}}));
  const std::vector<BoundParam>& params = bound.launches[0].params;
  EXPECT_EQ(ValueOf<std::int32_t>(params[0]), -5);
  EXPECT_EQ(ValueOf<std::uint32_t>(params[1]), 3'000'000'005U);
  EXPECT_EQ(ValueOf<std::int64_t>(params[2]), -5);
  EXPECT_EQ(ValueOf<std::uint64_t>(params[3]), 5U);
  EXPECT_EQ(ValueOf<double>(params[4]), 0.25);
  EXPECT_EQ(ValueOf<float>(params[5]), 5.0F);
  EXPECT_EQ(ValueOf<double>(params[6]), 5.0);
  EXPECT_EQ(ValueOf<std::uint8_t>(params[7]), 0);
}

TEST(BindProgram, OperandsAreFoundOnTheirSide) {
  const Program program = ProgramOf(
      "step inout p: f32[N], g: f32[N] -> n: f32[N]; lr: f64 = 1 "
      "grid (1) block (32) scratch rows: f32[2*N] params rows, n, g, p");
  ASSERT_OK_AND_ASSIGN(const BoundProgram bound,
                       BindCall(program, {{"p", "f32[8]"}, {"g", "f32[8]"}}));
  ASSERT_THAT(bound.scratch, SizeIs(1));
  EXPECT_EQ(ToText(bound.scratch[0].tensors[0]), "f32[16]");
  const std::vector<BoundParam>& params = bound.launches[0].params;
  using Side = BoundParam::Side;
  EXPECT_EQ(std::pair(params[0].side, params[0].index), std::pair(Side::kScratch, std::size_t{0}));
  // After the `inout` input, which stands first among the outputs.
  EXPECT_EQ(std::pair(params[1].side, params[1].index), std::pair(Side::kOutput, std::size_t{1}));
  EXPECT_EQ(std::pair(params[2].side, params[2].index), std::pair(Side::kInput, std::size_t{1}));
  EXPECT_EQ(std::pair(params[3].side, params[3].index), std::pair(Side::kInput, std::size_t{0}));
}

TEST(BindProgram, ListsAreTablesSizesOrPointersByValue) {
  const Program program = ProgramOf(
      "add_all a: f32[*]... -> c: f32[*]... grid (count(a)) block (256) "
      "params table(a), table(c), sizes(a), pointers(c)");
  ASSERT_OK_AND_ASSIGN(const BoundProgram bound,
                       BindCall(program, {{"a", "f32[3] f32[4] f32[5]"}}));
  const std::vector<BoundParam>& params = bound.launches[0].params;
  EXPECT_EQ(bound.launches[0].grid, (Sizes{3, 1, 1}));
  EXPECT_EQ(params[0].kind, ParamSpec::Kind::kTable);
  EXPECT_EQ(params[0].size, 8U);
  EXPECT_EQ(params[2].kind, ParamSpec::Kind::kSizes);
  EXPECT_EQ(params[3].kind, ParamSpec::Kind::kPointers);
  EXPECT_EQ(params[3].size, 24U);
}

TEST(BindProgram, ALaunchTakesFromTheWordsWhatItDoesNotSay) {
  const Program program = ProgramOf(
      "two x: f32[N] -> y: f32[N] grid (N) block (64) scratch t: f32[N] params x, y",
      {LaunchOf("first", "params x, t"), LaunchOf("second", "block (32, 2) params t, y")});
  ASSERT_OK_AND_ASSIGN(const BoundProgram bound, BindCall(program, {{"x", "f32[7]"}}));
  ASSERT_THAT(bound.launches, SizeIs(2));
  EXPECT_EQ(bound.launches[0].grid, (Sizes{7, 1, 1}));
  EXPECT_EQ(bound.launches[0].block, (Sizes{64, 1, 1}));
  EXPECT_EQ(bound.launches[1].block, (Sizes{32, 2, 1}));
  EXPECT_EQ(bound.launches[1].params[0].side, BoundParam::Side::kScratch);
}

TEST(BindProgram, AGridWithoutBlocksIsEmpty) {
  const Program program =
      ProgramOf("p x: f32[N] -> y: f32[N] grid (ceil_div(N, 256)) block (256) params x, y");
  ASSERT_OK_AND_ASSIGN(const BoundProgram bound, BindCall(program, {{"x", "f32[0]"}}));
  EXPECT_TRUE(bound.launches[0].is_empty());
}

// A launch for a tail may have nothing to do; an output must have one that has.
TEST(BindProgram, AnOutputThatNoBlockWritesIsRefused) {
  const Program one = ProgramOf("p x: f32[N] -> y: f32[N] grid (N / 256) block (256) params x, y");
  EXPECT_THAT(BindCall(one, {{"x", "f32[255]"}}).status(),
              StatusIs(kInvalid, HasSubstr("nothing writes output 'y'")));
  EXPECT_THAT(BindCall(one, {{"x", "f32[256]"}}).status(), IsOk());
  const Program with_tail =
      ProgramOf("p x: f32[N] -> y: f32[N] block (256) params x, y",
                {LaunchOf("main", "grid (N / 256)"), LaunchOf("tail", "grid (min(1, N % 256))")});
  for (const char* x : {"f32[255]", "f32[256]", "f32[257]", "f32[0]"}) {
    EXPECT_THAT(BindCall(with_tail, {{"x", x}}).status(), IsOk()) << x;
  }
}

struct Bad {
  const char* words;
  const char* x;
  const char* message;
};
void PrintTo(const Bad& bad, std::ostream* out) {
  *out << bad.words << " of " << bad.x;
}

class BindProgramRefuses : public ::testing::TestWithParam<Bad> {};

TEST_P(BindProgramRefuses, A17_AndSaysWhy) {
  const absl::Status status = BindCall(ProgramOf(GetParam().words), {{"x", GetParam().x}}).status();
  EXPECT_THAT(status, StatusIs(kInvalid, HasSubstr(GetParam().message)));
  EXPECT_THAT(DetailsOf(status).field, HasSubstr("program."));
}

INSTANTIATE_TEST_SUITE_P(
    Limits, BindProgramRefuses,
    ::testing::Values(
        Bad{"p x: f32[N] -> y: f32[N] grid (1, N) block (1) params x", "f32[70000]",
            "launches[0]: grid.y is 70000, want 0 to 65535 ('N')"},
        Bad{"p x: f32[N] -> y: f32[N] grid (1, 1, 65536) block (1) params x", "f32[1]", "grid.z"},
        Bad{"p x: f32[N] -> y: f32[N] grid (2147483648) block (1) params x", "f32[1]", "grid.x"},
        Bad{"p x: f32[N] -> y: f32[N] grid (0 - 1) block (1) params x", "f32[1]", "grid.x is -1"},
        Bad{"p x: f32[N] -> y: f32[N] grid (1) block (N) params x", "f32[0]",
            "block.x is 0, want 1 to 1024"},
        Bad{"p x: f32[N] -> y: f32[N] grid (1) block (1, 1, 65) params x", "f32[1]", "block.z"},
        Bad{"p x: f32[N] -> y: f32[N] grid (1) block (64, 32) params x", "f32[1]",
            "block (64, 32, 1) has 2048 threads, at most 1024"},
        Bad{"p x: f32[N] -> y: f32[N] grid (16) block (1) cluster (16) params x", "f32[1]",
            "cluster.x is 16, want 1 to 8"},
        Bad{"p x: f32[N] -> y: f32[N] grid (8, 8) block (1) cluster (4, 4) params x", "f32[1]",
            "has 16 blocks"},
        Bad{"p x: f32[N] -> y: f32[N] grid (9) block (1) cluster (2) params x", "f32[1]",
            "not a multiple of cluster (2, 1, 1)"},
        Bad{"p x: f32[N] -> y: f32[N] grid (1) block (1) shared N params x", "f32[232449]",
            "shared is 232449 bytes, want 0 to 232448 ('N')"},
        Bad{"p x: f32[N] -> y: f32[N] grid (1 / (N - 1)) block (1) params x", "f32[1]",
            "division by zero"},
        Bad{"p x: f32[N] -> y: f32[N] grid (1) block (1) params n: int = N * 3000000000", "f32[1]",
            "'N*3000000000' is 3000000000, which is no int"},
        Bad{"p x: f32[N] -> y: f32[N] grid (1) block (1) params n: uint64 = 0 - N", "f32[1]",
            "is -1, which is no uint64"},
        Bad{"p x: f32[N] -> y: f32[N] grid (1) block (1) params n: int = N multiple 4", "f32[6]",
            "parameter 'n': 'N' is 6; it was promised to be a multiple of 4"},
        Bad{"p x: f32[N] -> y: f32[N] grid (1) block (1) params x align 128", "f32[1]",
            "promised to be aligned to 128"},
        Bad{"p x: f32[N] -> y: f32[N] when N % 4 == 0 grid (1) block (1) params x", "f32[3]",
            "takes only calls where N % 4 == 0"},
        Bad{"p x: f32[N] -> y: f32[N] when sm >= 100 grid (1) block (1) params x", "f32[3]",
            "takes only calls where sm >= 100"}));

TEST(BindProgram, A18_ParametersFitWhatADeviceTakes) {
  const Program program =
      ProgramOf("p a: f32[*]... -> c: f32[*]... grid (1) block (1) params pointers(a)");
  const auto bind = [&](std::size_t tensors, const DeviceTraits& device) {
    std::string list;
    for (std::size_t i = 0; i < tensors; ++i) list += list.empty() ? "f32[1]" : " f32[1]";
    return BindCall(program, {{"a", list.c_str()}}, {}, device).status();
  };
  EXPECT_THAT(bind(4095, kH100), IsOk());
  EXPECT_THAT(bind(4096, kH100),
              StatusIs(kInvalid, HasSubstr("take 32768 bytes, allowed are 32764")));
}

TEST(BindProgram, OldDevicesHaveNoClusters) {
  const Program program =
      ProgramOf("p x: f32[N] -> y: f32[N] grid (2) block (1) cluster (2) params x");
  EXPECT_THAT(BindCall(program, {{"x", "f32[1]"}}, {}, {.kind = "cuda", .sm = 80}),
              StatusIs(kInvalid, HasSubstr("cluster.x is 2, want 1 to 1")));
}

constexpr const char* kPlain = "p x: f32[N] -> y: f32[N] grid (1) block (1) params x, y";

TEST(CompleteProgram, CountsAreBounded) {
  EXPECT_THAT(CompleteProgram(ProgramOf(kPlain, {})),
              StatusIs(kInvalid, HasSubstr("want 1 to 64")));
  EXPECT_THAT(CompleteProgram(ProgramOf(kPlain, std::vector(64, LaunchOf("e", "")))), IsOk());
  EXPECT_THAT(CompleteProgram(ProgramOf(kPlain, std::vector(65, LaunchOf("e", "")))),
              StatusIs(kInvalid, HasSubstr("got 65")));
  Program many = ProgramOf(kPlain);
  many.globals.resize(65);
  EXPECT_THAT(CompleteProgram(many), StatusIs(kInvalid, HasSubstr("globals: want 0 to 64")));
}

// A launch has all that it takes from the words in memory of its own.
TEST(CompleteProgram, TermsOfAllLaunchesAreBounded) {
  std::string words = "p x: f32[N] -> y: f32[N] grid (1) block (1) params ";
  for (int i = 0; i < 256; ++i) absl::StrAppend(&words, i == 0 ? "" : ", ", "n: int = N");
  // 256 parameters, the grid and the block.
  EXPECT_THAT(CompleteProgram(ProgramOf(words.c_str(), std::vector(63, LaunchOf("e", "")))),
              IsOk());
  EXPECT_THAT(CompleteProgram(ProgramOf(words.c_str(), std::vector(64, LaunchOf("e", "")))),
              StatusIs(kInvalid, HasSubstr("want at most 16384 names, numbers and operators")));
}

double CpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The least of three, for what else the machine does.
double SecondsToComplete(const Program& program) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    const double start = CpuSeconds();
    EXPECT_THAT(CompleteProgram(program), IsOk());
    least = std::min(least, CpuSeconds() - start);
  }
  return least;
}

// 64 operands of 64 alternatives each: all that the limits allow.
TEST(CompleteProgram, ReadsTheWordsOnceForAllLaunches) {
  std::string words = "p ";
  for (int i = 0; i < 64; ++i) {
    absl::StrAppend(&words, i == 0 ? "" : ", ", "o", i, ": f32[A", i);
    for (int choice = 0; choice < 6; ++choice) absl::StrAppend(&words, ", 1==1?[A", i, "]:[B]");
    words += "]";
  }
  words += " grid (1) block (1)";
  const double of_one = SecondsToComplete(ProgramOf(words.c_str()));
  const double of_many =
      SecondsToComplete(ProgramOf(words.c_str(), std::vector(64, LaunchOf("e", ""))));
  EXPECT_LT(of_many, 8 * of_one);
}

// The dimensions before a choice belong to each of its 64 alternatives.
TEST(CompleteProgram, ReadsADimensionOnceForAllAlternatives) {
  const auto words = [](absl::string_view choice) {
    std::string text = "p x: f32[N], y: f32[";
    for (int dim = 0; dim < 9; ++dim) {
      for (int part = 0; part < 20; ++part) {
        absl::StrAppend(&text, part == 0 ? "(N" : "+(N");
        for (int term = 0; term < 20; ++term) text += "+N";
        text += ")";
      }
      text += ", ";
    }
    for (int i = 0; i < 6; ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", choice);
    return text + "] grid (1) block (1)";
  };
  const double of_one = SecondsToComplete(ProgramOf(words("1").c_str()));
  const double of_many = SecondsToComplete(ProgramOf(words("1==1?[1]:[2]").c_str()));
  EXPECT_LT(of_many, 8 * of_one);
}

TEST(CompleteProgram, ALaunchHasAModuleAnEntryAGridAndABlock) {
  Program program = ProgramOf(kPlain);
  program.launches[0].module.clear();
  EXPECT_THAT(CompleteProgram(program), StatusIs(kInvalid, HasSubstr("launches[0].module")));
  EXPECT_THAT(CompleteProgram(ProgramOf(kPlain, {LaunchOf("", "")})),
              StatusIs(kInvalid, HasSubstr("launches[0].entry")));
  EXPECT_THAT(CompleteProgram(ProgramOf("p x: f32[N] -> y: f32[N] grid (1)")),
              StatusIs(kInvalid, HasSubstr("launches[0]: no 'block'")));
  EXPECT_THAT(CompleteProgram(ProgramOf("p x: f32[N] -> y: f32[N] block (1)")),
              StatusIs(kInvalid, HasSubstr("launches[0]: no 'grid'")));
}

TEST(CompleteProgram, NamesOfALaunchAreThoseOfTheWords) {
  const auto complete = [](const char* launch) {
    return CompleteProgram(ProgramOf(kPlain, {LaunchOf("a", ""), LaunchOf("b", launch)}));
  };
  EXPECT_THAT(complete("params z"), StatusIs(kInvalid, HasSubstr("launches[1]: kernel 'p'")));
  EXPECT_THAT(complete("params z"), StatusIs(kInvalid, HasSubstr("no operand is called 'z'")));
  EXPECT_THAT(complete("grid (M)"), StatusIs(kInvalid, HasSubstr("unbound name 'M'")));
  EXPECT_THAT(complete("scratch t: f32[N]"), StatusIs(kInvalid, HasSubstr("'scratch' is of all")));
  EXPECT_THAT(complete("flops N"), StatusIs(kInvalid, HasSubstr("'flops' is of all")));
  EXPECT_EQ(DetailsOf(complete("flops N").status()).field, "program.launches[1].words");
}

TEST(CompleteProgram, AGlobalIsSetFromAnAttributeOrAnInput) {
  Program program = ProgramOf(
      "p x: f32[N], l: f32[*]... -> y: f32[N]; k: f64 = 1 "
      "grid (1) block (1) params x, y");
  const auto complete = [&](std::vector<ProgramGlobal> globals) {
    program.globals = std::move(globals);
    return CompleteProgram(program).status();
  };
  EXPECT_THAT(complete({{"m", "a", "x"}, {"m", "b", "k"}}), IsOk());
  EXPECT_THAT(complete({{"m", "a", "y"}}),
              StatusIs(kInvalid, HasSubstr("globals[0].from: want an attribute or an input of one "
                                           "tensor of the words, got 'y'")));
  EXPECT_THAT(complete({{"m", "a", "l"}}), StatusIs(kInvalid, HasSubstr("got 'l'")));
  EXPECT_THAT(complete({{"m", "", "x"}}), StatusIs(kInvalid, HasSubstr("globals[0].name")));
  EXPECT_THAT(
      complete({{"n", "a", "x"}}),
      StatusIs(kInvalid, HasSubstr("globals[0].module: want the module of a launch, got 'n'")));
  EXPECT_THAT(
      complete({{"m", "a", "x"}, {"m", "a", "k"}}),
      StatusIs(kInvalid, HasSubstr("globals[1].name: want each variable once, got 'a' again")));
}

ModuleEntry EntryOf(const std::vector<std::uint32_t>& sizes) {
  ModuleEntry entry;
  entry.name = "_Z4blurPf";
  entry.display = "blur";
  for (const std::uint32_t size : sizes) entry.parameters.push_back({.offset = 0, .size = size});
  return entry;
}

absl::Status CheckBlur(const ModuleEntry& entry) {
  const Program program = *CompleteProgram(ProgramOf(kBlur));
  const auto bound = BindCall(program, {{"x", "f32[32,32]"}});
  return CheckEntry(entry, program.launches[0].clauses.params, bound->launches[0],
                    LaunchLimitsOf(kH100));
}

TEST(CheckEntry, WordsGiveWhatTheEntryTakes) {
  EXPECT_THAT(CheckBlur(EntryOf({8, 8, 4, 4, 1, 8})), IsOk());
  EXPECT_THAT(CheckBlur(EntryOf({8, 8, 4, 4, 1})),
              StatusIs(kInvalid, HasSubstr("entry 'blur': it takes 5 parameters (of 8, 8, 4, 4, 1 "
                                           "bytes), the words give 6 (x, y, width: int, k: float, "
                                           "flip: bool, null)")));
  EXPECT_THAT(CheckBlur(EntryOf({8, 8, 8, 4, 1, 8})),
              StatusIs(kInvalid, HasSubstr("its parameter 2 takes 8 bytes, the words give 'width: "
                                           "int' of 4")));
}

// What the words give for an entry's only parameter, of that type.
absl::Status CheckType(const char* type, const char* param) {
  const Program program = *CompleteProgram(
      ProgramOf(absl::StrCat("p x: f32[N], i: i32[N], u: u8[N], l: f32[*]... -> y: f32[N] "
                             "grid (1) block (1) params ",
                             param)
                    .c_str()));
  const auto bound =
      BindCall(program, {{"x", "f32[8]"}, {"i", "i32[8]"}, {"u", "u8[8]"}, {"l", "f32[1]"}});
  ModuleEntry entry = EntryOf({static_cast<std::uint32_t>(bound->launches[0].params[0].size)});
  entry.parameters[0].type = type;
  return CheckEntry(entry, program.launches[0].clauses.params, bound->launches[0],
                    LaunchLimitsOf(kH100));
}

TEST(CheckEntry, NumbersAreOfTheEntrysTypes) {
  for (const auto& [type, param] : {std::pair{"float", "a: float = 2"},
                                    {"int", "n: int = N"},
                                    {"unsigned int", "n: int = N"},
                                    {"long long", "n: uint64 = N"},
                                    {"double", "a: double = 2"},
                                    {"Scale", "a: float = 2"},
                                    {"", "a: float = 2"}}) {
    EXPECT_THAT(CheckType(type, param), IsOk()) << type << " " << param;
  }
  EXPECT_THAT(CheckType("float", "a: int = 2"),
              StatusIs(kInvalid, HasSubstr("its parameter 0 is 'float', the words give 'a: int'; "
                                           "want 'NAME: float = VALUE'")));
  EXPECT_THAT(CheckType("int", "n: float = 3"), StatusIs(kInvalid, HasSubstr("is 'int'")));
  EXPECT_THAT(CheckType("double", "n: int64 = 3"), StatusIs(kInvalid, HasSubstr("is 'double'")));
  EXPECT_THAT(CheckType("long long", "x"), StatusIs(kInvalid, HasSubstr("want 'NAME: int64")));
  EXPECT_THAT(CheckType("double", "pointers(l)"), StatusIs(kInvalid, HasSubstr("is 'double'")));
}

TEST(CheckEntry, PointersAreToTheEntrysTypes) {
  for (const auto& [type, param] : {std::pair{"float const*", "x"},
                                    {"float*", "null"},
                                    {"float*", "u"},
                                    {"unsigned int*", "x"},
                                    {"float4*", "x"},
                                    {"void*", "x"},
                                    {"unsigned long", "x"},
                                    {"float const* const*", "table(l)"},
                                    {"unsigned long long*", "table(l)"},
                                    {"long const*", "sizes(l)"},
                                    {"Pointers", "pointers(l)"}}) {
    EXPECT_THAT(CheckType(type, param), IsOk()) << type << " " << param;
  }
  EXPECT_THAT(CheckType("double const*", "x"),
              StatusIs(kInvalid, HasSubstr("its parameter 0 is 'double const*', the words give 'x' "
                                           "of f32; want an operand of f64, or of an unsigned "
                                           "type")));
  for (const auto& [type, param] : {std::pair{"__half*", "x"},
                                    {"float*", "i"},
                                    {"long*", "i"},
                                    {"float**", "x"},
                                    {"float*", "table(l)"},
                                    {"int*", "sizes(l)"},
                                    {"float**", "sizes(l)"},
                                    {"float*", "pointers(l)"},
                                    {"float*", "n: int64 = 0"},
                                    {"void*", "n: uint64 = 0"}}) {
    EXPECT_THAT(CheckType(type, param), StatusIs(kInvalid, HasSubstr("the words give")))
        << type << " " << param;
  }
}

TEST(CheckEntry, BlocksAreWhatTheEntryTakes) {
  ModuleEntry entry = EntryOf({8, 8, 4, 4, 1, 8});
  entry.max_threads = 128;
  EXPECT_THAT(CheckBlur(entry), StatusIs(kInvalid, HasSubstr("at most 128 threads, the words give "
                                                             "256")));
  entry.max_threads = 1024;
  entry.required_block = {16, 8, 1};
  EXPECT_THAT(CheckBlur(entry), StatusIs(kInvalid, HasSubstr("requires blocks of (16, 8, 1)")));
  entry.required_block = {16, 16, 1};
  EXPECT_THAT(CheckBlur(entry), IsOk());
}

TEST(CheckEntry, SharedMemoryIsCountedWithTheEntrysOwn) {
  ModuleEntry entry = EntryOf({8, 8, 4, 4, 1, 8});
  entry.shared_bytes = 232448 - 128;
  EXPECT_THAT(CheckBlur(entry), IsOk());
  entry.shared_bytes += 1;
  EXPECT_THAT(CheckBlur(entry), StatusIs(kInvalid, HasSubstr("allowed are 232448 together")));
}

TEST(CheckEntry, AnArrayOfPointersMayBeLongerThanTheList) {
  const Program program = *CompleteProgram(
      ProgramOf("p a: f32[*]... -> c: f32[*]... grid (1) block (1) params pointers(a)"));
  const auto bound = BindCall(program, {{"a", "f32[1] f32[1] f32[1]"}});
  const auto check = [&](std::uint32_t size) {
    return CheckEntry(EntryOf({size}), program.launches[0].clauses.params, bound->launches[0],
                      LaunchLimitsOf(kH100));
  };
  EXPECT_THAT(check(24), IsOk());
  EXPECT_THAT(check(512), IsOk());
  EXPECT_THAT(check(16), StatusIs(kInvalid, HasSubstr("takes 16 bytes, the words give "
                                                      "'pointers(a)' of 24")));
}

}  // namespace
}  // namespace gridclock
