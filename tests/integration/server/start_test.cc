// What ends a server before it serves.
#include <filesystem>

#include <gtest/gtest.h>
#include <signal.h>

#include "absl/strings/str_cat.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

TEST(Start, E12_AServerThatIsToldToEndsWhereADeviceCannotBeServed) {
  ASSERT_OK_AND_ASSIGN(
      const auto bad, ServerProcess::Start({.flags = {"--devices=cpu", "--exit-on-error"},
                                            .environment = {"GRIDCLOCK_FAULT=die_before_hello:1:1"},
                                            .wait_until_ready = false}));
  // Each of its workers measures its device first.
  EXPECT_EQ(bad->Wait(absl::Seconds(120)), 1);
  EXPECT_THAT(bad->Log(),
              HasSubstr("--exit-on-error: device 'cpu': its workers end before they are ready"));
  ASSERT_OK_AND_ASSIGN(const auto good, ServerProcess::Start({.flags = {"--exit-on-error"}}));
  EXPECT_THAT(GoodCall(Connect(good->address())), IsOk());
  good->Signal(SIGTERM);
  EXPECT_EQ(good->Wait(), 0);
}

// Who waits for the file would wait for ever.
TEST(Start, AReadyFileThatCannotBeWrittenEndsTheStart) {
  const std::string folder = NewFolder();
  for (const std::string& path : {absl::StrCat(folder, "/no/such"), folder}) {
    EXPECT_THAT(ServerProcess::Start({.flags = {"--ready-file=" + path}}),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr(absl::StrCat("--ready-file: cannot write '", path, "': "))));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace gridclock
