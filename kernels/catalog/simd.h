// Vectors for kernel files: Highway, with loads and stores that widen and round the 16-bit types.
// Each CPU level is compiled by its own flags, so Highway's static dispatch picks the instructions.
#ifndef GRIDCLOCK_KERNELS_CATALOG_SIMD_H_
#define GRIDCLOCK_KERNELS_CATALOG_SIMD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/catalog/element.h"

namespace gridclock::simd {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Tag = hn::ScalableTag<Wide<T>>;

#if HWY_TARGET <= HWY_AVX2
inline constexpr bool kHasF16C = true;
#else
inline constexpr bool kHasF16C = false;  // Highway's stand-in there cuts off instead of rounding.
#endif

// x, or `bound` where x is below or above it; NaN stays NaN, as x86 gives the second operand where
// either is NaN. One instruction, where a comparison and a choice are two slow ones.
static_assert(HWY_ARCH_X86, "AtLeast and AtMost rest on what x86 makes of NaN");
template <class D, class V>
HWY_INLINE V AtLeast(D d, V x, double bound) {
  return hn::Max(hn::Set(d, static_cast<hn::TFromD<D>>(bound)), x);
}
template <class D, class V>
HWY_INLINE V AtMost(D d, V x, double bound) {
  return hn::Min(hn::Set(d, static_cast<hn::TFromD<D>>(bound)), x);
}

// How many bytes early memory is asked for what a loop reads in order: on Intel's CPUs two pages
// keep memory busy while the loop computes, or waits for what lies elsewhere.
inline constexpr std::int64_t kAhead = 8192;

// Asks for the element that lies `elements` from p, which may lie behind the tensor: nothing is
// read there.
template <typename T>
HWY_INLINE void PrefetchFrom(const T* p, std::int64_t elements = kAhead / sizeof(T)) {
  const auto offset = static_cast<std::uintptr_t>(elements) * sizeof(T);
  hwy::Prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(p) + offset));
}

// f16 bits in the low half of each lane -> f32. The exponent is shifted up and rebiased; what had
// the exponent 0 becomes right by subtracting the implicit bit that it never had.
template <class D32, class VU = hn::Vec<hn::RebindToUnsigned<D32>>>
hn::Vec<D32> FloatFromF16Bits(D32 d, VU half) {
  const hn::RebindToUnsigned<D32> du;
  const auto exponent_mask = hn::Set(du, 0x7C00U << 13);
  const auto magnitude = hn::ShiftLeft<13>(hn::And(half, hn::Set(du, 0x7FFF)));
  const auto exponent = hn::And(magnitude, exponent_mask);
  const auto rebiased = hn::Add(magnitude, hn::Set(du, (127U - 15) << 23));
  const auto special = hn::Add(rebiased, hn::Set(du, (128U - 16) << 23));
  const auto subnormal = hn::Sub(hn::BitCast(d, hn::Add(rebiased, hn::Set(du, 1U << 23))),
                                 hn::BitCast(d, hn::Set(du, 113U << 23)));
  auto bits = hn::IfThenElse(hn::Eq(exponent, exponent_mask), special, rebiased);
  bits = hn::IfThenElse(hn::Eq(exponent, hn::Zero(du)), hn::BitCast(du, subnormal), bits);
  return hn::BitCast(d, hn::Or(bits, hn::ShiftLeft<16>(hn::And(half, hn::Set(du, 0x8000)))));
}

// f32 -> f16 bits in the low half of each lane, to the nearest, ties to even.
template <class D32, class V = hn::Vec<D32>>
hn::Vec<hn::RebindToUnsigned<D32>> F16BitsFromFloat(D32 d, V x) {
  const hn::RebindToUnsigned<D32> du;
  const auto bits = hn::BitCast(du, x);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000));
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFF));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
  const auto normal = hn::ShiftRight<13>(
      hn::Add(hn::Add(magnitude, hn::Set(du, ((15U - 127) << 23) + 0xFFF)), odd));
  // Adding 0.5 moves the bits of a subnormal result to the low end, rounded by the adder.
  const auto magic = hn::Set(du, (127U - 15 + 23 - 10 + 1) << 23);
  const auto subnormal =
      hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, magic))), magic);
  const auto is_nan = hn::Gt(magnitude, hn::Set(du, 0x7F800000));
  const auto special = hn::IfThenElse(is_nan, hn::Set(du, 0x7E00), hn::Set(du, 0x7C00));
  auto half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 113U << 23)), subnormal, normal);
  half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, (127U + 16) << 23)), half, special);
  return hn::Or(half, sign);
}

