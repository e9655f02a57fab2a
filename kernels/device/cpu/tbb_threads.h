// The threads of the CPU device, and of others for their work on the host: a oneTBB arena.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CPU_TBB_THREADS_H_
#define GRIDCLOCK_KERNELS_DEVICE_CPU_TBB_THREADS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/api/kernel.h"
#include "proto/types/generator.h"

namespace gridclock {

class TbbThreads final : public Threads {
 public:
  // `count` threads in all, the calling one among them. It may exceed the number of cores.
  explicit TbbThreads(int count);
  ~TbbThreads() override;

  int count() const override { return count_; }
  // At most count() parts, the same at every call with the same n and grain, so that a reduction
  // over parts gives the same bits each time. One part runs on the calling thread with no dispatch.
  void ParallelFor(std::int64_t n, std::int64_t grain,
                   absl::FunctionRef<void(std::int64_t, std::int64_t)> body) override;

 private:
  struct Arena;  // Keeps TBB's headers out of this one.
  int count_;
  std::unique_ptr<Arena> arena_;
};

// Generate() of proto/types by all threads.
void GenerateBy(Threads& threads, const Generator& generator, DType dtype, std::int64_t first,
                std::span<std::byte> out);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CPU_TBB_THREADS_H_
