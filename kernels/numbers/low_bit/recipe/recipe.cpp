#include "kernels/numbers/low_bit/recipe/recipe.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::low_bit {
namespace {

using Numbers = std::vector<double>;

std::size_t place(int row, int columns, int column) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
         static_cast<std::size_t>(column);
}

/// The step between numbers where the largest magnitude gets the number `most`.
double step_of(double largest, int most) {
  return numeric::round_to(numeric::kFp16, largest / most);
}
double rounded_to(double x, double step, int most) {
  if (step <= 0) return 0;
  return std::clamp(std::nearbyint(x / step), -double(most), double(most)) * step;
}
double largest_of(const Numbers& all) {
  double largest = 0;
  for (const double x : all) largest = std::max(largest, std::abs(x));
  return largest;
}

Numbers row_steps(const SmallLayer& layer, int most) {
  Numbers steps;
  for (int row = 0; row < layer.rows; ++row) {
    double largest = 0;
    for (int k = 0; k < layer.inputs; ++k) {
      largest = std::max(largest, std::abs(layer.w[place(row, layer.inputs, k)]));
    }
    steps.push_back(step_of(largest, most));
  }
  return steps;
}

// ---- GPTQ ---------------------------------------------------------------------------------------

/// H = 2/N Xᵀ X, with a hundredth of the mean of its diagonal added to that, as in the paper.
Numbers hessian(const SmallLayer& layer) {
  const int n = layer.inputs;
  Numbers h(place(n, n, 0));
  for (int sample = 0; sample < layer.samples; ++sample) {
    const double* x = &layer.x[place(sample, n, 0)];
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) h[place(i, n, j)] += 2 * x[i] * x[j] / layer.samples;
    }
  }
  double mean = 0;
  for (int i = 0; i < n; ++i) mean += h[place(i, n, i)] / n;
  for (int i = 0; i < n; ++i) h[place(i, n, i)] += 0.01 * mean;
  return h;
}

/// L, lower, with L Lᵀ = a.
Numbers cholesky(const Numbers& a, int n) {
  Numbers l(a.size());
  for (int j = 0; j < n; ++j) {
    for (int i = j; i < n; ++i) {
      double sum = a[place(i, n, j)];
      for (int k = 0; k < j; ++k) sum -= l[place(i, n, k)] * l[place(j, n, k)];
      l[place(i, n, j)] = i == j ? std::sqrt(sum) : sum / l[place(j, n, j)];
    }
  }
  return l;
}

/// Of a symmetric positive matrix, by its Cholesky factor: (L⁻¹)ᵀ L⁻¹.
Numbers inverse(const Numbers& a, int n) {
  const Numbers l = cholesky(a, n);
  Numbers lower(a.size()), all(a.size());
  for (int j = 0; j < n; ++j) {
    for (int i = j; i < n; ++i) {
      double sum = i == j ? 1 : 0;
      for (int k = j; k < i; ++k) sum -= l[place(i, n, k)] * lower[place(k, n, j)];
      lower[place(i, n, j)] = sum / l[place(i, n, i)];
    }
  }
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int k = std::max(i, j); k < n; ++k) {
        all[place(i, n, j)] += lower[place(k, n, i)] * lower[place(k, n, j)];
      }
    }
  }
  return all;
}

/// Root of the mean square of a − b in column k.
double column_rms(const SmallLayer& layer, const Numbers& a, const Numbers& b, int k) {
  double squares = 0;
  for (int row = 0; row < layer.rows; ++row) {
    const std::size_t at = place(row, layer.inputs, k);
    squares += (a[at] - b[at]) * (a[at] - b[at]);
  }
  return std::sqrt(squares / layer.rows);
}

