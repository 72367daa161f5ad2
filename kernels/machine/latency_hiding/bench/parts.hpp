#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/machine/latency_hiding/bench/bench.hpp"
#include "kernels/machine/latency_hiding/run/run.hpp"

/// The parts of the bench; each adds its tables, measurements and checks to the report.
namespace tilestep::latency_hiding {

/// What every part needs.
struct Parts : lab::Bench {
  const BenchSizes& sizes;
  const Kernels& kernels = kernels_of(device);
  int multiprocessors = device.info().multiprocessors;

  Parts(simt::Device& on, lab::Progress& watched, const BenchSizes& with)
      : lab::Bench{on, watched}, sizes(with) {}

  /// The launch that the knobs ask for, on all multiprocessors.
  Grid grid(const Params& params) const { return grid_of(params, multiprocessors); }
  /// Times of a point of a sweep, in ms.
  lab::Spread time(const std::function<void()>& launch) const;
};

/// Params with so many warps, in blocks of 128 threads or fewer.
Params with_warps(Params params, int warps);

/// Random words and room for their copy.
class Words {
 public:
  Words(Parts& parts, std::size_t bytes);
  simt::Span<const float> from() const {
    return {reinterpret_cast<const float*>(in_.span().data), in_.count()};
  }
  simt::Span<float> to() { return {reinterpret_cast<float*>(out_.span().data), out_.count()}; }
  double bytes() const { return static_cast<double>(in_.bytes()); }
  /// The copy that the knobs ask for.
  /// With a block for so many chunks; 0: with as many blocks as are resident at a time.
  void copy(const Params& params, const simt::Tape& tape = {}, int chunks_of_block = 0);
  lab::Runnable runnable(const Params& params, int chunks_of_block);

 private:
  Parts& parts_;
  simt::Buffer<unsigned> in_, out_;
  simt::Buffer<unsigned long long> wrong_;
};

/// What the probes of a launch say together, in cycles and less the probe's cost; the clock in MHz.
struct Means {
  double latency = 0, cost = 0, clock_mhz = 0;
  double latency_ns() const { return clock_mhz > 0 ? latency / clock_mhz * 1e3 : 0; }
};
Means means_of(const std::vector<WarpRecord>& warps);
/// Cycles from the issue of the first of `loads` that are in flight together to the use of the last, on average over
/// those that are kept, kMostProbes a warp, beginning with such a first one; 0: none is.
double mean_round(const std::vector<ProbeRecord>& kept, int loads);

void bench_bytes_in_flight(Parts& parts);
void bench_stalls(Parts& parts);
void bench_latency(Parts& parts);
void bench_flops(Parts& parts);
void bench_registers(Parts& parts);
void bench_divergence(Parts& parts);
void bench_tail(Parts& parts);
void bench_sub_partitions(Parts& parts);
void bench_occupancy(Parts& parts);

// ---- what follows from measured points ---------------------------------------------------------------

/// A point of the curve: what is in flight on a multiprocessor, what that gave, and the latency that its loads had.
struct CurvePoint {
  double in_flight = 0;  ///< bytes
  double read_gbps = 0;  ///< bytes read a nanosecond, of all multiprocessors
  double latency_ns = 0;
};
/// Where the curve of the best points reaches nine tenths of its most, between the two points around it.
struct Knee {
  double in_flight = 0;   ///< measured: bytes of a multiprocessor
  double latency_ns = 0;  ///< loaded: there
  double idle_ns = 0;     ///< of the point with the least in flight
  double predicted = 0;   ///< by Little's law: rate there × latency there, of a multiprocessor
};
Knee knee_of(std::vector<CurvePoint> points, int multiprocessors);

}  // namespace tilestep::latency_hiding
