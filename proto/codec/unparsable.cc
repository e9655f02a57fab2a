#include "proto/codec/unparsable.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr int kMaxNesting = 100;  // As protobuf's own parser has it.

struct Fault {
  std::string path;  // "inputs[0].name"; "" of the message itself.
  std::string why;
};

std::optional<Fault> FindFault(const Descriptor& message, WireReader bytes, int depth);

std::optional<Fault> CheckText(WireReader value) {
  std::string text(value.left(), '\0');
  value.Copy(reinterpret_cast<std::byte*>(text.data()), text.size(), Reuse::kSoon);
  if (IsUtf8(text)) return std::nullopt;
  return Fault{"", absl::StrCat("want UTF-8, got ", Quote(text))};
}

// What lies in a field of known type, behind its length.
std::optional<Fault> CheckValue(const FieldDescriptor& field, const WireReader& value, int depth) {
  if (field.type() == FieldDescriptor::TYPE_STRING) return CheckText(value);
  if (field.message_type() == nullptr) return std::nullopt;
  if (depth == kMaxNesting) {
    return Fault{"", absl::StrCat("it nests deeper than ", kMaxNesting, " levels")};
  }
  return FindFault(*field.message_type(), value, depth + 1);
}

std::optional<Fault> FindFault(const Descriptor& message, WireReader bytes, int depth) {
  std::map<int, int> seen;  // Of each repeated field.
  while (!bytes.done()) {
    std::uint32_t number = 0;
    WireType type;
    if (!bytes.ReadTag(&number, &type)) return Fault{"", std::string(bytes.error())};
    const FieldDescriptor* field = message.FindFieldByNumber(static_cast<int>(number));
    std::string name = field != nullptr ? field->name() : absl::StrCat("field ", number);
    if (field != nullptr && field->is_repeated()) {
      absl::StrAppend(&name, "[", seen[static_cast<int>(number)]++, "]");
    }
    std::optional<Fault> fault;
    WireReader value = bytes;
    if (!bytes.Skip(number, type)) {
      fault = Fault{"", std::string(bytes.error())};
    } else if (field != nullptr && type == WireType::kBytes) {
      std::uint64_t size = 0;
      value.ReadVarint(&size);
      fault = CheckValue(*field, value.First(size), depth);
    }
    if (!fault) continue;
    fault->path = fault->path.empty() ? name : absl::StrCat(name, ".", fault->path);
    return fault;
  }
  return std::nullopt;
}

}  // namespace

absl::Status Unparsable(const Descriptor& message, WireReader bytes) {
  const Fault fault =
      FindFault(message, bytes, 1).value_or(Fault{"", "a field is not of the type that it has"});
  const std::string at = fault.path.empty() ? "" : absl::StrCat(fault.path, ": ");
  return WithDetails(
      absl::InvalidArgumentError(
          absl::StrCat("cannot parse ", message.full_name(), ": ", at, fault.why)),
      {.reason = "UNPARSABLE", .field = fault.path, .retry_after = std::nullopt, .metadata = {}});
}

}  // namespace gridclock
