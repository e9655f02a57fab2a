#include "server/metrics/process.h"

#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace gridclock {
namespace {

std::string ReadAll(const char* path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Fields of /proc/PID/stat as proc(5) numbers them, of those after the name.
enum Field {
  kUserTicks = 14,
  kSystemTicks = 15,
  kThreads = 20,
  kStartTicks = 22,
  kVirtual = 23,
  kResidentPages = 24
};
constexpr int kFirstAfterName = 3;

absl::StatusOr<double> Number(const std::vector<absl::string_view>& fields, Field field) {
  const std::size_t index = field - kFirstAfterName;
  double value = 0;
  if (index < fields.size() && absl::SimpleAtod(fields[index], &value)) return value;
  return absl::DataLossError(
      absl::StrCat("/proc/self/stat: field ", static_cast<int>(field), " is missing or no number"));
}

absl::StatusOr<double> BootTime(absl::string_view stat) {
  for (absl::string_view line : absl::StrSplit(stat, '\n')) {
    double value = 0;
    if (absl::ConsumePrefix(&line, "btime ") && absl::SimpleAtod(line, &value)) return value;
  }
  return absl::DataLossError("/proc/stat: no line 'btime'");
}

// Without the descriptor that counting them needs.
double OpenFds() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), &closedir);
  if (!folder) return -1;
  int count = 0;
  while (const dirent* entry = readdir(folder.get())) count += entry->d_name[0] != '.';
  return count - 1;
}

void CollectDescriptors(ScrapeValues& values) {
  if (const double open = OpenFds(); open >= 0) values.Set(Metric::kProcessOpenFds, {}, open);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  values.Set(Metric::kProcessMaxFds, {}, static_cast<double>(limit.rlim_cur));
}

}  // namespace

absl::StatusOr<ProcessFacts> ParseProcessFacts(absl::string_view self_stat, absl::string_view stat,
                                               double ticks_per_second, double page_bytes) {
  // The name is in brackets and may itself hold brackets and blanks.
  const std::size_t name_end = self_stat.rfind(") ");
  if (name_end == absl::string_view::npos) {
    return absl::DataLossError("/proc/self/stat: no name in brackets");
  }
  const std::vector<absl::string_view> fields =
      absl::StrSplit(self_stat.substr(name_end + 2), absl::ByAnyChar(" \n"));
  ProcessFacts facts;
  GC_ASSIGN_OR_RETURN(const double user, Number(fields, kUserTicks));
  GC_ASSIGN_OR_RETURN(const double system, Number(fields, kSystemTicks));
  GC_ASSIGN_OR_RETURN(facts.threads, Number(fields, kThreads));
  GC_ASSIGN_OR_RETURN(const double start, Number(fields, kStartTicks));
  GC_ASSIGN_OR_RETURN(facts.virtual_bytes, Number(fields, kVirtual));
  GC_ASSIGN_OR_RETURN(const double pages, Number(fields, kResidentPages));
  GC_ASSIGN_OR_RETURN(const double boot, BootTime(stat));
  facts.cpu_seconds = (user + system) / ticks_per_second;
  facts.start_unix_seconds = boot + start / ticks_per_second;
  facts.resident_bytes = pages * page_bytes;
  return facts;
}

void CollectProcess(ScrapeValues& values) {
  CollectDescriptors(values);
  const absl::StatusOr<ProcessFacts> facts = ParseProcessFacts(
      ReadAll("/proc/self/stat"), ReadAll("/proc/stat"), static_cast<double>(sysconf(_SC_CLK_TCK)),
      static_cast<double>(sysconf(_SC_PAGESIZE)));
  if (!facts.ok()) return;
  values.Set(Metric::kProcessCpu, {}, facts->cpu_seconds);
  values.Set(Metric::kProcessStart, {}, facts->start_unix_seconds);
  values.Set(Metric::kProcessResident, {}, facts->resident_bytes);
  values.Set(Metric::kProcessVirtual, {}, facts->virtual_bytes);
  values.Set(Metric::kProcessThreads, {}, facts->threads);
}

}  // namespace gridclock
