// What a run says: its sentence, and the trace as tables.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/plural.hpp"
#include "kernels/numbers/low_bit/lesson.hpp"

namespace tilestep::low_bit {
namespace {

/// Of the run's own W: which is not the sound one's where something is broken.
double weight_error(const Trace& trace) {
  return error_percent(trace.values, {trace.weights.begin(), trace.weights.end()});
}

std::string summary_of_broken(const Trace& trace, const Ledger& sound) {
  if (trace.broken == Break::unfused) {
    return fmt::format(
        "{}: the same W · x, but {} bytes move between device memory and registers for W, not {}.",
        name_of(trace.broken), trace.ways[0].moved(), trace.ways[1].moved());
  }
  return fmt::format(
      "{}: weights are off by {:.3g} % and W · x by {:.3g} %, not {:.3g} % and {:.3g} %.",
      name_of(trace.broken), weight_error(trace), error_percent(trace.y, trace.exact),
      sound.weight_error, sound.product_error);
}

lab::Table way_table(const Trace& trace) {
  lab::Table table{
      "ways",
      "W's way to the FMAs: each byte of an array once a kernel",
      {"kernels", lab::whole("codes", "codes read", "B"), lab::whole("scales", "scales read", "B"),
       lab::whole("written", "numbers written", "B"), lab::whole("read_back", "numbers read", "B"),
       lab::whole("moved", "in all", "B"), lab::whole("numbers", "in registers", "B"),
       lab::whole("fmas", "FMAs")}};
  for (std::size_t i = 0; i < trace.ways.size(); ++i) {
    const Way& way = trace.ways[i];
    const bool fused = trace.broken != Break::unfused || i > 0;
    table.add({fused ? "product" : "dequantize, product_of_numbers", way.codes, way.scales,
               way.written, way.read_back, way.moved(), way.numbers, way.fmas});
  }
  return table;
}

lab::Table recipe_table(const Trace& trace) {
  const bool columns = trace.recipe == Recipe::gptq;
  lab::Table table{
      "recipe",
      columns ? "Columns rounded one by one" : "Exponents that are tried",
      {lab::whole("step"), columns ? lab::whole("at", "column") : lab::real("at", "α", "", 1),
       lab::real("error", "error of the product", "%", 3),
       lab::real("plain", "rounded to nearest", "%", 3)}};
  for (std::size_t i = 0; i < trace.recipe_steps.size(); ++i) {
    const RecipeStep& step = trace.recipe_steps[i];
    table.add({i + 1, step.at, step.error, step.plain});
  }
  return table;
}

std::string summary_of_recipe(const Trace& trace) {
  const RecipeStep& last = trace.recipe_steps.back();
  if (trace.recipe == Recipe::gptq) {
    return fmt::format("gptq: the product is off by {:.3g} %, and by {:.3g} % rounded to nearest.",
                       last.error, last.plain);
  }
  const RecipeStep& best = *best_of(trace);
  return fmt::format(
      "{}: with α = {:.1f} the product is off by {:.3g} %, and by {:.3g} % rounded to nearest.",
      name_of(trace.recipe), best.at, best.error, best.plain);
}

}  // namespace

const RecipeStep* best_of(const Trace& trace) {
  const auto least =
      std::min_element(trace.recipe_steps.begin(), trace.recipe_steps.end(),
                       [](const RecipeStep& a, const RecipeStep& b) { return a.error < b.error; });
  return least == trace.recipe_steps.end() ? nullptr : &*least;
}

std::string_view label_of(Format format) {
  static constexpr std::string_view kLabels[] = {
      "INT8", "INT4", "INT4 with zero point", "E4M3", "E5M2", "MXFP4", "NVFP4", "ternary", "Q4_K"};
  return kLabels[static_cast<std::size_t>(format)];
}

double error_percent(const std::vector<float>& got, const std::vector<double>& want) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    error += std::pow(static_cast<double>(got[i]) - want[i], 2);
    size += want[i] * want[i];
  }
  return size > 0 ? 100 * std::sqrt(error / size) : 0;
}

std::string summary_of(const Trace& trace) {
  const Ledger& own = trace.formats[static_cast<std::size_t>(trace.format)];
  if (trace.recipe != Recipe::none) return summary_of_recipe(trace);
  if (trace.broken != Break::none) return summary_of_broken(trace, own);
  return fmt::format(
      "{} takes {:.4g} bits a weight, in {}: weights are off by {:.3g} % and W · x by {:.3g} %.",
      label_of(trace.format), own.bits, lab::plural(trace.steps, "group"), own.weight_error,
      own.product_error);
}

std::vector<lab::Table> tables_of(const Trace& trace) {
  using lab::real, lab::whole;
  lab::Table groups{"groups",
                    fmt::format("Groups of {} weights", trace.size()),
                    {whole("group"), whole("row"), real("low", "lowest", "", 4),
                     real("high", "highest", "", 4), real("step", "scale", "", 6),
                     real("rms", "RMS error", "", 6), whole("nothing", "became 0")}};
  for (int i = 0; i < trace.steps; ++i) {
    const GroupTrace& group = trace.groups[static_cast<std::size_t>(i)];
    groups.add({i + 1, i * trace.size() / kMatrix.columns + 1, group.low, group.high, group.step,
                group.rms, group.nothing});
  }
  lab::Table formats{"formats",
                     "All formats on these weights",
                     {"format", "group", real("bits", "bits a weight", "", 3),
                      real("weight_error", "weights' error", "%", 2),
                      real("product_error", "error of W · x", "%", 2),
                      real("divergence", "KL of softmax", "nats", 6)}};
  for (const Ledger& row : trace.formats) {
    formats.add({label_of(row.format),
                 row.format == Format::q4_k ? "32 of 256" : name_of(row.group), row.bits,
                 row.weight_error, row.product_error, row.divergence});
  }
  if (!trace.has_product()) return {std::move(groups), std::move(formats)};
  if (trace.recipe == Recipe::none)
    return {std::move(groups), std::move(formats), way_table(trace)};
  return {recipe_table(trace), std::move(groups), std::move(formats), way_table(trace)};
}

}  // namespace tilestep::low_bit
