#include "client/cli/watch_files.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace gridclock::cli {
namespace {

TEST(FileWatch, SeesWritesAndReplacementsAndNothingElse) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/gridclock_watch_", getpid());
  std::filesystem::create_directories(folder);
  const std::string file = folder + "/k.cu";
  std::ofstream(file) << "one";
  ASSERT_OK_AND_ASSIGN(const auto watch, FileWatch::Create({file}));
  std::ofstream(folder + "/other.cu") << "x";
  ASSERT_OK_AND_ASSIGN(bool changed, watch->WaitForChange(absl::Milliseconds(100)));
  EXPECT_FALSE(changed);
  // A change between two waits is seen too.
  std::ofstream(file) << "two longer";
  ASSERT_OK_AND_ASSIGN(changed, watch->WaitForChange(absl::Seconds(10)));
  EXPECT_TRUE(changed);
  std::ofstream(folder + "/new") << "three, as editors do";
  std::filesystem::rename(folder + "/new", file);
  ASSERT_OK_AND_ASSIGN(changed, watch->WaitForChange(absl::Seconds(10)));
  EXPECT_TRUE(changed);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gridclock::cli
