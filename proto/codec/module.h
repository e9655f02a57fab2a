// Submitted device code: messages of gridclock.v1 and of gridclock.worker.v1 <-> plain types.
#ifndef GRIDCLOCK_PROTO_CODEC_MODULE_H_
#define GRIDCLOCK_PROTO_CODEC_MODULE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gridclock/v1/modules.pb.h"
#include "gridclock/worker/v1/compiler.pb.h"
#include "proto/types/module.h"

namespace gridclock {

struct ModuleLimits {
  std::uint64_t source_bytes = 256 * 1024;     // With headers.
  std::uint64_t code_bytes = 4 * 1024 * 1024;  // PTX or cubin.
};

// INVALID_ARGUMENT (BAD_VALUE, with the field's path) for what no compiler shall be given: names
// that are no plain relative paths, text with NUL or that is not UTF-8, macros that are more than a
// macro. The message's strings move into the result.
absl::StatusOr<ModuleSource> Decode(v1::CompileRequest request, const ModuleLimits& limits);
absl::StatusOr<ModuleSource> Decode(v1::LoadRequest request, const ModuleLimits& limits);
absl::StatusOr<ModuleView> Decode(const v1::ModuleView& view);
// A name of a target: "sm_90a". `arch` may be empty.
absl::Status CheckArch(absl::string_view arch, absl::string_view field);

void Encode(const ModuleSource& source, v1::CompileRequest* out);
void Encode(const ModuleSource& source, v1::LoadRequest* out);

// Facts without occupancies.
void Encode(const ModuleFacts& facts, v1::Module* out);
// INTERNAL for what no compiler of ours would say.
absl::StatusOr<ModuleFacts> Decode(const v1::Module& module);
// Fills the occupancy of each entry for a launch by `view`.
void EncodeOccupancies(const ModuleFacts& facts, const ModuleView& view, v1::Module* out);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_CODEC_MODULE_H_
