// Recipes against other algorithms: GPTQ against optimal brain quantization, which inverts what is left of the Hessian
// anew for each column; AWQ and SmoothQuant against a search over all codes, and sums of whole numbers.
#include "kernels/numbers/low_bit/recipe/recipe.hpp"

#include <cmath>

#include "kernels/base/numeric/small_float.hpp"
#include "tests/catch.hpp"
#include "tests/part.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::low_bit;

namespace {

using Table = std::vector<std::vector<double>>;

Table table_of(const std::vector<double>& all, int columns) {
  Table table;
  for (std::size_t i = 0; i < all.size(); i += static_cast<std::size_t>(columns)) {
    const auto row = all.begin() + static_cast<std::ptrdiff_t>(i);
    table.emplace_back(row, row + columns);
  }
  return table;
}

/// By Gauss and Jordan, with the largest pivot.
Table inverted(Table a) {
  const std::size_t n = a.size();
  Table b(n, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i) b[i][i] = 1;
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t i = column; i < n; ++i) {
      if (std::abs(a[i][column]) > std::abs(a[pivot][column])) pivot = i;
    }
    std::swap(a[pivot], a[column]);
    std::swap(b[pivot], b[column]);
    const double by = a[column][column];
    for (std::size_t k = 0; k < n; ++k) {
      a[column][k] /= by;
      b[column][k] /= by;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double times = a[i][column];
      if (i == column || times == 0) continue;
      for (std::size_t k = 0; k < n; ++k) {
        a[i][k] -= times * a[column][k];
        b[i][k] -= times * b[column][k];
      }
    }
  }
  return b;
}

/// H of the columns from `first` on.
Table hessian_from(const SmallLayer& layer, std::size_t first) {
  const Table x = table_of(layer.x, layer.inputs);
  const auto n = static_cast<std::size_t>(layer.inputs);
  Table h(n, std::vector<double>(n));
  double mean = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (const auto& sample : x) h[i][j] += sample[i] * sample[j];
      h[i][j] *= 2.0 / layer.samples;
    }
    mean += h[i][i] / layer.inputs;
  }
  Table part;
  for (std::size_t i = first; i < n; ++i) {
    h[i][i] += 0.01 * mean;
    part.emplace_back(h[i].begin() + static_cast<std::ptrdiff_t>(first), h[i].end());
  }
  return part;
}

/// The nearest of all numbers, by looking at each.
double nearest_of(double x, double step, int most) {
  double best = 0;
  for (int code = -most; code <= most; ++code) {
    if (std::abs(code * step - x) < std::abs(best - x)) best = code * step;
  }
  return best;
}
double step_for(const std::vector<double>& row, int most) {
  double largest = 0;
  for (const double w : row) largest = std::max(largest, std::abs(w));
  return numeric::round_to(numeric::kFp16, largest / most);
}

/// ‖got − want‖ / ‖want‖ of the products with each sample, in %.
double apart(const SmallLayer& layer, const Table& got) {
  const Table w = table_of(layer.w, layer.inputs);
  double error = 0, size = 0;
  for (const auto& x : table_of(layer.x, layer.inputs)) {
    for (std::size_t row = 0; row < w.size(); ++row) {
      double want = 0, is = 0;
      for (std::size_t k = 0; k < x.size(); ++k) {
        want += x[k] * w[row][k];
        is += x[k] * got[row][k];
      }
      error += std::pow(is - want, 2);
      size += want * want;
    }
  }
  return 100 * std::sqrt(error / size);
}

std::vector<Params> layers() {
  std::vector<Params> all;
  tests::Part part("layers of recipes", 2);
  for (const Data data : all_of<Data>()) {
    for (const std::int64_t seed : {1, 7, 23}) {
      if (!part.skips()) all.push_back({.data = data, .outlier_at = 3, .seed = seed});
    }
  }
  return all;
}

}  // namespace

