// Words meet a call: names get values, outputs get shapes, costs become numbers.
#ifndef GRIDCLOCK_PROTO_TYPES_BINDING_H_
#define GRIDCLOCK_PROTO_TYPES_BINDING_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/types/kernel_spec.h"
#include "proto/types/tensor.h"

namespace gridclock {

struct NamedOperand {
  std::string name;
  OperandValue value;
};
struct NamedAttribute {
  std::string name;
  AttributeValue value;
};

// What evaluating the words of one call may take, in steps of some nanoseconds: one for each node
// of an expression, name that is compared, and tensor of a list that is measured. Words and
// operands come from clients, and a few kilobytes of them could keep a thread busy for minutes.
inline constexpr std::int64_t kMostSteps = 10'000'000;

// The result of Bind: every name of the words with its value. Small vectors, because a call has a
// handful of names and they are searched by a few comparisons.
class Binding final : public Scope {
 public:
  // In the order of the spec's operands. For `inout` operands the input's value stands in both.
  std::vector<OperandValue> inputs;
  std::vector<OperandValue> outputs;  // `inout` inputs first, in order, then the outputs proper.
  std::vector<AttributeValue> attributes;  // In the order of the spec, defaults filled in.
  std::vector<std::pair<std::string, std::int64_t>> dims;  // Of operands that are no lists.
  std::vector<std::pair<std::string, Shape>> runs;
  std::vector<std::pair<std::string, DType>> dtypes;
  std::int64_t flops = 0;  // 0: the words do not say.
  std::int64_t bytes = 0;  // Read and written once each, or what the clause says.

  // For names that the spec is known to have; aborts on others.
  std::int64_t Dim(absl::string_view name) const;
  const Shape& Run(absl::string_view name) const;
  DType Type(absl::string_view variable) const;
  std::int64_t I64(absl::string_view attribute) const;
  double F64(absl::string_view attribute) const;
  bool Bool(absl::string_view attribute) const;
  DType DTypeOf(absl::string_view attribute) const;
  const std::string& Word(absl::string_view attribute) const;

  absl::StatusOr<Value> Lookup(absl::string_view name) const override;
  absl::StatusOr<std::int64_t> Measure(absl::string_view function, absl::string_view name,
                                       std::int64_t index) const override;

  absl::Status Spend(std::int64_t steps) const override;

  const KernelSpec* spec = nullptr;              // Borrowed; outlives the binding.
  mutable std::int64_t steps_left = kMostSteps;  // Evaluating is for one thread.
};

// Binds a call to the words, by the rules of docs/signatures.md. The order of `inputs` is free.
// INVALID_ARGUMENT, with the field path in its details ("inputs[1].shape"), says what was wanted
// and what came: "'b': K is 3 elsewhere, 5 here".
absl::StatusOr<Binding> Bind(const KernelSpec& spec, const std::vector<NamedOperand>& inputs,
                             const std::vector<NamedAttribute>& attributes);

// The scratch tensors that the clauses of a variant declare for a bound call.
absl::StatusOr<std::vector<OperandValue>> BindScratch(const Clauses& clauses,
                                                      const Binding& binding);

// numel, rank or dim of a shape. `name` is for messages, `index` is dim's: negative from the end.
absl::StatusOr<std::int64_t> MeasureShape(absl::string_view function, absl::string_view name,
                                          std::int64_t index, const Shape& shape);

// What a variant may ask of a device in its `when`.
struct DeviceTraits {
  std::string kind;     // "cpu" or "cuda".
  std::int64_t sm = 0;  // Compute capability, 90; 0 on a CPU.
};

// Whether the `when` of these clauses holds; true without one. Pure.
absl::StatusOr<bool> HoldsWhen(const Clauses& clauses, const Binding& binding,
                               const DeviceTraits& device);

// The variant that a call gets: the one named, or the last that fits. NOT_FOUND if no variant of
// that name stands on this kind of device, INVALID_ARGUMENT if its `when` does not hold. Pure.
absl::StatusOr<const VariantSpec*> ChooseVariant(const KernelSpec& spec, const Binding& binding,
                                                 const DeviceTraits& device,
                                                 absl::string_view wanted);

// Reads a value written by a person ("1e-3", "tanh", "f16") as the attribute's type.
absl::StatusOr<AttributeValue> ParseAttributeValue(const AttributeSpec& spec,
                                                   absl::string_view text);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_BINDING_H_
