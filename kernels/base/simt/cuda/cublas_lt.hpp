#pragma once

#include <string>

#include "kernels/base/simt/cuda/cublas.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::simt {

/// C [m × n] = A [m × k] · Bᵀ, B [n × k], row-major, as cuBLASLt is asked for it.
struct LibraryProduct {
  enum class Type { bf16, e4m3, s8, s32 };
  enum class Scaling {
    none,    ///< of the whole tensors, by 1
    blocks,  ///< E4M3: A by 1 × 128, B by 128 × 128 (VEC128_32F, BLK128x128_32F)
    rows,    ///< E4M3: each row of A and of B (OUTER_VEC_32F)
  };
  int m = 0, n = 0, k = 0;
  Type type = Type::bf16;  ///< of A and B; s8 adds up in int
  Scaling scaling = Scaling::none;
  /// E4M3: sums along k stay in the tensor cores, with fewer bits.
  bool fast_accumulation = false;
  Type c = Type::bf16;  ///< of S8's product s32, or s8
  auto operator<=>(const LibraryProduct&) const = default;
};
/// Its arrays on the device. The scales, if there are any, are [k / 128][m] and [n / 128][k / 128] numbers; of rows [m]
/// and [n].
struct LibraryArrays {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const float* a_scales = nullptr;
  const float* b_scales = nullptr;
};

}  // namespace tilestep::simt

namespace tilestep::simt::cuda {

/// NVIDIA's cuBLASLt, whose algorithms a caller may choose among. Loaded when first asked for and never
/// needed, as cuBLAS is, and looked for in the same places. Part of the CUDA module.
class CublasLt {
 public:
  /// The library of this process, for the current device.
  static CublasLt& loaded();

  virtual ~CublasLt() = default;
  virtual bool available() const = 0;
  /// One sentence on why it is not available.
  virtual const std::string& reason() const = 0;

  /// How many algorithms its search proposes, the likely best first; 0 if it has none for the product.
  /// Throws Error (unavailable).
  virtual int algorithms(const LibraryProduct& product, const LibraryArrays& arrays) = 0;
  /// Asynchronous on the default stream, or the one that becomes a graph. Throws Error.
  virtual void multiply(const LibraryProduct& product, int algorithm,
                        const LibraryArrays& arrays) = 0;
};

}  // namespace tilestep::simt::cuda

namespace tilestep::simt {

/// CublasLt's of the backend that the caller is compiled for; the emulation has none. Throws Error (unavailable).
inline int library_algorithms([[maybe_unused]] const LibraryProduct& product,
                              [[maybe_unused]] const LibraryArrays& arrays) {
#if defined(__CUDACC__)
  return cuda::CublasLt::loaded().algorithms(product, arrays);
#else
  throw Error(library_status().reason, ExitCode::unavailable);
#endif
}
inline void library_multiply([[maybe_unused]] const LibraryProduct& product,
                             [[maybe_unused]] int algorithm,
                             [[maybe_unused]] const LibraryArrays& arrays) {
#if defined(__CUDACC__)
  cuda::CublasLt::loaded().multiply(product, algorithm, arrays);
#else
  throw Error(library_status().reason, ExitCode::unavailable);
#endif
}

}  // namespace tilestep::simt
