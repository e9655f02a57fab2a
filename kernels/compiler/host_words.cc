#include "kernels/compiler/host_words.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"

namespace gridclock {
namespace {

// Sorted.
constexpr absl::string_view kHeaders[] = {"Python.h",
                                          "Windows.h",
                                          "any",
                                          "atomic",
                                          "bitset",
                                          "cctype",
                                          "cerrno",
                                          "charconv",
                                          "chrono",
                                          "cmath.h",
                                          "codecvt",
                                          "complex.h",
                                          "condition_variable",
                                          "csignal",
                                          "cstdarg",
                                          "ctime",
                                          "ctype.h",
                                          "cuda.h",
                                          "cuda_profiler_api.h",
                                          "curand.h",
                                          "cwchar",
                                          "deque",
                                          "dirent.h",
                                          "dlfcn.h",
                                          "errno.h",
                                          "exception",
                                          "execution",
                                          "fcntl.h",
                                          "filesystem",
                                          "forward_list",
                                          "fstream",
                                          "functional",
                                          "future",
                                          "getopt.h",
                                          "iomanip",
                                          "ios",
                                          "iosfwd",
                                          "iostream",
                                          "istream",
                                          "iterator",
                                          "list",
                                          "locale",
                                          "malloc.h",
                                          "map",
                                          "math_functions.h",
                                          "memory",
                                          "memory.h",
                                          "mpi.h",
                                          "mutex",
                                          "nccl.h",
                                          "numeric",
                                          "nvrtc.h",
                                          "omp.h",
                                          "optional",
                                          "ostream",
                                          "pthread.h",
                                          "queue",
                                          "random",
                                          "ratio",
                                          "regex",
                                          "set",
                                          "setjmp.h",
                                          "signal.h",
                                          "span",
                                          "sstream",
                                          "stack",
                                          "stdarg.h",
                                          "stdexcept",
                                          "streambuf",
                                          "string",
                                          "string_view",
                                          "strings.h",
                                          "strstream",
                                          "system_error",
                                          "thread",
                                          "time.h",
                                          "typeindex",
                                          "typeinfo",
                                          "unistd.h",
                                          "unordered_map",
                                          "unordered_set",
                                          "valarray",
                                          "variant",
                                          "vector",
                                          "wchar.h",
                                          "windows.h"};
constexpr absl::string_view kHeaderBeginnings[] = {"ATen/",
                                                   "c10/",
                                                   "cublas",
                                                   "cudnn",
                                                   "cufft",
                                                   "cusolver",
                                                   "cusparse",
                                                   "gtest/",
                                                   "helper_",
                                                   "nvToolsExt",
                                                   "nvtx3/",
                                                   "opencv2/",
                                                   "pybind11/",
                                                   "sys/",
                                                   "thrust/copy",
                                                   "thrust/device_",
                                                   "thrust/execution",
                                                   "thrust/fill",
                                                   "thrust/generate",
                                                   "thrust/host_",
                                                   "thrust/reduce",
                                                   "thrust/scan",
                                                   "thrust/sequence",
                                                   "thrust/sort",
                                                   "thrust/system",
                                                   "thrust/transform",
                                                   "torch/"};

// Sorted.
constexpr absl::string_view kWords[] = {"FILE",
                                        "PYBIND11_MODULE",
                                        "TORCH_LIBRARY",
                                        "TORCH_LIBRARY_FRAGMENT",
                                        "TORCH_LIBRARY_IMPL",
                                        "at",
                                        "c10",
                                        "cublasHandle_t",
                                        "cublasStatus_t",
                                        "cudaDeviceProp",
                                        "cudaError_t",
                                        "cudaEvent_t",
                                        "cudaGraph_t",
                                        "cudaStream_t",
                                        "cudnnHandle_t",
                                        "curandGenerator_t",
                                        "py",
                                        "pybind11",
                                        "torch"};
constexpr absl::string_view kStdWords[] = {"atomic",
                                           "cerr",
                                           "chrono",
                                           "condition_variable",
                                           "cout",
                                           "default_random_engine",
                                           "deque",
                                           "endl",
                                           "exception",
                                           "filesystem",
                                           "function",
                                           "future",
                                           "ifstream",
                                           "list",
                                           "map",
                                           "mt19937",
                                           "multimap",
                                           "mutex",
                                           "normal_distribution",
                                           "ofstream",
                                           "ostream",
                                           "queue",
                                           "random_device",
                                           "runtime_error",
                                           "set",
                                           "shared_ptr",
                                           "stack",
                                           "string",
                                           "string_view",
                                           "stringstream",
                                           "thread",
                                           "uniform_real_distribution",
                                           "unique_ptr",
                                           "unordered_map",
                                           "unordered_set",
                                           "variant",
                                           "vector"};

static_assert(std::is_sorted(std::begin(kHeaders), std::end(kHeaders)));
static_assert(std::is_sorted(std::begin(kWords), std::end(kWords)));
static_assert(std::is_sorted(std::begin(kStdWords), std::end(kStdWords)));

template <std::size_t N>
bool Has(const absl::string_view (&sorted)[N], absl::string_view word) {
  return std::binary_search(std::begin(sorted), std::end(sorted), word);
}

}  // namespace

bool IsHostHeader(absl::string_view name) {
  return Has(kHeaders, name) ||
         std::any_of(
             std::begin(kHeaderBeginnings), std::end(kHeaderBeginnings),
             [&](absl::string_view beginning) { return absl::StartsWith(name, beginning); });
}
bool IsHostWord(absl::string_view word) {
  return Has(kWords, word);
}
bool IsHostStdWord(absl::string_view word) {
  return Has(kStdWords, word);
}

}  // namespace gridclock
