#include "kernels/compiler/prelude.h"

#include <initializer_list>

#include "absl/strings/str_cat.h"

namespace gridclock {
namespace {

constexpr char kPreludeName[] = "gridclock/prelude.h";

// Types and numbers are, to the letter, those that libcu++ declares under NVRTC: both may be there.
constexpr char kPrelude[] = R"(#pragma once
using int8_t = signed char;
using int16_t = signed short;
using int32_t = signed int;
using int64_t = signed long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
using intptr_t = int64_t;
using uintptr_t = uint64_t;
using ushort = unsigned short;
using uint = unsigned int;
#ifndef GRIDCLOCK_OWN_ULONG
using ulong = unsigned long;
#endif
#define INT8_MIN   SCHAR_MIN
#define INT16_MIN  SHRT_MIN
#define INT32_MIN  INT_MIN
#define INT64_MIN  LLONG_MIN
#define INT8_MAX   SCHAR_MAX
#define INT16_MAX  SHRT_MAX
#define INT32_MAX  INT_MAX
#define INT64_MAX  LLONG_MAX
#define UINT8_MAX  UCHAR_MAX
#define UINT16_MAX USHRT_MAX
#define UINT32_MAX UINT_MAX
#define UINT64_MAX ULLONG_MAX
#define CHAR_BIT 8
#define SCHAR_MIN         (-128)
#define SCHAR_MAX         127
#define UCHAR_MAX         255
#define SHRT_MIN  (-SHRT_MAX - 1)
#define SHRT_MAX  0x7fff
#define USHRT_MAX 0xffff
#define INT_MIN   (-INT_MAX - 1)
#define INT_MAX   0x7fffffff
#define UINT_MAX  0xffffffff
#define LONG_MIN  (-LONG_MAX - 1)
#define LONG_MAX  LLONG_MAX
#define ULONG_MAX ULLONG_MAX
#define LLONG_MIN  (-LLONG_MAX - 1)
#define LLONG_MAX  0x7fffffffffffffffLL
#define ULLONG_MAX 0xffffffffffffffffUL
// Files and libcu++ (<cuda/std/cmath>, and so CUB) define some of these again in words of their own,
// which is no mistake to be told of: "incompatible redefinition of macro".
#pragma nv_diag_suppress 47
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#ifndef HUGE_VALF
#define HUGE_VALF INFINITY
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000ll)
#endif
#ifndef FLT_MAX
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#endif
#ifndef M_PI
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LN2 0.69314718055994530942
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif
#ifndef NULL
#define NULL 0
#endif
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::intptr_t; using ::uintptr_t; using ::size_t;
template <typename T> __device__ constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <typename T> __device__ constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
}
)";

// Of libcu++, under the names that they have on hosts.
std::string FromCudaStd(const std::string& name) {
  return absl::StrCat("#pragma once\n#include <cuda/std/", name,
                      ">\nnamespace std { using namespace cuda::std; }\n");
}

// Of CUDA, where they can be read.
std::string IncludeAll(std::initializer_list<absl::string_view> names) {
  std::string out;
  for (const absl::string_view name : names) {
    absl::StrAppend(&out, "#if __has_include(<", name, ">)\n#include <", name, ">\n#endif\n");
  }
  return out;
}

// Of cuBLAS and cuFFT, what they bring along for device code too.
std::string Cublas() {
  return absl::StrCat("#pragma once\n", IncludeAll({"cuComplex.h", "cuda_fp16.h", "cuda_bf16.h"}));
}
std::string Cufft() {
  return absl::StrCat("#pragma once\n", IncludeAll({"cuComplex.h"}),
                      "#ifdef CU_COMPLEX_H_\n"
                      "typedef cuComplex cufftComplex;\n"
                      "typedef cuDoubleComplex cufftDoubleComplex;\n"
                      "#endif\n"
                      "typedef float cufftReal;\n"
                      "typedef double cufftDoubleReal;\n");
}

std::vector<SourceText> MakeHeaders() {
  std::vector<SourceText> headers = {{kPreludeName, kPrelude}};
  for (const char* name :
       {"algorithm",  "assert.h",  "cassert",  "cfloat",  "climits",   "cmath",
        "cstddef",    "cstdint",   "cstdio",   "cstdlib", "cstring",   "float.h",
        "inttypes.h", "cinttypes", "limits.h", "math.h",  "stdbool.h", "stddef.h",
        "stdint.h",   "stdio.h",   "stdlib.h", "string.h"}) {
    headers.push_back({name, absl::StrCat("#include <", kPreludeName, ">\n")});
  }
  for (const char* name :
       {"array", "initializer_list", "limits", "tuple", "type_traits", "utility"}) {
    headers.push_back({name, FromCudaStd(name)});
  }
  for (const char* name : {"cublas.h", "cublasLt.h", "cublasXt.h", "cublas_v2.h"}) {
    headers.push_back({name, Cublas()});
  }
  for (const char* name : {"cufft.h", "cufftXt.h"}) headers.push_back({name, Cufft()});
  return headers;
}

}  // namespace

const std::vector<SourceText>& BuiltInHeaders() {
  static const auto* headers = new std::vector<SourceText>(MakeHeaders());
  return *headers;
}

std::string Prelude(const std::string& name, bool own_ulong) {
  return absl::StrCat(own_ulong ? "#define GRIDCLOCK_OWN_ULONG\n" : "", "#include <", kPreludeName,
                      ">\n#line 1 \"", name, "\"\n");
}

}  // namespace gridclock
