// doctor: what is there, what is missing and what that means, and a proof on every device.
#include <algorithm>
#include <cstring>
#include <memory>

#include <CLI/CLI.hpp>
#include <google/protobuf/stubs/common.h>
#include <grpcpp/grpcpp.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/findings.h"
#include "client/cli/format.h"
#include "client/cli/json.h"
#include "client/cli/names.h"

#ifndef GRIDCLOCK_VERSION
#define GRIDCLOCK_VERSION "unknown"
#endif

namespace gridclock::cli {
namespace {

constexpr absl::Duration kStart =
    absl::Seconds(15);  // Until what has not started counts as missing.

class Doctor {
 public:
  explicit Doctor(const Session& session) : session_(session) {}

  int Examine() {
    Add(true, "gridclock", GRIDCLOCK_VERSION);
    Add(true, "grpc", grpc::Version());
    Add(true, "protobuf", google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION));
    const auto timeout = session_.Timeout();
    if (!timeout.ok()) return Report(session_, timeout.status());
    timeout_ = std::min(timeout_, *timeout);
    const auto client = session_.Connect();
    if (!client.ok()) {
      Add(false, "server",
          absl::StrCat("missing: no kernel can run (", client.status().message(), ")"));
    } else {
      ExamineServer(**client);
    }
    return Show();
  }

 private:
  void Add(bool good, const std::string& part, const std::string& text) {
    findings_.push_back({good, part, text});
  }

  // Of a server that has just started not yet what its processes will tell in a moment.
  void AwaitStart(const Client& client) {
    const absl::Time until = absl::Now() + std::min(timeout_, kStart);
    while (absl::Now() < until) {
      const auto info = client.GetServerInfo();
      const auto devices = client.ListDevices();
      if (!info.ok() || !devices.ok() || !IsStarting(*info, *devices)) return;
      absl::SleepFor(absl::Milliseconds(100));
    }
  }

  void ExamineServer(const Client& client) {
    AwaitStart(client);
    const auto info = client.GetServerInfo();
    if (!info.ok()) {
      unreachable_ = absl::IsUnavailable(info.status()) && DetailsOf(info.status()).reason.empty();
      const std::string advice = Advice(info.status(), session_.options);
      Add(false, "server",
          absl::StrCat("missing: no kernel can run (", info.status().message(), ")",
                       advice.empty() ? "" : "; ", advice));
      return;
    }
    Add(true, "server",
        absl::StrCat(info->version(), info->revision().empty() ? "" : " at ", info->revision(),
                     info->draining() ? ", draining" : ""));
    for (const auto& [name, version] : info->libraries()) Add(true, "server: " + name, version);
    const auto kernels = client.ListKernels();
    Add(kernels.ok(), "catalogue",
        kernels.ok()
            ? absl::StrCat(kernels->size(), " kernels")
            : absl::StrCat("missing: no kernel has a name (", kernels.status().message(), ")"));
    const auto devices = client.ListDevices();
    if (!devices.ok() || devices->empty()) {
      Add(false, "devices", "missing: no kernel can run");
      return;
    }
    for (Finding& finding : PartsOf(*info, *devices)) findings_.push_back(std::move(finding));
    for (const v1::Device& device : *devices) {
      if (device.drained()) {
        Add(false, "device " + device.name(),
            absl::StrCat("drained by an operator: it takes no calls until gridclock admin undrain ",
                         device.name()));
      } else {
        Prove(client, device);
      }
      for (const v1::Device::MethodFacts& method : device.methods()) {
        if (method.missing().empty()) continue;
        Add(false, absl::StrCat("device ", device.name(), ": ", NameOf(method.method())),
            absl::StrCat("missing: nothing can be timed by it (", method.missing(), ")"));
      }
    }
  }

  // vector_add(x, x) of [1, 2, 3] is [2, 4, 6].
  void Prove(const Client& client, const v1::Device& device) {
    static constexpr float kX[] = {1, 2, 3};
    static constexpr float kWant[] = {2, 4, 6};
    const auto bytes = std::as_bytes(std::span<const float>(kX));
    const OperandValue value{.is_list = false, .tensors = {{.dtype = DType::kF32, .shape = {3}}}};
    RunCall call;
    call.kernel = "vector_add";
    call.device = device.name();
    call.timeout = timeout_;
    for (const char* name : {"a", "b"}) {
      call.inputs.push_back({.name = name, .value = value, .bytes = {bytes}, .generator = {}});
    }
    const std::string part = "device " + device.name();
    const auto result = client.Run(call);
    if (!result.ok()) {
      Add(false, part,
          absl::StrCat("its state is ", NameOf(device.state()), ", and nothing can run there (",
                       result.status().message(), ")"));
      return;
    }
    const bool right = result->outputs.size() == 1 &&
                       result->outputs[0].bytes.size() == sizeof(kWant) &&
                       std::memcmp(result->outputs[0].bytes.data(), kWant, sizeof(kWant)) == 0;
    Add(right, part,
        right ? absl::StrCat(device.model(), device.level().empty() ? "" : ", ", device.level(),
                             device.driver().empty() ? "" : ", driver ", device.driver(),
                             ", vector_add([1,2,3], [1,2,3]) = [2,4,6] in ",
                             FormatNs(result->summary.timing().statistics().median_ns()))
              : "vector_add gave a WRONG result: do not trust this device");
  }

  static std::string Mark(absl::string_view status, const Terminal& terminal) {
    if (status == "ok") return Paint(terminal, Ink::kGreen, "ok");
    return status == "without" ? "-" : Paint(terminal, Ink::kRed, "NO");
  }

  int Show() const {
    bool good = true;
    Json out = Json::array();
    Table table({"part", "", "found"});
    for (const Finding& finding : findings_) {
      good &= finding.good;
      const std::string status = StatusOf(finding);
      out.push_back({{"part", finding.part},
                     {"ok", status == "ok"},
                     {"status", status},
                     {"found", finding.text}});
      table.Add(
          {Escape(finding.part), Mark(status, session_.console.terminal), Escape(finding.text)});
    }
    session_.console.out << (session_.options.json ? Dump(out) + "\n" : table.ToText());
    if (unreachable_) return kUnreachable;
    return good ? kOk : kFailed;
  }

  const Session& session_;
  std::vector<Finding> findings_;
  bool unreachable_ = false;
  absl::Duration timeout_ = absl::Seconds(30);  // Of a proof.
};

}  // namespace

CommandEntry AddDoctor(CLI::App& program) {
  return {program.add_subcommand("doctor"),
          [](const Session& session) -> absl::StatusOr<int> { return Doctor(session).Examine(); }};
}

}  // namespace gridclock::cli
