#include "proto/types/infer_words.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "proto/types/cpp_type.h"
#include "proto/types/dtype.h"
#include "proto/types/lexer.h"
#include "proto/types/quote.h"
#include "proto/types/tensor.h"

namespace gridclock {
namespace {

// What people call the number of elements, by WordsName.
constexpr absl::string_view kCounts[] = {"count",    "numel_",       "total",
                                         "elements", "num_elements", "n_elements",
                                         "nelem",    "num_elem",     "n_elem"};
// Of a vector they call it so too; of a matrix this may be the length of a side.
constexpr absl::string_view kLengths[] = {"n", "num", "size", "len", "length"};

enum class Use : std::uint8_t { kUnknown, kReads, kWrites, kNumber };

// A parameter of the entry, and what it turned out to stand for.
struct Parameter {
  Use use = Use::kUnknown;
  std::string name;  // As words have it; made up where the source's is not known.
  bool named = false;
  std::optional<DType> dtype;         // Of what a pointer points to.
  const CppNumber* number = nullptr;  // Of kNumber.
  const NamedOperand* input = nullptr;
  bool attribute = false;
  std::string value;  // Of a number: the expression.

  bool IsPointer() const { return use == Use::kReads || use == Use::kWrites; }
};

void ReadType(absl::string_view type, Parameter* out) {
  const CppType read = ReadCppType(type);
  out->dtype = read.element;
  out->number = read.number;
  if (read.number != nullptr) out->use = Use::kNumber;
  if (read.element.has_value()) out->use = read.to_const ? Use::kReads : Use::kWrites;
}

std::vector<Parameter> ReadParameters(const ModuleEntry& entry) {
  std::vector<Parameter> out;
  for (const EntryParameter& parameter : entry.parameters) {
    Parameter read;
    read.named = !parameter.name.empty();
    read.name = read.named ? WordsName(parameter.name) : absl::StrCat("p", out.size());
    ReadType(parameter.type, &read);
    out.push_back(std::move(read));
  }
  return out;
}

Parameter* FindNamed(std::vector<Parameter>& parameters, absl::string_view name) {
  for (Parameter& parameter : parameters) {
    if (parameter.named && parameter.name == name) return &parameter;
  }
  return nullptr;
}

class Inference {
 public:
  Inference(const ModuleEntry& entry, const UnwordedCall& call)
      : entry_(entry), call_(call), parameters_(ReadParameters(entry)) {}

  absl::StatusOr<std::string> Infer() {
    GC_RETURN_IF_ERROR(CheckTypes());
    GC_RETURN_IF_ERROR(PlaceInputs());
    GC_RETURN_IF_ERROR(PlaceNumbers());
    GC_ASSIGN_OR_RETURN(const std::string outputs, Outputs());
    std::string out = WordsName(entry_.display);
    absl::StrAppend(&out, " ", Inputs(), outputs, Attributes());
    if (entry_.required_block.size() == 3) {
      absl::StrAppend(&out, " block(", absl::StrJoin(entry_.required_block, ", "), ")");
    }
    return absl::StrCat(out, " params ", Params());
  }

 private:
  absl::Status Unsettled(absl::string_view why) const {
    return WithField(absl::InvalidArgumentError(absl::StrCat(
                         "the words of ", Quote(entry_.display), " cannot be inferred: ", why,
                         "; complete: ", WordsToComplete(entry_))),
                     "program.words");
  }

