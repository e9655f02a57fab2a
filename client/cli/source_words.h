// The words of kernels in the comments of their source. docs/submit.md describes the lines; in
// short:
//
//   // gridclock: softmax<float, 256> x: f32[M, N] -> y: f32[M, N]
//   // gridclock:   grid(M) block(256) params x, y, n: int = N
//
// Lines that follow one another are one kernel; one of `gridclock:` alone ends it. `launch ENTRY
// CLAUSES` begins each launch of a kernel of several, `global NAME = FROM` sets a variable;
// `cooperative` stands before an entry.
#ifndef GRIDCLOCK_CLIENT_CLI_SOURCE_WORDS_H_
#define GRIDCLOCK_CLIENT_CLI_SOURCE_WORDS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gridclock::cli {

struct SourceLaunch {
  std::string entry;    // As the line says it: "softmax<float, 256>".
  std::string clauses;  // Empty for a kernel of one launch: its words have them.
  bool cooperative = false;
};
struct SourceGlobal {
  std::string name, from;
};
// A kernel that a comment describes.
struct SourceWords {
  int line = 0;                        // Of its first line, from 1.
  std::string entry;                   // Of its only launch; of several, the name of the whole.
  std::string words;                   // "name signature clauses": the name as words may have it.
  std::vector<SourceLaunch> launches;  // At least one.
  std::vector<SourceGlobal> globals;
};

// INVALID_ARGUMENT names the line.
absl::StatusOr<std::vector<SourceWords>> ReadSourceWords(absl::string_view source);

// "[cooperative] ENTRY REST" cut apart: an entry is a name, maybe qualified, maybe with arguments
// of a template.
SourceLaunch CutEntry(absl::string_view text);

// The kernel that `entry` means: called so, or of that name alone if only one is; without an entry
// the only one. Null if there is none.
const SourceWords* FindSourceWords(const std::vector<SourceWords>& all, absl::string_view entry);

// The entries of launches that are instances of templates, each once. Kernels that are no templates
// are made beside them.
std::vector<std::string> TemplatesOf(std::span<const SourceWords> all);

// "softmax<float,256>" for comparing: no blanks.
std::string WithoutBlanks(absl::string_view text);
// "softmax" of "ns::softmax<float, 256>".
std::string EntryNameAlone(absl::string_view entry);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_SOURCE_WORDS_H_
