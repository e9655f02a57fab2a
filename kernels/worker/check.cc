#include "kernels/worker/check.h"

#include <cstring>
#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/verify/verify.h"

namespace gridclock {
namespace {

// Brings what a check asks for from the arena and from the device.
class ArenaAndDevice final : public OperandReader {
 public:
  ArenaAndDevice(Device& device, std::span<const std::byte> arena)
      : device_(device), arena_(arena) {}

  absl::Status Read(const void* from, std::span<std::byte> to) override {
    const auto* data = static_cast<const std::byte*>(from);
    const std::less<> before;
    const bool in_arena =
        !before(data, arena_.data()) && before(data, arena_.data() + arena_.size());
    if (!in_arena) return device_.CopyOut(to, from);
    std::memcpy(to.data(), data, to.size());
    return absl::OkStatus();
  }
  absl::Status Finish() override { return device_.Synchronize(); }

 private:
  Device& device_;
  const std::span<const std::byte> arena_;
};

// Where one row of the reference for each thread lies: on the host, as part of the device's own
// budget where that is the host.
class Rows {
 public:
  absl::Status Make(Device& device, std::uint64_t bytes, std::uint64_t arena_bytes) {
    if (!device.uses_host_memory()) {
      GC_RETURN_IF_ERROR(CheckRowBytes(static_cast<std::int64_t>(bytes), arena_bytes));
      host_ = std::make_unique<double[]>((bytes + sizeof(double) - 1) / sizeof(double));
      span_ = {reinterpret_cast<std::byte*>(host_.get()), static_cast<std::size_t>(bytes)};
      return absl::OkStatus();
    }
    GC_ASSIGN_OR_RETURN(buffer_, device.Allocate(bytes));
    span_ = {static_cast<std::byte*>(buffer_->data()), static_cast<std::size_t>(buffer_->size())};
    return absl::OkStatus();
  }
  std::span<std::byte> span() const { return span_; }
  std::uint64_t device_bytes() const { return buffer_ != nullptr ? buffer_->size() : 0; }

 private:
  std::unique_ptr<double[]> host_;
  std::unique_ptr<DeviceBuffer> buffer_;
  std::span<std::byte> span_;
};

}  // namespace

absl::StatusOr<Checked> CheckOutputs(const CheckRequest& request) {
  const KernelDef& def = request.call.kernel->def;
  const Binding& binding = request.call.binding;
  Threads& threads = *request.device.threads();
  Rows rows;
  const auto bytes = VerifyBytes(def, binding, threads.count());
  if (auto made =
          rows.Make(request.device, static_cast<std::uint64_t>(bytes), request.arena.size());
      !made.ok()) {
    return Annotate(made, absl::StrCat("verifying '", request.call.launch_name, "'"));
  }
  ArenaAndDevice reader(request.device, request.arena);
  GC_ASSIGN_OR_RETURN(
      Verification found,
      Verify(def, binding, request.operands.Submitted(), request.call.outputs, threads, rows.span(),
             {.most_terms = request.most_terms,
              .seed = request.seed,
              .magnitude = request.call.variant->magnitude,
              .poll = request.poll,
              .reader = request.operands.own_memory() ? &reader : nullptr}));
  return Checked{.verification = std::move(found), .device_bytes = rows.device_bytes()};
}

}  // namespace gridclock
