// gridclock-test-worker: a worker that breaks on purpose. GRIDCLOCK_FAULT holds fail points
// "point:probability:seed", separated by commas. Each is rolled once per report of an order, but
// the two of the hello once at that:
//   die_before_hello   exits with code 3 before it says hello
//   wait_before_hello  never says hello, and waits for its end
//   garbage_frame      sends random bytes in place of the report
//   oversized_frame    sends 80 KiB in one frame
//   truncated_frame    sends the first half of the report
//   unknown_id         reports, then reports an order that it never got
//   duplicate_done     reports twice
//   exit_zero          exits with code 0 in place of the report
//   close_socket       closes the link and sleeps on
//   output_too_large   reports more outputs than were ordered
//   hang               stops itself, heartbeats too (SIGSTOP)
// SIGUSR1 ends a call of the kernel `hold`.
// With GRIDCLOCK_KEEP_SCRATCH a guest does not overwrite scratch memory between checked launches,
// with GRIDCLOCK_KEEP_SHARED not the memory that threads of a block share before the last of them.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <signal.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gridclock/worker/v1/worker.pb.h"
#include "kernels/catalog/catalog.h"
#include "kernels/worker/test_natives.h"
#include "kernels/worker/worker.h"
#include "proto/types/status_page.h"

namespace gridclock {
namespace {

struct FailPoint {
  std::string name;
  double probability = 0;
  std::mt19937_64 random;

  bool Strikes() { return std::uniform_real_distribution<>(0, 1)(random) < probability; }
};

std::vector<FailPoint> ReadFailPoints() {
  std::vector<FailPoint> points;
  const char* text = std::getenv("GRIDCLOCK_FAULT");
  for (const absl::string_view entry :
       absl::StrSplit(text == nullptr ? "" : text, ',', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(entry, ':');
    FailPoint point;
    std::uint64_t seed = 0;
    if (parts.size() != 3 || !absl::SimpleAtod(parts[1], &point.probability) ||
        !absl::SimpleAtoi(parts[2], &seed)) {
      std::fprintf(stderr, "GRIDCLOCK_FAULT: want point:probability:seed, got '%s'\n",
                   std::string(entry).c_str());
      std::exit(2);
    }
    point.name = parts[0];
    point.random.seed(seed);
    points.push_back(std::move(point));
  }
  return points;
}

std::uint64_t ReportedId(const worker::v1::ToServer& message) {
  return message.has_done() ? message.done().id() : message.failed().id();
}

[[noreturn]] void WaitForEnd() {
  for (;;) pause();
}

// Before any thread is made, so that all block it: it waits for `hold`.
void BlockLetGo() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
}

class FaultyLink final : public Link {
 public:
  FaultyLink(std::unique_ptr<Link> link, std::vector<FailPoint> points)
      : link_(std::move(link)), points_(std::move(points)) {}

  absl::StatusOr<PacketSocket::Read> Receive(PacketBatch& batch, Wait wait) override {
    return link_->Receive(batch, wait);
  }
  bool Comes(absl::Duration within) override { return link_->Comes(within); }

  absl::Status Send(std::span<const std::string> frames) override {
    std::vector<std::string> out;
    for (const std::string& frame : frames) Append(frame, &out);
    return link_->Send(out);
  }

 private:
  void Append(const std::string& frame, std::vector<std::string>* out) {
    worker::v1::ToServer message;
    message.ParseFromString(frame);
    const bool report = message.has_done() || message.has_failed();
    std::string first = frame;
    std::vector<std::string> more;
    for (FailPoint& point : points_) {
      const bool of_hello = absl::EndsWith(point.name, "_before_hello");
      const bool concerned = of_hello ? message.has_hello() : report;
      if (concerned && point.Strikes()) Break(point, message, &first, &more);
    }
    out->push_back(std::move(first));
    out->insert(out->end(), more.begin(), more.end());
  }

  void Break(FailPoint& point, worker::v1::ToServer message, std::string* frame,
             std::vector<std::string>* more) {
    const std::string& name = point.name;
    if (name == "die_before_hello") _exit(3);
    if (name == "exit_zero") _exit(0);
    if (name == "hang") raise(SIGSTOP);
    if (name == "wait_before_hello") WaitForEnd();
    if (name == "close_socket") {
      close(kLinkFd);
      WaitForEnd();
    }
    if (name == "garbage_frame") {
      for (char& byte : *frame) byte = static_cast<char>(point.random());
    }
    if (name == "oversized_frame") frame->assign(80 * 1024, 'x');
    if (name == "truncated_frame") frame->resize(std::max<std::size_t>(1, frame->size() / 2));
    if (name == "duplicate_done") more->push_back(*frame);
    if (name == "unknown_id") {
      message.mutable_done()->set_id(ReportedId(message) + 1'000'000);
      more->push_back(message.SerializeAsString());
    }
    if (name == "output_too_large" && message.has_done()) {
      message.mutable_done()->add_checksums(1);
      *frame = message.SerializeAsString();
    }
  }

  std::unique_ptr<Link> link_;
  std::vector<FailPoint> points_;
};

}  // namespace
}  // namespace gridclock

int main(int argc, char** argv) {
  using namespace gridclock;  // NOLINT(google-build-using-namespace): a program's own namespace.
  BlockLetGo();
  return RunWorker(argc, argv,
                   {.kernels = BuiltInKernels(),
                    .level = BuiltInLevel(),
                    .wrap_link = [](std::unique_ptr<Link> link) -> std::unique_ptr<Link> {
                      return std::make_unique<FaultyLink>(std::move(link), ReadFailPoints());
                    },
                    .natives = TestNatives(),
                    .keep_scratch = std::getenv("GRIDCLOCK_KEEP_SCRATCH") != nullptr,
                    .keep_shared = std::getenv("GRIDCLOCK_KEEP_SHARED") != nullptr});
}
