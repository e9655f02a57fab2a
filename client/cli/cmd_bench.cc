// bench: measures a kernel, its variants or the methods, and shows a table.
#include <algorithm>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/devices.h"
#include "client/cli/format.h"
#include "client/cli/interrupt.h"
#include "client/cli/json.h"
#include "client/cli/measure_flags.h"
#include "client/cli/names.h"
#include "client/cli/progress.h"
#include "client/cli/show.h"
#include "client/cli/subject.h"
#include "client/cli/verify_flags.h"

namespace gridclock::cli {
namespace {

struct BenchOptions {
  CallFlags call;
  CodeFlags code;
  std::string variant, method = "isolated", l2 = "hot", budget, schedule;
  std::int64_t samples = 0, min_samples = 0;
  double interval = 0, confidence = 0;
  VerifyFlags verify;
  bool csv = false;
};

// One line of the table: a result, or why there is none.
struct Row {
  std::string variant, method;
  absl::Status status;
  v1::RunSummary summary;
  std::vector<double> cut_off;  // What came before the end of the server, the time or by Ctrl-C.
  bool has_numbers() const { return status.ok() || summary.timing().statistics().median_ns() > 0; }
};

// Of all methods some are for other devices: that they are refused is no failure.
bool IsExpected(const Row& row, const BenchOptions& options) {
  return row.status.ok() ||
         (options.method == "all" && DetailsOf(row.status).field == "measure.method");
}

void TellFailures(const Session& session, const BenchOptions& options,
                  const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (options.csv && !Passed(row.summary.verification())) {
      session.console.err << "gridclock: " << Escape(row.variant)
                          << (row.variant.empty() ? "" : " ") << row.method << ": "
                          << VerificationText(row.summary, Terminal{}) << "\n";
    }
    // Of a file of lines it is told why one of them is missing, whatever the reason.
    if (row.status.ok() || (IsExpected(row, options) && !options.csv)) continue;
    const bool has_line = (row.has_numbers() || !row.cut_off.empty()) && !options.csv;
    session.console.err << "gridclock: " << (has_line ? "" : "no line for ") << Escape(row.variant)
                        << (row.variant.empty() ? "" : " ") << row.method << ": "
                        << (has_line ? "ended too early: " : "") << Escape(row.status.message())
                        << "\n";
  }
}

// No other variant or method would fare better.
bool EndsAll(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kCancelled:
      return true;
    case absl::StatusCode::kDeadlineExceeded:
      return DetailsOf(status).reason.empty();  // The call's own, not a limit of the server.
    default:
      return false;
  }
}

absl::StatusOr<MeasureOptions> Measure(const BenchOptions& options) {
  MeasureOptions out;
  GC_ASSIGN_OR_RETURN(out.l2, ParseL2(options.l2));
  out.max_samples = options.samples;
  out.min_samples = options.min_samples;
  if (out.max_samples > 0 && out.min_samples > out.max_samples) {
    return absl::InvalidArgumentError(absl::StrCat("--min-samples: want at most --samples, ",
                                                   out.max_samples, ", got ", out.min_samples));
  }
  if (options.interval > 0) out.relative_interval = options.interval;
  if (options.confidence > 0) out.confidence = options.confidence;
  if (!options.budget.empty()) {
    const auto budget = ParseSeconds(options.budget);
    if (!budget.ok()) return Annotate(budget.status(), "--budget");
    out.budget = *budget;
  }
  if (!options.schedule.empty()) {
    GC_ASSIGN_OR_RETURN(out.schedule, ParseSchedule(options.schedule));
  }
  const absl::Status valid = Validate(out);
  if (valid.ok()) return out;
  return absl::InvalidArgumentError(absl::StrReplaceAll(
      valid.message(),
      {{"measure.budget_seconds", "--budget, in seconds"}, {"measure.schedule.", "--schedule: "}}));
}

absl::StatusOr<std::vector<Method>> Methods(const BenchOptions& options) {
  if (options.method == "all") return AllMethods();
  GC_ASSIGN_OR_RETURN(const Method method, ParseMethod(options.method));
  return std::vector<Method>{method};
}

