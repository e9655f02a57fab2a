// Compiles as the compiler process does them, in children of the test.
#ifndef GRIDCLOCK_TESTS_UNIT_COMPILER_COMPILES_H_
#define GRIDCLOCK_TESTS_UNIT_COMPILER_COMPILES_H_

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "kernels/compiler/children.h"

namespace gridclock {

// Opened and warm once for the whole program.
inline const Tools& TheTools() {
  static const Tools* tools = [] {
    auto* made = new Tools;
    made->toolkit = FindToolkit("");
    made->landlock = LandlockVersion();
    auto nvrtc = Nvrtc::Open(made->toolkit.nvrtc);
    if (nvrtc.ok()) made->nvrtc = *std::move(nvrtc);
    if (!nvrtc.ok()) made->no_nvrtc = std::string(nvrtc.status().message());
    EXPECT_EQ(WarmUp(*made, ""), absl::OkStatus());
    return made;
  }();
  return *tools;
}

struct Compiled {
  worker::v1::CompilerAnswer answer;
  worker::v1::CompilerResult result;  // Of an answer that is DONE.
  absl::Duration took;
  const std::string& log() const { return result.module().log(); }
};

// Of what shall compile, however slow or busy the machine.
inline Children::Limits AmpleTime() {
  Children::Limits limits;
  limits.wall = absl::Minutes(1);
  limits.work.sandbox.cpu_seconds = 60;
  return limits;
}

inline Compiled Finish(const worker::v1::CompilerOrder& order, const Tools& tools = TheTools(),
                       const Children::Limits& limits = AmpleTime()) {
  const MonotonicClock clock;
  Children children(tools, limits, clock);
  const absl::Time start = clock.Now();
  children.Start(order);
  Compiled out;
  while (true) {
    std::vector<pollfd> polled;
    children.AddPolled(&polled);
    const absl::Duration left = children.NextDeadline() - clock.Now();
    poll(polled.data(), polled.size(),
         static_cast<int>(absl::ToInt64Milliseconds(std::max(left, absl::ZeroDuration()))) + 1);
    auto answers = children.TakeAnswers();
    if (answers.empty()) continue;
    out.answer = std::move(answers[0]);
    break;
  }
  out.took = clock.Now() - start;
  if (out.answer.end() == worker::v1::CompilerAnswer::DONE) {
    EXPECT_TRUE(out.result.ParseFromString(out.answer.result()));
  }
  return out;
}

inline worker::v1::CompilerOrder SourceOrder(const std::string& text) {
  worker::v1::CompilerOrder order;
  order.set_id(1);
  order.mutable_compile()->mutable_source()->set_name("kernel.cu");
  order.mutable_compile()->mutable_source()->set_text(text);
  order.mutable_compile()->mutable_options()->set_arch("sm_90a");
  return order;
}
inline Compiled CompileText(const std::string& text) {
  return Finish(SourceOrder(text));
}

// A machine without the toolkit shows nothing of it.
class WithNvrtc : public ::testing::Test {
 protected:
  void SetUp() override {
    if (TheTools().nvrtc == nullptr) GTEST_SKIP() << "no NVRTC here: " << TheTools().no_nvrtc;
  }
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_UNIT_COMPILER_COMPILES_H_
