#include "third_party/cuda/cublas.h"

#include <cublas_v2.h>
#include <dlfcn.h>

#include <cstdlib>

namespace eliza::cuda {
namespace {

constexpr char kDriver[] = "libcuda.so.1";
constexpr char kCublas[] = "libcublas.so.13";

std::string last_dl_error() {
  const char* message = dlerror();
  return message == nullptr ? "no reason given" : message;
}

struct Libraries {
  void* cublas = nullptr;
  std::string missing;

  Libraries() {
    // The CUDA runtime opens it again by itself; what is asked here is whether it could.
    if (dlopen(kDriver, RTLD_NOW | RTLD_LOCAL) == nullptr) {
      missing = "the NVIDIA driver is not installed (" + last_dl_error() + ")";
      return;
    }
    const char* named = std::getenv("ELIZA_CUBLAS");
    const bool is_named = named != nullptr && *named != '\0';
    cublas = dlopen(is_named ? named : kCublas, RTLD_NOW | RTLD_LOCAL);
    if (cublas == nullptr) {
      missing = "cuBLAS 13 cannot be opened (" + last_dl_error() +
                "); install it (nvidia-cublas on PyPI, or the CUDA toolkit) where the dynamic linker looks, or set "
                "ELIZA_CUBLAS to the path of its libcublas.so.13";
    }
  }
};

const Libraries& libraries() {
  static const Libraries* const opened = new Libraries;  // leaked: GPUs may be in use until the process ends
  return *opened;
}

// One of cuBLAS's functions; null where the library, or the function in it, is missing.
template <typename Function>
Function* symbol(const char* name) {
  void* const cublas = libraries().cublas;
  return cublas == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(cublas, name));
}

}  // namespace

std::string missing_libraries() { return libraries().missing; }

}  // namespace eliza::cuda

// Each function is cuBLAS's own of that name, looked up at the first call.
#define ELIZA_STRING_(name) #name
#define ELIZA_STRING(name) ELIZA_STRING_(name)
#define ELIZA_FORWARD(name, parameters, arguments)                                         \
  cublasStatus_t name parameters {                                                         \
    static auto* const function = eliza::cuda::symbol<decltype(name)>(ELIZA_STRING(name)); \
    return function == nullptr ? CUBLAS_STATUS_NOT_INITIALIZED : function arguments;       \
  }

extern "C" {

ELIZA_FORWARD(cublasCreate, (cublasHandle_t * handle), (handle))
ELIZA_FORWARD(cublasDestroy, (cublasHandle_t handle), (handle))
ELIZA_FORWARD(cublasSetStream, (cublasHandle_t handle, cudaStream_t stream), (handle, stream))
ELIZA_FORWARD(cublasSetWorkspace, (cublasHandle_t handle, void* workspace, size_t bytes), (handle, workspace, bytes))
ELIZA_FORWARD(cublasSetMathMode, (cublasHandle_t handle, cublasMath_t mode), (handle, mode))

const char* cublasGetStatusString(cublasStatus_t status) {
  static auto* const function = eliza::cuda::symbol<decltype(cublasGetStatusString)>("cublasGetStatusString");
  return function == nullptr ? "cuBLAS is not there" : function(status);
}

ELIZA_FORWARD(cublasSgemm,
              (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
               const float* alpha, const float* a, int lda, const float* b, int ldb, const float* beta, float* c,
               int ldc),
              (handle, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc))

ELIZA_FORWARD(cublasSgemmBatched,
              (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
               const float* alpha, const float* const a[], int lda, const float* const b[], int ldb, const float* beta,
               float* const c[], int ldc, int batch_count),
              (handle, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, batch_count))

ELIZA_FORWARD(cublasSgemmStridedBatched,
              (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
               const float* alpha, const float* a, int lda, long long int stride_a, const float* b, int ldb,
               long long int stride_b, const float* beta, float* c, int ldc, long long int stride_c, int batch_count),
              (handle, transa, transb, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc, stride_c,
               batch_count))

ELIZA_FORWARD(cublasStrsmBatched,
              (cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans,
               cublasDiagType_t diag, int m, int n, const float* alpha, const float* const a[], int lda,
               float* const b[], int ldb, int batch_count),
              (handle, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, batch_count))

ELIZA_FORWARD(cublasGemmEx,
              (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
               const void* alpha, const void* a, cudaDataType a_type, int lda, const void* b, cudaDataType b_type,
               int ldb, const void* beta, void* c, cudaDataType c_type, int ldc, cublasComputeType_t compute_type,
               cublasGemmAlgo_t algo),
              (handle, transa, transb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc,
               compute_type, algo))

ELIZA_FORWARD(cublasGemmBatchedEx,
              (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
               const void* alpha, const void* const a[], cudaDataType a_type, int lda, const void* const b[],
               cudaDataType b_type, int ldb, const void* beta, void* const c[], cudaDataType c_type, int ldc,
               int batch_count, cublasComputeType_t compute_type, cublasGemmAlgo_t algo),
              (handle, transa, transb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc,
               batch_count, compute_type, algo))

ELIZA_FORWARD(cublasGemmStridedBatchedEx,
              (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
               const void* alpha, const void* a, cudaDataType a_type, int lda, long long int stride_a, const void* b,
               cudaDataType b_type, int ldb, long long int stride_b, const void* beta, void* c, cudaDataType c_type,
               int ldc, long long int stride_c, int batch_count, cublasComputeType_t compute_type,
               cublasGemmAlgo_t algo),
              (handle, transa, transb, m, n, k, alpha, a, a_type, lda, stride_a, b, b_type, ldb, stride_b, beta, c,
               c_type, ldc, stride_c, batch_count, compute_type, algo))

}  // extern "C"
