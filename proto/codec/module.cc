#include "proto/codec/module.h"

#include <algorithm>
#include <utility>

#include <google/protobuf/repeated_field.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "proto/types/occupancy.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

constexpr int kMostHeaders = 64;
constexpr int kMostDefines = 64;
constexpr int kMostNames = 64;
constexpr std::size_t kLongestName = 128;
constexpr std::size_t kLongestMacro = 64;
constexpr std::size_t kLongestValue = 256;
constexpr std::size_t kLongestExpression = 512;
constexpr std::uint32_t kUsualBlock = 256;

bool IsWord(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// protobuf has seen to it that strings are UTF-8.
absl::Status CheckText(absl::string_view text, absl::string_view field) {
  const auto nul = text.find('\0');
  if (nul == absl::string_view::npos) return absl::OkStatus();
  return InvalidField(field,
                      absl::StrCat("byte ", nul, " is NUL, behind which compilers read nothing"));
}

// A header may lie above the source: "../../common/check.h".
absl::string_view WithoutUps(absl::string_view name) {
  while (absl::ConsumePrefix(&name, "../")) continue;
  return name;
}

absl::Status CheckFileName(absl::string_view name, bool header, absl::string_view field) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return IsWord(c) || absl::StrContains(".-+/", absl::string_view(&c, 1));
  });
  const std::vector<absl::string_view> parts =
      absl::StrSplit(header ? WithoutUps(name) : name, '/');
  const bool inside = std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
    return !part.empty() && part != "." && part != "..";
  });
  if (!name.empty() && name.size() <= kLongestName && plain && inside && name[0] != '-') {
    return absl::OkStatus();
  }
  return InvalidField(field, absl::StrCat("want a relative path of letters, digits and _.-+/ ",
                                          header ? "with '..' at its begin alone" : "without '..'",
                                          ", at most ", kLongestName, " bytes, got ", Quote(name)));
}

absl::Status CheckMacro(absl::string_view name, absl::string_view value, absl::string_view field) {
  const bool identifier = !name.empty() && name.size() <= kLongestMacro &&
                          std::all_of(name.begin(), name.end(), IsWord) &&
                          !absl::ascii_isdigit(static_cast<unsigned char>(name[0]));
  if (!identifier) {
    return InvalidField(field, absl::StrCat("want an identifier of at most ", kLongestMacro,
                                            " bytes, got ", Quote(name)));
  }
  const bool printable = std::all_of(value.begin(), value.end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  });
  if (printable && value.size() <= kLongestValue) return absl::OkStatus();
  return InvalidField(absl::StrCat(field, "[", name, "]"),
                      absl::StrCat("want at most ", kLongestValue, " printable ASCII characters"));
}

absl::Status CheckCount(int count, int most, absl::string_view field) {
  if (count <= most) return absl::OkStatus();
  return InvalidField(field, absl::StrCat("want at most ", most, ", got ", count));
}

absl::StatusOr<CppStandard> DecodeStandard(v1::CompileOptions::Standard standard) {
  if (standard == v1::CompileOptions::STANDARD_UNSPECIFIED) return CppStandard::k17;
  if (v1::CompileOptions::Standard_IsValid(standard)) return static_cast<CppStandard>(standard);
  return InvalidField("options.standard",
                      absl::StrCat("want CPP14, CPP17 or CPP20, got ", standard));
}

absl::StatusOr<CompileOptions> Decode(v1::CompileOptions options) {
  CompileOptions out;
  GC_ASSIGN_OR_RETURN(out.standard, DecodeStandard(options.standard()));
  GC_RETURN_IF_ERROR(CheckArch(options.arch(), "options.arch"));
  out.arch = options.arch();
  out.fast_math = options.fast_math();
  out.fmad = !options.has_fmad() || options.fmad();
  out.max_registers = options.max_registers();
  if (out.max_registers != 0 && (out.max_registers < 16 || out.max_registers > 255)) {
    return InvalidField("options.max_registers",
                        absl::StrCat("want 16 to 255, or 0 for no bound, got ", out.max_registers));
  }
  out.line_info = options.line_info();
  GC_RETURN_IF_ERROR(CheckCount(options.defines_size(), kMostDefines, "options.defines"));
  for (const auto& [name, value] : options.defines()) {
    GC_RETURN_IF_ERROR(CheckMacro(name, value, "options.defines"));
    out.defines[name] = value;
  }
  return out;
}

