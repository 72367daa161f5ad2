#pragma once

/// \file
/// What simt/toolkit/cublas_v2.h asks of the host's side under emulation, as
/// kernels/base/inspect/blas.cpp does it: matrices are column-major, sums are in FP64 and rounded
/// once. Arrays are the device's. All functions return the number of a cublasStatus_t, T is float
/// or double.

#include "kernels/base/simt/program.hpp"

namespace tilestep::program {

/// Numbers of cublasStatus_t (cuBLAS Library, "cublasStatus_t").
inline constexpr int kBlasSuccess = 0, kBlasNotInitialized = 1, kBlasInvalidValue = 7,
                     kBlasExecutionFailed = 13;

/// A function of the library, as it is called, with the place of its call.
struct BlasCall {
  const char* name;
  Location at;
};
/// A matrix with `rows` and `columns` before it is transposed; `pitch` elements from column to
/// column.
template <class T>
struct BlasMatrix {
  T* data;
  int rows, columns, pitch;
  bool transposed = false;
};
/// `step` elements from one to the next; below 0 the last one comes first in memory.
template <class T>
struct BlasVector {
  T* data;
  int count, step;
};

/// Takes a number where the host or, by the handle's mode, the device has it.
template <class T>
int blas_scalar(const BlasCall& call, const T* from, T& to);
/// The same for a result.
template <class T>
int blas_result(const BlasCall& call, T* to, T result);

/// C = alpha · A · B + beta · C, with A and B transposed as they say.
template <class T>
int blas_gemm(const BlasCall& call, T alpha, BlasMatrix<const T> a, BlasMatrix<const T> b, T beta,
              BlasMatrix<T> c);
/// y = alpha · A · x + beta · y
template <class T>
int blas_gemv(const BlasCall& call, T alpha, BlasMatrix<const T> a, BlasVector<const T> x, T beta,
              BlasVector<T> y);
/// y = alpha · x + y
template <class T>
int blas_axpy(const BlasCall& call, T alpha, BlasVector<const T> x, BlasVector<T> y);
template <class T>
int blas_scal(const BlasCall& call, T alpha, BlasVector<T> x);
template <class T>
int blas_dot(const BlasCall& call, BlasVector<const T> x, BlasVector<const T> y, T& result);
/// The root of the sum of squares.
template <class T>
int blas_nrm2(const BlasCall& call, BlasVector<const T> x, T& result);

}  // namespace tilestep::program
