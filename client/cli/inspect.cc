#include "client/cli/inspect.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/format.h"
#include "client/cli/modules.h"

namespace gridclock::cli {
namespace {

using Parts = std::vector<absl::string_view>;

bool IsFile(absl::string_view path, absl::string_view file) {
  return path == file || absl::EndsWith(path, absl::StrCat("/", file));
}

// What an instruction does with memory: "load global 4 B", or "" for nothing.
std::string MemoryText(absl::string_view what, absl::string_view space, int bytes) {
  return absl::StrCat(what, " ", space, " ", bytes, " B");
}

// Bytes of "f32", "v4", "b128": the type times the vector.
int WidthOfPtx(const Parts& parts) {
  int bits = 32, many = 1;
  for (const absl::string_view part : parts) {
    int number = 0;
    if (part.size() < 2 || !absl::SimpleAtoi(part.substr(1), &number)) continue;
    if (part[0] == 'v') many = number;
    if (absl::StrContains("bsuf", part.substr(0, 1))) bits = number;
  }
  return bits / 8 * many;
}

std::string MemoryOfPtx(absl::string_view opcode) {
  const Parts parts = absl::StrSplit(opcode, '.');
  static constexpr std::pair<absl::string_view, absl::string_view> kWhat[] = {
      {"ld", "load"}, {"ldu", "load"}, {"st", "store"}, {"atom", "atomic"}, {"red", "atomic"}};
  for (const auto& [word, what] : kWhat) {
    if (parts[0] != word) continue;
    for (const absl::string_view space : {"global", "shared", "local", "param", "const"}) {
      const bool here = std::any_of(parts.begin(), parts.end(), [&](absl::string_view part) {
        return absl::StartsWith(part, space);
      });
      if (space == "param" && here) return "";  // Parameters of the kernel are no traffic.
      if (here) return MemoryText(what, space, WidthOfPtx(parts));
    }
    return MemoryText(what, "generic", WidthOfPtx(parts));
  }
  return "";
}

// Bytes of "LDG.E.128", "STS.U8"; 4 if it does not say.
int WidthOfSass(const Parts& parts) {
  for (const absl::string_view part : parts) {
    if (part == "128") return 16;
    if (part == "64") return 8;
    if (part == "U8" || part == "S8") return 1;
    if (part == "U16" || part == "S16") return 2;
  }
  return 4;
}

std::string MemoryOfSass(absl::string_view opcode) {
  const Parts parts = absl::StrSplit(opcode, '.');
  static constexpr struct {
    absl::string_view opcode, what, space;
  } kOpcodes[] = {{"LDG", "load", "global"},     {"STG", "store", "global"},
                  {"LDS", "load", "shared"},     {"STS", "store", "shared"},
                  {"LDL", "load", "local"},      {"STL", "store", "local"},
                  {"LD", "load", "generic"},     {"ST", "store", "generic"},
                  {"LDSM", "load", "shared"},    {"LDGSTS", "copy", "global to shared"},
                  {"ATOMG", "atomic", "global"}, {"RED", "atomic", "global"},
                  {"REDG", "atomic", "global"},  {"ATOMS", "atomic", "shared"},
                  {"ATOM", "atomic", "generic"}};
  for (const auto& one : kOpcodes) {
    if (parts[0] == one.opcode) return MemoryText(one.what, one.space, WidthOfSass(parts));
  }
  return "";
}

// The opcode of an instruction, behind a predicate: "@%p1 bra", "@!P0 LDG.E".
absl::string_view OpcodeOf(absl::string_view text) {
  if (absl::StartsWith(text, "@")) {
    text = absl::StripLeadingAsciiWhitespace(text.substr(std::min(text.find(' '), text.size())));
  }
  const std::size_t end = text.find_first_of(" \t;");
  return text.substr(0, end);
}

// Of `.file 1 "dir/square.cu"` the number if the file is the source, else -1.
int FileNumber(absl::string_view line, absl::string_view file) {
  int number = -1;
  const Parts words = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.size() < 3 || words[0] != ".file" || !absl::SimpleAtoi(words[1], &number)) return -1;
  const std::size_t open = line.find('"'), close = line.find('"', open + 1);
  if (close == absl::string_view::npos) return -1;
  return IsFile(line.substr(open + 1, close - open - 1), file) ? number : -1;
}

class PtxReader {
 public:
  PtxReader(absl::string_view ptx, absl::string_view file, bool memory, CodeOfLines* out)
      : memory_(memory), out_(out) {
    const Parts lines = absl::StrSplit(ptx, '\n');
    // The list of files stands at the end.
    for (const absl::string_view line : lines) {
      const int number = FileNumber(absl::StripAsciiWhitespace(line), file);
      if (number >= 0) file_ = number;
    }
    for (const absl::string_view line : lines) Read(absl::StripAsciiWhitespace(line));
  }

