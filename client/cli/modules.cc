#include "client/cli/modules.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cpp/file.h"

namespace gridclock::cli {
namespace {

namespace fs = std::filesystem;

std::string LimitText(const v1::Occupancy& occupancy) {
  switch (occupancy.limit()) {
    case v1::Occupancy::THREADS:
      return "threads";
    case v1::Occupancy::BLOCKS:
      return "blocks";
    case v1::Occupancy::REGISTERS:
      return "registers";
    case v1::Occupancy::SHARED_MEMORY:
      return "shared memory";
    case v1::Occupancy::BLOCK_TOO_LARGE:
      return "block too large";
    default:
      return "unknown architecture";
  }
}

Json ToJson(const v1::Occupancy& occupancy) {
  return {{"block_threads", occupancy.block_threads()},
          {"dynamic_shared_bytes", occupancy.dynamic_shared_bytes()},
          {"blocks", occupancy.blocks()},
          {"warps", occupancy.warps()},
          {"max_warps", occupancy.max_warps()},
          {"fraction", occupancy.fraction()},
          {"limit", v1::Occupancy::Limit_Name(occupancy.limit())}};
}

Json ToJson(const v1::Entry& entry) {
  Json parameters = Json::array();
  for (const v1::Parameter& parameter : entry.parameters()) {
    parameters.push_back({{"offset", parameter.offset()},
                          {"size", parameter.size()},
                          {"type", parameter.type()},
                          {"name", parameter.name()}});
  }
  const Json unknown = nullptr;
  return {
      {"name", entry.name()},
      {"display", entry.display()},
      {"registers", entry.registers()},
      {"shared_bytes", entry.shared_bytes()},
      {"local_bytes", entry.local_bytes()},
      {"constant_bytes", entry.constant_bytes()},
      {"spill_store_bytes",
       entry.has_spill_store_bytes() ? Json(entry.spill_store_bytes()) : unknown},
      {"spill_load_bytes", entry.has_spill_load_bytes() ? Json(entry.spill_load_bytes()) : unknown},
      {"max_threads", entry.max_threads()},
      {"required_block",
       std::vector<std::uint32_t>(entry.required_block().begin(), entry.required_block().end())},
      {"parameters", parameters},
      {"occupancy", ToJson(entry.occupancy())}};
}

// "0/0 B", or "-" where nobody said.
std::string SpillsText(const v1::Entry& entry) {
  if (!entry.has_spill_store_bytes()) return "-";
  return absl::StrCat(entry.spill_store_bytes(), "/", entry.spill_load_bytes(), " B");
}

std::string OccupancyText(const v1::Occupancy& occupancy) {
  if (occupancy.max_warps() == 0) return LimitText(occupancy);
  return absl::StrCat(FormatPercent(occupancy.fraction()), " of ", occupancy.block_threads(),
                      " threads by ", LimitText(occupancy));
}

// "softmax<float, 256>, fill, ...".
std::string FirstEntries(const v1::Module& module) {
  constexpr int kShown = 3;
  std::string out;
  for (int i = 0; i < std::min(kShown, module.entries_size()); ++i) {
    absl::StrAppend(&out, i == 0 ? "" : ", ", Escape(module.entries(i).display()));
  }
  if (module.entries_size() > kShown) absl::StrAppend(&out, ", ...");
  return out;
}

// "kernel.cu(3): error" becomes "dir/kernel.cu:3: error".
std::string Clickable(absl::string_view line, const std::string& name, const std::string& path) {
  absl::string_view rest = line;
  if (name.empty() || !absl::ConsumePrefix(&rest, absl::StrCat(name, "(")))
    return std::string(line);
  const std::size_t close = rest.find(')');
  if (close == absl::string_view::npos) return std::string(line);
  return absl::StrCat(path, ":", rest.substr(0, close), rest.substr(close + 1));
}

Ink InkOf(absl::string_view line) {
  if (absl::StrContains(line, "error") || absl::StrContains(line, "fatal")) return Ink::kRed;
  return absl::StrContains(line, "warning") ? Ink::kYellow : Ink::kPlain;
}

// The names in `#include "NAME"`.
std::vector<std::string> QuotedIncludes(absl::string_view text) {
  std::vector<std::string> names;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, "#")) continue;
    line = absl::StripLeadingAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, "include")) continue;
    line = absl::StripLeadingAsciiWhitespace(line);
    const std::size_t end = line.find('"', 1);
    if (absl::StartsWith(line, "\"") && end != absl::string_view::npos) {
      names.emplace_back(line.substr(1, end - 1));
    }
  }
  return names;
}

// A name as the server takes it: another one leads to the same file, for this is the main source.
std::string NameToSend(std::string name) {
  for (char& c : name) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                       absl::StrContains("_.-+", absl::string_view(&c, 1));
    if (!plain) c = '_';
  }
  if (absl::StartsWith(name, "-")) name[0] = '_';
  return name;
}

