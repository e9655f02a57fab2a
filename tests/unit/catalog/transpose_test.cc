// Transposes of tensors with dimensions of one element: what is left of them is a matrix, or none.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/catalog/launch.h"

namespace gridclock {
namespace {

using Numbers = std::vector<std::uint32_t>;

// In order, and says how many items it was asked for.
class CountingThreads final : public Threads {
 public:
  int count() const override { return 1; }
  void ParallelFor(std::int64_t n, std::int64_t,
                   absl::FunctionRef<void(std::int64_t, std::int64_t)> body) override {
    items += n;
    body(0, n);
  }
  std::int64_t items = 0;
};

struct Swap {
  std::vector<std::int64_t> dims;
  std::int64_t i, j;
  Shape shape() const { return Shape(dims.begin(), dims.end()); }
};

void PrintTo(const Swap& swap, std::ostream* os) {
  *os << ToText(TensorSpec{DType::kU32, swap.shape()}) << ", i = " << swap.i << ", j = " << swap.j;
}

// Elements 0, 1, 2... of x, each to where its indices say.
Numbers Turned(const Swap& swap) {
  const auto i = static_cast<std::size_t>(swap.i), j = static_cast<std::size_t>(swap.j);
  Shape to = swap.shape();
  std::swap(to[i], to[j]);
  Numbers y(static_cast<std::size_t>(Elements(to)));
  Shape index(to.size());
  for (std::size_t element = 0; element < y.size(); ++element) {
    auto rest = static_cast<std::int64_t>(element);
    for (std::size_t d = index.size(); d-- > 0; rest /= swap.dims[d]) {
      index[d] = rest % swap.dims[d];
    }
    std::swap(index[i], index[j]);
    std::int64_t place = 0;
    for (std::size_t d = 0; d < to.size(); ++d) place = place * to[d] + index[d];
    y[static_cast<std::size_t>(place)] = static_cast<std::uint32_t>(element);
  }
  return y;
}

absl::StatusOr<Numbers> Transposed(const Swap& swap, std::size_t variant, Threads& threads) {
  GC_ASSIGN_OR_RETURN(const Registry registry, Registry::Create(BuiltInKernels()));
  const RegisteredKernel& kernel = *registry.Find("transpose");
  const OperandValue value{.is_list = false, .tensors = {{DType::kU32, swap.shape()}}};
  GC_ASSIGN_OR_RETURN(const Binding binding,
                      Bind(kernel.spec, {{"x", value}}, {{"i", swap.i}, {"j", swap.j}}));
  Numbers x(static_cast<std::size_t>(Elements(swap.shape()))), y(x.size());
  std::iota(x.begin(), x.end(), 0);
  const std::vector<OperandView> in = {{&binding.inputs[0], {x.data()}}};
  const std::vector<OperandView> out = {{&binding.outputs[0], {y.data()}}};
  GC_RETURN_IF_ERROR(kernel.def.cpu[variant].launch(
      {.binding = &binding, .inputs = in, .outputs = out, .scratch = {}, .threads = &threads}));
  return y;
}

class WithOnes : public testing::TestWithParam<Swap> {};

TEST_P(WithOnes, EachElementGoesToItsPlace) {
  for (const std::size_t variant : {0, 1}) {
    CountingThreads threads;
    ASSERT_OK_AND_ASSIGN(const Numbers y, Transposed(GetParam(), variant, threads));
    EXPECT_EQ(y, Turned(GetParam())) << "variant " << variant;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Transposes, WithOnes,
    testing::Values(Swap{{1, 70, 33}, 0, 2}, Swap{{70, 33, 1}, 0, 2}, Swap{{1, 70, 1}, 0, 2},
                    Swap{{1, 70}, 0, 1}, Swap{{70, 1}, 0, 1}, Swap{{1, 1}, 0, 1},
                    Swap{{3, 1, 70, 5, 33, 2}, 1, 4}, Swap{{3, 70, 5, 33, 1, 2}, 4, 1},
                    Swap{{3, 1, 70, 33, 1, 2}, 1, 4}, Swap{{3, 1, 33, 2}, 1, 2},
                    Swap{{3, 1, 5, 1, 7}, 0, 4}, Swap{{3, 70, 1, 33}, 1, 3}));

TEST(TransposesWithOnes, AreOfWholeTiles) {
  constexpr std::int64_t kTiles = 3 * 4;
  for (const Swap& swap :
       {Swap{{1, 192, 256}, 0, 2}, Swap{{192, 256, 1}, 0, 2}, Swap{{1, 1, 192, 256, 1}, 1, 3}}) {
    CountingThreads threads;
    ASSERT_THAT(Transposed(swap, 1, threads), IsOk());
    EXPECT_EQ(threads.items, kTiles) << testing::PrintToString(swap);
  }
}

}  // namespace
}  // namespace gridclock
