#include "server/fleet/module_cache.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

namespace fs = std::filesystem;

class Cache : public ::testing::Test {
 protected:
  Cache() : folder_(absl::StrCat(::testing::TempDir(), "/gridclock_cache_", getpid())) {
    fs::remove_all(folder_);
  }
  ~Cache() override { fs::remove_all(folder_); }

  std::unique_ptr<ModuleCache> Open(std::uint64_t most = 1 << 20) const {
    auto cache = ModuleCache::Open(folder_, most);
    EXPECT_THAT(cache, IsOk());
    return *std::move(cache);
  }
  std::string Path(const std::string& id) const { return folder_ + "/" + id + ".module"; }

  const std::string folder_;
};

ModuleCode Code(const std::string& cubin) {
  ModuleCode code;
  code.facts.name = "kernel.cu";
  code.facts.arch = "sm_90a";
  code.facts.entries.push_back({.name = "_Z1fPf",
                                .display = "f",
                                .registers = 10,
                                .spill_store_bytes = 4,
                                .spill_load_bytes = std::nullopt,
                                .max_threads = 1024,
                                .required_block = {32, 2, 1},
                                .parameters = {{0, 8}}});
  code.ptx = ".version 9.0";
  code.cubin = cubin;
  return code;
}

TEST_F(Cache, WhatIsWrittenIsThereAfterARestart) {
  Open()->Write("alice", "0a", Code("cubin"));
  const auto cache = Open();
  ASSERT_OK_AND_ASSIGN(const ModuleCode got, cache->Read("alice", "0a"));
  EXPECT_EQ(got.cubin, "cubin");
  EXPECT_EQ(got.ptx, ".version 9.0");
  EXPECT_EQ(got.facts.arch, "sm_90a");
  ASSERT_EQ(got.facts.entries.size(), 1u);
  EXPECT_EQ(got.facts.entries[0].registers, 10u);
  EXPECT_EQ(got.facts.entries[0].spill_store_bytes, 4u);
  EXPECT_EQ(got.facts.entries[0].spill_load_bytes, std::nullopt);
  EXPECT_EQ(got.facts.entries[0].required_block[1], 2u);
  EXPECT_GT(cache->bytes(), 0u);
}

TEST_F(Cache, OfOthersNothingIsThere) {
  const auto cache = Open();
  cache->Write("alice", "0a", Code("cubin"));
  EXPECT_EQ(cache->Read("bob", "0a").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(cache->Remove("bob", "0a"));
  EXPECT_TRUE(cache->Remove("alice", "0a"));
  EXPECT_EQ(cache->Read("alice", "0a").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(cache->bytes(), 0u);
}

TEST_F(Cache, F25_WhatIsNotWholeIsDropped) {
  Open()->Write("alice", "0a", Code("cubin"));
  Open()->Write("alice", "0b", Code("cubin"));
  Open()->Write("alice", "0c", Code("cubin"));
  fs::resize_file(Path("0a"), fs::file_size(Path("0a")) - 1);
  {
    std::fstream file(Path("0b"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(20);
    file.put('\x7f');
  }
  fs::rename(Path("0c"), Path("0d"));  // Its id is another.
  std::ofstream(folder_ + "/0e.module.part") << "half";
  const auto cache = Open();
  EXPECT_FALSE(fs::exists(folder_ + "/0e.module.part"));
  for (const char* id : {"0a", "0b", "0c", "0d"}) {
    EXPECT_EQ(cache->Read("alice", id).status().code(), absl::StatusCode::kNotFound) << id;
    EXPECT_FALSE(fs::exists(Path(id))) << id;
  }
  EXPECT_EQ(cache->bytes(), 0u);
}

TEST_F(Cache, WhatWasUsedLongestAgoGoesFirst) {
  const auto cache = Open(3500);
  for (const char* id : {"01", "02", "03"}) cache->Write("alice", id, Code(std::string(1000, 'x')));
  EXPECT_THAT(cache->Read("alice", "01"), IsOk());
  cache->Write("alice", "04", Code(std::string(1000, 'x')));
  EXPECT_THAT(cache->Read("alice", "01"), IsOk());
  EXPECT_FALSE(cache->Read("alice", "02").ok());
  EXPECT_LE(cache->bytes(), 3500u);
  cache->Write("alice", "05", Code(std::string(4000, 'x')));  // Larger than all: not kept.
  EXPECT_FALSE(fs::exists(Path("05")));
}

TEST_F(Cache, WhoHasMostMakesRoom) {
  const std::string code(1000, 'x');
  {
    const auto cache = Open(3500);
    cache->Write("bob", "0b", Code(code));
    for (const char* id : {"01", "02", "03"}) cache->Write("alice", id, Code(code));
    EXPECT_THAT(cache->Read("bob", "0b"), IsOk());
    EXPECT_FALSE(cache->Read("alice", "01").ok());
    cache->Write("bob", "0b", Code(code));
    cache->Write("alice", "02", Code(code));
  }
  const auto cache = Open(3500);  // It knows whose they are.
  for (const char* id : {"04", "05"}) cache->Write("alice", id, Code(code));
  EXPECT_THAT(cache->Read("bob", "0b"), IsOk());
  EXPECT_FALSE(cache->Remove("alice", "0b"));
  EXPECT_TRUE(cache->Remove("alice", "05"));
}

TEST_F(Cache, B8_AnIdIsNoPath) {
  const auto cache = Open();
  for (const char* id : {"", "../0a", "/etc/passwd", "0a/../0b", "0a.module", "x"}) {
    cache->Write("alice", id, Code("cubin"));
    EXPECT_EQ(cache->Read("alice", id).status().code(), absl::StatusCode::kNotFound) << id;
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Cache, AFolderThatCannotBeUsedIsAnErrorAtTheStart) {
  std::ofstream(folder_) << "a file";
  EXPECT_EQ(ModuleCache::Open(folder_, 1000).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace gridclock
