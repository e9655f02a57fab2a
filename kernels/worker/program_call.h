// The launches of a program for one bound call, ready to run: its entries found, its parameters
// laid out.
#ifndef GRIDCLOCK_KERNELS_WORKER_PROGRAM_CALL_H_
#define GRIDCLOCK_KERNELS_WORKER_PROGRAM_CALL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/api/kernel.h"
#include "kernels/device/device.h"
#include "kernels/worker/module_store.h"
#include "proto/types/launch.h"

namespace gridclock {

class ProgramCall {
 public:
  // `binding` is of the program's words. INVALID_ARGUMENT as BindProgram says, or as the modules
  // do.
  static absl::StatusOr<std::unique_ptr<ProgramCall>> Make(const WorkerProgram& program,
                                                           const Binding& binding, Device& device,
                                                           ModuleStore& modules);

  const std::vector<OperandValue>& scratch() const { return scratch_; }
  // No launch of it has a block to run.
  bool is_empty() const { return launches_.empty(); }
  // Of arrays of pointers and sizes that launches read on the device.
  std::uint64_t table_bytes() const;

  // Points parameters at the operands of a call, which have their places.
  absl::Status Point(const Call& call, Device& device);
  // To what a launch shall find in them, by the operands' values. Asynchronous.
  absl::Status SetGlobals(const Call& call, Device& device);
  // All launches, in order. Asynchronous.
  absl::Status Launch();

 private:
  struct Parameter {
    BoundParam bound;
    std::size_t offset = 0;               // In the bytes of its launch.
    std::vector<std::uint64_t> contents;  // Of a table or of sizes.
    std::unique_ptr<DeviceBuffer> table;
  };
  struct OneLaunch {
    std::unique_ptr<EntryLaunch> entry;
    std::vector<Parameter> params;
    std::vector<std::byte> bytes;
    std::vector<void*> pointers;  // At each parameter in `bytes`.
  };
  // A variable, and the attribute's value or the input that it is set from.
  struct Global {
    DeviceModule::Global place;
    std::vector<std::byte> value;
    std::size_t input = 0;  // Where `value` is empty.
  };

  absl::Status Add(const ProgramLaunch& launch, const BoundLaunch& bound, DeviceModule& module);
  absl::Status AddTables(const Binding& binding, Device& device);
  absl::Status AddGlobal(const ProgramGlobal& global, const Binding& binding, DeviceModule& module);
  static absl::Status Point(Parameter& param, const OperandView& view, std::byte* bytes,
                            Device& device);

  std::vector<OperandValue> scratch_;
  std::vector<OneLaunch> launches_;
  std::vector<Global> globals_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_PROGRAM_CALL_H_
