// CUDA C++ cut into the few kinds of tokens that tell where a declaration begins and ends.
#ifndef GRIDCLOCK_KERNELS_COMPILER_SOURCE_TOKENS_H_
#define GRIDCLOCK_KERNELS_COMPILER_SOURCE_TOKENS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace gridclock {

struct SourceToken {
  enum class Kind : std::uint8_t {
    kWord,       // Identifiers and keywords.
    kText,       // Strings, characters and numbers.
    kPunct,      // One character.
    kDirective,  // A line of the preprocessor with those that continue it.
  };
  Kind kind;
  std::size_t begin, end;  // In the source.
};

// Without comments and white space. Any bytes can be cut: what never ends goes to the end.
std::vector<SourceToken> CutSource(absl::string_view source);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_COMPILER_SOURCE_TOKENS_H_
