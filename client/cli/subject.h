// What a command runs: a kernel of the catalogue by its name, or a kernel of a file: FILE.cu:ENTRY.
#ifndef GRIDCLOCK_CLIENT_CLI_SUBJECT_H_
#define GRIDCLOCK_CLIENT_CLI_SUBJECT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/command.h"
#include "client/cli/source_flags.h"
#include "client/cli/source_words.h"
#include "client/cpp/run.h"
#include "gridclock/v1/kernels.pb.h"
#include "proto/types/kernel_spec.h"

namespace gridclock::cli {

// How a file becomes a kernel, where its comments do not say so.
struct CodeFlags {
  SourceFlags source;
  std::string words, grid, block, shared, cluster, params;
  std::vector<std::string> globals;
  bool cooperative = false;
};
void AddCodeFlags(CLI::App& app, CodeFlags* flags);

// "dir/k.cu:softmax<float, 256>"; the entry may be missing. Nullopt for what names no such file.
struct CodeTarget {
  std::string file, entry;
};
std::optional<CodeTarget> ParseCodeTarget(absl::string_view text);

// What the comments of a source or of PTX say; a cubin says nothing.
absl::StatusOr<std::vector<SourceWords>> WordsInFile(const std::string& file);

struct Subject {
  KernelSpec spec;
  std::string variant;                 // Of the catalogue's kernel; may be empty.
  std::optional<v1::Program> program;  // Of a file.

  // Kernel and variant, or the program, of `call`.
  void NameIn(RunCall* call) const;
  // NAME=VALUE words with the names that the spec has: "N=3" becomes "n=3" if there is no "N".
  std::vector<std::string> Renamed(std::vector<std::string> words) const;
};

// The module of a file.
struct UsedModule {
  std::string id;         // Empty: there is none.
  bool compiled = false;  // For this call: nobody had it before.
};

// `words`: NAME=VALUE, from which the kernel's words are inferred if nothing says them. `used` is
// told also where the module was made and what follows fails.
absl::StatusOr<Subject> FindSubject(const Session& session, const Client& client,
                                    const std::string& kernel, const CodeFlags& flags,
                                    const std::vector<std::string>& words,
                                    UsedModule* used = nullptr);

// The names of what it gives.
std::vector<std::string> OutputNames(const KernelSpec& spec);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_SUBJECT_H_
