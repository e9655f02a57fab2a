#include "client/cli/modules.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace gridclock::cli {
namespace {

using ::testing::HasSubstr;

TEST(ModulesText, ErrorsPointIntoTheFileThatWasNamed) {
  v1::Module module;
  module.set_name("kernel.cu");
  module.set_log("kernel.cu(3): error: wrong\n\tint x\x1b;\n");
  v1::Note* note = module.add_notes();
  note->set_first_line(5);
  note->set_last_line(9);
  note->set_text("host function main");
  EXPECT_EQ(LogText(module, "dir/kernel.cu", Terminal{}),
            "dir/kernel.cu:5-9: set aside: host function main\n"
            "dir/kernel.cu:3: error: wrong\n"
            "        int x\\x1b;\n");
}

TEST(ModulesText, ErrorsOfPtxPointIntoItsFile) {
  v1::Module module;
  module.set_log("input.ptx(4): error: no\n");
  EXPECT_EQ(LogText(module, "out/k.ptx", Terminal{}), "out/k.ptx:4: error: no\n");
}

TEST(ModulesText, ResourcesAreATableAndUnknownSpillsADash) {
  v1::Module module;
  v1::Entry* entry = module.add_entries();
  entry->set_display("f<3>");
  entry->set_registers(64);
  entry->mutable_occupancy()->set_block_threads(256);
  entry->mutable_occupancy()->set_max_warps(64);
  entry->mutable_occupancy()->set_fraction(0.5);
  entry->mutable_occupancy()->set_limit(v1::Occupancy::REGISTERS);
  const std::string text = ResourcesText(module);
  EXPECT_THAT(text, HasSubstr("50 % of 256 threads by registers"));
  EXPECT_THAT(text, HasSubstr(" - "));
  EXPECT_TRUE(ToJson(module)["entries"][0]["spill_load_bytes"].is_null());
}

TEST(ModulesText, EachModuleIsALine) {
  std::vector<v1::Module> modules(2);
  modules[0].set_id("aa");
  modules[0].set_name("k\x1b.cu");
  modules[0].set_arch("sm_90a");
  for (const char* name : {"f", "g<3>", "h", "i"}) modules[0].add_entries()->set_display(name);
  modules[1].set_id("ab");
  modules[1].set_kind(v1::Module::PTX);
  const std::string text = ModulesText(modules);
  EXPECT_THAT(text, HasSubstr("f, g<3>, h, ..."));
  EXPECT_THAT(text, HasSubstr("k\\x1b.cu"));
  EXPECT_THAT(text, HasSubstr("ab      ptx"));
  EXPECT_EQ(*IdThatBegins("ab", modules), "ab");
  EXPECT_THAT(IdThatBegins("a", modules),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("2 modules")));
  EXPECT_THAT(IdThatBegins("b", modules).status().code(), absl::StatusCode::kNotFound);
  const std::string whole(32, 'c');
  EXPECT_EQ(*IdThatBegins(whole, modules), whole);
}

TEST(ModulesText, HeadersBesideTheSourceGoWithIt) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/gridclock_source_", getpid());
  std::filesystem::create_directories(folder + "/sub");
  std::ofstream(folder + "/k.cu") << "#include <cuda_fp16.h>\n  # include \"sub/a.h\"\n"
                                     "#include \"cuda_bf16.h\"\n#include \"sub/a.h\"\n";
  std::ofstream(folder + "/sub/a.h") << "#include \"b.h\"\n";
  std::ofstream(folder + "/sub/b.h") << "int b;\n";
  v1::CompileRequest request;
  ASSERT_THAT(ReadSource(folder + "/k.cu", &request), IsOk());
  EXPECT_EQ(request.source().name(), "k.cu");
  ASSERT_EQ(request.headers_size(), 2);
  EXPECT_EQ(request.headers(0).name(), "sub/a.h");
  EXPECT_EQ(request.headers(1).name(), "b.h");
  EXPECT_EQ(request.headers(1).text(), "int b;\n");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gridclock::cli
