#pragma once

#include <cstddef>

#include "kernels/base/lab/bench.hpp"
#include "kernels/memory/coalescing/kernels.hpp"
#include "kernels/memory/coalescing/lesson.hpp"

/// The parts of a bench; each adds its tables, measurements and checks to the report.
///
/// Tables, all GB/s being useful bytes (read and written) over time, and `expected` the bandwidth of
/// the device's copy times useful over moved bytes:
///  - `copy_ladder`, `copy_configurations`, `transpose_ladder`, `transpose_configurations`
///  - `bandwidth_by_stride`: stride, load, load_p10, load_p90, store, store_p10, store_p90, expected
///    (of loads: the sectors of each request), expected_store (a sector that is stored in part is
///    read as well), expected_64 (of loads, where memory is read in pieces of 64 bytes)
///  - `bandwidth_by_offset`: offset and the same
///  - `bandwidth_by_pattern`: pattern, element_bytes, access, bandwidth, p10, p90, expected (of that
///    access), sectors_per_request
///  - `bandwidth_by_element`, sequential loads: element_bytes, bandwidth, p10, p90, thread_bytes,
///    threads, in_flight
///  - with counters `dram_by_stride`: stride, access, read, written (bytes that crossed to DRAM for
///    each useful byte), expected (from them), bandwidth; and `counted_sweep`: pattern,
///    element_bytes, access, setting, traced, counted, difference
///
/// Measurements: copy_bandwidth (variants "device", "strided", "coalesced", "vectorized"),
/// fraction_of_device_copy, transpose_bandwidth (variant: the rung), fraction_of_copy,
/// bank_conflicts_per_request, useful_bandwidth (variant: the pattern, 4-byte loads),
/// dram_read_per_byte and dram_written_per_byte (variant: "load 8").
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
struct Bench : lab::Bench {
  const Kernels& kernels = kernels_of(device);
  BenchSizes sizes = bench_sizes(device.info().memory_bytes);
};

/// The ladders of copies and of transposes; returns the bandwidth of the device's own copy, read
/// and written, in GB/s.
double bench_ladders(Bench& bench);
/// Bandwidth against stride, offset, pattern and element size, and what `copy` (the device's own,
/// GB/s) and the sectors let expect.
void bench_patterns(Bench& bench, double copy);
/// Sectors per request over patterns, element sizes, directions and settings: counted beside
/// traced. Adds nothing but a line if the device has no counters.
void count_sweep(Bench& bench);

}  // namespace tilestep::coalescing
