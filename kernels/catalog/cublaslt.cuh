// Matrix products by cuBLASLt, which is opened when the first one is launched: it is large, and a
// machine need not have it. Empty where the toolkit that compiles this has no header of it.
#ifndef GRIDCLOCK_KERNELS_CATALOG_CUBLASLT_CUH_
#define GRIDCLOCK_KERNELS_CATALOG_CUBLASLT_CUH_

#if __has_include(<cublasLt.h>)
#define GRIDCLOCK_HAS_CUBLASLT

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include <cublasLt.h>
#include <dlfcn.h>
#include <unistd.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/mutex.h"
#include "kernels/api/kernel.h"

namespace gridclock::cublaslt {

// c = op(a) op(b), or with input 2 of the call added to each row, row-major and dense, for each
// matrix of a batch; nothing of it empty.
struct Product {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  DType dtype = DType::kF32;
  bool tf32 = false;    // The factors are rounded to tf32; of f32 alone.
  bool wide_c = false;  // c is f32, as wide as what 16 bits are summed in.
  bool bias = false;    // Added in what the sums are in; of n numbers as wide as c.
  friend auto operator<=>(const Product&, const Product&) = default;
};

// The file of the library, of the version whose header was compiled: the numbers and structures of
// another are others. Empty if there is none. Looks only: to open it takes half a second, which a
// worker that never multiplies should not wait for.
inline std::string FindLibrary() {
  const char* path = std::getenv("LD_LIBRARY_PATH");
  std::vector<std::string> folders = absl::StrSplit(path == nullptr ? "" : path, ':');
  for (const char* usual :
       {"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/opt/cuda/lib64"}) {
    folders.emplace_back(usual);
  }
  for (const std::string& folder : folders) {
    std::string file = absl::StrCat(folder, "/libcublasLt.so.", CUBLAS_VER_MAJOR);
    if (!folder.empty() && access(file.c_str(), R_OK) == 0) return file;
  }
  return "";
}

inline bool IsHere() {
  return !FindLibrary().empty();
}

// The functions that are used, each by the name and type of the header.
struct Functions {
#define GC_FUNCTION(name) decltype(&::name) name = nullptr
  GC_FUNCTION(cublasLtCreate);
  GC_FUNCTION(cublasLtGetStatusString);
  GC_FUNCTION(cublasLtMatmul);
  GC_FUNCTION(cublasLtMatmulAlgoConfigGetAttribute);
  GC_FUNCTION(cublasLtMatmulAlgoGetHeuristic);
  GC_FUNCTION(cublasLtMatmulDescCreate);
  GC_FUNCTION(cublasLtMatmulDescDestroy);
  GC_FUNCTION(cublasLtMatmulDescSetAttribute);
  GC_FUNCTION(cublasLtMatmulPreferenceCreate);
  GC_FUNCTION(cublasLtMatmulPreferenceDestroy);
  GC_FUNCTION(cublasLtMatmulPreferenceSetAttribute);
  GC_FUNCTION(cublasLtMatrixLayoutCreate);
  GC_FUNCTION(cublasLtMatrixLayoutDestroy);
  GC_FUNCTION(cublasLtMatrixLayoutSetAttribute);
#undef GC_FUNCTION
  absl::Status ToStatus(cublasStatus_t status, absl::string_view what) const {
    if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
    const std::string text =
        absl::StrCat("cublaslt: ", what, ": ", cublasLtGetStatusString(status));
    if (status == CUBLAS_STATUS_ALLOC_FAILED) return absl::ResourceExhaustedError(text);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
      return absl::UnimplementedError(absl::StrCat(text, "; variant 'tiled' takes this call"));
    }
    return absl::InternalError(text);
  }
};

inline absl::StatusOr<Functions> LoadFunctions() {
  const std::string file = FindLibrary();
  void* library = file.empty() ? nullptr : dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("cublaslt: ", file.empty() ? "the library is not installed" : dlerror(),
                     "; variant 'tiled' needs no library"));
  }
  Functions f;
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) absl::StrAppend(&missing, " ", name);
  };