// What is sent of the files around a source. Who compiles another's file sends none of their own by
// it: what it includes lies in its folder, or is code in the same checkout.
class SourceReader {
 public:
  // `folder`: of the source; "" is where we are.
  SourceReader(fs::path folder, v1::CompileRequest* out)
      : folder_(std::move(folder)),
        inside_(Real(folder_)),
        checkout_(CheckoutOf(inside_)),
        out_(*out) {}

  absl::Status Read(const fs::path& path) {
    files_.push_back(path.string());
    out_.mutable_source()->set_name(NameToSend(path.filename().string()));
    GC_ASSIGN_OR_RETURN(*out_.mutable_source()->mutable_text(), ReadSmallFile(path.string()));
    unread_.emplace_back(folder_, out_.source().text());
    while (!unread_.empty()) {
      const auto [where, text] = std::move(unread_.front());
      unread_.pop_front();
      for (const std::string& name : QuotedIncludes(text)) {
        GC_RETURN_IF_ERROR(Take(where, name));
      }
    }
    return absl::OkStatus();
  }
  // That were read, the source among them.
  const std::vector<std::string>& files() const { return files_; }

 private:
  static fs::path Real(const fs::path& path) {
    std::error_code failed;
    return fs::weakly_canonical(path.empty() ? "." : path, failed);
  }
  // Empty: it is in none.
  static fs::path CheckoutOf(fs::path folder) {
    std::error_code failed;
    for (; folder.has_relative_path(); folder = folder.parent_path()) {
      if (fs::exists(folder / ".git", failed)) return folder;
    }
    return "";
  }
  static bool IsBelow(const fs::path& folder, const fs::path& file) {
    return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first ==
           folder.end();
  }
  static bool IsCode(const fs::path& file) {
    static const std::set<std::string> kEndings = {".c", ".cc", ".cpp", ".cu",  ".cuh", ".cxx",
                                                   ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl"};
    return kEndings.contains(file.extension().string());
  }

  // A part of its path below `folder` begins with a dot, as keys and settings do.
  static bool IsHidden(const fs::path& folder, const fs::path& file) {
    const auto below = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).second;
    return std::any_of(below, file.end(),
                       [](const fs::path& part) { return absl::StartsWith(part.string(), "."); });
  }

  absl::Status CheckIsSent(const std::string& name, const fs::path& real) const {
    const bool relative = fs::path(name).is_relative();
    if (relative && IsBelow(inside_, real)) {
      if (!IsHidden(inside_, real)) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat(
          "#include \"", Escape(name), "\" names a hidden file: such files are not sent"));
    }
    const bool same = !checkout_.empty() && CheckoutOf(real.parent_path()) == checkout_;
    if (relative && same && IsCode(real) && !IsHidden(checkout_, real)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("#include \"", Escape(name), "\" names a file outside ",
                     Escape(folder_.empty() ? "the folder of the source" : folder_.string()),
                     same ? ", which is not named as code (.h, .cuh, ...)" : " and its checkout",
                     ": such files are not sent; put it beside the source"));
  }

  absl::Status Take(const fs::path& where, const std::string& name) {
    std::error_code missing;
    const fs::path beside = where / name;
    const fs::path found = fs::is_regular_file(beside, missing) ? beside : folder_ / name;
    if (!fs::is_regular_file(found, missing)) return absl::OkStatus();  // Maybe one of CUDA's own.
    const fs::path real = Real(found);
    const auto [known, is_new] = taken_.emplace(name, real);
    if (!is_new) return CheckIsSame(name, known->second, real);
    GC_RETURN_IF_ERROR(CheckIsSent(name, real));
    files_.push_back(found.string());
    v1::SourceFile* header = out_.add_headers();
    header->set_name(name);
    GC_ASSIGN_OR_RETURN(*header->mutable_text(), ReadSmallFile(found.string()));
    unread_.emplace_back(found.parent_path(), header->text());
    return absl::OkStatus();
  }
  // A header goes by the name that includes it: of two, one would stand for the other.
  static absl::Status CheckIsSame(const std::string& name, const fs::path& first,
                                  const fs::path& second) {
    if (first == second) return absl::OkStatus();
    GC_ASSIGN_OR_RETURN(const std::string one, ReadSmallFile(first.string()));
    GC_ASSIGN_OR_RETURN(const std::string other, ReadSmallFile(second.string()));
    // What they include in turn may be two files all the same.
    if (one == other && QuotedIncludes(one).empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("#include \"", Escape(name), "\" is ", Escape(first.string()), " here and ",
                     Escape(second.string()), " there: name them apart"));
  }

  const fs::path folder_, inside_, checkout_;
  v1::CompileRequest& out_;
  std::deque<std::pair<fs::path, std::string>> unread_;  // Of each file: its folder, and its text.
  std::vector<std::string> files_;
  std::map<std::string, fs::path> taken_;  // By the names that sources say.
};

}  // namespace

