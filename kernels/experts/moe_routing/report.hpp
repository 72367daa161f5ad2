#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/base/lab/lesson.hpp"
#include "kernels/experts/moe_routing/lesson.hpp"
#include "kernels/experts/moe_routing/reference.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::moe_routing {

/// A change of the routing `custom`: the token's first choice.
struct Move {
  int token = 0, expert = 0;
};
std::vector<Move> moves_of(const Params& params);

/// What a run has gathered: what the kernels wrote, and the answers of the host.
struct Outcome {
  Params params;
  Inputs inputs;
  Placement device;  ///< as the kernels placed
  Placement host;
  std::vector<float> probability, gate;  ///< [tokens × top_k], of the kernels
  std::vector<float> out;                ///< [tokens × kWidth]
  LayerOutput reference;
  std::vector<TileTrace> tiles;  ///< all that ran, by begin, then block
  Trace trace;
  std::optional<double> tensor_pipe,
      tensor_instructions;  ///< percent of cycles and number, counted
};

/// Runs the kernels and the reference. Throws Error as the device does.
Outcome gather(const Params& params, simt::Device& device, lab::Progress& progress);

/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Outcome& outcome);

}  // namespace tilestep::moe_routing