// Those that are asked for; of all, the variants for the device that the server would take.
absl::StatusOr<std::vector<std::string>> Variants(const Client& client, const KernelSpec& spec,
                                                  const BenchOptions& options, RunCall* call) {
  if (options.variant != "all") {
    return std::vector{options.variant.empty() ? call->variant : options.variant};
  }
  GC_ASSIGN_OR_RETURN(const std::vector<v1::Device> devices, client.ListDevices());
  const std::string kind = KindFor(spec, devices, call->device);
  if (kind.empty()) {
    return absl::NotFoundError(absl::StrCat("no variant of '", spec.name, "' for device '",
                                            call->device, "'; see gridclock devices and ",
                                            "gridclock describe ", spec.name));
  }
  if (call->device.empty())
    call->device = kind;  // A variant of the same name elsewhere is another.
  std::vector<std::string> out;
  for (const VariantSpec& variant : spec.variants) {
    if (variant.device_kind == kind) out.push_back(variant.name);
  }
  return out;
}

Row MeasureOne(const Client& client, const Session& session, const Interrupt& interrupt,
               const std::string& kernel, const RunCall& call) {
  const std::string title = absl::StrCat(kernel, call.variant.empty() ? "" : ".", call.variant);
  ProgressLine line(session.console);
  const bool live = session.console.terminal.live && !session.options.json;
  RunEvents events = live ? MeasureEvents(line, title) : RunEvents{};
  if (!live) {
    events.retry = [&line, &title](const absl::Status& failure, absl::Duration) {
      line.Waits(title, failure);
    };
  }
  std::vector<double> samples;
  KeepSamples(&samples, &events);
  std::string chosen;
  events.accepted = [&chosen, then = std::move(events.accepted)](const v1::Accepted& accepted) {
    chosen = accepted.variant();
    then(accepted);
  };
  auto result = RunUntil(interrupt, client, call, std::move(events));
  Row row{call.variant,
          NameOf(static_cast<v1::Method>(call.measure->method)),
          WithConversion(result.status(), call),
          {},
          {}};
  if (!result.ok() && DetailsOf(result.status()).field == "measure.method") {
    row.status =
        WithDetails(absl::Status(result.status().code(), WithOurNames(result.status().message())),
                    DetailsOf(result.status()));
  }
  if (result.ok()) {
    row.summary = std::move(result->summary);
  } else if (const auto before_error = PartialSummary(result.status()); before_error.has_value()) {
    row.summary = *before_error;
  } else {
    if (!chosen.empty()) row.variant = chosen;
    if (EndsAll(row.status)) row.cut_off = std::move(samples);
    return row;
  }
  if (row.summary.has_timing() && row.summary.timing().samples_ns().empty()) {
    row.summary.mutable_timing()->mutable_samples_ns()->Add(samples.begin(), samples.end());
  }
  row.variant = row.summary.variant();
  return row;
}

std::vector<std::string> Cells(const Row& row, const Terminal& terminal) {
  const v1::Timing& t = row.summary.timing();
  const v1::Statistics& s = t.statistics();
  return {Escape(row.variant),
          row.method,
          absl::StrCat(t.samples_ns_size()),
          FormatNs(s.median_ns()),
          FormatNs(s.min_ns()),
          FormatNs(s.q1_ns()),
          FormatNs(s.q3_ns()),
          IntervalText(s),
          FormatRate(t.bytes_per_second(), "B/s"),
          FormatRate(t.flops_per_second(), "FLOP/s"),
          FormatPercent(t.roofline_fraction()),
          FlagsText(row.summary, terminal)};
}

std::string InputsText(const RunCall& call) {
  constexpr std::size_t kShown = 3;  // Of a list.
  std::string out;
  for (const CallInput& input : call.inputs) {
    const std::vector<TensorSpec>& tensors = input.value.tensors;
    for (std::size_t i = 0; i < std::min(kShown, tensors.size()); ++i) {
      absl::StrAppend(&out, out.empty() ? "" : ", ", input.name, ": ", ToText(tensors[i]));
    }
    if (tensors.size() > kShown) {
      absl::StrAppend(&out, " and ", tensors.size() - kShown, " more");
    }
  }
  return out;
}

