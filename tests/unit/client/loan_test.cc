#include "client/cpp/loan.h"

#include <future>
#include <vector>

#include <gtest/gtest.h>

namespace gridclock {
namespace {

TEST(LoanTest, WithoutSlicesTheEndIsTheReturn) {
  bool returned = false;
  (new Loan([&] { returned = true; }))->End();
  EXPECT_TRUE(returned);
}

TEST(LoanTest, TheLastSliceIsTheReturn) {
  std::promise<void> returned;
  std::future<void> future = returned.get_future();
  const std::vector<std::byte> bytes(1 << 20);
  auto* loan = new Loan([&] { returned.set_value(); });
  {
    const grpc::Slice slice = loan->Lend(bytes);
    loan->End();
    EXPECT_EQ(future.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    EXPECT_EQ(static_cast<const void*>(slice.begin()), bytes.data());  // Not a copy.
  }
  EXPECT_EQ(future.wait_for(std::chrono::seconds(30)), std::future_status::ready);
}

}  // namespace
}  // namespace gridclock
