// Squares four numbers on a server and says how long that took there.
//   square HOST:PORT
#include <iostream>
#include <span>
#include <vector>

#include "client/cpp/client.h"

using namespace gridclock;  // NOLINT(google-build-using-namespace): an example may.

int main(int argc, char** argv) {
  const auto client = Client::Connect({.server = argc > 1 ? argv[1] : "127.0.0.1:8470"});
  if (!client.ok()) {
    std::cerr << client.status() << "\n";
    return 2;
  }
  const std::vector<float> x = {1, 2, 3, 4};
  RunCall call;
  call.kernel = "square";
  call.verify = true;
  call.inputs = {{.name = "x",
                  .value = {.is_list = false, .tensors = {{.dtype = DType::kF32, .shape = {4}}}},
                  .bytes = {std::as_bytes(std::span(x))},
                  .generator = {}}};
  const auto result = (*client)->Run(call);
  if (!result.ok()) {
    std::cerr << result.status() << "\n";
    return 1;
  }
  if (result->outputs.size() != 1) {
    std::cerr << "one output wanted, got " << result->outputs.size() << "\n";
    return 1;
  }
  const CallOutput& y = result->outputs[0];
  const auto* values = reinterpret_cast<const float*>(y.bytes.data());
  for (std::size_t i = 0; i < y.bytes.size() / sizeof(float); ++i) std::cout << values[i] << " ";
  std::cout << "in " << result->summary.timing().statistics().median_ns() << " ns on "
            << result->summary.device() << "\n";
}
