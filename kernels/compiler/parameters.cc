#include "kernels/compiler/parameters.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "kernels/compiler/cubin.h"
#include "kernels/compiler/source_tokens.h"

namespace gridclock {
namespace {

constexpr std::size_t kLongestText = 128;

// A type as demanglers write it, or as people do.
struct Declared {
  std::string type, name;
  friend bool operator==(const Declared&, const Declared&) = default;
};

// What people write for a type, and what a demangler says for it.
absl::string_view CommonName(absl::string_view base) {
  static constexpr std::pair<absl::string_view, absl::string_view> kNames[] = {
      {"unsigned", "unsigned int"},
      {"size_t", "unsigned long"},
      {"int8_t", "signed char"},
      {"uint8_t", "unsigned char"},
      {"int16_t", "short"},
      {"uint16_t", "unsigned short"},
      {"int32_t", "int"},
      {"uint32_t", "unsigned int"},
      {"int64_t", "long"},
      {"uint64_t", "unsigned long"},
      {"half", "__half"},
      {"nv_bfloat16", "__nv_bfloat16"},
      {"long int", "long"},
      {"long long int", "long long"},
      {"unsigned long int", "unsigned long"}};
  for (const auto& [written, common] : kNames) {
    if (written == base) return common;
  }
  return base;
}

bool IsTypeWord(absl::string_view word) {
  static constexpr absl::string_view kWords[] = {
      "const", "volatile", "__restrict__", "__restrict", "unsigned", "signed", "char",
      "short", "int",      "long",         "float",      "double",   "bool",   "void"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

class DeclarationReader {
 public:
  explicit DeclarationReader(absl::string_view source)
      : source_(source), tokens_(CutSource(source)) {}

  // The parameters of each function behind __global__. Of a name that stands twice with other
  // parameters, none.
  std::map<std::string, std::vector<Declared>> Read() {
    std::map<std::string, std::vector<Declared>> out;
    bool kernel = false;
    for (std::size_t at = 0; at + 1 < tokens_.size(); ++at) {
      const absl::string_view text = Text(at);
      if (text == "__global__") kernel = true;
      if (text == ";" || text == "{" || text == "}") kernel = false;
      if (!kernel || !IsWord(at) || text == "__launch_bounds__" || Text(at + 1) != "(") continue;
      std::vector<Declared> parameters = ReadList(at + 2);
      const auto [place, first] = out.emplace(std::string(text), parameters);
      if (!first && place->second != parameters) place->second.clear();
      kernel = false;
    }
    return out;
  }

 private:
  using Tokens = std::vector<std::size_t>;  // Indices.

  absl::string_view Text(std::size_t at) const {
    return source_.substr(tokens_[at].begin, tokens_[at].end - tokens_[at].begin);
  }
  bool IsWord(std::size_t at) const { return tokens_[at].kind == SourceToken::Kind::kWord; }

  std::vector<Declared> ReadList(std::size_t at) const {
    std::vector<Declared> out;
    Tokens one;
    for (int depth = 0; at < tokens_.size(); ++at) {
      const absl::string_view text = Text(at);
      if (text == ")" && depth == 0) break;
      if (absl::StrContains("([{<", text)) ++depth;
      if (absl::StrContains(")]}>", text)) --depth;
      if (text == "," && depth == 0) {
        out.push_back(ReadOne(one));
        one.clear();
      } else {
        one.push_back(at);
      }
    }
    if (!one.empty()) out.push_back(ReadOne(one));
    return out;
  }

  Declared ReadOne(Tokens tokens) const {
    const auto end = std::find_if(tokens.begin(), tokens.end(), [&](std::size_t at) {
      return Text(at) == "=" || Text(at) == "[";
    });
    const bool array = end != tokens.end() && Text(*end) == "[";
    tokens.erase(end, tokens.end());
    Declared out;
    if (tokens.size() > 1 && IsWord(tokens.back()) && !IsTypeWord(Text(tokens.back()))) {
      if (Text(tokens.back()).size() <= kLongestText) out.name = std::string(Text(tokens.back()));
      tokens.pop_back();
    }
    out.type = TypeText(tokens, array);
    return out;
  }

  // Of a plain type or a pointer to one; empty for all else.
  std::string TypeText(const Tokens& tokens, bool array) const {
    std::string base;
    int stars = array ? 1 : 0;
    bool constant = false;
    for (const std::size_t at : tokens) {
      const absl::string_view text = Text(at);
      if (text == "*") {
        ++stars;
      } else if (text == "const") {
        constant = constant || stars == 0;
      } else if (!IsWord(at)) {
        return "";
      } else if (!absl::StartsWith(text, "__restrict")) {
        absl::StrAppend(&base, base.empty() ? "" : " ", text);
      }
    }
    if (stars > 1 || base.size() > kLongestText) return "";
    const absl::string_view common = CommonName(base);
    if (stars == 0) return std::string(common);
    return absl::StrCat(common, constant ? " const*" : "*");
  }

  const absl::string_view source_;
  const std::vector<SourceToken> tokens_;
};

void TakeTypes(const std::vector<std::string>& types, ModuleEntry* entry) {
  if (types.size() != entry->parameters.size()) return;
  for (std::size_t i = 0; i < types.size(); ++i) {
    // A name of a cubin may cut a character in two.
    if (types[i].size() <= kLongestText) entry->parameters[i].type = CleanText(types[i]);
  }
}

// "softmax" of "ns::softmax<float, 256>".
std::string NameAlone(absl::string_view display) {
  display = display.substr(0, display.find('<'));
  const std::size_t colon = display.rfind(':');
  return std::string(colon == absl::string_view::npos ? display : display.substr(colon + 1));
}

}  // namespace

void DescribeParameters(absl::string_view source, std::vector<ModuleEntry>* entries) {
  const std::map<std::string, std::vector<Declared>> declared = DeclarationReader(source).Read();
  for (ModuleEntry& entry : *entries) {
    TakeTypes(ParameterTypes(entry.name), &entry);
    const auto found = declared.find(NameAlone(entry.display));
    if (found == declared.end() || found->second.size() != entry.parameters.size()) continue;
    for (std::size_t i = 0; i < entry.parameters.size(); ++i) {
      entry.parameters[i].name = found->second[i].name;
      if (!absl::StartsWith(entry.name, "_Z")) entry.parameters[i].type = found->second[i].type;
    }
  }
}

}  // namespace gridclock
