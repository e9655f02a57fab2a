// Modules of one client, and calls of them at the gate.
#ifndef GRIDCLOCK_TESTS_UNIT_CORE_PROGRAMS_FIXTURE_H_
#define GRIDCLOCK_TESTS_UNIT_CORE_PROGRAMS_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/core/admission.h"
#include "server/core/programs.h"
#include "tests/support/status_matchers.h"

namespace gridclock {

inline constexpr char kWords[] =
    "mine x: f32[N] -> y: f32[N] grid (ceil_div(N, 256)) block (256) params x, y, n: int = N";

inline ModuleEntry EntryOf(const std::string& name, const std::string& display,
                           std::vector<std::uint32_t> sizes) {
  ModuleEntry entry;
  entry.name = name;
  entry.display = display;
  entry.max_threads = 1024;
  std::uint32_t offset = 0;
  for (const std::uint32_t size : sizes) {
    EntryParameter& parameter = entry.parameters.emplace_back();
    parameter.offset = offset;
    parameter.size = size;
    offset += size;
  }
  return entry;
}

class ProgramsTest : public ::testing::Test {
 protected:
  ProgramsTest() {
    limits_.arena_bytes = 1 << 20;
    limits_.client_arena_bytes = 1 << 19;
    ResolveDefaults(limits_, 0);
    Learn("cpu", "cpu", 0);
    Learn("cuda:0", "cuda", 90);
    auto code = std::make_shared<ModuleCode>();
    code->facts.kind = ModuleKind::kCuda;
    code->facts.arch = "sm_90a";
    code->facts.entries = {EntryOf("_Z6squarePKfPfi", "square", {8, 8, 4}),
                           EntryOf("_Z4soft", "soft<float, 256>", {8, 8}),
                           EntryOf("_Z4fillPfS_", "fill", {8, 8}),
                           EntryOf("_Z4fillPiS_", "fill", {8, 8})};
    code->cubin = "ELF";
    Add("ann", "m1", code);
    auto failed = std::make_shared<ModuleCode>();
    failed->facts.failed = true;
    Add("ann", "bad", failed);
    auto native = std::make_shared<ModuleCode>();
    native->facts.kind = ModuleKind::kTestNative;
    native->facts.entries = {EntryOf("square", "square", {})};
    Add("ann", "native", native);
  }
  void Learn(const std::string& device, const std::string& kind, std::int64_t sm,
             std::uint64_t memory_bytes = 0, std::int64_t units = 0) {
    DeviceInfo info;
    info.memory_bytes = memory_bytes;
    info.units = units;
    info.name = device;
    info.traits = {.kind = kind, .sm = sm};
    info.host_memory = kind == "cpu";
    std::vector<KernelSpec> kernels;
    for (const char* words :
         {"same x: f32[N] -> y: f32[N]", "two a: f32[N], b: f32[N] -> y: f32[N]",
          "total x: f32[N] -> y: f32[]"}) {
      kernels.push_back(*ParseKernelSpec(words));
    }
    ASSERT_THAT(table_.Learn(info, kernels), IsOk());
  }
  void Add(const std::string& principal, const std::string& id, ModulePtr module) {
    ASSERT_THAT(modules_.Add(principal, id, std::move(module)), IsOk());
  }
  static JobRequest Request(const std::string& words = kWords) {
    JobRequest request;
    request.principal = "ann";
    request.device = "cuda:0";
    InputRequest input;
    input.operand = {"x", {.is_list = false, .tensors = {{DType::kF32, {1000}}}}};
    input.inline_bytes = 4000;
    request.inputs = {input};
    request.program = ProgramRequest{
        .words = words,
        .launches = {{.module = "m1", .entry = "square", .words = "", .cooperative = false}},
        .globals = {}};
    return request;
  }
  // Of a module that takes so much memory: `local` for each thread of an entry that is not
  // launched.
  JobRequest RequestOf(std::uint64_t variables, std::uint64_t local) {
    auto code = std::make_shared<ModuleCode>();
    code->facts.kind = ModuleKind::kCuda;
    code->facts.arch = "sm_90a";
    code->facts.entries = {EntryOf("square", "square", {8, 8, 4}), EntryOf("deep", "deep", {8})};
    code->facts.entries[1].local_bytes = local;
    code->facts.global_bytes = variables;
    code->cubin = "ELF";
    Add("ann", "large", code);
    JobRequest request = Request();
    request.program->launches[0].module = "large";
    return request;
  }
  static JobRequest Native() {
    JobRequest request = Request();
    request.device = "cpu";
    request.program->launches[0].module = "native";
    return request;
  }
  absl::StatusOr<Job> Try(const JobRequest& request) {
    auto program = programs_.Find(request);
    if (!program.ok()) return program.status();
    return Admit(
        request, table_, limits_, [](absl::string_view) { return 0; }, *std::move(program));
  }

  absl::StatusOr<Job> TryWithReference(const JobRequest& request) {
    auto program = programs_.Find(request);
    if (!program.ok()) return program.status();
    auto reference = programs_.FindReference(request);
    if (!reference.ok()) return reference.status();
    return Admit(
        request, table_, limits_, [](absl::string_view) { return 0; }, *std::move(program),
        *std::move(reference));
  }

  Limits limits_;
  KernelTable table_{{"cpu", "cuda:0"}};
  ModuleTable modules_{Limits()};
  ModuleStrikes strikes_;
  Programs programs_{modules_, strikes_};
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_UNIT_CORE_PROGRAMS_FIXTURE_H_
