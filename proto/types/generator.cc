#include "proto/types/generator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "proto/types/convert.h"
#include "proto/types/kernel_spec.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

using Kind = GeneratorKind;

// Elements are made in blocks: one loop per step, simple enough for the compiler to vectorise.
constexpr std::size_t kBlock = 512;

// --- Random bits: docs/generators.md, "Bits" ---

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;

constexpr std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// Mixing the seed first keeps the sequences of seed and seed + kGolden from being shifts of each
// other.
constexpr std::uint64_t Bits(std::uint64_t key, std::uint64_t index) {
  return Mix(key + (index + 1) * kGolden);
}

// --- Normal values: the inverse of the normal distribution, Wichura's algorithm AS 241 ---

using Polynomial = double[8];
constexpr Polynomial kCentreTop = {2.5090809287301226727e+3, 3.3430575583588128105e+4,
                                   6.7265770927008700853e+4, 4.5921953931549871457e+4,
                                   1.3731693765509461125e+4, 1.9715909503065514427e+3,
                                   1.3314166789178437745e+2, 3.3871328727963666080e+0};
constexpr Polynomial kCentreBottom = {5.2264952788528545610e+3, 2.8729085735721942674e+4,
                                      3.9307895800092710610e+4, 2.1213794301586595867e+4,
                                      5.3941960214247511077e+3, 6.8718700749205790830e+2,
                                      4.2313330701600911252e+1, 1.0};
constexpr Polynomial kNearTop = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                                 2.41780725177450611770e-1, 1.27045825245236838258e+0,
                                 3.64784832476320460504e+0, 5.76949722146069140550e+0,
                                 4.63033784615654529590e+0, 1.42343711074968357734e+0};
constexpr Polynomial kNearBottom = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                                    1.51986665636164571966e-2, 1.48103976427480074590e-1,
                                    6.89767334985100004550e-1, 1.67638483018380384940e+0,
                                    2.05319162663775882187e+0, 1.0};
constexpr Polynomial kFarTop = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                                1.24266094738807843860e-3, 2.65321895265761230930e-2,
                                2.96560571828504891230e-1, 1.78482653991729133580e+0,
                                5.46378491116411436990e+0, 6.65790464350110377720e+0};
constexpr Polynomial kFarBottom = {2.04426310338993978564e-15, 1.42151175831644588870e-7,
                                   1.84631831751005468180e-5,  7.86869131145613259100e-4,
                                   1.48753612908506148525e-2,  1.36929880922735805310e-1,
                                   5.99832206555887937690e-1,  1.0};

inline double Evaluate(const Polynomial& polynomial, double x) {
  double sum = polynomial[0];
  for (int i = 1; i < 8; ++i) sum = sum * x + polynomial[i];
  return sum;
}

constexpr double kCentre = 0.425;

// Right where |q| <= kCentre; elsewhere a number that is replaced.
inline double CentralNormal(double q) {
  const double r = 0.180625 - q * q;
  return Evaluate(kCentreTop, r) * q / Evaluate(kCentreBottom, r);
}

double TailNormal(double q) {
  const double r = std::sqrt(-std::log(q < 0 ? 0.5 + q : 0.5 - q));
  const double x = r <= 5 ? Evaluate(kNearTop, r - 1.6) / Evaluate(kNearBottom, r - 1.6)
                          : Evaluate(kFarTop, r - 5) / Evaluate(kFarBottom, r - 5);
  return q < 0 ? -x : x;
}

void FillNormal(std::uint64_t key, std::uint64_t first, std::span<double> out) {
  double q[kBlock];
  for (std::size_t i = 0; i < out.size(); ++i) {
    // (k + 1/2) / 2^52 - 1/2: exact, symmetric about 0, never -1/2 or 1/2.
    q[i] = (static_cast<double>(Bits(key, first + i) >> 12) + 0.5) * 0x1p-52 - 0.5;
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = CentralNormal(q[i]);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (std::abs(q[i]) > kCentre) out[i] = TailNormal(q[i]);
  }
}

void FillUniform(const Generator& generator, std::uint64_t key, std::uint64_t first,
                 std::span<double> out) {
  const double width = generator.b - generator.a;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double unit = static_cast<double>(Bits(key, first + i) >> 11) * 0x1p-53;
    const double x = generator.a + width * unit;
    out[i] = x < generator.b ? x : generator.a;  // The sum may round up to b.
  }
}

void FillDoubles(const Generator& generator, std::uint64_t first, std::span<double> out) {
  const std::uint64_t key = Mix(generator.seed);
  switch (generator.kind) {
    case Kind::kRandn:
      return FillNormal(key, first, out);
    case Kind::kUniform:
      return FillUniform(generator, key, first, out);
    case Kind::kArange:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(first + i);
      return;
    case Kind::kOnes:
      return std::fill(out.begin(), out.end(), 1.0);
    case Kind::kFull:
      return std::fill(out.begin(), out.end(), generator.a);
    default:
      return std::fill(out.begin(), out.end(), 0.0);
  }
}

