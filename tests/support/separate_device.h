// A device with memory of its own, as a GPU has: its addresses are none that the host can read or
// write, copies and fills happen when somebody waits for them, and it can run out of memory or
// break for good.
#ifndef GRIDCLOCK_TESTS_SUPPORT_SEPARATE_DEVICE_H_
#define GRIDCLOCK_TESTS_SUPPORT_SEPARATE_DEVICE_H_

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/device/device.h"

namespace gridclock {

class SeparateDevice final : public Device {
 public:
  explicit SeparateDevice(std::uint64_t bytes) : memory_(bytes) {
    info_.name = "cuda:0";
    info_.traits = {.kind = "cuda", .sm = 90};
    info_.host_memory = false;
    info_.memory_bytes = bytes;
  }

  // What the kernel of the next launch does to the device, once somebody waits for it.
  void BreakAtNextLaunch() { breaks_ = true; }
  // What a kernel does to it, for who waits next.
  void Break() { poisoned_ = true; }
  bool poisoned() const override { return poisoned_; }
  std::uint64_t used() const { return used_; }
  std::uint64_t most_used() const { return most_used_; }
  // The sizes of all buffers that were wanted of it.
  const std::vector<std::uint64_t>& asked() const { return asked_; }
  std::size_t pinned_bytes() const { return pinned_bytes_; }
  // That copies from the host brought, or will bring.
  std::uint64_t copied_in() const { return copied_in_; }
  std::uint64_t copied_out() const { return copied_out_; }
  // What it kept of the memory of earlier orders.
  std::uint64_t kept = 0;
  std::uint64_t kept_bytes() const override { return kept; }
  void GiveBack(std::uint64_t keep) override { kept = std::min(kept, keep); }
  // Another process has so much, and gives it back when it was looked for so often.
  void LendToOthers(std::uint64_t bytes, int looks) {
    others_ = *Allocate(bytes);
    looks_ = looks;
  }
  bool MayGetMemory(std::uint64_t) const override {
    if (others_ != nullptr && --looks_ == 0) others_ = nullptr;
    return true;
  }
  // Of the memory that threads of a block share: one word for all.
  std::uint32_t shared = 0;
  absl::Status FillShared(std::uint32_t word) override {
    shared = word;
    return absl::OkStatus();
  }
  // Copies and fills that nobody has waited for yet.
  std::size_t under_way() const { return queue_.size(); }

  // For kernels of tests: the bytes behind an address of the device, with all that was asked for
  // before done. Null for an address that is none of the device's.
  template <typename T>
  T* Reach(const void* address) {
    Work();
    return reinterpret_cast<T*>(Here(address, 0));
  }