int WidestLine(const std::string& text) {
  std::size_t widest = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    widest = std::max(widest, Width(line));
  }
  return static_cast<int>(widest);
}

std::string SubjectText(const Row& row) {
  return absl::StrCat(Escape(row.variant), row.variant.empty() ? "" : " ", row.method);
}

// What ended one that is NOISY, and what would make it less so.
std::string StopText(const Row& row) {
  const std::string ended =
      absl::StrCat(SubjectText(row), ": NOISY, ended by ", NameOf(row.summary.timing().stop()));
  if (Has(row.summary, v1::THROTTLED)) {
    return absl::StrCat(ended, ": the device was throttled, and its clock may have moved\n");
  }
  switch (row.summary.timing().stop()) {
    case v1::Timing::MAX_SAMPLES:
      return absl::StrCat(ended,
                          ": --samples is used up; a longer --budget would change nothing\n");
    case v1::Timing::BUDGET:
      return absl::StrCat(ended, ": --budget is used up; more --samples would change nothing\n");
    default:
      return absl::StrCat(ended, "\n");
  }
}

// How little it says that two methods agree, of short launches of several kernels or copies.
std::string SlackText(const Row& row) {
  constexpr double kWorthALine = 0.1;
  const v1::Timing& t = row.summary.timing();
  if (t.second_slack_ns() <= kWorthALine * t.statistics().median_ns()) return "";
  return absl::StrCat(SubjectText(row), ": ", NameOf(t.second_method()),
                      " was held against it within ", FormatNs(t.second_slack_ns()),
                      " more than usual, for the gaps between its kernels and copies\n");
}

