#include "kernels/compiler/host_code.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/text.h"
#include "kernels/compiler/host_words.h"
#include "kernels/compiler/source_tokens.h"

namespace gridclock {
namespace {

using Kind = SourceToken::Kind;

constexpr std::size_t kLongestNameInNote = 80;
constexpr std::size_t kMostNotes = 256;
constexpr std::size_t kMostInAngles = 1024;  // Tokens: else `template<` repeated takes seconds.

bool IsOneOf(absl::string_view word, std::initializer_list<absl::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
bool IsDeviceWord(absl::string_view word) {
  return IsOneOf(word, {"__global__", "__device__", "__constant__", "__shared__", "__managed__"});
}
// What stands before parentheses that hold no parameters.
bool TakesArguments(absl::string_view word) {
  return IsOneOf(word, {"alignas", "__align__", "__attribute__", "__declspec", "__launch_bounds__",
                        "__cluster_dims__", "__maxnreg__", "__block_size__", "decltype", "noexcept",
                        "explicit", "static_assert", "asm", "__asm__"});
}
bool IsTypeWord(absl::string_view word) {
  return IsOneOf(word, {"struct", "class", "union", "enum", "typedef", "using"});
}
bool IsShouted(absl::string_view word) {
  return word.size() > 2 && std::none_of(word.begin(), word.end(), [](char c) {
           return absl::ascii_islower(static_cast<unsigned char>(c));
         });
}

// The file's name in `#include <file>` or `#include "file"`.
std::optional<std::string> Included(absl::string_view directive) {
  directive.remove_prefix(1);
  directive = absl::StripLeadingAsciiWhitespace(directive);
  if (!absl::ConsumePrefix(&directive, "include")) return std::nullopt;
  directive = absl::StripLeadingAsciiWhitespace(directive);
  if (directive.empty() || (directive[0] != '<' && directive[0] != '"')) return std::nullopt;
  const std::size_t end = directive.find(directive[0] == '<' ? '>' : '"', 1);
  if (end == absl::string_view::npos) return std::nullopt;
  return std::string(directive.substr(1, end - 1));
}

// What a declaration shows without being understood. Indices are of tokens, `end` is behind the
// last.
struct Declaration {
  std::size_t begin = 0, end = 0;
  std::size_t name = 0;  // Before the first parameters; 0: it has none.
  bool body = false;     // Of a function.
  bool device = false, constant = false, type = false, assigned = false;
};

// Macros that say __device__, or another such macro: they say it where they stand.
class DeviceMacros {
 public:
  explicit DeviceMacros(std::set<std::string> names = {}) : names_(std::move(names)) {}

  const std::set<std::string>& names() const { return names_; }
  bool Says(absl::string_view word) const {
    return IsDeviceWord(word) || names_.contains(std::string(word));
  }
  void Take(absl::string_view directive) {
    const std::vector<SourceToken> parts = CutSource(directive.substr(1));
    const auto part = [&](std::size_t i) {
      return directive.substr(1 + parts[i].begin, parts[i].end - parts[i].begin);
    };
    if (parts.size() < 3 || part(0) != "define") return;
    for (std::size_t i = 2; i < parts.size(); ++i) {
      if (parts[i].kind == Kind::kWord && Says(part(i))) names_.insert(std::string(part(1)));
    }
  }
  void TakeAll(absl::string_view source) {
    for (const SourceToken& token : CutSource(source)) {
      if (token.kind == Kind::kDirective) {
        Take(source.substr(token.begin, token.end - token.begin));
      }
    }
  }

 private:
  std::set<std::string> names_;
};

// Whole characters, whatever stands there.
std::string Short(absl::string_view name) {
  return CleanText(name.substr(0, kLongestNameInNote));
}

class Scanner {
 public:
  Scanner(absl::string_view source, const SourceContext& context)
      : source_(source),
        context_(context),
        tokens_(CutSource(source)),
        device_macros_(context.device_macros) {
    out_.text = std::string(source);
    for (std::size_t at = 0; at < source.size(); ++at) {
      if (source[at] == '\n') lines_.push_back(at);
    }
  }

  DeviceSource Scan() {
    for (const SourceToken& token : tokens_) {
      if (token.kind == Kind::kDirective) NoteDirective(token);
    }
    std::vector<std::pair<std::size_t, std::size_t>> aside;
    if (FindHostCode(&aside)) {
      for (const auto& [begin, end] : aside) Blank(begin, end);
    } else {
      out_.notes.push_back({1, LineOf(source_.size()),
                            "braces do not balance here: host code, if any, is left in place"});
    }
    std::stable_sort(out_.notes.begin(), out_.notes.end(),
                     [](auto& a, auto& b) { return a.first_line < b.first_line; });
    if (unsaid_ > 0) {
      out_.notes.push_back({1, LineOf(source_.size()), absl::StrCat("and ", unsaid_, " more")});
    }
    return std::move(out_);
  }

  // The last parts of what is included, in a body and anywhere.
  struct Includes {
    std::vector<std::string> in_bodies, all;
  };
  Includes FindIncludes() const {
    Includes found;
    std::vector<bool> open;  // Whether it is a body, not a namespace, of each brace and the like.
    std::size_t bodies = 0;  // Of those.
    const auto enter = [&](bool body) {
      open.push_back(body);
      bodies += body ? 1 : 0;
    };
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (const std::size_t inside = BehindOpening(i); inside != i) {
        enter(/*body=*/false);
        i = inside - 1;
      } else if (Is(i, "{") || Is(i, "(") || Is(i, "[")) {
        enter(/*body=*/true);
      } else if ((Is(i, "}") || Is(i, ")") || Is(i, "]")) && !open.empty()) {
        bodies -= open.back() ? 1 : 0;
        open.pop_back();
      } else if (const auto file = IncludedAt(i)) {
        found.all.push_back(LastPart(*file));
        if (bodies > 0) found.in_bodies.push_back(found.all.back());
      }
    }
    return found;
  }

 private:
  absl::string_view Text(std::size_t i) const {
    return source_.substr(tokens_[i].begin, tokens_[i].end - tokens_[i].begin);
  }
  bool Is(std::size_t i, absl::string_view text) const {
    return i < tokens_.size() && tokens_[i].kind != Kind::kText && Text(i) == text;
  }
  bool IsWord(std::size_t i) const { return i < tokens_.size() && tokens_[i].kind == Kind::kWord; }
  std::uint32_t LineOf(std::size_t at) const {
    const auto line = std::lower_bound(lines_.begin(), lines_.end(), at);
    return static_cast<std::uint32_t>(line - lines_.begin()) + 1;
  }

  std::optional<std::string> IncludedAt(std::size_t i) const {
    return tokens_[i].kind == Kind::kDirective ? Included(Text(i)) : std::nullopt;
  }

  void Note(std::size_t begin, std::size_t end, std::string text) {
    if (out_.notes.size() == kMostNotes) {
      ++unsaid_;
      return;
    }
    out_.notes.push_back({LineOf(begin), LineOf(end == begin ? begin : end - 1), std::move(text)});
  }
  void Clear(std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end; ++at) {
      if (source_[at] != '\n' && source_[at] != '\r') out_.text[at] = ' ';
    }
  }

