// How fast the kernels are beside what this machine can do: memory-bound ones beside the best copy
// loop, sums beside a loop that only reads as well, matmul beside OpenBLAS. Prints one JSON line
// for each case, with a ratio for each round; the two sides of a ratio are timed in turn.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <cblas.h>
#include <time.h>

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

// Seconds of the fastest run of each, which are run in turn.
std::vector<double> Fastest(int runs, const std::vector<std::function<void()>>& sides) {
  std::vector<double> best(sides.size(), 1e9);
  for (int i = 0; i < runs; ++i) {
    for (std::size_t side = 0; side < sides.size(); ++side) {
      const double start = Now();
      sides[side]();
      best[side] = std::min(best[side], Now() - start);
    }
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
  bool informative = false;
  std::vector<double> samples = {};
};

void Print(const Line& line) {
  std::printf(
      "{\"name\": \"%s\", \"goal\": %g, \"unit\": \"%s\", \"samples\": [%s], "
      "\"higher_is_better\": %s, \"informative\": %s}\n",
      line.name.c_str(), line.goal, line.unit,
      absl::StrJoin(line.samples, ", ",
                    [](std::string* out, double x) { absl::StrAppendFormat(out, "%.4f", x); })
          .c_str(),
      line.higher_is_better ? "true" : "false", line.informative ? "true" : "false");
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

// The loops that set the floor: three that copy 256 MiB (memcpy, plain vector stores, stores past
// the caches) and, last, one that only reads.
std::vector<std::function<void()>> FloorLoops(Threads& threads, const Memory& memory) {
  const auto with = [&](auto loop) {
    return [&threads, &memory, loop] {
      threads.ParallelFor(kElements, 1 << 20, [&](std::int64_t begin, std::int64_t end) {
        loop(memory.at(0) + begin, memory.at(2) + begin, end - begin);
      });
    };
  };
  const auto copy = [](const float* from, float* to, std::int64_t n) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * 4);
  };
  const auto read = [](const float* from, float*, std::int64_t n) {
    volatile float sink = ReadLoop(from, n);
    static_cast<void>(sink);
  };
  return {with(copy), with(CopyLoop), with(StreamLoop), with(read)};
}

// What a memory-bound case is measured by.
enum class Measure { kBytesPerSecond, kTime };

struct MemoryCase {
  std::string name;
  Measure measure;
  const char* kernel;
  std::vector<NamedOperand> inputs;
  std::vector<NamedAttribute> attributes;
  std::vector<void*> data;
  double moved;  // Bytes; where it is less than a copy moves, the case only reads.
  Expected expected;
};

std::vector<MemoryCase> MemoryCases(const Memory& memory) {
  using enum Measure;
  constexpr std::int64_t kRows = kElements / 1024;
  float *a = memory.at(0), *b = memory.at(1), *c = memory.at(2);
  const Shape flat{kElements}, rows{kRows, 1024};
  std::vector<MemoryCase> cases;
  const auto each = [=](auto f) {
    return EachOf(kElements, [=](std::int64_t i) { return f(static_cast<double>(a[i])); });
  };
  const auto map = [&](const char* name, Measure measure, const char* kernel, const Shape& shape,
                       std::vector<NamedAttribute> attributes, Expected want) {
    cases.push_back({name,
                     measure,
                     kernel,
                     {F32("x", shape)},
                     std::move(attributes),
                     {a, c},
                     2 * kBytes,
                     std::move(want)});
  };
  const auto sum = [&](const char* name, const Shape& shape, std::vector<NamedAttribute> attributes,
                       Expected want) {
    map(name, kBytesPerSecond, "sum", shape, std::move(attributes), std::move(want));
    cases.back().moved = kBytes;
  };
  const auto axis = [](std::int64_t i) { return std::vector<NamedAttribute>{{"axis", i}}; };
  map("square.f32.256MiB", kBytesPerSecond, "square", flat, {},
      each([](double x) { return x * x; }));
  sum("sum.f32.256MiB.flat", flat, {}, ColumnSums(a, kElements, 1));
  sum("sum.f32.256MiB.axis0", rows, axis(0), ColumnSums(a, kRows, 1024));
  sum("sum.f32.256MiB.last_axis", rows, axis(-1), RowSums(a, kRows, 1024));
  map("gelu.tanh.f32.256MiB", kTime, "gelu", flat, {}, each(GeluTanh));
  map("gelu.none.f32.256MiB", kTime, "gelu", flat, {{"approximate", std::string("none")}},
      each(GeluErf));
  map("softmax.f32.65536x1024", kTime, "softmax", rows, {}, RowSoftmax(a, kRows, 1024));
  cases.push_back({"vector_add.f32.256MiB",
                   kBytesPerSecond,
                   "vector_add",
                   {F32("a", flat), F32("b", flat)},
                   {},
                   {a, b, c},
                   3 * kBytes,
                   EachOf(kElements, [=](std::int64_t i) { return double{a[i]} + b[i]; })});
  return cases;
}

