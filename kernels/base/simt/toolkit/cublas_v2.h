#pragma once

/// \file
/// CUDA's header of this name, for whole programs under emulation: the functions of cuBLAS that
/// most programs call, on the CPU ("cuBLAS Library", "cuBLAS Level-1, -2 and -3 Function
/// Reference"). Matrices are column-major. Sums are in FP64 and rounded once, so that a GPU's
/// results differ from these in their last bits.

#include "kernels/base/simt/program_blas.hpp"
#include "kernels/base/simt/toolkit/host.hpp"

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16,
};
/// Real numbers are their own conjugates.
enum cublasOperation_t {
  CUBLAS_OP_N = 0,
  CUBLAS_OP_T = 1,
  CUBLAS_OP_C = 2,
  CUBLAS_OP_HERMITAN = 2,
};
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
/// None of them changes a result here.
enum cublasMath_t {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
};
struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
};
using cublasHandle_t = cublasContext*;

inline const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR:
      return "CUBLAS_STATUS_LICENSE_ERROR";
  }
  return "unknown status";
}
inline const char* cublasGetStatusString(cublasStatus_t status) {
  return cublasGetStatusName(status);
}

// ---- the handle --------------------------------------------------------------------------------

inline cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
#define SIMT_OF_HANDLE(name, type, field)                                     \
  inline cublasStatus_t cublasSet##name(cublasHandle_t handle, type value) {  \
    if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;              \
    handle->field = value;                                                    \
    return CUBLAS_STATUS_SUCCESS;                                             \
  }                                                                           \
  inline cublasStatus_t cublasGet##name(cublasHandle_t handle, type* value) { \
    if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;              \
    *value = handle->field;                                                   \
    return CUBLAS_STATUS_SUCCESS;                                             \
  }
SIMT_OF_HANDLE(Stream, cudaStream_t, stream)
SIMT_OF_HANDLE(PointerMode, cublasPointerMode_t, pointer_mode)
SIMT_OF_HANDLE(MathMode, cublasMath_t, math)
#undef SIMT_OF_HANDLE
inline cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  *version = 130000;
  return CUBLAS_STATUS_SUCCESS;
}

// ---- copies ------------------------------------------------------------------------------------

