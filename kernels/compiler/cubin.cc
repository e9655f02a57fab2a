#include "kernels/compiler/cubin.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include <cxxabi.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/text.h"

namespace gridclock {
namespace {

// Of ELF.
constexpr std::uint16_t kMachineCuda = 190;
constexpr std::size_t kHeaderBytes = 64, kSectionBytes = 64, kSymbolBytes = 24;
constexpr std::uint32_t kNoBytes = 8;  // A section that is not in the file.
constexpr std::uint32_t kSymbolTable = 2;
constexpr unsigned kObject = 1, kFunction = 2;
// Of CUDA: a symbol that is a kernel.
constexpr unsigned kEntryFlag = 0x10;

// Attributes.
enum : std::uint8_t {
  kMaxThreads = 0x05,
  kRequiredThreads = 0x10,
  kFrameSize = 0x11,
  kMinStackSize = 0x12,
  kParameterInfo = 0x17,
  kParameterBytes = 0x19,
  kRegisterCount = 0x2f,
};
constexpr std::uint8_t kSizedFormat = 4;

constexpr std::uint32_t kBlockRegisters = 65536;
constexpr std::uint32_t kMostThreads = 1024;
constexpr std::uint64_t kReservedShared = 1024;  // At the start of a block's, since sm_90.
constexpr std::size_t kMostSections = 65536;

absl::Status NoCubin(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("this is no cubin: ", why));
}

// A number of the file; 0 beyond its end, which callers exclude where it matters.
template <typename T>
T NumberAt(absl::string_view bytes, std::size_t at) {
  T value{};
  if (at <= bytes.size() && bytes.size() - at >= sizeof(T)) {
    std::memcpy(&value, bytes.data() + at, sizeof(T));
  }
  return value;
}

std::optional<absl::string_view> Part(absl::string_view bytes, std::uint64_t at,
                                      std::uint64_t size) {
  if (at > bytes.size() || size > bytes.size() - at) return std::nullopt;
  return bytes.substr(at, size);
}

absl::string_view TextAt(absl::string_view table, std::size_t at) {
  if (at >= table.size()) return "";
  const absl::string_view rest = table.substr(at);
  return rest.substr(0, rest.find('\0'));
}

struct Section {
  absl::string_view name, bytes;
  std::uint32_t type = 0, link = 0;
  std::uint64_t size = 0;
};
struct Symbol {
  absl::string_view name;
  unsigned type = 0, other = 0, section = 0;
  std::uint64_t size = 0;
};

class Reader {
 public:
  explicit Reader(absl::string_view file) : file_(file) {}

  absl::StatusOr<CubinFacts> Read() {
    GC_RETURN_IF_ERROR(ReadHeader());
    GC_RETURN_IF_ERROR(ReadSections());
    GC_RETURN_IF_ERROR(ReadSymbols());
    for (const Symbol& symbol : symbols_) {
      if (symbol.type != kFunction || (symbol.other & kEntryFlag) == 0) continue;
      GC_RETURN_IF_ERROR(AddEntry(symbol));
    }
    for (const Section& section : sections_) ReadSizes(section);
    for (const Symbol& symbol : symbols_) ReadVariable(symbol);
    // What the loader takes is the section's size, whatever a foreign compiler's symbols say.
    facts_.global_bytes = std::max(facts_.global_bytes, global_sections_);
    for (const Section& section : sections_) {
      if (section.name == ".nv.info") ReadAttributes(section.bytes, nullptr);
    }
    for (auto& [name, entry] : entries_) {
      entry.max_threads = std::min(entry.max_threads, ThreadsByRegisters(entry.registers));
      std::sort(entry.parameters.begin(), entry.parameters.end(),
                [](auto& a, auto& b) { return a.offset < b.offset; });
      facts_.entries.push_back(std::move(entry));
    }
    return std::move(facts_);
  }

 private:
  absl::Status ReadHeader() {
    if (file_.size() < kHeaderBytes || !absl::StartsWith(file_, "\177ELF\2\1\1")) {
      return NoCubin("it does not begin as a 64-bit ELF file does");
    }
    const auto machine = NumberAt<std::uint16_t>(file_, 18);
    if (machine != kMachineCuda) {
      return NoCubin(absl::StrCat("its machine is ", machine, ", not ", kMachineCuda));
    }
    // Since CUDA 13 (ABI 8) one byte further up than before.
    constexpr unsigned kNewAbi = 8;
    const auto flags = NumberAt<std::uint32_t>(file_, 48);
    const bool is_new = static_cast<unsigned char>(file_[8]) >= kNewAbi;
    sm_ = is_new ? flags >> 8 & 0xffff : flags & 0xff;
    facts_.arch = absl::StrCat("sm_", sm_ & 0xfff);
    return absl::OkStatus();
  }