// f32 -> bf16 bits, the same way. NaN first: rounding could carry its payload into infinity.
template <class D32, class V = hn::Vec<D32>>
hn::Vec<hn::RebindToUnsigned<D32>> BF16BitsFromFloat(D32, V x) {
  const hn::RebindToUnsigned<D32> du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(du, 0x7FFF)), odd));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x0040));
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded);
}

template <typename T>
auto Read([[maybe_unused]] Tag<T> d, const T* p) {
  if constexpr (std::is_same_v<T, Wide<T>>) {
    return hn::LoadU(d, p);
  } else {
    const hn::RebindToUnsigned<Tag<T>> du;
    const hn::Rebind<std::uint16_t, Tag<T>> d16;
    const auto bits = hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(p));
    if constexpr (std::is_same_v<T, BF16>) {
      return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
    } else if constexpr (kHasF16C) {
      return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, Tag<T>>(), bits));
    } else {
      return FloatFromF16Bits(d, hn::PromoteTo(du, bits));
    }
  }
}

template <typename T, class V = hn::Vec<Tag<T>>>
void Write(V v, [[maybe_unused]] Tag<T> d, T* p) {
  if constexpr (std::is_same_v<T, Wide<T>>) {
    hn::StoreU(v, d, p);
  } else {
    const hn::Rebind<std::uint16_t, Tag<T>> d16;
    const hn::RebindToSigned<hn::RebindToUnsigned<Tag<T>>> di;
    auto* to = reinterpret_cast<std::uint16_t*>(p);
    if constexpr (std::is_same_v<T, F16> && kHasF16C) {
      const auto half = hn::DemoteTo(hn::Rebind<hwy::float16_t, Tag<T>>(), v);
      hn::StoreU(hn::BitCast(d16, half), d16, to);
    } else if constexpr (std::is_same_v<T, F16>) {
      hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, F16BitsFromFloat(d, v))), d16, to);
    } else {
      hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, BF16BitsFromFloat(d, v))), d16, to);
    }
  }
}

// The first n elements, fewer than a vector; the other lanes hold `fill`.
template <typename T>
auto ReadPart(Tag<T> d, const T* p, std::size_t n, T fill = T{}) {
  T buffer[hn::MaxLanes(Tag<T>())];
  std::fill(std::begin(buffer), std::end(buffer), fill);
  std::memcpy(buffer, p, n * sizeof(T));
  return Read<T>(d, buffer);
}

template <typename T, class V = hn::Vec<Tag<T>>>
void WritePart(V v, Tag<T> d, T* p, std::size_t n) {
  T buffer[hn::MaxLanes(Tag<T>())];
  Write<T>(v, d, buffer);
  std::memcpy(p, buffer, n * sizeof(T));
}

// From here on a store past the caches is worth it: the output would push everything out of them,
// and a normal store first reads the line that it is about to overwrite.
inline constexpr std::int64_t kStreamBytes = std::int64_t{16} << 20;

template <typename T>
bool WorthStreaming(std::int64_t elements) {
  return std::is_same_v<T, Wide<T>> && elements * std::int64_t{sizeof(T)} >= kStreamBytes;
}

// At the boundary of a vector of any level.
inline bool MayStreamTo(const void* to) {
  constexpr std::uintptr_t kVector = 64;
  return reinterpret_cast<std::uintptr_t>(to) % kVector == 0;
}

// Past the caches, to where MayStreamTo. The caller must FlushStream once.
inline void StreamBytes(const std::byte* from, std::byte* to, std::int64_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* x = reinterpret_cast<const std::uint8_t*>(from);
  auto* y = reinterpret_cast<std::uint8_t*>(to);
  std::int64_t i = 0;
  for (; i + lanes <= bytes; i += lanes) hn::Stream(hn::LoadU(d, x + i), d, y + i);
  std::copy(x + i, x + bytes, y + i);
}

// Items that one thread should at least get: less is done before another thread wakes up.
inline constexpr std::int64_t kGrain = 16384;

