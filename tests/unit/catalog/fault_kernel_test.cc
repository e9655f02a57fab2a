// Each kind of `fault` ends the process in the way that its name says.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "kernels/device/cpu/tbb_threads.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/catalog/launch.h"

namespace gridclock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::KilledBySignal;

const Registry& TestKernels() {
  static const Registry registry = *Registry::Create(BuiltInKernels());
  return registry;
}

absl::Status Fault(const std::string& kind) {
  const RegisteredKernel* fault = TestKernels().Find("fault");
  if (fault == nullptr) return absl::NotFoundError("fault");
  GC_ASSIGN_OR_RETURN(const Binding binding, Bind(fault->spec, {}, {{"kind", kind}}));
  TbbThreads threads(1);
  return LaunchFastest(*fault, binding, {}, threads);
}

// No core files, which a process that dies on purpose need not leave.
void Die(const std::string& kind) {
  const rlimit none{};
  setrlimit(RLIMIT_CORE, &none);
  std::fprintf(stderr, "%s\n", Fault(kind).ToString().c_str());
  std::_Exit(0);
}

// Leaves this process some 600 MiB more than it has now.
void LimitMemory() {
  constexpr rlim_t kMore = rlim_t{600} << 20;
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + kMore;
  const rlimit limit{.rlim_cur = most, .rlim_max = most};
  setrlimit(RLIMIT_AS, &limit);
}

// SIGVTALRM after this process has computed for 50 ms.
void LimitTime() {
  const itimerval timer{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 50'000}};
  setitimer(ITIMER_VIRTUAL, &timer, nullptr);
}

TEST(FaultKernel, HasTheKindsThatAreTestedHere) {
  const RegisteredKernel* fault = TestKernels().Find("fault");
  ASSERT_NE(fault, nullptr);
  EXPECT_TRUE(fault->def.diagnostic);
  ASSERT_EQ(fault->spec.attributes.size(), 1U);
  EXPECT_THAT(fault->spec.attributes[0].words,
              ElementsAre("none", "segfault", "abort", "endless", "allocate", "illegal_address",
                          "misaligned", "assert", "trap", "wild_call"));
}

TEST(FaultKernel, DoesNothingWhereNoneIsAskedFor) {
  EXPECT_THAT(Fault("none"), IsOk());
}

TEST(FaultKernel, RefusesAKindThatItDoesNotHave) {
  EXPECT_THAT(Fault("flood"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("flood")));
}

TEST(FaultKernelDeathTest, DiesByTheSignalOfItsKind) {
  EXPECT_EXIT(Die("segfault"), KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(Die("abort"), KilledBySignal(SIGABRT), "");
  EXPECT_EXIT(Die("illegal_address"), KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(Die("misaligned"), KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(Die("trap"), KilledBySignal(SIGILL), "");
  EXPECT_EXIT(Die("wild_call"), KilledBySignal(SIGSEGV), "");
}

TEST(FaultKernelDeathTest, SaysWhichAssertionFailed) {
  EXPECT_EXIT(Die("assert"), KilledBySignal(SIGABRT), "assertion .* failed");
}

TEST(FaultKernelDeathTest, EndsNeverByItself) {
  EXPECT_EXIT((LimitTime(), Die("endless")), KilledBySignal(SIGVTALRM), "");
}

TEST(FaultKernelDeathTest, AllocatesUntilItIsRefused) {
  EXPECT_EXIT((LimitMemory(), Die("allocate")), testing::ExitedWithCode(0),
              "RESOURCE_EXHAUSTED: fault: no memory left");
}

}  // namespace
}  // namespace gridclock