// --- Whole numbers: exact in 64 bits, where doubles are not ---

// `a` of 64 bits, signed or not, as it counts modulo 2^64.
std::uint64_t Wrapped(double a) {
  return a < 0 ? static_cast<std::uint64_t>(IntegerFromDouble<std::int64_t>(a))
               : IntegerFromDouble<std::uint64_t>(a);
}

void FillWhole(const Generator& generator, std::uint64_t first, std::span<std::uint64_t> out) {
  const std::uint64_t key = Mix(generator.seed);
  const std::uint64_t low = Wrapped(generator.a);
  const std::uint64_t count = Wrapped(generator.b) - low;  // 0 stands for 2^64, and the bits do.
  const bool all = generator.b - generator.a >= 0x1p64;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t bits = Bits(key, first + i);
    const auto product = static_cast<unsigned __int128>(bits) * count;
    out[i] = low + (all ? bits : static_cast<std::uint64_t>(product >> 64));
  }
}

// --- Blocks to elements ---

template <typename T, typename From, typename Convert>
void StoreBlock(std::span<const From> values, std::byte* out, Convert convert) {
  T converted[kBlock];
  for (std::size_t i = 0; i < values.size(); ++i) converted[i] = convert(values[i]);
  std::memcpy(out, converted, values.size() * sizeof(T));
}

template <typename T>
void StoreIntegers(std::span<const double> values, std::byte* out) {
  StoreBlock<T>(values, out, IntegerFromDouble<T>);
}

void StoreDoubles(DType dtype, std::span<const double> values, std::byte* out) {
  switch (dtype) {
    case DType::kF64:
      std::memcpy(out, values.data(), values.size_bytes());
      return;
    case DType::kF32:
      return StoreBlock<float>(values, out, [](double x) { return static_cast<float>(x); });
    case DType::kF16:
      return StoreBlock<std::uint16_t>(values, out, F16FromDouble);
    case DType::kBF16:
      return StoreBlock<std::uint16_t>(values, out, BF16FromDouble);
    case DType::kF8E4M3:
      return StoreBlock<std::uint8_t>(values, out, F8E4M3FromDouble);
    case DType::kF8E5M2:
      return StoreBlock<std::uint8_t>(values, out, F8E5M2FromDouble);
    case DType::kI64:
      return StoreIntegers<std::int64_t>(values, out);
    case DType::kI32:
      return StoreIntegers<std::int32_t>(values, out);
    case DType::kI16:
      return StoreIntegers<std::int16_t>(values, out);
    case DType::kI8:
      return StoreIntegers<std::int8_t>(values, out);
    case DType::kU64:
      return StoreIntegers<std::uint64_t>(values, out);
    case DType::kU32:
      return StoreIntegers<std::uint32_t>(values, out);
    case DType::kU16:
      return StoreIntegers<std::uint16_t>(values, out);
    case DType::kU8:
      return StoreIntegers<std::uint8_t>(values, out);
    case DType::kBool:
      return StoreBlock<std::uint8_t>(values, out, [](double x) { return std::uint8_t{x != 0}; });
  }
}

template <typename T>
void StoreLowBits(std::span<const std::uint64_t> values, std::byte* out) {
  StoreBlock<T>(values, out, [](std::uint64_t x) { return static_cast<T>(x); });
}

bool IsFloat(DType dtype) {
  return dtype <= DType::kF8E5M2;
}

void StoreWhole(DType dtype, std::span<const std::uint64_t> values, std::byte* out) {
  if (IsFloat(dtype)) {
    double doubles[kBlock];
    for (std::size_t i = 0; i < values.size(); ++i) {
      doubles[i] = static_cast<double>(static_cast<std::int64_t>(values[i]));
    }
    return StoreDoubles(dtype, {doubles, values.size()}, out);
  }
  switch (SizeOf(dtype)) {
    case 8:
      return StoreLowBits<std::uint64_t>(values, out);
    case 4:
      return StoreLowBits<std::uint32_t>(values, out);
    case 2:
      return StoreLowBits<std::uint16_t>(values, out);
    default:
      return StoreLowBits<std::uint8_t>(values, out);
  }
}

// --- Text and rules ---

struct Word {
  Kind kind;
  const char* name;
  int numbers;
};
constexpr Word kWords[] = {{Kind::kZeros, "zeros", 0},    {Kind::kOnes, "ones", 0},
                           {Kind::kFull, "full", 1},      {Kind::kArange, "arange", 0},
                           {Kind::kRandn, "randn", 0},    {Kind::kUniform, "uniform", 2},
                           {Kind::kRandint, "randint", 2}};

template <typename T>
struct Bounds {
  static constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
  // The end of the range, which is not in it.
  static constexpr double kEnd = 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
};

