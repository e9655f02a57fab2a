// In place of NVIDIA's library, for cublaslt_test.cc: has no algorithm for a product with a bias
// whose k is kNeverAdds, none at all where it is kNeverMultiplies, none without memory where it is
// kWantsMemory, and splits k where it is kSplits. A product writes what was asked of the library.
#if __has_include(<cublasLt.h>)
#include "tests/unit/catalog/fake_cublaslt.h"

#include <cstring>

#include <cublasLt.h>

namespace {

// What an opaque structure holds here.
struct Told {
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::uint64_t rows = 0;
  std::uint64_t memory = 0;
};
Told& Of(void* opaque) {
  return *static_cast<Told*>(opaque);
}

gridclock::Asked asked;

// What stands in an algorithm, which is opaque too.
struct Chosen {
  std::int32_t parts = 1;
  std::uint64_t memory = 0;
};

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(&asked);
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasLtGetStatusString(cublasStatus_t) {
  return "the fake says no";
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void*,
                              const void*, cublasLtMatrixLayout_t, const void*,
                              cublasLtMatrixLayout_t, const void*, const void*,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t,
                              const cublasLtMatmulAlgo_t* algorithm, void*, size_t, cudaStream_t) {
  asked.added = Of(product).epilogue == CUBLASLT_EPILOGUE_BIAS;
  Chosen chosen;
  std::memcpy(&chosen, algorithm, sizeof(chosen));
  asked.memory = chosen.memory;
  std::memcpy(d, &asked, sizeof(asked));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* count) {
  ++asked.algorithms;
  const auto k = static_cast<std::int64_t>(Of(b).rows);
  const bool adds = Of(product).epilogue == CUBLASLT_EPILOGUE_BIAS;
  *count = 1;
  const std::uint64_t memory = Of(preference).memory;
  if (k == gridclock::kNeverMultiplies || (adds && k == gridclock::kNeverAdds) ||
      (memory == 0 && k == gridclock::kWantsMemory)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const Chosen chosen{.parts = k == gridclock::kSplits ? 4 : 1, .memory = memory};
  std::memcpy(&results[0].algo, &chosen, sizeof(chosen));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* value, size_t size, size_t* written) {
  if (attribute != CUBLASLT_ALGO_CONFIG_SPLITK_NUM) return CUBLAS_STATUS_INVALID_VALUE;
  Chosen chosen;
  std::memcpy(&chosen, algorithm, sizeof(chosen));
  std::memcpy(value, &chosen.parts, size);
  *written = size;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t,
                                        cudaDataType_t) {
  *product = reinterpret_cast<cublasLtMatmulDesc_t>(new Told);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  delete &Of(product);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t size) {
  if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE) {
    std::memcpy(&Of(product).epilogue, value, size);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Told);
  asked.schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete &Of(preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t size) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    std::memcpy(&Of(preference).memory, value, size);
  }
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
    std::memcpy(&asked.schemes, value, size);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType,
                                          std::uint64_t rows, std::uint64_t, std::int64_t) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Told{.rows = rows});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete &Of(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t,
                                                cublasLtMatrixLayoutAttribute_t, const void*,
                                                size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
#endif
