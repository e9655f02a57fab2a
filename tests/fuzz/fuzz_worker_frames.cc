// Frames between server and worker, as a broken or taken-over peer may send them.
#include <cstddef>
#include <cstdint>

#include "gridclock/worker/v1/worker.pb.h"
#include "proto/codec/worker.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/message_mutator.h"

namespace gridclock {
namespace {

constexpr std::uint64_t kArenaBytes = std::uint64_t{1} << 20;

Job SampleJob() {
  Job job;
  job.id = 1;
  job.kernel = "square";
  job.variant = "plain";
  job.device = "cpu";
  const OperandValue value{.is_list = false, .tensors = {{DType::kF32, {4}}}};
  job.inputs.emplace_back().value = value;
  job.outputs.emplace_back().name = "y";
  job.outputs[0].value = value;
  job.measure = MeasureOptions();
  job.verify = true;
  return job;
}

void CheckInside(const std::vector<WorkerOperand>& operands) {
  for (const WorkerOperand& operand : operands) {
    FUZZ_CHECK(operand.memory.offset <= kArenaBytes);
    FUZZ_CHECK(operand.memory.size <= kArenaBytes - operand.memory.offset);
    for (const TensorSpec& tensor : operand.value.tensors) FUZZ_CHECK(CheckedBytes(tensor).ok());
    // One that stays on its device has no place in the arena.
    FUZZ_CHECK(operand.memory.size == 0 || OperandBytes(operand.value) <= operand.memory.size);
  }
}

void FuzzArrival(const worker::v1::Arrival& frame) {
  const auto arrival = Decode(frame, kArenaBytes);
  if (!arrival.ok()) return;
  FUZZ_CHECK(arrival->memory.offset <= kArenaBytes);
  FUZZ_CHECK(arrival->memory.size <= kArenaBytes - arrival->memory.offset);
  FUZZ_CHECK(arrival->bytes <= arrival->memory.size);
}

void FuzzFromServer(const void* data, int size) {
  worker::v1::FromServer frame;
  if (!frame.ParseFromArray(data, size)) return;
  if (frame.has_arrival()) FuzzArrival(frame.arrival());
  if (!frame.has_order()) return;
  WorkerOrder order;
  if (!Decode(frame.order(), kArenaBytes, &order).ok()) return;
  CheckInside(order.inputs);
  CheckInside(order.outputs);
}

void FuzzToServer(const void* data, int size) {
  worker::v1::ToServer frame;
  if (!frame.ParseFromArray(data, size)) return;
  const Job job = SampleJob();
  if (frame.has_hello()) {
    HelloAssembler assembler;
    const auto complete = assembler.Add(frame.hello());
    if (complete.ok() && *complete) {
      for (const KernelSpec& spec : assembler.hello().kernels) FUZZ_CHECK(Validate(spec).ok());
    }
  }
  if (frame.has_samples()) {
    SampleBuffer samples;
    const auto added = samples.Add(frame.samples(), job);
    if (added.ok()) FUZZ_CHECK(samples.Take().size() <= 1'000'000);
  }
  if (frame.has_done()) {
    const auto outcome = Decode(frame.done(), job, {1.0, 2.0});
    if (outcome.ok()) FUZZ_CHECK(outcome->outputs.size() == job.outputs.size());
  }
  if (frame.has_failed()) {
    const auto failure = Decode(frame.failed(), job, {});
    if (failure.ok()) FUZZ_CHECK(!failure->status.ok());
  }
}

}  // namespace
}  // namespace gridclock

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return gridclock::MutateEither<gridclock::worker::v1::FromServer,
                                 gridclock::worker::v1::ToServer>(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gridclock::FuzzFromServer(data, static_cast<int>(size));
  gridclock::FuzzToServer(data, static_cast<int>(size));
  return 0;
}