 private:
  void Read(absl::string_view line) {
    const Parts words = absl::StrSplit(line, absl::ByAnyChar(" \t,"), absl::SkipEmpty());
    if (words.size() >= 3 && words[0] == ".loc") {
      int file = 0, at = 0;
      const bool ours =
          absl::SimpleAtoi(words[1], &file) && file == file_ && absl::SimpleAtoi(words[2], &at);
      at_ = ours ? at : 0;
    }
    if (!absl::EndsWith(line, ";") || absl::StartsWith(line, ".") || absl::StartsWith(line, "//"))
      return;
    LineCode& code = (*out_)[at_];
    ++code.ptx;
    const std::string memory = memory_ ? MemoryOfPtx(OpcodeOf(line)) : "";
    if (!memory.empty()) ++code.memory[memory];
  }

  const bool memory_;
  CodeOfLines* out_;
  int file_ = -1, at_ = 0;
};

// The line of `//## File "/square.cu", line 25 inlined at ...`, 0 if it is of another file.
int LineOfSass(absl::string_view mark, absl::string_view file) {
  const std::size_t open = mark.find('"'), close = mark.find('"', open + 1);
  if (close == absl::string_view::npos || !IsFile(mark.substr(open + 1, close - open - 1), file))
    return 0;
  absl::string_view rest = mark.substr(close + 1);
  if (!absl::ConsumePrefix(&rest, ", line ")) return 0;
  int line = 0;
  return absl::SimpleAtoi(rest.substr(0, rest.find(' ')), &line) ? line : 0;
}

void ReadSass(absl::string_view sass, absl::string_view file, CodeOfLines* out) {
  int at = 0;
  for (absl::string_view line : absl::StrSplit(sass, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(line, ".section")) at = 0;
    if (absl::ConsumePrefix(&line, "//## File ")) at = LineOfSass(line, file);
    if (!absl::ConsumePrefix(&line, "/*")) continue;
    const std::size_t end = line.find("*/");
    if (end == absl::string_view::npos) continue;
    const absl::string_view opcode =
        OpcodeOf(absl::StripLeadingAsciiWhitespace(line.substr(end + 2)));
    // Padding behind the last instruction is no line's.
    if (opcode.empty() || opcode == "NOP") continue;
    LineCode& code = (*out)[at];
    ++code.sass;
    if (const std::string memory = MemoryOfSass(opcode); !memory.empty()) ++code.memory[memory];
  }
}

std::string MemoryColumn(const LineCode& code) {
  return absl::StrJoin(code.memory, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.second == 1 ? "" : absl::StrCat(entry.second, " x "), entry.first);
  });
}

// Without nvdisasm there is none, which is no count of 0.
bool HasSass(const CodeOfLines& lines) {
  return std::any_of(lines.begin(), lines.end(),
                     [](const auto& one) { return one.second.sass > 0; });
}

}  // namespace

CodeOfLines InspectLines(absl::string_view ptx, absl::string_view sass, absl::string_view file) {
  CodeOfLines out;
  PtxReader(ptx, file, /*memory=*/sass.empty(), &out);
  ReadSass(sass, file, &out);
  return out;
}

std::string InspectText(const CodeOfLines& lines, absl::string_view source) {
  const Parts texts = absl::StrSplit(source, '\n');
  const bool has_sass = HasSass(lines);
  Table table({"line", "PTX", "SASS", "memory", "source"});
  for (const auto& [line, code] : lines) {
    const bool known = line > 0 && static_cast<std::size_t>(line) <= texts.size();
    const std::string text = known ? CodeText(absl::StripTrailingAsciiWhitespace(
                                         texts[static_cast<std::size_t>(line) - 1]))
                                   : "(elsewhere: headers, the compiler's own)";
    table.Add({absl::StrCat(line), absl::StrCat(code.ptx), has_sass ? absl::StrCat(code.sass) : "-",
               MemoryColumn(code), text});
  }
  return table.ToText();
}

Json ToJson(const CodeOfLines& lines) {
  const bool has_sass = HasSass(lines);
  Json out = Json::array();
  for (const auto& [line, code] : lines) {
    out.push_back({{"line", line},
                   {"ptx", code.ptx},
                   {"sass", has_sass ? Json(code.sass) : Json()},
                   {"memory", code.memory}});
  }
  return out;
}

}  // namespace gridclock::cli
