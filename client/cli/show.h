// Results for people.
#ifndef GRIDCLOCK_CLIENT_CLI_SHOW_H_
#define GRIDCLOCK_CLIENT_CLI_SHOW_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "client/cli/terminal.h"
#include "client/cpp/run.h"
#include "gridclock/v1/kernels.pb.h"
#include "proto/types/tensor.h"

namespace gridclock::cli {

bool Has(const v1::RunSummary& summary, v1::Flag flag);

// "NOISY, SUSPECT" in warning colours, or "". SHARING_UNKNOWN stands among them where a measurement
// cannot tell whether the device was shared, WARMUP_NOT_FLAT where times still moved when it began,
// CLOCK_MOVED where the clock did meanwhile.
std::string FlagsText(const v1::RunSummary& summary, const Terminal& terminal);
// Each value of one launch was verified, and its inputs were sent: the result of an earlier call
// may have been kept.
bool IsTimeAloneInDoubt(const v1::RunSummary& summary);
// It was to be verified, and its outputs have no value.
bool HasNothingToCompare(const v1::RunSummary& summary);
// The mismatches that are named, in their order.
std::string MismatchesText(const v1::Verification& v, absl::string_view between);
// "verified 1024 of 1024 values, largest error 0.1 of the tolerance", how far it was checked if not
// throughout, or what differs.
std::string VerificationText(const v1::RunSummary& summary, const Terminal& terminal);
// The same as a word: yes, partly, no, differs, forbidden; "" if nobody asked.
std::string VerifiedWord(const v1::RunSummary& summary);
// The phases of a call as bars over its time.
std::string PhasesText(const v1::RunSummary& summary, const Terminal& terminal);
// The interval of the median, "1.2 µs .. 1.3 µs"; "-" for an end that is not known.
std::string IntervalText(const v1::Statistics& statistics);
// The median, its interval and its flags, and how far it is from `before_ns`.
std::string TimeText(const v1::RunSummary& summary, std::optional<double> before_ns,
                     const Terminal& terminal);
// The few lines after `run`.
std::string SummaryText(const v1::RunSummary& summary, const Terminal& terminal);

// The values of a tensor as nested brackets, the middle of long ones left out.
std::string ValuesText(const TensorSpec& spec, std::span<const std::byte> bytes);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_SHOW_H_
