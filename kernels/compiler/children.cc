#include "kernels/compiler/children.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>
#include <utility>

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/frames.h"
#include "base/status.h"
#include "base/text.h"

namespace gridclock {
namespace {

using worker::v1::CompilerAnswer;
using worker::v1::CompilerOrder;

constexpr int kOutOfMemory = 97;  // Exit code.
constexpr int kLink = 3;          // Of a child.
// Until another child stands by, where one ended without an order or there was none to be had.
constexpr absl::Duration kPause = absl::Seconds(1);

CompilerAnswer Answer(std::uint64_t id, CompilerAnswer::End end, std::string detail) {
  CompilerAnswer answer;
  answer.set_id(id);
  answer.set_end(end);
  answer.set_detail(std::move(detail));
  return answer;
}

CompilerAnswer::End EndOf(const absl::Status& status) {
  if (status.ok()) return CompilerAnswer::DONE;
  if (absl::IsResourceExhausted(status)) return CompilerAnswer::OUTPUT;
  if (absl::IsFailedPrecondition(status)) return CompilerAnswer::NO_TOOL;
  return absl::IsAborted(status) ? CompilerAnswer::CRASHED : CompilerAnswer::INTERNAL;
}

// What a child says of itself, which its client may have written.
std::string DetailFrom(absl::string_view written) {
  constexpr std::size_t kMost = 1024;
  bool cut = false;
  return CutText(CleanText(written.substr(0, kMost)), kMost, &cut);
}

void WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t now = write(fd, bytes.data(), bytes.size());
    if (now <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(now));
  }
}

// Until whoever writes has no more.
std::string ReadAll(int fd) {
  std::string bytes;
  std::array<char, 64 * 1024> buffer;
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return bytes;
    bytes.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

void KillGroup(pid_t leader) {
  kill(-leader, SIGKILL);
  kill(leader, SIGKILL);
}

void EndNow(pid_t child) {
  KillGroup(child);
  waitpid(child, nullptr, 0);
}

// Also where its other end is closed.
bool IsReadable(int fd) {
  pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&polled, 1, 0) > 0;
}

// The limit of CPU time is of the process: what was used before the order is no part of it.
std::uint32_t CpuSecondsUsed() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const absl::Duration cpu =
      absl::DurationFromTimeval(used.ru_utime) + absl::DurationFromTimeval(used.ru_stime);
  return static_cast<std::uint32_t>(absl::ToInt64Seconds(cpu + absl::Milliseconds(500)));
}

// Where earlier reads had their buffers.
[[gnu::noinline]] void WipeStack() {
  std::array<char, 256 * 1024> below;
  explicit_bzero(below.data(), below.size());
}

// What is freed is given back to nobody: an order finds the pages that the warm-up had, and has no
// page fault for each.
void KeepPages() {
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // The most that there is.
}

// Of all descriptors the child keeps its link; what its compiler prints goes nowhere.
bool KeepOnly(int link) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return false;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
  if (link != kLink && dup2(link, kLink) < 0) return false;
  fcntl(kLink, F_SETFD, FD_CLOEXEC);
  return syscall(SYS_close_range, kLink + 1, UINT_MAX, 0) == 0;
}

}  // namespace

Children::~Children() {
  for (const auto& [id, child] : children_) EndNow(child.pid);
  for (const Child& child : standbys_) EndNow(child.pid);
}

void Children::ForgetOthers() {
  for (auto& [id, child] : children_) {
    std::string().swap(child.unsent);
    std::string().swap(child.written);
  }
  forget_others_();
  WipeStack();
}

