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
constexpr absl::string_view kHeaderBeginnings[] = {
    "ATen/",      "c10/",   "cudnn",    "cusolver",  "cusparse", "gtest/", "helper_",
    "nvToolsExt", "nvtx3/", "opencv2/", "pybind11/", "sys/",     "torch/"};

// Sorted.
constexpr absl::string_view kWords[] = {"FILE",
                                        "PYBIND11_MODULE",
                                        "TORCH_LIBRARY",
                                        "TORCH_LIBRARY_FRAGMENT",
                                        "TORCH_LIBRARY_IMPL",
                                        "at",
                                        "c10",
                                        "cudaDeviceProp",
                                        "cudaError_t",
                                        "cudaEvent_t",
                                        "cudaGraph_t",
                                        "cudaStream_t",
                                        "curandGenerator_t",
                                        "pthread_t",
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
// Of Thrust what device code can include; the rest is algorithms and containers of hosts.
constexpr absl::string_view kDeviceThrust[] = {
    "thrust/addressof.h", "thrust/advance.h",    "thrust/complex.h",
    "thrust/distance.h",  "thrust/functional.h", "thrust/iterator/",
    "thrust/pair.h",      "thrust/tuple.h",      "thrust/type_traits/"};
// Types of CUDA's libraries for hosts are named so: "cublasLtHandle_t".
constexpr absl::string_view kLibraries[] = {"cublas", "cudnn", "cusolver", "cusparse",
                                            "nccl",   "nvml",  "nvrtc"};

static_assert(std::is_sorted(std::begin(kHeaders), std::end(kHeaders)));
static_assert(std::is_sorted(std::begin(kWords), std::end(kWords)));
static_assert(std::is_sorted(std::begin(kStdWords), std::end(kStdWords)));

template <std::size_t N>
bool Has(const absl::string_view (&sorted)[N], absl::string_view word) {
  return std::binary_search(std::begin(sorted), std::end(sorted), word);
}
template <std::size_t N>
bool BeginsWithOneOf(const absl::string_view (&beginnings)[N], absl::string_view word) {
  return std::any_of(
      std::begin(beginnings), std::end(beginnings),
      [&](absl::string_view beginning) { return absl::StartsWith(word, beginning); });
}

}  // namespace

bool IsHostHeader(absl::string_view name) {
  if (absl::StartsWith(name, "thrust/")) return !BeginsWithOneOf(kDeviceThrust, name);
  return Has(kHeaders, name) || BeginsWithOneOf(kHeaderBeginnings, name);
}
bool IsHostWord(absl::string_view word) {
  return Has(kWords, word) || (absl::EndsWith(word, "_t") && BeginsWithOneOf(kLibraries, word));
}
bool IsHostStdWord(absl::string_view word) {
  return Has(kStdWords, word);
}

}  // namespace gridclock
