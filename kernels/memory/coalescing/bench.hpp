#pragma once

#include <cstddef>

#include "kernels/base/lab/ladder.hpp"
#include "kernels/memory/coalescing/kernels.hpp"

/// The parts of a bench; each adds its tables, measurements and checks to the report.
namespace tilestep::coalescing {

/// Sizes for a device with so much memory: on one with 80 GB and more, copies of 2 GiB, transposes
/// of 16384 × 16384, and 2^27 accesses over up to 32 GiB.
struct BenchSizes {
  std::size_t copy_floats = 0;
  int transpose_edge = 0;
  std::int64_t access_elements = 0;  ///< of 4 bytes; others take as many bytes
};
BenchSizes bench_sizes(std::size_t memory_bytes);

/// What every part needs.
struct Bench {
  simt::Device& device;
  const Kernels& kernels;
  lab::Progress& progress;
  lab::Report& report;
  BenchSizes sizes;
};

/// The ladders of copies and of transposes; returns the bandwidth of the device's own copy, read
/// and written, in GB/s.
double bench_ladders(const Bench& bench, lab::Ladder& ladder);
/// Bandwidth against stride, offset, pattern and element size, and what `copy` (the device's own,
/// GB/s) and the sectors let expect.
void bench_patterns(const Bench& bench, double copy);
/// Sectors per request over patterns, element sizes, directions and settings: counted beside
/// traced. Adds nothing but a line if the device has no counters.
void count_sweep(const Bench& bench);

}  // namespace tilestep::coalescing
