#pragma once

/// \file
/// Included by nvcc before a program whose launches are timed (on_gpu.cpp): each runs by itself, between two events. What was
/// seen goes to the file $TILESTEP_TIMES, a line each: "launch MILLISECONDS", or "launch refused"; "copy BYTES_PER_SECOND";
/// "device CAPABILITY MULTIPROCESSORS NAME".

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

namespace simt_timed {

/// Occupies the stream while the host enqueues what follows, so that the time between the events is the GPU's alone.
static __global__ void hold_stream(unsigned long long nanoseconds) {
  unsigned long long begun, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begun));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - begun < nanoseconds);
}
constexpr unsigned long long kHold_ns = 100'000;

struct State {
  std::FILE* out = nullptr;
  cudaEvent_t begun = nullptr, ended = nullptr;
  cudaStream_t stream = nullptr;
};

/// Bytes that a copy from device to device reads and writes in a second, the best of ten; nothing where there is no room.
inline void write_device(std::FILE* out, cudaEvent_t begun, cudaEvent_t ended) {
  int device = 0;
  cudaDeviceProp of;
  if (cudaGetDevice(&device) != cudaSuccess || cudaGetDeviceProperties(&of, device) != cudaSuccess)
    return;
  std::fprintf(out, "device %d %d %s\n", of.major * 10 + of.minor, of.multiProcessorCount, of.name);
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  char* memory = nullptr;
  if (cudaMalloc(&memory, 2 * kBytes) != cudaSuccess) {
    cudaGetLastError();
    return;
  }
  float best = 0;
  for (int i = 0; i < 10; ++i) {
    cudaEventRecord(begun);
    cudaMemcpyAsync(memory, memory + kBytes, kBytes, cudaMemcpyDeviceToDevice);
    cudaEventRecord(ended);
    float milliseconds = 0;
    if (cudaEventSynchronize(ended) != cudaSuccess) break;
    cudaEventElapsedTime(&milliseconds, begun, ended);
    if (best == 0 || milliseconds < best) best = milliseconds;
  }
  cudaFree(memory);
  if (best > 0) std::fprintf(out, "copy %.6g\n", 2.0 * kBytes / (best * 1e-3));
}

inline State& state() {
  static State of = [] {
    State made;
    const char* path = std::getenv("TILESTEP_TIMES");
    if (path == nullptr) return made;
    made.out = std::fopen(path, "w");
    if (made.out == nullptr) return made;
    cudaEventCreate(&made.begun);
    cudaEventCreate(&made.ended);
    write_device(made.out, made.begun, made.ended);
    return made;
  }();
  return of;
}

/// Earlier work has ended when the launch begins.
inline void begin(cudaStream_t stream) {
  State& of = state();
  of.stream = stream;
  if (of.out == nullptr) return;
  cudaDeviceSynchronize();
  hold_stream<<<1, 1, 0, stream>>>(kHold_ns);
  cudaEventRecord(of.begun, stream);
}
inline void end() {
  State& of = state();
  if (of.out == nullptr) return;
  // Whoever asks for the launch's error later still finds it.
  if (cudaPeekAtLastError() != cudaSuccess) {
    std::fprintf(of.out, "launch refused\n");
  } else {
    float milliseconds = 0;
    cudaEventRecord(of.ended, of.stream);
    if (cudaEventSynchronize(of.ended) != cudaSuccess) return;
    cudaEventElapsedTime(&milliseconds, of.begun, of.ended);
    std::fprintf(of.out, "launch %.6g\n", static_cast<double>(milliseconds));
  }
  std::fflush(of.out);
}

}  // namespace simt_timed
