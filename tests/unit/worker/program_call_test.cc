#include "kernels/worker/program_call.h"

#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "kernels/device/cpu/cpu_device.h"
#include "kernels/worker/global_value.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// params table(a), table(c), sizes(a), pointers(a), n: int
void DoubleAll(const NativeCall& call) {
  const auto* const* a = call.Pointer<const float*>(0);
  auto* const* c = call.Pointer<float*>(1);
  const auto* sizes = call.Pointer<std::int64_t>(2);
  const auto* by_value = static_cast<float* const*>(call.params[3]);
  for (int i = 0; i < call.Value<int>(4); ++i) {
    if (by_value[i] != a[i] || by_value[call.Value<int>(4)] != nullptr) return;
    for (std::int64_t k = 0; k < sizes[i]; ++k) c[i][k] = 2 * a[i][k];
  }
}

TEST(ProgramCall, GivesListsAsTablesSizesAndPointers) {
  ASSERT_OK_AND_ASSIGN(const auto device, CpuDevice::Create({.threads = 1, .calibrate = false}));
  const Natives natives = {.functions = {{"double_all", DoubleAll}}, .variables = {}};
  ModuleStore modules(*device, natives, {});
  WorkerProgram program{
      .program = *CompleteProgram(
          {.words = *ParseKernelSpec(
               "twice a: f32[*]... -> c: f32[*]... grid (1) block (1) "
               "params table(a), table(c), sizes(a), pointers(a), n: int = count(a)"),
           .launches = {{.module = "m", .entry = "double_all", .clauses = {}}},
           .globals = {}}),
      .modules = {{.id = "m", .kind = ModuleKind::kTestNative, .code = {}}}};
  const OperandValue list{
      .is_list = true,
      .tensors = {{.dtype = DType::kF32, .shape = {2}}, {.dtype = DType::kF32, .shape = {3}}}};
  ASSERT_OK_AND_ASSIGN(const Binding binding, Bind(program.program.words, {{"a", list}}, {}));

  ASSERT_OK_AND_ASSIGN(const auto call, ProgramCall::Make(program, binding, *device, modules));
  float a0[] = {1, 2}, a1[] = {3, 4, 5}, c0[2] = {}, c1[3] = {};
  const OperandView inputs[] = {{&list, {a0, a1}}}, outputs[] = {{&list, {c0, c1}}};
  ASSERT_THAT(call->Point({.inputs = inputs, .outputs = outputs, .scratch = {}}, *device), IsOk());
  ASSERT_THAT(call->Launch(), IsOk());

  EXPECT_THAT(c0, ::testing::ElementsAre(2, 4));
  EXPECT_THAT(c1, ::testing::ElementsAre(6, 8, 10));
  EXPECT_GE(call->table_bytes(), 3 * 2 * sizeof(void*));
}

TEST(ProgramCall, AVariableThatThereIsNotIsToldByItsNameAsItCanBeRead) {
  ASSERT_OK_AND_ASSIGN(const auto device, CpuDevice::Create({.threads = 1, .calibrate = false}));
  const Natives natives = {.functions = {{"none", [](const NativeCall&) {}}}, .variables = {}};
  ModuleStore modules(*device, natives, {});
  const WorkerProgram program{
      .program = *CompleteProgram(
          {.words = *ParseKernelSpec("none a: f32[N] -> c: f32[N]; k: i64 = 1 grid (1) "
                                     "block (1) params n: int = N"),
           .launches = {{.module = "m", .entry = "none", .clauses = {}}},
           .globals = {{.module = "m", .name = "g\n2", .from = "k"}}}),
      .modules = {{.id = "m", .kind = ModuleKind::kTestNative, .code = {}}}};
  const OperandValue value{.is_list = false, .tensors = {{.dtype = DType::kF32, .shape = {2}}}};
  ASSERT_OK_AND_ASSIGN(const Binding binding, Bind(program.program.words, {{"a", value}}, {}));
  const absl::Status status = ProgramCall::Make(program, binding, *device, modules).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(status, ReasonIs("UNKNOWN_NAME"));
  EXPECT_EQ(DetailsOf(status).field, "program.globals");
  EXPECT_THAT(status.message(), HasSubstr("module 'm' has no variable 'g\\n2'"));
}

const ProgramGlobal kGlobal = {.module = "m", .name = "scale", .from = "k"};

template <typename T>
T ValueOf(const AttributeValue& value) {
  const auto bytes = GlobalValue(kGlobal, value, sizeof(T));
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  T out{};
  if (bytes.ok()) std::copy(bytes->begin(), bytes->end(), reinterpret_cast<std::byte*>(&out));
  return out;
}

TEST(GlobalValue, HasTheSizeOfItsVariable) {
  EXPECT_EQ(ValueOf<float>(1.5), 1.5F);
  EXPECT_EQ(ValueOf<double>(1.5), 1.5);
  EXPECT_EQ(ValueOf<std::int8_t>(std::int64_t{-128}), -128);
  EXPECT_EQ(ValueOf<std::uint8_t>(std::int64_t{255}), 255);
  EXPECT_EQ(ValueOf<std::int32_t>(std::int64_t{-7}), -7);
  EXPECT_EQ(ValueOf<std::int64_t>(std::int64_t{1} << 40), std::int64_t{1} << 40);
  EXPECT_EQ(ValueOf<bool>(true), true);
  EXPECT_EQ(ValueOf<std::int32_t>(true), 1);
}

TEST(GlobalValue, RefusesWhatDoesNotFit) {
  EXPECT_THAT(GlobalValue(kGlobal, std::int64_t{256}, 1),
              StatusIs(kInvalid, HasSubstr("global 'scale' from 'k': 256 does not fit")));
  EXPECT_THAT(GlobalValue(kGlobal, std::int64_t{-129}, 1), StatusIs(kInvalid, HasSubstr("-129")));
  EXPECT_THAT(GlobalValue(kGlobal, std::int64_t{1}, 3),
              StatusIs(kInvalid, HasSubstr("1, 2, 4 or 8 bytes, it has 3")));
  EXPECT_THAT(GlobalValue(kGlobal, 1.5, 2), StatusIs(kInvalid, HasSubstr("float or a double")));
  EXPECT_THAT(GlobalValue(kGlobal, std::string("tanh"), 4),
              StatusIs(kInvalid, HasSubstr("i64, f64 or bool")));
  const OperandValue input{.is_list = false, .tensors = {{.dtype = DType::kF32, .shape = {3}}}};
  EXPECT_THAT(CheckGlobalInput(kGlobal, input, 12), IsOk());
  EXPECT_THAT(CheckGlobalInput(kGlobal, input, 16),
              StatusIs(kInvalid, HasSubstr("the input has 12 bytes, the variable 16")));
}

}  // namespace
}  // namespace gridclock
