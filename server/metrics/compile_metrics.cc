#include "server/metrics/compile_metrics.h"

#include <string>

#include "server/metrics/words.h"

namespace gridclock {

// What has not happened yet is 0, not missing.
CompileMetrics::CompileMetrics(Registry& registry) : registry_(registry) {
  for (const auto kind : {ModuleKind::kCuda, ModuleKind::kPtx, ModuleKind::kCubin}) {
    const std::string word(KindWord(kind));
    registry.TallyOf(Metric::kCompiles,
                     {word, std::string(CompileOutcomeWord(CompileOutcome::kOk))});
    registry.HistogramOf(Metric::kCompileDuration, {word});
  }
  for (const auto origin : {ModuleOrigin::kCompiled, ModuleOrigin::kMemory, ModuleOrigin::kDisk}) {
    registry.TallyOf(Metric::kModuleAnswers, {std::string(OriginWord(origin))});
  }
  registry.TallyOf(Metric::kCompilerRestarts, {});
}

void CompileMetrics::OnCompiled(ModuleKind kind, CompileOutcome outcome, absl::Duration took) {
  const std::string word(KindWord(kind));
  registry_.TallyOf(Metric::kCompiles, {word, std::string(CompileOutcomeWord(outcome))}).Add(1);
  registry_.HistogramOf(Metric::kCompileDuration, {word}).Observe(absl::ToDoubleSeconds(took));
}

void CompileMetrics::OnModule(ModuleOrigin origin) {
  registry_.TallyOf(Metric::kModuleAnswers, {std::string(OriginWord(origin))}).Add(1);
}

void CompileMetrics::OnCompilerLost() {
  registry_.TallyOf(Metric::kCompilerRestarts, {}).Add(1);
}

}  // namespace gridclock
