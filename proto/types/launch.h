// A program meets a call: the clauses of its launches become numbers, and these are held against
// what a device and the entries of a module take. Pure; the server and the worker do the same.
#ifndef GRIDCLOCK_PROTO_TYPES_LAUNCH_H_
#define GRIDCLOCK_PROTO_TYPES_LAUNCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/types/binding.h"
#include "proto/types/module.h"
#include "proto/types/occupancy.h"
#include "proto/types/program.h"

namespace gridclock {

// What a device takes at most, by the tables of the CUDA C++ Programming Guide.
struct LaunchLimits {
  std::array<std::int64_t, 3> grid = {2147483647, 65535, 65535};
  std::array<std::int64_t, 3> block = {1024, 1024, 64};
  std::int64_t block_threads = 1024;
  std::int64_t cluster_blocks = 1;        // Portable; 1: it has no clusters.
  std::int64_t shared_bytes = 48 * 1024;  // Of a block, static and dynamic.
  std::int64_t parameter_bytes = 4096;    // Of all parameters of a kernel.
};
// A device that is no GPU, and a GPU that is in no table, have those of sm_90.
LaunchLimits LaunchLimitsOf(const DeviceTraits& device);
// Likewise, of one multiprocessor.
const SmLimits& SmLimitsOf(const DeviceTraits& device);

// One parameter of a kernel.
struct BoundParam {
  // Whose `index` counts: in Binding::inputs, in Binding::outputs, or among the scratch tensors.
  enum class Side : std::uint8_t { kInput, kOutput, kScratch };
  ParamSpec::Kind kind = ParamSpec::Kind::kNull;
  Side side = Side::kInput;
  std::size_t index = 0;
  std::uint64_t size = 8;               // Bytes that it takes among the parameters.
  std::array<std::byte, 8> value = {};  // Of kValue, as the device has it. The first `size`.
  std::optional<DType> dtype = {};      // Of kOperand: of its elements.
};

struct BoundLaunch {
  // x, y, z. A grid with a 0 in it has no blocks: there is nothing to launch.
  std::array<std::uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1}, cluster = {1, 1, 1};
  std::uint64_t shared_bytes = 0;  // Dynamic.
  bool cooperative = false;
  std::vector<BoundParam> params;

  bool is_empty() const { return grid[0] == 0 || grid[1] == 0 || grid[2] == 0; }
  bool has_cluster() const { return cluster != std::array<std::uint32_t, 3>{1, 1, 1}; }
  std::uint64_t block_threads() const { return std::uint64_t{block[0]} * block[1] * block[2]; }
};

struct BoundProgram {
  std::vector<OperandValue> scratch;  // As the words have it.
  std::vector<BoundLaunch> launches;
};

// `program` is as CompleteProgram gives it and `binding` of its words. INVALID_ARGUMENT, with the
// field, quotes what was not kept: "launches[0]: grid.y is 70000, at most 65535 ('H')".
absl::StatusOr<BoundProgram> BindProgram(const Program& program, const Binding& binding,
                                         const DeviceTraits& device);

// Whether this entry can be launched like that: number, sizes and, as far as they are known, types
// of its parameters, threads of a block, shared memory. INVALID_ARGUMENT says what the entry takes
// and what the words give. `params` are those of the launch's clauses, for their names.
absl::Status CheckEntry(const ModuleEntry& entry, const std::vector<ParamSpec>& params,
                        const BoundLaunch& launch, const LaunchLimits& limits);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_LAUNCH_H_
