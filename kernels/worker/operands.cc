#include "kernels/worker/operands.h"

#include <algorithm>
#include <random>

#include <xxhash.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "kernels/verify/verify.h"
#include "proto/types/generator.h"
#include "proto/types/tensor.h"
#include "proto/types/tensor_offsets.h"

namespace gridclock {
namespace {

constexpr absl::Duration kAskForMemoryEvery = absl::Milliseconds(10);

// Large and finite in every floating type, so that neither zero nor NaN can pass for it, and no
// bool. In f8e5m2 0x7B is what all that is too large becomes.
std::byte PoisonOf(const OperandValue& value) {
  const bool common = !value.tensors.empty() && value.tensors[0].dtype == DType::kF8E5M2;
  return common ? std::byte{0x5B} : std::byte{0x7B};
}

void Point(std::byte* base, OperandView* view) {
  const std::vector<std::uint64_t> offsets = TensorOffsets(*view->value);
  for (std::size_t i = 0; i < view->data.size(); ++i) view->data[i] = base + offsets[i];
}

bool LiesInArena(const WorkerOperand& operand) {
  return operand.memory.size >= OperandBytes(operand.value);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceBuffer>> Operands::Allocate(std::uint64_t bytes,
                                                                 absl::string_view what) {
  // An empty operand has an address too.
  const std::uint64_t want = std::max(bytes, kTensorAlignment);
  auto buffer = parts_.device.Allocate(want);
  const auto full = [&] { return absl::IsResourceExhausted(buffer.status()); };
  if (full() && parts_.early.Clear()) buffer = parts_.device.Allocate(want);
  for (; full() && looks_left_ > 0 && parts_.device.MayGetMemory(want); --looks_left_) {
    absl::SleepFor(kAskForMemoryEvery);
    buffer = parts_.device.Allocate(want);
  }
  if (buffer.ok()) {
    bytes_ += (*buffer)->size();
    return buffer;
  }
  const absl::Status status = Annotate(
      buffer.status(),
      absl::StrCat(what, " of '", parts_.call.launch_name, "', beside ", bytes_, " bytes before"));
  if (status.code() != absl::StatusCode::kResourceExhausted) return status;
  return WithReason(status, "MEMORY_FULL");
}

absl::StatusOr<std::byte*> Operands::PlaceOne(const WorkerOperand& operand, absl::string_view what,
                                              std::size_t index) {
  if (!own_memory_) {
    if (!LiesInArena(operand)) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " ", index, " takes ", OperandBytes(operand.value),
                       " bytes and has no place in the arena, in which this device works"));
    }
    bytes_ += operand.memory.size;
    return At(operand.memory) + margin_;
  }
  GC_ASSIGN_OR_RETURN(auto buffer, Allocate(OperandBytes(operand.value) + 2 * margin_,
                                            absl::StrCat(what, " ", index)));
  return static_cast<std::byte*>(buffers_.emplace_back(std::move(buffer))->data()) + margin_;
}

absl::StatusOr<std::byte*> Operands::PlaceInput(std::size_t index) {
  EarlyCopies::Copied copied = parts_.early.Take(parts_.order, index);
  early_bytes_.push_back(copied.bytes);
  if (copied.buffer == nullptr) return PlaceOne(parts_.order.inputs[index], "input", index);
  bytes_ += copied.buffer->size();
  return static_cast<std::byte*>(buffers_.emplace_back(std::move(copied.buffer))->data());
}