  absl::Status CheckTypes() const {
    if (parameters_.empty()) return Unsettled("its parameters are not known, or it has none");
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].use != Use::kUnknown) continue;
      const std::string& type = entry_.parameters[i].type;
      return Unsettled(absl::StrCat(
          "parameter ", i + 1, type.empty() ? " is of a type that is not known" : " is of type ",
          type.empty() ? "" : Quote(type)));
    }
    for (const NamedOperand& input : call_.inputs) {
      if (input.value.is_list) return Unsettled(absl::StrCat("'", input.name, "' is a list"));
    }
    return absl::OkStatus();
  }

  absl::Status PlaceInputs() {
    std::size_t named = 0;
    for (const NamedOperand& input : call_.inputs) {
      const Parameter* parameter = FindNamed(parameters_, input.name);
      if (parameter != nullptr && parameter->IsPointer()) ++named;
    }
    if (named == 0) {
      GC_RETURN_IF_ERROR(PlaceByOrder());
    } else if (named < call_.inputs.size()) {
      return Unsettled("some inputs are called like a pointer of it, others are not");
    } else {
      for (const NamedOperand& input : call_.inputs) {
        FindNamed(parameters_, input.name)->input = &input;
      }
    }
    return CheckInputs();
  }

  absl::Status PlaceByOrder() {
    std::vector<Parameter*> reads, all;
    for (Parameter& parameter : parameters_) {
      if (parameter.use == Use::kReads) reads.push_back(&parameter);
      if (parameter.IsPointer()) all.push_back(&parameter);
    }
    const std::size_t count = call_.inputs.size();
    if (count != reads.size() && count != all.size()) {
      return Unsettled(absl::StrCat("it has ", all.size(), " pointers, ", reads.size(),
                                    " of them to const, and the call has ", count, " inputs"));
    }
    const std::vector<Parameter*>& places = count == reads.size() ? reads : all;
    for (std::size_t i = 0; i < count; ++i) {
      places[i]->input = &call_.inputs[i];
      places[i]->name = call_.inputs[i].name;
    }
    return absl::OkStatus();
  }

  absl::Status CheckInputs() const {
    for (const Parameter& parameter : parameters_) {
      if (parameter.use == Use::kReads && parameter.input == nullptr) {
        return Unsettled(absl::StrCat("'", parameter.name, "' is read and no input is called so"));
      }
      if (parameter.input == nullptr) continue;
      const TensorSpec& tensor = parameter.input->value.tensors.at(0);
      if (tensor.dtype == *parameter.dtype) continue;
      return Unsettled(absl::StrCat("'", parameter.name, "' points to ", Name(*parameter.dtype),
                                    ", the input is ", ToText(tensor)));
    }
    return absl::OkStatus();
  }

  absl::Status PlaceNumbers() {
    std::vector<const std::string*> free_attributes;
    for (const std::string& attribute : call_.attributes) {
      Parameter* parameter = FindNamed(parameters_, attribute);
      if (parameter != nullptr && parameter->use == Use::kNumber) {
        TakeAttribute(attribute, parameter);
      } else {
        free_attributes.push_back(&attribute);
      }
    }
    std::vector<Parameter*> free;
    for (Parameter& parameter : parameters_) {
      if (parameter.use == Use::kNumber && parameter.value.empty()) free.push_back(&parameter);
    }
    if (free.empty() && free_attributes.empty()) return absl::OkStatus();
    if (free.size() == 1 && free_attributes.empty()) return TakeCount(free[0]);
    const bool one = free.size() == 1 && free_attributes.size() == 1 && !free[0]->named;
    if (!one) return Unsettled(NumbersText(free, free_attributes));
    TakeAttribute(*free_attributes[0], free[0]);
    return absl::OkStatus();
  }

  static void TakeAttribute(const std::string& attribute, Parameter* parameter) {
    parameter->name = attribute;
    parameter->attribute = true;
    parameter->value = attribute;
  }

  template <std::size_t kSize>
  static bool IsOneOf(const absl::string_view (&names)[kSize], const std::string& name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  }

  absl::Status TakeCount(Parameter* parameter) {
    const bool counts = parameter->named && IsOneOf(kCounts, parameter->name);
    const bool length = !parameter->named || IsOneOf(kLengths, parameter->name);
    if (parameter->number->attribute != "i64" || !(counts || length)) {
      return Unsettled(absl::StrCat("what is '", parameter->name, "'?"));
    }
    const bool has_sides = std::any_of(
        call_.inputs.begin(), call_.inputs.end(),
        [](const NamedOperand& input) { return input.value.tensors.at(0).shape.size() > 1; });
    if (!counts && has_sides) {
      return Unsettled(absl::StrCat("is '", parameter->name,
                                    "' the number of elements, or the length of a side?"));
    }
    std::optional<std::int64_t> elements;
    for (const NamedOperand& input : call_.inputs) {
      const std::int64_t have = Elements(input.value.tensors.at(0).shape);
      if (elements.value_or(have) != have) {
        return Unsettled(absl::StrCat("'", parameter->name, "' is of which input the size?"));
      }
      elements = have;
    }
    if (!elements.has_value()) return Unsettled(absl::StrCat("what is '", parameter->name, "'?"));
    parameter->value = absl::StrCat("numel(", call_.inputs[0].name, ")");
    return absl::OkStatus();
  }

  static std::string NumbersText(const std::vector<Parameter*>& numbers,
                                 const std::vector<const std::string*>& attributes) {
    std::vector<absl::string_view> wanted, got;
    for (const Parameter* number : numbers) wanted.push_back(number->name);
    for (const std::string* attribute : attributes) got.push_back(*attribute);
    return absl::StrCat("the numbers ", QuoteList(wanted), " are not told by the attributes ",
                        QuoteList(got));
  }

  bool InputsShareAShape() const {
    return std::all_of(call_.inputs.begin(), call_.inputs.end(), [&](const NamedOperand& input) {
      return input.value.tensors.at(0).shape == call_.inputs[0].value.tensors.at(0).shape;
    });
  }

  std::string OperandText(const Parameter& parameter, const std::string& shape) const {
    return absl::StrCat(parameter.name, ": ", Name(*parameter.dtype), shape);
  }

  // `[*]` where all agree, so that the words fit calls of other sizes too.
  std::string Inputs() const {
    std::vector<std::string> texts;
    for (const Parameter& parameter : parameters_) {
      if (parameter.input == nullptr) continue;
      const std::string shape =
          InputsShareAShape() ? "[*]" : ToText(parameter.input->value.tensors.at(0).shape);
      texts.push_back(absl::StrCat(parameter.use == Use::kWrites ? "inout " : "",
                                   OperandText(parameter, shape)));
    }
    return absl::StrJoin(texts, ", ");
  }

  absl::StatusOr<std::string> Outputs() {
    std::vector<Parameter*> places;
    bool inout = false;
    for (Parameter& parameter : parameters_) {
      if (parameter.use != Use::kWrites) continue;
      inout = inout || parameter.input != nullptr;
      if (parameter.input == nullptr) places.push_back(&parameter);
    }
    if (places.empty() && !inout) return Unsettled("nothing comes out of it");
    if (places.empty()) return std::string();
    if (call_.inputs.empty() || !InputsShareAShape()) {
      return Unsettled("its outputs have the shape of which input?");
    }
    NameOutputs(places);
    return absl::StrCat(" -> ", absl::StrJoin(places, ", ", [&](std::string* out, Parameter* p) {
                          out->append(OperandText(*p, "[*]"));
                        }));
  }

  // The source's names, else those of the call, else "out", "out1", ...
  void NameOutputs(const std::vector<Parameter*>& places) const {
    std::vector<std::string> wanted;
    for (const std::string& name : call_.outputs) {
      const bool inout = std::any_of(call_.inputs.begin(), call_.inputs.end(),
                                     [&](const NamedOperand& input) { return input.name == name; });
      if (!inout) wanted.push_back(name);
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i]->named) continue;
      if (wanted.size() == places.size()) {
        places[i]->name = wanted[i];
      } else {
        places[i]->name = places.size() == 1 ? "out" : absl::StrCat("out", i + 1);
      }
    }
  }

  std::string Attributes() const {
    std::vector<std::string> texts;
    for (const Parameter& parameter : parameters_) {
      if (!parameter.attribute) continue;
      texts.push_back(absl::StrCat(parameter.name, ": ", parameter.number->attribute));
    }
    return texts.empty() ? "" : absl::StrCat("; ", absl::StrJoin(texts, ", "));
  }

  std::string Params() const {
    return absl::StrJoin(parameters_, ", ", [](std::string* out, const Parameter& parameter) {
      out->append(parameter.name);
      if (parameter.use != Use::kNumber) return;
      absl::StrAppend(out, ": ", parameter.number->ctype, " = ", parameter.value);
    });
  }

  const ModuleEntry& entry_;
  const UnwordedCall& call_;
  std::vector<Parameter> parameters_;
};

