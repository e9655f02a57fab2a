// What the catalogue offers on GPUs, and which of it a call gets. Needs no GPU.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "kernels/api/registry.h"
#include "kernels/catalog/catalog.h"
#include "kernels/catalog/cublaslt.cuh"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

const Registry& Kernels() {
  static const Registry registry = *Registry::Create(BuiltInKernels());
  return registry;
}

std::vector<std::string> VariantsOf(const char* kernel) {
  std::vector<std::string> names;
  for (const Variant& variant : Kernels().Find(kernel)->def.cuda) names.push_back(variant.name);
  return names;
}

struct Ask {
  const char* kernel = "";
  DType dtype = DType::kF32;
  Shape shape = {};
  std::vector<NamedAttribute> attributes = {};
  std::int64_t sm = 90;
  const char* variant = "";
};

absl::StatusOr<std::string> Choose(const Ask& ask) {
  const KernelSpec& spec = Kernels().Find(ask.kernel)->spec;
  std::vector<NamedOperand> inputs;
  for (const OperandSpec& operand : spec.inputs) {
    inputs.push_back({operand.name, {.is_list = false, .tensors = {{ask.dtype, ask.shape}}}});
  }
  GC_ASSIGN_OR_RETURN(const Binding binding, Bind(spec, inputs, ask.attributes));
  GC_ASSIGN_OR_RETURN(const VariantSpec* chosen,
                      ChooseVariant(spec, binding, {.kind = "cuda", .sm = ask.sm}, ask.variant));
  return chosen->name;
}

// The name of the variant, or of the error.
std::string Chosen(const Ask& ask) {
  const auto chosen = Choose(ask);
  return chosen.ok() ? *chosen : absl::StatusCodeToString(chosen.status().code());
}

TEST(CudaVariants, EveryKernelHasThem) {
  for (const auto& [name, kernel] : Kernels().kernels()) {
    EXPECT_FALSE(kernel.def.cuda.empty()) << name;
  }
}

TEST(CudaVariants, StandFromPlainToFast) {
  EXPECT_THAT(VariantsOf("vector_add"), ElementsAre("serial", "one_block", "naive", "vec4"));
  EXPECT_THAT(VariantsOf("square"), ElementsAre("naive", "vec4"));
  EXPECT_THAT(VariantsOf("gelu"), ElementsAre("unfused", "naive", "vec4"));
  for (const char* rows : {"softmax", "log_softmax"}) {
    EXPECT_THAT(VariantsOf(rows), ElementsAre("naive", "online", "shared", "registers")) << rows;
  }
  for (const char* norm : {"layernorm", "rmsnorm"}) {
    EXPECT_THAT(VariantsOf(norm), ElementsAre("naive", "online", "shared", "streamed", "registers"))
        << norm;
  }
  for (const char* kernel : {"mul", "scale", "relu", "sigmoid", "silu", "pow"}) {
    EXPECT_THAT(VariantsOf(kernel), ElementsAre("naive", "vec4")) << kernel;
  }
  EXPECT_THAT(VariantsOf("cast"), ElementsAre("naive", "packs"));
  for (const char* kernel : {"foreach_add", "foreach_mul", "sgd", "adam", "adamw"}) {
    EXPECT_THAT(VariantsOf(kernel), ElementsAre("naive", "foreach", "per_tensor", "param_struct",
                                                "pointer_table", "auto"))
        << kernel;
  }
  EXPECT_THAT(VariantsOf("sum"), ElementsAre("naive", "cub", "two_pass"));
  for (const char* reduction : {"mean", "max", "argmax"}) {
    EXPECT_THAT(VariantsOf(reduction), ElementsAre("naive", "two_pass")) << reduction;
  }
  EXPECT_THAT(VariantsOf("cumsum"), ElementsAre("naive", "scan"));
  EXPECT_THAT(VariantsOf("transpose"), ElementsAre("naive", "unpadded", "tiled", "wide"));
}

#ifdef GRIDCLOCK_HAS_CUBLASLT
bool HasLibrary() {
  return cublaslt::IsHere();
}
#else
bool HasLibrary() {
  return false;
}
#endif

