// Programs that are verified through a real server: held against kernels of the catalogue, values
// that the client sends, and other programs. Native functions of the test worker stand in for
// device code.
#include <algorithm>
#include <string>
#include <vector>

#include <xxhash.h>

#include "tests/integration/server/submitted_fixture.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Held against square of the catalogue, on values that the server makes.
v1::RunRequest Verified(v1::RunRequest request) {
  v1::Input* x = request.mutable_inputs(0);
  x->clear_data();
  x->mutable_generate()->set_kind(v1::Generator::RANDN);
  request.set_verify(true);
  request.mutable_reference()->set_kernel("square");
  return request;
}

// Held against values that the client sends.
v1::RunRequest Expecting(v1::RunRequest request, const std::vector<float>& y) {
  request.set_verify(true);
  request.mutable_reference();
  v1::Input& input = *request.add_inputs();
  input = InlineRequest("", y).inputs(0);
  input.set_name("expected.y");
  return request;
}

// The reference computes from what was sent, not from what the code left in its place.
TEST_F(Submitted, AResultInPlaceIsHeldAgainstTheInputAsItWasSent) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto mismatches = [&](v1::RunRequest request, const std::string& reference) {
    request.add_in_place("y");
    request.set_verify(true);
    request.mutable_reference()->set_kernel(reference);
    const Answer answer = Run(kAnn, request);
    EXPECT_THAT(answer.status, IsOk());
    return answer.response.summary().verification().mismatches();
  };
  // What scribble writes, 1e9, relu leaves alone.
  EXPECT_EQ(mismatches(Request(kAnn, "scribble",
                               "scribble x: f32[N] -> y: f32[N] over x grid (1) block (1) "
                               "params y, first: int64 = 0, many: int64 = N",
                               {-1, 2, 3}),
                       "relu"),
            3);
  EXPECT_EQ(mismatches(Request(kAnn, "square",
                               "square x: f32[N] -> y: f32[N] over x grid (1) block (1) "
                               "params x, y, n: int = N",
                               {-1, 2, 3}),
                       "square"),
            0);
}

TEST_F(Submitted, AVerifiedProgramIsHeldAgainstAKernelOfTheCatalogue) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request = Verified(Square(kAnn, std::vector<float>(1000)));
  Answer answer = Run(kAnn, request);
  ASSERT_THAT(answer.status, IsOk());
  const v1::Verification once = answer.response.summary().verification();
  EXPECT_EQ(once.mismatches() + once.violations(), 0) << once.DebugString();
  EXPECT_EQ(once.checked(), 2000);
  EXPECT_EQ(once.launches(), 2);
  EXPECT_EQ(once.fresh_launches(), 1);
  // What comes back is of the values that were asked for.
  v1::RunRequest plain = request;
  plain.clear_verify();
  plain.clear_reference();
  EXPECT_THAT(answer.Output(), SizeIs(1000));
  EXPECT_EQ(answer.Output(), Run(kAnn, plain).Output());

  request.mutable_measure()->set_max_samples(20);
  request.mutable_measure()->set_min_samples(20);
  request.mutable_measure()->set_budget_seconds(30);
  request.mutable_measure()->set_warmup_limit_seconds(0.01);
  answer = Run(kAnn, request);
  ASSERT_THAT(answer.status, IsOk());
  EXPECT_EQ(answer.response.summary().timing().samples_ns_size(), 20);
  EXPECT_EQ(answer.response.summary().verification().fresh_launches(), 20);
  EXPECT_EQ(answer.response.summary().verification().mismatches(), 0);
}

// Its words say that it has nothing to do; the kernel that it is held against knows better.
TEST_F(Submitted, NoWordsHideThatALaunchWasFasterThanTheDevice) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request =
      Verified(Request(kAnn, "scribble",
                       "nothing x: f32[N] -> y: f32[N] bytes 0 flops 0 grid (1) block (1) "
                       "params y, first: int64 = 0, many: int64 = 0",
                       {1}));
  request.mutable_inputs(0)->mutable_spec()->set_dims(0, 4 << 20);
  v1::OutputRequest& y = *request.add_outputs();
  y.set_name("y");
  y.set_sink(v1::OutputRequest::DISCARD);
  request.mutable_measure()->set_max_samples(4);
  request.mutable_measure()->set_budget_seconds(30);
  const Answer answer = Run(kAnn, request);
  ASSERT_THAT(answer.status, IsOk());
  const auto& flags = answer.response.summary().flags();
  EXPECT_EQ(std::count(flags.begin(), flags.end(), v1::IMPOSSIBLE), 1)
      << answer.response.summary().DebugString();
}

