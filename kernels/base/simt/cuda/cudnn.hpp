#pragma once

#include <string>

#include "kernels/base/simt/cuda/cublas.hpp"

namespace tilestep::simt {

/// O = softmax(Q·Kᵀ · scale) V, no mask, as cuDNN is asked for it. Q, O [batch × heads × queries × head_dim], K, V
/// [batch × kv_heads × length × head_dim], row-major.
struct LibraryAttention {
  enum class Type { bf16, fp16 };
  int batch = 1;
  int queries = 0;  ///< 0: as many as keys
  int length = 0;
  int heads = 0, kv_heads = 0;
  int head_dim = 0;
  Type type = Type::bf16;

  int query_rows() const { return queries > 0 ? queries : length; }
  auto operator<=>(const LibraryAttention&) const = default;
};
/// Its arrays on the device, 16 bits a number.
struct LibraryAttentionArrays {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;
};

}  // namespace tilestep::simt

namespace tilestep::simt::cuda {

/// NVIDIA's cuDNN, the peer that attention is measured against, by its graph API: the operation SDPA_FWD and
/// the plans that its heuristics propose. Loaded when first asked for and never needed, as cuBLAS is; looked
/// for where TILESTEP_CUDNN says (a file or folder), then in the same places. Part of the CUDA module.
class Cudnn {
 public:
  /// The library of this process, for the current device.
  static Cudnn& loaded();

  virtual ~Cudnn() = default;
  virtual bool available() const = 0;
  /// "cuDNN 9.19.0", empty if it is not available.
  virtual const std::string& name() const = 0;
  /// One sentence on why it is not available.
  virtual const std::string& reason() const = 0;

  /// How many plans it has for such an attention, the likely best first; 0: none. Throws Error
  /// (unavailable).
  virtual int plans(const LibraryAttention& attention) = 0;
  /// Asynchronous on the default stream. Throws Error.
  virtual void attend(const LibraryAttention& attention, int plan,
                      const LibraryAttentionArrays& arrays) = 0;
};

}  // namespace tilestep::simt::cuda

namespace tilestep::simt {

/// Of the backend that the caller is compiled for.
inline LibraryStatus cudnn_status() {
#if defined(__CUDACC__)
  const cuda::Cudnn& cudnn = cuda::Cudnn::loaded();
  return {cudnn.available(), cudnn.name(), cudnn.reason()};
#else
  return {false, "", "cuDNN runs only on an NVIDIA GPU; here the kernels run under emulation"};
#endif
}

}  // namespace tilestep::simt
