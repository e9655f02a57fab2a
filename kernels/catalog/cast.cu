// Conversion of each element to another dtype:
//   to a floating type   the nearest number, of two the one with an even last digit; beyond the
//                        largest one infinity, but in the two f8 types the largest itself, for
//                        infinity too; NaN is NaN
//   to an integer type   toward zero; beyond its ends the end; NaN is 0
//   to bool              whether it is not 0; NaN is not
// Nothing is rounded twice.
//
//   naive     some hundred elements at a time to a type that holds all their values, and from there
//             to the one wanted, on one thread
//   threads   the same on every core; large outputs go past the caches
//
// On a GPU; times are of 2^26 f32 to bf16 and to f8e4m3 on an H200:
//   naive   205 us, 198 us: one thread for each element; fewer bytes to write save next to nothing
//   packs   93 us, 76 us: 16 bytes of the wider type at a time, so that bytes are what counts; f8
//           by the instructions of the hardware, where it has them

#include "kernels/api/kernel.h"
#include "kernels/catalog/cast_rules.h"

#ifndef __CUDACC__  // The CPU.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"

namespace gridclock {
namespace {

using cast::Carrier;
namespace hn = simd::hn;

// --- The reference: what each type is, in plain arithmetic ---

// Numbers of so many binary digits from the smallest normal one, 2^least, up to `most`.
struct Format {
  int digits, least;
  double most;
  bool saturates;
};

Format FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return {24, -126, std::numeric_limits<float>::max(), false};
    case DType::kF16:
      return {11, -14, 65504, false};
    case DType::kBF16:
      return {8, -126, 0x1.FEp127, false};
    case DType::kF8E4M3:
      return {4, -6, 448, true};
    case DType::kF8E5M2:
      return {3, -14, 57344, true};
    default:
      return {53, -1022, std::numeric_limits<double>::max(), false};
  }
}

double Nearest(double x, const Format& format) {
  if (x == 0 || !std::isfinite(x))
    return format.saturates ? std::clamp(x, -format.most, format.most) : x;
  const int exponent = std::max(std::ilogb(x), format.least);
  const double step = std::ldexp(1, exponent - format.digits + 1);
  const double nearest = std::nearbyint(x / step) * step;
  if (std::fabs(nearest) <= format.most) return nearest;
  return std::copysign(format.saturates ? format.most : INFINITY, x);
}

double Whole(double x, double low, double high) {
  return std::isnan(x) ? 0 : std::clamp(std::trunc(x), low, high);
}

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const double x = in(0, unit);
  const DType to = binding.outputs[0].tensors[0].dtype;
  const double bits = std::ldexp(1, static_cast<int>(8 * SizeOf(to)));
  switch (to) {
    case DType::kBool:
      result[0] = x == 0 ? 0 : 1;
      return;
    case DType::kI64:
    case DType::kI32:
    case DType::kI16:
    case DType::kI8:
      result[0] = Whole(x, -bits / 2, bits / 2 - 1);
      return;
    case DType::kU64:
    case DType::kU32:
    case DType::kU16:
    case DType::kU8:
      result[0] = Whole(x, 0, bits - 1);
      return;
    default:
      result[0] = Nearest(x, FormatOf(to));
  }
}

// --- The variants ---

template <typename T>
Carrier<T> Load(T x) {
  if constexpr (std::is_same_v<T, cast::F8E4M3>) {
    return F8E4M3ToFloat(x.bits);
  } else if constexpr (std::is_same_v<T, cast::F8E5M2>) {
    return F8E5M2ToFloat(x.bits);
  } else if constexpr (std::is_same_v<T, cast::Bool>) {
    return x.bits != 0 ? 1 : 0;
  } else {
    return x;
  }
}

