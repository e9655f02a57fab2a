// Shapes against the dimensions that words declare: one half of Bind.
#ifndef GRIDCLOCK_PROTO_TYPES_SHAPE_BINDER_H_
#define GRIDCLOCK_PROTO_TYPES_SHAPE_BINDER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/types/bind_errors.h"
#include "proto/types/binding.h"

namespace gridclock {

// Fills dims and runs of a binding whose inputs are set, then tells the shapes of outputs.
class ShapeBinder {
 public:
  // `binding` is borrowed and must stay where it is.
  explicit ShapeBinder(Binding& binding) : binding_(binding) {}

  // Binds the names of all inputs, left to right.
  absl::Status MatchInputs();
  // Checks the other expressions among their dimensions, once all names are bound.
  absl::Status CheckLate() const;
  // How many tensors the lists of this call have; 0: it has no lists.
  std::size_t list_length() const { return elements_.size(); }
  absl::Status BuildOutput(const Place& place, Shape& shape);

 private:
  using Dims = std::vector<std::pair<std::string, std::int64_t>>;
  using Runs = std::vector<std::pair<std::string, Shape>>;
  using FlatDims = absl::InlinedVector<const Dim*, 8>;  // Choices made.
  using Sizes = std::span<const std::int64_t>;

  // The names of one element of the lists: its own, then those of the call.
  class Element final : public Scope {
   public:
    explicit Element(const Binding& binding) : binding_(binding) {}
    Dims dims;
    Runs runs;

    absl::StatusOr<Value> Lookup(absl::string_view name) const override;
    absl::StatusOr<std::int64_t> Measure(absl::string_view function, absl::string_view name,
                                         std::int64_t index) const override;
    absl::Status Spend(std::int64_t steps) const override { return binding_.Spend(steps); }

   private:
    const Binding& binding_;
  };

  // Where the names of an operand are kept: in the binding, or in one element of the lists.
  struct Names {
    Dims& dims;
    Runs& runs;
    const Scope& scope;
  };
  // An expression among the dimensions of an input, to be checked when all names are bound.
  struct LateCheck {
    const OperandSpec* operand = nullptr;
    std::size_t element = 0;
    const Expr* expr = nullptr;
    std::int64_t got = 0;
  };

  absl::Status OpenElements(const OperandSpec& operand, std::size_t length);
  absl::Status Match(const Place& place, const Shape& shape, const Names& names);
  absl::StatusOr<std::size_t> AxisOf(absl::string_view attribute, const Place& place,
                                     std::size_t rank) const;
  static std::optional<std::size_t> WidthOf(const Dim& dim, const Names& names);
  absl::Status MatchPart(const Place& place, const FlatDims& all, std::span<const Dim* const> dims,
                         Sizes sizes, const Shape& shape, const Names& names);
  static absl::Status RankError(const Place& place, const FlatDims& all, const Shape& shape,
                                const Names& names);
  static absl::Status RunError(const Place& place, absl::string_view run, const Shape& elsewhere,
                               Sizes here);
  absl::Status MatchDim(const Place& place, const Dim& dim, Sizes sizes, const Names& names);
  static absl::Status BindRun(const Place& place, const std::string& name, Sizes sizes,
                              const Names& names);
  absl::Status BindDim(const Place& place, const std::string& name, std::int64_t size,
                       const Names& names) const;
  absl::StatusOr<Shape> Swapped(const Place& place, const Dim& dim, const Names& names) const;
  absl::Status Build(const Place& place, const Names& names, Shape& shape) const;
  absl::Status Append(const Place& place, const Dim& dim, const Names& names, Shape& shape) const;
  static absl::Status AppendValue(const Expr& expr, const Names& names, Shape& shape);

  Binding& binding_;
  std::vector<Element> elements_;
  std::vector<LateCheck> late_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_SHAPE_BINDER_H_
