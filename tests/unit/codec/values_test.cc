#include "proto/codec/values.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

v1::TensorSpec Spec(v1::DType dtype, std::vector<std::int64_t> dims,
                    std::vector<std::uint32_t> ranks = {}) {
  v1::TensorSpec spec;
  spec.set_dtype(dtype);
  for (const std::int64_t dim : dims) spec.add_dims(dim);
  for (const std::uint32_t rank : ranks) spec.add_ranks(rank);
  spec.set_is_list(!ranks.empty());
  return spec;
}

TEST(TensorSpecs, ScalarsAndEmptyTensorsAreLegal) {
  ASSERT_OK_AND_ASSIGN(const OperandValue scalar, Decode(Spec(v1::F32, {}), "x"));
  EXPECT_EQ(ToText(scalar.tensors[0]), "f32[]");
  ASSERT_OK_AND_ASSIGN(const OperandValue empty, Decode(Spec(v1::BF16, {3, 0}), "x"));
  EXPECT_EQ(ToText(empty.tensors[0]), "bf16[3,0]");
}

TEST(TensorSpecs, ListsAreSplitByTheirRanks) {
  ASSERT_OK_AND_ASSIGN(const OperandValue list, Decode(Spec(v1::F32, {2, 3, 5}, {2, 0, 1}), "x"));
  ASSERT_EQ(list.tensors.size(), 3u);
  EXPECT_EQ(ToText(list.tensors[0]), "f32[2,3]");
  EXPECT_EQ(ToText(list.tensors[1]), "f32[]");
  EXPECT_EQ(ToText(list.tensors[2]), "f32[5]");

  v1::TensorSpec again;
  Encode(list, &again);
  EXPECT_EQ(again.SerializeAsString(), Spec(v1::F32, {2, 3, 5}, {2, 0, 1}).SerializeAsString());
}

TEST(TensorSpecs, WhatCannotBeIsNamed) {
  EXPECT_THAT(Decode(Spec(v1::DTYPE_UNSPECIFIED, {1}), "x"),
              StatusIs(kInvalid, HasSubstr("x.dtype: want a dtype out of f64, ")));
  EXPECT_THAT(Decode(Spec(static_cast<v1::DType>(99), {1}), "x"),
              StatusIs(kInvalid, HasSubstr("; got number 99")));
  EXPECT_THAT(Decode(Spec(v1::F32, {-1}), "x"), StatusIs(kInvalid, HasSubstr("dimension 0 is -1")));
  EXPECT_THAT(Decode(Spec(v1::F32, {1, 1, 1, 1, 1, 1, 1, 1, 1}), "x"),
              StatusIs(kInvalid, HasSubstr("rank 9 is over the maximum of 8")));
  EXPECT_THAT(Decode(Spec(v1::F32, {1LL << 62, 4}), "x"),
              StatusIs(kInvalid, HasSubstr("overflows")));
  EXPECT_THAT(Decode(Spec(v1::U8, {(1LL << 62) + 1}), "x"),
              StatusIs(kInvalid, HasSubstr("overflows 2^62 bytes")));
  EXPECT_THAT(Decode(Spec(v1::F32, {2, 3}, {1}), "x"),
              StatusIs(kInvalid, HasSubstr("the ranks add up to 1 dimensions, but 2 came")));
  EXPECT_THAT(Decode(Spec(v1::F32, {2}, {0xFFFFFFFF, 2}), "x"), StatusIs(kInvalid, HasSubstr("")));
}

TEST(TensorSpecs, RanksBelongToLists) {
  v1::TensorSpec spec = Spec(v1::F32, {2}, {1});
  spec.set_is_list(false);
  EXPECT_THAT(Decode(spec, "x"),
              StatusIs(kInvalid, HasSubstr("x.ranks: want none but of a list (is_list), got 1")));
  v1::TensorSpec none = Spec(v1::F32, {});
  none.set_is_list(true);
  EXPECT_THAT(
      Decode(none, "x"),
      StatusIs(kInvalid, HasSubstr("x.ranks: want at least one tensor in a list, got none")));
}