// It is no measurement: the rest of its samples could be anything.
std::string CutOffText(const Row& row, const Terminal& terminal) {
  std::vector<double> sorted = row.cut_off;
  std::sort(sorted.begin(), sorted.end());
  const double median = (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
  return absl::StrCat(SubjectText(row), ": ", Paint(terminal, Ink::kYellow, "CUT OFF"), " after ",
                      sorted.size(), " samples of ", FormatNs(sorted.front()), " to ",
                      FormatNs(sorted.back()), ", median so far ", FormatNs(median),
                      ": no measurement\n");
}

void ShowTable(const Session& session, const std::string& kernel, const RunCall& call,
               const std::vector<Row>& rows) {
  const Terminal& terminal = session.console.terminal;
  std::ostream& out = session.console.out;
  const auto good =
      std::find_if(rows.begin(), rows.end(), [](const Row& r) { return r.has_numbers(); });
  out << Paint(terminal, Ink::kBold, kernel) << "  " << InputsText(call);
  if (good != rows.end()) {
    out << "  on " << Escape(good->summary.device()) << ", cache "
        << NameOf(good->summary.timing().l2());
  }
  out << "\n";
  Table table({"variant", "method", "samples", "median", "min", "quartile 1", "quartile 3",
               "interval of the median", "bytes", "flops", "roofline", "flags"});
  for (const Row& row : rows) {
    if (row.has_numbers()) table.Add(Cells(row, terminal));
  }
  if (terminal.out_width > 0 && WidestLine(table.ToText()) > terminal.out_width) {
    for (const char* heading : {"quartile 1", "quartile 3"}) table.Drop(heading);
  }
  if (good != rows.end()) out << table.ToText();
  for (const Row& row : rows) {
    if (!row.cut_off.empty()) out << CutOffText(row, terminal);
    if (row.has_numbers() && Has(row.summary, v1::NOISY)) out << StopText(row);
    if (row.has_numbers()) out << SlackText(row);
    if (row.status.ok() && row.summary.has_verification()) {
      out << Escape(row.variant) << " " << VerificationText(row.summary, terminal) << "\n";
    }
  }
}

void ShowJson(const Session& session, const std::string& kernel, const RunCall& call,
              const std::vector<Row>& rows) {
  Json out = {{"kernel", kernel}, {"inputs", Json::array()}, {"results", Json::array()}};
  for (const CallInput& input : call.inputs) {
    Json tensors = Json::array();
    for (const TensorSpec& tensor : input.value.tensors) tensors.push_back(ToText(tensor));
    out["inputs"].push_back({{"name", input.name}, {"tensors", tensors}});
  }
  for (const Row& row : rows) {
    Json one = row.has_numbers() ? ToJson(row.summary, /*with_samples=*/true) : Json::object();
    if (!row.status.ok()) {
      one.update(ToJson(row.status));
      one.update({{"variant", row.variant}, {"method", row.method}});
      if (!row.cut_off.empty()) one["cut_off_samples_ns"] = row.cut_off;
    }
    out["results"].push_back(std::move(one));
  }
  session.console.out << Dump(out) << "\n";
}

// A server's word as a field of a line, in quotes where RFC 4180 wants them.
std::string CsvText(absl::string_view text) {
  std::string field = Escape(text);
  if (!absl::StrContains(field, ',') && !absl::StrContains(field, '"')) return field;
  return absl::StrCat("\"", absl::StrReplaceAll(field, {{"\"", "\"\""}}), "\"");
}

void ShowCsv(const Session& session, const std::vector<Row>& rows) {
  std::ostream& out = session.console.out;
  out << "kernel,variant,device,method,l2,stop,samples,median_ns,min_ns,max_ns,q1_ns,q3_ns,"
         "ci_low_ns,ci_high_ns,bytes_per_second,flops_per_second,roofline_fraction,flags,"
         "verified\n";
  for (const Row& row : rows) {
    if (!row.status.ok()) continue;
    const v1::Timing& t = row.summary.timing();
    const v1::Statistics& s = t.statistics();
    out << CsvText(row.summary.kernel()) << "," << CsvText(row.variant) << ","
        << CsvText(row.summary.device()) << "," << row.method << "," << NameOf(t.l2()) << ","
        << NameOf(t.stop()) << "," << t.samples_ns_size();
    for (const double value : {s.median_ns(), s.min_ns(), s.max_ns(), s.q1_ns(), s.q3_ns()}) {
      out << "," << absl::StrFormat("%.17g", value);
    }
    out << "," << (s.has_ci_low_ns() ? absl::StrFormat("%.17g", s.ci_low_ns()) : "") << ","
        << (s.has_ci_high_ns() ? absl::StrFormat("%.17g", s.ci_high_ns()) : "");
    for (const double value : {t.bytes_per_second(), t.flops_per_second(), t.roofline_fraction()}) {
      out << "," << (value > 0 ? absl::StrFormat("%.17g", value) : "");  // Empty: not known.
    }
    out << "," << absl::StrReplaceAll(FlagsText(row.summary, Terminal{}), {{", ", " "}}) << ","
        << VerifiedWord(row.summary) << "\n";
  }
}

// What is measured, and how.
struct Plan {
  MeasureOptions measure;
  std::vector<Method> methods;
  std::vector<std::string> variants;
};

absl::StatusOr<Plan> PlanOf(const BenchOptions& options, const Client& client,
                            const KernelSpec& spec, RunCall* call) {
  const auto measure = Measure(options);
  const auto methods = Methods(options);
  if (!measure.ok()) return UsageError(measure.status().message());
  if (!methods.ok()) return UsageError(methods.status().message());
  GC_ASSIGN_OR_RETURN(std::vector<std::string> variants, Variants(client, spec, options, call));
  return Plan{*measure, *methods, std::move(variants)};
}

// Up to what ends all: what was measured before is not lost.
std::vector<Row> MeasureAll(const Session& session, const Interrupt& interrupt,
                            const Client& client, const KernelSpec& spec, const Plan& plan,
                            RunCall* call) {
  std::vector<Row> rows;
  for (const std::string& variant : plan.variants) {
    for (const Method method : plan.methods) {
      call->variant = variant;
      call->measure = plan.measure;
      call->measure->method = method;
      rows.push_back(MeasureOne(client, session, interrupt, spec.name, *call));
      if (EndsAll(rows.back().status)) return rows;
    }
  }
  return rows;
}

int CodeOf(const Session& session, const std::vector<Row>& rows, const BenchOptions& options) {
  int code = kOk;  // The largest says most.
  for (const Row& row : rows) {
    code = std::max<int>(code, row.status.ok() ? VerifiedCode(session, options.verify, row.summary)
                               : IsExpected(row, options) ? kOk
                                                          : kFailed);
  }
  return code;
}

void Show(const Session& session, const BenchOptions& options, const std::string& kernel,
          const RunCall& call, const std::vector<Row>& rows) {
  if (session.options.json) {
    ShowJson(session, kernel, call, rows);
  } else if (options.csv) {
    ShowCsv(session, rows);
  } else {
    ShowTable(session, kernel, call, rows);
  }
}

// Of several, some may fail; where all do, the failure is the answer, behind what a table can show
// of one that was cut off.
int Answer(const Session& session, const BenchOptions& options, const std::string& kernel,
           const RunCall& call, const std::vector<Row>& rows) {
  const bool any =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.has_numbers(); });
  const Row& why = EndsAll(rows.back().status) ? rows.back() : rows[0];
  const bool unreachable = IsUnreachable(why.status);
  const bool shows_cut_off =
      !why.cut_off.empty() && !options.csv && !(unreachable && session.options.json);
  if (any || shows_cut_off) Show(session, options, kernel, call, rows);
  if (!any && (unreachable || !shows_cut_off)) return Report(session, why.status);
  TellFailures(session, options, rows);
  return CodeOf(session, rows, options);
}