void Children::RunChild(int link) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!KeepOnly(link)) _exit(1);
  std::set_new_handler([] { _exit(kOutOfMemory); });
  ForgetOthers();
  KeepPages();
  // An order that is there already would only wait for it. A failure is the next order's to tell.
  // Whose architecture NVRTC does not know shall cost others nothing.
  if (!IsReadable(kLink) && !WarmUp(tools_, last_arch_).ok()) WarmUp(tools_, "").IgnoreError();
  CompilerOrder order;
  if (!order.ParseFromString(ReadAll(kLink))) _exit(1);
  WorkLimits limits = limits_.work;
  limits.sandbox.cpu_seconds += CpuSecondsUsed();
  const auto result = DoWork(order, tools_, limits);
  std::string bytes(1, static_cast<char>(EndOf(result.status())));
  if (result.ok()) {
    result->AppendToString(&bytes);
  } else {
    absl::StrAppend(&bytes, result.status().message());
  }
  WriteAll(kLink, bytes);
  _exit(0);
}

absl::StatusOr<Children::Child> Children::Fork(std::string order) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoToStatus(errno, "no link to a process for the compile");
  }
  Child child{.link = UniqueFd(ends[0]), .unsent = std::move(order)};
  const UniqueFd theirs(ends[1]);
  fcntl(child.link.get(), F_SETFL, O_NONBLOCK);
  if (!child.unsent.empty()) SendOrder(child);
  child.pid = fork();
  if (child.pid == 0) RunChild(theirs.get());
  if (child.pid < 0) return ErrnoToStatus(errno, "no process for the compile");
  setpgid(child.pid, child.pid);  // Whoever comes first; its tools are of the group too.
  return child;
}

// They take no CPU that compiles need: where these come without end, none stands by.
std::size_t Children::StandbysWanted() const {
  const std::size_t most = std::clamp<std::size_t>(limits_.cpus / 4, 1, 4);
  return std::min(most, limits_.cpus - std::min(limits_.cpus, children_.size()));
}

void Children::DropDeadStandbys() {
  const std::size_t dropped = std::erase_if(standbys_, [](const Child& child) {
    if (!IsReadable(child.link.get())) return false;  // Without an order it has nothing to say.
    EndNow(child.pid);
    return true;
  });
  if (dropped > 0) next_standby_ = clock_.Now() + kPause;
}

void Children::Prepare() {
  DropDeadStandbys();
  if (clock_.Now() < next_standby_) return;
  while (standbys_.size() < StandbysWanted()) {
    absl::StatusOr<Child> child = Fork("");
    if (!child.ok()) {
      next_standby_ = clock_.Now() + kPause;
      return;
    }
    standbys_.push_back(*std::move(child));
  }
}

absl::StatusOr<Children::Child> Children::ChildFor(const CompilerOrder& order) {
  DropDeadStandbys();
  if (standbys_.empty()) return Fork(order.SerializeAsString());
  Child child = std::move(standbys_.front());
  standbys_.pop_front();
  child.unsent = order.SerializeAsString();
  SendOrder(child);
  return child;
}

void Children::Start(const CompilerOrder& order) {
  if (order.has_compile()) last_arch_ = order.compile().options().arch();
  const absl::Time deadline = clock_.Now() + limits_.wall;
  absl::StatusOr<Child> child = ChildFor(order);
  if (!child.ok()) {
    unstarted_.push_back(
        Answer(order.id(), CompilerAnswer::INTERNAL, std::string(child.status().message())));
    return;
  }
  child->deadline = deadline;
  children_.emplace(order.id(), *std::move(child));
}

// One that is gone is answered for when its end is seen.
void Children::SendOrder(Child& child) {
  if (SendSome(child.link.get(), child.unsent) && !child.unsent.empty()) return;
  std::string().swap(child.unsent);
  shutdown(child.link.get(), SHUT_WR);
}

void Children::Kill(Child& child, End why) {
  if (child.killed_for == CompilerAnswer::END_UNSPECIFIED) child.killed_for = why;
  KillGroup(child.pid);
}

void Children::Cancel(std::uint64_t id) {
  const auto found = children_.find(id);
  if (found != children_.end()) Kill(found->second, CompilerAnswer::CANCELLED);
}