// cuBLASLt is offered where it is installed, and takes every call there. tf32 is never chosen.
TEST(CudaVariants, MatmulEndsInTheLibraryOrInTiles) {
  std::vector<std::string> expected = {"naive", "tiled", "register_tiled"};
  if (HasLibrary()) expected.insert(expected.end(), {"cublaslt_tf32", "cublaslt"});
  EXPECT_THAT(VariantsOf("matmul"), ElementsAreArray(expected));
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    const bool wide = dtype == DType::kF32 || dtype == DType::kF64;
    EXPECT_EQ(Chosen({.kernel = "matmul", .dtype = dtype, .shape = {64, 64}}),
              HasLibrary() ? "cublaslt"
              : wide       ? "register_tiled"
                           : "tiled");
    EXPECT_EQ(
        Chosen(
            {.kernel = "matmul", .dtype = dtype, .shape = {64, 64}, .variant = "register_tiled"}),
        wide ? "register_tiled" : "INVALID_ARGUMENT");
  }
  if (!HasLibrary()) return;
  const auto tf32 = [](DType dtype) {
    return Chosen(
        {.kernel = "matmul", .dtype = dtype, .shape = {64, 64}, .variant = "cublaslt_tf32"});
  };
  EXPECT_EQ(tf32(DType::kF32), "cublaslt_tf32");
  EXPECT_EQ(tf32(DType::kBF16), "INVALID_ARGUMENT");
}

TEST(CudaVariants, AProductWithGeluEndsInTheLibraryOrInTiles) {
  const auto chosen = [](const char* form, DType dtype) {
    const KernelSpec& spec = Kernels().Find("matmul_bias_gelu")->spec;
    const auto operand = [&](const char* name, const Shape& shape) {
      return NamedOperand{name, {.is_list = false, .tensors = {{dtype, shape}}}};
    };
    const auto binding =
        Bind(spec, {operand("a", {3, 4}), operand("b", {4, 5}), operand("bias", {5})},
             {{"approximate", std::string(form)}});
    EXPECT_THAT(binding, IsOk());
    if (!binding.ok()) return std::string();
    const auto variant = ChooseVariant(spec, *binding, {.kind = "cuda", .sm = 90}, "");
    EXPECT_THAT(variant, IsOk());
    return variant.ok() ? (*variant)->name : "";
  };
  for (const char* form : {"tanh", "none"}) {
    EXPECT_EQ(chosen(form, DType::kF64), HasLibrary() ? "cublaslt" : "register_tiled");
    EXPECT_EQ(chosen(form, DType::kF32), HasLibrary() ? "cublaslt" : "register_tiled");
    EXPECT_EQ(chosen(form, DType::kBF16), HasLibrary() ? "cublaslt" : "tiled");
  }
}

// What may lose digits is asked for.
TEST(CudaVariants, DistancesAreDirectUnlessAskedOtherwise) {
  EXPECT_THAT(VariantsOf("cdist"), ElementsAre("naive", "matmul", "direct"));
  const std::vector<NamedAttribute> manhattan = {{"p", 1.0}};
  EXPECT_EQ(Chosen({.kernel = "cdist", .shape = {64, 64}}), "direct");
  EXPECT_EQ(Chosen({.kernel = "cdist", .shape = {64, 64}, .variant = "matmul"}), "matmul");
  EXPECT_EQ(
      Chosen({.kernel = "cdist", .shape = {64, 64}, .attributes = manhattan, .variant = "matmul"}),
      "INVALID_ARGUMENT");
}