// To an f8 type from f32: the bits in the low byte of each lane.
template <SmallFloat kTo, class D, class V = hn::Vec<D>>
hn::Vec<hn::RebindToSigned<D>> F8BitsFromFloat(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto set = [di](std::int32_t bits) { return hn::Set(di, bits); };
  constexpr int kDropped = 23 - kTo.mantissa_bits;
  constexpr auto kMost = std::bit_cast<std::int32_t>(DecodeSmallFloat<kTo>(kTo.max_finite));
  constexpr std::int32_t kSmallestNormal = (128 - kTo.bias) << 23;
  // A number so large that what it takes of a subnormal's digits is what the type keeps of them.
  constexpr std::int32_t kLarge = (127 + 1 - kTo.bias + kDropped) << 23;
  const auto bits = hn::BitCast(di, x);
  const auto magnitude = hn::And(bits, set(0x7FFFFFFF));
  const auto within = hn::Min(magnitude, set(kMost));
  const auto odd = hn::And(hn::ShiftRight<kDropped>(within), set(1));
  const auto rounds = set((1 << (kDropped - 1)) - 1 - ((127 - kTo.bias) << 23));
  const auto normal = hn::ShiftRight<kDropped>(hn::Add(hn::Add(within, rounds), odd));
  const auto sum = hn::Add(hn::BitCast(d, within), hn::BitCast(d, set(kLarge)));
  const auto subnormal = hn::Sub(hn::BitCast(di, sum), set(kLarge));
  const auto number = hn::IfThenElse(hn::Lt(within, set(kSmallestNormal)), subnormal, normal);
  const auto is_nan = hn::Gt(magnitude, set(0x7F800000));
  const auto unsigned_bits = hn::IfThenElse(is_nan, set(kTo.quiet_nan), number);
  return hn::Or(unsigned_bits, hn::And(hn::ShiftRight<24>(bits), set(0x80)));
}

template <SmallFloat kTo>
void EncodeF8(const float* x, std::int64_t n, std::uint8_t* y) {
  using Floats = simd::Tag<float>;
  const Floats d;
  const hn::Rebind<std::uint8_t, Floats> d8;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(Floats()));
  const auto encode = [&](auto v) { return hn::DemoteTo(d8, F8BitsFromFloat<kTo>(d, v)); };
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(encode(hn::LoadU(d, x + i)), d8, y + i);
  const auto rest = static_cast<std::size_t>(n - i);
  if (rest == 0) return;
  std::uint8_t last[kLanes];
  hn::StoreU(encode(simd::ReadPart<float>(d, x + i, rest)), d8, last);
  std::copy_n(last, rest, y + i);
}

template <typename C>
double Floating(C x) {
  if constexpr (std::is_integral_v<C>) {
    return cast::Sticky(x);
  } else {
    return x;
  }
}

template <typename T, typename C>
T Store(C x) {
  if constexpr (std::is_same_v<T, F16>) {
    return F16{F16FromDouble(Floating(x))};
  } else if constexpr (std::is_same_v<T, BF16>) {
    return BF16{BF16FromDouble(Floating(x))};
  } else if constexpr (std::is_same_v<T, cast::F8E4M3>) {
    return {F8E4M3FromDouble(Floating(x))};
  } else if constexpr (std::is_same_v<T, cast::F8E5M2>) {
    return {F8E5M2FromDouble(Floating(x))};
  } else if constexpr (std::is_same_v<T, cast::Bool>) {
    return {static_cast<std::uint8_t>(x != 0)};
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(x);
  } else {
    return cast::ToInteger<T>(x);
  }
}

// Elements of one type beside each other, there and back. Floats of 16 bits, and the way to those
// of 8, have vectors of their own; of other loops of one conversion the compiler makes them.
template <typename T>
void LoadRange(const void* from, std::int64_t n, Carrier<T>* to) {
  const T* x = static_cast<const T*>(from);
  if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, BF16>) {
    simd::WidenRange(x, to, n);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = Load(x[i]);
  }
}

template <typename T, typename C>
void StoreRange(const C* from, std::int64_t n, void* to) {
  constexpr bool kFromFloat = std::is_same_v<C, float>;
  if constexpr (kFromFloat && (std::is_same_v<T, F16> || std::is_same_v<T, BF16>)) {
    simd::ConvertRange<T>(from, static_cast<T*>(to), n);
  } else if constexpr (kFromFloat && std::is_same_v<T, cast::F8E4M3>) {
    EncodeF8<kF8E4M3Layout>(from, n, static_cast<std::uint8_t*>(to));
  } else if constexpr (kFromFloat && std::is_same_v<T, cast::F8E5M2>) {
    EncodeF8<kF8E5M2Layout>(from, n, static_cast<std::uint8_t*>(to));
  } else {
    T* y = static_cast<T*>(to);
    for (std::int64_t i = 0; i < n; ++i) y[i] = Store<T>(from[i]);
  }
}

template <typename C>
using StoreFn = void (*)(const C* from, std::int64_t n, void* to);

