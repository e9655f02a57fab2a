// Compiles a kernel of its own on a server, runs it there, and says how long it took.
//   submit HOST:PORT
#include <iostream>
#include <span>
#include <vector>

#include "client/cpp/client.h"

using namespace gridclock;  // NOLINT(google-build-using-namespace): an example may.

constexpr char kSource[] = R"(
__global__ void square(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i];
}
)";

// Of the kernel: what it takes and gives, and its parameters. Of its launch: grid and block.
constexpr char kWords[] = "square x: f32[*] -> y: f32[*] params x, y, n: int = numel(x)";
constexpr char kLaunch[] = "grid(ceil_div(numel(x), 256)) block(256)";

absl::StatusOr<RunResult> Submit(const Client& client, const std::vector<float>& x) {
  v1::CompileRequest source;
  source.mutable_source()->set_name("square.cu");
  source.mutable_source()->set_text(kSource);
  const auto module = client.Compile(source);
  if (!module.ok()) return module.status();

  RunCall call;
  v1::Program& program = call.program.emplace();
  program.set_words(kWords);
  v1::Program::Launch* launch = program.add_launches();
  launch->set_module(module->id());
  launch->set_entry("square");
  launch->set_words(kLaunch);
  const Shape shape = {static_cast<std::int64_t>(x.size())};
  call.inputs = {{.name = "x",
                  .value = {.is_list = false, .tensors = {{.dtype = DType::kF32, .shape = shape}}},
                  .bytes = {std::as_bytes(std::span(x))},
                  .generator = {}}};
  return client.Run(call);
}

int main(int argc, char** argv) {
  const auto client = Client::Connect({.server = argc > 1 ? argv[1] : "127.0.0.1:8470"});
  if (!client.ok()) {
    std::cerr << client.status() << "\n";
    return 2;
  }
  const auto result = Submit(**client, {1, 2, 3, 4});
  if (!result.ok()) {
    std::cerr << result.status() << "\n";
    return 1;
  }
  for (const CallOutput& output : result->outputs) {
    const auto* values = reinterpret_cast<const float*>(output.bytes.data());
    for (std::size_t i = 0; i < output.bytes.size() / sizeof(float); ++i)
      std::cout << values[i] << " ";
  }
  std::cout << "in " << result->summary.timing().statistics().median_ns() << " ns on "
            << result->summary.device() << "\n";
}
