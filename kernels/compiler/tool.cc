#include "kernels/compiler/tool.h"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace gridclock {
namespace {

constexpr int kNoSandbox = 125, kNoProgram = 126;

absl::StatusOr<UniqueFd> MemoryFile(const char* name, absl::string_view bytes) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC));
  if (!fd) return ErrnoToStatus(errno, name);
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t now =
        pwrite(fd.get(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (now <= 0) return ErrnoToStatus(errno, name);
    at += static_cast<std::size_t>(now);
  }
  return fd;
}

std::string Contents(int fd) {
  const off_t size = lseek(fd, 0, SEEK_END);
  std::string bytes(size > 0 ? static_cast<std::size_t>(size) : 0, '\0');
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t now = pread(fd, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (now <= 0) break;
    at += static_cast<std::size_t>(now);
  }
  bytes.resize(at);
  return bytes;
}

struct Files {
  UniqueFd in, out, text;
};

// In the forked process; returns only to say that it could not become the tool.
int BecomeTool(const ToolRun& run, const Files& files, int landlock) {
  // The copies go with the program, the originals do not.
  const int in = dup(files.in.get()), out = dup(files.out.get());
  dup2(files.text.get(), STDOUT_FILENO);
  dup2(files.text.get(), STDERR_FILENO);
  std::vector<std::string> args = {run.program};
  for (const std::string& arg : run.args) {
    args.push_back(arg == "@in"    ? absl::StrCat("/proc/self/fd/", in)
                   : arg == "@out" ? absl::StrCat("/proc/self/fd/", out)
                                   : arg);
  }
  std::vector<char*> pointers;
  for (std::string& arg : args) pointers.push_back(arg.data());
  pointers.push_back(nullptr);
  char* nothing[] = {nullptr};
  const Sandbox sandbox{.limits = run.limits,
                        .readable = SystemLibraries(),
                        .executable = {run.program, SystemLoader()}};
  if (!EnterSandbox(sandbox, landlock).ok()) return kNoSandbox;
  execve(run.program.c_str(), pointers.data(), nothing);
  return kNoProgram;
}

}  // namespace

std::vector<std::string> SystemLibraries() {
  std::vector<std::string> found;
  for (const char* path : {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"}) {
    std::error_code error;
    const auto real = std::filesystem::canonical(path, error);
    if (!error) found.push_back(real.string());
  }
  return found;
}

std::string SystemLoader() {
  std::error_code error;
  return std::filesystem::canonical("/lib64/ld-linux-x86-64.so.2", error).string();
}

absl::StatusOr<ToolOutput> RunTool(const ToolRun& run, int landlock) {
  Files files;
  GC_ASSIGN_OR_RETURN(files.in, MemoryFile("in", run.input));
  GC_ASSIGN_OR_RETURN(files.out, MemoryFile("out", ""));
  GC_ASSIGN_OR_RETURN(files.text, MemoryFile("text", ""));
  const pid_t pid = fork();
  if (pid < 0) return ErrnoToStatus(errno, "fork");
  if (pid == 0) _exit(BecomeTool(run, files, landlock));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return ErrnoToStatus(errno, "wait");
  }
  ToolOutput out{.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                 .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                 .text = Contents(files.text.get()),
                 .file = Contents(files.out.get())};
  if (out.code == kNoSandbox || out.code == kNoProgram) {
    return absl::InternalError(absl::StrCat("cannot run ", run.program, " in a sandbox"));
  }
  return out;
}

}  // namespace gridclock