template <typename C>
StoreFn<C> StoreFor(DType to) {
  StoreFn<C> store = nullptr;
  cast::WithElementOf<F16, BF16>(to, [&](auto element) {
    store = StoreRange<decltype(element), C>;
    return absl::OkStatus();
  }).IgnoreError();  // Every dtype has one.
  return store;
}

// Elements that stay in the first cache on their way; as many as make whole vectors of any type.
constexpr std::int64_t kBlock = 512;

// n elements in the type that carries them: where they lie if it is their own, else in `block`.
template <typename T>
const Carrier<T>* Carried(const T* x, std::int64_t n, Carrier<T>* block) {
  if constexpr (std::is_same_v<T, Carrier<T>>) {
    return x;
  } else {
    LoadRange<T>(x, n, block);
    return block;
  }
}

// The elements that come two pages behind n others: memory is busy with them while a block is
// converted and written.
template <typename T>
void AskFor(const T* x, std::int64_t n) {
  constexpr auto kLine = std::int64_t{64} / std::int64_t{sizeof(T)};
  for (std::int64_t i = 0; i < n; i += kLine) simd::PrefetchFrom(x + i);
}

// Elements [begin, end), a block after the other.
template <typename T>
void CastRange(const Call& call, StoreFn<Carrier<T>> store, bool stream, std::int64_t begin,
               std::int64_t end) {
  const std::int64_t size = SizeOf(call.OutType(0));
  // Then there is no second pass over the block.
  const bool carrier_is_output =
      std::is_same_v<Carrier<T>, float> && call.OutType(0) == DType::kF32;
  Carrier<T> carried[kBlock];
  alignas(64) std::byte results[kBlock * sizeof(double)];
  for (; begin < end; begin += kBlock) {
    const std::int64_t n = std::min(kBlock, end - begin);
    std::byte* to = call.Out<std::byte>(0) + begin * size;
    const T* from = call.In<T>(0) + begin;
    std::byte* into = stream ? results : to;
    if (stream) AskFor(from, n);
    if (carrier_is_output) {
      LoadRange<T>(from, n, reinterpret_cast<Carrier<T>*>(into));
    } else {
      store(Carried<T>(from, n, carried), n, into);
    }
    if (stream) simd::StreamBytes(results, to, n * size);
  }
  if (stream) hwy::FlushStream();
}

absl::Status Naive(const Call& call) {
  return cast::WithElementOf<F16, BF16>(call.InType(0), [&](auto element) {
    using T = decltype(element);
    CastRange<T>(call, StoreFor<Carrier<T>>(call.OutType(0)), /*stream=*/false, 0,
                 Elements(call.InShape(0)));
    return absl::OkStatus();
  });
}

bool WorthStreaming(const Call& call, std::int64_t n) {
  const auto* to = call.Out<std::byte>(0);
  return n * SizeOf(call.OutType(0)) >= simd::kStreamBytes && to != call.In<std::byte>(0) &&
         simd::MayStreamTo(to);
}

absl::Status OnThreads(const Call& call) {
  const std::int64_t n = Elements(call.InShape(0));
  return cast::WithElementOf<F16, BF16>(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const auto store = StoreFor<Carrier<T>>(call.OutType(0));
    const bool stream = WorthStreaming(call, n);
    call.threads->ParallelFor(n, simd::kGrain, [&](std::int64_t begin, std::int64_t end) {
      CastRange<T>(call, store, stream, begin, end);
    });
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(cast) {
  return {
      .words = "x: T[*] -> y: to[*]; to: dtype = f32",
      .summary = "Each element as another dtype",
      .formula = "y = x, rounded to what `to` can hold",
      .notes =
          "To floating types: to the nearest, ties to even; f64, f32, f16 and bf16 overflow to "
          "infinity, f8e4m3 and f8e5m2 saturate at 448 and 57344, infinities too; NaN is NaN. To "
          "integers: toward zero, saturated, NaN is 0. To bool: whether it is not 0.",
      .reference = {.units = OutputElements,
                    .unit_elements = One,
                    .compute = Expected,
                    .accumulation = One,
                    .roundings = Roundings::kNone},
      .cpu = {{"naive", "A block at a time to a wide type and from it, one thread", Naive},
              {"threads", "The same on every core; large outputs bypass the caches", OnThreads}},
  };
}

#else  // The GPU.
#include <cuda_fp8.h>

#include "kernels/catalog/cuda_map.cuh"

namespace gridclock {
namespace {

using cast::Carrier;

template <typename T>
__device__ Carrier<T> Load(T x) {
  if constexpr (std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>) {
    return cuda::Widen(x);
  } else if constexpr (std::is_same_v<T, cast::F8E4M3>) {
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(x.bits, __NV_E4M3)));
  } else if constexpr (std::is_same_v<T, cast::F8E5M2>) {
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(x.bits, __NV_E5M2)));
  } else if constexpr (std::is_same_v<T, cast::Bool>) {
    return x.bits != 0 ? 1 : 0;
  } else {
    return x;
  }
}

