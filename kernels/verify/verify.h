// Does an output equal the reference? Tolerances follow from the dtype and from how many roundings
// add up, not from taste.
#ifndef GRIDCLOCK_KERNELS_VERIFY_VERIFY_H_
#define GRIDCLOCK_KERNELS_VERIFY_VERIFY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/api/kernel.h"
#include "proto/types/generator.h"
#include "proto/types/measure.h"

namespace gridclock {

// |got - want| may be at most relative * scale + absolute, where scale is |want|, or the sum of the
// terms' magnitudes where the reference gives it.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};

// For one output of dtype `out`, computed from inputs of which the least precise is `in`, with
// `accumulation` roundings of the accumulator's type. Integers and bool must be exact.
//   relative = 2 u(out) + 4 (1 + c) u(acc),   c = accumulation
//   absolute = the least normal number of `out`: below it a flush to zero is legal
// u is the unit roundoff. acc is f64 for f64 and f32 for everything narrower. 2 u(out): the
// rounding of the result and of what the variant may round on its way. 4 u(acc) for each step: a
// multiply, an add, and a function (exp, tanh) good to two units.
Tolerance ToleranceFor(DType out, std::int64_t accumulation);

// How one element compares. error <= 1 passes; NaN equals NaN, an infinity the same infinity; a
// result beyond the range of `dtype` may be infinite; a finite number near it may be too.
struct Comparison {
  double error = 0;  // |got - want| / tolerance; infinity where only one of them is a number.
  double tolerance = 0;
  bool ok() const { return error <= 1; }
};
Comparison Compare(double got, double want, double scale, DType dtype, const Tolerance& tolerance);

// Host memory of one operand: one pointer per tensor, as OperandView has them.
struct VerifyOptions {
  // More elements times accumulation than this, and a random subset of the units is checked.
  std::int64_t most_terms = std::int64_t{1} << 36;
  std::uint64_t seed = 0;  // Of the subset.
};

// True if the kernel has a reference.
bool CanVerify(const KernelDef& def);

// Compares outputs with the reference computed from inputs. Both are on the host; `inputs` hold the
// values from before the launch, also where an output was written in place. The order is that of
// Binding. UNIMPLEMENTED if the kernel has no reference. Runs on `threads`.
absl::StatusOr<Verification> Verify(const KernelDef& def, const Binding& binding,
                                    std::span<const OperandView> inputs,
                                    std::span<const OperandView> outputs, Threads& threads,
                                    const VerifyOptions& options = {});

// Fills an operand from a generator, tensors of a list one after the other as one run of elements.
// The same bytes as Generate() on one thread.
void GenerateOperand(const Generator& generator, const OperandView& operand, Threads& threads);

// Element `index` of a tensor as a double.
double LoadAsDouble(DType dtype, const void* data, std::int64_t index);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_VERIFY_VERIFY_H_
