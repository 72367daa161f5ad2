#pragma once

#include <initializer_list>
#include <string>

namespace tilestep::simt::cuda {

/// Opens the first of the files that is found: those that the environment `variable` names, the dynamic
/// linker's, and those in the folders of toolkits. nullptr: there is none.
void* open_library(std::initializer_list<const char*> names,
                   const char* variable = "TILESTEP_CUBLAS");

/// NVIDIA's cuBLAS, the peer that GEMM lessons are measured against. Loaded when first asked for
/// and never needed: where it is not found, `reason` says so. Part of the CUDA module.
///
/// Looked for, in this order: the file or folder that the environment variable TILESTEP_CUBLAS
/// names, the dynamic linker's own path, and the folders where toolkits are installed. CUDA 13's
/// library first, then CUDA 12's.
class Cublas {
 public:
  /// The library of this process and a handle for the current device.
  static const Cublas& loaded();

  bool available() const { return handle_ != nullptr; }
  /// "cuBLAS 13.0.2", empty if it is not available.
  const std::string& name() const { return name_; }
  /// One sentence on why it is not available.
  const std::string& reason() const { return reason_; }

  /// C [m × n] = A [m × k] · B [k × n], row-major device arrays, asynchronous on the default
  /// stream. FP32 in FP32 arithmetic: default math mode, in which neither TF32 nor emulation in
  /// BF16 is allowed, and with `pedantic` compute type CUBLAS_COMPUTE_32F_PEDANTIC. Throws Error.
  void gemm_fp32(int m, int n, int k, const float* a, const float* b, float* c,
                 bool pedantic) const;
  /// A and B in BF16, accumulated in FP32, C written in FP32. Throws Error.
  void gemm_bf16(int m, int n, int k, const void* a, const void* b, float* c) const;
  /// The same with B given as its transpose [n × k]: C = A · Bᵀ. Throws Error.
  void gemm_bf16_transposed(int m, int n, int k, const void* a, const void* b, float* c) const;

 private:
  Cublas();
  void load();

  using GemmEx = int (*)(void* handle, int transpose_a, int transpose_b, int m, int n, int k,
                         const void* alpha, const void* a, int a_type, int a_pitch, const void* b,
                         int b_type, int b_pitch, const void* beta, void* c, int c_type,
                         int c_pitch, int compute_type, int algorithm);
  void gemm(int m, int n, int k, const void* a, const void* b, bool transposed_b, float* c,
            int type, int compute_type) const;

  void* handle_ = nullptr;
  GemmEx gemm_ex_ = nullptr;
  std::string name_;
  std::string reason_;
};

}  // namespace tilestep::simt::cuda

namespace tilestep::simt {

/// How the matrix library of the device's vendor is doing.
struct LibraryStatus {
  bool available = false;
  std::string name;    ///< "cuBLAS 13.0.2"
  std::string reason;  ///< one sentence, empty when available
};

/// Of the backend that the caller is compiled for.
inline LibraryStatus library_status() {
#if defined(__CUDACC__)
  const cuda::Cublas& cublas = cuda::Cublas::loaded();
  return {cublas.available(), cublas.name(), cublas.reason()};
#else
  return {false, "", "cuBLAS runs only on an NVIDIA GPU; here the kernels run under emulation"};
#endif
}

}  // namespace tilestep::simt