absl::Status CheckExpressions(const google::protobuf::RepeatedPtrField<std::string>& names) {
  GC_RETURN_IF_ERROR(CheckCount(names.size(), kMostNames, "name_expressions"));
  for (int i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    const bool printable = std::all_of(name.begin(), name.end(), [](char c) {
      return absl::ascii_isprint(static_cast<unsigned char>(c));
    });
    if (!name.empty() && name.size() <= kLongestExpression && printable) continue;
    return InvalidField(
        absl::StrCat("name_expressions[", i, "]"),
        absl::StrCat("want 1 to ", kLongestExpression, " printable ASCII characters"));
  }
  return absl::OkStatus();
}

absl::StatusOr<SourceText> Take(v1::SourceFile* file, bool header, absl::string_view field) {
  GC_RETURN_IF_ERROR(CheckFileName(file->name(), header, absl::StrCat(field, ".name")));
  GC_RETURN_IF_ERROR(CheckText(file->text(), absl::StrCat(field, ".text")));
  return SourceText{std::move(*file->mutable_name()), std::move(*file->mutable_text())};
}

absl::Status TakeHeaders(v1::CompileRequest* request, std::vector<SourceText>* out) {
  GC_RETURN_IF_ERROR(CheckCount(request->headers_size(), kMostHeaders, "headers"));
  for (int i = 0; i < request->headers_size(); ++i) {
    const std::string field = absl::StrCat("headers[", i, "]");
    GC_ASSIGN_OR_RETURN(SourceText header,
                        Take(request->mutable_headers(i), /*header=*/true, field));
    const bool again = std::any_of(out->begin(), out->end(), [&](const SourceText& other) {
      return other.name == header.name;
    });
    if (again)
      return InvalidField(field, absl::StrCat("want each name once, got ", header.name, " again"));
    out->push_back(std::move(header));
  }
  return absl::OkStatus();
}

absl::Status CheckCodeSize(absl::string_view code, absl::string_view field,
                           const ModuleLimits& limits) {
  if (code.empty()) return InvalidField(field, "it is empty");
  if (code.size() <= limits.code_bytes) return absl::OkStatus();
  return InvalidField(field, absl::StrCat("want at most ", limits.code_bytes,
                                          " bytes (limit code_bytes), "
                                          "got ",
                                          code.size()));
}

void Encode(const CompileOptions& options, v1::CompileOptions* out) {
  out->set_standard(static_cast<v1::CompileOptions::Standard>(options.standard));
  out->set_arch(options.arch);
  out->set_fast_math(options.fast_math);
  out->set_fmad(options.fmad);
  out->set_max_registers(options.max_registers);
  out->set_line_info(options.line_info);
  out->mutable_defines()->insert(options.defines.begin(), options.defines.end());
}

void Encode(const SourceText& source, v1::SourceFile* out) {
  out->set_name(source.name);
  out->set_text(source.text);
}

void Encode(const ModuleEntry& entry, v1::Entry* out) {
  out->set_name(entry.name);
  out->set_display(entry.display);
  out->set_registers(entry.registers);
  out->set_shared_bytes(entry.shared_bytes);
  out->set_local_bytes(entry.local_bytes);
  out->set_constant_bytes(entry.constant_bytes);
  if (entry.spill_store_bytes) out->set_spill_store_bytes(*entry.spill_store_bytes);
  if (entry.spill_load_bytes) out->set_spill_load_bytes(*entry.spill_load_bytes);
  out->set_max_threads(entry.max_threads);
  out->mutable_required_block()->Add(entry.required_block.begin(), entry.required_block.end());
  for (const EntryParameter& parameter : entry.parameters) {
    v1::Parameter* to = out->add_parameters();
    to->set_offset(parameter.offset);
    to->set_size(parameter.size);
    to->set_type(parameter.type);
    to->set_name(parameter.name);
  }
}

ModuleEntry Decode(const v1::Entry& entry) {
  ModuleEntry out{.name = entry.name(),
                  .display = entry.display(),
                  .registers = entry.registers(),
                  .shared_bytes = entry.shared_bytes(),
                  .local_bytes = entry.local_bytes(),
                  .constant_bytes = entry.constant_bytes(),
                  .spill_store_bytes = std::nullopt,
                  .spill_load_bytes = std::nullopt,
                  .max_threads = entry.max_threads(),
                  .required_block = {entry.required_block().begin(), entry.required_block().end()},
                  .parameters = {}};
  if (entry.has_spill_store_bytes()) out.spill_store_bytes = entry.spill_store_bytes();
  if (entry.has_spill_load_bytes()) out.spill_load_bytes = entry.spill_load_bytes();
  for (const v1::Parameter& parameter : entry.parameters()) {
    out.parameters.push_back(
        {parameter.offset(), parameter.size(), parameter.type(), parameter.name()});
  }
  return out;
}

