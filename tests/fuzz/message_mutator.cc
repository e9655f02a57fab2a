#include "tests/fuzz/message_mutator.h"

#include <limits>
#include <random>
#include <string>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/stubs/logging.h>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace gridclock {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMaxDepth = 6;
constexpr std::int64_t kHostile[] = {0,
                                     1,
                                     -1,
                                     2,
                                     15,
                                     16,
                                     63,
                                     64,
                                     255,
                                     256,
                                     4096,
                                     65536,
                                     std::numeric_limits<std::int32_t>::max(),
                                     std::numeric_limits<std::int32_t>::min(),
                                     std::int64_t{1} << 31,
                                     std::int64_t{1} << 32,
                                     std::int64_t{1} << 61,
                                     std::int64_t{1} << 62,
                                     std::numeric_limits<std::int64_t>::max(),
                                     std::numeric_limits<std::int64_t>::min()};
constexpr double kHostileDoubles[] = {0.0,
                                      -0.0,
                                      1.0,
                                      -1.0,
                                      0.5,
                                      600.0,
                                      1e308,
                                      -1e308,
                                      5e-324,
                                      std::numeric_limits<double>::infinity(),
                                      -std::numeric_limits<double>::infinity(),
                                      std::numeric_limits<double>::quiet_NaN()};

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  void Change(Message* message, int depth) {
    const auto* descriptor = message->GetDescriptor();
    if (descriptor->field_count() == 0 || depth > kMaxDepth) return;
    const FieldDescriptor* field = descriptor->field(Below(descriptor->field_count()));
    const Reflection* reflection = message->GetReflection();
    if (field->is_repeated()) return ChangeRepeated(message, field, depth);
    if (Below(8) == 0) return reflection->ClearField(message, field);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      return Change(reflection->MutableMessage(message, field), depth + 1);
    }
    SetScalar(message, field);
  }

  int Below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

 private:
  std::int64_t Integer() {
    if (Below(3) == 0) return static_cast<std::int32_t>(random_());
    return kHostile[Below(std::size(kHostile))];
  }
  double Double() {
    return Below(4) == 0 ? static_cast<double>(Integer())
                         : kHostileDoubles[Below(std::size(kHostileDoubles))];
  }
  int Enum(const FieldDescriptor* field) {
    if (Below(8) == 0) return static_cast<int>(Integer());
    return field->enum_type()->value(Below(field->enum_type()->value_count()))->number();
  }
  std::string Text(std::string text) {
    const std::size_t size = text.size();
    text.resize(size + 16);
    text.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text.data()), size, text.size()));
    return text;
  }

  void SetScalar(Message* message, const FieldDescriptor* field) {
    const Reflection* r = message->GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return r->SetInt32(message, field, static_cast<std::int32_t>(Integer()));
      case FieldDescriptor::CPPTYPE_INT64:
        return r->SetInt64(message, field, Integer());
      case FieldDescriptor::CPPTYPE_UINT32:
        return r->SetUInt32(message, field, static_cast<std::uint32_t>(Integer()));
      case FieldDescriptor::CPPTYPE_UINT64:
        return r->SetUInt64(message, field, static_cast<std::uint64_t>(Integer()));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return r->SetDouble(message, field, Double());
      case FieldDescriptor::CPPTYPE_FLOAT:
        return r->SetFloat(message, field, static_cast<float>(Below(1000)));
      case FieldDescriptor::CPPTYPE_BOOL:
        return r->SetBool(message, field, Below(2) == 0);
      case FieldDescriptor::CPPTYPE_ENUM:
        return r->SetEnumValue(message, field, Enum(field));
      case FieldDescriptor::CPPTYPE_STRING:
        return r->SetString(message, field, Text(r->GetString(*message, field)));
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return;
    }
  }

  void ChangeRepeated(Message* message, const FieldDescriptor* field, int depth) {
    const Reflection* r = message->GetReflection();
    const int size = r->FieldSize(*message, field);
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (size > 0 && Below(4) == 0) return r->RemoveLast(message, field);
    if (size > 1 && Below(6) == 0) {
      return r->SwapElements(message, field, Below(size), Below(size));
    }
    if (size > 0 && is_message && Below(2) == 0) {
      return Change(r->MutableRepeatedMessage(message, field, Below(size)), depth + 1);
    }
    if (is_message) return Change(r->AddMessage(message, field), depth + 1);
    AddScalar(message, field);
  }

  void AddScalar(Message* message, const FieldDescriptor* field) {
    const Reflection* r = message->GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return r->AddInt32(message, field, static_cast<std::int32_t>(Integer()));
      case FieldDescriptor::CPPTYPE_INT64:
        return r->AddInt64(message, field, Integer());
      case FieldDescriptor::CPPTYPE_UINT32:
        return r->AddUInt32(message, field, static_cast<std::uint32_t>(Integer()));
      case FieldDescriptor::CPPTYPE_UINT64:
        return r->AddUInt64(message, field, static_cast<std::uint64_t>(Integer()));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return r->AddDouble(message, field, Double());
      case FieldDescriptor::CPPTYPE_ENUM:
        return r->AddEnumValue(message, field, Enum(field));
      case FieldDescriptor::CPPTYPE_STRING:
        return r->AddString(message, field, Text(""));
      default:
        return;
    }
  }

  std::mt19937 random_;
};

}  // namespace

std::size_t MutateMessage(Message* message, std::uint8_t* data, std::size_t size,
                          std::size_t max_size, unsigned seed) {
  Mutator mutator(seed);
  if (mutator.Below(10) == 0) return LLVMFuzzerMutate(data, size, max_size);
  message->ParsePartialFromArray(data, static_cast<int>(size));
  for (int changes = 1 + mutator.Below(4); changes > 0; --changes) mutator.Change(message, 0);
  const std::size_t written = message->ByteSizeLong();
  if (written > max_size) return LLVMFuzzerMutate(data, size, max_size);
  message->SerializePartialToArray(data, static_cast<int>(max_size));
  return written;
}

}  // namespace gridclock

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}
