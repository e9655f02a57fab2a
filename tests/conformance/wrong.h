// What the suite finds wrong with a launch that a test wrote.
#ifndef GRIDCLOCK_TESTS_CONFORMANCE_WRONG_H_
#define GRIDCLOCK_TESTS_CONFORMANCE_WRONG_H_

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/api/registry.h"
#include "kernels/catalog/catalog.h"
#include "kernels/catalog/element.h"
#include "kernels/device/cpu/cpu_device.h"
#include "tests/conformance/harness.h"

namespace gridclock {

// What the tests below need of the world; an error is a problem that no test expects.
struct WrongWorld {
  absl::StatusOr<std::unique_ptr<CpuDevice>> device =
      CpuDevice::Create({.threads = 2, .level = "", .calibrate = false});
  absl::StatusOr<Registry> registry = Registry::Create(BuiltInKernels());
  std::string Error() const {
    return absl::StrCat(device.status().message(), registry.status().message());
  }
};

// All problems that the suite finds with `launch` in place of the variants of catalogue kernel
// `name`, over every dtype of `dtypes` and every kind of data.
inline std::string ProblemsOf(const char* name, LaunchFn launch,
                              std::vector<DType> dtypes = {DType::kF32}, bool first_alone = false) {
  const WrongWorld world;
  if (!world.Error().empty()) return world.Error();
  const auto& [device, registry] = world;
  const RegisteredKernel& kernel = *registry->Find(name);
  const Variant wrong{.name = "wrong", .summary = "", .launch = launch};
  std::vector<std::string> problems;
  for (const DType dtype : dtypes) {
    for (const Data data : {Data::kPlain, Data::kWide, Data::kSpecial, Data::kExtreme, Data::kHuge,
                            Data::kTiny, Data::kFar, Data::kSpikes}) {
      for (const Instance& instance : InstancesOf(kernel.spec, dtype)) {
        for (auto& problem :
             CheckCall(**device, kernel, wrong, instance, {.seed = 7, .data = data})) {
          problems.push_back(std::move(problem));
        }
        if (first_alone && !problems.empty()) return problems[0];
      }
    }
  }
  return absl::StrJoin(problems, "\n");
}

// The first of them, where to find all takes long.
inline std::string FirstProblemOf(const char* name, LaunchFn launch, DType dtype = DType::kF32) {
  return ProblemsOf(name, launch, {dtype}, /*first_alone=*/true);
}

// The same over large calls alone, of those at most a few seconds each.
inline std::string LargeProblemsOf(const char* name, LaunchFn launch, bool misaligned = false,
                                   decltype(Variant::magnitude) magnitude = nullptr) {
  const WrongWorld world;
  if (!world.Error().empty()) return world.Error();
  const RegisteredKernel& kernel = *world.registry->Find(name);
  const Variant wrong{.name = "wrong", .summary = "", .launch = launch, .magnitude = magnitude};
  std::vector<std::string> problems;
  for (const Instance& instance : InstancesOf(kernel.spec, DType::kF32, Size::kLarge)) {
    for (auto& problem : CheckCall(**world.device, kernel, wrong, instance,
                                   {.seed = 7,
                                   .data = Data::kDecided,
                                   .misaligned = misaligned,
                                   .most_terms = 1 << 24})) {
      problems.push_back(std::move(problem));
    }
  }
  return absl::StrJoin(problems, "\n");
}

inline std::int64_t Count(const Call& call) {
  return Elements(call.OutShape(0));
}

// In 16 bits, cut off where it should be rounded.
template <typename T>
T CutOff(float x) {
  T y = Narrow<T>(x);
  if (std::fabs(Widen(y)) > std::fabs(x)) --y.bits;
  return y;
}

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_CONFORMANCE_WRONG_H_
