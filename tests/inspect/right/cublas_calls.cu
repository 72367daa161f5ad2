// cuBLAS: products of matrices that lie column by column, and the words for vectors.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                       \
  do {                                                    \
    cublasStatus_t status = (call);                       \
    if (status != CUBLAS_STATUS_SUCCESS) {                \
      fprintf(stderr, "%d: %d\n", __LINE__, (int)status); \
      exit(EXIT_FAILURE);                                 \
    }                                                     \
  } while (0)

int number(int i) {
  return i * 5 % 13 - 6;
}

template <class T>
T* filled(int count, int first) {
  std::vector<T> host(count);
  for (int i = 0; i < count; ++i) host[i] = number(first + i);
  T* device;
  cudaMalloc(&device, count * sizeof(T));
  cudaMemcpy(device, host.data(), count * sizeof(T), cudaMemcpyHostToDevice);
  return device;
}

template <class T>
void print(const char* name, const T* device, int count) {
  std::vector<T> host(count);
  cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost);
  double sum = 0, weighted = 0;
  for (int i = 0; i < count; ++i) sum += host[i], weighted += host[i] * (i % 7 + 1);
  printf("%s %.3f %.3f\n", name, sum, weighted);
}

int main() {
  constexpr int m = 9, n = 7, k = 5, lda = 11, ldb = 8, ldc = 10;
  cublasHandle_t handle;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  CHECK(cublasCreate(&handle));
  CHECK(cublasSetStream(handle, stream));
  CHECK(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH));

  // The rows below m of C are padding: nothing reads or writes them.
  float *a = filled<float>(lda * k, 0), *b = filled<float>(ldb * k, 1);
  float* c = filled<float>(ldc * n, 2);
  const float two = 2, half = 0.5f, none = 0;
  CHECK(
      cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, m, n, k, &two, a, lda, b, ldb, &half, c, ldc));
  print("sgemm", c, ldc * n);

  double *da = filled<double>(k * m, 3), *db = filled<double>(k * n, 4), *dc;
  const double one = 1, zero = 0;
  cudaMalloc(&dc, m * n * sizeof(double));  // beta is 0: C may be anything before
  CHECK(cublasDgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &one, da, k, db, k, &zero, dc, m));
  print("dgemm", dc, m * n);

  float *x = filled<float>(32, 5), *y = filled<float>(32, 6);
  CHECK(cublasSgemv(handle, CUBLAS_OP_N, m, k, &two, a, lda, x, 2, &none, y, 3));
  print("sgemv", y, 32);
  CHECK(cublasSgemv(handle, CUBLAS_OP_T, m, k, &half, a, lda, x, 1, &two, y, -1));
  print("sgemv", y, 32);
  CHECK(cublasSaxpy(handle, 16, &half, x, 2, y, 1));
  CHECK(cublasSscal(handle, 8, &two, y, 4));
  print("saxpy", y, 32);
  float product, length;
  CHECK(cublasSdot(handle, 32, x, 1, y, 1, &product));
  CHECK(cublasSnrm2(handle, 32, x, 1, &length));
  printf("%.3f %.3f\n", product, length);
  cudaStreamSynchronize(stream);
  for (float* each : {a, b, c, x, y}) cudaFree(each);
  for (double* each : {da, db, dc}) cudaFree(each);
  CHECK(cublasDestroy(handle));
  cudaStreamDestroy(stream);
}
