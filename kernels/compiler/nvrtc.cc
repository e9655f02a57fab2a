#include "kernels/compiler/nvrtc.h"

#include <algorithm>
#include <filesystem>

#include <dlfcn.h>
#include <link.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace gridclock {
namespace {

// Of nvrtc.h.
struct ProgramOf;
using Program = ProgramOf*;
constexpr int kSuccess = 0;
constexpr int kOutOfMemory = 1;
constexpr int kInvalidOption = 5;
constexpr int kCompilation = 6;

std::vector<const char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

// The file that a loaded library came from.
std::string FileOf(void* library) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "";
  std::error_code missing;
  const auto real = std::filesystem::canonical(map->l_name, missing);
  return missing ? std::string(map->l_name) : real.string();
}

}  // namespace

struct Nvrtc::Calls {
  int (*version)(int*, int*) = nullptr;
  int (*count_archs)(int*) = nullptr;
  int (*archs)(int*) = nullptr;
  int (*create)(Program*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*add_name)(Program, const char*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*lowered)(Program, const char*, const char**) = nullptr;
  using SizeCall = int (*)(Program, std::size_t*);
  using TextCall = int (*)(Program, char*);
  SizeCall log_size = nullptr, ptx_size = nullptr, cubin_size = nullptr;
  TextCall log = nullptr, ptx = nullptr, cubin = nullptr;

  template <typename Call>
  static bool Find(void* library, const char* name, Call* call) {
    *call = reinterpret_cast<Call>(dlsym(library, name));
    return *call != nullptr;
  }
  bool FindAll(void* library) {
    return Find(library, "nvrtcVersion", &version) &&
           Find(library, "nvrtcGetNumSupportedArchs", &count_archs) &&
           Find(library, "nvrtcGetSupportedArchs", &archs) &&
           Find(library, "nvrtcCreateProgram", &create) &&
           Find(library, "nvrtcDestroyProgram", &destroy) &&
           Find(library, "nvrtcAddNameExpression", &add_name) &&
           Find(library, "nvrtcCompileProgram", &compile) &&
           Find(library, "nvrtcGetLoweredName", &lowered) &&
           Find(library, "nvrtcGetProgramLogSize", &log_size) &&
           Find(library, "nvrtcGetProgramLog", &log) &&
           Find(library, "nvrtcGetPTXSize", &ptx_size) && Find(library, "nvrtcGetPTX", &ptx) &&
           Find(library, "nvrtcGetCUBINSize", &cubin_size) &&
           Find(library, "nvrtcGetCUBIN", &cubin);
  }
};

namespace {

// Without the zeros that end texts.
std::string TextOf(Program program, int (*size_of)(Program, std::size_t*),
                   int (*get)(Program, char*), bool is_text) {
  std::size_t size = 0;
  if (size_of(program, &size) != kSuccess || size == 0) return "";
  std::string text(size, '\0');
  if (get(program, text.data()) != kSuccess) return "";
  while (is_text && !text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

}  // namespace

Nvrtc::Nvrtc() = default;
Nvrtc::~Nvrtc() = default;

std::string Nvrtc::builtins_path() const {
  return absl::StrCat(path_.substr(0, path_.rfind('/') + 1), "libnvrtc-builtins.so.", version_);
}

bool SaysOutOfMemory(absl::string_view log) {
  return absl::StrContains(log, "catastrophic error: out of memory") ||
         absl::StrContains(log, "Memory allocation failure");
}

absl::StatusOr<std::unique_ptr<Nvrtc>> Nvrtc::Open(const std::vector<std::string>& libraries) {
  std::vector<std::string> failures;
  for (const std::string& name : libraries) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      failures.emplace_back(dlerror());
      continue;
    }
    auto nvrtc = std::unique_ptr<Nvrtc>(new Nvrtc);
    nvrtc->calls_ = std::make_unique<Calls>();
    if (!nvrtc->calls_->FindAll(library)) {
      failures.push_back(absl::StrCat(name, " lacks a function that is needed"));
      continue;
    }
    int major = 0, minor = 0, count = 0;
    nvrtc->calls_->version(&major, &minor);
    nvrtc->version_ = absl::StrCat(major, ".", minor);
    nvrtc->path_ = FileOf(library);
    // NVRTC opens it by its bare name, where the loader may not look; loaded before, it is found.
    dlopen(nvrtc->builtins_path().c_str(), RTLD_NOW | RTLD_GLOBAL);
    nvrtc->calls_->count_archs(&count);
    std::vector<int> archs(std::max(count, 0));
    nvrtc->calls_->archs(archs.data());
    for (const int arch : archs) nvrtc->architectures_.push_back(absl::StrCat("sm_", arch));
    return nvrtc;
  }
  return absl::NotFoundError(absl::StrJoin(failures, "; "));
}

NvrtcOutput Nvrtc::Compile(const NvrtcProgram& program) const {
  NvrtcOutput out;
  std::vector<const char*> texts, names;
  for (const SourceText& header : program.headers) {
    texts.push_back(header.text.c_str());
    names.push_back(header.name.c_str());
  }
  Program handle = nullptr;
  if (calls_->create(&handle, program.source.c_str(), program.name.c_str(),
                     static_cast<int>(texts.size()), texts.data(), names.data()) != kSuccess) {
    out.fault = "NVRTC takes no program";
    return out;
  }
  const absl::Cleanup destroy = [&] { calls_->destroy(&handle); };
  for (const std::string& name : program.name_expressions) calls_->add_name(handle, name.c_str());
  const std::vector<const char*> options = Pointers(program.options);
  const int code = calls_->compile(handle, static_cast<int>(options.size()), options.data());
  out.log = TextOf(handle, calls_->log_size, calls_->log, true);
  out.ok = code == kSuccess;
  out.out_of_memory = code == kOutOfMemory || (!out.ok && SaysOutOfMemory(out.log));
  if (!out.ok && code != kCompilation && code != kInvalidOption) {
    out.fault = absl::StrCat("NVRTC gave up with code ", code);
  }
  if (!out.ok) return out;
  out.ptx = TextOf(handle, calls_->ptx_size, calls_->ptx, true);
  out.cubin = TextOf(handle, calls_->cubin_size, calls_->cubin, false);
  for (const std::string& name : program.name_expressions) {
    const char* mangled = nullptr;
    if (calls_->lowered(handle, name.c_str(), &mangled) == kSuccess && mangled != nullptr) {
      out.lowered.emplace_back(name, mangled);
    }
  }
  return out;
}

}  // namespace gridclock
