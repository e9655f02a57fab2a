// The examples of W3C Trace Context level 1, and what it calls invalid.
#include "proto/types/trace.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/random/random.h"

namespace gridclock {
namespace {

using ::testing::MatchesRegex;

constexpr char kExample[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceParent, IsReadAndWritten) {
  const auto trace = ParseTraceParent(kExample);
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->trace_high, 0x4bf92f3577b34da6U);
  EXPECT_EQ(trace->trace_low, 0xa3ce929d0e0e4736U);
  EXPECT_EQ(trace->span, 0x00f067aa0ba902b7U);
  EXPECT_EQ(trace->flags, 1);
  EXPECT_EQ(TraceParent(*trace), kExample);
  EXPECT_EQ(TraceId(*trace), "4bf92f3577b34da6a3ce929d0e0e4736");
}

TEST(TraceParent, OfALaterVersionTheBeginningIsRead) {
  EXPECT_EQ(ParseTraceParent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what"),
            ParseTraceParent(kExample));
  EXPECT_EQ(ParseTraceParent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            ParseTraceParent(kExample));
}

TEST(TraceParent, WhatIsInvalidIsNone) {
  for (const std::string text : {
           "",
           "00",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
           "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
           "0g-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
           "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-\x1b[",
           "00-4bf92f3577b34da6a3ce929d0e0e47\n6-00f067aa0ba902b7-01",
       }) {
    EXPECT_EQ(ParseTraceParent(text), std::nullopt) << text;
  }
}

TEST(ContinueTrace, KeepsTheTraceAndTakesASpanOfItsOwn) {
  absl::BitGen random;
  const auto caller = ParseTraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff");
  const TraceContext own = ContinueTrace(caller, random);
  EXPECT_EQ(TraceId(own), TraceId(*caller));
  EXPECT_NE(own.span, caller->span);
  EXPECT_NE(own.span, 0U);
  EXPECT_EQ(own.flags, 1);  // No others are known.
}

TEST(ContinueTrace, WithoutACallerBeginsOne) {
  absl::BitGen random;
  const TraceContext one = ContinueTrace(std::nullopt, random);
  EXPECT_THAT(TraceParent(one), MatchesRegex("00-[0-9a-f]{32}-[0-9a-f]{16}-00"));
  EXPECT_TRUE(ParseTraceParent(TraceParent(one)).has_value());
  EXPECT_NE(TraceId(one), TraceId(ContinueTrace(std::nullopt, random)));
}

TEST(TraceId, OfNoTraceIsEmpty) {
  EXPECT_EQ(TraceId(TraceContext()), "");
}

}  // namespace
}  // namespace gridclock