// What a sum of many numbers comes to is known before, within its tolerance.
TEST_F(Submitted, AResultThatAnotherLaunchCouldHaveHadIsUnverified) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto run = [&](std::int64_t elements) {
    v1::RunRequest request = Verified(Request(kAnn, "scribble",
                                              "mine x: f32[N] -> y: f32[] grid (1) block (1) "
                                              "params y, first: int64 = 0, many: int64 = 1",
                                              {1}));
    v1::Input& x = *request.mutable_inputs(0);
    x.mutable_spec()->set_dims(0, elements);
    x.mutable_generate()->set_kind(v1::Generator::UNIFORM);
    x.mutable_generate()->set_b(2e9 / static_cast<double>(elements));
    request.mutable_reference()->set_kernel("sum");
    const Answer answer = Run(kAnn, request);
    EXPECT_THAT(answer.status, IsOk());
    return answer.response.summary();
  };
  const auto is_unverified = [](const v1::RunSummary& summary) {
    const auto& flags = summary.flags();
    return std::count(flags.begin(), flags.end(), v1::UNVERIFIED) == 1;
  };
  const v1::RunSummary long_sum = run(1 << 24);
  EXPECT_EQ(long_sum.verification().mismatches(), 0) << long_sum.DebugString();
  EXPECT_TRUE(is_unverified(long_sum)) << long_sum.DebugString();
  EXPECT_GT(run(1000).verification().mismatches(), 0);

  v1::RunRequest honest = Verified(Square(kAnn, std::vector<float>(1000)));
  EXPECT_FALSE(is_unverified(Run(kAnn, honest).response.summary()));
}

// The defaults of its words are its author's: x to the power of 1 is x.
TEST_F(Submitted, AProgramDoesNotSayWhatItIsHeldAgainst) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request =
      Verified(Request(kAnn, "scribble",
                       "mine x: f32[N] -> y: f32[N] over x; exponent: f64 = 1 grid (1) block (1) "
                       "params y, first: int64 = 0, many: int64 = 0",
                       std::vector<float>(1000)));
  request.add_in_place("y");
  request.mutable_reference()->set_kernel("pow");
  const auto mismatches = [&] {
    const Answer answer = Run(kAnn, request);
    EXPECT_THAT(answer.status, IsOk());
    return answer.response.summary().verification().mismatches();
  };
  EXPECT_GT(mismatches(), 1000);
  (*request.mutable_attributes())["exponent"].set_f64(1);
  EXPECT_EQ(mismatches(), 0) << "its caller may say so";
}

TEST_F(Submitted, AVerifiedProgramThatIsWrongSaysHowWrong) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request = Verified(Request(
      kAnn, "add", "twice x: f32[N] -> y: f32[N] grid (1) block (32) params x, x, y, n: int = N",
      std::vector<float>(64)));
  const Answer answer = Run(kAnn, request);
  ASSERT_THAT(answer.status, IsOk());
  const v1::Verification& found = answer.response.summary().verification();
  EXPECT_GT(found.mismatches(), 100);
  EXPECT_GT(found.max_abs(), 0.1);
  EXPECT_GT(found.max_ulp(), 1e3);
  EXPECT_THAT(found.first_mismatch(), HasSubstr("launch 1 of 2: y[0]: want "));
  EXPECT_THAT(
      found.more_mismatches(),
      ElementsAre(HasSubstr("launch 1 of 2: y[1]: want "), HasSubstr("launch 1 of 2: y[2]: "),
                  HasSubstr("launch 1 of 2: y[3]: "), HasSubstr("launch 1 of 2: y[4]: ")));
}

TEST_F(Submitted, ExpectedValuesAreWhatAResultIsHeldAgainst) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const v1::RunRequest request = Square(kAnn);
  const Answer right = Run(kAnn, Expecting(request, {1, 4, 9}));
  ASSERT_THAT(right.status, IsOk());
  EXPECT_THAT(right.Output(), ElementsAre(1, 4, 9));
  EXPECT_EQ(right.response.summary().verification().mismatches(), 0);
  EXPECT_EQ(right.response.summary().verification().checked(), 3);
  EXPECT_EQ(right.response.summary().verification().fresh_launches(), 0);
  const Answer wrong = Run(kAnn, Expecting(request, {1, 4, 8}));
  ASSERT_THAT(wrong.status, IsOk());
  EXPECT_EQ(wrong.response.summary().verification().mismatches(), 1);
  EXPECT_THAT(wrong.response.summary().verification().first_mismatch(),
              HasSubstr("y[2]: want 8, got 9"));
  EXPECT_THAT(wrong.response.summary().verification().more_mismatches(), IsEmpty());
  const Answer all = Run(kAnn, Expecting(request, {2, 5, 8}));
  EXPECT_THAT(all.response.summary().verification().first_mismatch(),
              HasSubstr("y[0]: want 2, got 1"));
  EXPECT_THAT(all.response.summary().verification().more_mismatches(),
              ElementsAre(HasSubstr("y[1]: want 5, got 4"), HasSubstr("y[2]: want 8, got 9")));
  v1::RunRequest without = request;
  without.set_verify(true);
  without.mutable_reference();
  EXPECT_THAT(Run(kAnn, without).status,
              StatusIs(Code::kInvalidArgument, HasSubstr("'expected.y'")));
}

