#include "server/rpc/module_id.h"

#include <functional>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridclock {
namespace {

struct Input {
  std::string principal = "ann", toolchain = "NVRTC 13.0";
  ModuleSource source = {.main = {.name = "k.cu", .text = "code"},
                         .headers = {{.name = "a.h", .text = "1"}},
                         .options = {.arch = "sm_90a", .defines = {{"N", "1"}}},
                         .name_expressions = {"f<1>"}};
};

std::string IdOf(const Input& input) {
  return ModuleId(input.principal, input.toolchain, input.source);
}

TEST(ModuleId, IsAHashThatStays) {
  EXPECT_THAT(IdOf({}), ::testing::MatchesRegex("[0-9a-f]{32}"));
  EXPECT_EQ(IdOf({}), IdOf({}));
}

TEST(ModuleId, IsAnotherWhereAnythingThatDecidesIs) {
  const std::function<void(Input&)> changes[] = {
      [](Input& in) { in.principal = "bob"; },
      [](Input& in) { in.toolchain = "NVRTC 13.1"; },
      [](Input& in) { in.source.kind = ModuleKind::kPtx; },
      [](Input& in) { in.source.main.name = "l.cu"; },
      [](Input& in) { in.source.main.text = "coda"; },
      [](Input& in) { in.source.headers[0].name = "b.h"; },
      [](Input& in) { in.source.headers[0].text = "2"; },
      [](Input& in) { in.source.headers.push_back({.name = "b.h", .text = ""}); },
      [](Input& in) { in.source.name_expressions = {"f<2>"}; },
      [](Input& in) { in.source.name_expressions.clear(); },
      [](Input& in) { in.source.options.standard = CppStandard::k20; },
      [](Input& in) { in.source.options.arch = "sm_80"; },
      [](Input& in) { in.source.options.fast_math = true; },
      [](Input& in) { in.source.options.fmad = false; },
      [](Input& in) { in.source.options.max_registers = 32; },
      [](Input& in) { in.source.options.line_info = true; },
      [](Input& in) { in.source.options.defines["N"] = "2"; },
      [](Input& in) { in.source.options.defines["M"] = "1"; },
      // Bytes that move from one part to the next.
      [](Input& in) { in.source.main = {.name = "k.cuc", .text = "ode"}; },
  };
  std::set<std::string> ids = {IdOf({})};
  for (const auto& change : changes) {
    Input input;
    change(input);
    EXPECT_TRUE(ids.insert(IdOf(input)).second) << "change " << ids.size();
  }
}

}  // namespace
}  // namespace gridclock
