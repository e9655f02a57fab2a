#include "proto/types/attribute.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "proto/types/binding.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

using Type = AttributeSpec::Type;

absl::Status Wrong(const AttributeSpec& spec, absl::string_view got) {
  return WithField(absl::InvalidArgumentError(absl::StrCat("attribute '", spec.name, "': want ",
                                                           WantOf(spec), ", got ", got)),
                   absl::StrCat("attributes.", spec.name));
}

std::string GotText(const AttributeValue& value) {
  const auto* word = std::get_if<std::string>(&value);
  return word != nullptr ? Quote(*word) : ToText(value);
}

std::size_t IndexOf(Type type) {
  switch (type) {
    case Type::kI64:
      return 0;
    case Type::kF64:
      return 1;
    case Type::kBool:
      return 2;
    case Type::kDType:
      return 3;
    case Type::kEnum:
      break;
  }
  return 4;
}

void WidenWhole(AttributeValue& value) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  if (whole != nullptr && *whole >= -kExact && *whole <= kExact) {
    value = static_cast<double>(*whole);
  }
}

template <typename T>
bool Within(T value, T low, T high, const AttributeSpec::Range& range) {
  const bool above = range.low_open ? value > low : value >= low;
  return above && (range.high_open ? value < high : value <= high);
}

bool InRange(const AttributeSpec::Range& range, const AttributeValue& value) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  if (whole == nullptr) return Within(std::get<double>(value), range.low, range.high, range);
  // An infinite bound is open or closed alike: no whole number reaches it.
  AttributeSpec::Range exact = range;
  if (std::isinf(range.low)) exact.low_open = false;
  if (std::isinf(range.high)) exact.high_open = false;
  return Within(*whole, range.low_int, range.high_int, exact);
}

bool Holds(const std::vector<std::string>& words, const AttributeValue& value) {
  return std::find(words.begin(), words.end(), std::get<std::string>(value)) != words.end();
}

bool Fits(const AttributeSpec& spec, const AttributeValue& value) {
  if (value.index() != IndexOf(spec.type)) return false;
  if (spec.type == Type::kF64 && !std::isfinite(std::get<double>(value))) return false;
  if (spec.type == Type::kEnum && !Holds(spec.words, value)) return false;
  if (spec.range && (spec.type == Type::kI64 || spec.type == Type::kF64) &&
      !InRange(*spec.range, value)) {
    return false;
  }
  return spec.allowed.empty() ||
         std::find(spec.allowed.begin(), spec.allowed.end(), value) != spec.allowed.end();
}

std::optional<AttributeValue> ReadAs(Type type, absl::string_view text) {
  std::int64_t whole = 0;
  double number = 0;
  switch (type) {
    case Type::kI64:
      return absl::SimpleAtoi(text, &whole) ? std::optional<AttributeValue>(whole) : std::nullopt;
    case Type::kF64:
      return absl::SimpleAtod(text, &number) ? std::optional<AttributeValue>(number) : std::nullopt;
    case Type::kBool:
      if (text == "true" || text == "1") return true;
      if (text == "false" || text == "0") return false;
      return std::nullopt;
    case Type::kDType:
      if (const auto dtype = ParseDType(text)) return *dtype;
      return std::nullopt;
    case Type::kEnum:
      break;
  }
  return std::string(text);
}

}  // namespace

std::string WantOf(const AttributeSpec& spec) {
  if (spec.type == Type::kEnum && spec.allowed.empty()) {
    return absl::StrCat("one of {", absl::StrJoin(spec.words, ", "), "}");
  }
  AttributeSpec bare = spec;
  bare.default_value.reset();
  bare.name.clear();
  const std::string text = ToText(bare);  // ": f64 in (0, 1]"
  return absl::StrCat(
      spec.type == Type::kF64 && !spec.range && spec.allowed.empty() ? "a finite " : "",
      text.substr(2));
}

absl::Status CheckAttribute(const AttributeSpec& spec, AttributeValue& value) {
  if (spec.type == Type::kF64) WidenWhole(value);
  if (Fits(spec, value)) return absl::OkStatus();
  return Wrong(spec, GotText(value));
}

absl::StatusOr<AttributeValue> ParseAttributeValue(const AttributeSpec& spec,
                                                   absl::string_view text) {
  std::optional<AttributeValue> value = ReadAs(spec.type, text);
  if (!value) return Wrong(spec, Quote(text));
  GC_RETURN_IF_ERROR(CheckAttribute(spec, *value));
  return *std::move(value);
}

}  // namespace gridclock
