// Compiled without fused multiply-adds: docs/generators.md.
#include <algorithm>
#include <type_traits>

#include "kernels/device/cuda/generate.h"
#include "proto/types/convert.h"
#include "proto/types/random_values.h"

namespace gridclock {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerSm = 8;

// The generator as its elements need it.
struct Recipe {
  GeneratorKind kind;
  double a, b, width;
  std::uint64_t key;
  WholeNumbers whole;
};

__device__ double DoubleOf(const Recipe& recipe, std::uint64_t index) {
  switch (recipe.kind) {
    case GeneratorKind::kRandn: {
      const double q = random_values::Quantile(random_values::Bits(recipe.key, index));
      return fabs(q) > random_values::kCentre ? random_values::TailNormal(q)
                                              : random_values::CentralNormal(q);
    }
    case GeneratorKind::kUniform:
      return random_values::Uniform(random_values::Bits(recipe.key, index), recipe.a, recipe.b,
                                    recipe.width);
    case GeneratorKind::kArange:
      return static_cast<double>(index);
    default:
      return recipe.a;
  }
}

__device__ std::uint64_t WholeOf(const Recipe& recipe, std::uint64_t index) {
  const std::uint64_t bits = random_values::Bits(recipe.key, index);
  return recipe.whole.low + (recipe.whole.all ? bits : __umul64hi(bits, recipe.whole.count));
}

// How each dtype is stored: from a double, and from the bits of a whole number.
template <typename T>
struct Number {
  using Type = T;
  __device__ static T Of(double x) {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(x);
    } else {
      return IntegerFromDouble<T>(x);
    }
  }
  __device__ static T OfWhole(std::uint64_t x) {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(static_cast<double>(static_cast<std::int64_t>(x)));
    } else {
      return static_cast<T>(x);
    }
  }
};
template <typename T, SmallFloat kLayout>
struct Small {
  using Type = T;
  __device__ static T Of(double x) { return static_cast<T>(EncodeSmallFloat<kLayout>(x)); }
  __device__ static T OfWhole(std::uint64_t x) {
    return Of(static_cast<double>(static_cast<std::int64_t>(x)));
  }
};
struct Truth {
  using Type = std::uint8_t;
  __device__ static std::uint8_t Of(double x) { return x != 0; }
  __device__ static std::uint8_t OfWhole(std::uint64_t x) { return static_cast<std::uint8_t>(x); }
};

template <typename To>
__global__ void __launch_bounds__(kThreads)
    GenerateKernel(Recipe recipe, std::uint64_t first, std::uint64_t count, typename To::Type* to) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    to[i] = recipe.kind == GeneratorKind::kRandint ? To::OfWhole(WholeOf(recipe, first + i))
                                                   : To::Of(DoubleOf(recipe, first + i));
  }
}

template <typename Body>
cudaError_t WithDType(DType dtype, Body body) {
  switch (dtype) {
    case DType::kF64:
      return body(Number<double>());
    case DType::kF32:
      return body(Number<float>());
    case DType::kF16:
      return body(Small<std::uint16_t, kF16Layout>());
    case DType::kBF16:
      return body(Small<std::uint16_t, kBF16Layout>());
    case DType::kF8E4M3:
      return body(Small<std::uint8_t, kF8E4M3Layout>());
    case DType::kF8E5M2:
      return body(Small<std::uint8_t, kF8E5M2Layout>());
    case DType::kI64:
      return body(Number<std::int64_t>());
    case DType::kI32:
      return body(Number<std::int32_t>());
    case DType::kI16:
      return body(Number<std::int16_t>());
    case DType::kI8:
      return body(Number<std::int8_t>());
    case DType::kU64:
      return body(Number<std::uint64_t>());
    case DType::kU32:
      return body(Number<std::uint32_t>());
    case DType::kU16:
      return body(Number<std::uint16_t>());
    case DType::kU8:
      return body(Number<std::uint8_t>());
    case DType::kBool:
      return body(Truth());
  }
  return cudaErrorInvalidValue;
}

Recipe RecipeOf(const Generator& generator) {
  double a = generator.a;
  if (generator.kind == GeneratorKind::kZeros) a = 0;
  if (generator.kind == GeneratorKind::kOnes) a = 1;
  return {.kind = generator.kind,
          .a = a,
          .b = generator.b,
          .width = generator.b - generator.a,
          .key = random_values::Mix(generator.seed),
          .whole = WholeNumbersOf(generator)};
}

}  // namespace

cudaError_t LaunchGenerate(const Generator& generator, DType dtype, std::int64_t first,
                           std::int64_t count, void* to, int sms, cudaStream_t stream) {
  if (count <= 0) return cudaSuccess;
  const auto blocks =
      std::min<std::int64_t>((count + kThreads - 1) / kThreads, std::int64_t{kBlocksPerSm} * sms);
  const Recipe recipe = RecipeOf(generator);
  return WithDType(dtype, [&](auto how) {
    using To = decltype(how);
    GenerateKernel<To><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
        recipe, static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(count),
        static_cast<typename To::Type*>(to));
    return cudaGetLastError();
  });
}

}  // namespace gridclock
