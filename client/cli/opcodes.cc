#include "client/cli/opcodes.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gridclock::cli {
namespace {

using Parts = std::vector<absl::string_view>;

bool HasPart(const Parts& parts, absl::string_view part) {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

std::string MemoryText(absl::string_view what, absl::string_view space, int bytes) {
  return absl::StrCat(what, " ", space, " ", bytes, " B");
}

// Of a thread; a matrix is 8 rows of 16 bytes, spread over a warp, and one of 16 x 16 bytes twice
// that.
int WidthOfMatrices(int count, bool large) {
  return count * (large ? 8 : 4);
}

// Bits of "f32", "b128", "bf16"; 0 for what is no type. A pair ("f16x2") has the 32 of a register.
int BitsOfPtx(absl::string_view type) {
  for (const absl::string_view kind : {"bf", "b", "s", "u", "f"}) {
    absl::string_view rest = type;
    int bits = 0;
    if (absl::ConsumePrefix(&rest, kind) && absl::SimpleAtoi(rest, &bits) && bits <= 128)
      return std::max(bits, 0);
  }
  return 0;
}

// Of registers or matrices: the number of "v4", "x4", 1 if there is none.
int CountOfPtx(const Parts& parts, char letter) {
  for (const int count : {2, 4, 8}) {
    if (HasPart(parts, absl::StrCat(std::string(1, letter), count))) return count;
  }
  return 1;
}

int WidthOfPtx(const Parts& parts) {
  int bits = 32;
  for (const absl::string_view part : parts) {
    if (const int found = BitsOfPtx(part); found != 0) bits = found;
  }
  return bits * CountOfPtx(parts, 'v') / 8;
}

// Of "shared::cluster" and "const" the space, "" for what is none.
absl::string_view SpaceOfPtx(absl::string_view part) {
  static constexpr std::pair<absl::string_view, absl::string_view> kSpaces[] = {
      {"global", "global"},
      {"shared", "shared"},
      {"local", "local"},
      {"param", "param"},
      {"const", "constant"}};
  for (const auto& [word, space] : kSpaces) {
    if (absl::StartsWith(part, word)) return space;
  }
  return "";
}

std::vector<absl::string_view> SpacesOfPtx(const Parts& parts) {
  std::vector<absl::string_view> out;
  for (const absl::string_view part : parts) {
    if (const absl::string_view space = SpaceOfPtx(part); !space.empty()) out.push_back(space);
  }
  return out;
}

// Of `cp.async.cg.shared.global [%r1], [%rd2], 16;` the 16.
int SizeOfCopy(absl::string_view instruction) {
  const Parts operands = absl::StrSplit(instruction, absl::ByAnyChar(",;"));
  int bytes = 0;
  return operands.size() > 2 && absl::SimpleAtoi(operands[2], &bytes) ? bytes : 4;
}

// cp.async and its kin: the space that is written stands first.
std::string CopyOfPtx(const Parts& parts, absl::string_view instruction) {
  const std::vector<absl::string_view> spaces = SpacesOfPtx(parts);
  if (spaces.size() < 2 || HasPart(parts, "prefetch")) return "";  // Groups and barriers have none.
  if (HasPart(parts, "reduce")) return absl::StrCat("bulk atomic ", spaces[0]);
  const std::string way = absl::StrCat(spaces[1], " to ", spaces[0]);
  if (HasPart(parts, "bulk")) return absl::StrCat("bulk copy ", way);
  return MemoryText("copy", way, SizeOfCopy(instruction));
}

// What bytes of "LDG.E.128", "REDG.E.ADD.F32x4" each thread moves; 4 if it does not say.
int WidthOfSass(const Parts& parts) {
  static constexpr std::pair<absl::string_view, int> kWidths[] = {
      {"256", 32},  {"128", 16},   {"64", 8},     {"U8", 1},     {"S8", 1},
      {"U16", 2},   {"S16", 2},    {"F64", 8},    {"F32x2", 8},  {"F32x4", 16},
      {"F16x4", 8}, {"F16x8", 16}, {"BF16x4", 8}, {"BF16x8", 16}};
  for (const absl::string_view part : parts) {
    for (const auto& [word, bytes] : kWidths) {
      if (part == word) return bytes;
    }
  }
  return 4;
}

// "LDSM.16.M88.4" is of four matrices, "LDSM.8.MT1616" of one.
int WidthOfSassMatrices(const Parts& parts) {
  const int count = parts.back() == "4" ? 4 : parts.back() == "2" ? 2 : 1;
  const bool large = std::any_of(parts.begin(), parts.end(), [](absl::string_view part) {
    return absl::StartsWith(part, "M") && absl::EndsWith(part, "1616");
  });
  return WidthOfMatrices(count, large);
}

// "UBLKCP.S.G" is into shared memory, "UBLKRED.G.S" into global.
std::string BulkOfSass(const Parts& parts) {
  const auto space = [&](std::size_t at) -> absl::string_view {
    return parts.size() > at && parts[at] == "G" ? "global" : "shared";
  };
  if (parts[0] == "UBLKRED") return absl::StrCat("bulk atomic ", space(1));
  return absl::StrCat("bulk copy ", space(2), " to ", space(1));
}

// Bank 0 holds what the launch gave: parameters, its shape, the stack.
std::string ConstantOfSass(const Parts& parts, absl::string_view instruction) {
  if (absl::StrContains(instruction, "c[0x0]")) return "";
  return MemoryText("load", "constant", WidthOfSass(parts));
}

}  // namespace

absl::string_view OpcodeOf(absl::string_view instruction) {
  absl::string_view text = instruction;
  if (absl::StartsWith(text, "@")) {
    text = absl::StripLeadingAsciiWhitespace(text.substr(std::min(text.find(' '), text.size())));
  }
  return text.substr(0, text.find_first_of(" \t;"));
}

std::string MemoryOfPtx(absl::string_view instruction) {
  const Parts parts = absl::StrSplit(OpcodeOf(instruction), '.');
  if (parts[0] == "cp") return CopyOfPtx(parts, instruction);
  static constexpr std::pair<absl::string_view, absl::string_view> kWhat[] = {
      {"ld", "load"},        {"ldu", "load"},    {"ldmatrix", "load"}, {"st", "store"},
      {"stmatrix", "store"}, {"atom", "atomic"}, {"red", "atomic"}};
  const auto* const found = std::find_if(std::begin(kWhat), std::end(kWhat),
                                         [&](const auto& one) { return one.first == parts[0]; });
  if (found == std::end(kWhat)) return "";
  if (absl::EndsWith(parts[0], "matrix")) {
    return MemoryText(found->second, "shared",
                      WidthOfMatrices(CountOfPtx(parts, 'x'), HasPart(parts, "m16n16")));
  }
  const std::vector<absl::string_view> spaces = SpacesOfPtx(parts);
  const absl::string_view space = spaces.empty() ? "generic" : spaces[0];
  return space == "param" ? "" : MemoryText(found->second, space, WidthOfPtx(parts));
}

std::string MemoryOfSass(absl::string_view instruction) {
  const Parts parts = absl::StrSplit(OpcodeOf(instruction), '.');
  const absl::string_view opcode = parts[0];
  static constexpr struct {
    absl::string_view opcode, what, space;
  } kOpcodes[] = {{"LDG", "load", "global"},     {"STG", "store", "global"},
                  {"LDS", "load", "shared"},     {"STS", "store", "shared"},
                  {"STAS", "store", "shared"},   {"LDL", "load", "local"},
                  {"STL", "store", "local"},     {"LD", "load", "generic"},
                  {"ST", "store", "generic"},    {"LDGSTS", "copy", "global to shared"},
                  {"ATOMG", "atomic", "global"}, {"RED", "atomic", "global"},
                  {"REDG", "atomic", "global"},  {"ATOMS", "atomic", "shared"},
                  {"ATOM", "atomic", "generic"}};
  for (const auto& one : kOpcodes) {
    if (opcode == one.opcode) return MemoryText(one.what, one.space, WidthOfSass(parts));
  }
  if (opcode == "LDC" || opcode == "LDCU" || opcode == "ULDC")
    return ConstantOfSass(parts, instruction);
  if (opcode == "LDSM") return MemoryText("load", "shared", WidthOfSassMatrices(parts));
  if (opcode == "STSM") return MemoryText("store", "shared", WidthOfSassMatrices(parts));
  if (opcode == "UBLKCP" || opcode == "UBLKRED") return BulkOfSass(parts);
  if (opcode == "UTMALDG") return "bulk copy global to shared";
  if (opcode == "UTMASTG") return "bulk copy shared to global";
  if (opcode == "UTMAREDG") return "bulk atomic global";
  return "";
}

}  // namespace gridclock::cli