  void NoteDirective(const SourceToken& token) {
    const absl::string_view text = source_.substr(token.begin, token.end - token.begin);
    const std::optional<std::string> file = Included(text);
    if (file.has_value() && !context_.known.contains(*file) && IsHostHeader(*file)) {
      Clear(token.begin, token.end);
      Note(token.begin, token.end,
           absl::StrCat("header ", Short(*file), ", which only hosts have"));
    }
    device_macros_.Take(text);
  }
  // Behind the bracket that closes the one at `i`; nullopt if none does.
  std::optional<std::size_t> BehindClosing(std::size_t i) const {
    std::vector<char> open;
    for (; i < tokens_.size(); ++i) {
      if (tokens_[i].kind != Kind::kPunct) continue;
      const char c = source_[tokens_[i].begin];
      if (c == '(' || c == '[' || c == '{') open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
      if (c != ')' && c != ']' && c != '}') continue;
      if (open.empty() || open.back() != c) return std::nullopt;
      open.pop_back();
      if (open.empty()) return i + 1;
    }
    return std::nullopt;
  }
  // Behind the > that closes the < at `i`; `i` where it cannot be told.
  std::size_t BehindAngles(std::size_t i) const {
    const std::size_t most = std::min(tokens_.size(), i + kMostInAngles);
    int depth = 0;
    for (std::size_t j = i; j < most; ++j) {
      if (Is(j, "<")) ++depth;
      if (Is(j, ">") && --depth == 0) return j + 1;
      if (Is(j, ";") || Is(j, "{")) return i;
      if (Is(j, "(")) {
        const auto behind = BehindClosing(j);
        if (!behind) return i;
        j = *behind - 1;
      }
    }
    return i;
  }

