#pragma once

#include <cstdint>
#include <vector>

#include "kernels/systems/parallelism/plan.hpp"

/// The model in double, by one rank and with obvious loops; and the numbers that all share.
namespace tilestep::parallelism {

using Numbers = std::vector<float>;

/// Weights of a layer, one matrix after another: wq wk wv wo (width × width), then w1 (width × inner) and w2 (inner ×
/// width) of each MLP.
struct ModelInputs {
  std::vector<Numbers> layers;
  Numbers x, d_z;           ///< tokens × width: what comes in, and the gradient of what goes out
  std::vector<int> expert;  ///< of each token; all 0 without experts
};
ModelInputs make_inputs(const ModelShape& model, std::int64_t seed);

struct ModelResult {
  std::vector<double> z, d_x;
  std::vector<std::vector<double>> gradients;  ///< by layer, laid out like the weights
};
ModelResult reference_model(const ModelShape& model, const ModelInputs& inputs);

}  // namespace tilestep::parallelism
