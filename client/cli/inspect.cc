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
#include "client/cli/opcodes.h"

namespace gridclock::cli {
namespace {

using Parts = std::vector<absl::string_view>;

bool IsFile(absl::string_view path, absl::string_view file) {
  return path == file || absl::EndsWith(path, absl::StrCat("/", file));
}

// A file of code sets it in columns; here one blank divides its words.
std::string InOneLine(absl::string_view instruction) {
  return absl::StrJoin(absl::StrSplit(instruction, absl::ByAnyChar(" \t"), absl::SkipEmpty()), " ");
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
    code.ptx.push_back(InOneLine(line));
    const std::string memory = memory_ ? MemoryOfPtx(line) : "";
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
    const absl::string_view instruction = absl::StripLeadingAsciiWhitespace(line.substr(end + 2));
    const absl::string_view opcode = OpcodeOf(instruction);
    // Padding behind the last instruction is no line's.
    if (opcode.empty() || opcode == "NOP") continue;
    LineCode& code = (*out)[at];
    code.sass.push_back(InOneLine(absl::StrCat(line.substr(0, end), " ", instruction)));
    if (const std::string memory = MemoryOfSass(instruction); !memory.empty())
      ++code.memory[memory];
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
                     [](const auto& one) { return !one.second.sass.empty(); });
}

void AppendCode(absl::string_view kind, const std::vector<std::string>& code,
                const Terminal& terminal, std::string* out) {
  for (const std::string& instruction : code) {
    absl::StrAppend(out, "      ", Paint(terminal, Ink::kBlue, kind), "  ", CodeText(instruction),
                    "\n");
  }
}

// Under the row of each line what it became.
std::string WithCode(absl::string_view table, const CodeOfLines& lines, CodeShown shown,
                     const Terminal& terminal) {
  const Parts rows = absl::StrSplit(table, '\n', absl::SkipEmpty());
  std::string out = absl::StrCat(rows[0], "\n");
  std::size_t row = 1;
  for (const auto& [line, code] : lines) {
    absl::StrAppend(&out, Paint(terminal, Ink::kBold, rows[row++]), "\n");
    if (shown.ptx) AppendCode("PTX ", code.ptx, terminal, &out);
    if (shown.sass) AppendCode("SASS", code.sass, terminal, &out);
  }
  return out;
}

}  // namespace

CodeOfLines InspectLines(absl::string_view ptx, absl::string_view sass, absl::string_view file) {
  CodeOfLines out;
  PtxReader(ptx, file, /*memory=*/sass.empty(), &out);
  ReadSass(sass, file, &out);
  return out;
}

std::string InspectText(const CodeOfLines& lines, absl::string_view source, CodeShown shown,
                        const Terminal& terminal) {
  const Parts texts = absl::StrSplit(source, '\n');
  const bool has_sass = HasSass(lines);
  Table table({"line", "PTX", "SASS", "memory", "source"});
  for (const auto& [line, code] : lines) {
    const bool known = line > 0 && static_cast<std::size_t>(line) <= texts.size();
    const std::string text = known ? CodeText(absl::StripTrailingAsciiWhitespace(
                                         texts[static_cast<std::size_t>(line) - 1]))
                                   : "(elsewhere: headers, the compiler's own)";
    table.Add({absl::StrCat(line), absl::StrCat(code.ptx.size()),
               has_sass ? absl::StrCat(code.sass.size()) : "-", MemoryColumn(code), text});
  }
  if (!shown.ptx && !shown.sass) return table.ToText();
  return WithCode(table.ToText(), lines, shown, terminal);
}

Json ToJson(const CodeOfLines& lines, CodeShown shown) {
  const bool has_sass = HasSass(lines);
  Json out = Json::array();
  for (const auto& [line, code] : lines) {
    Json one = {{"line", line},
                {"ptx", code.ptx.size()},
                {"sass", has_sass ? Json(code.sass.size()) : Json()},
                {"memory", code.memory}};
    if (shown.ptx) one["ptx_code"] = code.ptx;
    if (shown.sass) one["sass_code"] = code.sass;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace gridclock::cli
