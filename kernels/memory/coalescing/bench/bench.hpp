#pragma once

#include <cstddef>

#include "kernels/base/lab/bench.hpp"
#include "kernels/memory/coalescing/kernels.hpp"
#include "kernels/memory/coalescing/lesson.hpp"

/// The parts of a bench; each adds its tables, measurements and checks to the report. All GB/s are useful bytes (read
/// and written) over time; `expected` is the bandwidth of the device's copy times useful over moved bytes: of loads the
/// sectors of each request, of stores a sector that is stored in part is read as well, and `expected_64` where memory is
/// read in pieces of 64 bytes.
namespace tilestep::coalescing {

/// Sizes for a device with this much memory: on one with 80 GB and more, copies of 2 GiB, transposes
/// of 16384 × 16384, and 2^27 accesses over up to 32 GiB.
struct BenchSizes {
  std::size_t copy_floats = 0;
  int transpose_edge = 0;
  std::int64_t access_elements = 0;  ///< of 4 bytes; others take as many bytes
};
BenchSizes bench_sizes(std::size_t memory_bytes);

/// Data that every part needs.
struct Bench : lab::Bench {
  const Kernels& kernels = kernels_of(device);
  BenchSizes sizes = bench_sizes(device.info().memory_bytes);
};

/// The ladders of copies and of transposes; returns the bandwidth of the device's own copy, read
/// and written, in GB/s.
double bench_ladders(Bench& bench);
/// Bandwidth against stride, offset and pattern with 4 loads per thread, by element size with one, and
/// strides with both, and the prediction from `copy` (the device's own, GB/s) and the sectors.
void bench_patterns(Bench& bench, double copy);
/// Sectors per request over patterns, element sizes, directions and settings: counted beside
/// traced. Adds nothing but a line if the device has no counters.
void count_sweep(Bench& bench);

}  // namespace tilestep::coalescing
