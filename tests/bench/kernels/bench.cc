// How fast the kernels are beside what this machine can do: memory-bound ones beside the best copy
// loop, matmul beside OpenBLAS. Prints one JSON line for each case, with a ratio for each round;
// the two sides of a ratio are timed one after the other in every round.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cblas.h>
#include <time.h>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/api/registry.h"
#include "kernels/catalog/catalog.h"
#include "kernels/device/cpu/cpu_device.h"
#include "kernels/device/cpu/loops.h"
#include "proto/types/generator.h"
#include "tests/bench/kernels/expected.h"

namespace gridclock {
namespace {

constexpr std::int64_t kElements = std::int64_t{64} << 20;  // 256 MiB of f32.
constexpr std::int64_t kBytes = kElements * 4;

double Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void Pause() {
  // OpenBLAS's threads spin for some 20 ms after their work and would take a core from what
  // follows.
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 40'000'000};
  nanosleep(&kPause, nullptr);
}

// Seconds of the fastest of a few runs.
double Fastest(int runs, absl::FunctionRef<void()> run) {
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    const double start = Now();
    run();
    best = std::min(best, Now() - start);
  }
  return best;
}

struct Options {
  int rounds = 9;
  std::string filter;
};

struct Line {
  std::string name;
  double goal;
  const char* unit;
  bool higher_is_better;
  std::vector<double> samples = {};
};

void Print(const Line& line) {
  std::printf(
      "{\"name\": \"%s\", \"goal\": %g, \"unit\": \"%s\", \"samples\": [%s], "
      "\"higher_is_better\": %s}\n",
      line.name.c_str(), line.goal, line.unit,
      absl::StrJoin(line.samples, ", ",
                    [](std::string* out, double x) { absl::StrAppendFormat(out, "%.4f", x); })
          .c_str(),
      line.higher_is_better ? "true" : "false");
  std::fflush(stdout);
}

// One bound call of a kernel's default variant on tensors at fixed addresses.
class BoundCall {
 public:
  static absl::StatusOr<BoundCall> Create(const Registry& registry, Device& device,
                                          const std::string& name,
                                          const std::vector<NamedOperand>& inputs,
                                          const std::vector<NamedAttribute>& attributes,
                                          std::vector<void*> data) {
    const RegisteredKernel* kernel = registry.Find(name);
    if (kernel == nullptr) return absl::NotFoundError(name);
    GC_ASSIGN_OR_RETURN(Binding binding, Bind(kernel->spec, inputs, attributes));
    return BoundCall(device, kernel->def.cpu.back().launch, std::move(binding), std::move(data));
  }
  void operator()() const {
    std::vector<OperandView> in, out;
    std::size_t next = 0;
    for (const auto& value : binding_.inputs) in.push_back({&value, {data_[next++]}});
    for (const auto& value : binding_.outputs) out.push_back({&value, {data_[next++]}});
    const absl::Status status = launch_({.binding = &binding_,
                                         .inputs = in,
                                         .outputs = out,
                                         .scratch = {},
                                         .threads = device_->threads(),
                                         .stream = nullptr});
    if (status.ok()) return;
    // Its time would be the best of all.
    std::fprintf(stderr, "launch: %s\n", status.ToString().c_str());
    std::exit(1);
  }

 private:
  BoundCall(Device& device, LaunchFn launch, Binding binding, std::vector<void*> data)
      : device_(&device), launch_(launch), binding_(std::move(binding)), data_(std::move(data)) {}
  Device* device_;
  LaunchFn launch_;
  Binding binding_;
  std::vector<void*> data_;
};

NamedOperand F32(const char* name, Shape shape) {
  return {name, {.is_list = false, .tensors = {{DType::kF32, std::move(shape)}}}};
}

// Of buffer i: inputs that are alike would hide that they were mixed up.
std::uint64_t Seed(int i) {
  return static_cast<std::uint64_t>(i) + 1;
}

struct Memory {
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  float* at(std::size_t i) const { return static_cast<float*>(buffers[i]->data()); }
};

absl::StatusOr<Memory> MakeMemory(CpuDevice& device) {
  Memory memory;
  for (int i = 0; i < 3; ++i) {
    GC_ASSIGN_OR_RETURN(auto buffer, device.Allocate(kBytes));
    auto* bytes = static_cast<std::byte*>(buffer->data());
    device.threads()->ParallelFor(kElements, 1 << 20, [&](std::int64_t begin, std::int64_t end) {
      Generate({GeneratorKind::kUniform, -4, 4, Seed(i)}, DType::kF32, begin,
               {bytes + begin * 4, static_cast<std::size_t>(end - begin) * 4});
    });
    memory.buffers.push_back(std::move(buffer));
  }
  return memory;
}

