#include "kernels/compiler/parameters.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace gridclock {
namespace {

// "float const* x, int n" as the compiler's answer has it.
std::string Described(absl::string_view source, const std::string& name, const std::string& display,
                      std::size_t parameters) {
  std::vector<ModuleEntry> entries(1);
  entries[0].name = name;
  entries[0].display = display;
  entries[0].parameters.resize(parameters);
  DescribeParameters(source, &entries);
  std::string out;
  for (const EntryParameter& parameter : entries[0].parameters) {
    absl::StrAppend(&out, out.empty() ? "" : ", ", parameter.type, " ", parameter.name);
  }
  return out;
}

TEST(Parameters, TypesOfTheNameAndNamesOfTheSource) {
  EXPECT_EQ(
      Described("template <typename T, int N = 3>\n"
                "__global__ void __launch_bounds__(256) fill(const T* __restrict__ in, T out[],\n"
                "    int n /* of both */, float k = f(1, 2)) { fill(other); }\n",
                "_Z4fillIfLi3EEvPKT_PS0_if", "fill<float, 3>", 4),
      "float const* in, float* out, int n, float k");
  EXPECT_EQ(Described("namespace a { __global__ void f(float*, Pair<int, int> p); }",
                      "_ZN1a1fEPf4PairIiiE", "a::f", 2),
            "float* , Pair<int, int> p");
}

TEST(Parameters, OfExternCTheSourceTellsTheTypesToo) {
  EXPECT_EQ(
      Described("extern \"C\" __global__ void f(const float* __restrict__ x, half const *h,\n"
                "  unsigned int n, size_t m, float** p, T* const t, long long int)",
                "f", "f", 7),
      "float const* x, __half const* h, unsigned int n, unsigned long m,  p, T* t, long long ");
}

TEST(Parameters, WhatDoesNotFitIsLeftOut) {
  EXPECT_EQ(Described("__global__ void f(float* x, int n);", "_Z1fPf", "f", 1), "float* ");
  EXPECT_EQ(Described("void f(float* x);", "_Z1fPf", "f", 1), "float* ");
  EXPECT_EQ(
      Described("__global__ void f(float* x); __global__ void f(float* y);", "_Z1fPf", "f", 1),
      "float* ");
  EXPECT_EQ(
      Described("__global__ void f(float* x); __global__ void f(float* x) {}", "_Z1fPf", "f", 1),
      "float* x");
  EXPECT_EQ(Described("__global__ void f(", "f", "f", 1), " ");
  EXPECT_EQ(Described("", "_Z1fPfi", "f", 1), " ");
}

}  // namespace
}  // namespace gridclock
