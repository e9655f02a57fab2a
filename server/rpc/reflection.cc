#include "server/rpc/reflection.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace gridclock {

absl::Status EnableReflection() {
  // Its static initialiser registers a plug-in of ServerBuilder; it is never closed again.
  if (dlopen(GRIDCLOCK_REFLECTION_LIBRARY, RTLD_NOW | RTLD_GLOBAL) != nullptr) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("reflection: ", dlerror()));
}

}  // namespace gridclock
