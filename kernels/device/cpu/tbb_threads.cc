#include "kernels/device/cpu/tbb_threads.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "kernels/device/cpu/own_cpus.h"
#include "tbb/global_control.h"
#include "tbb/info.h"
#include "tbb/parallel_for.h"
#include "tbb/partitioner.h"
#include "tbb/task_arena.h"

namespace gridclock {

struct TbbThreads::Arena {
  explicit Arena(int count)
      : limit(tbb::global_control::max_allowed_parallelism,
              static_cast<std::size_t>(std::max(count, tbb::info::default_concurrency()))),
        arena(count),
        cpus(count) {}
  // Lets the arena have more threads than there are cores. Never fewer: of several limits in a
  // process the least holds, so a device of one thread would slow down all others.
  tbb::global_control limit;
  tbb::task_arena arena;
  OwnCpus cpus;
};

TbbThreads::TbbThreads(int count)
    : count_(std::max(count, 1)), arena_(std::make_unique<Arena>(count_)) {}

TbbThreads::~TbbThreads() = default;

void TbbThreads::ParallelFor(std::int64_t n, std::int64_t grain,
                             absl::FunctionRef<void(std::int64_t, std::int64_t)> body) {
  if (n <= 0) return;
  grain = std::max<std::int64_t>(grain, 1);
  const std::int64_t grains = (n - 1) / grain + 1;
  const std::int64_t parts = std::min<std::int64_t>(grains, count_);
  if (parts == 1) return body(0, n);
  // The first `longer` parts have one grain more than the rest.
  const std::int64_t each = grains / parts, longer = grains % parts;
  const auto begin_of = [&](std::int64_t part) {
    return std::min(n, (part * each + std::min(part, longer)) * grain);
  };
  arena_->cpus.Place();
  const absl::Cleanup leave = [this] { arena_->cpus.Leave(); };
  arena_->arena.execute([&] {
    tbb::parallel_for(
        std::int64_t{0}, parts,
        [&](std::int64_t part) {
          arena_->cpus.Enter(tbb::this_task_arena::current_thread_index());
          body(begin_of(part), begin_of(part + 1));
        },
        tbb::static_partitioner());
  });
}

void GenerateBy(Threads& threads, const Generator& generator, DType dtype, std::int64_t first,
                std::span<std::byte> out) {
  // Whole vectors and pages for each part, so that no two threads write one cache line.
  constexpr std::int64_t kGrain = 1 << 16;
  const std::int64_t size = SizeOf(dtype);
  threads.ParallelFor(std::ssize(out) / size, kGrain, [&](std::int64_t begin, std::int64_t end) {
    Generate(generator, dtype, first + begin,
             out.subspan(static_cast<std::size_t>(begin * size),
                         static_cast<std::size_t>((end - begin) * size)));
  });
}

}  // namespace gridclock
