#include "kernels/worker/global_value.h"

#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

absl::Status Wrong(const ProgramGlobal& global, absl::string_view what) {
  return WithField(absl::InvalidArgumentError(absl::StrCat("global ", Quote(global.name), " from '",
                                                           global.from, "': ", what)),
                   "program.globals");
}

std::vector<std::byte> BytesOf(const void* value, std::uint64_t size) {
  const auto* bytes = static_cast<const std::byte*>(value);
  return {bytes, bytes + size};
}

// As signed or unsigned, whichever holds it: the variable's type is not known here.
bool Holds(std::int64_t value, std::uint64_t size) {
  if (size == 8) return true;
  const int bits = static_cast<int>(8 * size);
  return value >= -(std::int64_t{1} << (bits - 1)) && value < (std::int64_t{1} << bits);
}

std::optional<std::int64_t> WholeOf(const AttributeValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? 1 : 0;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::vector<std::byte>> GlobalValue(const ProgramGlobal& global,
                                                   const AttributeValue& value,
                                                   std::uint64_t size) {
  if (const auto* number = std::get_if<double>(&value)) {
    if (size == sizeof(double)) return BytesOf(number, size);
    const auto single = static_cast<float>(*number);
    if (size == sizeof(float)) return BytesOf(&single, size);
    return Wrong(global, absl::StrCat("an f64 wants a float or a double, the variable has ", size,
                                      " bytes"));
  }
  const std::optional<std::int64_t> whole = WholeOf(value);
  if (!whole) return Wrong(global, "want an attribute of type i64, f64 or bool");
  if (size != 1 && size != 2 && size != 4 && size != 8) {
    return Wrong(global, absl::StrCat("want a variable of 1, 2, 4 or 8 bytes, it has ", size));
  }
  if (!Holds(*whole, size)) {
    return Wrong(global, absl::StrCat(*whole, " does not fit the variable's ", size, " bytes"));
  }
  return BytesOf(&*whole, size);
}

absl::Status CheckGlobalInput(const ProgramGlobal& global, const OperandValue& input,
                              std::uint64_t size) {
  const auto bytes = static_cast<std::uint64_t>(Bytes(input.tensors[0]));
  if (bytes == size) return absl::OkStatus();
  return Wrong(global, absl::StrCat("the input has ", bytes, " bytes, the variable ", size));
}

}  // namespace gridclock
