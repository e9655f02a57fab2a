#include "proto/types/job.h"

#include "proto/types/tensor_offsets.h"

namespace gridclock {
namespace {

std::uint64_t Aligned(std::uint64_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

}  // namespace

std::uint64_t TensorOffset(const OperandValue& value, std::size_t index) {
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < index; ++i) offset += Aligned(Bytes(value.tensors[i]));
  return offset;
}

std::vector<std::uint64_t> TensorOffsets(const OperandValue& value) {
  std::vector<std::uint64_t> offsets;
  offsets.reserve(value.tensors.size());
  std::uint64_t offset = 0;
  for (const TensorSpec& tensor : value.tensors) {
    offsets.push_back(offset);
    offset += Aligned(Bytes(tensor));
  }
  return offsets;
}

std::uint64_t OperandBytes(const OperandValue& value) {
  return TensorOffset(value, value.tensors.size());
}

std::uint64_t WireBytes(const OperandValue& value) {
  std::uint64_t bytes = 0;
  for (const TensorSpec& tensor : value.tensors) bytes += Bytes(tensor);
  return bytes;
}

std::string ExpectedName(const JobOutput& output) {
  return kExpectedPrefix + output.name;
}

bool MadeFromSeed(const Generator& generator) {
  return generator.kind == GeneratorKind::kRandn || generator.kind == GeneratorKind::kUniform ||
         generator.kind == GeneratorKind::kRandint;
}

void GenerateOperand(const Generator& generator, const OperandValue& value, std::byte* base) {
  const std::vector<std::uint64_t> offsets = TensorOffsets(value);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < value.tensors.size(); ++i) {
    const TensorSpec& tensor = value.tensors[i];
    Generate(generator, tensor.dtype, first,
             {base + offsets[i], static_cast<std::size_t>(Bytes(tensor))});
    first += Elements(tensor.shape);
  }
}

std::uint64_t MostOrderBytes(const Job& job) {
  constexpr std::uint64_t kAround = 4096;    // What every order has.
  constexpr std::uint64_t kOfOperand = 512;  // Its name, ranges and generator.
  constexpr std::uint64_t kOfTensor = 2, kOfNumber = 11;
  std::uint64_t bytes = kAround + job.kernel.size() + job.variant.size();
  const auto add_operand = [&bytes](const OperandValue& value) {
    bytes += kOfOperand;
    for (const TensorSpec& tensor : value.tensors) {
      bytes += kOfTensor + kOfNumber * tensor.shape.size();
    }
  };
  const auto add_attributes = [&bytes](const std::vector<AttributeValue>& values) {
    for (const AttributeValue& value : values) {
      const auto* word = std::get_if<std::string>(&value);
      bytes += 3 * kOfNumber + (word != nullptr ? word->size() : 0);
    }
  };
  for (const JobInput& input : job.inputs) add_operand(input.value);
  for (const JobOutput& output : job.outputs) add_operand(output.value);
  add_attributes(job.attributes);
  if (!job.check) return bytes;
  add_attributes(job.check->attributes);
  const auto launches = static_cast<std::uint64_t>(job.check->most_launches);
  return bytes + job.check->kernel.size() + kOfNumber * (launches + 1);
}

std::uint64_t GuestBytes(const Job& job) {
  if (!job.check) return job.memory.size;
  std::uint64_t bytes = 0;
  for (const JobInput& input : job.inputs) bytes += OperandBytes(input.value) + 2 * kCheckMargin;
  for (const JobOutput& output : job.outputs) {
    if (!output.in_place_of) bytes += OperandBytes(output.value) + 2 * kCheckMargin;
  }
  return bytes;
}

MemoryRange CheckedOutput(const Job& job, std::size_t launch, std::size_t output) {
  return {.offset = job.check->launches.offset + launch * job.check->launch_bytes +
                    OutputsBytes(job.outputs, output),
          .size = OperandBytes(job.outputs[output].value)};
}

Job ReferenceJob(const Job& job) {
  const JobCheck& check = *job.check;
  Job out = job;
  out.program = check.program;
  out.kernel = check.program->program.words.name;
  out.attributes = check.attributes;
  out.streamed = false;
  const auto launches = static_cast<std::int64_t>(check.done->seed_changes.size());
  out.measure.reset();
  if (launches > 1) {
    out.measure.emplace();
    out.measure->schedule = Schedule{.active = launches};
    if (job.measure) out.measure->budget = job.measure->budget;
  }
  out.check = JobCheck{.kernel = "",
                       .most_launches = launches,
                       .secrets = check.done->seed_changes,
                       .launches = check.references,
                       .launch_bytes = check.launch_bytes,
                       .replays = true};
  out.outputs = check.outputs_of;
  return out;
}

const Job& GivenNow(const Job& job) {
  const bool reference = job.check && job.check->done->reference != nullptr;
  return reference ? *job.check->done->reference : job;
}

}  // namespace gridclock