TEST(TensorSpecs, ManyLargeTensorsOfAListDoNotWrapAround) {
  EXPECT_THAT(Decode(Spec(v1::U8, {1LL << 61, 1LL << 61, 1LL << 61, 1LL << 61}, {1, 1, 1, 1}), "x"),
              StatusIs(kInvalid, HasSubstr("overflow 2^62 bytes")));
}

TEST(Attributes, GoThereAndBack) {
  for (const AttributeValue& value :
       {AttributeValue(std::int64_t{-3}), AttributeValue(0.5), AttributeValue(true),
        AttributeValue(DType::kBF16), AttributeValue(std::string("tanh"))}) {
    v1::AttributeValue wire;
    Encode(value, &wire);
    ASSERT_OK_AND_ASSIGN(const AttributeValue back, Decode(wire, "a"));
    EXPECT_EQ(back, value);
  }
  EXPECT_THAT(Decode(v1::AttributeValue(), "a"),
              StatusIs(kInvalid, HasSubstr("a: want a value, got none")));
}

TEST(MeasureOptionsMessage, ZeroMeansTheDefault) {
  ASSERT_OK_AND_ASSIGN(const MeasureOptions options, Decode(v1::MeasureOptions()));
  EXPECT_EQ(options, MeasureOptions());
}

TEST(MeasureOptionsMessage, TheFewestSamplesAreTheDevicesUnlessTheyAreSaid) {
  v1::MeasureOptions wire;
  wire.set_max_samples(3);
  ASSERT_OK_AND_ASSIGN(const MeasureOptions unsaid, Decode(wire));
  EXPECT_EQ(unsaid.min_samples, 0);
  wire.set_min_samples(2);
  ASSERT_OK_AND_ASSIGN(const MeasureOptions said, Decode(wire));
  EXPECT_EQ(said.min_samples, 2);
  v1::MeasureOptions many;
  many.set_min_samples(1500);
  ASSERT_OK_AND_ASSIGN(const MeasureOptions alone, Decode(many));
  EXPECT_EQ(MostSamples(alone, /*on_gpu=*/false), 1500);
  wire.set_min_samples(4);
  EXPECT_THAT(Decode(wire), StatusIs(kInvalid, "measure.min_samples: want 1 to 3, got 4"));
  wire.set_min_samples(-1);
  EXPECT_THAT(Decode(wire), StatusIs(kInvalid, "measure.min_samples: want 1 to 3, got -1"));
}

TEST(MeasureOptionsMessage, OutOfBounds) {
  v1::MeasureOptions wire;
  wire.set_budget_seconds(std::nan(""));
  EXPECT_THAT(Decode(wire),
              StatusIs(kInvalid, "measure.budget_seconds: want 1e-06 to 600, got nan"));
  wire.set_budget_seconds(1);
  // More than a Duration holds is told as it came.
  wire.set_warmup_limit_seconds(9.3e18);
  EXPECT_THAT(Decode(wire),
              StatusIs(kInvalid, "measure.warmup_limit_seconds: want 0 to 60, got 9.3e+18"));
  wire.clear_warmup_limit_seconds();
  wire.set_confidence(std::nan(""));
  EXPECT_THAT(Decode(wire), StatusIs(kInvalid, HasSubstr("confidence")));
  wire.set_confidence(0.9);
  wire.set_method(static_cast<v1::Method>(77));
  EXPECT_THAT(Decode(wire), StatusIs(kInvalid, HasSubstr("measure.method: want 1 to 6, got 77")));
}

TEST(Flags, UnknownOnesAreLeftOutAndTheRestIsSorted) {
  google::protobuf::RepeatedField<int> wire;
  for (const int flag : {5, 2, 5, 99, 0}) wire.Add(flag);
  EXPECT_THAT(DecodeFlags(wire), ElementsAre(Flag::kImpossible, Flag::kNoisy));
}

