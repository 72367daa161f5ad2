#pragma once

#include "kernels/base/lab/bench.hpp"
#include "kernels/base/lab/lesson.hpp"
#include "kernels/systems/triage/run/times.hpp"

namespace tilestep::triage {

/// What the bench times.
struct BenchSizes {
  Shape shape = kTimedShape;
  std::size_t period = kTimedPeriod;
  lab::Pace pace{60, 20, 20, 10};
  int rounds = 7;                           ///< of the stamped loop
  std::size_t room = std::size_t{1} << 21;  ///< of its tape
  int cases = kCases;                       ///< the first ones
  int mixtures = 12;                        ///< the first ones
  bool quick = false;

  static BenchSizes of_quick() {
    BenchSizes quick;
    quick.pace = {20, 14, 7, 5};
    quick.mixtures = 0;
    quick.rounds = 3;
    quick.quick = true;
    return quick;
  }
  /// What the emulation does in a moment.
  static BenchSizes tiny() {
    BenchSizes tiny;
    tiny.shape = Shape{};
    tiny.shape.layers = 1;
    tiny.period = 10007;
    tiny.pace = {0, 20, 20, 5};
    tiny.rounds = 1;
    tiny.room = std::size_t{1} << 16;
    tiny.shape.rows = 1;
    tiny.cases = 5;  // with the rare kernel's
    tiny.mixtures = 1;
    return tiny;
  }
};

/// The bench with these sizes. The device can time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::triage
