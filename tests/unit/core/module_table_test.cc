#include "server/core/module_table.h"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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

// Each module has a little more than its bytes of code.
Limits LimitsOf(double bytes) {
  Limits limits;
  limits.module_memory_bytes = bytes;
  return limits;
}

std::vector<std::string> IdsOf(const ModuleTable& table, absl::string_view principal) {
  std::vector<std::string> ids;
  for (const auto& [id, module] : table.List(principal)) ids.push_back(id);
  return ids;
}

TEST(ModuleTable, WhoHasMostLosesWhatItUsedLongestAgo) {
  ModuleTable table(LimitsOf(100'000));
  for (const char* id : {"a1", "a2", "a3", "a4"}) {
    ASSERT_THAT(table.Add("alice", id, Module(false, 10'000)), IsOk());
  }
  for (const char* id : {"b1", "b2", "b3", "b4"}) {
    ASSERT_THAT(table.Add("bob", id, Module(false, 8'000)), IsOk());
  }
  EXPECT_NE(table.Find("alice", "a1"), nullptr);
  ASSERT_THAT(table.Add("carol", "c1", Module(false, 20'000)), IsOk());
  EXPECT_THAT(IdsOf(table, "alice"), ElementsAre("a1", "a3", "a4"));
  EXPECT_THAT(IdsOf(table, "bob"), SizeIs(4));
  // Now bob has most.
  ASSERT_THAT(table.Add("carol", "c2", Module(false, 12'000)), IsOk());
  EXPECT_THAT(IdsOf(table, "alice"), ElementsAre("a1", "a3", "a4"));
  EXPECT_THAT(IdsOf(table, "bob"), ElementsAre("b2", "b3", "b4"));
  EXPECT_THAT(IdsOf(table, "carol"), ElementsAre("c1", "c2"));
  EXPECT_LE(table.usage().bytes, 100'000u);
}

TEST(ModuleTable, WhoHasMostWithTheNewOneLosesItsOwn) {
  ModuleTable table(LimitsOf(100'000));
  ASSERT_THAT(table.Add("alice", "a1", Module(false, 30'000)), IsOk());
  ASSERT_THAT(table.Add("bob", "b1", Module(false, 30'000)), IsOk());
  ASSERT_THAT(table.Add("carol", "c1", Module(false, 20'000)), IsOk());
  ASSERT_THAT(table.Add("carol", "c2", Module(false, 10'000)), IsOk());
  ASSERT_THAT(table.Add("carol", "c3", Module(false, 15'000)), IsOk());
  EXPECT_THAT(IdsOf(table, "carol"), ElementsAre("c2", "c3"));
  EXPECT_THAT(IdsOf(table, "alice"), SizeIs(1));
  EXPECT_THAT(IdsOf(table, "bob"), SizeIs(1));
}

TEST(ModuleTable, WhatIsUsedStays) {
  ModuleTable table(LimitsOf(100'000));
  ModulePtr waits = Module(false, 40'000);
  ASSERT_THAT(table.Add("alice", "a1", waits), IsOk());
  ASSERT_THAT(table.Add("bob", "b1", Module(false, 35'000)), IsOk());
  ASSERT_THAT(table.Add("carol", "c1", Module(false, 30'000)), IsOk());
  EXPECT_THAT(IdsOf(table, "alice"), ElementsAre("a1"));
  EXPECT_THAT(IdsOf(table, "bob"), IsEmpty());
  EXPECT_THAT(table.Add("bob", "b2", Module(false, 35'000)), ReasonIs("MEMORY_FULL"));
  EXPECT_THAT(IdsOf(table, "carol"), ElementsAre("c1"));
  waits.reset();
  EXPECT_THAT(table.Add("bob", "b2", Module(false, 35'000)), IsOk());
  EXPECT_THAT(IdsOf(table, "alice"), IsEmpty());
}

TEST(ModuleTable, WhatOnlyWordsAreKeptForMayGo) {
  ModuleTable table(LimitsOf(100'000));
  std::map<std::string, ModulePtr, std::less<>> kept;
  table.SetRelease([&](absl::string_view id) { kept.erase(std::string(id)); });
  for (const char* client : {"alice", "bob", "carol"}) {
    kept[client] = Module(false, 40'000);
    ASSERT_THAT(table.Add(client, client, kept[client]), IsOk());
  }
  EXPECT_THAT(IdsOf(table, "alice"), IsEmpty());
  EXPECT_THAT(IdsOf(table, "bob"), SizeIs(1));
  EXPECT_TRUE(kept.contains("bob"));
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
