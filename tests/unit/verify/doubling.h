// A kernel that doubles, and its operands with the right results.
#ifndef GRIDCLOCK_TESTS_UNIT_VERIFY_DOUBLING_H_
#define GRIDCLOCK_TESTS_UNIT_VERIFY_DOUBLING_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/verify/verify.h"

namespace gridclock {

// Parts of the grain, one after the other.
class OneThread final : public Threads {
 public:
  explicit OneThread(int said = 1) : said_(said) {}
  int count() const override { return said_; }
  void ParallelFor(std::int64_t n, std::int64_t grain,
                   absl::FunctionRef<void(std::int64_t, std::int64_t)> body) override {
    for (std::int64_t begin = 0; begin < n; begin += grain) {
      body(begin, std::min(n, begin + grain));
    }
  }

 private:
  const int said_;  // How many it says that it is.
};

// y = 2x, one element a unit.
inline KernelDef Doubling() {
  KernelDef def;
  def.reference.units = [](const Binding& binding) {
    return Elements(binding.outputs[0].tensors[0].shape);
  };
  def.reference.unit_elements = [](const Binding&) -> std::int64_t { return 1; };
  def.reference.accumulation = [](const Binding&) -> std::int64_t { return 1; };
  def.reference.compute =
      [](const Binding&, absl::FunctionRef<double(std::size_t, std::int64_t)> in, std::int64_t unit,
         std::size_t, std::span<double> result) { result[0] = 2 * in(0, unit); };
  return def;
}

class DoublingTest : public ::testing::Test {
 protected:
  explicit DoublingTest(std::int64_t n, int threads = 1) : threads_(threads), x_(n), y_(n) {
    spec_.name = "double";
    spec_.inputs.resize(1);
    spec_.inputs[0].name = "x";
    spec_.outputs.resize(1);
    spec_.outputs[0].name = "y";
    const OperandValue value{.is_list = false, .tensors = {{.dtype = DType::kF32, .shape = {n}}}};
    binding_.spec = &spec_;
    binding_.inputs = {value};
    binding_.outputs = {value};
    for (std::int64_t i = 0; i < n; ++i) {
      x_[i] = static_cast<float>(i) - 500;
      y_[i] = 2 * x_[i];
    }
  }

  OneThread threads_;
  KernelSpec spec_;
  Binding binding_;
  std::vector<float> x_, y_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_UNIT_VERIFY_DOUBLING_H_
