#pragma once

#include <cstdint>
#include <vector>

#include "kernels/numbers/low_bit/lesson.hpp"

/// Ways to choose codes by the inputs that a layer meets, each on one small layer, step by step, in double:
///
///   gptq    Frantar et al., 2022: columns are rounded one after another; those to come take up the error
///   awq     Lin et al., 2023: weights of inputs that are large are scaled up before they are rounded
///   smooth  Xiao et al., 2022, SmoothQuant: what makes inputs hard to round is moved to the weights (W8A8)
namespace tilestep::low_bit {

/// Y [samples × rows] = X [samples × inputs] · Wᵀ: W's first group of each row, and inputs to calibrate with, of which
/// two channels are far larger than the others, as in language models.
struct SmallLayer {
  int rows = 0, inputs = 0, samples = 0;
  std::vector<double> w;  ///< [rows × inputs]
  std::vector<double> x;  ///< [samples × inputs]
};
SmallLayer small_layer(const Params& params);

/// Rounds each row to INT4 or INT8, to nearest: the largest magnitude gets the largest number, as in `quantize`. `most`
/// is that number, 7 or 127. Rounded scales are FP16.
std::vector<double> rounded_rows(const std::vector<double>& w, int inputs, int most);

/// ‖X (got − w)ᵀ‖ / ‖X wᵀ‖ in %.
double product_error(const SmallLayer& layer, const std::vector<double>& got);

/// The steps of a recipe; of gptq with W as it is after each in `weights`, if that is given.
std::vector<RecipeStep> recipe_steps(Recipe recipe, const SmallLayer& layer,
                                     std::vector<std::vector<double>>* weights = nullptr);

}  // namespace tilestep::low_bit