TEST(Timings, GoThereAndBack) {
  Timing timing;
  timing.stop = StopReason::kInterval;
  timing.samples_ns = {1, 2, 3};
  timing.statistics.median = 2;
  timing.statistics.ci_low = 1;
  timing.roofline_basis = "bytes";
  timing.second = {.method = Method::kDeviceTime, .median_ns = 3, .slack_ns = 9};
  v1::Timing with, without;
  Encode(timing, true, &with);
  Encode(timing, false, &without);
  EXPECT_EQ(Decode(with).samples_ns, timing.samples_ns);
  EXPECT_EQ(Decode(with).statistics, timing.statistics);
  EXPECT_EQ(Decode(with).second, timing.second);
  EXPECT_EQ(Decode(without).samples_ns.size(), 0u);
}

TEST(Verifications, NameTheirMismatchesInOrder) {
  v1::Verification wire;
  Encode(
      Verification{.mismatches = 3, .first_mismatch = "y[0]", .more_mismatches = {"y[1]", "y[7]"}},
      &wire);
  EXPECT_THAT(wire.more_mismatches(), ElementsAre("y[1]", "y[7]"));
  const Verification back = Decode(wire);
  EXPECT_EQ(back.first_mismatch, "y[0]");
  EXPECT_THAT(back.more_mismatches, ElementsAre("y[1]", "y[7]"));
}

TEST(Summaries, HaveRatesOfTheMedian) {
  Job job;
  job.kernel = "square";
  Outcome outcome;
  outcome.timing.emplace();
  outcome.timing->statistics.median = 1000;
  outcome.timing->roofline_ns = 500;
  outcome.bytes = 4000;
  outcome.flops = 2000;
  v1::RunSummary summary;
  EncodeSummary(job, outcome, true, &summary);
  EXPECT_EQ(summary.timing().bytes_per_second(), 4e9);
  EXPECT_EQ(summary.timing().flops_per_second(), 2e9);
  EXPECT_EQ(summary.timing().roofline_fraction(), 0.5);
}

TEST(Words, GoThereAndBack) {
  for (const char* text :
       {"square x: T[*] -> y: T[*] over x where T in {f64, f32, f16, bf16}",
        "sum x: T[*A, N @ axis, *B] -> y: T[*A, *B]; axis: i64 = -1",
        "matmul a: T[*, ta ? [K, M] : [M, K]], b: T[*, tb ? [N, K] : [K, N]] -> c: T[*, M, N]; "
        "ta: bool = false, tb: bool = false flops 2*numel(c)*K",
        "transpose x: T[*A] -> y: T[*swap(A, i, j)]; i: i64 = -2, j: i64 = -1",
        "sgd inout p: f32[*]..., g: f32[*]...; lr: f64 = 1e-3 in [0, inf)",
        "cdist a: T[*, M, D], b: T[*, N, D] -> d: T[*, M, N]; p: f64 = 2 in {1, 2} "
        "where T in {f64, f32} flops 3*numel(d)*D"}) {
    ASSERT_OK_AND_ASSIGN(const KernelSpec spec, ParseKernelSpec(text));
    v1::KernelSpec wire;
    Encode(spec, &wire);
    ASSERT_OK_AND_ASSIGN(const KernelSpec back, Decode(wire));
    EXPECT_EQ(back, spec) << text;
  }
}

TEST(Words, ThatDoNotParseAreRefused) {
  ASSERT_OK_AND_ASSIGN(const KernelSpec spec, ParseKernelSpec("square x: f32[*] -> y: f32[*]"));
  v1::KernelSpec wire;
  Encode(spec, &wire);
  wire.mutable_clauses()->set_flops("2*(");
  EXPECT_THAT(Decode(wire), StatusIs(kInvalid, HasSubstr("clauses.flops")));
}

}  // namespace
}  // namespace gridclock
