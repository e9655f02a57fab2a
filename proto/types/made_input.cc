#include "proto/types/made_input.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/types/quote.h"

namespace gridclock {

absl::StatusOr<MadeInput> ParseMadeInput(absl::string_view text) {
  const std::size_t bracket = text.find('[');
  if (bracket == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("want GENERATOR:DTYPE[SHAPE] as in randn:f32[1024], got ", Quote(text)));
  }
  const std::size_t colon = text.substr(0, bracket).rfind(':');
  if (colon == absl::string_view::npos) {
    GC_ASSIGN_OR_RETURN(const TensorSpec spec, ParseTensorSpec(text));
    return MadeInput{.generator = DefaultGenerator(spec.dtype), .spec = spec};
  }
  GC_ASSIGN_OR_RETURN(const TensorSpec spec, ParseTensorSpec(text.substr(colon + 1)));
  GC_ASSIGN_OR_RETURN(const Generator generator, ParseGenerator(text.substr(0, colon)));
  GC_RETURN_IF_ERROR(Validate(generator, spec.dtype));
  return MadeInput{.generator = generator, .spec = spec};
}

Generator DefaultGenerator(DType dtype) {
  const char kind = Name(dtype)[0];
  if (dtype == DType::kBool) return {.kind = GeneratorKind::kRandint, .a = 0, .b = 2};
  if (kind == 'i' || kind == 'u') return {.kind = GeneratorKind::kRandint, .a = 0, .b = 100};
  return {.kind = GeneratorKind::kRandn};
}

}  // namespace gridclock
