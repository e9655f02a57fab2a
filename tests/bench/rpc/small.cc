// Small unary calls with a number of them in flight, by the callback API. Prints JSON.
// usage: bench-small echo|refused|KERNEL ADDRESS IN_FLIGHT CALLS
//   echo: 64 bytes to bench-echo-server; KERNEL: Run of that kernel ("empty", or one from x to y,
//   on 16 floats) on a gridclock-server; refused: Run of `empty` while the queue of the server,
//   whose --limit-queue is 1, is full.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "echo.grpc.pb.h"
#include "gridclock/v1/kernels.grpc.pb.h"
#include "tests/bench/rpc/measure.h"

namespace {

using namespace gridclock::bench;  // NOLINT(google-build-using-namespace): a program's own
                                   // namespace.
using Done = std::function<void(const grpc::Status&)>;
using Call = std::function<void(int slot, Done)>;

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// The context and messages of one call at a time.
template <typename Request, typename Response>
struct Slot {
  std::unique_ptr<grpc::ClientContext> context;
  Request request;
  Response response;
};

Call EchoCall(const std::string& address, int slots) {
  using EchoSlot = Slot<Bytes, Bytes>;
  auto stub = std::shared_ptr<EchoService::Stub>(EchoService::NewStub(Connect(address)));
  auto all = std::make_shared<std::vector<EchoSlot>>(slots);
  for (EchoSlot& slot : *all) slot.request.set_data(std::string(64, 'x'));
  return [stub, all](int index, Done done) {
    EchoSlot& slot = (*all)[index];
    slot.context = std::make_unique<grpc::ClientContext>();
    stub->async()->Echo(slot.context.get(), &slot.request, &slot.response,
                        [done = std::move(done)](const grpc::Status& status) { done(status); });
  };
}

gridclock::v1::RunRequest RunOf(const std::string& kernel) {
  gridclock::v1::RunRequest request;
  request.set_kernel(kernel);
  if (kernel == "empty") return request;
  gridclock::v1::Input& input = *request.add_inputs();
  input.set_name("x");
  input.mutable_spec()->set_dtype(gridclock::v1::F32);
  input.mutable_spec()->add_dims(16);
  input.mutable_inline_();
  const std::vector<float> values(16, 1.5F);
  input.set_data(values.data(), values.size() * sizeof(float));
  return request;
}

Call KernelCall(const std::string& kernel, const std::string& address, int slots) {
  using RunSlot = Slot<gridclock::v1::RunRequest, gridclock::v1::RunResponse>;
  using Service = gridclock::v1::KernelService;
  auto stub = std::shared_ptr<Service::Stub>(Service::NewStub(Connect(address)));
  auto all = std::make_shared<std::vector<RunSlot>>(slots);
  for (RunSlot& slot : *all) slot.request = RunOf(kernel);
  return [stub, all](int index, Done done) {
    RunSlot& slot = (*all)[index];
    slot.context = std::make_unique<grpc::ClientContext>();
    stub->async()->Run(slot.context.get(), &slot.request, &slot.response,
                       [done = std::move(done)](const grpc::Status& status) { done(status); });
  };
}

// Fills a server's queue with calls that last, for as long as it lives.
class Occupation {
 public:
  explicit Occupation(const std::string& address)
      : stub_(Service::NewStub(Connect(address))), slots_(kCalls) {
    for (RunSlot& slot : slots_) {
      slot.request.set_kernel("spin");
      (*slot.request.mutable_attributes())["ns"].set_i64(20'000'000'000);
      slot.context = std::make_unique<grpc::ClientContext>();
      stub_->async()->Run(slot.context.get(), &slot.request, &slot.response,
                          [this](const grpc::Status&) { left_.fetch_sub(1); });
    }
    // All but those that fit, which are the last to end.
    while (left_ > kFit) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~Occupation() {
    for (RunSlot& slot : slots_) slot.context->TryCancel();
    while (left_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  using Service = gridclock::v1::KernelService;
  using RunSlot = Slot<gridclock::v1::RunRequest, gridclock::v1::RunResponse>;
  static constexpr int kCalls = 40;
  static constexpr int kFit = 17;  // Sixteen small orders wait at the worker, one in the queue.
  std::unique_ptr<Service::Stub> stub_;
  std::vector<RunSlot> slots_;
  std::atomic<int> left_{kCalls};
};

// Keeps `in_flight` calls going until `calls` have ended; each that ends starts the next.
class Load {
 public:
  Load(Call call, grpc::StatusCode wanted, int in_flight, int calls)
      : call_(std::move(call)), wanted_(wanted), in_flight_(in_flight), times_(calls) {}

  // Seconds from the first start to the last end.
  double Run() {
    const std::int64_t start = NowNs();
    open_ = in_flight_;
    for (int slot = 0; slot < in_flight_; ++slot) Next(slot);
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return open_ == 0; });
    return (NowNs() - start) / 1e9;
  }
  const std::vector<std::int64_t>& times() const { return times_; }

 private:
  void Next(int slot) {
    const std::size_t number = next_.fetch_add(1);
    if (number >= times_.size()) return Leave();
    const std::int64_t start = NowNs();
    call_(slot, [this, slot, number, start](const grpc::Status& status) {
      times_[number] = NowNs() - start;
      if (status.error_code() != wanted_) {
        std::fprintf(stderr, "a call ended otherwise than wanted: %d %s\n", status.error_code(),
                     status.error_message().c_str());
        std::exit(1);
      }
      Next(slot);
    });
  }
  void Leave() {
    const std::scoped_lock lock(mutex_);
    if (--open_ == 0) ended_.notify_one();
  }

  const Call call_;
  const grpc::StatusCode wanted_;
  const int in_flight_;
  std::vector<std::int64_t> times_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  int open_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: bench-small echo|refused|KERNEL ADDRESS IN_FLIGHT CALLS\n");
    return 2;
  }
  const std::string what = argv[1];
  const int in_flight = std::atoi(argv[3]);
  const int calls = std::atoi(argv[4]);
  const bool refused = what == "refused";
  const auto wanted = refused ? grpc::RESOURCE_EXHAUSTED : grpc::OK;
  const auto occupation = refused ? std::make_unique<Occupation>(argv[2]) : nullptr;
  const Call call = what == "echo" ? EchoCall(argv[2], in_flight)
                                   : KernelCall(refused ? "empty" : what, argv[2], in_flight);
  Load(call, wanted, in_flight, calls / 10 + in_flight).Run();  // Warms up.
  Load load(call, wanted, in_flight, calls);
  const double seconds = load.Run();
  std::printf(
      "{\"what\": \"%s\", \"in_flight\": %d, \"calls\": %d, \"p50_us\": %.3f, \"p99_us\": %.3f, "
      "\"max_us\": %.3f, \"calls_per_second\": %.1f}\n",
      what.c_str(), in_flight, calls, Quantile(load.times(), 0.5) / 1e3,
      Quantile(load.times(), 0.99) / 1e3, Quantile(load.times(), 1) / 1e3, calls / seconds);
  return 0;
}
