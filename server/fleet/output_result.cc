#include "server/fleet/output_result.h"

#include <memory>

#include <xxhash.h>

#include "proto/types/tensor_offsets.h"

namespace gridclock {

OutputResult ResultOf(const JobOutput& output, std::span<const std::byte> memory) {
  if (output.sink != SinkKind::kChecksum) return {};
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  const std::vector<std::uint64_t> offsets = TensorOffsets(output.value);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto tensor =
        memory.subspan(offsets[i], static_cast<std::size_t>(Bytes(output.value.tensors[i])));
    XXH3_64bits_update(state.get(), tensor.data(), tensor.size());
  }
  return {.checksum = XXH3_64bits_digest(state.get())};
}

}  // namespace gridclock
