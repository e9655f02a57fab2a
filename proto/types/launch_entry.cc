// A launch against the entry that it is of.
#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "proto/types/cpp_type.h"
#include "proto/types/launch.h"

namespace gridclock {
namespace {

absl::Status Misfit(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

// "x", "table(a)", "n: int", "null".
std::string NameOf(const ParamSpec& param) {
  switch (param.kind) {
    case ParamSpec::Kind::kOperand:
      return param.name;
    case ParamSpec::Kind::kTable:
      return absl::StrCat("table(", param.name, ")");
    case ParamSpec::Kind::kPointers:
      return absl::StrCat("pointers(", param.name, ")");
    case ParamSpec::Kind::kSizes:
      return absl::StrCat("sizes(", param.name, ")");
    case ParamSpec::Kind::kValue:
      return absl::StrCat(param.name, ": ", param.ctype);
    case ParamSpec::Kind::kNull:
      break;
  }
  return "null";
}

absl::Status CheckCount(const ModuleEntry& entry, const std::vector<ParamSpec>& params) {
  if (entry.parameters.size() == params.size()) return absl::OkStatus();
  const std::string takes = absl::StrJoin(
      entry.parameters, ", ",
      [](std::string* out, const EntryParameter& param) { absl::StrAppend(out, param.size); });
  const std::string gives = absl::StrJoin(
      params, ", ",
      [](std::string* out, const ParamSpec& param) { absl::StrAppend(out, NameOf(param)); });
  return Misfit(absl::StrCat("it takes ", entry.parameters.size(), " parameters (of ", takes,
                             " bytes), the words give ", params.size(), " (", gives, ")"));
}

// The array of pointers may be longer in the kernel: what the list does not fill is zero.
bool Fits(const EntryParameter& takes, const BoundParam& gives) {
  return gives.kind == ParamSpec::Kind::kPointers ? gives.size <= takes.size
                                                  : gives.size == takes.size;
}

// An address may be handled as a number of this type.
bool HoldsAnAddress(const CppNumber& number) {
  return number.ctype == "uint64";
}

// Bytes of any type may be looked at as these.
bool IsView(DType dtype) {
  static constexpr DType kViews[] = {DType::kU64, DType::kU32, DType::kU16, DType::kU8,
                                     DType::kBool};
  return std::find(std::begin(kViews), std::end(kViews), dtype) != std::end(kViews);
}

// Whether what lies at the address can be what the entry's pointer points to.
bool PointsTo(const CppType& takes, const BoundParam& gives) {
  const bool words = takes.element == DType::kI64 || takes.element == DType::kU64;
  const bool known = takes.to_pointer || takes.element.has_value();
  if (!known || gives.kind == ParamSpec::Kind::kNull) return true;
  if (gives.kind == ParamSpec::Kind::kTable) return takes.to_pointer || words;
  if (gives.kind == ParamSpec::Kind::kSizes) return words;
  return IsView(*gives.dtype) ||
         (takes.element && (IsView(*takes.element) || *takes.element == *gives.dtype));
}

bool IsReal(absl::string_view ctype) {
  return ctype == "float" || ctype == "double";
}

bool IsOfType(const CppType& takes, const ParamSpec& param, const BoundParam& gives) {
  if (!takes.pointer && takes.number == nullptr) return true;  // The type is not known.
  if (param.kind == ParamSpec::Kind::kPointers) return false;
  if (param.kind == ParamSpec::Kind::kValue) {
    return takes.number != nullptr && IsReal(takes.number->ctype) == IsReal(param.ctype);
  }
  return takes.pointer ? PointsTo(takes, gives) : HoldsAnAddress(*takes.number);
}

std::string WantedText(const CppType& takes) {
  if (takes.number != nullptr) return absl::StrCat("'NAME: ", takes.number->ctype, " = VALUE'");
  if (takes.to_pointer) return "'table(NAME)' of a list, or an operand of u64";
  if (!takes.element) return "an operand";
  return absl::StrCat("an operand of ", Name(*takes.element),
                      ", or of an unsigned type to see bytes as they are");
}

absl::Status WrongType(std::size_t index, const EntryParameter& takes, const ParamSpec& param,
                       const BoundParam& gives) {
  return Misfit(absl::StrCat("its parameter ", index, " is '", takes.type, "', the words give '",
                             NameOf(param), "'",
                             gives.dtype ? absl::StrCat(" of ", Name(*gives.dtype)) : "", "; want ",
                             WantedText(ReadCppType(takes.type))));
}

absl::Status CheckParameters(const ModuleEntry& entry, const std::vector<ParamSpec>& params,
                             const BoundLaunch& launch) {
  GC_RETURN_IF_ERROR(CheckCount(entry, params));
  for (std::size_t i = 0; i < params.size(); ++i) {
    const EntryParameter& takes = entry.parameters[i];
    if (!Fits(takes, launch.params[i])) {
      return Misfit(absl::StrCat("its parameter ", i, " takes ", takes.size,
                                 " bytes, the words give '", NameOf(params[i]), "' of ",
                                 launch.params[i].size));
    }
    if (IsOfType(ReadCppType(takes.type), params[i], launch.params[i])) continue;
    return WrongType(i, takes, params[i], launch.params[i]);
  }
  return absl::OkStatus();
}

absl::Status CheckThreads(const ModuleEntry& entry, const BoundLaunch& launch) {
  if (!entry.required_block.empty() &&
      !std::equal(launch.block.begin(), launch.block.end(), entry.required_block.begin(),
                  entry.required_block.end())) {
    return Misfit(absl::StrCat("it requires blocks of (", absl::StrJoin(entry.required_block, ", "),
                               "), the words give (", absl::StrJoin(launch.block, ", "), ")"));
  }
  if (entry.max_threads == 0 || launch.block_threads() <= entry.max_threads) {
    return absl::OkStatus();
  }
  return Misfit(absl::StrCat("it takes blocks of at most ", entry.max_threads,
                             " threads, the words give ", launch.block_threads()));
}

absl::Status CheckShared(const ModuleEntry& entry, const BoundLaunch& launch,
                         const LaunchLimits& limits) {
  const auto most = static_cast<std::uint64_t>(limits.shared_bytes);
  if (entry.shared_bytes <= most && launch.shared_bytes <= most - entry.shared_bytes) {
    return absl::OkStatus();
  }
  return Misfit(absl::StrCat("it has ", entry.shared_bytes,
                             " bytes of shared memory of its own, the words give ",
                             launch.shared_bytes, " more; allowed are ", most, " together"));
}

absl::Status Check(const ModuleEntry& entry, const std::vector<ParamSpec>& params,
                   const BoundLaunch& launch, const LaunchLimits& limits) {
  GC_RETURN_IF_ERROR(CheckParameters(entry, params, launch));
  GC_RETURN_IF_ERROR(CheckThreads(entry, launch));
  return CheckShared(entry, launch, limits);
}

}  // namespace

absl::Status CheckEntry(const ModuleEntry& entry, const std::vector<ParamSpec>& params,
                        const BoundLaunch& launch, const LaunchLimits& limits) {
  const absl::Status status = Check(entry, params, launch, limits);
  if (status.ok()) return status;
  return Annotate(status,
                  absl::StrCat("entry '", entry.display.empty() ? entry.name : entry.display, "'"));
}

}  // namespace gridclock