// The whole numbers that `dtype` can tell apart or at least reach: [low, end).
std::pair<double, double> WholeRange(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {-65504, 65505};
    case DType::kF8E4M3:
      return {-448, 449};
    case DType::kF8E5M2:
      return {-57344, 57345};
    case DType::kI64:
      return {Bounds<std::int64_t>::kLow, Bounds<std::int64_t>::kEnd};
    case DType::kI32:
      return {Bounds<std::int32_t>::kLow, Bounds<std::int32_t>::kEnd};
    case DType::kI16:
      return {Bounds<std::int16_t>::kLow, Bounds<std::int16_t>::kEnd};
    case DType::kI8:
      return {Bounds<std::int8_t>::kLow, Bounds<std::int8_t>::kEnd};
    case DType::kU64:
      return {0, Bounds<std::uint64_t>::kEnd};
    case DType::kU32:
      return {0, Bounds<std::uint32_t>::kEnd};
    case DType::kU16:
      return {0, Bounds<std::uint16_t>::kEnd};
    case DType::kU8:
      return {0, Bounds<std::uint8_t>::kEnd};
    case DType::kBool:
      return {0, 2};
    default:
      return {-0x1p53, 0x1p53};
  }
}

absl::Status ValidateRandint(const Generator& generator, DType dtype) {
  if (generator.a != std::floor(generator.a) || generator.b != std::floor(generator.b)) {
    return absl::InvalidArgumentError(
        absl::StrCat("want whole numbers as bounds, got ", ToText(generator)));
  }
  const auto [low, end] = WholeRange(dtype);
  if (generator.a >= low && generator.b <= end) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("want randint:a:b with a >= ", ToText(AttributeValue(low)), " and b <= ",
                   ToText(AttributeValue(end)), " for ", Name(dtype), ", got ", ToText(generator)));
}

const Word* FindWord(absl::string_view name) {
  for (const Word& word : kWords) {
    if (name == word.name) return &word;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<Generator> ParseGenerator(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 3));
  const Word* word = FindWord(parts[0]);
  Generator generator;
  double* const numbers[] = {&generator.a, &generator.b};
  bool good = word != nullptr && parts.size() == static_cast<std::size_t>(word->numbers) + 1;
  for (std::size_t i = 1; good && i < parts.size(); ++i) {
    good = absl::SimpleAtod(parts[i], numbers[i - 1]);
  }
  if (!good) {
    return absl::InvalidArgumentError(absl::StrCat(
        "want zeros, ones, full:V, arange, randn, uniform:A:B or randint:A:B, got ", Quote(text)));
  }
  generator.kind = word->kind;
  return generator;
}

std::string ToText(const Generator& generator) {
  const auto number = [](double value) { return absl::StrCat(":", ToText(AttributeValue(value))); };
  for (const Word& word : kWords) {
    if (word.kind != generator.kind) continue;
    std::string text = word.name;
    if (word.numbers > 0) text += number(generator.a);
    if (word.numbers > 1) text += number(generator.b);
    return text;
  }
  return absl::StrCat("generator of kind ", static_cast<int>(generator.kind));
}

absl::Status Validate(const Generator& generator, DType dtype) {
  if (generator.kind < Kind::kZeros || generator.kind > Kind::kRandint) {
    return absl::InvalidArgumentError(absl::StrCat("unknown ", ToText(generator)));
  }
  if (generator.kind != Kind::kUniform && generator.kind != Kind::kRandint) {
    return absl::OkStatus();
  }
  if (!(generator.a < generator.b) || !std::isfinite(generator.b - generator.a)) {
    return absl::InvalidArgumentError(
        absl::StrCat("want finite bounds a < b, got ", ToText(generator)));
  }
  return generator.kind == Kind::kRandint ? ValidateRandint(generator, dtype) : absl::OkStatus();
}

void Generate(const Generator& generator, DType dtype, std::int64_t first,
              std::span<std::byte> out) {
  if (generator.kind == Kind::kZeros) {
    std::memset(out.data(), 0, out.size());  // 0 of every dtype.
    return;
  }
  const auto size = static_cast<std::size_t>(SizeOf(dtype));
  const std::size_t total = out.size() / size;
  for (std::size_t done = 0; done < total; done += kBlock) {
    const std::size_t count = std::min(kBlock, total - done);
    const std::uint64_t index = static_cast<std::uint64_t>(first) + done;
    std::byte* const to = out.data() + done * size;
    if (generator.kind == Kind::kRandint) {
      std::uint64_t whole[kBlock];
      FillWhole(generator, index, {whole, count});
      StoreWhole(dtype, {whole, count}, to);
    } else {
      double doubles[kBlock];
      FillDoubles(generator, index, {doubles, count});
      StoreDoubles(dtype, {doubles, count}, to);
    }
  }
}

}  // namespace gridclock
