#pragma once

/// \file
/// The words of NVIDIA's samples' header of this name that programs use, for whole programs under emulation.

#include <cstdio>
#include <cstdlib>

#include "kernels/base/simt/toolkit/host.hpp"

#define checkCudaErrors(call)                                                             \
  do {                                                                                    \
    const cudaError_t simt_error = (call);                                                \
    if (simt_error != cudaSuccess) {                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(simt_error)); \
      exit(EXIT_FAILURE);                                                                 \
    }                                                                                     \
  } while (0)
#define getLastCudaError(message) checkCudaErrors(cudaGetLastError())

inline int findCudaDevice(int, const char**) {
  return 0;
}
