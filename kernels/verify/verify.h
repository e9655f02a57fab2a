// Does an output equal the reference? Tolerances follow from the dtype and from how many roundings
// add up, not from taste.
#ifndef GRIDCLOCK_KERNELS_VERIFY_VERIFY_H_
#define GRIDCLOCK_KERNELS_VERIFY_VERIFY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/api/kernel.h"
#include "kernels/verify/elements.h"
#include "proto/types/measure.h"

namespace gridclock {

// |got - want| may be at most relative * |want| + accumulation * scale + absolute + steps units in
// the last place of want, where scale is |want|, or the sum of the terms' magnitudes where the
// reference gives it.
struct Tolerance {
  double relative = 0;
  double accumulation = 0;
  double absolute = 0;
  double steps = 0;
  bool exact = false;  // Then the others are 0, and no infinity stands for a large number.
};

// Between two results of dtype `out` in whose elements `accumulation` roundings add up. Integers
// and bool must be exact. Roundings differ in sign: of c of them about sqrt(c) add up, not c. With
// u the unit roundoff of a type, and acc the type that sums are kept in (f64 for f64, f32 for all
// narrower ones):
//   relative      2 u(out): the result's own, and one on the way; 4 (sqrt(c) - 1) u(acc): sums kept
//                 in order are as large as the result; c counts up to 1 / u(acc), where such a sum
//                 stands still
//   accumulation  4 (4 + sqrt(c)) u(acc): where terms cancel; functions (exp, tanh) are good to
//                 some units in the last place; c counts up to 4096, so that the tolerance of a
//                 long sum stays below the sum
//   absolute      the least normal number of f64, f32, bf16, below which a flush to zero is legal;
//                 two steps of the subnormals of f16 and the f8 types, which are not flushed
Tolerance ToleranceFor(DType out, std::int64_t accumulation);
// Between a result and what a reference computed in f64, by what that says of its results. What is
// narrower than `acc` is rounded to it once, at the end, unless it `rounds_on_the_way`: half a step
// stands in place of 2 u(out), 2 u(acc) for what was on the way, and c/32 u(acc), at most u(out),
// for tensor cores, which cut off where they add to a sum of 16 terms and more. Rounded once in all
// is half a step, the f32 that a narrower type is rounded from, and a flush of what is below f32's,
// or f64's, normal numbers.
Tolerance ToleranceOf(Roundings roundings, DType out, std::int64_t accumulation,
                      bool rounds_on_the_way = false);

// How one element compares. NaN equals NaN, an infinity the same infinity. Where the wanted number
// and its tolerance reach beyond the largest of `dtype`, the same infinity will do, or the largest
// number where the type saturates (f8).
struct Comparison {
  double error = 0;  // |got - want| over the tolerance; infinity where they cannot be compared.
  double tolerance = 0;
  // It tells nothing: not equal under a tolerance so wide that zero would pass, or equal as doubles
  // that stand for several integers.
  bool undecided = false;
  bool ok() const { return error <= 1; }
};
Comparison Compare(double got, double want, double scale, DType dtype, const Tolerance& tolerance);

// |got - want| in units in the last place of `want` in `dtype`; 0 for types that must be exact.
double UlpsBetween(double got, double want, DType dtype);

struct VerifyOptions {
  // More terms than this, and a random subset of the units is checked. A term takes one core 7 ns
  // (sum) to 70 ns (matmul against the grain of b), so that this ends well within 30 s.
  std::int64_t most_terms = std::int64_t{1} << 27;
  std::uint64_t seed = 0;  // Of the subset.
  // Of the variant whose outputs these are (Variant::magnitude); null: that of the reference.
  decltype(Reference::magnitude) magnitude = nullptr;
  // Whether results of 16 bits may have been rounded to them once before the end, as a submitted
  // kernel's may be and a variant's of the catalogue must not.
  bool rounds_on_the_way = false;
  // Asked on the calling thread, some times a second; an error ends the verification with it.
  std::function<absl::Status()> poll = nullptr;
  // Brings what the check reads of operands that do not lie on the host; null: they do. Then the
  // subset is of runs of units, as bytes come in pages.
  OperandReader* reader = nullptr;
  std::uint64_t most_page_bytes = std::uint64_t{2} << 30;  // Of the host, for what is brought.
};

// True if the kernel has a reference.
bool CanVerify(const KernelDef& def);

// True if most of what was checked told nothing: the tolerance was so wide that zero would have
// passed. Then the outputs are not verified, though no mismatch was found.
bool IsUndecided(const Verification& verification);

// How much memory Verify takes on so many threads: rows of the reference, which may be as long as
// an output.
std::int64_t VerifyBytes(const KernelDef& def, const Binding& binding, int threads);

// RESOURCE_EXHAUSTED (TOO_LARGE) if so many bytes of rows are more than a process may take that has
// only the arena's size to tell what the machine has: a quarter of it, or 1 GiB where that is more.
// Nobody pays for them.
absl::Status CheckRowBytes(std::int64_t bytes, std::uint64_t arena_bytes);

// Compares outputs with the reference computed from inputs. Both are on the host, or where
// options.reader reads; `inputs` hold the values from before the launch, also where an output was
// written in place. The order is that of Binding. `memory` has VerifyBytes, aligned for a double.
// UNIMPLEMENTED if the kernel has no reference, RESOURCE_EXHAUSTED (MEMORY_FULL) if one unit reads
// more than may be brought. Runs on `threads`.
absl::StatusOr<Verification> Verify(const KernelDef& def, const Binding& binding,
                                    std::span<const OperandView> inputs,
                                    std::span<const OperandView> outputs, Threads& threads,
                                    std::span<std::byte> memory, const VerifyOptions& options = {});

// Outputs against expected values of the same dtypes and shapes, all on the host: as sums of
// `terms` terms each (ToleranceFor). `names` are of the outputs, for messages.
struct ExpectedOutputs {
  std::span<const OperandView> got, want;
  std::span<const std::string> names;
  std::int64_t terms = 1;
};
absl::StatusOr<Verification> VerifyExpected(const ExpectedOutputs& outputs,
                                            const std::function<absl::Status()>& poll);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_VERIFY_VERIFY_H_