// Whose CPUs want memory asked for later than others'.
inline bool IsAmd() {
  static const bool is_amd = __builtin_cpu_is("amd") != 0;
  return is_amd;
}

// How many bytes early a sole input is asked for: memory would be idle while much is computed from
// it. Where there are several it is busy without. On an EPYC (Zen 3) the square of 2^26 f32 took
// 18 ms so, and 19 to 20 two pages early; where an exponential is computed it is all the same.
inline std::int64_t BytesAhead() {
  return IsAmd() ? 512 : kAhead;
}

template <typename... In>
HWY_INLINE void AskFor(std::int64_t bytes_ahead, const In*... x) {
  if constexpr (sizeof...(In) == 1) (PrefetchFrom(x, bytes_ahead / std::int64_t{sizeof(In)}), ...);
}

// y[i] = op(d, x0[i], x1[i]...) for i in [begin, end). After streaming, the caller must FlushStream
// once, before other threads may read y: a fence for every short row would cost more than it
// gains. An input may be y itself; inputs may be of other types than T.
template <typename T, class Op, class... In>
void MapRange(Op op, T* y, std::int64_t begin, std::int64_t end, bool stream, const In*... x) {
  const Tag<T> d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(Tag<T>()));
  // Elements of a line of the widest, which is asked for once: a vector at a time the square of
  // a million f32, in the last cache of a Zen 3, took 160 us in place of 142.
  constexpr std::int64_t kStep =
      std::max(kLanes, 64 / static_cast<std::int64_t>(std::max({sizeof(T), sizeof(In)...})));
  static_assert(kStep % kLanes == 0);
  const std::int64_t ahead = sizeof...(In) == 1 ? BytesAhead() : 0;
  const auto at = [&](std::int64_t k) { return op(d, Read<In>(d, x + k)...); };
  std::int64_t i = begin;
  if (stream) {
    constexpr auto kBytes = kLanes * static_cast<std::int64_t>(sizeof(T));
    const auto misaligned =
        static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(y + i)) % kBytes;
    const std::int64_t peel =
        std::min((kBytes - misaligned) % kBytes / std::int64_t{sizeof(T)}, end - i);
    const auto part = static_cast<std::size_t>(peel);
    if (part != 0) WritePart<T>(op(d, ReadPart<In>(d, x + i, part)...), d, y + i, part);
    i += peel;
    if constexpr (std::is_same_v<T, Wide<T>>) {
      for (; i + kStep <= end; i += kStep) {
        AskFor(ahead, x + i...);
        for (std::int64_t k = i; k < i + kStep; k += kLanes) hn::Stream(at(k), d, y + k);
      }
    }
  }
  for (; i + kStep <= end; i += kStep) {
    AskFor(ahead, x + i...);
    for (std::int64_t k = i; k < i + kStep; k += kLanes) Write<T>(at(k), d, y + k);
  }
  for (; i + kLanes <= end; i += kLanes) Write<T>(at(i), d, y + i);
  const auto rest = static_cast<std::size_t>(end - i);
  if (rest != 0) WritePart<T>(op(d, ReadPart<In>(d, x + i, rest)...), d, y + i, rest);
}

// y[i] = x[i] rounded to T, for i in [0, n).
template <typename T>
void ConvertRange(const Wide<T>* x, T* y, std::int64_t n) {
  const Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) Write<T>(hn::LoadU(d, x + i), d, y + i);
  for (; i < n; ++i) y[i] = Narrow<T>(x[i]);
}

// y[i] = x[i] widened, for i in [0, n).
template <typename T>
void WidenRange(const T* x, Wide<T>* y, std::int64_t n) {
  const Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(Read<T>(d, x + i), d, y + i);
  for (; i < n; ++i) y[i] = Widen(x[i]);
}

// The whole of an element-wise kernel with n elements, on all threads.
template <typename T, class Op, class... In>
void Map(Threads& threads, Op op, T* y, std::int64_t n, const In*... x) {
  const bool in_place = ((static_cast<const void*>(x) == y) || ...);
  const bool stream = !in_place && WorthStreaming<T>(n);
  threads.ParallelFor(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    MapRange<T>(op, y, begin, end, stream, x...);
    if (stream) hwy::FlushStream();
  });
}

}  // namespace gridclock::simd

#endif  // GRIDCLOCK_KERNELS_CATALOG_SIMD_H_
