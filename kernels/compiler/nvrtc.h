// CUDA C++ to cubin by NVRTC, which is opened when the process starts: nothing of CUDA is needed to
// build or to start it.
#ifndef GRIDCLOCK_KERNELS_COMPILER_NVRTC_H_
#define GRIDCLOCK_KERNELS_COMPILER_NVRTC_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/types/module.h"

namespace gridclock {

struct NvrtcProgram {
  std::string name, source;
  std::vector<SourceText> headers;
  std::vector<std::string> options;
  std::vector<std::string> name_expressions;
};

// NVRTC and ptxas say it in their logs, and end as if the source were wrong.
bool SaysOutOfMemory(absl::string_view log);

struct NvrtcOutput {
  bool ok = false;
  bool out_of_memory = false;
  std::string fault;  // Why NVRTC gave up for no reason in the source; empty: it did not.
  std::string log, ptx, cubin;
  std::vector<std::pair<std::string, std::string>> lowered;  // Name expression, mangled name.
};

class Nvrtc {
 public:
  // The first of `libraries` that opens. NOT_FOUND with what was said of each.
  static absl::StatusOr<std::unique_ptr<Nvrtc>> Open(const std::vector<std::string>& libraries);
  ~Nvrtc();

  const std::string& version() const { return version_; }  // "13.0".
  const std::string& path() const { return path_; }        // Of the library's file.
  std::string builtins_path() const;                       // Of the library that it opens itself.
  const std::vector<std::string>& architectures() const { return architectures_; }  // "sm_90".

  NvrtcOutput Compile(const NvrtcProgram& program) const;

 private:
  struct Calls;
  Nvrtc();
  std::unique_ptr<Calls> calls_;
  std::string version_, path_;
  std::vector<std::string> architectures_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_COMPILER_NVRTC_H_
