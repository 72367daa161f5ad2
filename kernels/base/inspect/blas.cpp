// What a program computes by cuBLAS (simt/program_blas.hpp).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "kernels/base/simt/program_blas.hpp"

namespace tilestep::program {
namespace {

int refuse(const BlasCall& call, const std::string& why) {
  refuse_call(call.name, why.c_str(), call.at);
  return kBlasInvalidValue;
}

/// Whether the matrix has a shape; otherwise that is a finding.
template <class T>
bool is_shape(const BlasCall& call, const char* name, const BlasMatrix<T>& matrix) {
  if (matrix.rows < 0 || matrix.columns < 0) {
    refuse(call, fmt::format("{} has {} rows and {} columns", name, matrix.rows, matrix.columns));
    return false;
  }
  if (matrix.pitch >= std::max(1, matrix.rows)) return true;
  refuse(call,
         fmt::format("{} is column-major with {} rows in memory, but has a leading dimension of {}",
                     name, matrix.rows, matrix.pitch));
  return false;
}
template <class T>
bool is_step(const BlasCall& call, const char* name, const BlasVector<T>& vector) {
  if (vector.step != 0) return true;
  refuse(call, fmt::format("the increment of {} is 0", name));
  return false;
}

template <class T>
bool is_there(const BlasCall& call, const char* name, const BlasMatrix<T>& matrix, bool reads,
              bool writes) {
  return device_range({.begin = matrix.data,
                       .bytes = static_cast<std::size_t>(matrix.rows) * sizeof(T),
                       .rows = static_cast<std::size_t>(matrix.columns),
                       .pitch = static_cast<std::size_t>(matrix.pitch) * sizeof(T),
                       .reads = reads,
                       .writes = writes,
                       .name = name},
                      call.name, call.at);
}
template <class T>
bool is_there(const BlasCall& call, const char* name, const BlasVector<T>& vector, bool reads,
              bool writes) {
  return device_range({.begin = vector.data,
                       .bytes = sizeof(T),
                       .rows = static_cast<std::size_t>(std::max(vector.count, 0)),
                       .pitch = static_cast<std::size_t>(std::abs(vector.step)) * sizeof(T),
                       .reads = reads,
                       .writes = writes,
                       .name = name},
                      call.name, call.at);
}

/// Element (row, column) of the matrix as it is used.
template <class T>
double element(const BlasMatrix<const T>& matrix, int row, int column) {
  if (matrix.transposed) std::swap(row, column);
  return static_cast<double>(matrix.data[static_cast<std::ptrdiff_t>(column) * matrix.pitch + row]);
}
template <class T>
T& element(const BlasVector<T>& vector, int i) {
  const std::ptrdiff_t first =
      vector.step > 0 ? 0 : static_cast<std::ptrdiff_t>(1 - vector.count) * vector.step;
  return vector.data[first + static_cast<std::ptrdiff_t>(i) * vector.step];
}

}  // namespace

template <class T>
int blas_scalar(const BlasCall& call, const T* from, T& to) {
  if (!device_range({.begin = from, .bytes = sizeof(T), .reads = true, .name = "a scalar"},
                    call.name, call.at)) {
    return kBlasExecutionFailed;
  }
  to = *from;
  return kBlasSuccess;
}
template <class T>
int blas_result(const BlasCall& call, T* to, T result) {
  if (!device_range({.begin = to, .bytes = sizeof(T), .writes = true, .name = "its result"},
                    call.name, call.at)) {
    return kBlasExecutionFailed;
  }
  *to = result;
  return kBlasSuccess;
}

template <class T>
int blas_gemm(const BlasCall& call, T alpha, BlasMatrix<const T> a, BlasMatrix<const T> b, T beta,
              BlasMatrix<T> c) {
  if (!is_shape(call, "A", a) || !is_shape(call, "B", b) || !is_shape(call, "C", c))
    return kBlasInvalidValue;
  if (c.rows == 0 || c.columns == 0) return kBlasSuccess;
  const int depth = a.transposed ? a.rows : a.columns;
  // What is multiplied by 0 is not read, and may be NaN.
  const bool multiplies = alpha != 0 && depth > 0;
  if ((multiplies &&
       (!is_there(call, "A", a, true, false) || !is_there(call, "B", b, true, false))) ||
      !is_there(call, "C", c, beta != 0, true)) {
    return kBlasExecutionFailed;
  }
  for (int column = 0; column < c.columns; ++column) {
    for (int row = 0; row < c.rows; ++row) {
      T& to = c.data[static_cast<std::ptrdiff_t>(column) * c.pitch + row];
      double sum = 0;
      for (int k = 0; multiplies && k < depth; ++k)
        sum += element(a, row, k) * element(b, k, column);
      sum = multiplies ? static_cast<double>(alpha) * sum : 0;
      if (beta != 0) sum += static_cast<double>(beta) * static_cast<double>(to);
      to = static_cast<T>(sum);
    }
  }
  return kBlasSuccess;
}

template <class T>
int blas_gemv(const BlasCall& call, T alpha, BlasMatrix<const T> a, BlasVector<const T> x, T beta,
              BlasVector<T> y) {
  if (!is_shape(call, "A", a) || !is_step(call, "x", x) || !is_step(call, "y", y))
    return kBlasInvalidValue;
  if (x.count == 0 || y.count == 0) return kBlasSuccess;
  const bool multiplies = alpha != 0;
  if ((multiplies &&
       (!is_there(call, "A", a, true, false) || !is_there(call, "x", x, true, false))) ||
      !is_there(call, "y", y, beta != 0, true)) {
    return kBlasExecutionFailed;
  }
  for (int row = 0; row < y.count; ++row) {
    T& to = element(y, row);
    double sum = 0;
    for (int k = 0; multiplies && k < x.count; ++k)
      sum += element(a, row, k) * static_cast<double>(element(x, k));
    sum = multiplies ? static_cast<double>(alpha) * sum : 0;
    if (beta != 0) sum += static_cast<double>(beta) * static_cast<double>(to);
    to = static_cast<T>(sum);
  }
  return kBlasSuccess;
}

template <class T>
int blas_axpy(const BlasCall& call, T alpha, BlasVector<const T> x, BlasVector<T> y) {
  if (x.count <= 0 || alpha == 0) return kBlasSuccess;
  if (!is_there(call, "x", x, true, false) || !is_there(call, "y", y, true, true))
    return kBlasExecutionFailed;
  for (int i = 0; i < x.count; ++i) {
    element(y, i) = static_cast<T>(static_cast<double>(alpha) * static_cast<double>(element(x, i)) +
                                   static_cast<double>(element(y, i)));
  }
  return kBlasSuccess;
}

template <class T>
int blas_scal(const BlasCall& call, T alpha, BlasVector<T> x) {
  if (x.count <= 0 || x.step <= 0) return kBlasSuccess;
  if (!is_there(call, "x", x, true, true)) return kBlasExecutionFailed;
  for (int i = 0; i < x.count; ++i) element(x, i) *= alpha;
  return kBlasSuccess;
}

template <class T>
int blas_dot(const BlasCall& call, BlasVector<const T> x, BlasVector<const T> y, T& result) {
  result = 0;
  if (x.count <= 0) return kBlasSuccess;
  if (!is_there(call, "x", x, true, false) || !is_there(call, "y", y, true, false))
    return kBlasExecutionFailed;
  double sum = 0;
  for (int i = 0; i < x.count; ++i)
    sum += static_cast<double>(element(x, i)) * static_cast<double>(element(y, i));
  result = static_cast<T>(sum);
  return kBlasSuccess;
}

template <class T>
int blas_nrm2(const BlasCall& call, BlasVector<const T> x, T& result) {
  result = 0;
  if (x.count <= 0 || x.step <= 0) return kBlasSuccess;
  if (!is_there(call, "x", x, true, false)) return kBlasExecutionFailed;
  // Squares of large and small doubles do not overflow or vanish when the largest number is taken
  // out.
  double largest = 0, sum = 0;
  for (int i = 0; i < x.count; ++i) {
    const double each = std::abs(static_cast<double>(element(x, i)));
    if (std::isnan(each) || each > largest) largest = each;
    if (std::isnan(each)) break;
  }
  if (largest == 0 || !std::isfinite(largest)) {
    result = static_cast<T>(largest);
    return kBlasSuccess;
  }
  for (int i = 0; i < x.count; ++i) {
    const double each = static_cast<double>(element(x, i)) / largest;
    sum += each * each;
  }
  result = static_cast<T>(largest * std::sqrt(sum));
  return kBlasSuccess;
}

#define TILESTEP_BLAS(T)                                                                  \
  template int blas_scalar(const BlasCall&, const T*, T&);                                \
  template int blas_result(const BlasCall&, T*, T);                                       \
  template int blas_gemm(const BlasCall&, T, BlasMatrix<const T>, BlasMatrix<const T>, T, \
                         BlasMatrix<T>);                                                  \
  template int blas_gemv(const BlasCall&, T, BlasMatrix<const T>, BlasVector<const T>, T, \
                         BlasVector<T>);                                                  \
  template int blas_axpy(const BlasCall&, T, BlasVector<const T>, BlasVector<T>);         \
  template int blas_scal(const BlasCall&, T, BlasVector<T>);                              \
  template int blas_dot(const BlasCall&, BlasVector<const T>, BlasVector<const T>, T&);   \
  template int blas_nrm2(const BlasCall&, BlasVector<const T>, T&);
TILESTEP_BLAS(float)
TILESTEP_BLAS(double)
#undef TILESTEP_BLAS

}  // namespace tilestep::program