#ifdef GRIDCLOCK_HAS_CUBLASLT
TEST(CublasLt, IsTakenInTheVersionOfItsHeaderAlone) {
  const std::string folder = absl::StrCat(testing::TempDir(), "cublaslt_", getpid());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const char* const path = std::getenv("LD_LIBRARY_PATH");
  const std::string was = path == nullptr ? "" : path;
  setenv("LD_LIBRARY_PATH", folder.c_str(), /*overwrite=*/1);
  for (const int version : {CUBLAS_VER_MAJOR - 1, CUBLAS_VER_MAJOR + 1}) {
    std::ofstream(absl::StrCat(folder, "/libcublasLt.so.", version)) << "other";
  }
  std::ofstream(folder + "/libcublasLt.so") << "any";
  EXPECT_THAT(cublaslt::FindLibrary(), testing::Not(testing::StartsWith(folder)));
  const std::string right = absl::StrCat(folder, "/libcublasLt.so.", CUBLAS_VER_MAJOR);
  std::ofstream(right) << "right";
  EXPECT_EQ(cublaslt::FindLibrary(), right);
  setenv("LD_LIBRARY_PATH", was.c_str(), /*overwrite=*/1);
  std::filesystem::remove_all(folder);
}
#endif

TEST(CudaVariants, ShortRowsOfSoftmaxStayInRegisters) {
  EXPECT_EQ(Chosen({.kernel = "softmax", .shape = {8192, 1024}}), "registers");
  EXPECT_EQ(Chosen({.kernel = "softmax", .dtype = DType::kF64, .shape = {8192, 1024}}), "shared");
  EXPECT_EQ(Chosen({.kernel = "softmax", .shape = {8, 1025}, .variant = "registers"}),
            "INVALID_ARGUMENT");
}

TEST(CudaVariants, LongRowsOfSoftmaxStayInSharedMemoryAsFarAsTheGpuHasIt) {
  EXPECT_EQ(Chosen({.kernel = "softmax", .shape = {8192, 8192}}), "shared");
  EXPECT_EQ(Chosen({.kernel = "softmax", .shape = {1024, 131072}}), "shared");
  EXPECT_EQ(Chosen({.kernel = "softmax", .shape = {1024, 131072}, .sm = 80}), "online");
  EXPECT_EQ(Chosen({.kernel = "softmax", .shape = {4, 1 << 20}}), "online");
}

// Of normalisation over rows of x, with a weight and, in layernorm, a bias.
std::string ChosenNorm(const std::string& kernel, const Shape& shape, DType dtype,
                       std::int64_t sm) {
  const KernelSpec& spec = Kernels().Find(kernel)->spec;
  const auto tensor = [dtype](const char* name, const Shape& of) {
    return NamedOperand{name, {.is_list = false, .tensors = {{dtype, of}}}};
  };
  const Shape columns = {shape.back()};
  std::vector<NamedOperand> inputs = {tensor("x", shape), tensor("weight", columns)};
  if (kernel == "layernorm") inputs.push_back(tensor("bias", columns));
  const auto binding = Bind(spec, inputs, {});
  return ChooseVariant(spec, *binding, {.kind = "cuda", .sm = sm}, "").value()->name;
}

TEST(CudaVariants, RowsOfNormsStreamAsFarAsClustersHoldTheirColumns) {
  for (const char* norm : {"layernorm", "rmsnorm"}) {
    SCOPED_TRACE(norm);
    const auto chosen = [&](const Shape& shape, DType dtype, std::int64_t sm) {
      return ChosenNorm(norm, shape, dtype, sm);
    };
    EXPECT_EQ(chosen({8192, 1024}, DType::kF32, 90), "registers");
    EXPECT_EQ(chosen({8192, 2048}, DType::kF32, 90), "shared");
    EXPECT_EQ(chosen({8192, 8192}, DType::kBF16, 90), "streamed");
    EXPECT_EQ(chosen({8192, 16384}, DType::kF32, 90), "shared");
    EXPECT_EQ(chosen({2048, 32768}, DType::kF32, 90), "streamed");
    EXPECT_EQ(chosen({1024, 131072}, DType::kF32, 90), "streamed");
    EXPECT_EQ(chosen({1024, 131073}, DType::kF32, 90), "shared");
    EXPECT_EQ(chosen({1024, 65537}, DType::kF64, 90), "shared");
    EXPECT_EQ(chosen({8192, 8192}, DType::kF32, 80), "shared");
    EXPECT_EQ(chosen({8192, 8192}, DType::kF32, 120), "shared");
  }
}