absl::Status Operands::Place() {
  const WorkerOrder& order = parts_.order;
  for (std::size_t i = 0; i < order.inputs.size(); ++i) {
    const WorkerOperand& input = order.inputs[i];
    if (!input.generate && !LiesInArena(input)) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " was neither sent nor made"));
    }
    GC_ASSIGN_OR_RETURN(inputs_.emplace_back(), PlaceInput(i));
    Point(inputs_[i], &parts_.call.inputs[i]);
  }
  for (std::size_t i = 0; i < order.outputs.size(); ++i) {
    const WorkerOperand& output = order.outputs[i];
    const auto over = output.in_place_of;
    if (over && !(order.inputs[*over].value == output.value)) {
      return absl::InvalidArgumentError(absl::StrCat("output ", i, " is not of the shape of input ",
                                                     *over, ", over which it is"));
    }
    if (over) {
      outputs_.push_back(inputs_[*over]);
    } else {
      GC_ASSIGN_OR_RETURN(outputs_.emplace_back(), PlaceOne(output, "output", i));
    }
    Point(outputs_[i], &parts_.call.outputs[i]);
  }
  return PlaceScratch();
}

absl::Status Operands::PlaceScratch() {
  for (OperandView& view : parts_.call.scratch) {
    GC_ASSIGN_OR_RETURN(auto buffer, Allocate(OperandBytes(*view.value), "scratch"));
    Point(static_cast<std::byte*>(buffer->data()), &view);
    // What an earlier call left there is not for submitted code to find.
    if (parts_.call.program != nullptr) {
      GC_RETURN_IF_ERROR(
          parts_.device.Fill(buffer->data(), PoisonOf(*view.value), OperandBytes(*view.value)));
    }
    buffers_.push_back(std::move(buffer));
  }
  return absl::OkStatus();
}

absl::Status Operands::Fill(std::uint64_t seed_change) {
  if (own_memory_) GC_RETURN_IF_ERROR(CopyInputs());
  return MakeValues(seed_change);
}

absl::Status Operands::CopyInputs() {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const WorkerOperand& input = parts_.order.inputs[i];
    if (input.generate) continue;
    const std::uint64_t bytes = OperandBytes(input.value);
    const std::uint64_t there = std::min(early_bytes_[i], bytes);
    GC_RETURN_IF_ERROR(parts_.device.CopyIn(
        inputs_[i] + there, {At(input.memory) + there, static_cast<std::size_t>(bytes - there)}));
  }
  return parts_.device.Synchronize();
}

absl::Status Operands::MakeValues(std::uint64_t seed_change) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!parts_.order.inputs[i].generate) continue;
    Generator generator = *parts_.order.inputs[i].generate;
    generator.seed ^= seed_change;
    const OperandView& view = parts_.call.inputs[i];
    std::int64_t first = 0;  // Tensors of a list are one run of elements.
    for (std::size_t t = 0; t < view.data.size(); ++t) {
      const TensorSpec& tensor = view.value->tensors[t];
      const std::int64_t count = Elements(tensor.shape);
      GC_RETURN_IF_ERROR(
          parts_.device.Generate(generator, tensor.dtype, first, count, view.data[t]));
      first += count;
    }
  }
  return parts_.device.Synchronize();
}

absl::Status Operands::Save() {
  for (const WorkerOperand& output : parts_.order.outputs) {
    if (!output.in_place_of) continue;
    const auto input = static_cast<std::size_t>(*output.in_place_of);
    const std::uint64_t bytes = OperandBytes(output.value);
    GC_ASSIGN_OR_RETURN(auto buffer, Allocate(bytes, "the copy of an input worked on in place"));
    GC_RETURN_IF_ERROR(parts_.device.Copy(buffer->data(), inputs_[input], bytes));
    saved_.push_back({input, std::move(buffer)});
  }
  return absl::OkStatus();
}

absl::Status Operands::Refresh() {
  GC_RETURN_IF_ERROR(MakeValues(0));
  for (const Saved& saved : saved_) {
    const WorkerOperand& input = parts_.order.inputs[saved.input];
    if (!input.generate) continue;
    GC_RETURN_IF_ERROR(
        parts_.device.Copy(saved.buffer->data(), inputs_[saved.input], OperandBytes(input.value)));
  }
  return absl::OkStatus();
}