/// Algorithm 1 of the paper, column by column: each error, over the diagonal of the inverse Hessian's Cholesky factor,
/// is taken from the columns to come.
std::vector<RecipeStep> gptq(const SmallLayer& layer, std::vector<Numbers>* weights) {
  constexpr int kMost = 7;
  const int n = layer.inputs;
  const Numbers factor = cholesky(inverse(hessian(layer), n), n);  // its transpose is the paper's
  const Numbers steps = row_steps(layer, kMost);
  Numbers w = layer.w, plain = layer.w;
  std::vector<RecipeStep> all;
  for (int j = 0; j < n; ++j) {
    RecipeStep step;
    const Numbers before = w;
    for (int row = 0; row < layer.rows; ++row) {
      const std::size_t at = place(row, n, j);
      const double grid = steps[static_cast<std::size_t>(row)];
      const double value = rounded_to(w[at], grid, kMost);
      const double error = (w[at] - value) / factor[place(j, n, j)];
      for (int k = j + 1; k < n; ++k) w[place(row, n, k)] -= error * factor[place(k, n, j)];
      w[at] = value;
      plain[at] = rounded_to(layer.w[at], grid, kMost);
    }
    for (int k = 0; k < n; ++k) {
      step.first.push_back(k > j    ? 0
                           : k == j ? column_rms(layer, before, w, k)
                                    : all.back().first[static_cast<std::size_t>(k)]);
      step.second.push_back(k > j ? column_rms(layer, layer.w, w, k) : 0);
    }
    step.error = product_error(layer, w);
    step.plain = product_error(layer, plain);
    step.at = j + 1;
    all.push_back(std::move(step));
    if (weights != nullptr) weights->push_back(w);
  }
  return all;
}

// ---- scales of channels -------------------------------------------------------------------------

enum class Of { mean, largest };

/// Of each input's magnitudes.
Numbers of_inputs(const SmallLayer& layer, Of what) {
  Numbers all(static_cast<std::size_t>(layer.inputs));
  for (int sample = 0; sample < layer.samples; ++sample) {
    for (int k = 0; k < layer.inputs; ++k) {
      double& to = all[static_cast<std::size_t>(k)];
      const double size = std::abs(layer.x[place(sample, layer.inputs, k)]);
      to = what == Of::mean ? to + size / layer.samples : std::max(to, size);
    }
  }
  return all;
}
/// The largest magnitude of each column of W.
Numbers of_columns(const SmallLayer& layer) {
  Numbers all(static_cast<std::size_t>(layer.inputs));
  for (std::size_t i = 0; i < layer.w.size(); ++i) {
    double& to = all[i % all.size()];
    to = std::max(to, std::abs(layer.w[i]));
  }
  return all;
}

/// Column k of each row times by[k], or over it.
Numbers scaled(Numbers of, const Numbers& by, bool over = false) {
  for (std::size_t i = 0; i < of.size(); ++i) {
    const double s = by[i % by.size()];
    of[i] = over ? of[i] / s : of[i] * s;
  }
  return of;
}

/// Exponents that are tried.
constexpr int kTries = 11;

/// s = mean|x|^α, divided by the root of its largest and its least, as the authors' code does; of the α that are tried
/// the one with the least error is taken.
std::vector<RecipeStep> awq(const SmallLayer& layer) {
  constexpr int kMost = 7;
  const Numbers mean = of_inputs(layer, Of::mean);
  const double plain = product_error(layer, rounded_rows(layer.w, layer.inputs, kMost));
  std::vector<RecipeStep> all;
  for (int i = 0; i < kTries; ++i) {
    RecipeStep step;
    step.at = i / double(kTries - 1);
    for (const double size : mean) step.second.push_back(std::pow(size, step.at));
    const auto [least, most] = std::minmax_element(step.second.begin(), step.second.end());
    const double middle = std::sqrt(*least * *most);
    for (double& s : step.second) s /= middle;
    step.first = mean;
    const Numbers rounded = rounded_rows(scaled(layer.w, step.second), layer.inputs, kMost);
    step.error = product_error(layer, scaled(rounded, step.second, true));
    step.plain = plain;
    all.push_back(std::move(step));
  }
  return all;
}

/// The error of a product whose inputs, with one scale for all, and weights are rounded to INT8.
double error_in_int8(const SmallLayer& layer, const Numbers& x, const Numbers& w) {
  constexpr int kMost = 127;
  const Numbers weights = rounded_rows(w, layer.inputs, kMost);
  const double grid = step_of(largest_of(x), kMost);
  double error = 0, size = 0;
  for (int sample = 0; sample < layer.samples; ++sample) {
    for (int row = 0; row < layer.rows; ++row) {
      double got = 0, want = 0;
      for (int k = 0; k < layer.inputs; ++k) {
        const std::size_t of_x = place(sample, layer.inputs, k), of_w = place(row, layer.inputs, k);
        got += rounded_to(x[of_x], grid, kMost) * weights[of_w];
        want += layer.x[of_x] * layer.w[of_w];
      }
      error += (got - want) * (got - want);
      size += want * want;
    }
  }
  return 100 * std::sqrt(error / size);
}