absl::StatusOr<int> Bench(const Session& session, const BenchOptions& options) {
  if (options.csv && session.options.json) return UsageError("--csv and --json: want one of them");
  GC_RETURN_IF_ERROR(CheckOneVariant(options.call.kernel, options.variant));
  GC_RETURN_IF_ERROR(CheckVerifyFlags(options.verify));
  GC_ASSIGN_OR_RETURN(const auto client, session.Connect());
  GC_ASSIGN_OR_RETURN(const Subject subject, FindSubject(session, *client, options.call.kernel,
                                                         options.code, TensorWords(options.call)));
  const KernelSpec& spec = subject.spec;
  CallFlags flags = options.call;
  flags.words = subject.Renamed(flags.words);
  GC_ASSIGN_OR_RETURN(MadeCall made, MakeCall(spec, flags, std::nullopt));
  RunCall& call = made.call;
  subject.NameIn(&call);
  GC_ASSIGN_OR_RETURN(call.timeout, session.Timeout());
  GC_ASSIGN_OR_RETURN(const Inputs expected,
                      AddVerification(session, *client, subject, options.verify, &call));
  DiscardOutputs(spec, &call);
  GC_ASSIGN_OR_RETURN(const Plan plan, PlanOf(options, *client, spec, &call));
  const Interrupt interrupt;
  const std::vector<Row> rows = MeasureAll(session, interrupt, *client, spec, plan, &call);
  const int code = Answer(session, options, spec.name, call, rows);
  return interrupt.came() ? kInterrupted : code;
}

}  // namespace

CommandEntry AddBench(CLI::App& program) {
  auto* app = program.add_subcommand("bench");
  const auto options = std::make_shared<BenchOptions>();
  AddCallFlags(*app, &options->call);
  app->add_option("--variant", options->variant);
  app->add_option("--method", options->method);
  app->add_option("--l2", options->l2);
  auto* schedule = app->add_option("--schedule", options->schedule);
  app->add_option("--budget", options->budget)->excludes(schedule);
  app->add_option("--samples", options->samples)
      ->check(CLI::Range(1, 1'000'000))
      ->excludes(schedule);
  app->add_option("--min-samples", options->min_samples)
      ->check(CLI::Range(1, 1'000'000))
      ->excludes(schedule);
  app->add_option("--interval", options->interval)->check(Between(1e-6, 1.0))->excludes(schedule);
  app->add_option("--confidence", options->confidence)->check(Between(0.5, 0.999));
  AddVerifyFlags(*app, &options->verify);
  app->add_flag("--csv", options->csv);
  AddCodeFlags(*app, &options->code);
  return {app, [options](const Session& session) { return Bench(session, *options); }};
}

}  // namespace gridclock::cli
