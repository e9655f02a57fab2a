// One launch of a kernel's last CPU variant on given tensors, with given threads.
#ifndef GRIDCLOCK_TESTS_UNIT_CATALOG_LAUNCH_H_
#define GRIDCLOCK_TESTS_UNIT_CATALOG_LAUNCH_H_

#include <string>
#include <vector>

#include "kernels/api/registry.h"
#include "kernels/catalog/catalog.h"

namespace gridclock {

inline absl::Status LaunchFastest(const RegisteredKernel& kernel, const Binding& binding,
                                  const std::vector<void*>& data, Threads& threads) {
  std::vector<OperandView> in, out;
  std::size_t next = 0;
  for (const OperandValue& value : binding.inputs) in.push_back({&value, {data[next++]}});
  for (const OperandValue& value : binding.outputs) out.push_back({&value, {data[next++]}});
  return kernel.def.cpu.back().launch({.binding = &binding,
                                       .inputs = in,
                                       .outputs = out,
                                       .scratch = {},
                                       .threads = &threads,
                                       .stream = nullptr});
}

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_UNIT_CATALOG_LAUNCH_H_