// Seconds of the best copy of 256 MiB: memcpy, plain vector stores, stores past the caches.
double CopyFloor(Threads& threads, const Memory& memory) {
  const auto with = [&](auto copy) {
    return Fastest(2, [&] {
      threads.ParallelFor(kElements, 1 << 20, [&](std::int64_t begin, std::int64_t end) {
        copy(memory.at(0) + begin, memory.at(2) + begin, end - begin);
      });
    });
  };
  const double by_memcpy = with([](const float* from, float* to, std::int64_t n) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * 4);
  });
  return std::min({by_memcpy, with(CopyLoop), with(StreamLoop)});
}

struct MemoryCase {
  Line line;
  BoundCall call;
  double moved;  // Bytes for the ratio of bandwidths; 0: the ratio is one of times.
  Expected expected;
};

// Once for each case, before any time is taken.
absl::Status CheckResults(const std::vector<MemoryCase>& cases, Device& device, float* out) {
  constexpr std::byte kNaN{0xFF};
  for (const MemoryCase& one : cases) {
    GC_RETURN_IF_ERROR(device.Fill(out, kNaN, kBytes));
    one.call();
    GC_RETURN_IF_ERROR(CheckSample(one.line.name, one.expected, out));
  }
  return absl::OkStatus();
}

absl::Status MemoryBound(const Registry& registry, CpuDevice& device, const Options& options) {
  GC_ASSIGN_OR_RETURN(const Memory memory, MakeMemory(device));
  float *a = memory.at(0), *b = memory.at(1), *c = memory.at(2);
  const auto of_x = [=](auto f) {
    return EachOf(kElements, [=](std::int64_t i) { return f(static_cast<double>(a[i])); });
  };
  std::vector<MemoryCase> cases;
  const auto add = [&](Line line, const char* kernel, const std::vector<NamedOperand>& inputs,
                       const std::vector<NamedAttribute>& attributes, std::vector<void*> data,
                       double moved, Expected expected) -> absl::Status {
    if (!absl::StrContains(line.name, options.filter)) return absl::OkStatus();
    GC_ASSIGN_OR_RETURN(auto call, BoundCall::Create(registry, device, kernel, inputs, attributes,
                                                     std::move(data)));
    cases.push_back({std::move(line), std::move(call), moved, std::move(expected)});
    return absl::OkStatus();
  };
  const Shape flat{kElements}, rows{kElements / 1024, 1024};
  constexpr const char* kRate = "of the best copy's bytes/s";
  constexpr const char* kTime = "times the best copy";
  GC_RETURN_IF_ERROR(add({"kernel.vector_add.f32.256MiB", 0.8, kRate, true}, "vector_add",
                         {F32("a", flat), F32("b", flat)}, {}, {a, b, c}, 3 * kBytes,
                         EachOf(kElements, [=](std::int64_t i) { return double{a[i]} + b[i]; })));
  GC_RETURN_IF_ERROR(add({"kernel.square.f32.256MiB", 0.8, kRate, true}, "square", {F32("x", flat)},
                         {}, {a, c}, 2 * kBytes, of_x([](double x) { return x * x; })));
  GC_RETURN_IF_ERROR(add({"kernel.sum.f32.256MiB.flat", 0.8, kRate, true}, "sum", {F32("x", flat)},
                         {}, {a, c}, kBytes, ColumnSums(a, kElements, 1)));
  GC_RETURN_IF_ERROR(add({"kernel.sum.f32.256MiB.axis0", 0.8, kRate, true}, "sum", {F32("x", rows)},
                         {{"axis", std::int64_t{0}}}, {a, c}, kBytes,
                         ColumnSums(a, kElements / 1024, 1024)));
  GC_RETURN_IF_ERROR(add({"kernel.gelu.tanh.f32.256MiB", 1.5, kTime, false}, "gelu",
                         {F32("x", flat)}, {}, {a, c}, 0, of_x(GeluTanh)));
  GC_RETURN_IF_ERROR(add({"kernel.gelu.none.f32.256MiB", 1.5, kTime, false}, "gelu",
                         {F32("x", flat)}, {{"approximate", std::string("none")}}, {a, c}, 0,
                         of_x(GeluErf)));
  GC_RETURN_IF_ERROR(add({"kernel.softmax.f32.65536x1024", 1.5, kTime, false}, "softmax",
                         {F32("x", rows)}, {}, {a, c}, 0, RowSoftmax(a, kElements / 1024, 1024)));
  if (cases.empty()) return absl::OkStatus();
  GC_RETURN_IF_ERROR(CheckResults(cases, device, c));
  for (int round = -1; round < options.rounds; ++round) {  // The first one warms up.
    const double floor = CopyFloor(*device.threads(), memory);
    for (MemoryCase& one : cases) {
      const double seconds = Fastest(2, [&] { one.call(); });
      const double ratio =
          one.moved == 0 ? seconds / floor : one.moved / seconds / (2 * kBytes / floor);
      if (round >= 0) one.line.samples.push_back(ratio);
    }
  }
  for (const MemoryCase& one : cases) Print(one.line);
  return absl::OkStatus();
}

