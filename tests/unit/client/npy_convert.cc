// npy_convert IN OUT [DTYPE]: reads a .npy or .npz file and writes it again. For npy_numpy_test.py.
#include <iostream>

#include "absl/strings/match.h"
#include "base/status.h"
#include "client/cpp/npz.h"

namespace gridclock {
namespace {

absl::Status Convert(const std::string& in, std::optional<DType> as, const std::string& out) {
  if (absl::EndsWith(in, ".npy")) {
    GC_ASSIGN_OR_RETURN(const LoadedTensor tensor, LoadNpy(in, as));
    return WriteNpy(out, tensor.spec, tensor.bytes);
  }
  GC_ASSIGN_OR_RETURN(const auto tensors, LoadNpz(in, as));
  std::vector<NamedBytes> parts;
  for (const auto& [name, tensor] : tensors) parts.push_back({name, tensor.spec, tensor.bytes});
  return WriteNpz(out, parts);
}

}  // namespace
}  // namespace gridclock

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const auto as = argc > 3 ? gridclock::ParseDType(argv[3]) : std::nullopt;
  const absl::Status status = gridclock::Convert(argv[1], as, argv[2]);
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
