#include "server/core/fair_queue.h"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridclock {
namespace {

using ::testing::ElementsAre;

using Owners = std::map<JobId, std::string>;

std::vector<JobId> TakeAll(FairQueue& queue, const Owners& owners) {
  std::vector<JobId> order;
  while (const auto next = queue.Next()) {
    order.push_back(*next);
    queue.Take(owners.at(*next), *next);
  }
  return order;
}

void AddReady(FairQueue& queue, absl::string_view principal, JobId id) {
  queue.Add(principal, id);
  queue.SetReady(principal, id);
}

TEST(FairQueue, TakesTurnsBetweenPrincipalsAndIsFirstComeWithinOne) {
  FairQueue queue;
  for (const JobId id : {1, 2, 3}) AddReady(queue, "ann", id);
  AddReady(queue, "bob", 4);
  AddReady(queue, "cy", 5);
  EXPECT_EQ(queue.size(), 5);
  EXPECT_EQ(queue.size("ann"), 3);
  const Owners owners = {{1, "ann"}, {2, "ann"}, {3, "ann"}, {4, "bob"}, {5, "cy"}};
  EXPECT_THAT(TakeAll(queue, owners), ElementsAre(1, 4, 5, 2, 3));
  EXPECT_EQ(queue.size(), 0);
}

TEST(FairQueue, PassesOverWhatIsNotReadyAndKeepsItsPlace) {
  FairQueue queue;
  queue.Add("ann", 1);
  AddReady(queue, "ann", 2);
  AddReady(queue, "ann", 3);
  EXPECT_EQ(queue.Next(), 2u);
  queue.SetReady("ann", 1);
  EXPECT_THAT(TakeAll(queue, {{1, "ann"}, {2, "ann"}, {3, "ann"}}), ElementsAre(1, 2, 3));
}

TEST(FairQueue, WhatIsPutBackGoesFirstInItsOldOrder) {
  FairQueue queue;
  AddReady(queue, "ann", 7);
  queue.PutBack("bob", 3);
  queue.PutBack("ann", 2);
  EXPECT_EQ(queue.size(), 3);
  EXPECT_THAT(TakeAll(queue, {{2, "ann"}, {3, "bob"}, {7, "ann"}}), ElementsAre(2, 3, 7));
}

TEST(FairQueue, TakesOfOnePrincipalAlone) {
  FairQueue queue;
  AddReady(queue, "ann", 1);
  AddReady(queue, "bob", 2);
  AddReady(queue, "bob", 3);
  queue.PutBack("bob", 4);
  EXPECT_EQ(queue.NextOf("bob"), 4u);
  queue.Take("bob", 4);
  EXPECT_EQ(queue.NextOf("bob"), 2u);
  EXPECT_TRUE(queue.HasOthers("bob"));
  queue.Take("bob", 2);
  queue.Take("ann", 1);
  EXPECT_FALSE(queue.HasOthers("bob"));
  EXPECT_TRUE(queue.HasOthers("ann"));
  EXPECT_EQ(queue.NextOf("ann"), std::nullopt);
  EXPECT_EQ(queue.NextOf("cy"), std::nullopt);
  EXPECT_EQ(queue.size(), 1);
}

TEST(FairQueue, WhoIsChargedLetsOthersGoFirstButWaitsForNobodyWhoIsNotThere) {
  FairQueue queue;
  for (const JobId id : {1, 2}) AddReady(queue, "ann", id);
  for (const JobId id : {3, 4, 5, 6}) AddReady(queue, "bob", id);
  queue.Charge("ann", 3);
  const Owners owners = {{1, "ann"}, {2, "ann"}, {3, "bob"}, {4, "bob"}, {5, "bob"}, {6, "bob"}};
  EXPECT_THAT(TakeAll(queue, owners), ElementsAre(3, 4, 5, 1, 6, 2));
  queue.Charge("ann", 3);
  AddReady(queue, "ann", 7);
  EXPECT_EQ(queue.Next(), 7u);
}

TEST(FairQueue, WhatRunsAloneHasItsTurnAmongItsPrincipalsOwn) {
  FairQueue queue;
  queue.Add("ann", 1);
  queue.SetReady("ann", 1, true);
  AddReady(queue, "ann", 2);
  AddReady(queue, "bob", 3);
  EXPECT_EQ(queue.NextOf("ann"), 2u);
  EXPECT_EQ(queue.size("ann"), 2);
  EXPECT_THAT(TakeAll(queue, {{1, "ann"}, {2, "ann"}, {3, "bob"}}), ElementsAre(1, 3, 2));
  queue.Add("ann", 4);
  queue.SetReady("ann", 4, true);
  EXPECT_EQ(queue.NextOf("ann"), std::nullopt);
  EXPECT_TRUE(queue.HasOthers("ann"));
}

TEST(FairQueue, RemovesFromAnywhere) {
  FairQueue queue;
  queue.Add("ann", 1);
  AddReady(queue, "ann", 2);
  queue.PutBack("ann", 3);
  for (const JobId id : {1, 2, 3}) queue.Remove("ann", id);
  EXPECT_EQ(queue.size(), 0);
  EXPECT_EQ(queue.Next(), std::nullopt);
}

TEST(FairQueue, ForgetsPrincipalsThatCameAndWent) {
  FairQueue queue;
  for (JobId id = 1; id <= 1000; ++id) {
    const std::string principal = "p" + std::to_string(id);
    AddReady(queue, principal, id);
    queue.Take(principal, id);
  }
  EXPECT_EQ(queue.size(), 0);
  EXPECT_LE(queue.lines(), 64u);
  AddReady(queue, "ann", 2000);
  EXPECT_THAT(TakeAll(queue, {{2000, "ann"}}), ElementsAre(2000));
}

TEST(FairQueue, ForgetsPrincipalsThatWereChargedAndDoNotReturn) {
  FairQueue queue;
  for (JobId id = 1; id <= 1000; ++id) {
    const std::string principal = "p" + std::to_string(id);
    AddReady(queue, principal, id);
    queue.Take(principal, id);
    queue.Charge(principal, id == 1 ? 1'000'000 : 4);
    ASSERT_LE(queue.lines(), 64u + 6u) << id;
  }
  // Nobody else has had a turn since: the last one's charge counts, among ever so many lines.
  AddReady(queue, "p1000", 1001);
  AddReady(queue, "zoe", 1002);
  const Owners owners = {{1001, "p1000"}, {1002, "zoe"}};
  EXPECT_THAT(TakeAll(queue, owners), ElementsAre(1002, 1001));
}

TEST(FairQueue, AChargeIsKeptThoughItsPrincipalLeavesAmongManyOthers) {
  FairQueue queue;
  for (JobId id = 1; id <= 100; ++id) AddReady(queue, "p" + std::to_string(id), id);
  AddReady(queue, "ann", 101);
  queue.Charge("ann", 4);
  queue.Remove("ann", 101);
  AddReady(queue, "ann", 102);
  EXPECT_EQ(queue.Next(), 1u);
}

}  // namespace
}  // namespace gridclock