  const DeviceInfo& info() const override { return info_; }
  bool uses_host_memory() const override { return false; }
  absl::Status RegisterHost(std::span<std::byte> host) override {
    pinned_bytes_ += host.size();
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(std::uint64_t bytes) override {
    asked_.push_back(bytes);
    const std::uint64_t size = (std::max<std::uint64_t>(bytes, 1) + 255) / 256 * 256;
    std::uint64_t at = 0;
    for (const auto& [begin, end] : taken_) {
      if (begin - at >= size) break;
      at = end;
    }
    if (size > memory_.size() || at > memory_.size() - size) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "device memory: want ", bytes, " bytes, ", used_, " of ", memory_.size(), " are in use"));
    }
    taken_[at] = at + size;
    used_ += size;
    most_used_ = std::max(most_used_, used_);
    return std::make_unique<Buffer>(*this, at, size, bytes);
  }
  absl::Status CopyIn(void* to, std::span<const std::byte> from) override {
    copied_in_ += from.size();
    return Later(to, from.size(),
                 [from](std::byte* here) { std::memcpy(here, from.data(), from.size()); });
  }
  absl::Status CopyOut(std::span<std::byte> to, const void* from) override {
    copied_out_ += to.size();
    return Later(from, to.size(),
                 [to](std::byte* here) { std::memcpy(to.data(), here, to.size()); });
  }
  absl::Status Copy(void* to, const void* from, std::uint64_t bytes) override {
    std::byte* source = Here(from, bytes);
    if (source == nullptr) return Stranger(from);
    return Later(to, bytes, [=](std::byte* here) { std::memmove(here, source, bytes); });
  }
  absl::Status Fill(void* to, std::byte value, std::uint64_t bytes) override {
    return Later(to, bytes,
                 [=](std::byte* here) { std::memset(here, static_cast<int>(value), bytes); });
  }
  absl::Status Generate(const Generator& generator, DType dtype, std::int64_t first,
                        std::int64_t count, void* to) override {
    const auto bytes = static_cast<std::size_t>(count * SizeOf(dtype));
    return Later(to, bytes, [=](std::byte* here) {
      gridclock::Generate(generator, dtype, first, {here, bytes});
    });
  }
  absl::Status Synchronize() override {
    Work();
    return Health();
  }
  Threads* threads() override { return &threads_; }
  void* stream() override { return nullptr; }
  std::span<const Method> methods() const override { return methods_; }
  absl::StatusOr<TimedLaunch> Time(Method method,
                                   absl::FunctionRef<absl::Status()> launch) override {
    GC_RETURN_IF_ERROR(Health());
    const int launches = method == Method::kBackToBack ? 3 : 1;
    for (int i = 0; i < launches; ++i) GC_RETURN_IF_ERROR(launch());
    Work();
    if (std::exchange(breaks_, false)) poisoned_ = true;
    GC_RETURN_IF_ERROR(Health());
    ++launches_;
    return TimedLaunch{.duration_ns = 1000,
                       .host_start_ns = launches_ * 1000,
                       .host_returned_ns = launches_ * 1000 + 10,
                       .host_end_ns = launches_ * 1000 + 1000,
                       .launches = launches};
  }
  absl::Status PrepareCache(L2State) override { return absl::OkStatus(); }
  Conditions Observe() override { return {}; }
  Roofline RooflineOf(const gridclock::Work&, L2State) const override { return {}; }

 private:
  // No address of a program: who reads or writes it on the host dies.
  static constexpr std::uintptr_t kBase = 0xDE00'0000'0000'0000U;

  class Buffer final : public DeviceBuffer {
   public:
    Buffer(SeparateDevice& device, std::uint64_t at, std::uint64_t taken, std::uint64_t size)
        : device_(device), at_(at), taken_(taken), size_(size) {}
    ~Buffer() override {
      device_.taken_.erase(at_);
      device_.used_ -= taken_;
    }
    void* data() const override { return reinterpret_cast<void*>(kBase + at_); }
    std::uint64_t size() const override { return size_; }

   private:
    SeparateDevice& device_;
    const std::uint64_t at_, taken_, size_;
  };

  class OneThread final : public Threads {
   public:
    int count() const override { return 1; }
    void ParallelFor(std::int64_t n, std::int64_t,
                     absl::FunctionRef<void(std::int64_t, std::int64_t)> body) override {
      if (n > 0) body(0, n);
    }
  };

  std::byte* Here(const void* address, std::uint64_t bytes) {
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(address) - kBase;
    if (at > memory_.size() || bytes > memory_.size() - at) return nullptr;
    return memory_.data() + at;
  }
  static absl::Status Stranger(const void* address) {
    return absl::InternalError(
        absl::StrCat("not an address of the device: ", reinterpret_cast<std::uintptr_t>(address)));
  }
  absl::Status Later(const void* address, std::uint64_t bytes,
                     std::function<void(std::byte*)> work) {
    GC_RETURN_IF_ERROR(Health());
    std::byte* here = Here(address, bytes);
    if (here == nullptr) return Stranger(address);
    queue_.push_back([=] { work(here); });
    return absl::OkStatus();
  }
  void Work() {
    for (const auto& work : std::exchange(queue_, {})) work();
  }
  absl::Status Health() const {
    if (!poisoned_) return absl::OkStatus();
    return WithReason(absl::FailedPreconditionError("cudaErrorIllegalAddress"), "KERNEL_FAULT");
  }

  DeviceInfo info_;
  std::vector<std::byte> memory_;
  std::map<std::uint64_t, std::uint64_t> taken_;  // Begin to end.
  std::vector<std::function<void()>> queue_;
  std::uint64_t used_ = 0, most_used_ = 0;
  std::vector<std::uint64_t> asked_;
  std::size_t pinned_bytes_ = 0;
  std::uint64_t copied_in_ = 0, copied_out_ = 0;
  std::int64_t launches_ = 0;
  bool breaks_ = false, poisoned_ = false;
  OneThread threads_;
  std::vector<Method> methods_ = {Method::kIsolated, Method::kBackToBack};
  mutable int looks_ = 0;
  mutable std::unique_ptr<DeviceBuffer> others_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_SUPPORT_SEPARATE_DEVICE_H_
