// A copy of the launcher in a folder of the test's own, where the workers beside it are scripts.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <sys/wait.h>

#include "absl/strings/str_cat.h"
#include "kernels/worker/cpu_level.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Launcher : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = absl::StrCat(testing::TempDir(), "/launcher-XXXXXX");
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    std::filesystem::copy_file(LAUNCHER, folder_ / "worker");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void MakeWorker(const std::string& level) {
    const std::filesystem::path path = folder_ / absl::StrCat("worker-", level);
    std::ofstream(path) << "#!/bin/sh\necho " << level << " got \"$@\"\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  struct Ended {
    int code = -1;
    std::string printed;
  };
  Ended Run(const std::string& level, const std::string& arguments) const {
    const std::string command =
        absl::StrCat("GRIDCLOCK_CPU_LEVEL='", level, "' '", (folder_ / "worker").string(), "' ",
                     arguments, " 2>&1");
    FILE* pipe = popen(command.c_str(), "r");
    Ended ended;
    for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) ended.printed += static_cast<char>(c);
    ended.code = WEXITSTATUS(pclose(pipe));
    return ended;
  }

  std::filesystem::path folder_;
};

TEST_F(Launcher, BecomesTheWorkerOfTheLevelWithItsArguments) {
  MakeWorker("v2");
  MakeWorker("v3");
  MakeWorker("v4");
  EXPECT_EQ(Run("v2", "--device cpu").printed, "v2 got --device cpu\n");
  const Ended best = Run("", "--device cpu");
  EXPECT_EQ(best.code, 0);
  EXPECT_THAT(best.printed, StartsWith("v"));
  EXPECT_THAT(best.printed, HasSubstr(" got --device cpu\n"));
}

TEST_F(Launcher, TakesTheNextLowerLevelWhereOneIsLeftOut) {
  MakeWorker("v2");
  EXPECT_EQ(Run("", "--device cpu").printed, "v2 got --device cpu\n");
  MakeWorker("v3");
  const char* best = ChooseLevel(FeaturesHere(), "v3") == nullptr ? "v2" : "v3";
  EXPECT_EQ(Run("", "").printed, absl::StrCat(best, " got\n"));
}

TEST_F(Launcher, TakesNoOtherLevelThanTheOneAskedFor) {
  if (ChooseLevel(FeaturesHere(), "v3") == nullptr) GTEST_SKIP() << "this CPU has v2 alone";
  MakeWorker("v2");
  const Ended ended = Run("v3", "");
  EXPECT_EQ(ended.code, 127);
  EXPECT_THAT(ended.printed, HasSubstr("/worker-v3: No such file or directory"));
}

TEST_F(Launcher, RefusesALevelThatIsNone) {
  MakeWorker("v2");
  const Ended ended = Run("v9", "");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.printed, HasSubstr("want v2, v3 or v4, one that this CPU has; got 'v9'"));
}

TEST_F(Launcher, SaysWhichWorkerIsMissing) {
  const Ended ended = Run("v2", "");
  EXPECT_EQ(ended.code, 127);
  EXPECT_THAT(ended.printed, HasSubstr("cannot run /"));
  EXPECT_THAT(ended.printed, HasSubstr("/worker-v2: No such file or directory"));
}

}  // namespace
}  // namespace gridclock
