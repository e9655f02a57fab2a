#include "proto/codec/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

v1::CompileRequest Request() {
  v1::CompileRequest request;
  request.mutable_source()->set_name("dir/kernel.cu");
  request.mutable_source()->set_text("__global__ void f() {}");
  return request;
}

void ExpectRefused(const v1::CompileRequest& request, const std::string& field,
                   const std::string& text) {
  const auto got = Decode(request, ModuleLimits{});
  EXPECT_THAT(got, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  EXPECT_THAT(got, ReasonIs("BAD_VALUE"));
  EXPECT_EQ(DetailsOf(got.status()).field, field);
}

TEST(CompileRequests, DefaultsAreThoseOfTheContract) {
  ASSERT_OK_AND_ASSIGN(const ModuleSource got, Decode(Request(), ModuleLimits{}));
  EXPECT_EQ(got.kind, ModuleKind::kCuda);
  EXPECT_EQ(got.main.name, "dir/kernel.cu");
  EXPECT_EQ(got.options.standard, CppStandard::k17);
  EXPECT_TRUE(got.options.fmad);
  EXPECT_FALSE(got.options.fast_math);
  EXPECT_EQ(got.options.max_registers, 0u);
}

TEST(CompileRequests, WhatIsEncodedIsDecodedToTheSame) {
  v1::CompileRequest request = Request();
  v1::SourceFile* header = request.add_headers();
  header->set_name("a.h");
  header->set_text("int a;");
  v1::CompileOptions* options = request.mutable_options();
  options->set_standard(v1::CompileOptions::CPP20);
  options->set_arch("sm_100f");
  options->set_fast_math(true);
  options->set_fmad(false);
  options->set_max_registers(64);
  options->set_line_info(true);
  (*options->mutable_defines())["N"] = "4 + 1";
  request.add_name_expressions("f<4>");
  ASSERT_OK_AND_ASSIGN(const ModuleSource got, Decode(request, ModuleLimits{}));
  v1::CompileRequest again;
  Encode(got, &again);
  EXPECT_EQ(again.SerializeAsString(), request.SerializeAsString());
}

TEST(CompileRequests, B8_NamesArePlainRelativePaths) {
  for (const char* name : {"", "/etc/passwd", "..", "../", "a/../b.h", "../a/../b.h", "a//b.h",
                           "./a.h", "a b.h", "-I.h", "a\"b.h", "a\nb.h", "C:x.h"}) {
    v1::CompileRequest request = Request();
    request.mutable_source()->set_name(name);
    ExpectRefused(request, "source.name", "want a relative path");
    request = Request();
    request.add_headers()->set_name(name);
    ExpectRefused(request, "headers[0].name", "want a relative path");
  }
}

TEST(CompileRequests, AHeaderMayLieAboveTheSource) {
  v1::CompileRequest request = Request();
  request.add_headers()->set_name("../../common/check.h");
  ASSERT_OK_AND_ASSIGN(const ModuleSource got, Decode(request, ModuleLimits{}));
  EXPECT_EQ(got.headers[0].name, "../../common/check.h");
  request.mutable_source()->set_name("../kernel.cu");
  ExpectRefused(request, "source.name", "without '..'");
}

TEST(CompileRequests, F5_MacrosAreMacrosAndNothingElse) {
  for (const char* name : {"", "1A", "A-B", "A=B", "A B", "-I"}) {
    v1::CompileRequest request = Request();
    (*request.mutable_options()->mutable_defines())[name] = "1";
    ExpectRefused(request, "options.defines", "want an identifier");
  }
  v1::CompileRequest request = Request();
  (*request.mutable_options()->mutable_defines())["A"] = "1\n#include \"x\"";
  ExpectRefused(request, "options.defines[A]", "printable");
}

TEST(CompileRequests, F15_F16_TextIsBoundedAndHoldsNoNul) {
  v1::CompileRequest request = Request();
  request.mutable_source()->set_text(std::string("int a;\0int b;", 13));
  ExpectRefused(request, "source.text", "byte 6 is NUL");
  request = Request();
  request.mutable_source()->set_text("");
  ExpectRefused(request, "source.text", "empty");
  request = Request();
  request.mutable_source()->set_text(std::string(200 * 1024, ' '));
  request.add_headers()->set_name("a.h");
  request.mutable_headers(0)->set_text(std::string(56 * 1024 + 1, ' '));
  ExpectRefused(request, "source", "want at most 262144 bytes with all headers");
}

TEST(CompileRequests, OptionsAreInRange) {
  v1::CompileRequest request = Request();
  request.mutable_options()->set_max_registers(8);
  ExpectRefused(request, "options.max_registers", "want 16 to 255");
  for (const char* arch :
       {"90", "sm_9x", "compute_90", "sm_90 -I/", "sm_90ab", "sm_", "sm_123456"}) {
    request = Request();
    request.mutable_options()->set_arch(arch);
    ExpectRefused(request, "options.arch", "want a target like sm_90a");
  }
  request = Request();
  request.mutable_options()->set_standard(static_cast<v1::CompileOptions::Standard>(99));
  ExpectRefused(request, "options.standard", "got 99");
  request = Request();
  request.add_name_expressions("f\n<4>");
  ExpectRefused(request, "name_expressions[0]", "printable");
  request = Request();
  for (int i = 0; i < 65; ++i) request.add_name_expressions("f");
  ExpectRefused(request, "name_expressions", "want at most 64, got 65");
}

TEST(LoadRequests, OneKindOfCodeWithinItsLimit) {
  v1::LoadRequest request;
  EXPECT_THAT(Decode(request, ModuleLimits{}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want one of ptx, cubin")));
  request.set_ptx(std::string("a\0b", 3));
  EXPECT_THAT(Decode(request, ModuleLimits{}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ptx: byte 1 is NUL")));
  request.set_cubin(std::string(4 * 1024 * 1024 + 1, 'x'));
  EXPECT_THAT(Decode(request, ModuleLimits{}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                        HasSubstr("want at most 4194304 bytes")));
  request.set_cubin("x");
  ASSERT_OK_AND_ASSIGN(const ModuleSource got, Decode(request, ModuleLimits{}));
  EXPECT_EQ(got.kind, ModuleKind::kCubin);
}

TEST(Occupancies, FollowTheBlockThatIsAskedFor) {
  ModuleFacts facts;
  facts.arch = "sm_90a";
  facts.entries.push_back({.name = "f",
                           .display = "f",
                           .registers = 64,
                           .spill_store_bytes = std::nullopt,
                           .spill_load_bytes = std::nullopt,
                           .max_threads = 1024,
                           .required_block = {},
                           .parameters = {}});
  v1::Module out;
  Encode(facts, &out);
  EncodeOccupancies(facts, {}, &out);
  EXPECT_EQ(out.entries(0).occupancy().block_threads(), 256u);
  EXPECT_EQ(out.entries(0).occupancy().blocks(), 4u);
  EXPECT_EQ(out.entries(0).occupancy().limit(), v1::Occupancy::REGISTERS);
  EXPECT_DOUBLE_EQ(out.entries(0).occupancy().fraction(), 0.5);
  EncodeOccupancies(facts, {.block_threads = 128, .dynamic_shared_bytes = 100 * 1024}, &out);
  EXPECT_EQ(out.entries(0).occupancy().blocks(), 2u);
  EXPECT_EQ(out.entries(0).occupancy().limit(), v1::Occupancy::SHARED_MEMORY);
  facts.arch = "sm_999";
  v1::Module unknown;
  Encode(facts, &unknown);
  EncodeOccupancies(facts, {}, &unknown);
  EXPECT_EQ(unknown.entries(0).occupancy().limit(), v1::Occupancy::LIMIT_UNSPECIFIED);
  v1::ModuleView view;
  view.set_dynamic_shared_bytes(~std::uint64_t{0});
  EXPECT_EQ(Decode(view).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gridclock
