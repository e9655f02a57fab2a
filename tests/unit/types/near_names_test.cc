#include "proto/types/near_names.h"

#include <gtest/gtest.h>

namespace gridclock {
namespace {

TEST(NearNamesTest, TheNearestComeFirstAndAtMostThree) {
  EXPECT_EQ(NearestNames("gelu", {"relu", "square", "gelu"}), "'gelu', 'relu'");
  EXPECT_EQ(NearestNames("sum", {"sub", "sun", "sum2", "sump"}), "'sub', 'sum2', 'sump'");
}

TEST(NearNamesTest, WhatIsNoTypingErrorIsNearToNothing) {
  EXPECT_EQ(NearestNames("PORT", {"TOKEN", "SERVER"}), "");
  EXPECT_EQ(NearestNames("", {"TOKEN"}), "");
  EXPECT_EQ(NearestNames(std::string(300, 'x'), {"x"}), "");
}

TEST(IsOfAService, ByTheEndsThatKubernetesGives) {
  for (const char* name :
       {"TLS_PORT", "TLS_PORT_443_TCP_ADDR", "TLS_SERVICE_HOST", "TLS_SERVICE_PORT_GRPC"}) {
    EXPECT_TRUE(IsOfAService(name)) << name;
  }
  EXPECT_FALSE(IsOfAService("TLS_CERT"));
}

}  // namespace
}  // namespace gridclock
