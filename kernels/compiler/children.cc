#include "kernels/compiler/children.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text.h"

namespace gridclock {
namespace {

using worker::v1::CompilerAnswer;
using worker::v1::CompilerOrder;

constexpr int kOutOfMemory = 97;  // Exit code.
constexpr int kPipe = 3;          // Of a child.

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

// Where earlier reads had their buffers.
[[gnu::noinline]] void WipeStack() {
  std::array<char, 256 * 1024> below;
  explicit_bzero(below.data(), below.size());
}

// Of all descriptors the child keeps its pipe; what its compiler prints goes nowhere.
bool KeepOnly(int pipe) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return false;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
  if (pipe != kPipe && dup2(pipe, kPipe) < 0) return false;
  fcntl(kPipe, F_SETFD, FD_CLOEXEC);
  return syscall(SYS_close_range, kPipe + 1, UINT_MAX, 0) == 0;
}

}  // namespace

Children::~Children() {
  for (auto& [id, child] : children_) {
    Kill(child, CompilerAnswer::CANCELLED);
    waitpid(child.pid, nullptr, 0);
  }
}

void Children::RunChild(const CompilerOrder& order, int pipe) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!KeepOnly(pipe)) _exit(1);
  std::set_new_handler([] { _exit(kOutOfMemory); });
  for (auto& [id, child] : children_) std::string().swap(child.written);
  forget_others_();
  WipeStack();
  const auto result = DoWork(order, tools_, limits_.work);
  std::string bytes(1, static_cast<char>(EndOf(result.status())));
  if (result.ok()) {
    result->AppendToString(&bytes);
  } else {
    absl::StrAppend(&bytes, result.status().message());
  }
  WriteAll(kPipe, bytes);
  _exit(0);
}

void Children::Start(const CompilerOrder& order) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    unstarted_.push_back(Answer(order.id(), CompilerAnswer::INTERNAL, "no pipe for the compile"));
    return;
  }
  Child child;
  child.pipe.reset(ends[0]);
  const UniqueFd writer(ends[1]);
  fcntl(child.pipe.get(), F_SETFL, O_NONBLOCK);
  child.deadline = clock_.Now() + limits_.wall;
  child.pid = fork();
  if (child.pid == 0) RunChild(order, writer.get());
  if (child.pid < 0) {
    unstarted_.push_back(Answer(order.id(), CompilerAnswer::INTERNAL,
                                absl::StrCat("no process for the compile: ", strerror(errno))));
    return;
  }
  setpgid(child.pid, child.pid);  // Whoever comes first; its tools are of the group too.
  children_.emplace(order.id(), std::move(child));
}

void Children::Kill(Child& child, End why) {
  if (child.killed_for == CompilerAnswer::END_UNSPECIFIED) child.killed_for = why;
  kill(-child.pid, SIGKILL);
  kill(child.pid, SIGKILL);
}

void Children::Cancel(std::uint64_t id) {
  const auto found = children_.find(id);
  if (found != children_.end()) Kill(found->second, CompilerAnswer::CANCELLED);
}

void Children::AddPolled(std::vector<pollfd>* out) const {
  for (const auto& [id, child] : children_) {
    if (!child.closed) out->push_back({.fd = child.pipe.get(), .events = POLLIN, .revents = 0});
  }
}

absl::Time Children::NextDeadline() const {
  // Who closed its pipe is about to end, and nothing tells when it has.
  constexpr absl::Duration kSoon = absl::Milliseconds(1);
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [id, child] : children_) {
    next = std::min(next, child.closed ? clock_.Now() + kSoon : child.deadline);
  }
  return unstarted_.empty() ? next : clock_.Now();
}

void Children::Read(Child& child) const {
  std::array<char, 64 * 1024> buffer;
  while (!child.closed) {
    const ssize_t got = read(child.pipe.get(), buffer.data(), buffer.size());
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
