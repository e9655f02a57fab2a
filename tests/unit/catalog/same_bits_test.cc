// A kernel's result does not depend on how many threads computed it.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/device/cpu/tbb_threads.h"
#include "proto/types/generator.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/catalog/launch.h"

namespace gridclock {
namespace {

using Raw = std::vector<std::byte>;

struct Question {
  std::string kernel;
  std::vector<std::pair<std::string, Shape>> inputs;
  std::vector<NamedAttribute> attributes = {};
};

Raw Made(const TensorSpec& tensor, std::uint64_t seed) {
  Raw bytes(static_cast<std::size_t>(Bytes(tensor)));
  Generate({GeneratorKind::kRandn, 0, 0, seed}, tensor.dtype, 0, bytes);
  return bytes;
}

// The bytes of output 0 for inputs of these bytes.
absl::StatusOr<Raw> AnswerOf(const Registry& registry, const Question& question, DType dtype,
                             int thread_count, std::vector<Raw> tensors) {
  const RegisteredKernel* kernel = registry.Find(question.kernel);
  if (kernel == nullptr) return absl::NotFoundError(question.kernel);
  std::vector<NamedOperand> inputs;
  for (const auto& [name, shape] : question.inputs) {
    inputs.push_back({name, {.is_list = false, .tensors = {{dtype, shape}}}});
  }
  GC_ASSIGN_OR_RETURN(const Binding binding, Bind(kernel->spec, inputs, question.attributes));
  tensors.emplace_back(static_cast<std::size_t>(Bytes(binding.outputs[0].tensors[0])));
  std::vector<void*> data;
  data.reserve(tensors.size());
  for (Raw& tensor : tensors) data.push_back(tensor.data());
  TbbThreads threads(thread_count);
  GC_RETURN_IF_ERROR(LaunchFastest(*kernel, binding, data, threads));
  return tensors.back();
}

absl::StatusOr<Raw> Answer(const Registry& registry, const Question& question, DType dtype,
                           int thread_count) {
  std::vector<Raw> tensors;
  for (const auto& [name, shape] : question.inputs) {
    tensors.push_back(Made({dtype, shape}, 1 + tensors.size()));
  }
  return AnswerOf(registry, question, dtype, thread_count, std::move(tensors));
}

NamedAttribute Axis(std::int64_t axis) {
  return {"axis", axis};
}

// Shapes that are cut between threads in each way that a kernel knows.
std::vector<Question> Questions() {
  return {{"sum", {{"x", {150'001}}}},
          {"sum", {{"x", {3, 70'001}}}},
          {"sum", {{"x", {600, 1024}}}},
          {"sum", {{"x", {701, 5}}}},
          {"max", {{"x", {601, 1024}}}},
          {"sum", {{"x", {5, 33'000}}}},
          {"sum", {{"x", {40'000, 7}}}, {Axis(0)}},
          {"sum", {{"x", {3001, 300}}}, {Axis(0)}},
          {"sum", {{"x", {1100, 2050}}}, {Axis(0)}},
          {"sum", {{"x", {1030, 5000}}}, {Axis(0)}},
          {"sum", {{"x", {3, 1100, 1025}}}, {Axis(1)}},
          {"sum", {{"x", {9, 1500, 33}}}, {Axis(1)}},
          {"mean", {{"x", {150'001}}}},
          {"mean", {{"x", {3001, 300}}}, {Axis(0)}},
          {"max", {{"x", {300'001}}}},
          {"argmax", {{"x", {3, 150'000}}}},
          {"argmax", {{"x", {40'000, 7}}}, {Axis(0)}},
          {"argmax", {{"x", {3, 1100, 1025}}}, {Axis(1)}},
          {"layernorm", {{"x", {70'001}}, {"weight", {70'001}}, {"bias", {70'001}}}},
          {"layernorm", {{"x", {300, 257}}, {"weight", {257}}, {"bias", {257}}}},
          {"rmsnorm", {{"x", {3, 40'000}}, {"weight", {40'000}}}},
          {"log_softmax", {{"x", {70'001}}}},
          {"cumsum", {{"x", {150'001}}}},
          {"cumsum", {{"x", {3, 70'001}}}},
          {"cumsum", {{"x", {3, 3001, 65}}}, {Axis(1)}},
          {"transpose", {{"x", {3, 517, 1025}}}},
          {"softmax", {{"x", {70'001}}}},
          {"softmax", {{"x", {3, 40'000}}}},
          {"softmax", {{"x", {300, 257}}}},
          {"gelu", {{"x", {100'003}}}},
          {"matmul", {{"a", {131, 300}}, {"b", {300, 197}}}},
          {"matmul", {{"a", {2, 90, 70}}, {"b", {2, 70, 150}}}},
          {"matmul", {{"a", {40, 64}}, {"b", {64, 256}}}},
          {"matmul", {{"a", {3, 70, 33}}, {"b", {3, 33, 64}}}},
          {"matmul_bias_gelu", {{"a", {40, 64}}, {"b", {64, 128}}, {"bias", {128}}}},
          {"matmul_bias_gelu", {{"a", {131, 300}}, {"b", {300, 197}}, {"bias", {197}}}},
          {"cdist", {{"a", {131, 300}}, {"b", {197, 300}}}}};
}

TEST(SameBits, WithAnyNumberOfThreads) {
  ASSERT_OK_AND_ASSIGN(const Registry registry, Registry::Create(BuiltInKernels()));
  for (const Question& question : Questions()) {
    for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16}) {
      if (dtype == DType::kF16 && question.kernel == "cdist") continue;  // It has none.
      ASSERT_OK_AND_ASSIGN(const Raw alone, Answer(registry, question, dtype, 1));
      for (const int threads : {2, 3, 4, 7, 20}) {
        ASSERT_OK_AND_ASSIGN(const Raw together, Answer(registry, question, dtype, threads));
        EXPECT_TRUE(alone == together)
            << question.kernel << " " << ToText(TensorSpec{dtype, question.inputs[0].second})
            << " with " << threads << " threads";
      }
    }
  }
}

Raw Turned(const Raw& matrix, std::int64_t rows, std::int64_t columns, std::size_t size) {
  Raw turned(matrix.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto from = static_cast<std::size_t>(i * columns + j) * size;
      const auto to = static_cast<std::size_t>(j * rows + i) * size;
      std::memcpy(&turned[to], &matrix[from], size);
    }
  }
  return turned;
}

// A product of [m, k] by [k, 32] whose operands lie turned where it says so.
absl::StatusOr<Raw> Product(const Registry& registry, DType dtype, std::int64_t m, std::int64_t k,
                            bool ta, bool tb) {
  constexpr std::int64_t kN = 32;
  const auto size = static_cast<std::size_t>(SizeOf(dtype));
  const Raw a = Made({dtype, {m, k}}, 1), b = Made({dtype, {k, kN}}, 2);
  const Question question{
      "matmul",
      {{"a", ta ? Shape{k, m} : Shape{m, k}}, {"b", tb ? Shape{kN, k} : Shape{k, kN}}},
      {{"ta", ta}, {"tb", tb}}};
  return AnswerOf(registry, question, dtype, 1,
                  {ta ? Turned(a, m, k, size) : a, tb ? Turned(b, k, kN, size) : b});
}

// Small matrices are read where they lie, but for a b that lies turned.
TEST(SameBits, OfAProductHoweverItsOperandsLie) {
  ASSERT_OK_AND_ASSIGN(const Registry registry, Registry::Create(BuiltInKernels()));
  for (const DType dtype : {DType::kF64, DType::kF32}) {
    for (const auto& [m, k] : {std::pair{43, 40}, {15, 256}, {3, 64}, {12, 256}}) {
      ASSERT_OK_AND_ASSIGN(const Raw packed, Product(registry, dtype, m, k, false, true));
      for (const bool ta : {false, true}) {
        ASSERT_OK_AND_ASSIGN(const Raw in_place, Product(registry, dtype, m, k, ta, false));
        EXPECT_TRUE(in_place == packed) << m << " x " << k << " " << Name(dtype) << " " << ta;
      }
    }
  }
}

}  // namespace
}  // namespace gridclock