/// s = max|x|^α / max|w|^(1 − α): inputs are divided by it, weights multiplied, so that their product stays.
std::vector<RecipeStep> smooth(const SmallLayer& layer) {
  const Numbers inputs = of_inputs(layer, Of::largest), columns = of_columns(layer);
  const double plain = error_in_int8(layer, layer.x, layer.w);
  std::vector<RecipeStep> all;
  for (int i = 0; i < kTries; ++i) {
    RecipeStep step;
    step.at = i / double(kTries - 1);
    Numbers s;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      s.push_back(std::pow(inputs[k], step.at) / std::pow(std::max(columns[k], 1e-5), 1 - step.at));
    }
    step.first = scaled(inputs, s, true);
    step.second = scaled(columns, s);
    step.error = error_in_int8(layer, scaled(layer.x, s, true), scaled(layer.w, s));
    step.plain = plain;
    all.push_back(std::move(step));
  }
  return all;
}

}  // namespace

SmallLayer small_layer(const Params& params) {
  SmallLayer layer{kMatrix.rows, kRecipeInputs, 64, {}, {}};
  const std::vector<std::uint16_t> weights = weights_of(params);
  for (int row = 0; row < layer.rows; ++row) {
    for (int k = 0; k < layer.inputs; ++k) {
      layer.w.push_back(numeric::decode(numeric::kBf16, weights[place(row, kMatrix.columns, k)]));
    }
  }
  std::mt19937 generator = lab::generator_of(params.seed + 2);
  constexpr int kFactors = 4;  // that inputs have in common
  for (int sample = 0; sample < layer.samples; ++sample) {
    const std::vector<float> own =
        lab::normal_floats(generator, static_cast<std::size_t>(layer.inputs));
    const std::vector<float> common = lab::normal_floats(generator, kFactors);
    for (int k = 0; k < layer.inputs; ++k) {
      const double gain = k == 5 || k == 20 ? 8 : 1;
      layer.x.push_back(gain * (0.7 * double(own[static_cast<std::size_t>(k)]) +
                                0.7 * double(common[static_cast<std::size_t>(k % kFactors)])));
    }
  }
  return layer;
}

std::vector<double> rounded_rows(const std::vector<double>& w, int inputs, int most) {
  std::vector<double> all;
  const auto width = static_cast<std::ptrdiff_t>(inputs);
  for (auto row = w.begin(); row != w.end(); row += width) {
    const double grid = step_of(largest_of({row, row + width}), most);
    for (auto x = row; x != row + width; ++x) all.push_back(rounded_to(*x, grid, most));
  }
  return all;
}

double product_error(const SmallLayer& layer, const std::vector<double>& got) {
  double error = 0, size = 0;
  for (int sample = 0; sample < layer.samples; ++sample) {
    for (int row = 0; row < layer.rows; ++row) {
      double y = 0, off = 0;
      for (int k = 0; k < layer.inputs; ++k) {
        const std::size_t at = place(row, layer.inputs, k);
        const double x = layer.x[place(sample, layer.inputs, k)];
        y += x * layer.w[at];
        off += x * (got[at] - layer.w[at]);
      }
      error += off * off;
      size += y * y;
    }
  }
  return size > 0 ? 100 * std::sqrt(error / size) : 0;
}

std::vector<RecipeStep> recipe_steps(Recipe recipe, const SmallLayer& layer,
                                     std::vector<std::vector<double>>* weights) {
  switch (recipe) {
    case Recipe::gptq:
      return gptq(layer, weights);
    case Recipe::awq:
      return awq(layer);
    case Recipe::smooth:
      return smooth(layer);
    case Recipe::none:
      break;
  }
  return {};
}

}  // namespace tilestep::low_bit
