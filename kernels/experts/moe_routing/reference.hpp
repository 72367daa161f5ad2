#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/numeric/running_sum.hpp"
#include "kernels/experts/moe_routing/lesson.hpp"

/// The layer on the host: routing by sorting, products in double.
namespace tilestep::moe_routing {

/// Random inputs, identical for the same knobs on every machine.
struct Inputs {
  std::vector<float> logits;           ///< [tokens × experts]
  std::vector<std::uint16_t> tokens;   ///< [tokens × kHidden], BF16 bit patterns
  std::vector<std::uint16_t> weights;  ///< [experts × kWidth × kHidden]
};
/// Logits that make the router choose as `params.routing` says. `skewed` and `random` add Gumbel
/// noise to the logarithm of each expert's share, so that the top_k largest are a draw
/// without replacement (Kool, van Hoof & Welling, "Stochastic beams and where to find them", 2019).
Inputs make_inputs(const Params& params);

/// Where every assignment must go; an assignment is token·top_k + choice.
struct Placement {
  std::vector<int> expert, rank, slot;  ///< [tokens × top_k]; slot −1: dropped
  std::vector<double> probability, gate;
  std::vector<int> wanted, kept;            ///< [experts]
  std::vector<int> first_slot, first_tile;  ///< [experts + 1]
  int slots() const { return first_slot.back(); }
  int tiles() const { return first_tile.back(); }
};
/// By sorting each token's experts and counting in order of token and choice.
Placement reference_placement(const Params& params, const std::vector<float>& logits);
/// Slots and tiles of each expert in `scheme`, from what it keeps.
void lay_out_reference(const Params& params, Scheme scheme, Placement& placement);

/// [tokens × kWidth]: out[token] = Σ over kept choices of gate · W[expert]·x, dense, in double. The bound: each mma
/// adds 16 products and the sum so far, aligned to the largest and cut off, 17 · 2u of their
/// magnitudes with u = 2^−24 (as in the tiling lesson); a gate is off by at most `gate_bound`;
/// combining rounds each product and sum once.
numeric::AllBounded reference_output(const Params& params, const Inputs& inputs,
                                     const Placement& placement);

/// The relative error bound of a gate or probability: expf is within 2 ulp (CUDA C++
/// Programming Guide, "Mathematical functions"), its argument is rounded once (relative to the
/// largest distance of the logits), a sum of `experts` terms and two divisions are rounded.
double gate_bound(const Params& params, const std::vector<float>& logits);

}  // namespace tilestep::moe_routing
