// A server and its workers on real GPUs.
#ifndef GRIDCLOCK_TESTS_GPU_SERVER_GPU_FIXTURE_H_
#define GRIDCLOCK_TESTS_GPU_SERVER_GPU_FIXTURE_H_

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "gridclock/v1/system.pb.h"
#include "server/fleet/device_list.h"
#include "server/fleet/worker_process.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {

inline constexpr char kWorker[] = "gridclock-test-worker";
inline constexpr char kListDevices[] = "/gridclock.v1.SystemService/ListDevices";

inline int Gpus() {
  const auto list = ListDevices(BinaryPath(kWorker), WorkerEnvironment(), absl::Seconds(60));
  if (!list.ok()) return 0;
  const auto gpus = SelectDevices("cuda", *list);
  return gpus.ok() ? static_cast<int>(gpus->size()) : 0;
}

// GRIDCLOCK_GPU_ROUNDS: how often what is repeated is done.
inline int RoundsOr(int otherwise) {
  const char* text = std::getenv("GRIDCLOCK_GPU_ROUNDS");
  return text == nullptr ? otherwise : std::max(1, std::atoi(text));
}

// square of n elements that are made, whose result nobody wants.
inline v1::RunRequest Made(std::int64_t n) {
  v1::RunRequest request;
  request.set_kernel("square");
  request.set_device("cuda:0");
  v1::Input* x = request.add_inputs();
  x->set_name("x");
  x->mutable_spec()->set_dtype(v1::F32);
  x->mutable_spec()->add_dims(n);
  x->mutable_generate()->set_kind(v1::Generator::UNIFORM);
  x->mutable_generate()->set_a(-1);
  x->mutable_generate()->set_b(1);
  v1::OutputRequest* y = request.add_outputs();
  y->set_name("y");
  y->set_sink(v1::OutputRequest::DISCARD);
  return request;
}

// A server of its own: the others' goes on.
class OwnServerGpuTest : public ::testing::Test {
 protected:
  void Start(const std::string& devices, std::vector<std::string> flags = {}) {
    if (Gpus() == 0) GTEST_SKIP() << "no GPU here";
    flags.push_back(absl::StrCat("--devices=", devices));
    ASSERT_OK_AND_ASSIGN(server_, ServerProcess::Start({.flags = flags, .worker = kWorker}));
    channel_ = Connect(server_->address());
  }
  absl::Status Call(const std::string& device, v1::RunRequest request) const {
    request.set_device(device);
    return RawCall(channel_, kRunMethod, {request.SerializeAsString()}).status;
  }
  // Of the first device; 0 if it does not say.
  std::uint64_t MemoryBytes() const {
    const RawResult listed = RawCall(channel_, kListDevices, {""});
    v1::ListDevicesResponse devices;
    if (listed.messages.empty() || !devices.ParseFromString(listed.messages[0])) return 0;
    return devices.devices_size() == 0 ? 0 : devices.devices(0).memory_bytes();
  }

  std::unique_ptr<ServerProcess> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_GPU_SERVER_GPU_FIXTURE_H_
