// Submitted device code: what a client asks to compile, and what came of it.
#ifndef GRIDCLOCK_PROTO_TYPES_MODULE_H_
#define GRIDCLOCK_PROTO_TYPES_MODULE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gridclock {

// The numbers are those of gridclock.v1.
enum class ModuleKind : std::uint8_t { kCuda = 1, kPtx, kCubin, kTestNative };
enum class ModuleOrigin : std::uint8_t { kCompiled = 1, kMemory, kDisk };
enum class CppStandard : std::uint8_t { k14 = 1, k17, k20 };

struct CompileOptions {
  CppStandard standard = CppStandard::k17;
  std::string arch;  // "sm_90a"; empty: the server's choice.
  bool fast_math = false;
  bool fmad = true;
  std::uint32_t max_registers = 0;  // 0: no bound.
  bool line_info = false;
  std::map<std::string, std::string> defines;
};

struct SourceText {
  std::string name, text;
};

// What is to become a module.
struct ModuleSource {
  ModuleKind kind = ModuleKind::kCuda;
  SourceText main;  // `text`: source, PTX or cubin. `name`: of a source alone.
  std::vector<SourceText> headers;
  CompileOptions options;
  std::vector<std::string> name_expressions;
};

struct ModuleView {
  bool ptx = false, sass = false, cubin = false;
  std::uint32_t block_threads = 0;  // 0: 256, or what the entry takes at most.
  std::uint64_t dynamic_shared_bytes = 0;
};

// Lines from 1, both included.
struct SourceNote {
  std::uint32_t first_line = 0, last_line = 0;
  std::string text;
  friend bool operator==(const SourceNote&, const SourceNote&) = default;
};

struct CompileStage {
  std::string name;
  double milliseconds = 0;
};

struct EntryParameter {
  std::uint32_t offset = 0, size = 0;
  std::string type = {};  // "float const*"; empty: not known.
  std::string name = {};  // In the source; empty: not known.
  friend bool operator==(const EntryParameter&, const EntryParameter&) = default;
};

// A kernel of a module: what one thread and one block of it need.
struct ModuleEntry {
  std::string name, display;
  std::uint32_t registers = 0;
  std::uint64_t shared_bytes = 0, local_bytes = 0, constant_bytes = 0;
  std::optional<std::uint64_t> spill_store_bytes, spill_load_bytes;
  std::uint32_t max_threads = 0;
  std::vector<std::uint32_t> required_block;  // Three, or none.
  std::vector<EntryParameter> parameters;
};

// All that is known of a module but who owns it.
struct ModuleFacts {
  ModuleKind kind = ModuleKind::kCuda;
  bool failed = false;
  std::string name = {}, arch = {}, toolchain = {}, log = {};
  bool log_truncated = false;
  std::vector<SourceNote> notes = {};
  std::vector<CompileStage> stages = {};
  std::vector<ModuleEntry> entries = {};
  std::uint64_t source_bytes = 0, global_bytes = 0, constant_bytes = 0;
};

struct ModuleCode {
  ModuleFacts facts;
  std::string ptx, cubin;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_MODULE_H_
