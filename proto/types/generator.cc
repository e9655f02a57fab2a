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
#include "proto/types/random_values.h"

namespace gridclock {
namespace {

using random_values::Bits;
using random_values::Mix;

// Elements are made in blocks: one loop per step, simple enough for the compiler to vectorise.
constexpr std::size_t kBlock = 512;

void FillNormal(std::uint64_t key, std::uint64_t first, std::span<double> out) {
  double q[kBlock];
  for (std::size_t i = 0; i < out.size(); ++i) {
    q[i] = random_values::Quantile(Bits(key, first + i));
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = random_values::CentralNormal(q[i]);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (std::abs(q[i]) > random_values::kCentre) out[i] = random_values::TailNormal(q[i]);
  }
}

void FillUniform(const Generator& generator, std::uint64_t key, std::uint64_t first,
                 std::span<double> out) {
  const double width = generator.b - generator.a;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = random_values::Uniform(Bits(key, first + i), generator.a, generator.b, width);
  }
}

void FillDoubles(const Generator& generator, std::uint64_t first, std::span<double> out) {
  const std::uint64_t key = Mix(generator.seed);
  switch (generator.kind) {
    case GeneratorKind::kRandn:
      return FillNormal(key, first, out);
    case GeneratorKind::kUniform:
      return FillUniform(generator, key, first, out);
    case GeneratorKind::kArange:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(first + i);
      return;
    case GeneratorKind::kOnes:
      return std::fill(out.begin(), out.end(), 1.0);
    case GeneratorKind::kFull:
      return std::fill(out.begin(), out.end(), generator.a);
    default:
      return std::fill(out.begin(), out.end(), 0.0);
  }
}

// --- Whole numbers ---

// `a` of 64 bits, signed or not, as it counts modulo 2^64.
std::uint64_t Wrapped(double a) {
  return a < 0 ? static_cast<std::uint64_t>(IntegerFromDouble<std::int64_t>(a))
               : IntegerFromDouble<std::uint64_t>(a);
}

void FillWhole(const Generator& generator, std::uint64_t first, std::span<std::uint64_t> out) {
  const std::uint64_t key = Mix(generator.seed);
  const WholeNumbers whole = WholeNumbersOf(generator);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t bits = Bits(key, first + i);
    const auto product = static_cast<unsigned __int128>(bits) * whole.count;
    out[i] = whole.low + (whole.all ? bits : static_cast<std::uint64_t>(product >> 64));
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
  const char* name;
  int numbers;
  GeneratorKind kind;
};
constexpr Word kWords[] = {
    {"zeros", 0, GeneratorKind::kZeros},    {"ones", 0, GeneratorKind::kOnes},
    {"full", 1, GeneratorKind::kFull},      {"arange", 0, GeneratorKind::kArange},
    {"randn", 0, GeneratorKind::kRandn},    {"uniform", 2, GeneratorKind::kUniform},
    {"randint", 2, GeneratorKind::kRandint}};

template <typename T>
struct Bounds {
  static constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
  // The end of the range, which is not in it.
  static constexpr double kEnd = static_cast<double>(std::numeric_limits<T>::max()) + 1;
};

// [low, end)
struct Range {
  double low = 0, end = 0;
};

// The whole numbers that `dtype` can tell apart or at least reach.
Range WholeRange(DType dtype) {
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
  const Range range = WholeRange(dtype);
  if (generator.a >= range.low && generator.b <= range.end) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "want randint:a:b with a >= ", ToText(AttributeValue(range.low)), " and b <= ",
      ToText(AttributeValue(range.end)), " for ", Name(dtype), ", got ", ToText(generator)));
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
  bool good = word != nullptr && parts.size() == static_cast<std::size_t>(word->numbers) + 1;
  if (good && word->numbers > 0) good = absl::SimpleAtod(parts[1], &generator.a);
  if (good && word->numbers > 1) good = absl::SimpleAtod(parts[2], &generator.b);
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
  if (generator.kind < GeneratorKind::kZeros || generator.kind > GeneratorKind::kRandint) {
    return absl::InvalidArgumentError(absl::StrCat("unknown ", ToText(generator)));
  }
  if (generator.kind != GeneratorKind::kUniform && generator.kind != GeneratorKind::kRandint) {
    return absl::OkStatus();
  }
  const auto want = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("want ", what, ", got ", ToText(generator)));
  };
  const bool finite = std::isfinite(generator.a) && std::isfinite(generator.b);
  if (!finite || !(generator.a < generator.b)) return want("finite bounds a < b");
  if (!std::isfinite(generator.b - generator.a)) return want("b - a of less than 1.8e308");
  return generator.kind == GeneratorKind::kRandint ? ValidateRandint(generator, dtype)
                                                   : absl::OkStatus();
}

WholeNumbers WholeNumbersOf(const Generator& generator) {
  const std::uint64_t low = Wrapped(generator.a);
  return {
      .low = low, .count = Wrapped(generator.b) - low, .all = generator.b - generator.a >= 0x1p64};
}

void Generate(const Generator& generator, DType dtype, std::int64_t first,
              std::span<std::byte> out) {
  if (generator.kind == GeneratorKind::kZeros) {
    std::memset(out.data(), 0, out.size());  // 0 of every dtype.
    return;
  }
  const auto size = static_cast<std::size_t>(SizeOf(dtype));
  const std::size_t total = out.size() / size;
  for (std::size_t done = 0; done < total; done += kBlock) {
    const std::size_t count = std::min(kBlock, total - done);
    const std::uint64_t index = static_cast<std::uint64_t>(first) + done;
    std::byte* const to = out.data() + done * size;
    if (generator.kind == GeneratorKind::kRandint) {
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
