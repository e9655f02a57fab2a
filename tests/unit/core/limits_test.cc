#include "server/core/limits.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST(Limits, EachHasAnOwnNameAMemberAndWordsForPeople) {
  std::set<std::string> names;
  std::set<const double*> members;
  const Limits limits;
  for (const LimitSpec& spec : LimitSpecs()) {
    names.insert(std::string(spec.name));
    members.insert(&(limits.*spec.member));
    EXPECT_FALSE(spec.unit.empty()) << spec.name;
    EXPECT_FALSE(spec.help.empty()) << spec.name;
    EXPECT_LE(spec.least, limits.*spec.member) << spec.name;
    EXPECT_GE(spec.most, limits.*spec.member) << spec.name;
  }
  EXPECT_EQ(names.size(), 39u);
  EXPECT_EQ(members.size(), 39u);
}

// What clients have been told, and what other limits were chosen by. 0: of the machine.
TEST(Limits, ADefaultIsNotMovedByTheWay) {
  std::vector<std::pair<std::string, double>> defaults;
  const Limits limits;
  for (const LimitSpec& spec : LimitSpecs()) {
    defaults.emplace_back(spec.name, limits.*spec.member);
  }
  const std::vector<std::pair<std::string, double>> want = {{"message_bytes", 4'259'840},
                                                            {"control_bytes", 262'144},
                                                            {"header_bytes", 4'194'304},
                                                            {"chunk_bytes", 1'048'576},
                                                            {"inline_bytes", 1'048'576},
                                                            {"rpc_bytes", 0},
                                                            {"arena_bytes", 0},
                                                            {"client_arena_bytes", 0},
                                                            {"queue", 256},
                                                            {"client_queue", 128},
                                                            {"streams", 128},
                                                            {"connections", 1024},
                                                            {"peer_connections", 64},
                                                            {"queue_seconds", 60},
                                                            {"kernel_seconds", 30},
                                                            {"max_kernel_seconds", 600},
                                                            {"turn_seconds", 10},
                                                            {"submitted_kernel_seconds", 30},
                                                            {"stream_stall_seconds", 30},
                                                            {"stream_bytes_per_second", 65'536},
                                                            {"stream_memory_bytes", 268'435'456},
                                                            {"window_bytes", 1'048'576},
                                                            {"request_ids", 1024},
                                                            {"request_id_bytes", 67'108'864},
                                                            {"request_id_seconds", 60},
                                                            {"metadata_bytes", 8192},
                                                            {"source_bytes", 262'144},
                                                            {"code_bytes", 4'194'304},
                                                            {"compile_log_bytes", 16'384},
                                                            {"compile_seconds", 5},
                                                            {"compile_memory_bytes", 2'147'483'648},
                                                            {"compiles", 2},
                                                            {"compile_queue", 64},
                                                            {"client_modules", 1024},
                                                            {"module_memory_bytes", 1'073'741'824},
                                                            {"module_cache_bytes", 1'073'741'824},
                                                            {"guest_bytes", 0},
                                                            {"guest_idle_seconds", 60},
                                                            {"printed_bytes", 16'384}};
  EXPECT_EQ(defaults, want);
}

double LeastOf(absl::string_view name) {
  for (const LimitSpec& spec : LimitSpecs()) {
    if (spec.name == name) return spec.least;
  }
  return -1;
}

TEST(Limits, WhatAMessageMayHoldIsNeverTooLittleForACall) {
  EXPECT_EQ(LeastOf("message_bytes"), 16384);
  for (const char* part : {"chunk_bytes", "control_bytes", "header_bytes", "window_bytes"}) {
    EXPECT_EQ(LeastOf(part), 4096) << part;
  }
}

TEST(Limits, TheArenaIsHalfOfTheMemoryAndAtMost16GiB) {
  Limits small;
  ResolveDefaults(small, 4 * kGiB);
  EXPECT_EQ(small.arena_bytes, 2.0 * kGiB);
  EXPECT_EQ(small.client_arena_bytes, 1.0 * kGiB);
  EXPECT_EQ(small.rpc_bytes, 1.0 * kGiB);
  Limits large;
  ResolveDefaults(large, 1024 * kGiB);
  EXPECT_EQ(large.arena_bytes, 16.0 * kGiB);
}

TEST(Limits, WhatIsSetStays) {
  Limits limits;
  limits.arena_bytes = 8192;
  limits.client_arena_bytes = 4096;
  ResolveDefaults(limits, 4 * kGiB);
  EXPECT_EQ(limits.arena_bytes, 8192);
  EXPECT_EQ(limits.client_arena_bytes, 4096);
}

TEST(Limits, AGuestHasRoomForWhatAClientMayHaveInFlightAndForCode) {
  Limits limits;
  ResolveDefaults(limits, 4 * kGiB);
  EXPECT_EQ(limits.guest_bytes, 1.25 * kGiB);
  limits.guest_bytes = 10'000;
  ResolveDefaults(limits, 4 * kGiB);
  EXPECT_EQ(limits.guest_bytes, 8192);
}

TEST(Limits, GuestsOfManyDevicesArePromisedNoMoreThanThereIs) {
  Limits small;
  ResolveDefaults(small, 64 * kGiB, 8);  // An arena of 16 GiB, of which a client may have 8.
  EXPECT_EQ(small.guest_bytes, 2.0 * kGiB);
  Limits large;
  ResolveDefaults(large, 2048 * kGiB, 8);
  EXPECT_EQ(large.guest_bytes, 8.25 * kGiB);
  Limits asked;
  asked.guest_bytes = 4.0 * kGiB;
  ResolveDefaults(asked, 64 * kGiB, 8);
  EXPECT_EQ(asked.guest_bytes, 4.0 * kGiB);
}

TEST(Limits, GuestsOfManyDevicesArePromisedAsMuchAsOneAloneThoughItIsMoreThanAQuarter) {
  Limits limits;
  ResolveDefaults(limits, 8 * kGiB, 2);  // A client may have 2 of them: with code 2.25.
  EXPECT_EQ(limits.guest_bytes, 1.125 * kGiB);
}

TEST(Limits, AMessageMustHoldTheLongestChunk) {
  Limits limits;
  EXPECT_THAT(CheckLimits(limits), IsOk());
  limits.message_bytes = limits.chunk_bytes + 1024;
  EXPECT_THAT(CheckLimits(limits), IsOk());
  --limits.message_bytes;
  EXPECT_THAT(CheckLimits(limits),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--limit-message-bytes 1049599 is too short"),
                             HasSubstr("--limit-chunk-bytes 1048576"), HasSubstr("1049600"))));
}

TEST(Limits, MemoryIsLimitedInWholePages) {
  Limits limits;
  limits.arena_bytes = 20'000;
  limits.client_arena_bytes = 10'000;
  ResolveDefaults(limits, 4 * kGiB);
  EXPECT_EQ(limits.arena_bytes, 16'384);
  EXPECT_EQ(limits.client_arena_bytes, 8192);
  limits.client_arena_bytes = 100;
  ResolveDefaults(limits, 4 * kGiB);
  EXPECT_EQ(limits.client_arena_bytes, 4096);
}

}  // namespace
}  // namespace gridclock
