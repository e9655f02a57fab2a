// Calls that were bound before: a client that repeats a call pays for its words once.
#ifndef GRIDCLOCK_KERNELS_WORKER_CALL_CACHE_H_
#define GRIDCLOCK_KERNELS_WORKER_CALL_CACHE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/api/registry.h"
#include "kernels/worker/module_store.h"
#include "kernels/worker/program_call.h"
#include "proto/codec/worker.h"
#include "proto/types/device.h"

namespace gridclock {

// An order's kernel, variant, shapes and attributes, checked and bound. Pointers of the operands
// are filled in for each run.
struct BoundCall {
  std::string kernel_name, variant_name;
  std::vector<OperandValue> given_inputs;
  std::vector<AttributeValue> given_attributes;

  // Of the catalogue: kernel and variant. Of submitted code: the program and its launches.
  const RegisteredKernel* kernel = nullptr;
  const Variant* variant = nullptr;
  std::optional<Program> given_program;
  std::unique_ptr<ProgramCall> program;
  Binding binding;
  std::vector<OperandValue> scratch_values;
  std::vector<OperandView> inputs, outputs, scratch;
  std::string launch_name;  // "square/simd"
  double last_ns = 1e9;     // What its last single launch took.
};

class CallCache {
 public:
  // All are borrowed. Without modules there is the catalogue alone.
  CallCache(const Registry& registry, Device& device, ModuleStore* modules = nullptr)
      : registry_(registry), device_(device), modules_(modules) {}

  // The call of this order, valid until the next Find. Modules of a program are loaded with its
  // first call. NOT_FOUND, INVALID_ARGUMENT as the binder says; also if the order's outputs are not
  // those that the words give.
  absl::StatusOr<BoundCall*> Find(const WorkerOrder& order);
  // Without binding: null if it is not cached.
  const BoundCall* Peek(const WorkerOrder& order) const;

 private:
  absl::StatusOr<std::unique_ptr<BoundCall>> Bind(const WorkerOrder& order) const;
  absl::Status BindKernel(const WorkerOrder& order, BoundCall* call) const;
  absl::Status BindProgram(const WorkerOrder& order, BoundCall* call) const;

  const Registry& registry_;
  Device& device_;
  ModuleStore* const modules_;
  std::vector<std::unique_ptr<BoundCall>> calls_;
  std::size_t next_ = 0;  // To be replaced.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_CALL_CACHE_H_
