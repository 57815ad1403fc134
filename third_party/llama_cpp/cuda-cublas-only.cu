// The value `cublas` of //platforms:cuda_kernels: in place of mmq.cu, mmf.cu, fattn.cu and their instances, which are
// nine tenths of the time to compile, the answer that they do not apply. ggml then dequantises, multiplies with cuBLAS
// and computes attention step by step.
#include "ggml-cuda/fattn.cuh"
#include "ggml-cuda/mmf.cuh"
#include "ggml-cuda/mmq.cuh"

bool ggml_cuda_should_use_mmq(enum ggml_type, int, int64_t, int64_t) { return false; }

void ggml_cuda_mul_mat_q(ggml_backend_cuda_context &, const ggml_tensor *, const ggml_tensor *, const ggml_tensor *,
                         ggml_tensor *) {
    GGML_ABORT("not compiled in: --//platforms:cuda_kernels=cublas");
}

bool ggml_cuda_should_use_mmf(enum ggml_type, int, int, const int64_t *, const size_t *, const int, bool) {
    return false;
}

void ggml_cuda_mul_mat_f(ggml_backend_cuda_context &, const ggml_tensor *, const ggml_tensor *, const ggml_tensor *,
                         ggml_tensor *) {
    GGML_ABORT("not compiled in: --//platforms:cuda_kernels=cublas");
}

bool ggml_cuda_flash_attn_ext_supported(int, const ggml_tensor *) { return false; }

size_t ggml_cuda_flash_attn_ext_get_alloc_size(int, const ggml_tensor * dst) { return ggml_nbytes(dst); }

void ggml_cuda_flash_attn_ext(ggml_backend_cuda_context &, ggml_tensor *) {
    GGML_ABORT("not compiled in: --//platforms:cuda_kernels=cublas");
}
