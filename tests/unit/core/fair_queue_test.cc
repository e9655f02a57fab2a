#include "server/core/fair_queue.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridclock {
namespace {

using ::testing::ElementsAre;

std::vector<JobId> PopAll(FairQueue& queue) {
  std::vector<JobId> order;
  while (const auto next = queue.Next()) {
    order.push_back(*next);
    queue.Pop();
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
  EXPECT_THAT(PopAll(queue), ElementsAre(1, 4, 5, 2, 3));
  EXPECT_EQ(queue.size(), 0);
}

TEST(FairQueue, PassesOverWhatIsNotReadyAndKeepsItsPlace) {
  FairQueue queue;
  queue.Add("ann", 1);
  AddReady(queue, "ann", 2);
  AddReady(queue, "ann", 3);
  EXPECT_EQ(queue.Next(), 2u);
  queue.SetReady("ann", 1);
  EXPECT_THAT(PopAll(queue), ElementsAre(1, 2, 3));
}

TEST(FairQueue, WhatIsPutBackGoesFirstInItsOldOrder) {
  FairQueue queue;
  AddReady(queue, "ann", 7);
  queue.PutBack("bob", 3);
  queue.PutBack("ann", 2);
  EXPECT_EQ(queue.size(), 3);
  EXPECT_THAT(PopAll(queue), ElementsAre(2, 3, 7));
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
    AddReady(queue, "p" + std::to_string(id), id);
    queue.Pop();
  }
  EXPECT_EQ(queue.size(), 0);
  AddReady(queue, "ann", 2000);
  EXPECT_THAT(PopAll(queue), ElementsAre(2000));
}

}  // namespace
}  // namespace gridclock
