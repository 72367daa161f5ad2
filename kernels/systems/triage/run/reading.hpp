#pragma once

#include <string>
#include <vector>

#include "kernels/base/lab/lesson.hpp"
#include "kernels/systems/triage/run/program.hpp"

/// What instruments read of a program.
namespace tilestep::triage {

/// The launches of one kernel for one operator in a step.
struct KernelReading {
  Op op = Op::embed;
  std::string kernel;
  int launches = 0;
  std::string dtype, shape, layout;
  int load_bytes = 0;
  unsigned blocks = 0, threads = 0;
  std::size_t shared_bytes = 0;
  int registers = 0;     ///< of a thread; 0: no compiler says it
  double occupancy = 0;  ///< 0 – 1; 0: not known
  double bytes = 0;      ///< asked for by all launches: weights, cache, numbers in and out
  double flops = 0;
  double requests = 0, sectors = 0,
         needed = 0;  ///< of the first warp of each launch; sectors of 32 bytes
  double us = 0;      ///< of all launches; 0: not timed
};
/// A step's kernels, and which of them each of its launches is of.
struct Readings {
  std::vector<KernelReading> kernels;
  std::vector<std::size_t> of_work;
};
/// Runs a step of the loop with counters. `room`: tape entries.
Readings counted(const Program& program, int step, std::size_t room);

/// Something on a lane of the timeline, in µs from the step's first call on.
struct Span {
  bool host = false;
  std::string what;
  int op = -1;  ///< −1: no kernel's
  double begin = 0, end = 0;
  int beat = 0;  ///< order, where there is no clock
};
struct Timeline {
  std::vector<Span> spans;
  double clocks_us = 0;                ///< how far the two clocks may be apart
  double idle_us = 0, longest_us = 0;  ///< of the device between its first kernel and its last
  std::string before_longest;          ///< the kernel behind the longest gap
};
/// Idle times, from the spans.
void find_gaps(Timeline& timeline);

/// Times the kernels of a step by the device's clock, in a few rounds, and puts them into `readings`; the timeline is
/// the last round's. Needs streams.
Timeline timed(Program& program, int step, Readings& readings, lab::Progress& progress,
               int rounds = 7);

}  // namespace tilestep::triage
