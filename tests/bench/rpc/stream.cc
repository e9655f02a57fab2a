// What gRPC alone moves: N bytes from one process to another over TCP as chunks of 1 MiB on one
// stream, and back. Settings, borrowed slices and the one copy at each end are those of Gridclock;
// there are no words, no checks, and no worker. Prints JSON. usage: bench-stream BYTES
// [REPETITIONS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/rpc/measure.h"

namespace {

using namespace gridclock::bench;  // NOLINT(google-build-using-namespace): a program's own
                                   // namespace.

constexpr std::size_t kChunk = 1 << 20;
constexpr int kServerWindow = 1 << 20;
constexpr int kClientWindow = 4 << 20;

std::span<char> WarmBytes(std::size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Fail("mmap");
  auto* bytes = static_cast<char*>(memory);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 2654435761U >> 13);
  return {bytes, size};
}

void KeepFreedMemory() {
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_ARENA_MAX, 2);
}

// The chunks of some bytes, each lent to gRPC.
class Source {
 public:
  explicit Source(std::span<char> bytes) : rest_(bytes) {}
  bool Next(grpc::ByteBuffer* out) {
    if (rest_.empty()) return false;
    const std::size_t size = std::min(rest_.size(), kChunk);
    const grpc::Slice slice(rest_.data(), size, [](void*) {});
    *out = grpc::ByteBuffer(&slice, 1);
    rest_ = rest_.subspan(size);
    return true;
  }

 private:
  std::span<char> rest_;
};

// Where chunks are put, one behind the other.
class Sink {
 public:
  explicit Sink(std::span<char> place) : rest_(place) {}
  void Take(const grpc::ByteBuffer& in) {
    std::vector<grpc::Slice> slices;
    if (!in.Dump(&slices).ok()) Fail("a chunk");
    for (const grpc::Slice& slice : slices) {
      if (slice.size() > rest_.size()) Fail("more bytes than were sent");
      std::memcpy(rest_.data(), slice.begin(), slice.size());
      rest_ = rest_.subspan(slice.size());
    }
  }

 private:
  std::span<char> rest_;
};

// Takes all bytes, then sends them back.
class Answer final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Answer(std::span<char> place) : sink_(place), source_(place) { StartRead(&in_); }

  void OnReadDone(bool ok) override {
    if (!ok) return Write();
    sink_.Take(in_);
    in_.Clear();
    StartRead(&in_);
  }
  void OnWriteDone(bool ok) override { ok ? Write() : Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  void Write() {
    if (source_.Next(&out_)) return StartWrite(&out_);
    Finish(grpc::Status::OK);
  }

  Sink sink_;
  Source source_;
  grpc::ByteBuffer in_, out_;
};

class AnswerService final : public grpc::CallbackGenericService {
 public:
  explicit AnswerService(std::span<char> place) : place_(place) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Answer(place_);
  }

 private:
  std::span<char> place_;
};

// Writes its port, then serves until `end` is at its end.
void Serve(std::size_t size, int port_out, int end) {
  KeepFreedMemory();
  AnswerService service(WarmBytes(size));
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kServerWindow);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) Fail("start");
  if (write(port_out, &port, sizeof port) != sizeof port) Fail("write");
  char byte = 0;
  while (read(end, &byte, 1) > 0) {
  }
  server->Shutdown();
}

// One way there and one back; `ended` hears of the end.
class Move final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Move(grpc::GenericStub& stub, std::span<char> sent, std::span<char> got)
      : source_(sent), sink_(got) {
    stub.PrepareBidiStreamingCall(&context_, "/gridclock.bench.Stream/Move", {}, this);
    StartRead(&in_);
    Write();
    StartCall();
  }
  grpc::Status Wait() { return ended_.get_future().get(); }

  void OnWriteDone(bool ok) override {
    if (ok) Write();
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    sink_.Take(in_);
    in_.Clear();
    StartRead(&in_);
  }
  void OnDone(const grpc::Status& status) override { ended_.set_value(status); }

 private:
  void Write() { source_.Next(&out_) ? StartWrite(&out_) : StartWritesDone(); }

  grpc::ClientContext context_;
  Source source_;
  Sink sink_;
  grpc::ByteBuffer in_, out_;
  std::promise<grpc::Status> ended_;
};

grpc::GenericStub Connect(int port) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kClientWindow);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::GenericStub(grpc::CreateCustomChannel(
      "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), arguments));
}

std::int64_t MoveOnce(grpc::GenericStub& stub, std::span<char> sent, std::span<char> got) {
  std::memset(got.data(), 0, got.size());
  const std::int64_t start = NowNs();
  Move move(stub, sent, got);
  const grpc::Status status = move.Wait();
  const std::int64_t took = NowNs() - start;
  if (!status.ok()) Fail(status.error_message().c_str());
  if (std::memcmp(sent.data(), got.data(), sent.size()) != 0) Fail("other bytes came back");
  return took;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t size = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 256 << 20;
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 1;
  int port_pipe[2], end_pipe[2];
  if (pipe(port_pipe) != 0 || pipe(end_pipe) != 0) Fail("pipe");
  const pid_t child = fork();  // Before gRPC has threads.
  if (child < 0) Fail("fork");
  if (child == 0) {
    close(end_pipe[1]);
    Serve(size, port_pipe[1], end_pipe[0]);
    return 0;
  }
  close(port_pipe[1]);
  int port = 0;
  if (read(port_pipe[0], &port, sizeof port) != sizeof port) Fail("the server did not start");
  KeepFreedMemory();
  const std::span<char> sent = WarmBytes(size), got = WarmBytes(size);
  grpc::GenericStub stub = Connect(port);
  MoveOnce(stub, sent, got);  // Connects and warms up.
  std::vector<std::int64_t> times(static_cast<std::size_t>(repetitions));
  for (std::int64_t& time : times) time = MoveOnce(stub, sent, got);
  std::printf("{\"bytes\": %zu, \"seconds\": %.6f}\n", size, Quantile(times, 0.5) / 1e9);
  close(end_pipe[1]);
  waitpid(child, nullptr, 0);
  return 0;
}