Json ToJson(const v1::Module& module) {
  Json notes = Json::array(), stages = Json::array(), entries = Json::array();
  for (const v1::Note& note : module.notes()) {
    notes.push_back({{"first_line", note.first_line()},
                     {"last_line", note.last_line()},
                     {"text", note.text()}});
  }
  for (const v1::CompileStage& stage : module.stages()) {
    stages.push_back({{"name", stage.name()}, {"milliseconds", stage.milliseconds()}});
  }
  for (const v1::Entry& entry : module.entries()) entries.push_back(ToJson(entry));
  return {{"id", module.id()},
          {"kind", v1::Module::Kind_Name(module.kind())},
          {"origin", v1::Module::Origin_Name(module.origin())},
          {"failed", module.failed()},
          {"name", module.name()},
          {"arch", module.arch()},
          {"toolchain", module.toolchain()},
          {"log", module.log()},
          {"log_truncated", module.log_truncated()},
          {"notes", notes},
          {"stages", stages},
          {"entries", entries},
          {"source_bytes", module.source_bytes()},
          {"ptx_bytes", module.ptx_bytes()},
          {"cubin_bytes", module.cubin_bytes()},
          {"global_bytes", module.global_bytes()},
          {"constant_bytes", module.constant_bytes()}};
}

std::string ResourcesText(const v1::Module& module) {
  Table table({"entry", "registers", "shared", "local", "spills", "max threads", "occupancy"});
  for (const v1::Entry& entry : module.entries()) {
    table.Add({Escape(entry.display()), absl::StrCat(entry.registers()),
               FormatBytes(static_cast<double>(entry.shared_bytes())),
               FormatBytes(static_cast<double>(entry.local_bytes())), SpillsText(entry),
               absl::StrCat(entry.max_threads()), OccupancyText(entry.occupancy())});
  }
  std::string stages;
  for (const v1::CompileStage& stage : module.stages()) {
    absl::StrAppend(&stages, stages.empty() ? "" : ", ", Escape(stage.name()), " ",
                    FormatNs(stage.milliseconds() * 1e6));
  }
  return absl::StrCat("module ", Escape(module.id()), "  ", Escape(module.arch()), "  ",
                      Escape(module.toolchain()), "  ",
                      absl::AsciiStrToLower(v1::Module::Origin_Name(module.origin())), " (", stages,
                      ")\n", table.ToText());
}

std::string ModulesText(const std::vector<v1::Module>& modules) {
  if (modules.empty()) return "the server has none of your modules in memory\n";
  Table table({"module", "of", "target", "code", "entries"});
  for (const v1::Module& module : modules) {
    const std::string kind = absl::AsciiStrToLower(v1::Module::Kind_Name(module.kind()));
    table.Add({Escape(module.id()), module.name().empty() ? kind : Escape(module.name()),
               Escape(module.arch()), FormatBytes(static_cast<double>(module.cubin_bytes())),
               FirstEntries(module)});
  }
  return table.ToText();
}

absl::StatusOr<std::string> IdThatBegins(const std::string& beginning,
                                         const std::vector<v1::Module>& modules) {
  constexpr std::size_t kWholeId = 32;
  if (beginning.size() >= kWholeId) return beginning;
  std::vector<std::string> found;
  for (const v1::Module& module : modules) {
    if (absl::StartsWith(module.id(), beginning)) found.push_back(module.id());
  }
  if (found.size() == 1) return found[0];
  return absl::NotFoundError(found.empty()
                                 ? absl::StrCat("no module of yours in the server's memory begins "
                                                "with '",
                                                beginning, "'")
                                 : absl::StrCat("'", beginning, "' is the beginning of ",
                                                found.size(), " modules: say more of it"));
}

std::string LogText(const v1::Module& module, const std::string& path, const Terminal& terminal) {
  std::string out;
  for (const v1::Note& note : module.notes()) {
    const std::string lines = note.first_line() == note.last_line()
                                  ? absl::StrCat(note.first_line())
                                  : absl::StrCat(note.first_line(), "-", note.last_line());
    absl::StrAppend(
        &out,
        Paint(terminal, Ink::kDim,
              absl::StrCat(Escape(path), ":", lines, ": set aside: ", Escape(note.text()))),
        "\n");
  }
  for (const absl::string_view line :
       absl::StrSplit(absl::StripTrailingAsciiWhitespace(module.log()), '\n')) {
    if (line.empty() && module.log().empty()) continue;
    // PTX has no name for its compiler.
    const std::string name = module.name().empty() ? "input.ptx" : module.name();
    const std::string shown = CodeText(Clickable(line, name, path));
    absl::StrAppend(&out, Paint(terminal, InkOf(line), shown), "\n");
  }
  return out;
}

std::string CodeText(absl::string_view code) {
  return Escape(absl::StrReplaceAll(code, {{"\t", "        "}}), /*lines=*/true);
}

absl::Status CheckIsCode(const std::string& path) {
  for (const absl::string_view ending : {".cu", ".ptx", ".cubin"}) {
    if (absl::EndsWith(path, ending)) return absl::OkStatus();
  }
  return UsageError(absl::StrCat("want FILE.cu, FILE.ptx or FILE.cubin, got '", path, "'"));
}

absl::Status ReadSource(const std::string& path, v1::CompileRequest* out,
                        std::vector<std::string>* files) {
  SourceReader reader(fs::path(path).parent_path(), out);
  const absl::Status read = reader.Read(path);
  if (files != nullptr) *files = reader.files();
  return read;
}

}  // namespace gridclock::cli
