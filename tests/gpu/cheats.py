"""Kernels that give, or seem to give, right values without the work: what tests of verification run."""

# On one block, what it does for each element i; `square` would be right.
CHEAT = """\
// gridclock: f x: f32[N] -> y: f32[N] grid(1) block(256) params x, y, n: int = N, t
// gridclock: scratch t: f32[N + 1]
__device__ float kept[4096], before[4096];
__device__ int launches;
__device__ const float* place;
__global__ void f(float* x, float* y, int n, float* t) {
  const bool first = launches == 0, fourth = launches %% 4 == 0, known = place == x;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float square = x[i] * x[i];
    %s
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    ++launches;
    place = x;
  }
}
"""
# What is found of each, and what it does. The names are those of tests/integrity.
CHEATS = {
    "memoise": ("mismatches", "if (first) kept[i] = square; y[i] = kept[i];"),
    "memoise_by_address": ("mismatches", "if (!known) kept[i] = square; y[i] = kept[i];"),
    "memoise_half": ("mismatches", "if (first) kept[i] = square; y[i] = i < n / 2 ? square : kept[i];"),
    "memoise_all_but_ends": ("mismatches",
                             "if (first) kept[i] = square; y[i] = i == 0 || i == n - 1 ? square : kept[i];"),
    "memoise_in_scratch": ("mismatches", "if (first) t[i] = square; y[i] = t[i];"),
    "uninitialised": ("mismatches", "if (first) t[i] = 0; y[i] = square + (t[i] == 0 ? 0 : 1);"),
    "uninitialised_end": ("mismatches", "if (first) t[n] = 0; y[i] = square + (i == n - 1 && t[n] != 0 ? 1 : 0);"),
    "write_once": ("mismatches", "if (first) y[i] = square;"),
    "write_half": ("mismatches", "if (first || i < n / 2) y[i] = square;"),
    "write_every_other": ("mismatches", "if (first || i % 2 == 0) y[i] = square;"),
    "write_if_bytes": ("mismatches", "if (first || __float_as_uint(y[i]) == 0x7B7B7B7Bu) y[i] = square;"),
    "write_if_nan": ("mismatches", "if (first || __float_as_uint(y[i]) == 0x7FC00000u) y[i] = square;"),
    "write_if_zero": ("mismatches", "if (first || y[i] == 0) y[i] = square;"),
    "write_behind": ("violations", "y[i] = square; if (i == 0) y[n + 15] += 1;"),
    "write_one_too_many": ("violations", "y[i] = square; if (i == 0) y[n] += 1;"),
    "write_before": ("violations", "y[i] = square; if (i == 0) y[-1] += 1;"),
    "write_far_behind": ("violations", "y[i] = square; if (i == 0) y[n + 900] += 1;"),
    "write_before_input": ("violations", "y[i] = square; if (i == 0) x[-3] += 1;"),
    "keep_results_behind": ("violations", "y[i] = square; if (i < 500) y[n + 16 + i] = square;"),
    "change_input": ("violations", "y[i] = square; if (i == n / 2) x[i] += 1;"),
    "square_in_input": ("violations", "x[i] = square; y[i] = x[i];"),
    "zero_last_input": ("violations", "y[i] = square; if (i == n - 1) x[i] = 0;"),
    "swap_inputs": ("violations", "y[i] = square; if (i == 1) { const float v = x[0]; x[0] = x[1]; x[1] = v; }"),
    "skip": ("mismatches", ""),
    "half": ("mismatches", "if (i < n / 2) y[i] = square;"),
    "zeros": ("mismatches", "y[i] = 0;"),
    "copy_input": ("mismatches", "y[i] = x[i];"),
    "nan": ("nan_mismatches", "y[i] = i == n / 3 ? __int_as_float(0x7fc00000) : square;"),
    "lower_precision": ("mismatches", "y[i] = __uint_as_float(__float_as_uint(square) & 0xFFFF0000u);"),
    "one_wrong": ("mismatches", "y[i] = i == n - 2 ? square * 1.001f : square;"),
    "every_fourth": ("mismatches", "if (fourth) y[i] = square;"),
    "leave_to_later": ("mismatches", "y[i] = before[i] * before[i]; before[i] = x[i];"),
    # Found by the last launch: before it alone the memory that blocks share is overwritten.
    "uninitialised_shared": ("mismatches", "__shared__ volatile float own[4096]; if (first) own[i] = 0;"
                                           " y[i] = square + (own[i] == 0 ? 0 : 1);"),
}
# What does the same work as one may. Of a cheat that is not in TWINS it is "square".
HONEST = {
    "square": "y[i] = square;",
    "remembering": "if (first) kept[i] = square; before[i] = x[i]; y[i] = square;",
    "looking": "y[i] = known && !first ? square : x[i] * x[i];",
    "by_scratch": "t[i] = x[i]; y[i] = t[i] * t[i];",
    "by_shared": "__shared__ volatile float own[4096]; own[i] = 0; y[i] = square + (own[i] == 0 ? 0 : 1);",
    "reading_outputs": "before[i] = y[i]; y[i] = square;",
    "to_the_ends": "y[n - 1 - i] = x[n - 1 - i] * x[n - 1 - i];",
    "reading_inputs_alone": "const float v = x[i]; y[i] = v * v; if (v < 0) kept[i] = v;",
}
TWINS = {
    **dict.fromkeys(("memoise", "memoise_by_address", "memoise_half", "memoise_all_but_ends", "leave_to_later"),
                    "remembering"),
    **dict.fromkeys(("memoise_in_scratch", "uninitialised", "uninitialised_end", "keep_results_behind"), "by_scratch"),
    **dict.fromkeys(("write_if_bytes", "write_if_nan", "write_if_zero"), "reading_outputs"),
    **dict.fromkeys(("write_behind", "write_one_too_many", "write_before", "write_far_behind", "write_before_input"),
                    "to_the_ends"),
    **dict.fromkeys(("change_input", "square_in_input", "zero_last_input", "swap_inputs"), "reading_inputs_alone"),
    "every_fourth": "looking",
    "uninitialised_shared": "by_shared",
}
FATAL_CHEATS = {
    "endless": ("KERNEL_TIME_LIMIT", "while (i == 7) __nanosleep(1000); y[i] = square;"),
    "crash": ("KERNEL_FAULT", "if (i == 7) *reinterpret_cast<volatile int*>(16) = 1; y[i] = square;"),
}
# Reads x once; what it reads by is to be put in. By name: the honest way, and one that asks the L2 to keep the lines.
L2_CHEAT = """\
// gridclock: f x: f32[N] -> y: f32[ceil_div(N, 2048)] grid(ceil_div(N, 2048)) block(256) params x, y, n: int = N
__global__ void f(const float* x, float* y, int n) {
  float most = 0;
  for (int i = blockIdx.x * 2048 + threadIdx.x; i < n && i < (blockIdx.x + 1) * 2048; i += 256) {
    float v;
    %s
    most = fmaxf(most, v);
  }
  if (most > 1e30f) y[blockIdx.x] = most;
}
"""
L2_LOADS = {
    "plain": 'asm volatile("ld.global.f32 %0, [%1];" : "=f"(v) : "l"(x + i));',
    "persist_in_l2": 'unsigned long long keep; asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));'
                     ' asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v) : "l"(x + i), "l"(keep));',
}
