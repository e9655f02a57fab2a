#include "proto/types/trace.h"

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"

namespace gridclock {
namespace {

// Capitals are invalid here.
std::optional<std::uint64_t> FromHex(absl::string_view digits) {
  std::uint64_t value = 0;
  for (const char c : digits) {
    const bool decimal = c >= '0' && c <= '9';
    if (!decimal && (c < 'a' || c > 'f')) return std::nullopt;
    value = value << 4 | static_cast<std::uint64_t>(decimal ? c - '0' : c - 'a' + 10);
  }
  return value;
}

std::string Hex(std::uint64_t value) {
  return absl::StrCat(absl::Hex(value, absl::kZeroPad16));
}

std::uint64_t NotZero(absl::BitGenRef random) {
  return absl::Uniform<std::uint64_t>(absl::IntervalClosed, random, 1, UINT64_MAX);
}

}  // namespace

std::optional<TraceContext> ParseTraceParent(absl::string_view text) {
  constexpr std::size_t kSize = 55;
  constexpr std::uint64_t kInvalidVersion = 0xff;
  if (text.size() < kSize || text[2] != '-' || text[35] != '-' || text[52] != '-') {
    return std::nullopt;
  }
  const auto version = FromHex(text.substr(0, 2));
  if (!version || *version == kInvalidVersion) return std::nullopt;
  if (text.size() > kSize && (*version == 0 || text[kSize] != '-')) return std::nullopt;
  const auto high = FromHex(text.substr(3, 16)), low = FromHex(text.substr(19, 16));
  const auto span = FromHex(text.substr(36, 16)), flags = FromHex(text.substr(53, 2));
  if (!high || !low || !span || !flags || (*high | *low) == 0 || *span == 0) return std::nullopt;
  return TraceContext{.trace_high = *high,
                      .trace_low = *low,
                      .span = *span,
                      .flags = static_cast<std::uint8_t>(*flags)};
}

std::string TraceParent(const TraceContext& trace) {
  return absl::StrCat("00-", Hex(trace.trace_high), Hex(trace.trace_low), "-", Hex(trace.span), "-",
                      absl::Hex(trace.flags, absl::kZeroPad2));
}

std::string TraceId(const TraceContext& trace) {
  if ((trace.trace_high | trace.trace_low) == 0) return "";
  return absl::StrCat(Hex(trace.trace_high), Hex(trace.trace_low));
}

TraceContext ContinueTrace(const std::optional<TraceContext>& caller, absl::BitGenRef random) {
  // Of the flags level 1 knows the first alone; others must not be passed on.
  constexpr std::uint8_t kSampled = 1;
  TraceContext own = caller.value_or(TraceContext());
  own.flags &= kSampled;
  own.span = NotZero(random);
  if (caller) return own;
  own.trace_high = NotZero(random);
  own.trace_low = NotZero(random);
  return own;
}

}  // namespace gridclock