#define GC_FIND(name) find(f.name, #name)
  GC_FIND(cublasLtCreate);
  GC_FIND(cublasLtGetStatusString);
  GC_FIND(cublasLtMatmul);
  GC_FIND(cublasLtMatmulAlgoConfigGetAttribute);
  GC_FIND(cublasLtMatmulAlgoGetHeuristic);
  GC_FIND(cublasLtMatmulDescCreate);
  GC_FIND(cublasLtMatmulDescDestroy);
  GC_FIND(cublasLtMatmulDescSetAttribute);
  GC_FIND(cublasLtMatmulPreferenceCreate);
  GC_FIND(cublasLtMatmulPreferenceDestroy);
  GC_FIND(cublasLtMatmulPreferenceSetAttribute);
  GC_FIND(cublasLtMatrixLayoutCreate);
  GC_FIND(cublasLtMatrixLayoutDestroy);
  GC_FIND(cublasLtMatrixLayoutSetAttribute);
#undef GC_FIND
  if (missing.empty()) return f;
  return absl::FailedPreconditionError(absl::StrCat("cublaslt: ", file, " lacks", missing));
}

template <typename Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, cublasStatus_t (*)(Handle)>;

// How one product is computed: what the library was told, and the algorithm that it chose.
struct Plan {
  Owned<cublasLtMatmulDesc_t> product;
  Owned<cublasLtMatrixLayout_t> a, b, c;
  cublasLtMatmulAlgo_t algorithm;
};

