// Vector addition: c = a + b, element by element.
//
//   naive   one loop, one thread
//   simd    whole vectors on every core; large outputs go past the caches

#include "kernels/api/kernel.h"
#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"

namespace gridclock {
namespace {

void Expected(const Binding&, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  result[0] = in(0, unit) + in(1, unit);
}

absl::Status Naive(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const T* a = call.In<T>(0);
    const T* b = call.In<T>(1);
    T* c = call.Out<T>(0);
    const std::int64_t n = Elements(call.InShape(0));
    for (std::int64_t i = 0; i < n; ++i) c[i] = Narrow<T>(Widen(a[i]) + Widen(b[i]));
    return absl::OkStatus();
  });
}

absl::Status Simd(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    simd::Map<T>(
        *call.threads, [](auto, auto a, auto b) { return simd::hn::Add(a, b); }, call.Out<T>(0),
        Elements(call.InShape(0)), call.In<T>(0), call.In<T>(1));
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(vector_add) {
  using namespace gridclock;
  return {
      .words = "a: T[*], b: T[*] -> c: T[*] over a where T in {f64, f32, f16, bf16} flops numel(c)",
      .summary = "The sum of two tensors, element by element",
      .formula = "c = a + b",
      .notes = "One rounding. f16 and bf16 are added in f32 and rounded once.",
      .reference = EachElement(Expected),
      .cpu = {{"naive", "One loop, one thread", Naive},
              {"simd", "Vectors on every core; large outputs bypass the caches", Simd}},
  };
}
