#include "client/cli/findings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gridclock::cli {
namespace {

bool IsUp(const v1::Device& device) {
  return device.state() == v1::Device::READY || device.state() == v1::Device::BUSY;
}

Finding Workers(std::span<const v1::Device> devices) {
  const auto up = std::count_if(devices.begin(), devices.end(), IsUp);
  const bool all = up == static_cast<std::ptrdiff_t>(devices.size());
  std::uint64_t restarts = 0;
  for (const v1::Device& device : devices) restarts += device.restarts();
  return {all, "workers",
          absl::StrCat(all ? "" : "missing: calls for their devices wait (", up, " of ",
                       devices.size(), " up, started again ", restarts, " times", all ? "" : ")")};
}

// There with its version, or missing with what that means.
Finding Part(const std::string& part, const std::string& version, absl::string_view effect,
             absl::string_view why) {
  const bool there = why.empty() && !version.empty();
  if (there) return {true, part, version};
  return {false, part,
          absl::StrCat("missing: ", effect, why.empty() ? "" : " (", why, why.empty() ? "" : ")")};
}

std::string WhyNoDeviceTime(const v1::Device& gpu) {
  for (const v1::Device::MethodFacts& method : gpu.methods()) {
    if (method.method() == v1::DEVICE_TIME) return method.missing();
  }
  return "its worker has not said yet";
}

void AddGpu(std::span<const v1::Device> devices, std::vector<Finding>* out) {
  const auto gpu = std::find_if(devices.begin(), devices.end(),
                                [](const v1::Device& d) { return d.kind() == "cuda"; });
  if (gpu == devices.end()) {
    out->push_back({true, "GPU", "none is served: kernels run on the CPU"});
    return;
  }
  out->push_back(Part("CUDA", gpu->cuda(), "no kernel runs on a GPU", ""));
  out->push_back(Part("NVML", gpu->driver().empty() ? "" : "driver " + gpu->driver(),
                      "clocks, throttling and others on a GPU are not seen", ""));
  out->push_back(Part("CUPTI", "there", "no device_time", WhyNoDeviceTime(*gpu)));
}

void AddCompiler(const v1::ServerInfo& info, std::vector<Finding>* out) {
  if (!info.has_compiler()) {
    out->push_back({true, "compiler", "off: code of clients is not taken (--allow-submit)"});
    return;
  }
  const v1::Compiler& compiler = info.compiler();
  const std::string there = "there";
  out->push_back(Part("compiler", compiler.ready() ? "sandbox " + compiler.sandbox() : "",
                      "nothing is compiled", compiler.ready() ? "" : "not ready"));
  out->push_back(
      Part("NVRTC", compiler.toolchain(), "CUDA C++ is not compiled", compiler.no_cuda()));
  out->push_back(Part("ptxas", there, "PTX is not assembled", compiler.no_ptx()));
  Finding disassembler = Part("nvdisasm", there, "machine code is not shown", compiler.no_sass());
  disassembler.good = true;  // Everything but that one view works without it.
  out->push_back(std::move(disassembler));
}

// Where submitted code runs, and what holds it there.
void AddGuests(const v1::ServerInfo& info, std::span<const v1::Device> devices,
               std::vector<Finding>* out) {
  if (!info.has_compiler()) return;
  for (const v1::Device& device : devices) {
    const std::string sandbox = device.sandbox().empty() ? "" : "sandbox " + device.sandbox();
    Finding guest = Part("guests on " + device.name(), sandbox, "submitted code does not run there",
                         sandbox.empty() ? "none has started yet" : "");
    if (device.pageable_access()) {
      guest.text +=
          "; kernels reach all host memory of their process, and could forge their times "
          "(docs/security.md names the driver's setting that ends it, uvm_disable_hmm=1)";
    }
    out->push_back(std::move(guest));
  }
}

}  // namespace

std::string StatusOf(const Finding& finding) {
  if (!finding.good) return "no";
  return absl::StartsWith(finding.text, "missing: ") ? "without" : "ok";
}

bool IsStarting(const v1::ServerInfo& info, std::span<const v1::Device> devices) {
  const bool guests = info.has_compiler();
  return (guests && !info.compiler().ready()) ||
         std::any_of(devices.begin(), devices.end(), [&](const v1::Device& device) {
           return device.state() == v1::Device::STARTING || (guests && device.sandbox().empty());
         });
}

std::vector<Finding> PartsOf(const v1::ServerInfo& info, std::span<const v1::Device> devices) {
  std::vector<Finding> out = {Workers(devices)};
  AddGpu(devices, &out);
  AddCompiler(info, &out);
  AddGuests(info, devices, &out);
  return out;
}

}  // namespace gridclock::cli
