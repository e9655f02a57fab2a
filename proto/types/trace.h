// Which trace a call belongs to, as W3C Trace Context (level 1, section 3.2) writes it:
// "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" (version, trace, span, flags).
#ifndef GRIDCLOCK_PROTO_TYPES_TRACE_H_
#define GRIDCLOCK_PROTO_TYPES_TRACE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/random/bit_gen_ref.h"
#include "absl/strings/string_view.h"

namespace gridclock {

struct TraceContext {
  std::uint64_t trace_high = 0, trace_low = 0;
  std::uint64_t span = 0;
  std::uint8_t flags = 0;  // Bit 0: the caller may have recorded it.

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

// Nullopt for what the recommendation calls invalid: it is then as if there were none. Of a version
// that is not 00 what follows the flags is not read.
std::optional<TraceContext> ParseTraceParent(absl::string_view text);
// Always of version 00: hexadecimal digits and dashes.
std::string TraceParent(const TraceContext& trace);
// The trace's id alone, 32 digits; empty if there is no trace.
std::string TraceId(const TraceContext& trace);

// What this server is within the trace of its caller; a trace of its own if there is no caller's.
TraceContext ContinueTrace(const std::optional<TraceContext>& caller, absl::BitGenRef random);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_TRACE_H_
