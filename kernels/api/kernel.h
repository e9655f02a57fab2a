// All that a kernel file may include. One file in kernels/catalog is one kernel;
// docs/add-a-kernel.md walks through one.
#ifndef GRIDCLOCK_KERNELS_API_KERNEL_H_
#define GRIDCLOCK_KERNELS_API_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/status.h"
#include "proto/types/binding.h"
#include "proto/types/kernel_spec.h"

namespace gridclock {

// The CPU device's threads. Kernels start none of their own.
class Threads {
 public:
  virtual ~Threads() = default;
  virtual int count() const = 0;
  // Calls body(begin, end) on parts of [0, n) that cover it once, in parallel when n is worth it.
  // A part has at least `grain` items (but the last) and begins at a multiple of `grain`.
  virtual void ParallelFor(std::int64_t n, std::int64_t grain,
                           absl::FunctionRef<void(std::int64_t begin, std::int64_t end)> body) = 0;
};

// The tensors of one operand: one pointer, or one per tensor of a list.
struct OperandView {
  const OperandValue* value = nullptr;
  std::vector<void*> data;
};

// One call of a kernel: names bound, tensors on the device. Inputs and outputs are in the order of
// Binding::inputs and Binding::outputs; an output in place has the pointer of its input.
struct Call {
  const Binding* binding = nullptr;
  std::span<const OperandView> inputs;
  std::span<const OperandView> outputs;
  std::span<const OperandView> scratch;  // As the variant's words declare it.
  Threads* threads = nullptr;            // On the CPU device.
  void* stream = nullptr;                // cudaStream_t on a GPU.
  std::int64_t* launches = nullptr;      // Counts kernels put on a GPU, where it is set.

