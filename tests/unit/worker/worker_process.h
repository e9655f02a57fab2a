// A real gridclock-test-worker on a socket pair and a small arena, as the server would start it.
#ifndef GRIDCLOCK_TESTS_UNIT_WORKER_WORKER_PROCESS_H_
#define GRIDCLOCK_TESTS_UNIT_WORKER_WORKER_PROCESS_H_

#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/packet_socket.h"
#include "base/unique_fd.h"
#include "proto/codec/worker.h"
#include "proto/types/status_page.h"

namespace gridclock {

class WorkerProcess {
 public:
  static constexpr std::uint64_t kArenaBytes = 8 << 20;

  // `fault` as in GRIDCLOCK_FAULT.
  explicit WorkerProcess(const std::string& fault = "", const std::string& role = "trusted")
      : batch_(32, 256 * 1024) {
    auto pair = PacketSocket::Pair();
    EXPECT_TRUE(pair.ok());
    socket_.emplace(std::move(pair->first));
    arena_fd_ = Memory(kArenaBytes, &arena_);
    void* page = nullptr;
    status_fd_ = Memory(4096, &page);
    page_ = static_cast<StatusPage*>(page);
    const UniqueFd theirs = std::move(pair->second).Release();
    Spawn(theirs.get(), fault, role);
  }
  ~WorkerProcess() {
    // Never -1, which would mean every process of the machine.
    if (pid_ > 0) kill(pid_, SIGKILL);
    Wait();
    munmap(arena_, kArenaBytes);
    munmap(page_, 4096);
  }

  template <typename T>
  T* At(std::uint64_t offset) {
    return reinterpret_cast<T*>(static_cast<std::byte*>(arena_) + offset);
  }
  const StatusPage& page() const { return *page_; }
  pid_t pid() const { return pid_; }
  void CloseSocket() { socket_.reset(); }
  // It stands still from when this returns, and reads what comes meanwhile once it is let go.
  void Hold() {
    kill(pid_, SIGSTOP);
    EXPECT_EQ(waitpid(pid_, nullptr, WUNTRACED), pid_);
  }
  void LetGo() const { kill(pid_, SIGCONT); }
  // Until a kernel runs.
  void AwaitLaunch() const {
    for (int ms = 0; ms < 60'000 && page_->kernel_since_ns == 0; ++ms) usleep(1000);
    EXPECT_NE(page_->kernel_since_ns, 0);
  }

  void Send(const worker::v1::FromServer& message) { SendBytes(message.SerializeAsString()); }
  void SendBytes(const std::string& bytes) {
    EXPECT_TRUE(socket_->Send(std::as_bytes(std::span(bytes)), gridclock::Wait::kYes).ok());
  }
  void Order(const Job& job, std::uint64_t generation = 1) {
    worker::v1::FromServer message;
    Encode(job, generation, message.mutable_order());
    Send(message);
  }

  // The next frame that is no heartbeat, as bytes; nothing once the worker has closed the link. A
  // worker that says nothing for 60 s fails the test.
  std::optional<std::string> Bytes() {
    while (frames_.empty()) {
      pollfd ready{socket_->fd(), POLLIN, 0};
      if (poll(&ready, 1, 60'000) != 1) {
        ADD_FAILURE() << "the worker says nothing";
        return std::nullopt;
      }
      const auto read = socket_->ReceiveBatch(batch_, gridclock::Wait::kNo);
      if (!read.ok() || *read == PacketSocket::Read::kEnd) return std::nullopt;
      for (std::size_t i = 0; *read == PacketSocket::Read::kPackets && i < batch_.size(); ++i) {
        Keep(std::string(reinterpret_cast<const char*>(batch_[i].data()), batch_[i].size()));
      }
    }
    std::string frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }
  worker::v1::ToServer Next() {
    worker::v1::ToServer message;
    const auto bytes = Bytes();
    EXPECT_TRUE(bytes.has_value()) << "the worker is gone";
    EXPECT_TRUE(message.ParseFromString(bytes.value_or("")));
    return message;
  }
  WorkerHello Hello() {
    HelloAssembler assembler;
    for (;;) {
      const worker::v1::ToServer message = Next();
      const auto complete = assembler.Add(message.hello());
      EXPECT_TRUE(complete.ok()) << complete.status();
      if (!complete.ok() || *complete) return assembler.hello();
    }
  }
  // The exit status as waitpid gives it.
  int Wait() {
    if (pid_ > 0) waitpid(pid_, &status_, 0);
    pid_ = -1;
    return status_;
  }

 private:
  static UniqueFd Memory(std::uint64_t bytes, void** data) {
    UniqueFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    EXPECT_NE(*data, MAP_FAILED);
    return fd;
  }

  void Spawn(int link, const std::string& fault, const std::string& role) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    std::vector<UniqueFd> high;  // Out of the way of the numbers that are about to be given.
    const std::pair<int, int> places[] = {
        {link, kLinkFd}, {arena_fd_.get(), kArenaFd}, {status_fd_.get(), kStatusFd}};
    for (const auto& [from, to] : places) {
      high.emplace_back(fcntl(from, F_DUPFD_CLOEXEC, 64));
      posix_spawn_file_actions_adddup2(&actions, high.back().get(), to);
    }
    std::string program = TEST_WORKER, bytes = std::to_string(kArenaBytes);
    std::string environment = "GRIDCLOCK_FAULT=" + fault;
    std::string words[] = {"--device",      "cpu", "--role",    role,
                           "--arena-bytes", bytes, "--threads", "2"};
    std::vector<char*> argv = {program.data()};
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    char* env[] = {environment.data(), nullptr};
    ASSERT_EQ(posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), env), 0);
    posix_spawn_file_actions_destroy(&actions);
  }

  void Keep(std::string bytes) {
    worker::v1::ToServer message;
    if (message.ParseFromString(bytes) && message.has_heartbeat()) return;
    frames_.push_back(std::move(bytes));
  }

  PacketBatch batch_;
  std::optional<PacketSocket> socket_;
  UniqueFd arena_fd_, status_fd_;
  void* arena_ = nullptr;
  StatusPage* page_ = nullptr;
  pid_t pid_ = -1;
  int status_ = 0;
  std::deque<std::string> frames_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_UNIT_WORKER_WORKER_PROCESS_H_
