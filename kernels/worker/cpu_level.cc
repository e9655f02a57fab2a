#include "kernels/worker/cpu_level.h"

#include <cstring>

#include <cpuid.h>

namespace gridclock {
namespace {

#if !defined(__x86_64__)
#error "the catalogue is built for x86-64 levels alone"
#endif

struct Level {
  const char* name;
  unsigned features;
};

constexpr unsigned kV2 = kSse42 | kPopcnt;
constexpr unsigned kV3 = kV2 | kAvx2 | kFma | kBmi | kBmi2 | kLzcnt | kMovbe | kF16c;
constexpr unsigned kV4 = kV3 | kAvx512F | kAvx512Bw | kAvx512Cd | kAvx512Dq | kAvx512Vl;
constexpr Level kLevels[] = {{"v4", kV4}, {"v3", kV3}, {"v2", kV2}};

// clang 14 knows no names for these three. That programs may use the registers of F16C is seen from
// AVX2, which is wanted with it.
unsigned NamelessFeatures() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  unsigned features = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) {
    features |= (c & bit_MOVBE) != 0 ? kMovbe : 0u;
    features |= (c & bit_F16C) != 0 ? kF16c : 0u;
  }
  if (__get_cpuid(0x8000'0001, &a, &b, &c, &d) != 0) {
    features |= (c & bit_LZCNT) != 0 ? kLzcnt : 0u;
  }
  return features;
}

}  // namespace

unsigned FeaturesHere() {
  __builtin_cpu_init();
  unsigned features = NamelessFeatures();
  const auto add = [&features](int there, CpuFeature feature) {
    if (there != 0) features |= feature;
  };
  add(__builtin_cpu_supports("sse4.2"), kSse42);
  add(__builtin_cpu_supports("popcnt"), kPopcnt);
  add(__builtin_cpu_supports("avx2"), kAvx2);
  add(__builtin_cpu_supports("fma"), kFma);
  add(__builtin_cpu_supports("bmi"), kBmi);
  add(__builtin_cpu_supports("bmi2"), kBmi2);
  add(__builtin_cpu_supports("avx512f"), kAvx512F);
  add(__builtin_cpu_supports("avx512bw"), kAvx512Bw);
  add(__builtin_cpu_supports("avx512cd"), kAvx512Cd);
  add(__builtin_cpu_supports("avx512dq"), kAvx512Dq);
  add(__builtin_cpu_supports("avx512vl"), kAvx512Vl);
  return features;
}

const char* ChooseLevel(unsigned features, const std::string& wanted) {
  for (const Level& level : kLevels) {
    const bool meant = wanted.empty() || wanted == level.name;
    if (meant && (features & level.features) == level.features) return level.name;
  }
  return nullptr;
}

const char* LevelBelow(const char* level) {
  bool passed = false;
  for (const Level& one : kLevels) {
    if (passed) return one.name;
    passed = std::strcmp(one.name, level) == 0;
  }
  return nullptr;
}

}  // namespace gridclock