template <typename C>
__device__ auto Floating(C x) {
  if constexpr (std::is_integral_v<C>) {
    return cast::Sticky(x);
  } else {
    return x;
  }
}

__device__ inline __half ToHalf(float x) {
  return __float2half_rn(x);
}
__device__ inline __half ToHalf(double x) {
  return __double2half(x);
}
__device__ inline __nv_bfloat16 ToBfloat(float x) {
  return __float2bfloat16_rn(x);
}
__device__ inline __nv_bfloat16 ToBfloat(double x) {
  return __double2bfloat16(x);
}
__device__ inline std::uint8_t ToF8(float x, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, kind);
}
__device__ inline std::uint8_t ToF8(double x, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_double_to_fp8(x, __NV_SATFINITE, kind);
}

template <typename T, typename C>
__device__ T Store(C x) {
  if constexpr (std::is_same_v<T, __half>) {
    return ToHalf(Floating(x));
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return ToBfloat(Floating(x));
  } else if constexpr (std::is_same_v<T, cast::F8E4M3>) {
    return {ToF8(Floating(x), __NV_E4M3)};
  } else if constexpr (std::is_same_v<T, cast::F8E5M2>) {
    return {ToF8(Floating(x), __NV_E5M2)};
  } else if constexpr (std::is_same_v<T, cast::Bool>) {
    return {static_cast<std::uint8_t>(x != 0)};
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(x);
  } else {
    return cast::ToInteger<T>(x);
  }
}

// The type is the same for all threads: to ask for it each time costs a jump, and saves a kernel
// for each pair of types.
template <typename C>
__device__ void StoreAs(DType to, void* y, std::int64_t i, C x) {
  switch (to) {
    case DType::kF64:
      static_cast<double*>(y)[i] = Store<double>(x);
      return;
    case DType::kF32:
      static_cast<float*>(y)[i] = Store<float>(x);
      return;
    case DType::kF16:
      static_cast<__half*>(y)[i] = Store<__half>(x);
      return;
    case DType::kBF16:
      static_cast<__nv_bfloat16*>(y)[i] = Store<__nv_bfloat16>(x);
      return;
    case DType::kF8E4M3:
      static_cast<cast::F8E4M3*>(y)[i] = Store<cast::F8E4M3>(x);
      return;
    case DType::kF8E5M2:
      static_cast<cast::F8E5M2*>(y)[i] = Store<cast::F8E5M2>(x);
      return;
    case DType::kI64:
      static_cast<std::int64_t*>(y)[i] = Store<std::int64_t>(x);
      return;
    case DType::kI32:
      static_cast<std::int32_t*>(y)[i] = Store<std::int32_t>(x);
      return;
    case DType::kI16:
      static_cast<std::int16_t*>(y)[i] = Store<std::int16_t>(x);
      return;
    case DType::kI8:
      static_cast<std::int8_t*>(y)[i] = Store<std::int8_t>(x);
      return;
    case DType::kU64:
      static_cast<std::uint64_t*>(y)[i] = Store<std::uint64_t>(x);
      return;
    case DType::kU32:
      static_cast<std::uint32_t*>(y)[i] = Store<std::uint32_t>(x);
      return;
    case DType::kU16:
      static_cast<std::uint16_t*>(y)[i] = Store<std::uint16_t>(x);
      return;
    case DType::kU8:
      static_cast<std::uint8_t*>(y)[i] = Store<std::uint8_t>(x);
      return;
    case DType::kBool:
      static_cast<cast::Bool*>(y)[i] = Store<cast::Bool>(x);
      return;
  }
}

template <typename From>
__global__ void CastKernel(DType to, void* y, const From* x, std::int64_t n) {
  for (std::int64_t i = cuda::GridThread(); i < n; i += cuda::GridThreads()) {
    StoreAs(to, y, i, Load(x[i]));
  }
}

