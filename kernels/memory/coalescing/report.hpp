#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/base/simt/counters.hpp"
#include "kernels/memory/coalescing/kernels.hpp"
#include "kernels/memory/coalescing/lesson.hpp"

/// The parts that the lesson's reports are assembled from.
namespace tilestep::coalescing {

/// The arrays of a launch, in device memory.
struct Arrays {
  /// `in` random, `out` with every byte `kUntouched`. Throws Error if there is no room.
  Arrays(simt::Device& device, const PatternShape& shape, std::int64_t seed);
  static constexpr unsigned char kUntouched = 0xA5;

  std::vector<unsigned char> host_in;
  simt::Buffer<unsigned char> in;
  simt::Buffer<unsigned char> out;
};

/// The results gathered by a run.
struct Outcome {
  Params params;
  PatternShape shape;
  Trace trace;
  std::int64_t wrong_timed = 0;    ///< elements of the timed kernel's output that are not right
  std::int64_t wrong_traced = 0;   ///< the same for the traced kernel
  std::int64_t differ = 0;         ///< elements that differ between traced and timed kernel
  std::int64_t wrong_offsets = 0;  ///< traced addresses that differ from the definition
  std::int64_t wrong_transposed = 0;
  std::optional<simt::GlobalTraffic> counted;  ///< of the whole launch
};

/// The requests of the first `blocks` blocks of a launch, as the traced kernel recorded them; its
/// output is left in `arrays.out`. Throws Error.
std::vector<WarpRequest> traced_requests(simt::Device& device, const PatternShape& shape,
                                         std::int64_t blocks, Arrays& arrays);

/// Requests to shared memory of the transposes with a tile, first block and first warp, one store
/// and one load each. Adds the number of wrong elements of the tile to `wrong`.
std::vector<TileRequest> traced_tiles(simt::Device& device, std::int64_t& wrong);

/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Outcome& outcome);

/// Times the ladders and sweeps, and counts where there are counters. Throws Error (unavailable)
/// if the device cannot time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress);

/// Tolerance of a comparison of counted with traced sectors per request: the counters of one of
/// many units may miss some events at the borders of a run.
inline constexpr double kCountTolerance = 0.005;

}  // namespace tilestep::coalescing
