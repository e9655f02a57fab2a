#include "tests/support/server_process.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/mutex.h"
#include "tests/support/http_client.h"

extern char** environ;

namespace gridclock {
namespace {

std::string ReadAll(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Of /proc/PID/stat from the state on, which the parent follows; empty if there is no such process.
std::vector<std::string> StatWords(pid_t pid) {
  const std::string stat = ReadAll(absl::StrCat("/proc/", pid, "/stat"));
  const auto end = stat.rfind(") ");
  if (end == std::string::npos) return {};
  return absl::StrSplit(stat.substr(end + 2), ' ');
}

bool IsAlive(const std::vector<std::string>& words) {
  return words.size() > 1 && words[0] != "Z" && words[0] != "X";
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> Environment(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;  // The first of a name is the one that counts.
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

absl::StatusOr<pid_t> Spawn(std::vector<std::string> arguments,
                            std::vector<std::string> environment, const std::string& log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, arguments[0].c_str(), &actions, nullptr,
                                Pointers(arguments).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::ErrnoToStatus(error, arguments[0]);
  return pid;
}

// Removes all folders when the program ends.
class Folders {
 public:
  ~Folders() {
    std::error_code ignored;  // What another user's process left there stays.
    for (const std::string& path : paths_) std::filesystem::remove_all(path, ignored);
  }
  void Add(const std::string& path) {
    MutexLock lock(mutex_);
    paths_.push_back(path);
  }

 private:
  Mutex mutex_;
  std::vector<std::string> paths_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::string BinaryPath(const std::string& name) {
  const char* elsewhere = std::getenv("GRIDCLOCK_BIN");
  return absl::StrCat(elsewhere != nullptr ? elsewhere : GRIDCLOCK_BIN_DIR, "/", name);
}

std::string NewFolder() {
  static Folders folders;
  std::string pattern = (std::filesystem::temp_directory_path() / "gridclock-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return "";
  folders.Add(pattern);
  return pattern;
}

std::string NewScript(const std::string& lines) {
  const std::string path = NewFolder() + "/script";
  std::ofstream(path) << "#!/bin/sh\n" << lines;
  return chmod(path.c_str(), 0755) == 0 ? path : "";
}

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(Options options) {
  const std::string folder = NewFolder();
  if (folder.empty()) return absl::ErrnoToStatus(errno, "a folder for the server");
  std::vector<std::string> arguments = {BinaryPath(options.program),
                                        "--listen=127.0.0.1:0",
                                        "--metrics-listen=127.0.0.1:0",
                                        "--arena-warm-bytes=1048576",
                                        "--limit-arena-bytes=268435456",
                                        absl::StrCat("--worker=", BinaryPath(options.worker)),
                                        "--devices=cpu",  // The same on every machine.
                                        absl::StrCat("--ready-file=", folder, "/ready")};
  // A flag of the test stands for ours of the same name.
  for (const std::string& flag : options.flags) {
    const std::string name = flag.substr(0, flag.find('='));
    std::erase_if(arguments, [&](const std::string& a) { return a.rfind(name + "=", 0) == 0; });
  }
  arguments.insert(arguments.end(), options.flags.begin(), options.flags.end());
  if (options.descriptors != 0) {
    const std::string script = absl::StrCat("ulimit -n ", options.descriptors, R"( && exec "$@")");
    arguments.insert(arguments.begin(), {"/bin/sh", "-c", script, "sh"});
  }
  auto pid = Spawn(arguments, Environment(options.environment),
                   options.log.empty() ? folder + "/log" : options.log);
  if (!pid.ok()) return pid.status();
  std::unique_ptr<ServerProcess> server(new ServerProcess(folder, *pid));
  if (!options.wait_until_ready) return server;
  if (absl::Status status = server->WaitUntilReady(); !status.ok()) return status;
  return server;
}

absl::Status ServerProcess::WaitUntilReady() {
  const std::string ready = folder_ + "/ready";
  const bool came =
      Eventually([&] { return std::filesystem::exists(ready) || Wait(absl::ZeroDuration()) >= 0; },
                 absl::Seconds(60));
  if (!came || ended_) return absl::UnavailableError(absl::StrCat("no server:\n", Log()));
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(ReadAll(ready), '\n'))) {
    if (line.rfind("grpc=", 0) == 0) address_ = line.substr(5);
    if (line.rfind("metrics=", 0) == 0) metrics_address_ = line.substr(8);
  }
  return absl::OkStatus();
}

ServerProcess::~ServerProcess() {
  if (!ended_) {
    Signal(SIGKILL);
    Wait();
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

bool Lives(pid_t pid) {
  return IsAlive(StatWords(pid));
}

std::string ServerProcess::ListensOn() const {
  static const std::regex kListen(R"re(listen="?([0-9.]+:[0-9]+))re");
  std::smatch found;
  std::string log;
  const bool known = Eventually([&] {
    log = Log();
    return std::regex_search(log, found, kListen);
  });
  return known ? found[1].str() : "";
}

std::vector<pid_t> ServerProcess::Workers() const {
  std::vector<pid_t> workers;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    const std::vector<std::string> words = StatWords(pid);
    if (IsAlive(words) && words[1] == absl::StrCat(pid_)) workers.push_back(pid);
  }
  return workers;
}

std::string ServerProcess::Log() const {
  return ReadAll(folder_ + "/log");
}

bool ServerProcess::WillLog(const std::string& words) const {
  return Eventually([&] { return absl::StrContains(Log(), words); });
}

std::string ServerProcess::Metrics() const {
  int port = 0;
  if (!absl::SimpleAtoi(metrics_address_.substr(metrics_address_.rfind(':') + 1), &port)) return "";
  const std::string page = BodyOf(Fetch(port, "/metrics"));
  // A busy machine may make us too late for the listener's patience, once.
  return page.empty() ? BodyOf(Fetch(port, "/metrics")) : page;
}

std::optional<double> ServerProcess::Metric(const std::string& series) const {
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(Metrics(), '\n'))) {
    double value = 0;
    if (line.rfind(series, 0) == 0 && absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value)) {
      return value;
    }
  }
  return std::nullopt;
}

void ServerProcess::Signal(int signal) const {
  if (!ended_) kill(pid_, signal);
}

void ServerProcess::LetGo() const {
  for (const pid_t pid : Workers()) {
    // Others of its children may not know the signal.
    const std::string name = ReadAll(absl::StrCat("/proc/", pid, "/comm"));
    if (name.rfind("gridclock-test-", 0) == 0) kill(pid, SIGUSR1);
  }
}

std::string ServerProcess::FinalLog() {
  Signal(SIGTERM);
  Wait();
  return Log();
}

int ServerProcess::Wait(absl::Duration limit) {
  int status = 0;
  const auto reaped = [&] { return ended_ || waitpid(pid_, &status, WNOHANG) == pid_; };
  if (!Eventually(reaped, limit)) return -1;
  if (!ended_) code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  ended_ = true;
  return code_;
}

}  // namespace gridclock
