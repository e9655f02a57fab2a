// Any bytes as a cubin: facts or an error, and facts that are sane.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "kernels/compiler/cubin.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto facts =
      gridclock::ReadCubin(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!facts.ok()) return 0;
  for (const gridclock::ModuleEntry& entry : facts->entries) {
    FUZZ_CHECK(entry.max_threads <= 1024);
    FUZZ_CHECK(entry.required_block.empty() || entry.required_block.size() == 3);
    FUZZ_CHECK(entry.parameters.size() <= size);
  }
  return 0;
}
