#include "tests/conformance/bits.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/verify/elements.h"
#include "proto/types/convert.h"

namespace gridclock {
namespace {

constexpr absl::string_view kMoves[] = {"copy", "transpose"};
constexpr absl::string_view kSignedZeros[] = {"relu", "square",     "scale",      "mul",
                                              "cast", "vector_add", "foreach_mul"};

bool Has(std::span<const absl::string_view> names, const Binding& binding) {
  return std::find(names.begin(), names.end(), binding.spec->name) != names.end();
}

bool IsLongInteger(DType dtype) {
  return dtype == DType::kI64 || dtype == DType::kU64;
}

bool IsFloat(DType dtype) {
  return dtype <= DType::kBF16 || dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2;
}

DType DTypeOf(const OperandView& view) {
  return view.value->tensors[0].dtype;
}

std::uint64_t BitsOf(const OperandView& view, std::int64_t element) {
  const auto size = static_cast<std::size_t>(SizeOf(DTypeOf(view)));
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(view.data[0]) + element * SizeOf(DTypeOf(view)),
              size);
  return bits;
}

std::string Differs(std::int64_t element, std::uint64_t want, std::uint64_t got) {
  return absl::StrCat("the bits of element ", element, " differ: want ", absl::Hex(want), ", got ",
                      absl::Hex(got));
}

// Which element comes where is the same of the halves of elements, which doubles hold.
std::optional<std::string> WrongMove(const KernelDef& def, const Binding& binding,
                                     const OperandView& x, const OperandView& y) {
  constexpr std::uint64_t kHalf = 0xFFFFFFFF;
  const std::int64_t units = def.reference.units(binding);
  for (std::int64_t element = 0; element < units; ++element) {
    std::uint64_t want = 0;
    for (const int shift : {0, 32}) {
      const auto half = [&](std::size_t, std::int64_t i) {
        return static_cast<double>(BitsOf(x, i) >> shift & kHalf);
      };
      double moved = 0;
      def.reference.compute(binding, half, element, 0, {&moved, 1});
      want |= static_cast<std::uint64_t>(moved) << shift;
    }
    if (want != BitsOf(y, element)) return Differs(element, want, BitsOf(y, element));
  }
  return std::nullopt;
}

template <typename To>
std::uint64_t CastTo(const OperandView& x, std::int64_t element) {
  using Limits = std::numeric_limits<To>;
  if (!IsLongInteger(DTypeOf(x))) {
    return static_cast<std::uint64_t>(
        IntegerFromDouble<To>(LoadAsDouble(DTypeOf(x), x.data[0], element)));
  }
  const std::uint64_t bits = BitsOf(x, element);
  const bool is_signed = DTypeOf(x) == DType::kI64;
  const __int128 value = is_signed ? __int128{static_cast<std::int64_t>(bits)} : __int128{bits};
  return static_cast<std::uint64_t>(std::clamp<__int128>(value, Limits::min(), Limits::max()));
}

std::optional<std::string> WrongCast(const OperandView& x, const OperandView& y) {
  for (std::int64_t element = 0; element < Elements(y.value->tensors[0].shape); ++element) {
    const std::uint64_t want = DTypeOf(y) == DType::kI64 ? CastTo<std::int64_t>(x, element)
                                                         : CastTo<std::uint64_t>(x, element);
    if (want != BitsOf(y, element)) return Differs(element, want, BitsOf(y, element));
  }
  return std::nullopt;
}

std::optional<std::string> WrongZero(const KernelDef& def, const Binding& binding,
                                     std::span<const OperandView> inputs, const OperandView& y) {
  std::vector<OperandElements> x;
  for (const OperandView& input : inputs) x.emplace_back(input, /*paged=*/false);
  const OperandElements results(y, /*paged=*/false);
  bool missing = false;
  const auto in = [&](std::size_t input, std::int64_t i) { return x[input].Load(i, &missing); };
  const std::int64_t units = def.reference.units(binding);
  for (std::int64_t element = 0; element < units; ++element) {
    const double got = results.Load(element, &missing);
    double want = got;
    if (got == 0) def.reference.compute(binding, in, element, 0, {&want, 1});
    if (want == 0 && std::signbit(want) != std::signbit(got)) {
      return absl::StrCat("the signs of element ", element, " differ: want ", want, ", got ", got);
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::uint64_t> LongIntegers() {
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 63;
  std::vector<std::uint64_t> all = {kEnd, kEnd + 1, kEnd - 1, ~std::uint64_t{0}};
  for (const std::uint64_t x :
       {(std::uint64_t{1} << 53) + 1, (std::uint64_t{1} << 53) - 1, (std::uint64_t{1} << 62) + 1,
        (std::uint64_t{1} << 62) + (std::uint64_t{1} << 38) + 1,
        (std::uint64_t{1} << 62) + (std::uint64_t{1} << 54) + 1}) {
    all.push_back(x);
    all.push_back(~x + 1);  // Of the other sign.
  }
  return all;
}

std::optional<std::string> WrongBits(const KernelDef& def, const Binding& binding,
                                     std::span<const OperandView> inputs,
                                     std::span<const OperandView> outputs) {
  const OperandView& y = outputs[0];
  if (y.value->tensors.empty()) return std::nullopt;
  if (Has(kMoves, binding)) return WrongMove(def, binding, inputs[0], y);
  if (!Has(kSignedZeros, binding)) return std::nullopt;
  if (IsFloat(DTypeOf(y))) return WrongZero(def, binding, inputs, y);
  return IsLongInteger(DTypeOf(y)) ? WrongCast(inputs[0], y) : std::nullopt;
}

}  // namespace gridclock