  // The ranges to set aside. False where braces do not balance.
  bool FindHostCode(std::vector<std::pair<std::size_t, std::size_t>>* aside) {
    std::size_t open = 0;  // Namespaces and the like.
    for (std::size_t i = 0; i < tokens_.size();) {
      if (tokens_[i].kind == Kind::kDirective || Is(i, ";")) {
        ++i;
      } else if (Is(i, "}")) {
        if (open-- == 0) return false;
        ++i;
      } else if (const std::size_t inside = BehindOpening(i); inside != i) {
        ++open;
        i = inside;
      } else {
        const std::optional<Declaration> found = Read(i);
        if (!found) return false;
        const std::string what = WhatOfHost(*found);
        if (const std::string type = TypeDefinedBy(*found); !type.empty()) {
          (what.empty() ? out_.device_types : out_.host_types).insert(type);
        }
        if (!what.empty()) {
          aside->emplace_back(tokens_[found->begin].begin, tokens_[found->end - 1].end);
          Note(aside->back().first, aside->back().second, what);
        }
        i = found->end;
      }
    }
    return open == 0;
  }

  // Behind `namespace a {` and `extern "C" {`; `i` if neither stands there.
  std::size_t BehindOpening(std::size_t i) const {
    std::size_t j = i;
    if (Is(j, "inline")) ++j;
    if (Is(j, "namespace")) {
      for (++j; j < tokens_.size() && !Is(j, ";") && !Is(j, "=") && !Is(j, "namespace"); ++j) {
        if (Is(j, "{")) return j + 1;
      }
      return i;
    }
    const bool linkage = Is(i, "extern") && i + 2 < tokens_.size() &&
                         tokens_[i + 1].kind == Kind::kText && Is(i + 2, "{");
    return linkage ? i + 3 : i;
  }

  // `MACRO(...)` that stands for a declaration of its own.
  std::optional<std::size_t> BehindMacroCall(std::size_t i) const {
    if (!IsWord(i) || !IsShouted(Text(i)) || !Is(i + 1, "(")) return std::nullopt;
    const auto behind = BehindClosing(i + 1);
    if (!behind || Is(*behind, "{")) return std::nullopt;
    return behind;
  }

  std::optional<Declaration> Read(std::size_t begin) const {
    Declaration out{.begin = begin};
    if (const auto behind = BehindMacroCall(begin); behind && !Is(*behind, ";")) {
      out.end = *behind;
      out.device = true;
      return out;
    }
    for (std::size_t i = begin; i < tokens_.size();) {
      if (Is(i, ";")) {
        out.end = i + 1;
        return out;
      }
      if (Is(i, "}")) {  // Of the namespace around it.
        out.end = i;
        return out;
      }
      const auto next = Is(i, "{") ? ReadBraces(i, &out) : ReadPart(i, &out);
      if (!next) return std::nullopt;
      i = *next;
      if (out.end != 0) return out;
    }
    out.end = tokens_.size();
    return out;
  }
  // A body ends the declaration, unless an initialiser of a member goes before it.
  std::optional<std::size_t> ReadBraces(std::size_t i, Declaration* out) const {
    const auto behind = BehindClosing(i);
    const bool function = out->name != 0 && !out->assigned && !out->type;
    if (behind && function && !Is(*behind, ",") && !Is(*behind, "{")) {
      out->body = true;
      out->end = *behind;
    }
    return behind;
  }
  std::optional<std::size_t> ReadPart(std::size_t i, Declaration* out) const {
    if (Is(i, "template") && Is(i + 1, "<")) return std::max(BehindAngles(i + 1), i + 1);
    if (Is(i, "(") || Is(i, "[")) {
      const bool parameters = Is(i, "(") && i > out->begin && !TakesArguments(Text(i - 1));
      if (parameters && out->name == 0 && !out->assigned) out->name = i - 1;
      return BehindClosing(i);
    }
    if (Is(i, ")") || Is(i, "]")) return std::nullopt;
    if (Is(i, "=") && out->name == 0 && !Is(i - 1, "operator")) out->assigned = true;
    if (IsWord(i)) ReadWord(Text(i), out);
    return i + 1;
  }
  void ReadWord(absl::string_view word, Declaration* out) const {
    if (device_macros_.Says(word)) out->device = true;
    if (IsOneOf(word, {"constexpr", "consteval"})) out->constant = true;
    if (IsTypeWord(word) && out->name == 0) out->type = true;
  }

