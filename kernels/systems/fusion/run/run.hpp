#pragma once

#include <vector>

#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/lesson.hpp"
#include "kernels/systems/fusion/lesson.hpp"
#include "kernels/systems/fusion/reference.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::fusion {

/// The chain's tensors after its launches.
struct Results {
  std::vector<unsigned char> sum, normed;  ///< `normed` is empty where no launch stores it
  std::vector<std::uint8_t> codes;
  std::vector<float> scale;
};

/// The results of a run.
struct Run {
  Params params;
  RowShape shape;
  Inputs inputs;
  Reference exact;
  Results unfused, fused;  ///< of all rows, by the timed kernels
  Results recorded,
      recorded_unfused;  ///< of the first row, by the explained one, without a mistake
  Results broken;        ///< of the first row, as asked for
  Trace trace;
};
/// Runs the kernels. Throws Error as the device does.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);
/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Run& run);

/// The chain's launches: the first and last step of each.
std::vector<Group> launches_of(const Chosen& chosen);
/// The parts of a launch of these steps.
Parts parts_of(const Group& steps);

/// Numbers of the first row that the reference does not explain.
lab::Closest compared_codes(const RowShape& shape, const Reference& exact, const Results& results,
                            int* wrong = nullptr);

}  // namespace tilestep::fusion
