// The words that labels are made of: closed sets, never a client's text.
#ifndef GRIDCLOCK_SERVER_METRICS_WORDS_H_
#define GRIDCLOCK_SERVER_METRICS_WORDS_H_

#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/types/device.h"
#include "proto/types/measure.h"
#include "proto/types/module.h"
#include "server/core/compile_observer.h"
#include "server/core/observer.h"

namespace gridclock {

inline constexpr std::size_t kPhaseCount = static_cast<std::size_t>(PhaseKind::kOutputCopied);

absl::string_view FlagWord(Flag flag);  // "shared_device".
absl::string_view MethodWord(Method method);
absl::string_view StopWord(StopReason stop);   // "interval".
absl::string_view PhaseLabel(PhaseKind kind);  // "input_copied".
// Its times show what people do; they are not those of the kernel.
bool IsTeaching(Method method);
// Its times are what one launch takes, by the method of single launches, and may be true. Those of
// other methods are other quantities.
bool HasLatencies(const Outcome& outcome);
// Why a GPU's clock is not higher: all words of which there are series.
std::span<const absl::string_view> ClockReasonWords();
absl::string_view StateWord(WorkerState state);  // "ready".
absl::string_view OutcomeWord(const JobResult& result);
// All reasons of the contract (docs/errors.md), as they are sent.
std::span<const absl::string_view> Reasons();
// Of a refusal: its reason if that is a word of the contract, else its code. Lower case.
std::string RejectionWord(const absl::Status& status);
absl::string_view CompileOutcomeWord(CompileOutcome outcome);
absl::string_view KindWord(ModuleKind kind);
absl::string_view OriginWord(ModuleOrigin origin);
// What JobObserver::OnWorkerLost may say, else "other".
absl::string_view LossWord(absl::string_view reason);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_WORDS_H_