// How far the addresses of a call are aligned, up to what the library makes a difference of.
struct Alignment {
  std::uint32_t a = 0, b = 0, c = 0;
  friend auto operator<=>(const Alignment&, const Alignment&) = default;
};
inline std::uint32_t AlignmentOf(const void* p) {
  constexpr std::uintptr_t kMost = 256;
  const std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(p) | kMost;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

inline cudaDataType TypeOf(DType dtype) {
  if (dtype == DType::kF64) return CUDA_R_64F;
  if (dtype == DType::kF16) return CUDA_R_16F;
  return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F;
}

// The library with its plans. One thread at a time.
class Multiplier {
 public:
  static absl::StatusOr<std::unique_ptr<Multiplier>> Create() {
    GC_ASSIGN_OR_RETURN(const Functions f, LoadFunctions());
    cublasLtHandle_t handle = nullptr;
    GC_RETURN_IF_ERROR(f.ToStatus(f.cublasLtCreate(&handle), "create"));
    return std::unique_ptr<Multiplier>(new Multiplier(f, handle));
  }

  absl::Status Launch(const Call& call, const Product& p, void* c) {
    Alignment alignment{AlignmentOf(call.In<char>(0)), AlignmentOf(call.In<char>(1)),
                        AlignmentOf(c)};
    const void* const bias = p.bias ? call.In<char>(2) : nullptr;
    if (p.bias) alignment.c = std::min(alignment.c, AlignmentOf(bias));
    const auto workspace = static_cast<std::size_t>(Bytes(call.scratch[0].value->tensors[0]));
    GC_ASSIGN_OR_RETURN(const Plan* found, PlanOf(p, bias, alignment, workspace));
    const Plan& plan = *found;
    const double one64 = 1, zero64 = 0;
    const float one32 = 1, zero32 = 0;
    const bool is64 = p.dtype == DType::kF64;
    const void* one = is64 ? static_cast<const void*>(&one64) : &one32;
    const void* zero = is64 ? static_cast<const void*>(&zero64) : &zero32;
    if (p.bias) {
      GC_RETURN_IF_ERROR(Set(plan.product.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
    }
    // Column-major, what is row-major is transposed: c^T = op(b)^T op(a)^T.
    GC_RETURN_IF_ERROR(f_.ToStatus(
        f_.cublasLtMatmul(handle_, plan.product.get(), one, call.In<char>(1), plan.b.get(),
                          call.In<char>(0), plan.a.get(), zero, c, plan.c.get(), c, plan.c.get(),
                          &plan.algorithm, call.scratch[0].data[0], workspace,
                          static_cast<cudaStream_t>(call.stream)),
        "matmul"));
    if (call.launches != nullptr) ++*call.launches;
    return absl::OkStatus();
  }

 private:
  using Key = std::tuple<Product, Alignment, std::size_t>;
  static constexpr std::size_t kMostPlans = 256;

  Multiplier(const Functions& f, cublasLtHandle_t handle) : f_(f), handle_(handle) {}

  template <typename Value>
  absl::Status Set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                   const Value& value) const {
    return f_.ToStatus(f_.cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof(value)),
                       "attribute of a product");
  }

  absl::StatusOr<Owned<cublasLtMatmulDesc_t>> MakeProduct(const Product& p,
                                                          const void* bias) const {
    const bool is64 = p.dtype == DType::kF64;
    cublasLtMatmulDesc_t raw = nullptr;
    // 32F multiplies f32 in full; 32F_FAST_TF32 where the variant's name says so, and nowhere else.
    const cublasComputeType_t in = is64     ? CUBLAS_COMPUTE_64F
                                   : p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                            : CUBLAS_COMPUTE_32F;
    GC_RETURN_IF_ERROR(f_.ToStatus(
        f_.cublasLtMatmulDescCreate(&raw, in, is64 ? CUDA_R_64F : CUDA_R_32F), "description"));
    Owned<cublasLtMatmulDesc_t> product(raw, f_.cublasLtMatmulDescDestroy);
    const auto op = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    GC_RETURN_IF_ERROR(Set(raw, CUBLASLT_MATMUL_DESC_TRANSA, op(p.transpose_b)));
    GC_RETURN_IF_ERROR(Set(raw, CUBLASLT_MATMUL_DESC_TRANSB, op(p.transpose_a)));
    if (p.bias) {
      GC_RETURN_IF_ERROR(Set(raw, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS));
      GC_RETURN_IF_ERROR(Set(raw, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
    }
    return product;
  }

  // Of row-major matrices of `rows` x `columns`, one after the other.
  absl::StatusOr<Owned<cublasLtMatrixLayout_t>> MakeLayout(const Product& p, cudaDataType type,
                                                           std::int64_t rows,
                                                           std::int64_t columns) const {
    cublasLtMatrixLayout_t raw = nullptr;
    GC_RETURN_IF_ERROR(
        f_.ToStatus(f_.cublasLtMatrixLayoutCreate(&raw, type, static_cast<std::uint64_t>(columns),
                                                  static_cast<std::uint64_t>(rows), columns),
                    "layout"));
    Owned<cublasLtMatrixLayout_t> layout(raw, f_.cublasLtMatrixLayoutDestroy);
    const auto count = static_cast<std::int32_t>(p.batch);
    const std::int64_t stride = rows * columns;
    GC_RETURN_IF_ERROR(
        f_.ToStatus(f_.cublasLtMatrixLayoutSetAttribute(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                        &count, sizeof(count)),
                    "batch"));
    GC_RETURN_IF_ERROR(
        f_.ToStatus(f_.cublasLtMatrixLayoutSetAttribute(
                        raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)),
                    "stride"));
    return layout;
  }

  // What the library has no algorithm for is asked once; what it had no memory for, again.
  absl::StatusOr<const Plan*> PlanOf(const Product& p, const void* bias, const Alignment& alignment,
                                     std::size_t workspace) {
    const Key key{p, alignment, workspace};
    auto found = plans_.find(key);
    if (found == plans_.end()) {
      absl::StatusOr<Plan> plan = MakePlan(p, bias, alignment, workspace);
      if (!plan.ok() && !absl::IsUnimplemented(plan.status())) return plan.status();
      if (plans_.size() >= kMostPlans) plans_.clear();
      found = plans_.emplace(key, std::move(plan)).first;
    }
    GC_RETURN_IF_ERROR(found->second.status());
    return &*found->second;
  }

  absl::StatusOr<Plan> MakePlan(const Product& p, const void* bias, const Alignment& alignment,
                                std::size_t workspace) const {
    const cudaDataType type = TypeOf(p.dtype);
    GC_ASSIGN_OR_RETURN(auto product, MakeProduct(p, bias));
    GC_ASSIGN_OR_RETURN(auto a,
                        MakeLayout(p, type, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k));
    GC_ASSIGN_OR_RETURN(auto b,
                        MakeLayout(p, type, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n));
    GC_ASSIGN_OR_RETURN(auto c, MakeLayout(p, p.wide_c ? CUDA_R_32F : type, p.m, p.n));
    Plan plan{std::move(product), std::move(a), std::move(b), std::move(c), {}};
    GC_RETURN_IF_ERROR(ChooseAlgorithm(p, alignment, workspace, plan));
    return plan;
  }

  // Of f32, where the library with its memory would not split K, it may choose better without: of
  // 1024 cubed, on an H200, 54.4 us in place of 57.4; of twelve other shapes nothing changed by
  // more than 0.5 %.
  absl::Status ChooseAlgorithm(const Product& p, const Alignment& alignment, std::size_t workspace,
                               Plan& plan) const {
    GC_RETURN_IF_ERROR(AskForAlgorithm(p, alignment, workspace, plan));
    const bool is_f32 = p.dtype == DType::kF32 && !p.tf32;
    std::int32_t parts = 0;
    std::size_t written = 0;
    if (is_f32) {
      GC_RETURN_IF_ERROR(f_.ToStatus(
          f_.cublasLtMatmulAlgoConfigGetAttribute(&plan.algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
                                                  &parts, sizeof(parts), &written),
          "parts of K"));
    }
    if (parts != 1) return absl::OkStatus();
    const absl::Status without = AskForAlgorithm(p, alignment, 0, plan);
    return absl::IsUnimplemented(without) ? absl::OkStatus() : without;
  }

  absl::Status AskForAlgorithm(const Product& p, const Alignment& alignment, std::size_t workspace,
                               Plan& plan) const {
    cublasLtMatmulPreference_t raw = nullptr;
    GC_RETURN_IF_ERROR(f_.ToStatus(f_.cublasLtMatmulPreferenceCreate(&raw), "preference"));
    const Owned<cublasLtMatmulPreference_t> owner(raw, f_.cublasLtMatmulPreferenceDestroy);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      return f_.ToStatus(
          f_.cublasLtMatmulPreferenceSetAttribute(raw, attribute, &value, sizeof(value)),
          "preference");
    };
    // Parts of a sum may be joined in what it is computed in, never in the 16 bits of a result.
    if (!p.wide_c && SizeOf(p.dtype) < SizeOf(DType::kF32)) {
      const std::uint32_t joined = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
      GC_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, joined));
    }
    GC_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace}));
    GC_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment.b));
    GC_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment.a));
    GC_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment.c));
    GC_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment.c));
    cublasLtMatmulHeuristicResult_t result = {};
    int count = 0;
    GC_RETURN_IF_ERROR(f_.ToStatus(
        f_.cublasLtMatmulAlgoGetHeuristic(handle_, plan.product.get(), plan.b.get(), plan.a.get(),
                                          plan.c.get(), plan.c.get(), raw, 1, &result, &count),
        "choice of an algorithm"));
    if (count == 0) return f_.ToStatus(CUBLAS_STATUS_NOT_SUPPORTED, "choice of an algorithm");
    plan.algorithm = result.algo;
    return absl::OkStatus();
  }

  Functions f_;
  cublasLtHandle_t handle_;
  std::map<Key, absl::StatusOr<Plan>> plans_;
};

