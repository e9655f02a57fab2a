// The tests of a program are skipped where the CPU lacks the level that its kernels are built for.
#include <gtest/gtest.h>

#include "kernels/catalog/catalog.h"
#include "kernels/worker/cpu_level.h"

namespace gridclock {
namespace {

class CpuLevelNeeded : public testing::Environment {
 public:
  void SetUp() override {
    const std::string level = BuiltInLevel();
    if (ChooseLevel(FeaturesHere(), level.substr(level.rfind('-') + 1)) == nullptr) {
      GTEST_SKIP() << "this machine has no " << level;
    }
  }
};

const testing::Environment* const kNeeded = testing::AddGlobalTestEnvironment(new CpuLevelNeeded);

}  // namespace
}  // namespace gridclock