absl::Status CheckName(const std::string& name) {
  if (IsName(name) && !IsReserved(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "want a name like ", WordsName(name), " for an operand or an attribute, got ", Quote(name)));
}

std::string ParamToComplete(const Parameter& parameter) {
  if (parameter.use == Use::kNumber) {
    return absl::StrCat(parameter.name, ": ", parameter.number->ctype, " = ?");
  }
  return parameter.name;
}

}  // namespace

absl::StatusOr<std::string> InferWords(const ModuleEntry& entry, const UnwordedCall& call) {
  for (const NamedOperand& input : call.inputs) {
    GC_RETURN_IF_ERROR(CheckName(input.name));
    if (input.value.is_list || input.value.tensors.size() == 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(Quote(input.name), ": want one tensor, got ", input.value.tensors.size()));
  }
  for (const std::string& name : call.attributes) GC_RETURN_IF_ERROR(CheckName(name));
  for (const std::string& name : call.outputs) GC_RETURN_IF_ERROR(CheckName(name));
  return Inference(entry, call).Infer();
}

std::string WordsToComplete(const ModuleEntry& entry) {
  constexpr std::size_t kMostShown = 32;
  std::vector<std::string> reads, writes, params;
  for (const Parameter& parameter : ReadParameters(entry)) {
    if (params.size() == kMostShown) {
      params.emplace_back("...");
      break;
    }
    params.push_back(ParamToComplete(parameter));
    if (parameter.use == Use::kNumber) continue;
    const absl::string_view dtype = parameter.dtype ? Name(*parameter.dtype) : "?";
    (parameter.use == Use::kReads ? reads : writes)
        .push_back(absl::StrCat(parameter.name, ": ", dtype, "[?]"));
  }
  std::string out = WordsName(entry.display);
  if (!reads.empty()) absl::StrAppend(&out, " ", absl::StrJoin(reads, ", "));
  if (!writes.empty()) absl::StrAppend(&out, " -> ", absl::StrJoin(writes, ", "));
  return absl::StrCat(out, " grid(?) block(?) params ",
                      params.empty() ? "?" : absl::StrJoin(params, ", "));
}

std::string WordsName(absl::string_view name) {
  name = name.substr(0, std::min(name.find('<'), name.find('(')));
  if (const std::size_t colon = name.rfind(':'); colon != absl::string_view::npos) {
    name.remove_prefix(colon + 1);
  }
  std::string out;
  for (const char c : absl::StripAsciiWhitespace(name).substr(0, kMaxNameBytes - 1)) {
    const auto byte = static_cast<unsigned char>(c);
    out += absl::ascii_isalnum(byte) ? absl::ascii_tolower(byte) : '_';
  }
  if (out.empty() || absl::ascii_isdigit(static_cast<unsigned char>(out[0]))) out.insert(0, 1, '_');
  return IsReserved(out) ? out + "_" : out;
}

}  // namespace gridclock