TEST_F(Submitted, ExpectedValuesGoToNoGuest) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const std::vector<float> marks(1000, 1e9F), other(1000, 1);
  // How many marks the code finds in all that it shares with the server. Of its output it writes
  // one element; the rest stays what the server has laid there.
  const auto found = [&](const std::vector<float>& x, const std::vector<float>& expected) {
    const v1::RunRequest request =
        Request(kAnn, "hunt_shared", "hunt x: f32[N] -> y: f32[N] grid (1) block (1) params y", x);
    const Answer answer = Run(kAnn, Expecting(request, expected));
    EXPECT_THAT(answer.status, IsOk());
    EXPECT_GT(answer.response.summary().verification().mismatches(), 0);
    return answer.Output<std::int32_t>().at(0);
  };
  EXPECT_EQ(found(other, marks), 0);
  EXPECT_GE(found(marks, other), 1000) << "the hunt finds nothing at all";
}

TEST_F(Submitted, ExpectedValuesMayComeAsChunks) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::StreamRunRequest header;
  *header.mutable_header() = Square(kAnn);
  header.mutable_header()->set_verify(true);
  header.mutable_header()->mutable_reference();
  v1::Input* expected = header.mutable_header()->add_inputs();
  *expected = header.header().inputs(0);
  expected->set_name("expected.y");
  expected->clear_data();
  expected->mutable_stream();
  v1::StreamRunRequest chunk;
  chunk.mutable_chunk()->set_name("expected.y");
  chunk.mutable_chunk()->set_data(InlineRequest("", {1, 4, 7}).inputs(0).data());
  const RawResult result =
      Call(kAnn, kStreamRunMethod, {header.SerializeAsString(), chunk.SerializeAsString()});
  ASSERT_THAT(result.status, IsOk());
  v1::Verification found;
  for (const std::string& message : result.messages) {
    v1::StreamRunResponse response;
    ASSERT_TRUE(response.ParseFromString(message));
    if (response.has_summary()) found = response.summary().verification();
  }
  EXPECT_THAT(found.first_mismatch(), HasSubstr("y[2]: want 7, got 9"));
}

TEST_F(Submitted, AReferenceThatDoesNotFitIsRefused) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request = Verified(Square(kAnn));
  request.mutable_reference()->set_kernel("sum");
  EXPECT_THAT(Run(kAnn, request).status,
              StatusIs(Code::kInvalidArgument, HasSubstr("'sum' gives f32[] of these inputs")));
  request.mutable_reference()->set_kernel("spin");
  EXPECT_THAT(Run(kAnn, request).status,
              StatusIs(Code::kInvalidArgument, HasSubstr("'spin' has 0 inputs")));
  request.clear_reference();
  EXPECT_THAT(Run(kAnn, request).status,
              StatusIs(Code::kInvalidArgument, HasSubstr("reference: want what")));
  EXPECT_THAT(CheckSquare(kAnn), IsOk());
}

// ---- Checksums. ----

// Of the values that were compared, which are those that the client asked for.
TEST_F(Submitted, AChecksumIsOfTheBytesThatAnInlineOutputHas) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request = Square(kAnn, {1, 2, 3});
  const std::string bytes = Run(kAnn, request).response.outputs(0).data();
  v1::OutputRequest* output = request.add_outputs();
  output->set_name("y");
  output->set_sink(v1::OutputRequest::CHECKSUM);
  const Answer plain = Run(kAnn, request);
  ASSERT_THAT(plain.status, IsOk());
  EXPECT_EQ(plain.response.outputs(0).checksum(), XXH3_64bits(bytes.data(), bytes.size()));
  request.set_verify(true);
  request.mutable_reference()->set_kernel("square");
  const Answer verified = Run(kAnn, request);
  ASSERT_THAT(verified.status, IsOk());
  EXPECT_EQ(verified.response.outputs(0).checksum(), XXH3_64bits(bytes.data(), bytes.size()));
}

