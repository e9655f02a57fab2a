#include "server/rpc/services.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "gridclock/v1/kernels.pb.h"
#include "gridclock/v1/system.pb.h"
#include "proto/codec/values.h"
#include "server/core/admission.h"
#include "server/core/device_states.h"
#include "server/rpc/now_call.h"
#include "server/rpc/run.h"
#include "server/rpc/stream_run.h"

namespace gridclock {
namespace {

absl::Status ListKernelsOf(const KernelTable& table, bool diagnostic,
                           v1::ListKernelsResponse* out) {
  GC_RETURN_IF_ERROR(table.CheckLearned());
  for (const auto& spec : table.Kernels()) {
    if (!spec->diagnostic || diagnostic) Encode(*spec, out->add_kernels());
  }
  return absl::OkStatus();
}

void Encode(const DeviceStatus& status, int depth, double capacity, v1::Device* out) {
  const DeviceInfo& info = status.info;
  out->set_name(info.name);
  out->set_kind(info.traits.kind);
  out->set_model(info.model);
  out->set_uuid(info.uuid);
  out->set_state(static_cast<v1::Device::State>(status.state));
  out->set_level(info.level);
  out->set_units(info.units);
  out->set_memory_bytes(info.memory_bytes);
  out->set_memory_bytes_per_second(info.memory_bandwidth);
  out->set_launch_floor_ns(info.launch_floor_ns);
  out->set_clock_step_ns(info.clock_step_ns);
  out->set_queue_depth(static_cast<std::uint32_t>(depth));
  out->set_queue_capacity(static_cast<std::uint32_t>(capacity));
  out->set_restarts(status.restarts);
  out->set_compute_capability(info.traits.sm);
  out->set_own_memory(!info.host_memory);
  out->set_l2_bytes(info.l2_bytes);
  out->set_sm_clock_hz(info.sm_clock_hz);
  out->set_memory_clock_hz(info.memory_clock_hz);
  out->set_driver(info.driver);
  out->set_cuda(info.cuda);
  out->set_launch_offset_ns(info.launch_offset_ns);
  out->set_kernel_offset_ns(info.kernel_offset_ns);
  out->set_copy_offset_ns(info.copy_offset_ns);
  out->set_serial_record_offset_ns(info.serial_record_offset_ns);
  out->set_empty_event_pair_ns(info.empty_event_pair_ns);
  out->set_device_timer_step_ns(info.device_timer_step_ns);
  out->set_l2_bytes_per_second(info.l2_bandwidth);
  out->set_partition(info.partition);
  out->set_drained(status.drained);
  out->set_sandbox(status.sandbox);
  out->set_pageable_access(info.pageable_access);
  for (const MethodFacts& method : info.methods) Encode(method, out->add_methods());
  for (const FlopRate& rate : info.flop_rates) Encode(rate, out->add_flop_rates());
}

// "client_queue" -> "--limit-client-queue".
std::string FlagOf(const LimitSpec& spec) {
  return absl::StrCat("--limit-", absl::StrReplaceAll(spec.name, {{"_", "-"}}));
}

void AddLimits(const Backend& backend, v1::ServerInfo* out) {
  const auto usage = backend.limit_usage();
  for (const LimitSpec& spec : LimitSpecs()) {
    v1::Limit* limit = out->add_limits();
    const std::string name(spec.name);
    limit->set_name(name);
    limit->set_value(backend.limits.*spec.member);
    if (const auto used = usage.find(name); used != usage.end()) limit->set_usage(used->second);
    limit->set_unit(std::string(spec.unit));
    limit->set_flag(FlagOf(spec));
  }
}

void AddCompiler(const CompilerFacts& facts, v1::Compiler* out) {
  out->set_ready(facts.ready);
  out->set_toolchain(facts.toolchain);
  out->set_sandbox(facts.sandbox);
  for (const std::string& arch : facts.architectures) out->add_architectures(arch);
  out->set_no_cuda(facts.no_cuda);
  out->set_no_ptx(facts.no_ptx);
  out->set_no_sass(facts.no_sass);
}

}  // namespace

KernelService::KernelService(Backend& backend) {
  AddServed<NowCall, v1::ListKernelsRequest, v1::ListKernelsResponse>(
      backend, RpcMethod::kListKernels,
      [&backend](const v1::ListKernelsRequest& in, v1::ListKernelsResponse* out) {
        return ListKernelsOf(backend.table, in.include_diagnostic(), out);
      });
  AddServed<NowCall, v1::GetKernelRequest, v1::KernelSpec>(
      backend, RpcMethod::kGetKernel,
      [&backend](const v1::GetKernelRequest& in, v1::KernelSpec* out) -> absl::Status {
        GC_RETURN_IF_ERROR(CheckName(in.name(), "name"));
        GC_ASSIGN_OR_RETURN(const auto spec, backend.table.Find(in.name()));
        Encode(*spec, out);
        return absl::OkStatus();
      });
  Add(RpcMethod::kRun,
      [&backend](grpc::CallbackServerContext* context) { return ServeRun(backend, context); });
  Add(RpcMethod::kStreamRun, [&backend](grpc::CallbackServerContext* context) {
    return ServeStreamRun(backend, context);
  });
}

SystemService::SystemService(Backend& backend) {
  AddServed<NowCall, v1::GetServerInfoRequest, v1::ServerInfo>(
      backend, RpcMethod::kGetServerInfo,
      [&backend](const v1::GetServerInfoRequest&, v1::ServerInfo* out) {
        out->set_version(backend.versions.version);
        out->set_revision(backend.versions.revision);
        for (const auto& [name, version] : backend.versions.libraries) {
          (*out->mutable_libraries())[name] = version;
        }
        AddLimits(backend, out);
        out->set_uptime_seconds(absl::ToDoubleSeconds(backend.clock.Now() - backend.started));
        out->set_draining(backend.draining());
        if (backend.modules) AddCompiler(backend.modules->maker.facts(), out->mutable_compiler());
        return absl::OkStatus();
      });
  AddServed<NowCall, v1::ListDevicesRequest, v1::ListDevicesResponse>(
      backend, RpcMethod::kListDevices,
      [&backend](const v1::ListDevicesRequest&, v1::ListDevicesResponse* out) {
        for (const DeviceStatus& device : DevicesNow(backend.table, backend.scheduler)) {
          Encode(device, backend.scheduler.depth(device.info.name), backend.limits.queue,
                 out->add_devices());
        }
        return absl::OkStatus();
      });
}

}  // namespace gridclock
