// Inputs made from a seed. The definition is part of the contract: element i depends on the kind,
// its parameters, the seed and i alone, so client, server and any other program make the same bytes
// (docs/generators.md has it in words).
#ifndef GRIDCLOCK_PROTO_TYPES_GENERATOR_H_
#define GRIDCLOCK_PROTO_TYPES_GENERATOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/types/dtype.h"

namespace gridclock {

enum class GeneratorKind : std::uint8_t {
  kZeros = 1,
  kOnes,
  kFull,
  kArange,
  kRandn,
  kUniform,
  kRandint
};

struct Generator {
  GeneratorKind kind = GeneratorKind::kZeros;
  double a = 0, b = 0;  // full:a, uniform:a:b (a <= x < b), randint:a:b (a <= x < b).
  std::uint64_t seed = 0;
  friend bool operator==(const Generator&, const Generator&) = default;
};

// "randn", "uniform:-1:1", "full:3". The seed is told apart.
absl::StatusOr<Generator> ParseGenerator(absl::string_view text);
std::string ToText(const Generator& generator);
// INVALID_ARGUMENT for an unknown kind, an empty or infinite range, or randint beyond the dtype.
absl::Status Validate(const Generator& generator, DType dtype);

// What randint:a:b takes, exact in 64 bits where doubles are not: low + the high half of
// bits * count, modulo 2^64.
struct WholeNumbers {
  std::uint64_t low = 0, count = 0;
  bool all = false;  // Of 64 bits: low + bits.
};
WholeNumbers WholeNumbersOf(const Generator& generator);

// Fills `out`, which holds whole elements of `dtype` and begins at element `first` of the tensor.
void Generate(const Generator& generator, DType dtype, std::int64_t first,
              std::span<std::byte> out);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_GENERATOR_H_