// ---- Other programs. ----

class HeldAgainstAProgram : public Submitted {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(StartServer()); }
  // `native` of values that the server makes, 12 times, against another function.
  Answer RunAgainst(const std::string& native, const std::string& words,
                    const std::string& reference, const std::string& reference_words) {
    v1::RunRequest request = Request(kAnn, native, words, std::vector<float>(100));
    v1::Input* x = request.mutable_inputs(0);
    x->clear_data();
    x->mutable_generate()->set_kind(v1::Generator::RANDN);
    request.set_verify(true);
    v1::Program* program = request.mutable_reference()->mutable_program();
    program->set_words(reference_words);
    v1::Program::Launch* launch = program->add_launches();
    launch->set_module(Native(kAnn, reference));
    launch->set_entry(reference);
    request.mutable_measure()->set_max_samples(12);
    request.mutable_measure()->set_min_samples(12);
    request.mutable_measure()->set_budget_seconds(30);
    request.mutable_measure()->set_warmup_limit_seconds(0.01);
    request.set_kernel_time_limit_seconds(reference == "endless" ? 2 : 30);
    return Run(kAnn, request);
  }
  static constexpr char kTwice[] =
      "twice a: f32[N] -> b: f32[N] grid (1) block (32) params a, a, b, n: int = N";
};

TEST_F(HeldAgainstAProgram, EachLaunchIsComparedOnNewValues) {
  Answer answer = RunAgainst("square", kSquareWords, "square",
                             "other a: f32[N] -> b: f32[N] grid (1) block (32) "
                             "params a, b, n: int = N");
  ASSERT_THAT(answer.status, IsOk());
  const v1::Verification same = answer.response.summary().verification();
  EXPECT_EQ(same.mismatches(), 0) << same.DebugString();
  EXPECT_EQ(same.launches(), 13);
  EXPECT_EQ(same.fresh_launches(), 12);
  EXPECT_EQ(same.checked(), 1300);
  EXPECT_EQ(answer.response.summary().kernel(), "mine");
  EXPECT_EQ(answer.response.summary().timing().samples_ns_size(), 12);

  answer = RunAgainst("square", kSquareWords, "add", kTwice);
  ASSERT_THAT(answer.status, IsOk());
  const v1::Verification other = answer.response.summary().verification();
  EXPECT_GT(other.mismatches(), 1000);
  EXPECT_THAT(other.first_mismatch(), HasSubstr("launch 1 of 13: y[0]: want "));
}

TEST_F(HeldAgainstAProgram, ItRunsInAProcessOfItsOwn) {
  const std::string words = "who x: f32[N] -> y: i32[1] grid (1) block (1) params y";
  const Answer answer = RunAgainst("pid", words, "pid", words);
  ASSERT_THAT(answer.status, IsOk());
  // All that its launches gave is the number of another process.
  EXPECT_EQ(answer.response.summary().verification().mismatches(), 13);
  const Answer next = RunAgainst("square", kSquareWords, "square", kSquareWords);
  EXPECT_THAT(next.status, IsOk());
  EXPECT_EQ(next.response.summary().verification().mismatches(), 0);
}

TEST_F(HeldAgainstAProgram, OneThatFailsFailsTheCallAndSaysThatItWasTheReference) {
  const std::string words = "crash x: f32[N] -> y: f32[N] grid (1) block (1)";
  Answer answer = RunAgainst("square", kSquareWords, "crash", words);
  EXPECT_THAT(answer.status, StatusIs(Code::kFailedPrecondition,
                                      HasSubstr("the reference program ended its worker")));
  answer = RunAgainst("square", kSquareWords, "endless", words);
  EXPECT_THAT(answer.status, StatusIs(Code::kDeadlineExceeded, HasSubstr("kernel 'crash'")));
  EXPECT_THAT(CheckSquare(kAnn), IsOk());
}

TEST_F(HeldAgainstAProgram, WhatDoesNotFitIsRefused) {
  EXPECT_THAT(
      RunAgainst("square", kSquareWords, "square",
                 "other a: f32[N] -> b: f32[] grid (1) block (1) params a")
          .status,
      StatusIs(Code::kInvalidArgument,
               HasSubstr("'other' gives f32[] of these inputs; the program gives f32[100]")));
  EXPECT_THAT(RunAgainst("square", kSquareWords, "square", "other (").status,
              StatusIs(Code::kInvalidArgument, HasSubstr("reference")));
}

}  // namespace
}  // namespace gridclock