  template <typename T>
  const T* In(std::size_t operand, std::size_t index = 0) const {
    return static_cast<const T*>(inputs[operand].data[index]);
  }
  template <typename T>
  T* Out(std::size_t operand, std::size_t index = 0) const {
    return static_cast<T*>(outputs[operand].data[index]);
  }
  DType InType(std::size_t operand) const { return inputs[operand].value->tensors[0].dtype; }
  DType OutType(std::size_t operand) const { return outputs[operand].value->tensors[0].dtype; }
  const Shape& InShape(std::size_t operand) const {
    return inputs[operand].value->tensors[0].shape;
  }
  const Shape& OutShape(std::size_t operand) const {
    return outputs[operand].value->tensors[0].shape;
  }
};

// How often a right result is rounded.
enum class Roundings {
  kSeveral,  // In f32 (f64 for f64) on the way, and once at the end to a narrower type.
  kOnce,     // Exact, or computed in f32 (f64 for f64), and then the nearest number of the output's
             // type.
  kNone,     // `compute` gives numbers of the output's own type, and any other is wrong.
};

// The kernel computed plainly in double, sharing no arithmetic with the variants. A unit is what is
// computed together: an element, or a row where a row shares its work.
struct Reference {
  // How many units the outputs have, and how many elements of output 0 each has. Unit u holds the
  // elements [u * unit_elements, (u + 1) * unit_elements) unless `element_of` says otherwise.
  std::int64_t (*units)(const Binding& binding) = nullptr;
  std::int64_t (*unit_elements)(const Binding& binding) = nullptr;
  // Writes the elements of unit `unit` of output `output` as doubles. `in(i, k)` is element k of
  // input i as a double.
  void (*compute)(const Binding& binding,
                  absl::FunctionRef<double(std::size_t input, std::int64_t element)> in,
                  std::int64_t unit, std::size_t output, std::span<double> result) = nullptr;
  // Roundings that add up in one output element: the reduction length, 1 for element-wise kernels.
  std::int64_t (*accumulation)(const Binding& binding) = nullptr;
  // For sums of terms of either sign: the sum of the terms' magnitudes per element, on which the
  // tolerance then rests; null where |result| itself is the scale.
  void (*magnitude)(const Binding& binding,
                    absl::FunctionRef<double(std::size_t input, std::int64_t element)> in,
                    std::int64_t unit, std::size_t output, std::span<double> result) = nullptr;
  // The largest number that steps on the way to a unit's results may come to, in whatever order
  // they are taken: the sum of the terms' magnitudes, a sum of squares. Inputs that are infinite or
  // NaN come as 0. Where it passes the end of the type that sums are kept in (f64 for f64, f32 for
  // all narrower ones), the order decides what becomes of the results, so that one that differs
  // from `compute` is not known to be wrong: it counts as undecided. Null: no order is worse than
  // another. Asked of units that differ alone.
  double (*reach)(const Binding& binding,
                  absl::FunctionRef<double(std::size_t input, std::int64_t element)> in,
                  std::int64_t unit, std::size_t output) = nullptr;
  // Sets `which` for the elements of a unit of which roundings decide whether they are NaN or
  // either infinity, finite as all steps before the last are: a difference that may be none, times
  // an infinity. Another of these three than what `compute` says counts as undecided. Null: of no
  // element. Asked once of a unit that differs.
  void (*unsettled)(const Binding& binding,
                    absl::FunctionRef<double(std::size_t input, std::int64_t element)> in,
                    std::int64_t unit, std::size_t output, std::vector<bool>& which) = nullptr;
  // How many terms `compute` reads for one unit, which is what a check of it costs. Null: as many
  // as `accumulation` for each element; a row that shares its work says so.
  std::int64_t (*unit_terms)(const Binding& binding) = nullptr;
  Roundings roundings = Roundings::kSeveral;
};

using LaunchFn = absl::Status (*)(const Call& call);

struct Variant {
  std::string name;     // What it does: "naive", "simd", "tiled".
  std::string summary;  // One line: the idea and why it is faster than the one before.
  LaunchFn launch = nullptr;
  std::string clauses = {};  // In the language of the words: "when N % 4 == 0 scratch tmp: f32[N]".
  // Where its own way loses more than the reference's tolerance lets pass (tf32, a difference of
  // large squares): in place of Reference::magnitude. NaN: it may come to NaN, which is undecided.
  decltype(Reference::magnitude) magnitude = nullptr;
  // Whose rate of arithmetic is the roofline's, where it is not that of the first input.
  std::optional<DType> arithmetic = {};
  double part_of_rate = 1;  // Of that dtype's, where the arithmetic is none of a dtype (tf32).
};

struct KernelDef {
  std::string words;       // "x: T[*] -> y: T[*] over x where T in {f64, f32, f16, bf16}"
  std::string summary;     // One line.
  std::string formula;     // "y = x^2"
  std::string notes = {};  // Numerical notes.
  bool diagnostic = false;
  // What the words cannot say, checked before any launch; INVALID_ARGUMENT. Null: nothing more.
  absl::Status (*validate)(const Binding& binding) = nullptr;
  Reference reference = {};       // Empty functions: cannot be verified (empty, spin).
  std::vector<Variant> cpu = {};  // Plainest first, fastest last.
  std::vector<Variant> cuda = {};
};

}  // namespace gridclock

// Opens the definition of kernel `name` in the file kernels/catalog/name.cu.
#define GC_KERNEL(name)          \
  namespace gridclock::catalog { \
  KernelDef name();              \
  }                              \
  gridclock::KernelDef gridclock::catalog::name()

// Opens the list of the kernel's variants on a GPU, plainest first, fastest last. It ends the part
// of the file between `#ifdef __CUDACC__` and `#else`, which the CUDA compiler alone sees, once for
// all CPU levels; a file without this line is not given to that compiler.
#define GC_CUDA_VARIANTS(name)        \
  namespace gridclock::catalog {      \
  std::vector<Variant> name##_cuda(); \
  }                                   \
  std::vector<gridclock::Variant> gridclock::catalog::name##_cuda()

#endif  // GRIDCLOCK_KERNELS_API_KERNEL_H_