TEST_CASE("GPTQ: the columns to come are corrected as the Hessian of what is left says",
          "[low_bit]") {
  for (const Params& params : layers()) {
    const SmallLayer layer = small_layer(params);
    std::vector<std::vector<double>> after;
    const auto steps = recipe_steps(Recipe::gptq, layer, &after);
    REQUIRE(steps.size() == static_cast<std::size_t>(layer.inputs));
    Table w = table_of(layer.w, layer.inputs);
    std::vector<double> grid;
    for (const auto& row : w) grid.push_back(step_for(row, 7));
    for (std::size_t j = 0; j < steps.size(); ++j) {
      const Table left = inverted(hessian_from(layer, j));
      for (std::size_t row = 0; row < w.size(); ++row) {
        const double value = nearest_of(w[row][j], grid[row], 7);
        const double error = (w[row][j] - value) / left[0][0];
        for (std::size_t k = j; k < steps.size(); ++k) w[row][k] -= error * left[k - j][0];
        REQUIRE(w[row][j] == Approx(value).margin(1e-12));
        w[row][j] = value;
      }
      const Table got = table_of(after[j], layer.inputs);
      for (std::size_t row = 0; row < w.size(); ++row) {
        for (std::size_t k = 0; k < steps.size(); ++k) {
          REQUIRE(got[row][k] == Approx(w[row][k]).epsilon(1e-8).margin(1e-10));
        }
      }
      CHECK(steps[j].error == Approx(apart(layer, got)));
    }
    // And by itself rounding to nearest is what the lesson's kernel does with groups of 32.
    const Table plain = table_of(rounded_rows(layer.w, layer.inputs, 7), layer.inputs);
    CHECK(steps.back().plain == Approx(apart(layer, plain)));
  }
}

TEST_CASE("rounding to nearest is that of the kernel", "[low_bit]") {
  const Trace trace = trace_from_json(tests::run_on(tests::device_at_hand(), lesson(), {}).trace);
  const SmallLayer layer = small_layer({});
  const Table plain = table_of(rounded_rows(layer.w, layer.inputs, 7), layer.inputs);
  for (std::size_t row = 0; row < plain.size(); ++row) {
    for (std::size_t k = 0; k < plain[row].size(); ++k) {
      const std::size_t at = row * static_cast<std::size_t>(kMatrix.columns) + k;
      CHECK(static_cast<float>(plain[row][k]) == trace.values[at]);
    }
  }
}

TEST_CASE("AWQ: weights are scaled by the inputs' means, rounded, and scaled back", "[low_bit]") {
  for (const Params& params : layers()) {
    const SmallLayer layer = small_layer(params);
    const Table x = table_of(layer.x, layer.inputs);
    const auto steps = recipe_steps(Recipe::awq, layer);
    REQUIRE(steps.size() == 11);
    CHECK(steps[0].error == Approx(steps[0].plain));
    for (const RecipeStep& step : steps) {
      double least = INFINITY, most = 0;
      std::vector<double> s;
      for (std::size_t k = 0; k < x[0].size(); ++k) {
        double sum = 0;
        for (const auto& sample : x) sum += std::abs(sample[k]);
        CHECK(step.first[k] == Approx(sum / layer.samples));
        s.push_back(std::exp(step.at * std::log(sum / layer.samples)));
        least = std::min(least, s.back());
        most = std::max(most, s.back());
      }
      Table w = table_of(layer.w, layer.inputs);
      for (auto& row : w) {
        for (std::size_t k = 0; k < row.size(); ++k) {
          s[k] = &row == w.data() ? s[k] / std::sqrt(least * most) : s[k];
          CHECK(step.second[k] == Approx(s[k]));
          row[k] *= step.second[k];
        }
        const double grid = step_for(row, 7);
        for (std::size_t k = 0; k < row.size(); ++k) {
          row[k] = nearest_of(row[k], grid, 7) / step.second[k];
        }
      }
      CHECK(step.error == Approx(apart(layer, w)));
    }
  }
}