// What a pack of results is as one word.
template <std::size_t kBytes>
struct WordOf;
template <>
struct WordOf<2> {
  using Type = unsigned short;
};
template <>
struct WordOf<4> {
  using Type = unsigned int;
};
template <>
struct WordOf<8> {
  using Type = uint2;
};
template <>
struct WordOf<16> {
  using Type = uint4;
};

// The first to leave the caches: inputs stay there instead (H100, 2^23 f32 to bf16, which together
// fill its L2: 16.6 and 14.8 us; of other sizes there is no difference).
template <typename Pack>
__device__ void StoreStreaming(Pack* to, const Pack& pack) {
  using Word = typename WordOf<sizeof(Pack)>::Type;
  Word word;
  memcpy(&word, &pack, sizeof(word));
  __stcs(reinterpret_cast<Word*>(to), word);
}

// Two packs for each thread, both asked for before either is converted: more is read than written,
// and one pack a thread asks for too little at once (H200, 2^28 f32 to bf16 380 and 366 us, to f8
// 323 and 302). What is no whole pack goes one element at a time.
constexpr int kPacksOfThread = 2;

template <typename To, typename From>
__global__ void __launch_bounds__(cuda::kMapThreads)
    CastPacksKernel(To* y, const From* x, std::int64_t n) {
  constexpr int kLanes = cuda::kMapLanes<From, To>;
  using InPack = cuda::Pack<From, kLanes>;
  using OutPack = cuda::Pack<To, kLanes>;
  const std::int64_t packs = n / kLanes;
  const std::int64_t first =
      std::int64_t{blockIdx.x} * (kPacksOfThread * cuda::kMapThreads) + threadIdx.x;
  InPack in[kPacksOfThread];
#pragma unroll
  for (int p = 0; p < kPacksOfThread; ++p) {
    const std::int64_t i = first + p * cuda::kMapThreads;
    if (i < packs) in[p] = reinterpret_cast<const InPack*>(x)[i];
  }
#pragma unroll
  for (int p = 0; p < kPacksOfThread; ++p) {
    const std::int64_t i = first + p * cuda::kMapThreads;
    const std::int64_t rest = packs * kLanes + (i - packs);
    if (i < packs) {
      OutPack out;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) out.lane[lane] = Store<To>(Load(in[p].lane[lane]));
      StoreStreaming(reinterpret_cast<OutPack*>(y) + i, out);
    } else if (rest < n) {
      y[rest] = Store<To>(Load(x[rest]));
    }
  }
}

template <typename From>
absl::Status LaunchNaive(const Call& call, std::int64_t n) {
  return cuda::Launch(call, CastKernel<From>,
                      {.grid = {cuda::Blocks(n, cuda::kMapThreads)}, .block = {cuda::kMapThreads}},
                      call.OutType(0), call.Out<void>(0), call.In<From>(0), n);
}

absl::Status Naive(const Call& call) {
  const std::int64_t n = Elements(call.InShape(0));
  if (n == 0) return absl::OkStatus();
  return cast::WithElementOf<__half, __nv_bfloat16>(
      call.InType(0), [&](auto from) { return LaunchNaive<decltype(from)>(call, n); });
}

template <typename To, typename From>
absl::Status LaunchPacks(const Call& call, std::int64_t n) {
  constexpr std::int64_t kLanes = cuda::kMapLanes<From, To>;
  return cuda::Launch(
      call, CastPacksKernel<To, From>,
      {.grid = {cuda::Blocks(n / kLanes + n % kLanes, kPacksOfThread * cuda::kMapThreads)},
       .block = {cuda::kMapThreads}},
      call.Out<To>(0), call.In<From>(0), n);
}

absl::Status Packs(const Call& call) {
  const std::int64_t n = Elements(call.InShape(0));
  if (!cuda::AreAligned(call.Out<char>(0), call.In<char>(0))) return Naive(call);
  if (n == 0) return absl::OkStatus();
  return cast::WithElementOf<__half, __nv_bfloat16>(call.InType(0), [&](auto from) {
    return cast::WithElementOf<__half, __nv_bfloat16>(call.OutType(0), [&](auto to) {
      return LaunchPacks<decltype(to), decltype(from)>(call, n);
    });
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(cast) {
  return {{"naive", "One thread for each element", Naive},
          {"packs", "16 bytes of the wider type at a time", Packs}};
}

#endif  // __CUDACC__
