#include "kernels/device/cpu/loops.h"

#include <immintrin.h>

// Highway compiles this file once for each set of instructions and picks one when it runs: the
// peaks do not depend on the level that the catalogue was built for.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/device/cpu/loops.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"
#include "kernels/api/bf16_units.h"

HWY_BEFORE_NAMESPACE();
namespace gridclock {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;

float Read(const float* from, std::int64_t n) {
  const Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (std::int64_t i = 0; i < n; i += 4 * lanes) {
    a = hn::Add(a, hn::Load(d, from + i));
    b = hn::Add(b, hn::Load(d, from + i + lanes));
    c = hn::Add(c, hn::Load(d, from + i + 2 * lanes));
    e = hn::Add(e, hn::Load(d, from + i + 3 * lanes));
  }
  return hn::GetLane(hn::Add(hn::Add(a, b), hn::Add(c, e)));
}

void Copy(const float* from, float* to, std::int64_t n) {
  const Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < n; i += 2 * lanes) {
    const auto a = hn::Load(d, from + i), b = hn::Load(d, from + i + lanes);
    hn::Store(a, d, to + i);
    hn::Store(b, d, to + i + lanes);
  }
}

void Stream(const float* from, float* to, std::int64_t n) {
  const Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < n; i += lanes) hn::Stream(hn::Load(d, from + i), d, to + i);
  hwy::FlushStream();
}

// Ten chains hide the four cycles of a fused multiply-add on two ports; more run out of registers
// where there are 16.
std::int64_t Flops(std::int64_t rounds, float* sink) {
  const Tag d;
  constexpr int kChains = 10;
  const auto factor = hn::Set(d, 0.999f), term = hn::Set(d, 0.001f);
  auto a = hn::Set(d, *sink), b = a, c = a, e = a, f = a, g = a, h = a, i = a, j = a, k = a;
  for (std::int64_t round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, factor, term);
    b = hn::MulAdd(b, factor, term);
    c = hn::MulAdd(c, factor, term);
    e = hn::MulAdd(e, factor, term);
    f = hn::MulAdd(f, factor, term);
    g = hn::MulAdd(g, factor, term);
    h = hn::MulAdd(h, factor, term);
    i = hn::MulAdd(i, factor, term);
    j = hn::MulAdd(j, factor, term);
    k = hn::MulAdd(k, factor, term);
  }
  const auto ab = hn::Add(hn::Add(a, b), hn::Add(c, e)), gh = hn::Add(hn::Add(f, g), hn::Add(h, i));
  *sink = hn::GetLane(hn::Add(hn::Add(ab, gh), hn::Add(j, k)));
  return rounds * 2 * kChains * static_cast<std::int64_t>(hn::Lanes(d));
}

}  // namespace HWY_NAMESPACE
}  // namespace gridclock
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gridclock {

HWY_EXPORT(Read);
HWY_EXPORT(Copy);
HWY_EXPORT(Stream);
HWY_EXPORT(Flops);

float ReadLoop(const float* from, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(Read)(from, n);
}
void CopyLoop(const float* from, float* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(Copy)(from, to, n);
}
void StreamLoop(const float* from, float* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(Stream)(from, to, n);
}
std::int64_t FlopsLoop(std::int64_t rounds, float* sink) {
  return HWY_DYNAMIC_DISPATCH(Flops)(rounds, sink);
}

// Six chains hide the latency of a product; the other two registers are its factors.
GC_AMX std::int64_t MatrixFlopsLoop(std::int64_t rounds) {
  constexpr std::int64_t kChains = 6, kFlops = 2 * 16 * 16 * 32;
  _tile_loadconfig(&bf16_units::kWholeTiles);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (std::int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  _tile_release();
  return rounds * kChains * kFlops;
}

GC_AVX512_BF16 std::int64_t DotFlopsLoop(std::int64_t rounds, float* sink) {
  constexpr std::int64_t kChains = 16, kFlops = 2 * 2 * 16;
  constexpr int kPairOfHalves = 0x3F003F00;
  const auto factors = reinterpret_cast<__m512bh>(_mm512_set1_epi32(kPairOfHalves));
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_set1_ps(*sink);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, factors, factors);
  }
  __m512 total = _mm512_setzero_ps();
  for (const __m512& sum : sums) total = _mm512_add_ps(total, sum);
  *sink = _mm512_cvtss_f32(total);
  return rounds * kChains * kFlops;
}

}  // namespace gridclock
#endif  // HWY_ONCE
