// Children that stand by: an order finds one warm, and nothing that happens to them costs an order.
#include <algorithm>
#include <atomic>
#include <deque>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tests/support/fake_clock.h"
#include "tests/unit/compiler/compiles.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using worker::v1::CompilerAnswer;

constexpr char kKernel[] = "__global__ void f(float* x) { *x = 2; }\n";
// Takes all the time that a compile has: 2^26 types.
constexpr char kSlow[] =
    "template <int N, int M> struct A {\n"
    "  static const int v = A<N - 1, M * 2>::v + A<N - 1, M * 2 + 1>::v;\n};\n"
    "template <int M> struct A<0, M> { static const int v = 1; };\n"
    "__device__ int x = A<26, 0>::v;\n";

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::ifstream file(absl::StrCat("/proc/", parent, "/task/", parent, "/children"));
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}
std::vector<pid_t> OwnChildren() {
  return ChildrenOf(getpid());
}

// Of /proc/PID/stat, behind the name: the state, and the ticks of CPU time that it used.
struct Stat {
  char state = 'X';
  long ticks = 0;
};
Stat StatOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string text(std::istreambuf_iterator<char>(file), {});
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  Stat stat;
  std::string skipped;
  long user = 0, kernel = 0;
  fields >> stat.state;
  for (int i = 0; i < 10; ++i) fields >> skipped;
  fields >> user >> kernel;
  stat.ticks = user + kernel;
  return stat;
}

class Standbys : public WithNvrtc {
 protected:
  void SetUp() override {
    WithNvrtc::SetUp();
    if (IsSkipped()) return;
    std::ifstream children(absl::StrCat("/proc/self/task/", getpid(), "/children"));
    if (!children) GTEST_SKIP() << "this kernel does not tell whose children there are";
    limits_ = AmpleTime();
    limits_.cpus = 4;  // One child stands by.
  }
  // As the compiler process does it, for `limit` at most, by the machine's clock.
  void Turn(Children& children, absl::Duration limit) {
    children.Prepare();
    std::vector<pollfd> polled;
    children.AddPolled(&polled);
    const absl::Duration left =
        std::clamp(children.NextDeadline() - clock_.Now(), absl::ZeroDuration(), limit);
    poll(polled.data(), polled.size(), static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    ++turns_;
    for (CompilerAnswer& answer : children.TakeAnswers()) answers_.push_back(std::move(answer));
  }
  // The next one: several orders may end in one turn.
  CompilerAnswer Answer(Children& children) {
    while (answers_.empty()) Turn(children, absl::Seconds(1));
    CompilerAnswer answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }
  // Turns until it has what it needs and waits.
  void WaitUntilIdle(Children& children, pid_t child) {
    for (int same = 0, last = -1; same < 20;) {
      Turn(children, absl::Milliseconds(10));
      const Stat stat = StatOf(child);
      ASSERT_NE(stat.state, 'X') << "it is gone";
      same = stat.state == 'S' && stat.ticks == last ? same + 1 : 0;
      last = static_cast<int>(stat.ticks);
    }
  }

  MonotonicClock clock_;
  Children::Limits limits_;
  std::deque<CompilerAnswer> answers_;
  int turns_ = 0;
};

TEST_F(Standbys, AnOrderGoesToTheOneThatWaits) {
  Children children(TheTools(), limits_, clock_);
  children.Prepare();
  const std::vector<pid_t> before = OwnChildren();
  ASSERT_THAT(before, SizeIs(1));
  WaitUntilIdle(children, before[0]);
  children.Start(SourceOrder(kKernel));
  EXPECT_EQ(OwnChildren(), before) << "no other is forked for it";
  EXPECT_EQ(Answer(children).end(), CompilerAnswer::DONE);
  EXPECT_THAT(OwnChildren(), ElementsAre(Not(before[0])));
}

TEST_F(Standbys, AnOrderMayComeWhileItWarmsUp) {
  Children children(TheTools(), limits_, clock_);
  children.Prepare();
  children.Start(SourceOrder(kKernel));
  EXPECT_EQ(Answer(children).end(), CompilerAnswer::DONE);
}

TEST_F(Standbys, AnOrderThatFindsNoneIsDone) {
  Children children(TheTools(), limits_, clock_);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    auto order = SourceOrder(kKernel);
    order.set_id(id);
    children.Start(order);
  }
  EXPECT_THAT(OwnChildren(), SizeIs(3));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Answer(children).end(), CompilerAnswer::DONE);
}

// More than a link takes at once.
TEST_F(Standbys, ALongOrderArrivesWhole) {
  Children children(TheTools(), limits_, clock_);
  const std::string padding(3 << 20, ' ');
  for (const bool waits : {true, false}) {
    if (waits) children.Prepare();
    children.Start(SourceOrder(absl::StrCat("//", padding, "\n", kKernel)));
    const CompilerAnswer answer = Answer(children);
    ASSERT_EQ(answer.end(), CompilerAnswer::DONE);
    worker::v1::CompilerResult result;
    ASSERT_TRUE(result.ParseFromString(answer.result()));
    EXPECT_FALSE(result.failed()) << result.module().log();
  }
}