// rmsnorm has half of layernorm's columns and one reduction of its two.
TEST(CudaVariants, MiddlingRowsStreamInLayernormAlone) {
  for (const std::int64_t length : {2049, 8192}) {
    EXPECT_EQ(ChosenNorm("layernorm", {8192, length}, DType::kF32, 90), "streamed") << length;
    EXPECT_EQ(ChosenNorm("rmsnorm", {8192, length}, DType::kF32, 90), "shared") << length;
  }
}

// N * sizeof(T) would overflow where the tensor holds nothing.
TEST(CudaVariants, NoConditionOverflows) {
  constexpr std::int64_t kVast = std::int64_t{1} << 62;
  EXPECT_EQ(Chosen({.kernel = "softmax", .shape = {0, kVast}}), "online");
  EXPECT_EQ(Chosen({.kernel = "sum", .shape = {0, kVast}}), "two_pass");
}

TEST(CudaVariants, CubTakesRowsAlone) {
  const auto along = [](std::int64_t axis) {
    return Chosen({.kernel = "sum",
                   .shape = {64, 64},
                   .attributes = {{.name = "axis", .value = axis}},
                   .variant = "cub"});
  };
  EXPECT_EQ(along(1), "cub");
  EXPECT_EQ(along(0), "INVALID_ARGUMENT");
}

// A table of the pointers and sizes, and as many temporary elements as the list has.
TEST(CudaVariants, ScratchOfListsFollowsTheirLength) {
  const KernelSpec& spec = Kernels().Find("adam")->spec;
  const OperandValue list{.is_list = true,
                          .tensors = {{DType::kF32, {3}}, {DType::kF32, {}}, {DType::kF32, {0}}}};
  ASSERT_OK_AND_ASSIGN(const Binding binding,
                       Bind(spec, {{"p", list}, {"g", list}, {"m", list}, {"v", list}}, {}));
  const auto bytes_of = [&](const char* variant) {
    std::vector<std::int64_t> bytes;
    for (const VariantSpec& candidate : spec.variants) {
      if (candidate.device_kind != "cuda" || candidate.name != variant) continue;
      const auto scratch = BindScratch(candidate.clauses, binding);
      EXPECT_TRUE(scratch.ok()) << scratch.status();
      if (!scratch.ok()) continue;
      for (const OperandValue& value : *scratch) bytes.push_back(Bytes(value.tensors[0]));
    }
    return bytes;
  };
  EXPECT_THAT(bytes_of("naive"), ElementsAre(4 * 4, 4 * 4));
  EXPECT_THAT(bytes_of("foreach"), ElementsAre(3 * (6 * 8 + 12), 4 * 4, 4 * 4));
  EXPECT_THAT(bytes_of("per_tensor"), ElementsAre());
  EXPECT_THAT(bytes_of("pointer_table"), ElementsAre(3 * (4 * 8 + 12)));
  EXPECT_THAT(bytes_of("auto"), ElementsAre(3 * (4 * 8 + 12)));
}

TEST(CudaVariants, ScratchIsDeclared) {
  const KernelSpec& spec = Kernels().Find("gelu")->spec;
  const OperandValue x{.is_list = false, .tensors = {{DType::kBF16, {3, 5}}}};
  ASSERT_OK_AND_ASSIGN(const Binding binding, Bind(spec, {{"x", x}}, {}));
  for (const VariantSpec& variant : spec.variants) {
    if (variant.device_kind != "cuda" || variant.name != "unfused") continue;
    ASSERT_OK_AND_ASSIGN(const auto scratch, BindScratch(variant.clauses, binding));
    ASSERT_EQ(scratch.size(), 2);
    // Sixteen bits are kept as 32 between the launches.
    EXPECT_EQ(Bytes(scratch[0].tensors[0]), 15 * 4);
    return;
  }
  FAIL() << "gelu has no variant 'unfused' on GPUs";
}

}  // namespace
}  // namespace gridclock