  absl::Status ReadSections() {
    const auto begin = NumberAt<std::uint64_t>(file_, 40);
    const std::size_t count = NumberAt<std::uint16_t>(file_, 60);
    const std::size_t names = NumberAt<std::uint16_t>(file_, 62);
    const auto table = Part(file_, begin, count * kSectionBytes);
    if (!table || count > kMostSections || NumberAt<std::uint16_t>(file_, 58) != kSectionBytes) {
      return NoCubin("its sections lie outside of it");
    }
    std::vector<std::uint32_t> name_at;
    for (std::size_t i = 0; i < count; ++i) {
      const absl::string_view row = table->substr(i * kSectionBytes, kSectionBytes);
      Section section;
      name_at.push_back(NumberAt<std::uint32_t>(row, 0));
      section.type = NumberAt<std::uint32_t>(row, 4);
      section.size = NumberAt<std::uint64_t>(row, 32);
      section.link = NumberAt<std::uint32_t>(row, 40);
      if (section.type != kNoBytes) {
        const auto bytes = Part(file_, NumberAt<std::uint64_t>(row, 24), section.size);
        if (!bytes) return NoCubin(absl::StrCat("section ", i, " lies outside of it"));
        section.bytes = *bytes;
      }
      sections_.push_back(section);
    }
    if (names >= count) return NoCubin("its sections have no names");
    for (std::size_t i = 0; i < count; ++i) {
      sections_[i].name = TextAt(sections_[names].bytes, name_at[i]);
    }
    return absl::OkStatus();
  }

  absl::Status ReadSymbols() {
    for (const Section& section : sections_) {
      if (section.type != kSymbolTable) continue;
      if (section.link >= sections_.size()) return NoCubin("its symbols have no names");
      const absl::string_view names = sections_[section.link].bytes;
      for (std::size_t at = 0; at + kSymbolBytes <= section.bytes.size(); at += kSymbolBytes) {
        symbols_.push_back({TextAt(names, NumberAt<std::uint32_t>(section.bytes, at)),
                            NumberAt<std::uint8_t>(section.bytes, at + 4) & 0xfu,
                            NumberAt<std::uint8_t>(section.bytes, at + 5),
                            NumberAt<std::uint16_t>(section.bytes, at + 6),
                            NumberAt<std::uint64_t>(section.bytes, at + 16)});
      }
      return absl::OkStatus();
    }
    return NoCubin("it has no symbols");
  }

  absl::Status AddEntry(const Symbol& symbol) {
    constexpr std::size_t kMostEntries = 1024, kLongestName = 4096;
    if (entries_.size() == kMostEntries) {
      return NoCubin(absl::StrCat("it has more than ", kMostEntries, " kernels"));
    }
    if (symbol.name.size() > kLongestName || CleanText(symbol.name) != symbol.name) {
      return NoCubin(absl::StrCat("the name of a kernel is not printable or has more than ",
                                  kLongestName, " bytes"));
    }
    ModuleEntry& entry = entries_[symbol.name];
    entry.name = std::string(symbol.name);
    entry.display = DisplayName(entry.name);
    entry.max_threads = kMostThreads;
    return absl::OkStatus();
  }

  // The kernel that a section is about by its name; null if it is about none.
  ModuleEntry* EntryOf(absl::string_view section, absl::string_view prefix) {
    if (!absl::ConsumePrefix(&section, prefix)) return nullptr;
    const auto found = entries_.find(section);
    return found == entries_.end() ? nullptr : &found->second;
  }

  static bool HoldsVariables(const Section& section) {
    return section.name == ".nv.global" || section.name == ".nv.global.init";
  }

  void ReadSizes(const Section& section) {
    constexpr std::uint32_t kFirstReserving = 90;
    if (ModuleEntry* entry = EntryOf(section.name, ".nv.shared.")) {
      const std::uint64_t reserved = sm_ >= kFirstReserving ? kReservedShared : 0;
      entry->shared_bytes = section.size - std::min(section.size, reserved);
    } else if (ModuleEntry* with = EntryOf(section.name, ".nv.constant2.")) {
      with->constant_bytes += section.size;
    } else if (ModuleEntry* of = EntryOf(section.name, ".nv.info.")) {
      ReadAttributes(section.bytes, of);
    } else if (section.name == ".nv.constant3") {
      facts_.constant_bytes += section.size;
    } else if (HoldsVariables(section)) {
      global_sections_ += std::min(section.size, ~global_sections_);
    }
  }
  // Sections of more than 4 GiB do not say so themselves.
  void ReadVariable(const Symbol& symbol) {
    if (symbol.type != kObject || symbol.section >= sections_.size()) return;
    if (!HoldsVariables(sections_[symbol.section])) return;
    facts_.global_bytes += std::min(symbol.size, ~facts_.global_bytes);
  }

