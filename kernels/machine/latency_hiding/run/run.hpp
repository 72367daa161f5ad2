#pragma once

#include <vector>

#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/lesson.hpp"
#include "kernels/machine/latency_hiding/kernels.hpp"
#include "kernels/machine/latency_hiding/probes/records.hpp"

namespace tilestep::latency_hiding {

/// What the probes of a launch left behind.
struct Records {
  std::vector<WarpRecord> warps;
  std::vector<ProbeRecord> kept;  ///< kMostProbes of each warp
};
/// Memory for them.
class ProbeRoom {
 public:
  ProbeRoom(simt::Device& device, const Grid& grid)
      : warps_(device, static_cast<std::size_t>(grid.warps())),
        kept_(device, warps_.count() * kMostProbes) {
    warps_.fill(0xFF);
    kept_.fill(0xFF);
  }
  simt::Tape tape() {
    return simt::Tape().keep(kWarpSite, warps_.span()).keep(kProbeSite, kept_.span());
  }
  Records records() const { return {warps_.download(), kept_.download()}; }

 private:
  simt::Buffer<WarpRecord> warps_;
  simt::Buffer<ProbeRecord> kept_;
};

/// The result of a run: the trace, and its kernels' comparisons.
struct Run {
  Params params;
  Trace trace;
  lab::Closest result;           ///< against the reference
  std::int64_t differing = 0;    ///< numbers that differ between the probed and the timed kernel
  std::int64_t wrong_lanes = 0;  ///< that voted for another arm, or were active in one
  std::int64_t unreported = 0;   ///< warps of the launch that left no record, but for the tail
  double mean_latency = 0;  ///< of all probes of the launch, less the probe's cost; 0 with turns
};

/// The launch of a run on this many multiprocessors.
Grid grid_of(const Params& params, int multiprocessors);

/// Runs the kernel with probes and without, on the device's multiprocessors, or on one where it is emulated. Throws
/// Cancelled; Error (unavailable) for a GPU that lacks what the kernel needs.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);

/// The records of a launch as rows, events and steps.
/// `unit` as in Machine; a row has up to `probes`. Those of the multiprocessor that ran block 0.
void fill_rows(Machine& machine, const Records& records, const Grid& grid, int probes);
/// Brings events into order and numbers their steps: one for each of the followed row and one at the end, or for the
/// kernel tail so many slices of time.
inline constexpr int kSlices = 24;
void order_events(Machine& machine, int slices);
/// For the kernel tail: one row per multiprocessor, one number per block.
void fill_blocks(Machine& machine, const Records& records, const Grid& grid);

lab::Report report_of(const Run& run);

}  // namespace tilestep::latency_hiding
