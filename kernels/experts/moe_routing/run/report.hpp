#pragma once

#include <optional>
#include <vector>

#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/experts/moe_routing/kernels.hpp"
#include "kernels/experts/moe_routing/reference.hpp"

/// The building blocks of the lesson's reports.
namespace tilestep::moe_routing {

/// A run's results: the kernels' output, and the host's answers.
struct Outcome {
  Params params;
  Inputs inputs;
  Placement device;  ///< as the kernels placed
  Placement host;
  std::vector<float> probability, gate;  ///< [tokens × top_k], of the kernels
  std::vector<float> out;                ///< [tokens × kWidth]
  numeric::AllBounded reference;
  std::vector<TileTrace> tiles;  ///< all that ran, by begin, then block
  Trace trace;
  std::optional<double> tensor_pipe,
      tensor_instructions;  ///< percent of cycles and number, counted
};

/// The router's kernels and their output.
struct Router {
  /// `logits` [tokens × experts].
  Router(simt::Device& device, const RouteShape& shape, const std::vector<float>& logits);
  /// Throws Error as the device does.
  void run();
  void download(Placement& placed, std::vector<float>& probabilities,
                std::vector<float>& gates) const;

  simt::Device& device;
  const RouteShape shape;
  const std::size_t assignments = numeric::elements_of(shape.tokens, shape.top_k);
  const std::size_t experts = static_cast<std::size_t>(shape.experts);
  const simt::Buffer<float> logits;
  simt::Buffer<float> probability{device, assignments}, gate{device, assignments};
  simt::Buffer<int> expert{device, assignments}, rank{device, assignments};
  simt::Buffer<int> slot{device, assignments};
  simt::Buffer<int> wanted{device, experts}, kept{device, experts};
  simt::Buffer<int> first_slot{device, experts + 1}, first_tile{device, experts + 1};
  simt::Buffer<int> chunk_counts{device,
                                 chunks_of(static_cast<std::int64_t>(assignments)) * experts};
};

/// Runs the kernels and the reference. Throws Error as the device does.
Outcome gather(const Params& params, simt::Device& device, lab::Progress& progress);

/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Outcome& outcome);

}  // namespace tilestep::moe_routing