  // Each is: format, number, size or value, and bytes where the format says so.
  void ReadAttributes(absl::string_view bytes, ModuleEntry* entry) {
    std::size_t at = 0;
    while (at + 4 <= bytes.size()) {
      const auto format = NumberAt<std::uint8_t>(bytes, at);
      const auto number = NumberAt<std::uint8_t>(bytes, at + 1);
      const auto value = NumberAt<std::uint16_t>(bytes, at + 2);
      at += 4;
      absl::string_view body;
      if (format == kSizedFormat) {
        const auto part = Part(bytes, at, value);
        if (!part) return;
        body = *part;
        at += value;
      }
      if (entry != nullptr) {
        TakeOwn(number, value, body, *entry);
      } else {
        TakeShared(number, body);
      }
    }
  }
  // In .nv.info: about the symbol whose index comes first.
  void TakeShared(std::uint8_t number, absl::string_view body) {
    const auto index = NumberAt<std::uint32_t>(body, 0);
    if (body.size() < 8 || index >= symbols_.size()) return;
    const auto found = entries_.find(symbols_[index].name);
    if (found == entries_.end()) return;
    ModuleEntry& entry = found->second;
    const auto value = NumberAt<std::uint32_t>(body, 4);
    if (number == kRegisterCount) entry.registers = value;
    if (number == kFrameSize || number == kMinStackSize) {
      entry.local_bytes = std::max<std::uint64_t>(entry.local_bytes, value);
    }
  }
  static void TakeOwn(std::uint8_t number, std::uint16_t value, absl::string_view body,
                      ModuleEntry& entry) {
    const auto word = [&](std::size_t i) { return NumberAt<std::uint32_t>(body, 4 * i); };
    const std::uint64_t threads = std::uint64_t{word(0)} * word(1) * word(2);
    switch (number) {
      case kParameterBytes:
        entry.constant_bytes += value;
        break;
      case kParameterInfo:  // Index; ordinal and offset; size, in the upper 14 bits.
        if (body.size() >= 12)
          entry.parameters.push_back({.offset = word(1) >> 16, .size = word(2) >> 18});
        break;
      case kRequiredThreads:
        entry.required_block = {word(0), word(1), word(2)};
        [[fallthrough]];
      case kMaxThreads:
        entry.max_threads =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(entry.max_threads, threads));
        break;
      default:
        break;
    }
  }

  // Whole warps, in equal numbers on each of four parts.
  static std::uint32_t ThreadsByRegisters(std::uint32_t registers) {
    constexpr std::uint32_t kWarp = 32, kPiece = 256, kParts = 4;
    if (registers == 0) return kMostThreads;
    const std::uint64_t per_warp =
        (std::uint64_t{registers} * kWarp + kPiece - 1) / kPiece * kPiece;
    return static_cast<std::uint32_t>(kBlockRegisters / kParts / per_warp * kParts * kWarp);
  }

  const absl::string_view file_;
  std::uint32_t sm_ = 0;
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
  std::map<absl::string_view, ModuleEntry> entries_;
  std::uint64_t global_sections_ = 0;  // Bytes of those that hold variables.
  CubinFacts facts_;
};

// Where the parameters at the end of a demangled name begin.
std::size_t ParametersOf(absl::string_view full) {
  int depth = 0;
  for (std::size_t at = full.size(); at-- > 0;) {
    if (full[at] == ')') ++depth;
    if (full[at] == '(' && --depth == 0) return at;
  }
  return full.size();
}

// Without the parameters at the end and what is before the name.
std::string NameAlone(absl::string_view full) {
  absl::string_view name = full.substr(0, ParametersOf(full));
  absl::ConsumePrefix(&name, "void ");
  return std::string(name);
}

// With its parameters; empty for what is not mangled.
std::string Demangle(const std::string& mangled) {
  constexpr std::size_t kLongest = 4096;  // The library's reader goes as deep as the name does.
  if (!absl::StartsWith(mangled, "_Z") || mangled.size() > kLongest) return "";
  int failed = 0;
  const std::unique_ptr<char, decltype(&std::free)> full(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &failed), &std::free);
  return failed != 0 || full == nullptr ? "" : full.get();
}

}  // namespace

absl::StatusOr<CubinFacts> ReadCubin(absl::string_view bytes) {
  return Reader(bytes).Read();
}

std::string DisplayName(const std::string& mangled) {
  const std::string full = Demangle(mangled);
  if (full.empty()) return mangled;
  // Each substitution can double the name.
  constexpr std::size_t kLongestShown = 1024;
  std::string name = NameAlone(full);
  return name.size() > kLongestShown ? mangled : name;
}

std::vector<std::string> ParameterTypes(const std::string& mangled) {
  const std::string full = Demangle(mangled);
  absl::string_view list(full);
  list.remove_prefix(ParametersOf(full));
  if (!absl::ConsumePrefix(&list, "(") || !absl::ConsumeSuffix(&list, ")") || list.empty()) {
    return {};
  }
  std::vector<std::string> types(1);
  int depth = 0;
  for (const char c : list) {
    if (c == '(' || c == '<' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '>' || c == '}' || c == ']') --depth;
    if (c == ',' && depth == 0) {
      types.emplace_back();
    } else if (c != ' ' || !types.back().empty()) {
      types.back() += c;
    }
  }
  return types;
}

}  // namespace gridclock
