// A kernel's words part by part, as people read them: in `gridclock describe` and docs/kernels.md.
#ifndef GRIDCLOCK_PROTO_TYPES_SPEC_FACTS_H_
#define GRIDCLOCK_PROTO_TYPES_SPEC_FACTS_H_

#include <string>
#include <vector>

#include "proto/types/kernel_spec.h"

namespace gridclock {

struct SpecFact {
  std::string label;      // "takes".
  std::string text;       // "x: T[*, N]".
  bool is_prose = false;  // Not words, nor a formula.
};

// formula, takes, gives, one `attribute` for each, where, flops, bytes, notes. What a kernel has
// nothing of is left out; what its cost is by default is said.
std::vector<SpecFact> FactsOf(const KernelSpec& spec);

// "T in {f32, f16}", "N >= 1".
std::string ToText(const Condition& condition);
// Which calls a variant takes, "N % 4 == 0"; "all".
std::string TakesText(const VariantSpec& variant);
// The memory that it needs beside its operands, "rows: f32[numel(x)]"; "" if none.
std::string ScratchText(const VariantSpec& variant);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_SPEC_FACTS_H_
