#include "server/rpc/module_id.h"

#include <openssl/sha.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace gridclock {
namespace {

// Raised when the same input makes another module.
constexpr int kFormat = 1;

// Each part with its length before it: no two inputs run into the same bytes.
class Parts {
 public:
  void Add(absl::string_view part) { absl::StrAppend(&text_, part.size(), ":", part); }
  void Add(std::uint64_t number) { Add(absl::string_view(absl::StrCat(number))); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void AddOptions(const CompileOptions& options, Parts& parts) {
  parts.Add(static_cast<std::uint64_t>(options.standard));
  parts.Add(options.arch);
  parts.Add(std::uint64_t{options.fast_math});
  parts.Add(std::uint64_t{options.fmad});
  parts.Add(std::uint64_t{options.max_registers});
  parts.Add(std::uint64_t{options.line_info});
  parts.Add(options.defines.size());
  for (const auto& [name, value] : options.defines) {
    parts.Add(name);
    parts.Add(value);
  }
}

}  // namespace

std::string ModuleId(absl::string_view principal, absl::string_view toolchain,
                     const ModuleSource& source) {
  Parts parts;
  parts.Add(std::uint64_t{kFormat});
  parts.Add(principal);
  parts.Add(toolchain);
  parts.Add(static_cast<std::uint64_t>(source.kind));
  AddOptions(source.options, parts);
  parts.Add(source.name_expressions.size());
  for (const std::string& name : source.name_expressions) parts.Add(name);
  parts.Add(source.main.name);
  parts.Add(source.main.text);
  for (const SourceText& header : source.headers) {
    parts.Add(header.name);
    parts.Add(header.text);
  }
  unsigned char digest[SHA256_DIGEST_LENGTH] = {};
  SHA256(reinterpret_cast<const unsigned char*>(parts.text().data()), parts.text().size(), digest);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), sizeof(digest) / 2));
}

}  // namespace gridclock