absl::Status Operands::Restore() {
  for (const Saved& saved : saved_) {
    GC_RETURN_IF_ERROR(parts_.device.Copy(inputs_[saved.input], saved.buffer->data(),
                                          OperandBytes(parts_.order.inputs[saved.input].value)));
  }
  return absl::OkStatus();
}

absl::Status Operands::Poison() {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const WorkerOperand& output = parts_.order.outputs[i];
    if (output.in_place_of) continue;
    GC_RETURN_IF_ERROR(
        parts_.device.Fill(outputs_[i], PoisonOf(output.value), OperandBytes(output.value)));
  }
  return absl::OkStatus();
}

absl::Status Operands::PoisonScratch() {
  for (const OperandView& view : parts_.call.scratch) {
    const auto byte = static_cast<std::byte>(std::random_device{}());
    GC_RETURN_IF_ERROR(parts_.device.Fill(view.data[0], byte, OperandBytes(*view.value)));
  }
  return absl::OkStatus();
}

std::vector<Operands::Whole> Operands::Wholes() const {
  std::vector<Whole> wholes;
  const auto add = [&](const WorkerOperand& operand, std::byte* there) {
    const auto size = static_cast<std::size_t>(OperandBytes(operand.value) + 2 * margin_);
    wholes.push_back({.here = {At(operand.memory), size}, .there = there - margin_});
  };
  for (std::size_t i = 0; i < inputs_.size(); ++i) add(parts_.order.inputs[i], inputs_[i]);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (!parts_.order.outputs[i].in_place_of) add(parts_.order.outputs[i], outputs_[i]);
  }
  return wholes;
}

absl::Status Operands::TakeAll() {
  if (!own_memory_) return absl::OkStatus();
  for (const Whole& whole : Wholes()) {
    GC_RETURN_IF_ERROR(parts_.device.CopyIn(whole.there, whole.here));
  }
  return parts_.device.Synchronize();
}

absl::Status Operands::GiveAll() {
  if (!own_memory_) return absl::OkStatus();
  for (const Whole& whole : Wholes()) {
    GC_RETURN_IF_ERROR(parts_.device.CopyOut(whole.here, whole.there));
  }
  return parts_.device.Synchronize();
}

absl::Status Operands::Return() {
  if (!own_memory_) return absl::OkStatus();
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const WorkerOperand& output = parts_.order.outputs[i];
    if (output.memory.size == 0) continue;
    GC_RETURN_IF_ERROR(parts_.device.CopyOut(
        {At(output.memory), static_cast<std::size_t>(OperandBytes(output.value))}, outputs_[i]));
  }
  return parts_.device.Synchronize();
}

absl::StatusOr<std::uint64_t> Operands::Checksum(std::size_t output) {
  const OperandView& view = parts_.call.outputs[output];
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  for (std::size_t i = 0; i < view.data.size(); ++i) {
    const auto bytes = static_cast<std::uint64_t>(Bytes(view.value->tensors[i]));
    const auto* data = static_cast<const std::byte*>(view.data[i]);
    if (own_memory_) {
      GC_RETURN_IF_ERROR(parts_.staging.Receive(data, bytes, [&](std::span<const std::byte> piece) {
        XXH3_64bits_update(state.get(), piece.data(), piece.size());
      }));
    } else {
      XXH3_64bits_update(state.get(), data, static_cast<std::size_t>(bytes));
    }
  }
  return XXH3_64bits_digest(state.get());
}

std::vector<OperandView> Operands::Submitted() const {
  std::vector<OperandView> inputs = parts_.call.inputs;
  for (const Saved& saved : saved_) {
    Point(static_cast<std::byte*>(saved.buffer->data()), &inputs[saved.input]);
  }
  if (!own_memory_) return inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const WorkerOperand& input = parts_.order.inputs[i];
    if (!input.generate) Point(At(input.memory), &inputs[i]);
  }
  return inputs;
}

}  // namespace gridclock