absl::Status Matmul(const Registry& registry, CpuDevice& device, std::int64_t n,
                    const Options& options) {
  const int threads = device.threads()->count();
  Line line{absl::StrCat("kernel.matmul.f32.", n, threads == 1 ? ".one_thread" : ".all_threads"),
            1.2, "times OpenBLAS", false};
  if (!absl::StrContains(line.name, options.filter)) return absl::OkStatus();
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  for (int i = 0; i < 3; ++i) {
    GC_ASSIGN_OR_RETURN(auto buffer, device.Allocate(static_cast<std::uint64_t>(n * n) * 4));
    Generate({GeneratorKind::kUniform, -1, 1, Seed(i)}, DType::kF32, 0,
             {static_cast<std::byte*>(buffer->data()), static_cast<std::size_t>(n * n) * 4});
    buffers.push_back(std::move(buffer));
  }
  auto* a = static_cast<float*>(buffers[0]->data());
  auto* b = static_cast<float*>(buffers[1]->data());
  auto* c = static_cast<float*>(buffers[2]->data());
  GC_ASSIGN_OR_RETURN(const BoundCall call,
                      BoundCall::Create(registry, device, "matmul",
                                        {F32("a", {n, n}), F32("b", {n, n})}, {}, {a, b, c}));
  openblas_set_num_threads(threads);
  const auto size = static_cast<blasint>(n);
  const auto by_openblas = [&](float* out) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1, a, size, b, size, 0,
                out, size);
  };
  call();
  std::vector<float> wanted(static_cast<std::size_t>(n * n));
  by_openblas(wanted.data());
  GC_RETURN_IF_ERROR(CheckSame(line.name, wanted, c, 1e-5 * std::sqrt(static_cast<double>(n))));
  const int runs = n <= 512 ? 8 : 3;
  double gflops = 0;
  for (int round = -1; round < options.rounds; ++round) {
    const double ours = Fastest(runs, [&] { call(); });
    const double theirs = Fastest(runs, [&] { by_openblas(c); });
    Pause();
    gflops = std::max(gflops, 2e-9 * static_cast<double>(n * n * n) / ours);
    if (round >= 0) line.samples.push_back(ours / theirs);
  }
  std::fprintf(stderr, "%s: %.0f GFLOP/s at best\n", line.name.c_str(), gflops);
  Print(line);
  return absl::OkStatus();
}

absl::Status Run(const Options& options) {
  GC_ASSIGN_OR_RETURN(const Registry registry, Registry::Create(BuiltInKernels()));
  const double start = Now();
  GC_ASSIGN_OR_RETURN(const auto all, CpuDevice::Create({.level = BuiltInLevel()}));
  std::fprintf(stderr, "%s, %s, %d threads, device made in %.3f s, memory %.1f GB/s\n",
               all->info().model.c_str(), BuiltInLevel(), all->threads()->count(), Now() - start,
               all->info().memory_bandwidth / 1e9);
  GC_RETURN_IF_ERROR(MemoryBound(registry, *all, options));
  GC_ASSIGN_OR_RETURN(const auto one, CpuDevice::Create({.threads = 1, .calibrate = false}));
  for (const std::int64_t n : {512, 1024, 2048}) {
    GC_RETURN_IF_ERROR(Matmul(registry, *one, n, options));
    GC_RETURN_IF_ERROR(Matmul(registry, *all, n, options));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace gridclock

// --check: at least 9 rounds. --rounds N, --filter TEXT.
int main(int argc, char** argv) {
  gridclock::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--check") options.rounds = std::max(options.rounds, 9);
    if (flag == "--rounds" && i + 1 < argc && !absl::SimpleAtoi(argv[++i], &options.rounds))
      return 2;
    if (flag == "--filter" && i + 1 < argc) options.filter = argv[++i];
  }
  const absl::Status status = gridclock::Run(options);
  if (!status.ok()) std::fprintf(stderr, "kernels_bench: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
