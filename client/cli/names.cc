#include "client/cli/names.h"

#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/codec/values.h"
#include "proto/types/tensor.h"

namespace gridclock::cli {
namespace {

std::string Lower(absl::string_view name) {
  return absl::AsciiStrToLower(name);
}

}  // namespace

std::string NameOf(v1::Method method) {
  return Lower(v1::Method_Name(method));
}
std::string NameOf(v1::L2State state) {
  return Lower(v1::L2State_Name(state));
}
std::string NameOf(v1::Timing::Stop stop) {
  const std::string name = v1::Timing::Stop_Name(stop);
  return Lower(absl::StripPrefix(name, "STOP_"));
}
std::string NameOf(v1::Phase::Kind kind) {
  return Lower(v1::Phase::Kind_Name(kind));
}
std::string NameOf(v1::Flag flag) {
  return v1::Flag_Name(flag);
}
std::string NameOf(v1::Device::State state) {
  return Lower(v1::Device::State_Name(state));
}

std::string NameOf(v1::ActiveJob::State state) {
  return absl::StrReplaceAll(Lower(v1::ActiveJob::State_Name(state)), {{"_", " "}});
}

std::string CodeName(absl::StatusCode code) {
  return absl::StatusCodeToString(code);
}

absl::StatusOr<Method> ParseMethod(absl::string_view text) {
  v1::Method method{};
  if (v1::Method_Parse(absl::AsciiStrToUpper(text), &method) && method != 0) {
    return static_cast<Method>(method);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--method: want isolated, device_time, back_to_back, host_no_sync, host_sync, ",
                   "event_pair or all, got '", text, "'"));
}

absl::StatusOr<L2State> ParseL2(absl::string_view text) {
  v1::L2State state{};
  if (v1::L2State_Parse(absl::AsciiStrToUpper(text), &state) && state != 0) {
    return static_cast<L2State>(state);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--l2: want hot, cold_clean or cold_dirty, got '", text, "'"));
}

absl::StatusOr<Schedule> ParseSchedule(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  Schedule out;
  std::int64_t* const fields[] = {&out.wait, &out.warmup, &out.active, &out.repeat};
  bool good = parts.size() == std::size(fields);
  for (std::size_t i = 0; good && i < parts.size(); ++i) {
    good = absl::SimpleAtoi(parts[i], fields[i]);
  }
  if (good) return out;
  return absl::InvalidArgumentError(
      absl::StrCat("--schedule: want WAIT:WARMUP:ACTIVE:REPEAT as in 1:5:100:2, got '", text, "'"));
}

std::vector<Method> AllMethods() {
  return {Method::kIsolated,   Method::kDeviceTime, Method::kBackToBack,
          Method::kHostNoSync, Method::kHostSync,   Method::kEventPair};
}

std::string NoSuchDType(absl::string_view text) {
  std::vector<std::string> all;
  for (int i = 1; i <= kDTypeCount; ++i) all.emplace_back(Name(static_cast<DType>(i)));
  // numpy's and others' long names.
  const std::string near = absl::StrReplaceAll(
      text, {{"bfloat", "bf"}, {"float", "f"}, {"uint", "u"}, {"int", "i"}, {"boolean", "bool"}});
  const std::string guess =
      ParseDType(near).has_value() ? absl::StrCat(near, "? There are ") : std::string("there are ");
  return absl::StrCat("no dtype '", text, "'; ", guess, absl::StrJoin(all, ", "));
}

std::string WithOurNames(absl::string_view message) {
  std::string out(absl::StripPrefix(message, "measure.method: "));
  for (const Method method : AllMethods()) {
    const std::string& name = v1::Method_Name(static_cast<v1::Method>(method));
    out = absl::StrReplaceAll(out, {{name, Lower(name)}});
  }
  return out;
}

std::string SpecText(const v1::TensorSpec& spec) {
  const auto value = Decode(spec, "spec");
  if (!value.ok()) return "?";
  return absl::StrJoin(value->tensors, " ", [](std::string* out, const TensorSpec& tensor) {
    absl::StrAppend(out, ToText(tensor));
  });
}

}  // namespace gridclock::cli
