// admin: jobs, cancel, drain, undrain, restart, reload.
#include "client/cli/cmd_admin.h"

#include <memory>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/cli/format.h"
#include "client/cli/json.h"
#include "client/cli/names.h"

namespace gridclock::cli {
namespace {

struct AdminOptions {
  std::uint64_t job = 0;
  std::string device;
  bool last = false, now = false;
};

// As JSON, or the sentence.
absl::StatusOr<int> Say(const Session& session, const Json& json, const std::string& text) {
  session.console.out << (session.options.json ? Dump(json) + "\n" : text);
  return kOk;
}

Json JobJson(const v1::ActiveJob& job) {
  return {{"id", job.id()},
          {"client", job.client()},
          {"kernel", job.kernel()},
          {"variant", job.variant()},
          {"device", job.device()},
          {"state", NameOf(job.state())},
          {"age_seconds", job.age_seconds()},
          {"sent_seconds", job.sent_seconds()},
          {"submitted", job.submitted()},
          {"measured", job.measured()},
          {"request_id", job.request_id()}};
}

std::string KernelText(const v1::ActiveJob& job) {
  const std::string name =
      job.variant().empty() ? job.kernel() : job.kernel() + "." + job.variant();
  return absl::StrCat(Escape(name), job.submitted() ? " (submitted)" : "");
}

std::string SecondsText(double seconds) {
  return FormatNs(seconds * 1e9);
}

std::string JobsText(const std::vector<v1::ActiveJob>& jobs) {
  if (jobs.empty()) return "no job waits or runs\n";
  Table table({"job", "state", "client", "kernel", "device", "age", "at worker"});
  for (const v1::ActiveJob& job : jobs) {
    table.Add({absl::StrCat(job.id()), NameOf(job.state()), Escape(job.client()), KernelText(job),
               Escape(job.device()), SecondsText(job.age_seconds()),
               SecondsText(job.sent_seconds())});
  }
  return table.ToText();
}

std::string JobsLeft(int jobs) {
  return jobs == 1 ? "1 job is left on it" : absl::StrCat(jobs, " jobs are left on it");
}

absl::StatusOr<int> Jobs(const Client& client, const Session& session, const AdminOptions&) {
  GC_ASSIGN_OR_RETURN(const std::vector<v1::ActiveJob> jobs, client.ListJobs());
  Json out = Json::array();
  for (const v1::ActiveJob& job : jobs) out.push_back(JobJson(job));
  return Say(session, out, JobsText(jobs));
}

absl::StatusOr<int> Cancel(const Client& client, const Session& session,
                           const AdminOptions& options) {
  GC_ASSIGN_OR_RETURN(const v1::ActiveJob job, client.CancelJob(options.job));
  const bool runs = job.state() == v1::ActiveJob::RUNNING || job.state() == v1::ActiveJob::STOPPING;
  return Say(session, JobJson(job),
             absl::StrCat("job ", job.id(), " of ", Escape(job.client()), " (", KernelText(job),
                          " on ", Escape(job.device()), ") ",
                          runs ? "ends when its launch does, or with its worker where others wait"
                               : "is cancelled",
                          "\n"));
}

absl::StatusOr<int> Drain(const Client& client, const Session& session,
                          const AdminOptions& options) {
  v1::DrainDeviceRequest request;
  request.set_device(options.device);
  request.set_allow_last(options.last);
  GC_ASSIGN_OR_RETURN(const v1::DrainDeviceResponse done, client.DrainDevice(request));
  return Say(session,
             {{"device", done.device()}, {"changed", done.changed()}, {"jobs", done.jobs()}},
             absl::StrCat(Escape(done.device()), done.changed() ? " is" : " was", " drained; ",
                          JobsLeft(done.jobs()), "\n"));
}

absl::StatusOr<int> Undrain(const Client& client, const Session& session,
                            const AdminOptions& options) {
  GC_ASSIGN_OR_RETURN(const v1::UndrainDeviceResponse done, client.UndrainDevice(options.device));
  return Say(session, {{"device", done.device()}, {"changed", done.changed()}},
             absl::StrCat(Escape(done.device()),
                          done.changed() ? " takes calls again\n" : " was not drained\n"));
}

absl::StatusOr<int> Restart(const Client& client, const Session& session,
                            const AdminOptions& options) {
  v1::RestartWorkerRequest request;
  request.set_device(options.device);
  request.set_now(options.now);
  GC_ASSIGN_OR_RETURN(const v1::RestartWorkerResponse done, client.RestartWorker(request));
  std::string when = "is replaced at once; it holds no job\n";
  if (options.now) {
    when =
        absl::StrCat("is killed; it held ", done.jobs(), done.jobs() == 1 ? " job\n" : " jobs\n");
  } else if (done.jobs() > 0) {
    when = absl::StrCat(
        "is replaced when ", done.jobs(),
        done.jobs() == 1 ? " job that it holds is done\n" : " jobs that it holds are done\n");
  }
  return Say(session, {{"device", done.device()}, {"jobs", done.jobs()}},
             absl::StrCat("the worker of ", Escape(done.device()), " ", when));
}

absl::StatusOr<int> Reload(const Client& client, const Session& session, const AdminOptions&) {
  GC_ASSIGN_OR_RETURN(const v1::ReloadResponse done, client.Reload());
  Json json = Json::array();
  std::string text;
  bool all = true;
  for (const v1::ReloadResponse::Part& part : done.parts()) {
    json.push_back({{"name", part.name()}, {"error", part.error()}});
    absl::StrAppend(&text, Escape(part.name()),
                    part.error().empty()
                        ? " were read again\n"
                        : absl::StrCat(" stay as they were: ", Escape(part.error()), "\n"));
    all = all && part.error().empty();
  }
  if (text.empty()) text = "the server was started without tokens and certificates\n";
  GC_RETURN_IF_ERROR(Say(session, json, text).status());
  return all ? kOk : kFailed;
}

// What CLI11 says of a word that is no number names its type alone.
std::string IsNoJob(const std::string& text) {
  std::uint64_t id = 0;
  if (absl::SimpleAtoi(text, &id)) return "";
  return absl::StrCat("want a number as gridclock admin jobs shows, got ", text);
}

using Act = absl::StatusOr<int> (*)(const Client&, const Session&, const AdminOptions&);

}  // namespace

CommandEntry AddAdmin(CLI::App& program) {
  auto* app = program.add_subcommand("admin");
  const auto options = std::make_shared<AdminOptions>();
  app->require_subcommand(0, 1);
  std::vector<std::pair<CLI::App*, Act>> actions;
  const auto add = [&](const std::string& name, Act act) {
    auto* action = app->add_subcommand(name);
    action->set_help_flag();
    action->fallthrough();
    actions.emplace_back(action, act);
    return action;
  };
  const auto add_device = [&](CLI::App* action) {
    action->add_option("DEVICE", options->device)->required();
    return action;
  };
  add("jobs", Jobs);
  add("cancel", Cancel)
      ->add_option("JOB", options->job)
      ->required()
      ->check(CLI::Validator(IsNoJob, ""));
  add_device(add("drain", Drain))->add_flag("--last", options->last);
  add_device(add("undrain", Undrain));
  add_device(add("restart", Restart))->add_flag("--now", options->now);
  add("reload", Reload);
  return {app, [options, actions](const Session& session) -> absl::StatusOr<int> {
            for (const auto& [action, act] : actions) {
              if (!action->parsed()) continue;
              GC_ASSIGN_OR_RETURN(const auto client, session.Connect());
              return act(*client, session, *options);
            }
            return UsageError("admin: want jobs, cancel, drain, undrain, restart or reload");
          }};
}

}  // namespace gridclock::cli