namespace tilestep::program {

inline cublasStatus_t copy_columns(void* to, std::size_t to_pitch, const void* from,
                                   std::size_t from_pitch, std::size_t bytes, int columns,
                                   Direction direction, Location at) {
  if (columns < 0) return CUBLAS_STATUS_INVALID_VALUE;
  const int error = copy({.to = to,
                          .from = from,
                          .bytes = bytes,
                          .rows = static_cast<std::size_t>(columns),
                          .to_pitch = to_pitch,
                          .from_pitch = from_pitch,
                          .direction = direction},
                         at);
  return error == kSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

}  // namespace tilestep::program

#define SIMT_COPIES(Matrix, Vector, direction)                                                    \
  inline cublasStatus_t Matrix(int rows, int columns, int element, const void* from,              \
                               int from_pitch, void* to, int to_pitch, SIMT_AT) {                 \
    if (rows < 0 || element <= 0 || from_pitch < rows || to_pitch < rows)                         \
      return CUBLAS_STATUS_INVALID_VALUE;                                                         \
    return tilestep::program::copy_columns(                                                       \
        to, std::size_t(to_pitch) * element, from, std::size_t(from_pitch) * element,             \
        std::size_t(rows) * element, columns, tilestep::program::Direction::direction, at);       \
  }                                                                                               \
  inline cublasStatus_t Vector(int count, int element, const void* from, int from_step, void* to, \
                               int to_step, SIMT_AT) {                                            \
    if (element <= 0 || from_step <= 0 || to_step <= 0) return CUBLAS_STATUS_INVALID_VALUE;       \
    const bool whole = from_step == 1 && to_step == 1 && count > 0;                               \
    return tilestep::program::copy_columns(                                                       \
        to, std::size_t(to_step) * element, from, std::size_t(from_step) * element,               \
        std::size_t(element) * (whole ? count : 1), whole ? 1 : count,                            \
        tilestep::program::Direction::direction, at);                                             \
  }
SIMT_COPIES(cublasSetMatrix, cublasSetVector, to_device)
SIMT_COPIES(cublasGetMatrix, cublasGetVector, to_host)
#undef SIMT_COPIES

// ---- functions ---------------------------------------------------------------------------------

namespace tilestep::program {

/// A scalar as the handle's mode says: the host's own, which a program compiled for the emulation
/// reads itself.
template <class T>
cublasStatus_t scalar(cublasHandle_t handle, const BlasCall& call, const T* from, T& to) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (from == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
    return static_cast<cublasStatus_t>(blas_scalar(call, from, to));
  to = *from;
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t result(cublasHandle_t handle, const BlasCall& call, int status, T* to, T value) {
  if (status != kBlasSuccess) return static_cast<cublasStatus_t>(status);
  if (to == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
    return static_cast<cublasStatus_t>(blas_result(call, to, value));
  *to = value;
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
BlasMatrix<const T> matrix(const T* data, int rows, int columns, int pitch, cublasOperation_t op) {
  if (op == CUBLAS_OP_N) return {data, rows, columns, pitch, false};
  return {data, columns, rows, pitch, true};
}

template <class T>
cublasStatus_t gemm(cublasHandle_t handle, BlasCall call, const T* alpha, BlasMatrix<const T> a,
                    BlasMatrix<const T> b, const T* beta, BlasMatrix<T> c) {
  T by_alpha{}, by_beta{};
  cublasStatus_t status = scalar(handle, call, alpha, by_alpha);
  if (status == CUBLAS_STATUS_SUCCESS) status = scalar(handle, call, beta, by_beta);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return static_cast<cublasStatus_t>(blas_gemm(call, by_alpha, a, b, by_beta, c));
}
template <class T>
cublasStatus_t gemv(cublasHandle_t handle, BlasCall call, const T* alpha, BlasMatrix<const T> a,
                    BlasVector<const T> x, const T* beta, BlasVector<T> y) {
  T by_alpha{}, by_beta{};
  cublasStatus_t status = scalar(handle, call, alpha, by_alpha);
  if (status == CUBLAS_STATUS_SUCCESS) status = scalar(handle, call, beta, by_beta);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return static_cast<cublasStatus_t>(blas_gemv(call, by_alpha, a, x, by_beta, y));
}
template <class T>
cublasStatus_t axpy(cublasHandle_t handle, BlasCall call, const T* alpha, BlasVector<const T> x,
                    BlasVector<T> y) {
  T by_alpha{};
  const cublasStatus_t status = scalar(handle, call, alpha, by_alpha);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return static_cast<cublasStatus_t>(blas_axpy(call, by_alpha, x, y));
}
template <class T>
cublasStatus_t scal(cublasHandle_t handle, BlasCall call, const T* alpha, BlasVector<T> x) {
  T by_alpha{};
  const cublasStatus_t status = scalar(handle, call, alpha, by_alpha);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return static_cast<cublasStatus_t>(blas_scal(call, by_alpha, x));
}
template <class T>
cublasStatus_t dot(cublasHandle_t handle, BlasCall call, BlasVector<const T> x,
                   BlasVector<const T> y, T* to) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  T value{};
  const int status = blas_dot(call, x, y, value);
  return result(handle, call, status, to, value);
}
template <class T>
cublasStatus_t nrm2(cublasHandle_t handle, BlasCall call, BlasVector<const T> x, T* to) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  T value{};
  const int status = blas_nrm2(call, x, value);
  return result(handle, call, status, to, value);
}

}  // namespace tilestep::program

#define SIMT_BLAS(letter, T)                                                                       \
  inline cublasStatus_t cublas##letter##gemm(cublasHandle_t handle, cublasOperation_t op_a,        \
                                             cublasOperation_t op_b, int m, int n, int k,          \
                                             const T* alpha, const T* a, int lda, const T* b,      \
                                             int ldb, const T* beta, T* c, int ldc, SIMT_AT) {     \
    return tilestep::program::gemm<T>(handle, {"cublas" #letter "gemm", at}, alpha,                \
                                      tilestep::program::matrix(a, m, k, lda, op_a),               \
                                      tilestep::program::matrix(b, k, n, ldb, op_b), beta,         \
                                      {c, m, n, ldc});                                             \
  }                                                                                                \
  inline cublasStatus_t cublas##letter##gemv(                                                      \
      cublasHandle_t handle, cublasOperation_t op, int m, int n, const T* alpha, const T* a,       \
      int lda, const T* x, int incx, const T* beta, T* y, int incy, SIMT_AT) {                     \
    const bool turned = op != CUBLAS_OP_N;                                                         \
    return tilestep::program::gemv<T>(handle, {"cublas" #letter "gemv", at}, alpha,                \
                                      {a, m, n, lda, turned}, {x, turned ? m : n, incx}, beta,     \
                                      {y, turned ? n : m, incy});                                  \
  }                                                                                                \
  inline cublasStatus_t cublas##letter##axpy(cublasHandle_t handle, int n, const T* alpha,         \
                                             const T* x, int incx, T* y, int incy, SIMT_AT) {      \
    return tilestep::program::axpy<T>(handle, {"cublas" #letter "axpy", at}, alpha, {x, n, incx},  \
                                      {y, n, incy});                                               \
  }                                                                                                \
  inline cublasStatus_t cublas##letter##scal(cublasHandle_t handle, int n, const T* alpha, T* x,   \
                                             int incx, SIMT_AT) {                                  \
    return tilestep::program::scal<T>(handle, {"cublas" #letter "scal", at}, alpha, {x, n, incx}); \
  }                                                                                                \
  inline cublasStatus_t cublas##letter##dot(cublasHandle_t handle, int n, const T* x, int incx,    \
                                            const T* y, int incy, T* result, SIMT_AT) {            \
    return tilestep::program::dot<T>(handle, {"cublas" #letter "dot", at}, {x, n, incx},           \
                                     {y, n, incy}, result);                                        \
  }                                                                                                \
  inline cublasStatus_t cublas##letter##nrm2(cublasHandle_t handle, int n, const T* x, int incx,   \
                                             T* result, SIMT_AT) {                                 \
    return tilestep::program::nrm2<T>(handle, {"cublas" #letter "nrm2", at}, {x, n, incx},         \
                                      result);                                                     \
  }
SIMT_BLAS(S, float)
SIMT_BLAS(D, double)
#undef SIMT_BLAS