  // The word of the host that stands in it; empty if none does.
  absl::string_view HostWordIn(const Declaration& found) const {
    const std::string own = TypeDefinedBy(found);
    absl::string_view itself;
    for (std::size_t i = found.begin; i < found.end; ++i) {
      if (Is(i, "<") && Is(i + 1, "<") && Is(i + 2, "<") &&
          tokens_[i].end + 1 == tokens_[i + 2].begin) {
        return "<<<";
      }
      if (!IsWord(i)) continue;
      const bool scope = Is(i + 1, ":") && Is(i + 2, ":");
      const bool name_space = scope || Is(i - 1, "namespace");
      const bool member = i >= 3 && Is(i - 1, ":") && Is(i - 3, "std");
      const absl::string_view word = Text(i);
      // Of these words the short ones are names of variables too.
      if (IsHostWord(word) && (name_space || word.size() > 3)) return word;
      if (member && IsHostStdWord(word)) return word;
      if (word.size() <= 3 || !context_.host_types.contains(std::string(word))) continue;
      if (word != own) return word;
      itself = word;
    }
    return itself;
  }
  bool HasDeviceWord(const Declaration& found) const {
    for (std::size_t i = found.begin; i < found.end; ++i) {
      if (!IsWord(i)) continue;
      if (device_macros_.Says(Text(i))) return true;
    }
    return false;
  }

  // The name of the type that it defines; empty: none, or it is only declared.
  std::string TypeDefinedBy(const Declaration& found) const {
    if (!found.type || found.name != 0) return "";
    std::size_t i = found.begin;
    if (Is(i, "template") && Is(i + 1, "<")) i = BehindAngles(i + 1);
    if (Is(i, "using")) return IsWord(i + 1) && Is(i + 2, "=") ? std::string(Text(i + 1)) : "";
    if (Is(i, "typedef")) {
      const bool named = found.end >= i + 3 && Is(found.end - 1, ";") && IsWord(found.end - 2);
      return named ? std::string(Text(found.end - 2)) : "";
    }
    return NameBeforeBody(i, found.end);
  }
  // `struct alignas(16) Name final : Base {`; empty where no body follows.
  std::string NameBeforeBody(std::size_t i, std::size_t end) const {
    std::string name;
    bool over = false;
    for (; i < end; ++i) {
      if (Is(i, "{")) return name;
      if (Is(i, "=")) return "";
      if (!name.empty() && !over && Is(i, "<")) return "";  // Of another's template, for one type.
      if (Is(i, "(")) {
        i = BehindClosing(i).value_or(end) - 1;
      } else if (Is(i, ":") || Is(i, "<")) {
        over = true;
      } else if (!over && IsWord(i) && !IsTypeWord(Text(i)) && Text(i) != "final") {
        name = std::string(Text(i));
      }
    }
    return "";
  }

  // What of the host it is, for the note; empty: it stays.
  std::string WhatOfHost(const Declaration& found) const {
    if (found.device) return "";
    const std::string name = found.name == 0 ? "" : Short(Text(found.name));
    const absl::string_view host = HostWordIn(found);
    const bool function = found.name != 0 && !found.assigned && !found.type;
    if (function && IsMacroCall(found)) return host.empty() ? "" : absl::StrCat("macro ", name);
    if (function && (!found.constant || !host.empty())) {
      return absl::StrCat(found.body ? "host function " : "declaration of the host function ",
                          name);
    }
    if (host.empty() || HasDeviceWord(found)) return "";
    return absl::StrCat(found.type ? "type" : "declaration", " that uses ", host);
  }
  // `MACRO(...);`, or a few without the semicolon: nobody here knows what they stand for.
  bool IsMacroCall(const Declaration& found) const {
    return !found.body && IsWord(found.begin) && Is(found.begin + 1, "(") &&
           !TakesArguments(Text(found.begin));
  }