void Children::AddPolled(std::vector<pollfd>* out) const {
  const auto add = [&](const Child& child) {
    const short events = child.unsent.empty() ? POLLIN : POLLIN | POLLOUT;
    if (!child.closed) out->push_back({.fd = child.link.get(), .events = events, .revents = 0});
  };
  for (const auto& [id, child] : children_) add(child);
  for (const Child& child : standbys_) add(child);
}

absl::Time Children::NextDeadline() const {
  // Who closed its pipe is about to end, and nothing tells when it has.
  constexpr absl::Duration kSoon = absl::Milliseconds(1);
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [id, child] : children_) {
    next = std::min(next, child.closed ? clock_.Now() + kSoon : child.deadline);
  }
  if (standbys_.size() < StandbysWanted()) next = std::min(next, next_standby_);
  return unstarted_.empty() ? next : clock_.Now();
}

void Children::Read(Child& child) const {
  std::array<char, 64 * 1024> buffer;
  while (!child.closed) {
    const ssize_t got = read(child.link.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    child.closed = got <= 0;
    if (got > 0) child.written.append(buffer.data(), static_cast<std::size_t>(got));
    if (child.written.size() > limits_.result_bytes) {
      child.closed = true;
      Kill(child, CompilerAnswer::OUTPUT);
    }
  }
}

// A kernel that ends a process at its limit of CPU time and one that is out of memory send the same
// signal.
bool Children::UsedItsTime(const rusage& used) const {
  constexpr double kNearly = 0.9;
  const absl::Duration cpu =
      absl::DurationFromTimeval(used.ru_utime) + absl::DurationFromTimeval(used.ru_stime);
  return cpu >= kNearly * absl::Seconds(limits_.work.sandbox.cpu_seconds);
}

CompilerAnswer Children::AnswerOf(const Child& child, int status, const rusage& used) const {
  CompilerAnswer answer;
  const bool exited = WIFEXITED(status);
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  // A result that was whole before the limit struck is a result.
  if (exited && WEXITSTATUS(status) == 0 && !child.written.empty()) {
    answer.set_end(static_cast<End>(child.written[0]));
    if (answer.end() == CompilerAnswer::DONE) {
      answer.set_result(child.written.substr(1));
    } else {
      answer.set_detail(DetailFrom(child.written.substr(1)));
    }
  } else if (child.killed_for != CompilerAnswer::END_UNSPECIFIED) {
    answer.set_end(child.killed_for);
  } else if (signal == SIGXCPU || (signal == SIGKILL && UsedItsTime(used))) {
    answer.set_end(CompilerAnswer::TIME);
  } else if (exited && WEXITSTATUS(status) == kOutOfMemory) {
    answer.set_end(CompilerAnswer::MEMORY);
  } else {
    answer.set_end(CompilerAnswer::CRASHED);
    answer.set_detail(signal == SIGKILL
                          ? "it was killed from outside, as where the machine lacks memory"
                      : signal != 0 ? absl::StrCat("signal ", signal)
                                    : absl::StrCat("exit code ", WEXITSTATUS(status)));
  }
  return answer;
}

std::vector<CompilerAnswer> Children::TakeAnswers() {
  std::vector<CompilerAnswer> answers = std::exchange(unstarted_, {});
  const absl::Time now = clock_.Now();
  for (auto at = children_.begin(); at != children_.end();) {
    Child& child = at->second;
    if (!child.unsent.empty()) SendOrder(child);
    Read(child);
    if (now >= child.deadline) Kill(child, CompilerAnswer::TIME);
    int status = 0;
    rusage used{};
    if (wait4(child.pid, &status, WNOHANG, &used) != child.pid) {
      ++at;
      continue;
    }
    Read(child);
    answers.push_back(AnswerOf(child, status, used));
    answers.back().set_id(at->first);
    at = children_.erase(at);
  }
  return answers;
}

}  // namespace gridclock
