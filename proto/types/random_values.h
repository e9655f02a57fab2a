// The arithmetic of docs/generators.md, for the host and for the devices that make values
// themselves: every step is one operation on IEEE doubles, so the bits are the same wherever no
// multiplication and addition are fused (-ffp-contract=off, --fmad=false).
#ifndef GRIDCLOCK_PROTO_TYPES_RANDOM_VALUES_H_
#define GRIDCLOCK_PROTO_TYPES_RANDOM_VALUES_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define GC_HOST_DEVICE __host__ __device__
#else
#define GC_HOST_DEVICE
#endif

namespace gridclock::random_values {

GC_HOST_DEVICE constexpr std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// Of `key` = Mix(seed). Mixing the seed first keeps the sequences of seed and seed + the step from
// being shifts of each other.
GC_HOST_DEVICE constexpr std::uint64_t Bits(std::uint64_t key, std::uint64_t index) {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
  return Mix(key + (index + 1) * kGolden);
}

// a <= x < b; width = b - a.
GC_HOST_DEVICE inline double Uniform(std::uint64_t bits, double a, double b, double width) {
  const double unit = static_cast<double>(bits >> 11) * 0x1p-53;
  const double x = a + width * unit;
  return x < b ? x : a;  // The sum may round up to b.
}

// --- Normal values: the inverse of the normal distribution, Wichura's algorithm AS 241 ---

// (k + 1/2) / 2^52 - 1/2: exact, symmetric about 0, never -1/2 or 1/2.
GC_HOST_DEVICE inline double Quantile(std::uint64_t bits) {
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52 - 0.5;
}

GC_HOST_DEVICE inline double Evaluate(const double (&polynomial)[8], double x) {
  double sum = polynomial[0];
  for (int i = 1; i < 8; ++i) sum = sum * x + polynomial[i];
  return sum;
}

// Up to this |q| CentralNormal is right, beyond it TailNormal.
inline constexpr double kCentre = 0.425;

GC_HOST_DEVICE inline double CentralNormal(double q) {
  constexpr double kTop[] = {2.5090809287301226727e+3, 3.3430575583588128105e+4,
                             6.7265770927008700853e+4, 4.5921953931549871457e+4,
                             1.3731693765509461125e+4, 1.9715909503065514427e+3,
                             1.3314166789178437745e+2, 3.3871328727963666080e+0};
  constexpr double kBottom[] = {5.2264952788528545610e+3, 2.8729085735721942674e+4,
                                3.9307895800092710610e+4, 2.1213794301586595867e+4,
                                5.3941960214247511077e+3, 6.8718700749205790830e+2,
                                4.2313330701600911252e+1, 1.0};
  const double r = 0.180625 - q * q;
  return Evaluate(kTop, r) * q / Evaluate(kBottom, r);
}

// The natural logarithm of a normal number below 1/2, within two units in the last place, and the
// same on all machines: log(2^e m) = e log 2 + 2 artanh((m - 1) / (m + 1)), sqrt(1/2) <= m <
// sqrt(2), by the series of artanh. e times the high part of log 2 is exact.
GC_HOST_DEVICE inline double LogOfSmall(double x) {
  constexpr double kLog2High = 0x1.62e42feep-1, kLog2Low = 0x1.a39ef35793c76p-33;
  constexpr double kRootHalf = 0.70710678118654752440;
  constexpr int kTerms = 11;  // (m - 1)^2 / (m + 1)^2 < 0.0295.
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  double e = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1022);
  bits = (bits & 0x000FFFFFFFFFFFFF) | 0x3FE0000000000000;  // 1/2 <= m < 1.
  double m = 0;
  std::memcpy(&m, &bits, sizeof m);
  if (m < kRootHalf) {
    m = 2 * m;
    e = e - 1;
  }
  const double s = (m - 1) / (m + 1), z = s * s;
  double series = 0;
  for (int k = kTerms - 1; k > 0; --k) series = (series + 1 / (2.0 * k + 1)) * z;
  return e * kLog2High + (e * kLog2Low + (2 * s + 2 * s * series));
}

GC_HOST_DEVICE inline double TailNormal(double q) {
  constexpr double kNearTop[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                                 2.41780725177450611770e-1, 1.27045825245236838258e+0,
                                 3.64784832476320460504e+0, 5.76949722146069140550e+0,
                                 4.63033784615654529590e+0, 1.42343711074968357734e+0};
  constexpr double kNearBottom[] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                                    1.51986665636164571966e-2, 1.48103976427480074590e-1,
                                    6.89767334985100004550e-1, 1.67638483018380384940e+0,
                                    2.05319162663775882187e+0, 1.0};
  constexpr double kFarTop[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                                1.24266094738807843860e-3, 2.65321895265761230930e-2,
                                2.96560571828504891230e-1, 1.78482653991729133580e+0,
                                5.46378491116411436990e+0, 6.65790464350110377720e+0};
  constexpr double kFarBottom[] = {2.04426310338993978564e-15, 1.42151175831644588870e-7,
                                   1.84631831751005468180e-5,  7.86869131145613259100e-4,
                                   1.48753612908506148525e-2,  1.36929880922735805310e-1,
                                   5.99832206555887937690e-1,  1.0};
  const double r = std::sqrt(-LogOfSmall(q < 0 ? 0.5 + q : 0.5 - q));
  const double x = r <= 5 ? Evaluate(kNearTop, r - 1.6) / Evaluate(kNearBottom, r - 1.6)
                          : Evaluate(kFarTop, r - 5) / Evaluate(kFarBottom, r - 5);
  return q < 0 ? -x : x;
}

}  // namespace gridclock::random_values

#endif  // GRIDCLOCK_PROTO_TYPES_RANDOM_VALUES_H_