// What the library takes, in the words of its callers, and the memory that it may use, which is
// their first scratch.
inline constexpr const char* kTakes =
    "max(M, N, K) <= 2147483647 && numel(c) / max(1, M * N) <= 2147483647";
inline constexpr const char* kScratch = " scratch workspace: u8[33554432]";

// Of inputs 0 and 1 of the call, into `c`. UNIMPLEMENTED where the library has no algorithm for it.
inline absl::Status Multiply(const Call& call, const Product& product, void* c) {
  static Mutex mutex;
  static std::unique_ptr<Multiplier> multiplier;  // Where there was no memory for it, there may be.
  const MutexLock lock(mutex);
  if (multiplier == nullptr) {
    GC_ASSIGN_OR_RETURN(multiplier, Multiplier::Create());
  }
  return multiplier->Launch(call, product, c);
}

// The same, without the bias where the library multiplies but cannot add it. Whether it added one.
inline absl::StatusOr<bool> MultiplyAndAdd(const Call& call, Product product, void* c) {
  const absl::Status status = Multiply(call, product, c);
  if (!product.bias || !absl::IsUnimplemented(status)) {
    GC_RETURN_IF_ERROR(status);
    return product.bias;
  }
  product.bias = false;
  GC_RETURN_IF_ERROR(Multiply(call, product, c));
  return false;
}

}  // namespace gridclock::cublaslt

#endif  // __has_include(<cublasLt.h>)

#endif  // GRIDCLOCK_KERNELS_CATALOG_CUBLASLT_CUH_