// Before any time is taken.
absl::Status CheckResult(const MemoryCase& one, const BoundCall& call, Device& device, float* out) {
  constexpr std::byte kNaN{0xFF};
  GC_RETURN_IF_ERROR(device.Fill(out, kNaN, kBytes));
  call();
  return CheckSample(one.name, one.expected, out);
}

Line GoalOf(const MemoryCase& one) {
  const std::string name = absl::StrCat("kernel.", one.name);
  if (one.measure == Measure::kTime) return {name, 1.5, "times the best copy", false};
  return {name, 0.8, "of the best copy's bytes/s", true};
}

// The lines of one case: its goal and, for what only reads, how near it comes to the loop that
// only reads, and that loop to the best copy.
void MeasureCase(const MemoryCase& one, const BoundCall& call,
                 std::vector<std::function<void()>> sides, int rounds) {
  constexpr int kRuns = 3;
  sides.emplace_back([&] { call(); });
  Line goal = GoalOf(one);
  Line beside{absl::StrCat(goal.name, ".of_reader"), 1, "of the read loop's bytes/s", true, true};
  Line reader{absl::StrCat(goal.name, ".reader"), 1, "the read loop, of the best copy's bytes/s",
              true, true};
  for (int round = -1; round < rounds; ++round) {  // The first one warms up.
    const std::vector<double> seconds = Fastest(kRuns, sides);
    const double copy = std::min({seconds[0], seconds[1], seconds[2]});
    const double read = seconds[3], ours = seconds[4];
    if (round < 0) continue;
    const double rate = one.moved / ours / (2 * kBytes / copy);
    goal.samples.push_back(one.measure == Measure::kTime ? ours / copy : rate);
    beside.samples.push_back(read / ours);
    reader.samples.push_back(kBytes / read / (2 * kBytes / copy));
  }
  Print(goal);
  if (one.moved > kBytes) return;
  Print(beside);
  Print(reader);
}

absl::Status MemoryBound(const Registry& registry, CpuDevice& device, const Options& options) {
  GC_ASSIGN_OR_RETURN(const Memory memory, MakeMemory(device));
  const auto floor = FloorLoops(*device.threads(), memory);
  for (const MemoryCase& one : MemoryCases(memory)) {
    if (!absl::StrContains(GoalOf(one).name, options.filter)) continue;
    GC_ASSIGN_OR_RETURN(const auto call, BoundCall::Create(registry, device, one.kernel, one.inputs,
                                                           one.attributes, one.data));
    GC_RETURN_IF_ERROR(CheckResult(one, call, device, memory.at(2)));
    MeasureCase(one, call, floor, options.rounds);
  }
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
    const double ours = Fastest(runs, {[&] { call(); }})[0];
    const double theirs = Fastest(runs, {[&] { by_openblas(c); }})[0];
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
  std::fprintf(stderr, "OpenBLAS %s\n", openblas_get_corename());
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
