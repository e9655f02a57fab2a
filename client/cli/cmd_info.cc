// list, describe, devices, ping, wait.
#include <algorithm>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/devices.h"
#include "client/cli/format.h"
#include "client/cli/inputs.h"
#include "client/cli/json.h"
#include "client/cli/names.h"
#include "proto/types/near_names.h"
#include "proto/types/spec_facts.h"

namespace gridclock::cli {
namespace {

absl::StatusOr<int> List(const Session& session, bool all) {
  GC_ASSIGN_OR_RETURN(const auto client, session.Connect());
  GC_ASSIGN_OR_RETURN(const std::vector<KernelSpec> specs, client->ListKernels(all));
  if (session.options.json) {
    Json out = Json::array();
    for (const KernelSpec& spec : specs) out.push_back(ToJson(spec));
    session.console.out << Dump(out) << "\n";
    return kOk;
  }
  GC_ASSIGN_OR_RETURN(const std::vector<v1::Device> devices, client->ListDevices());
  const std::vector<std::string> kinds = KindsOf(devices);
  Table table({"kernel", "what it does", "variants"});
  for (const KernelSpec& spec : specs) {
    table.Add({Escape(spec.name), Escape(spec.summary), Escape(VariantsText(spec, kinds))});
  }
  session.console.out << table.ToText();
  return kOk;
}

void Line(const Session& session, absl::string_view label, const std::string& text) {
  session.console.out << Paint(session.console.terminal, Ink::kDim,
                               absl::StrFormat("%-10s", std::string(label)))
                      << Escape(text) << "\n";
}

void ShowFacts(const Session& session, const KernelSpec& spec) {
  absl::string_view before;
  for (const SpecFact& fact : FactsOf(spec)) {
    Line(session, fact.label == before ? "" : fact.label, fact.text);
    before = fact.label;
  }
}

// With the variants for the devices of the server, those of one kind together: two kinds may have
// one of the same name.
void ShowSpec(const Session& session, const KernelSpec& spec,
              const std::vector<std::string>& kinds) {
  session.console.out << Paint(session.console.terminal, Ink::kBold, Escape(spec.name)) << "  "
                      << Escape(spec.summary) << "\n\n";
  ShowFacts(session, spec);
  session.console.out << "\n";
  const std::string memory = "memory beside";
  Table table({"variant", "device", "what it does", "takes", memory});
  bool any_scratch = false;
  for (const std::string& kind : kinds) {
    for (const VariantSpec& variant : spec.variants) {
      if (variant.device_kind != kind) continue;
      table.Add({Escape(variant.name), Escape(kind), Escape(variant.summary),
                 Escape(TakesText(variant)), Escape(ScratchText(variant))});
      any_scratch = any_scratch || !variant.clauses.scratch.empty();
    }
  }
  if (!any_scratch) table.Drop(memory);
  session.console.out
      << table.ToText()
      << "\nWithout a name the last variant of the device that takes the call runs.\n";
}

void AddKind(const std::string& kind, std::vector<std::string>* kinds) {
  if (std::find(kinds->begin(), kinds->end(), kind) == kinds->end()) kinds->push_back(kind);
}

// Of "gelu.naive" that variant alone.
absl::Status KeepVariant(const std::string& variant, KernelSpec* spec) {
  if (variant.empty()) return absl::OkStatus();
  std::vector<std::string> kinds;
  std::vector<absl::string_view> names;
  for (const VariantSpec& v : spec->variants) {
    names.push_back(v.name);
    AddKind(v.device_kind, &kinds);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::string near = NearestNames(variant, names);
  const std::string there = VariantsText(*spec, kinds);
  std::erase_if(spec->variants, [&](const VariantSpec& v) { return v.name != variant; });
  if (!spec->variants.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      "'", spec->name, "' has no variant '", variant, "'; ",
      near.empty() ? "" : absl::StrCat("the nearest are ", near, "; "), "it has ", there));
}

absl::StatusOr<int> Describe(const Session& session, const std::string& text) {
  const KernelName name = ParseKernelName(text);
  GC_ASSIGN_OR_RETURN(const auto client, session.Connect());
  GC_ASSIGN_OR_RETURN(KernelSpec spec, client->GetKernel(name.kernel));
  GC_RETURN_IF_ERROR(KeepVariant(name.variant, &spec));
  if (session.options.json) {
    session.console.out << Dump(ToJson(spec)) << "\n";
    return kOk;
  }
  GC_ASSIGN_OR_RETURN(const std::vector<v1::Device> devices, client->ListDevices());
  std::vector<std::string> kinds = KindsOf(devices);
  if (!name.variant.empty()) AddKind(spec.variants[0].device_kind, &kinds);
  ShowSpec(session, spec, kinds);
  return kOk;
}

absl::StatusOr<int> Devices(const Session& session) {
  GC_ASSIGN_OR_RETURN(const auto client, session.Connect());
  GC_ASSIGN_OR_RETURN(const std::vector<v1::Device> devices, client->ListDevices());
  if (session.options.json) {
    Json out = Json::array();
    for (const v1::Device& device : devices) out.push_back(ToJson(device));
    session.console.out << Dump(out) << "\n";
    return kOk;
  }
  session.console.out << DevicesText(devices);
  return kOk;
}

absl::StatusOr<int> Ping(const Session& session, int count) {
  GC_ASSIGN_OR_RETURN(const auto client, session.Connect());
  std::vector<double> ns;
  for (int i = 0; i <= count; ++i) {
    GC_ASSIGN_OR_RETURN(const absl::Duration trip, client->Ping());
    if (i > 0) ns.push_back(absl::ToDoubleNanoseconds(trip));  // The first connects.
  }
  std::sort(ns.begin(), ns.end());
  const double median = (ns[(ns.size() - 1) / 2] + ns[ns.size() / 2]) / 2;
  if (session.options.json) {
    session.console.out << Dump({{"round_trips", ns.size()},
                                 {"median_ns", median},
                                 {"min_ns", ns.front()},
                                 {"max_ns", ns.back()}})
                        << "\n";
  } else {
    session.console.out << ns.size() << " round trips to " << Escape(session.options.server)
                        << ": median " << FormatNs(median) << ", min " << FormatNs(ns.front())
                        << ", max " << FormatNs(ns.back()) << "\n";
  }
  return kOk;
}

// Asks until the server is ready. What cannot get better by waiting ends it at once.
absl::StatusOr<int> Wait(const Session& session) {
  GC_ASSIGN_OR_RETURN(const absl::Duration timeout, session.Timeout());
  const absl::Time start = absl::Now();
  const absl::Time end =
      start + (timeout == absl::InfiniteDuration() ? absl::Seconds(60) : timeout);
  GC_ASSIGN_OR_RETURN(const auto client, session.Connect());
  absl::Status last = absl::UnavailableError("no answer");
  do {
    const absl::Status status = client->CheckHealth(
        "", std::clamp(end - absl::Now(), absl::Milliseconds(100), absl::Seconds(1)));
    if (status.ok()) {
      const std::string took = FormatNs(absl::ToDoubleNanoseconds(absl::Now() - start));
      if (!session.options.json) session.console.out << "ready after " << took << "\n";
      if (session.options.json) session.console.out << Dump({{"ready", true}}) << "\n";
      return kOk;
    }
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return status;
    // That the time ran out says less than what was heard before.
    if (absl::IsUnavailable(status)) last = status;
    absl::SleepFor(
        std::min(absl::Milliseconds(50), std::max(end - absl::Now(), absl::ZeroDuration())));
  } while (absl::Now() < end);
  return Annotate(last, absl::StrCat("not ready after ", absl::FormatDuration(end - start)));
}

}  // namespace

CommandEntry AddList(CLI::App& program) {
  auto* app = program.add_subcommand("list");
  const auto all = std::make_shared<bool>(false);
  app->add_flag("--all", *all);
  return {app, [all](const Session& session) { return List(session, *all); }};
}

CommandEntry AddDescribe(CLI::App& program) {
  auto* app = program.add_subcommand("describe");
  const auto name = std::make_shared<std::string>();
  app->add_option("KERNEL", *name)->required();
  return {app, [name](const Session& session) { return Describe(session, *name); }};
}

CommandEntry AddDevices(CLI::App& program) {
  return {program.add_subcommand("devices"), Devices};
}

CommandEntry AddPing(CLI::App& program) {
  auto* app = program.add_subcommand("ping");
  const auto count = std::make_shared<int>(11);
  app->add_option("--count", *count)->check(CLI::Range(1, 1'000'000));
  return {app, [count](const Session& session) { return Ping(session, *count); }};
}

CommandEntry AddWait(CLI::App& program) {
  return {program.add_subcommand("wait"), Wait};
}

}  // namespace gridclock::cli
