#ifndef GRIDCLOCK_SERVER_RPC_MODULE_ID_H_
#define GRIDCLOCK_SERVER_RPC_MODULE_ID_H_

#include <string>

#include "absl/strings/string_view.h"
#include "proto/types/module.h"

namespace gridclock {

// 32 hexadecimal digits: the first half of the SHA-256 of all that decides what a compile makes,
// and of whose it is. `toolchain`: the compiler's fingerprint.
std::string ModuleId(absl::string_view principal, absl::string_view toolchain,
                     const ModuleSource& source);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_MODULE_ID_H_
