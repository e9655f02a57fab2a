// What one instruction of PTX or of the machine does with memory.
#ifndef GRIDCLOCK_CLIENT_CLI_OPCODES_H_
#define GRIDCLOCK_CLIENT_CLI_OPCODES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace gridclock::cli {

// "LDG.E" of "@!P0 LDG.E R4, desc[UR4][R2.64] ;".
absl::string_view OpcodeOf(absl::string_view instruction);

// "load global 4 B": what, where and how many bytes of each thread; "" where it moves none. Bulk
// copies have no width, as their size is known only when they run. The parameters of a kernel are
// no traffic.
std::string MemoryOfPtx(absl::string_view instruction);
std::string MemoryOfSass(absl::string_view instruction);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_OPCODES_H_
