#include "server/core/module_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

ModulePtr Module(bool failed = false, std::size_t bytes = 10) {
  auto module = std::make_shared<ModuleCode>();
  module->facts.failed = failed;
  module->cubin = std::string(bytes, 'x');
  return module;
}

TEST(ModuleTable, ModulesOfOthersAreNotThere) {
  ModuleTable table(Limits{});
  const ModulePtr module = Module();
  ASSERT_THAT(table.Add("alice", "a1", module), IsOk());
  EXPECT_EQ(table.Find("alice", "a1"), module);
  EXPECT_EQ(table.Find("bob", "a1"), nullptr);
  EXPECT_FALSE(table.Remove("bob", "a1"));
  EXPECT_TRUE(table.List("bob").empty());
  EXPECT_TRUE(table.Remove("alice", "a1"));
  EXPECT_EQ(table.Find("alice", "a1"), nullptr);
  EXPECT_EQ(table.usage().bytes, 0u);
}

TEST(ModuleTable, EachPrincipalHasAQuota) {
  Limits limits;
  limits.client_modules = 2;
  ModuleTable table(limits);
  ASSERT_THAT(table.Add("alice", "a1", Module()), IsOk());
  ASSERT_THAT(table.Add("alice", "a2", Module()), IsOk());
  EXPECT_THAT(table.Add("alice", "a2", Module()), IsOk());  // Again: nothing more.
  EXPECT_THAT(table.CheckQuota("alice"), ReasonIs("MODULE_QUOTA"));
  EXPECT_THAT(table.Add("alice", "a3", Module()), ReasonIs("MODULE_QUOTA"));
  EXPECT_THAT(table.Add("bob", "b1", Module()), IsOk());
  EXPECT_EQ(table.usage().modules, 3u);
  EXPECT_EQ(table.usage().most_of_one, 2u);
  EXPECT_TRUE(table.Remove("alice", "a1"));
  EXPECT_THAT(table.Add("alice", "a3", Module()), IsOk());
  ASSERT_EQ(table.List("alice").size(), 2u);
  EXPECT_EQ(table.List("alice")[0].first, "a2");
}

TEST(ModuleTable, BytesAreBounded) {
  Limits limits;
  limits.module_memory_bytes = 20000;
  ModuleTable table(limits);
  ASSERT_THAT(table.Add("alice", "a1", Module(false, 5000)), IsOk());
  EXPECT_THAT(table.Add("alice", "a2", Module(false, 5000)), ReasonIs("MEMORY_FULL"));
  EXPECT_THAT(table.Add("bob", "b1", Module(false, 5000)), IsOk());
}

TEST(ModuleTable, AllThatAModuleHoldsCounts) {
  const auto bytes_of = [](const auto& change) {
    ModuleCode code;
    code.facts.entries.resize(1);
    change(code.facts);
    ModuleTable table(Limits{});
    EXPECT_THAT(table.Add("alice", "a1", std::make_shared<ModuleCode>(code)), IsOk());
    return table.usage().bytes;
  };
  const std::string text(100'000, 'x');
  EXPECT_GT(bytes_of([&](ModuleFacts& f) { f.log = text; }), text.size());
  EXPECT_GT(bytes_of([&](ModuleFacts& f) { f.notes = {{1, 1, text}}; }), text.size());
  EXPECT_GT(bytes_of([&](ModuleFacts& f) { f.entries[0].name = text; }), text.size());
  EXPECT_GT(bytes_of([&](ModuleFacts& f) { f.entries[0].display = text; }), text.size());
  EXPECT_GT(bytes_of([&](ModuleFacts& f) { f.entries[0].parameters.resize(100'000); }),
            100'000 * sizeof(EntryParameter));
}

TEST(ModuleTable, FailuresHaveTheirOwnBytes) {
  Limits limits;
  limits.module_memory_bytes = 16 * 20000;
  ModuleTable table(limits);
  const auto failure = [](std::size_t bytes) {
    ModuleCode code;
    code.facts.failed = true;
    code.facts.log = std::string(bytes, 'x');
    return std::make_shared<const ModuleCode>(code);
  };
  ASSERT_THAT(table.Add("bob", "b1", failure(3000)), IsOk());
  for (int i = 0; i < 20; ++i) {
    ASSERT_THAT(table.Add("alice", absl::StrCat(i), failure(3000)), IsOk());
    EXPECT_LE(table.usage().bytes, 20000u);
  }
  EXPECT_NE(table.Find("alice", "19"), nullptr);
  EXPECT_EQ(table.Find("alice", "17"), nullptr);
  EXPECT_NE(table.Find("bob", "b1"), nullptr);
  EXPECT_THAT(table.Add("alice", "large", failure(10000)), IsOk());
  EXPECT_EQ(table.Find("alice", "large"), nullptr);
  EXPECT_NE(table.Find("alice", "19"), nullptr);
  for (const char* id : {"18", "19"}) EXPECT_TRUE(table.Remove("alice", id));
  EXPECT_TRUE(table.Remove("bob", "b1"));
  EXPECT_EQ(table.usage().bytes, 0u);
}

TEST(ModuleTable, OfFailedCompilesTheLastAreKept) {
  Limits limits;
  limits.client_modules = 1;
  ModuleTable table(limits);
  for (int i = 0; i < 100; ++i)
    ASSERT_THAT(table.Add("alice", absl::StrCat(i), Module(true)), IsOk());
  EXPECT_EQ(table.Find("alice", "35"), nullptr);
  EXPECT_NE(table.Find("alice", "36"), nullptr);
  EXPECT_NE(table.Find("alice", "99"), nullptr);
  EXPECT_TRUE(table.List("alice").empty());
  EXPECT_THAT(table.CheckQuota("alice"), IsOk());
  EXPECT_TRUE(table.Remove("alice", "99"));
}

}  // namespace
}  // namespace gridclock