TEST_CASE(
    "SmoothQuant: what is taken from inputs is given to weights, and whole numbers are summed",
    "[low_bit]") {
  for (const Params& params : layers()) {
    const SmallLayer layer = small_layer(params);
    const auto steps = recipe_steps(Recipe::smooth, layer);
    REQUIRE(steps.size() == 11);
    const Table x = table_of(layer.x, layer.inputs), w = table_of(layer.w, layer.inputs);
    for (const RecipeStep& step : steps) {
      std::vector<double> s;
      double largest = 0;
      for (std::size_t k = 0; k < x[0].size(); ++k) {
        double of_x = 0, of_w = 0;
        for (const auto& sample : x) of_x = std::max(of_x, std::abs(sample[k]));
        for (const auto& row : w) of_w = std::max(of_w, std::abs(row[k]));
        s.push_back(std::exp(step.at * std::log(of_x) - (1 - step.at) * std::log(of_w)));
        CHECK(step.first[k] == Approx(of_x / s[k]));
        CHECK(step.second[k] == Approx(of_w * s[k]));
        CHECK(step.first[k] * step.second[k] == Approx(of_x * of_w));
        largest = std::max(largest, of_x / s[k]);
      }
      const double x_step = numeric::round_to(numeric::kFp16, largest / 127);
      double error = 0, size = 0;
      for (const auto& row : w) {
        std::vector<double> moved;
        for (std::size_t k = 0; k < row.size(); ++k) moved.push_back(row[k] * s[k]);
        const double w_step = step_for(moved, 127);
        for (const auto& sample : x) {
          std::int64_t sum = 0;
          double want = 0;
          for (std::size_t k = 0; k < row.size(); ++k) {
            const auto code = [](double of, double step_of) {
              return std::clamp<std::int64_t>(std::llrint(of / step_of), -127, 127);
            };
            sum += code(sample[k] / s[k], x_step) * code(moved[k], w_step);
            want += sample[k] * row[k];
          }
          error += std::pow(static_cast<double>(sum) * x_step * w_step - want, 2);
          size += want * want;
        }
      }
      CHECK(step.error == Approx(100 * std::sqrt(error / size)));
    }
  }
}

TEST_CASE("each recipe beats rounding to nearest on most layers", "[low_bit]") {
  int gptq = 0, awq = 0, smooth = 0;
  for (std::int64_t seed = 1; seed <= 20; ++seed) {
    const SmallLayer layer = small_layer({.seed = seed});
    const auto least = [&](Recipe recipe) {
      double error = INFINITY;
      for (const RecipeStep& step : recipe_steps(recipe, layer)) {
        error = std::min(error, step.error);
      }
      return error;
    };
    const auto columns = recipe_steps(Recipe::gptq, layer);
    gptq += columns.back().error < columns.back().plain ? 1 : 0;
    awq += least(Recipe::awq) < columns.back().plain ? 1 : 0;
    smooth += least(Recipe::smooth) < recipe_steps(Recipe::smooth, layer)[0].plain ? 1 : 0;
  }
  CHECK(gptq >= 18);
  CHECK(awq == 20);
  CHECK(smooth == 20);
}

TEST_CASE("a run with a recipe has its steps, and the sound kernels' checks", "[low_bit]") {
  const tests::Runs runs(lesson(), knob_table(), trace_from_json);
  for (const Recipe recipe : {Recipe::gptq, Recipe::awq, Recipe::smooth}) {
    const lab::Report report = runs({.recipe = recipe});
    CHECK(tests::failed_checks(report) == "");
    const Trace trace = runs.read(report.trace);
    CHECK(trace.recipe_steps == recipe_steps(recipe, small_layer({})));
    const lab::Table* table = report.table("recipe");
    REQUIRE(table != nullptr);
    CHECK(table->rows.size() == trace.recipe_steps.size());
    CHECK(tests::contains(report.summary, name_of(recipe)));
  }
}
