#pragma once

/// \file
/// cuBLAS on the GPUs of a host, each rank with a handle and room of its own. For launch files.

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "kernels/base/simt/cuda/cublas.hpp"
#include "kernels/base/simt/cuda/ranks_cuda.hpp"

namespace tilestep::simt::cuda {

/// Products in BF16 that a rank's stream is given. Loaded when first asked for, and looked for where Cublas is.
class RanksBlas {
 public:
  struct Sizes {
    int m = 0, n = 0, k = 0;
  };
  struct Factor {
    const void* data = nullptr;
    int pitch = 0;  ///< numbers from row to row
    bool turned = false;
  };

  static const RanksBlas& loaded() {
    static const RanksBlas blas;
    return blas;
  }
  const LibraryStatus& status() const { return status_; }

  /// C = op(A) · op(B), or C += it, by rows. A handle is made at a rank's first product: not in a graph. Throws Error.
  void multiply(Ranks& ranks, int rank, const Sizes& size, const Factor& a, const Factor& b,
                void* c, int c_pitch, bool adds) const {
    static_cast<void>(ranks.at(rank));  // chooses its GPU
    const Handle& handle = handle_of(ranks.gpu(rank), rank);
    const float one = 1, before = adds ? 1.0f : 0.0f;
    // The library counts columns first: its C is ours turned, which is our B turned times our A turned.
    int status = set_stream_(handle.blas, ranks.stream(rank));
    if (status == 0) status = set_room_(handle.blas, handle.room, kRoomBytes);
    if (status == 0) {
      status = gemm_(handle.blas, b.turned ? 1 : 0, a.turned ? 1 : 0, size.n, size.m, size.k, &one,
                     b.data, kBf16, b.pitch, a.data, kBf16, a.pitch, &before, c, kBf16, c_pitch,
                     kFp32Sums, kDefault);
    }
    if (status == 0) return;
    throw Error("cuBLAS refused a product of " + std::to_string(size.m) + " x " +
                    std::to_string(size.n) + " x " + std::to_string(size.k) + " (status " +
                    std::to_string(status) + ")",
                ExitCode::unavailable);
  }

 private:
  struct Handle {
    void* blas = nullptr;
    void* room = nullptr;
  };
  // cuBLAS documentation, "cudaDataType_t", "cublasComputeType_t"; 32 MiB is what it advises on Hopper.
  static constexpr int kBf16 = 14, kFp32Sums = 68, kDefault = -1;
  static constexpr std::size_t kRoomBytes = std::size_t{32} << 20;

  RanksBlas() {
    void* library = open_library({"libcublas.so.13", "libcublas.so.12"});
    const auto take = [library](auto& to, const char* name) {
      to = library == nullptr ? nullptr
                              : reinterpret_cast<std::decay_t<decltype(to)>>(dlsym(library, name));
      return to != nullptr;
    };
    const bool all = take(create_, "cublasCreate_v2") && take(set_stream_, "cublasSetStream_v2") &&
                     take(set_room_, "cublasSetWorkspace_v2") && take(gemm_, "cublasGemmEx");
    status_.available = all;
    status_.name = "cuBLAS";
    if (all) return;
    status_.reason = library == nullptr
                         ? "cuBLAS was not found; install the CUDA Toolkit's libcublas, or set "
                           "TILESTEP_CUBLAS to the file libcublas.so.13 or its folder"
                         : "the cuBLAS that was found is older than 11.3";
  }
  /// Each rank has its own, for ranks may share a GPU and work at the same time.
  const Handle& handle_of(int gpu, int rank) const {
    const std::lock_guard lock(mutex_);
    Handle& handle = handles_[{gpu, rank}];
    if (handle.room != nullptr) return handle;
    if (create_(&handle.blas) != 0 || cudaMalloc(&handle.room, kRoomBytes) != cudaSuccess) {
      handles_.erase({gpu, rank});
      throw Error("cuBLAS was found but does not start on GPU " + std::to_string(gpu),
                  ExitCode::unavailable);
    }
    return handle;
  }

  LibraryStatus status_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<int, int>, Handle> handles_;  ///< by GPU and rank
  int (*create_)(void**) = nullptr;
  int (*set_stream_)(void*, void*) = nullptr;
  int (*set_room_)(void*, void*, std::size_t) = nullptr;
  int (*gemm_)(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int,
               int, const void*, void*, int, int, int, int) = nullptr;
};

}  // namespace tilestep::simt::cuda