  // All but directives, which hold the rest of the file together; what a body includes is of it.
  void Blank(std::size_t begin, std::size_t end) {
    std::size_t at = begin;
    const auto first = std::lower_bound(
        tokens_.begin(), tokens_.end(), begin,
        [](const SourceToken& token, std::size_t place) { return token.begin < place; });
    int depth = 0;
    for (auto i = static_cast<std::size_t>(first - tokens_.begin());
         i < tokens_.size() && tokens_[i].begin < end; ++i) {
      if (Is(i, "{")) ++depth;
      if (Is(i, "}")) --depth;
      if (tokens_[i].kind != Kind::kDirective || (depth > 0 && IncludedAt(i))) continue;
      Clear(at, tokens_[i].begin);
      at = tokens_[i].end;
    }
    Clear(at, end);
  }

  const absl::string_view source_;
  const SourceContext& context_;
  const std::vector<SourceToken> tokens_;
  std::vector<std::size_t> lines_;  // Where each ends.
  DeviceMacros device_macros_;
  std::size_t unsaid_ = 0;  // Notes beyond the most.
  DeviceSource out_;
};

}  // namespace

DeviceSource SetHostCodeAside(absl::string_view source, const SourceContext& context) {
  return Scanner(source, context).Scan();
}

// A macro that says another is found in the round after, wherever the two stand.
std::set<std::string> DeviceMacrosIn(std::span<const std::string> texts) {
  constexpr int kMostRounds = 8;
  DeviceMacros macros;
  for (int round = 0; round < kMostRounds; ++round) {
    const std::size_t before = macros.names().size();
    for (const std::string& text : texts) macros.TakeAll(text);
    if (macros.names().size() == before) break;
  }
  return macros.names();
}

std::string LastPart(absl::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

std::set<std::string> IncludedInBodies(std::span<const SourceText> files) {
  std::map<std::string, std::vector<std::string>> includes;  // Of files of a name, all.
  std::vector<std::string> found;
  for (const SourceText& file : files) {
    const Scanner::Includes of_file = Scanner(file.text, {}).FindIncludes();
    found.insert(found.end(), of_file.in_bodies.begin(), of_file.in_bodies.end());
    std::vector<std::string>& all = includes[LastPart(file.name)];
    all.insert(all.end(), of_file.all.begin(), of_file.all.end());
  }
  std::set<std::string> names;
  while (!found.empty()) {
    const std::string name = std::move(found.back());
    found.pop_back();
    if (!names.insert(name).second) continue;
    const std::vector<std::string>& within = includes[name];
    found.insert(found.end(), within.begin(), within.end());
  }
  return names;
}

bool NamesUlong(absl::string_view source) {
  const std::vector<SourceToken> tokens = CutSource(source);
  const auto is = [&](std::size_t i, absl::string_view text) {
    return i < tokens.size() &&
           source.substr(tokens[i].begin, tokens[i].end - tokens[i].begin) == text;
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (is(i, "ulong") && (is(i + 1, ";") || is(i - 1, "using"))) return true;
  }
  return false;
}

// A type that is made of such a type is found in the round after.
std::set<std::string> HostTypesIn(std::span<const absl::string_view> texts, SourceContext context) {
  constexpr int kMostRounds = 8;
  for (int round = 0; round < kMostRounds; ++round) {
    std::set<std::string> host, device;
    for (const absl::string_view text : texts) {
      DeviceSource cut = SetHostCodeAside(text, context);
      host.merge(cut.host_types);
      device.merge(cut.device_types);
    }
    for (const std::string& name : device) host.erase(name);
    if (host == context.host_types) break;
    context.host_types = std::move(host);
  }
  return std::move(context.host_types);
}

}  // namespace gridclock
