#pragma once

/// \file
/// How a kernel records times: the multiprocessor's clock before an instruction is issued and after the first one that
/// needs its result, kept by a tape. With NoTape all of it compiles to nothing. Under emulation a thread's clock counts
/// how often it was read: order, not time.

#include <cstdint>

#include "kernels/base/simt/simt.hpp"
#include "kernels/machine/latency_hiding/params.hpp"
#include "kernels/machine/latency_hiding/probes/records.hpp"

#if !defined(__CUDACC__)
#define __maxnreg__(...)
#endif

namespace tilestep::latency_hiding::SIMT_BACKEND {

using Index = std::int64_t;

/// The device's timer, in steps of up to a microsecond; emulated: nothing passes.
__device__ inline long long device_nanoseconds() {
#if defined(__CUDACC__)
  long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
#else
  return 0;
#endif
}

/// Keeps kMostProbes probes of each warp from number `first` on, and sums up all of them.
template <class Tape>
class Clocks {
 public:
  __device__ explicit Clocks(const Tape& tape, int first = 0) : tape_(tape), first_(first) {}

  /// Records the cost of an empty probe.
  __device__ void start() {
    if constexpr (Tape::kRecords) {
      const long long nanoseconds_now = device_nanoseconds();
      const unsigned before = now();
      const unsigned cost = now() - before;
      const unsigned begin = now();
      if (threadIdx.x % kLanes == 0) {
        tape_.put(kWarpSite, warp(),
                  WarpRecord{multiprocessor(), slot(), begin, begin, cost, 0, 0, nanoseconds_now,
                             nanoseconds_now});
      }
    }
  }

  __device__ unsigned now() {
    if constexpr (Tape::kRecords) {
#if defined(__CUDACC__)
      asm volatile("mov.u32 %0, %%clock;" : "=r"(now_)::"memory");
#else
      ++now_;
#endif
    }
    return now_;
  }

  /// Probe `number` of the warp, issued at `issued`, has been used; one lane of the warp is the `writer`.
  __device__ void used(int number, unsigned issued, bool writer) {
    if constexpr (Tape::kRecords) {
      const unsigned use = now();
      latency_ += use - issued;
      probes_ = static_cast<unsigned>(number) + 1;
      const auto place = static_cast<unsigned>(number - first_);
      if (place >= kMostProbes) return;
      const unsigned lanes = active();  // before one of them diverges
      if (writer) {
        tape_.put(kProbeSite, warp() * kMostProbes + place, ProbeRecord{issued, use, lanes});
      }
    }
  }
  __device__ void used(int number, unsigned issued) {
    used(number, issued, threadIdx.x % kLanes == 0);
  }

  /// By all threads at the end.
  __device__ SIMT_UNWATCHED void finish() {
    if constexpr (Tape::kRecords) {
      const unsigned end = now();
      if (threadIdx.x % kLanes != 0) return;
      WarpRecord* const record = tape_.template at<WarpRecord>(kWarpSite, warp());
      if (record == nullptr) return;
      record->end = end;
      record->probes = probes_;
      record->latency = latency_;
      record->end_ns = device_nanoseconds();
    }
  }

 private:
  static __device__ Index warp() {
    return (static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
  }
#if defined(__CUDACC__)
  static __device__ unsigned active() {
    return __activemask();
  }
  static __device__ unsigned multiprocessor() {
    unsigned number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
  }
  static __device__ unsigned slot() {
    unsigned number;
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(number));
    return number;
  }
#else
  static unsigned active() {
    return 0;
  }
  static unsigned multiprocessor() {
    return 0;
  }
  static unsigned slot() {
    return static_cast<unsigned>(warp() % kMostWarps);
  }
#endif

  const Tape& tape_;
  int first_;
  unsigned now_ = 0, probes_ = 0, latency_ = 0;
};

}  // namespace tilestep::latency_hiding::SIMT_BACKEND