TEST_F(Standbys, OneThatIsKilledIsReplacedWithoutHasteOrHarm) {
  Children children(TheTools(), limits_, clock_);
  children.Prepare();
  const std::vector<pid_t> before = OwnChildren();
  ASSERT_THAT(before, SizeIs(1));
  WaitUntilIdle(children, before[0]);
  const absl::Time killed = clock_.Now();
  kill(before[0], SIGKILL);
  turns_ = 0;
  while (OwnChildren().empty() || OwnChildren()[0] == before[0]) Turn(children, absl::Seconds(2));
  EXPECT_GE(clock_.Now() - killed, absl::Milliseconds(900));
  EXPECT_LT(turns_, 10) << "it waited for nothing in between";
  // Nor does an order go to one that was killed.
  kill(OwnChildren()[0], SIGKILL);
  while (StatOf(OwnChildren()[0]).state != 'Z') {
  }
  children.Start(SourceOrder(kKernel));
  EXPECT_EQ(Answer(children).end(), CompilerAnswer::DONE);
}

TEST_F(Standbys, OneThatWaitsUsesNoTime) {
  Children children(TheTools(), limits_, clock_);
  children.Prepare();
  const std::vector<pid_t> before = OwnChildren();
  ASSERT_THAT(before, SizeIs(1));
  WaitUntilIdle(children, before[0]);
  EXPECT_EQ(children.NextDeadline(), absl::InfiniteFuture());
  std::vector<pollfd> polled;
  children.AddPolled(&polled);
  EXPECT_EQ(poll(polled.data(), polled.size(), 100), 0) << "nothing wakes the compiler";
}

TEST_F(Standbys, TheTimeOfACompileBeginsWithItsOrder) {
  FakeClock clock;
  limits_.wall = absl::Seconds(5);
  Children children(TheTools(), limits_, clock);
  children.Prepare();
  clock.Advance(absl::Hours(1));
  children.Start(SourceOrder(kKernel));
  children.Prepare();  // Another one stands by: until then that is due.
  EXPECT_EQ(children.NextDeadline(), clock.Now() + absl::Seconds(5));
  EXPECT_EQ(Answer(children).end(), CompilerAnswer::DONE);

  children.Prepare();
  children.Start(SourceOrder(kSlow));
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(Answer(children).end(), CompilerAnswer::TIME);
}

TEST_F(Standbys, NoneStandsByWhereCompilesNeedTheCpus) {
  limits_.cpus = 2;
  Children children(TheTools(), limits_, clock_);
  for (std::uint64_t id = 1; id <= 2; ++id) {
    auto order = SourceOrder(kSlow);
    order.set_id(id);
    children.Start(order);
  }
  children.Prepare();
  EXPECT_THAT(OwnChildren(), SizeIs(2));
  children.Cancel(1);
  EXPECT_EQ(Answer(children).end(), CompilerAnswer::CANCELLED);
  children.Prepare();
  EXPECT_THAT(OwnChildren(), SizeIs(2)) << "one compiles, one stands by";
}

TEST_F(Standbys, AQuarterOfTheCpusHasOneEach) {
  for (const auto& [cpus, standbys] :
       std::vector<std::pair<int, int>>{{1, 1}, {7, 1}, {12, 3}, {64, 4}}) {
    limits_.cpus = static_cast<std::size_t>(cpus);
    Children children(TheTools(), limits_, clock_);
    children.Prepare();
    EXPECT_THAT(OwnChildren(), SizeIs(standbys)) << cpus;
  }
  EXPECT_THAT(OwnChildren(), IsEmpty()) << "they end with who forked them";
}

TEST_F(Standbys, TheyEndWhereTheCompilerIsKilled) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t compiler = fork();
  if (compiler == 0) {
    Children children(TheTools(), limits_, clock_);
    children.Prepare();
    const pid_t standby = OwnChildren().at(0);
    if (write(ready[1], &standby, sizeof(standby)) == sizeof(standby)) pause();
    _exit(1);
  }
  pid_t standby = 0;
  ASSERT_EQ(read(ready[0], &standby, sizeof(standby)), static_cast<ssize_t>(sizeof(standby)));
  kill(compiler, SIGKILL);
  ASSERT_EQ(waitpid(compiler, nullptr, 0), compiler);
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  const auto lives = [&] {
    const char state = StatOf(standby).state;
    return state != 'X' && state != 'Z';
  };
  while (lives() && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_FALSE(lives());
  close(ready[0]);
  close(ready[1]);
}

// What the process holds of others is forgotten before the child's first byte of an order is there.
TEST_F(Standbys, OthersAreForgottenWhereverAChildBegins) {
  void* const shared = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* forgotten = new (shared) std::atomic<int>(0);
  Children children(TheTools(), limits_, clock_, [&] { ++*forgotten; });
  children.Start(SourceOrder(kKernel));
  EXPECT_EQ(Answer(children).end(), CompilerAnswer::DONE);
  EXPECT_GE(*forgotten, 1);
  children.Prepare();
  const std::vector<pid_t> before = OwnChildren();
  ASSERT_THAT(before, SizeIs(1));
  WaitUntilIdle(children, before[0]);
  EXPECT_EQ(*forgotten, 2);
  munmap(shared, sizeof(std::atomic<int>));
}

}  // namespace
}  // namespace gridclock
