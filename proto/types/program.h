// Submitted code as a kernel: its words and how its entries are launched. What it comes to in one
// call is in proto/types/launch.h.
#ifndef GRIDCLOCK_PROTO_TYPES_PROGRAM_H_
#define GRIDCLOCK_PROTO_TYPES_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/types/binding.h"
#include "proto/types/kernel_spec.h"
#include "proto/types/module.h"

namespace gridclock {

inline constexpr std::size_t kMostLaunches = 64;
inline constexpr std::size_t kMostGlobals = 64;
// Of a module's id, an entry or a global: a name of C++ as the compiler writes it.
inline constexpr std::size_t kLongestSymbol = 4096;

// INVALID_ARGUMENT if `name` is empty or longer than that.
absl::Status CheckSymbol(absl::string_view field, absl::string_view name);

// As it came: texts that nobody has read.
struct ProgramRequest {
  struct Launch {
    std::string module, entry, words;
    bool cooperative = false;
  };
  struct Global {
    std::string module, name, from;
  };
  std::string words;
  std::vector<Launch> launches;
  std::vector<Global> globals;
};

// What the outputs of a program shall be held against.
struct ReferenceRequest {
  std::string kernel;  // Of the catalogue; empty: inputs called kExpectedPrefix + output.
  std::vector<NamedAttribute> attributes;
  std::int64_t terms = 0;
  std::optional<ProgramRequest> program = {};  // Then `kernel` is to be empty.
};
inline constexpr char kExpectedPrefix[] = "expected.";

struct ProgramLaunch {
  std::string module;  // Its id.
  std::string entry;
  // Of these grid, block, shared, cluster and params count. As sent: what is missing is found in
  // the clauses of the program's words.
  Clauses clauses;
  bool cooperative = false;
  friend bool operator==(const ProgramLaunch&, const ProgramLaunch&) = default;
};

// A variable of a module that is set before the first launch.
struct ProgramGlobal {
  std::string module, name;
  std::string from;  // An attribute or an input.
  friend bool operator==(const ProgramGlobal&, const ProgramGlobal&) = default;
};

struct Program {
  KernelSpec words;
  std::vector<ProgramLaunch> launches;
  std::vector<ProgramGlobal> globals;
  friend bool operator==(const Program&, const Program&) = default;
};

// The same program with the clauses of each launch complete, and the words' own as they are.
// INVALID_ARGUMENT, with the field ("program.launches[2].words"), if there are too many launches or
// globals, a launch has neither of itself nor of the words a grid or a block, has a clause that is
// the words' alone, or names what the words do not have; or if a global's `from` is neither an
// attribute nor an input of one tensor, or its module is launched nowhere.
absl::StatusOr<Program> CompleteProgram(Program program);

// A module that launches of a program are of.
struct ProgramModule {
  std::string id;
  ModuleKind kind = ModuleKind::kCubin;    // kCubin or kTestNative.
  std::shared_ptr<const ModuleCode> code;  // Of kTestNative null: the entries name functions.
};

// A program that was admitted: complete, its modules found, its entries called by Entry.name.
struct JobProgram {
  Program program;
  std::vector<ProgramModule> modules;  // Each that a launch names, once.
};

bool HasModule(const JobProgram& program, absl::string_view id);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_PROGRAM_H_