std::uint32_t BlockOf(const ModuleEntry& entry, const ModuleView& view) {
  if (view.block_threads != 0) return view.block_threads;
  if (entry.required_block.size() == 3) {
    return entry.required_block[0] * entry.required_block[1] * entry.required_block[2];
  }
  return std::min(kUsualBlock, std::max(entry.max_threads, 1u));
}

}  // namespace

absl::Status CheckArch(absl::string_view arch, absl::string_view field) {
  absl::string_view digits = arch;
  if (arch.empty()) return absl::OkStatus();
  const bool sm = absl::ConsumePrefix(&digits, "sm_");
  if (!absl::ConsumeSuffix(&digits, "a")) absl::ConsumeSuffix(&digits, "f");
  const bool number = std::all_of(digits.begin(), digits.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  if (sm && number && digits.size() >= 2 && digits.size() <= 4) return absl::OkStatus();
  return InvalidField(field, absl::StrCat("want a target like sm_90a, got ", Quote(arch)));
}

absl::StatusOr<ModuleSource> Decode(v1::CompileRequest request, const ModuleLimits& limits) {
  ModuleSource out;
  out.kind = ModuleKind::kCuda;
  GC_ASSIGN_OR_RETURN(out.main, Take(request.mutable_source(), /*header=*/false, "source"));
  if (out.main.text.empty()) return InvalidField("source.text", "it is empty");
  GC_RETURN_IF_ERROR(TakeHeaders(&request, &out.headers));
  std::uint64_t bytes = out.main.text.size();
  for (const SourceText& header : out.headers) bytes += header.text.size();
  if (bytes > limits.source_bytes) {
    return InvalidField("source",
                        absl::StrCat("want at most ", limits.source_bytes,
                                     " bytes with all headers (limit source_bytes), got ", bytes));
  }
  GC_ASSIGN_OR_RETURN(out.options, Decode(std::move(*request.mutable_options())));
  GC_RETURN_IF_ERROR(CheckExpressions(request.name_expressions()));
  out.name_expressions.assign(request.name_expressions().begin(), request.name_expressions().end());
  return out;
}

absl::StatusOr<ModuleSource> Decode(v1::LoadRequest request, const ModuleLimits& limits) {
  ModuleSource out;
  GC_RETURN_IF_ERROR(CheckArch(request.arch(), "arch"));
  out.options.arch = request.arch();
  switch (request.code_case()) {
    case v1::LoadRequest::kPtx:
      out.kind = ModuleKind::kPtx;
      GC_RETURN_IF_ERROR(CheckCodeSize(request.ptx(), "ptx", limits));
      GC_RETURN_IF_ERROR(CheckText(request.ptx(), "ptx"));
      out.main.text = std::move(*request.mutable_ptx());
      return out;
    case v1::LoadRequest::kCubin:
      out.kind = ModuleKind::kCubin;
      GC_RETURN_IF_ERROR(CheckCodeSize(request.cubin(), "cubin", limits));
      out.main.text = std::move(*request.mutable_cubin());
      return out;
    case v1::LoadRequest::kTestNative:
      out.kind = ModuleKind::kTestNative;
      GC_RETURN_IF_ERROR(CheckCodeSize(request.test_native(), "test_native", limits));
      out.main.text = std::move(*request.mutable_test_native());
      return out;
    case v1::LoadRequest::CODE_NOT_SET:
      break;
  }
  return InvalidField("code", "want one of ptx, cubin; got none");
}

absl::StatusOr<ModuleView> Decode(const v1::ModuleView& view) {
  constexpr std::uint32_t kMostThreads = 1024;
  constexpr std::uint64_t kMostShared = 1024 * 1024;
  if (view.block_threads() > kMostThreads) {
    return InvalidField("view.block_threads", absl::StrCat("want at most ", kMostThreads, ", got ",
                                                           view.block_threads()));
  }
  if (view.dynamic_shared_bytes() > kMostShared) {
    return InvalidField(
        "view.dynamic_shared_bytes",
        absl::StrCat("want at most ", kMostShared, ", got ", view.dynamic_shared_bytes()));
  }
  return ModuleView{.ptx = view.ptx(),
                    .sass = view.sass(),
                    .cubin = view.cubin(),
                    .block_threads = view.block_threads(),
                    .dynamic_shared_bytes = view.dynamic_shared_bytes()};
}

void Encode(const ModuleSource& source, v1::CompileRequest* out) {
  Encode(source.main, out->mutable_source());
  for (const SourceText& header : source.headers) Encode(header, out->add_headers());
  Encode(source.options, out->mutable_options());
  for (const std::string& name : source.name_expressions) out->add_name_expressions(name);
}

void Encode(const ModuleSource& source, v1::LoadRequest* out) {
  out->set_arch(source.options.arch);
  if (source.kind == ModuleKind::kPtx) out->set_ptx(source.main.text);
  if (source.kind == ModuleKind::kCubin) out->set_cubin(source.main.text);
  if (source.kind == ModuleKind::kTestNative) out->set_test_native(source.main.text);
}

void Encode(const ModuleFacts& facts, v1::Module* out) {
  out->set_kind(static_cast<v1::Module::Kind>(facts.kind));
  out->set_failed(facts.failed);
  out->set_name(facts.name);
  out->set_arch(facts.arch);
  out->set_toolchain(facts.toolchain);
  out->set_log(facts.log);
  out->set_log_truncated(facts.log_truncated);
  for (const SourceNote& note : facts.notes) {
    v1::Note* to = out->add_notes();
    to->set_first_line(note.first_line);
    to->set_last_line(note.last_line);
    to->set_text(note.text);
  }
  for (const CompileStage& stage : facts.stages) {
    v1::CompileStage* to = out->add_stages();
    to->set_name(stage.name);
    to->set_milliseconds(stage.milliseconds);
  }
  for (const ModuleEntry& entry : facts.entries) Encode(entry, out->add_entries());
  out->set_source_bytes(facts.source_bytes);
  out->set_global_bytes(facts.global_bytes);
  out->set_constant_bytes(facts.constant_bytes);
}

absl::StatusOr<ModuleFacts> Decode(const v1::Module& module) {
  if (!v1::Module::Kind_IsValid(module.kind()) || module.kind() == v1::Module::KIND_UNSPECIFIED) {
    return absl::InternalError(absl::StrCat("a module of kind ", module.kind()));
  }
  ModuleFacts out{.kind = static_cast<ModuleKind>(module.kind()),
                  .failed = module.failed(),
                  .name = module.name(),
                  .arch = module.arch(),
                  .toolchain = module.toolchain(),
                  .log = module.log(),
                  .log_truncated = module.log_truncated(),
                  .notes = {},
                  .stages = {},
                  .entries = {},
                  .source_bytes = module.source_bytes(),
                  .global_bytes = module.global_bytes(),
                  .constant_bytes = module.constant_bytes()};
  for (const v1::Note& note : module.notes()) {
    out.notes.push_back({note.first_line(), note.last_line(), note.text()});
  }
  for (const v1::CompileStage& stage : module.stages()) {
    out.stages.push_back({stage.name(), stage.milliseconds()});
  }
  for (const v1::Entry& entry : module.entries()) {
    if (entry.required_block_size() != 0 && entry.required_block_size() != 3) {
      return absl::InternalError("an entry's block has three dimensions");
    }
    out.entries.push_back(Decode(entry));
  }
  return out;
}

void EncodeOccupancies(const ModuleFacts& facts, const ModuleView& view, v1::Module* out) {
  const SmLimits* sm = SmLimitsOf(facts.arch);
  for (std::size_t i = 0; i < facts.entries.size(); ++i) {
    const ModuleEntry& entry = facts.entries[i];
    v1::Occupancy* to = out->mutable_entries(static_cast<int>(i))->mutable_occupancy();
    to->set_block_threads(BlockOf(entry, view));
    to->set_dynamic_shared_bytes(view.dynamic_shared_bytes);
    if (sm == nullptr) continue;
    const Occupancy got =
        TheoreticalOccupancy(*sm, {.threads = to->block_threads(),
                                   .registers = entry.registers,
                                   .shared_bytes = entry.shared_bytes + view.dynamic_shared_bytes,
                                   .most_threads = entry.max_threads});
    to->set_blocks(got.blocks);
    to->set_warps(got.warps);
    to->set_max_warps(got.max_warps);
    to->set_fraction(static_cast<double>(got.warps) / got.max_warps);
    to->set_limit(static_cast<v1::Occupancy::Limit>(got.limit));
  }
}

}  // namespace gridclock
