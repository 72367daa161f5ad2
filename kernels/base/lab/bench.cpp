#include "kernels/base/lab/bench.hpp"

#include "kernels/base/lab/quick.hpp"

namespace tilestep::lab {

Climb Bench::climb(const LadderPlan& plan, double from, double to) {
  Part part(progress, from, to);
  done = to;
  Climb climb = ladder.climb(left_out(report).empty() ? plan : quick(plan), part);
  append(report.measurements, climb.measurements);
  return climb;
}

}  // namespace tilestep::lab
