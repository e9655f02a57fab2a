// The words of the whole catalogue, planned kernels included: what the language was made for.
#ifndef GRIDCLOCK_TESTS_UNIT_TYPES_CATALOGUE_WORDS_H_
#define GRIDCLOCK_TESTS_UNIT_TYPES_CATALOGUE_WORDS_H_

namespace gridclock {

#define FLOATS " where T in {f64, f32, f16, bf16}"
#define MATMUL_IN "a: T[*, ta ? [K, M] : [M, K]], b: T[*, tb ? [N, K] : [K, N]]"
#define ADAM(decay)                                                                        \
  " inout p: f32[*]..., g: f32[*]..., inout m: f32[*]..., inout v: f32[*]...; "            \
  "lr: f64 = 1e-3 in [0, inf), beta1: f64 = 0.9 in [0, 1), beta2: f64 = 0.999 in [0, 1), " \
  "eps: f64 = 1e-8 in [0, inf), weight_decay: f64 = " decay                                \
  " in [0, inf), "                                                                         \
  "step: i64 = 1 in [1, 4611686018427387904], arg_bytes: i64 = 4096 in {4096, 32764}"

inline constexpr const char* kVectorAdd =
    "vector_add a: T[*], b: T[*] -> c: T[*] over a" FLOATS " flops numel(c)";
inline constexpr const char* kSquare = "square x: T[*] -> y: T[*] over x" FLOATS;
inline constexpr const char* kPow =
    "pow x: T[*] -> y: T[*] over x; exponent: f64 = 2 in (-inf, inf)" FLOATS;
inline constexpr const char* kGelu =
    "gelu x: T[*] -> y: T[*] over x; approximate: {tanh, none} = tanh" FLOATS
    " flops numel(y)*(approximate == tanh ? 9 : 5)";
inline constexpr const char* kScale =
    "scale x: T[*] -> y: T[*] over x; factor: f64 in (-inf, inf)" FLOATS;
inline constexpr const char* kCast = "cast x: T[*] -> y: to[*]; to: dtype = f32";
inline constexpr const char* kSoftmax = "softmax x: T[*, N] -> y: T[*, N] over x" FLOATS;
inline constexpr const char* kLayernorm =
    "layernorm x: T[*, N], weight: T[N], bias: T[N] -> y: T[*, N]; eps: f64 = 1e-5 in (0, "
    "1]" FLOATS;
inline constexpr const char* kRmsnorm =
    "rmsnorm x: T[*, N], weight: T[N] -> y: T[*, N]; eps: f64 = 1e-6 in (0, 1]" FLOATS;
inline constexpr const char* kSum =
    "sum x: T[*A, N @ axis, *B] -> y: T[*A, *B]; axis: i64 = -1 in [-8, 7]" FLOATS;
inline constexpr const char* kMax =
    "max x: T[*A, N @ axis, *B] -> y: T[*A, *B]; axis: i64 = -1 in [-8, 7]" FLOATS ", N >= 1";
inline constexpr const char* kArgmax =
    "argmax x: T[*A, N @ axis, *B] -> y: i64[*A, *B]; axis: i64 = -1 in [-8, 7]" FLOATS ", N >= 1";
inline constexpr const char* kCumsum =
    "cumsum x: T[*A, N @ axis, *B] -> y: T[*A, N, *B] over x; axis: i64 = -1 in [-8, 7]" FLOATS;
inline constexpr const char* kTranspose =
    "transpose x: T[*A] -> y: T[*swap(A, i, j)]; i: i64 = -2 in [-8, 7], j: i64 = -1 in [-8, 7] "
    "flops 0";
inline constexpr const char* kMatmul =
    "matmul " MATMUL_IN " -> c: T[*, M, N]; ta: bool = false, tb: bool = false" FLOATS
    " flops 2*numel(c)*K";
inline constexpr const char* kMatmulBiasGelu =
    "matmul_bias_gelu " MATMUL_IN
    ", bias: T[N] -> c: T[*, M, N]; ta: bool = false, tb: bool = false, "
    "approximate: {tanh, none} = tanh" FLOATS " flops 2*numel(c)*K + 10*numel(c)";
inline constexpr const char* kCdist =
    "cdist a: T[*, M, D], b: T[*, N, D] -> d: T[*, M, N]; p: f64 = 2 in {1, 2} "
    "where T in {f64, f32} flops 3*numel(d)*D";
inline constexpr const char* kForeachAdd =
    "foreach_add a: T[*]..., b: T[*]... -> c: T[*]... over a; alpha: f64 = 1 in (-inf, inf), "
    "arg_bytes: i64 = 4096 in {4096, 32764}" FLOATS " flops numel(c)";
inline constexpr const char* kForeachMul =
    "foreach_mul a: T[*]..., b: T[*]... -> c: T[*]... over a" FLOATS " flops numel(c)";
inline constexpr const char* kSgd =
    "sgd inout p: f32[*]..., g: f32[*]...; lr: f64 = 1e-3 in [0, inf), "
    "weight_decay: f64 = 0 in [0, inf) flops 4*numel(p)";
inline constexpr const char* kAdam = "adam" ADAM("0");
inline constexpr const char* kAdamw = "adamw" ADAM("0.01");
inline constexpr const char* kEmpty = "empty";
inline constexpr const char* kCopy = "copy x: T[*] -> y: T[*]";
inline constexpr const char* kSpin = "spin; ns: i64 = 20000 in [0, 600000000000] flops 0";
inline constexpr const char* kFault =
    "fault; kind: {none, segfault, abort, endless, allocate, illegal_address, misaligned, assert, "
    "trap} = none";

inline constexpr const char* kCatalogueWords[] = {
    kVectorAdd, kSquare,         kPow,   kGelu,       kScale,      kCast,   kSoftmax,
    kLayernorm, kRmsnorm,        kSum,   kMax,        kArgmax,     kCumsum, kTranspose,
    kMatmul,    kMatmulBiasGelu, kCdist, kForeachAdd, kForeachMul, kSgd,    kAdam,
    kAdamw,     kEmpty,          kCopy,  kSpin,       kFault};

#undef FLOATS
#undef MATMUL_IN
#undef ADAM

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_UNIT_TYPES_CATALOGUE_WORDS_H_
