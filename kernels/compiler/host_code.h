// A .cu file as people have it holds host code too: what only a host can use is set aside, so that
// the rest compiles as device code.
#ifndef GRIDCLOCK_KERNELS_COMPILER_HOST_CODE_H_
#define GRIDCLOCK_KERNELS_COMPILER_HOST_CODE_H_

#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/types/module.h"

namespace gridclock {

struct DeviceSource {
  std::string
      text;  // As long as the source, with the same lines and columns: blanks for what is gone.
  std::vector<SourceNote> notes;  // By line.
  // Types that are defined here, by name: set aside, and left.
  std::set<std::string> host_types, device_types;
};

// What is known of a source from other texts: headers, and definitions by options.
struct SourceContext {
  std::set<std::string> known = {};          // Headers that are there.
  std::set<std::string> device_macros = {};  // That say __device__.
  std::set<std::string> host_types = {};     // That are set aside elsewhere.
};

// Set aside are: includes of headers that only hosts have, unless they are known; functions without
// __global__, __device__ or constexpr, with their declarations; types and variables made of what
// only hosts have, and of such types; everything where such a function launches kernels. Directives
// of the preprocessor stay wherever they are, but for includes within what is set aside. What a
// macro says of itself (#define DEVICE
// __device__) is understood. Where braces do not balance only includes are set aside, and a note
// says so. Pure; any bytes do.
DeviceSource SetHostCodeAside(absl::string_view source, const SourceContext& context);

std::set<std::string> DeviceMacrosIn(std::span<const std::string> texts);

// The last part of a path.
std::string LastPart(absl::string_view path);

// The files, by the last part of their paths, that any of these includes within a function, an
// initialiser or a type, and what those include: they hold statements, values or members, not
// declarations, so that nothing of them may be set aside.
std::set<std::string> IncludedInBodies(std::span<const SourceText> files);

// Whether it gives the name `ulong` to a type of its own.
bool NamesUlong(absl::string_view source);

// The types that are set aside in any of these texts and left in none.
std::set<std::string> HostTypesIn(std::span<const absl::string_view> texts, SourceContext context);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_COMPILER_HOST_CODE_H_
