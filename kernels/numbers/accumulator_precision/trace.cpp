#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "kernels/base/lab/json.hpp"
#include "kernels/base/lab/report.hpp"
#include "kernels/base/lab/source.hpp"
#include "kernels/numbers/accumulator_precision/lesson.hpp"

namespace tilestep::accumulator_precision {
namespace {

using nlohmann::json;

constexpr std::string_view kWhere = "accumulator-precision trace";

json number(double value) {
  return lab::number_to_json(value);
}
/// The shortest decimal that names this float, as a double.
json number(float value) {
  if (!std::isfinite(value)) return number(static_cast<double>(value));
  char digits[32];
  const auto written = std::to_chars(digits, digits + sizeof digits, value);
  double shortest = 0;
  std::from_chars(digits, written.ptr, shortest);
  return shortest;
}

template <class T>
json numbers(const std::vector<T>& values) {
  json array = json::array();
  array.get_ref<json::array_t&>().reserve(values.size());
  for (const T value : values) array.push_back(number(value));
  return array;
}

template <class T>
std::vector<T> read_numbers(const json& from, std::string_view name, std::size_t count) {
  const json& array = lab::array_of(from, name, kWhere);
  if (array.size() != count) {
    throw Error(fmt::format("{}: '{}' must have {} numbers, but has {}", kWhere, name, count,
                            array.size()));
  }
  std::vector<T> values;
  values.reserve(count);
  for (const json& item : array) {
    try {
      values.push_back(static_cast<T>(lab::number_from_json(item)));
    } catch (const Error&) {
      throw Error(fmt::format("{}: '{}' holds something that is no number", kWhere, name));
    }
  }
  return values;
}

double read_number(const json& from, std::string_view name) {
  const json value = lab::member<json>(from, name, kWhere);
  try {
    return lab::number_from_json(value);
  } catch (const Error&) {
    throw Error(fmt::format("{}: member '{}' is no number", kWhere, name));
  }
}

/// The value of `Enum`, of which there are `count`, that the member names.
template <class Enum>
Enum named(const json& from, std::string_view name, int count) {
  const auto text = lab::member<std::string>(from, name, kWhere);
  std::string allowed;
  for (int i = 0; i < count; ++i) {
    if (to_text(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
    allowed += (allowed.empty() ? "" : ", ") + std::string(to_text(static_cast<Enum>(i)));
  }
  throw Error(fmt::format("{}: '{}' is '{}'; allowed: {}", kWhere, name, text, allowed));
}

/// A column of the steps. The format's own accumulator is its own answer: then `sum` is `after`,
/// `added` the term and `extra` 0, and they are left out.
struct StepColumn {
  const char* name;
  float Step::*member;
  bool remedies_only;
};
constexpr StepColumn kColumns[] = {{"before", &Step::before, false},
                                   {"after", &Step::after, false},
                                   {"added", &Step::added, true},
                                   {"sum", &Step::sum, true},
                                   {"extra", &Step::extra, true}};

bool is_remedy(Method method) {
  return method >= Method::promoted;
}

json accumulator_to_json(const AccumulatorTrace& accumulator) {
  json steps = json::object();
  for (const StepColumn& column : kColumns) {
    if (column.remedies_only && !is_remedy(accumulator.method)) continue;
    json array = json::array();
    array.get_ref<json::array_t&>().reserve(accumulator.steps.size());
    for (const Step& step : accumulator.steps) array.push_back(number(step.*column.member));
    steps[column.name] = std::move(array);
  }
  const numeric::FloatSpec& format = accumulator.format;
  return {{"method", to_text(accumulator.method)},
          {"label", accumulator.label},
          {"exponent_bits", format.exponent_bits},
          {"mantissa_bits", format.mantissa_bits},
          {"infinity", format.specials == numeric::Specials::ieee},
          {"final_sum", number(accumulator.final_sum)},
          {"error_percent", number(accumulator.error_percent)},
          {"frozen_at", accumulator.frozen_at},
          {"frozen_spacing", number(accumulator.frozen_spacing)},
          {"verdict", accumulator.verdict},
          {"line", accumulator.line},
          {"steps", std::move(steps)}};
}

AccumulatorTrace accumulator_from_json(const json& from, const Trace& trace) {
  AccumulatorTrace accumulator;
  accumulator.method = named<Method>(from, "method", static_cast<int>(std::size(kMethods)));
  accumulator.label = lab::member<std::string>(from, "label", kWhere);
  numeric::FloatSpec& format = accumulator.format;
  format.exponent_bits = lab::member<int>(from, "exponent_bits", kWhere);
  format.mantissa_bits = lab::member<int>(from, "mantissa_bits", kWhere);
  if (format.exponent_bits < 2 || format.exponent_bits > 8 || format.mantissa_bits < 1 ||
      format.mantissa_bits > 23) {
    throw Error(fmt::format("{}: there is no format with {} exponent and {} mantissa bits", kWhere,
                            format.exponent_bits, format.mantissa_bits));
  }
  format.specials = lab::member<bool>(from, "infinity", kWhere) ? numeric::Specials::ieee
                                                                : numeric::Specials::nan_only;
  accumulator.final_sum = static_cast<float>(read_number(from, "final_sum"));
  accumulator.error_percent = read_number(from, "error_percent");
  accumulator.frozen_at = lab::member<int>(from, "frozen_at", kWhere);
  accumulator.frozen_spacing = read_number(from, "frozen_spacing");
  accumulator.verdict = lab::member<std::string>(from, "verdict", kWhere);
  accumulator.line = source_line(accumulator.method);
  const json steps = lab::member<json>(from, "steps", kWhere);
  accumulator.steps.resize(trace.points.size());
  for (const StepColumn& column : kColumns) {
    if (column.remedies_only && !is_remedy(accumulator.method)) continue;
    const auto values = read_numbers<float>(steps, column.name, trace.points.size());
    for (std::size_t p = 0; p < values.size(); ++p) accumulator.steps[p].*column.member = values[p];
  }
  if (!is_remedy(accumulator.method)) {
    for (std::size_t p = 0; p < trace.points.size(); ++p) {
      accumulator.steps[p].added = trace.term[p];
      accumulator.steps[p].sum = accumulator.steps[p].after;
    }
  }
  return accumulator;
}

std::vector<int> read_points(const json& from, int terms) {
  const auto points = lab::member<std::vector<int>>(from, "points", kWhere);
  int before = -1;
  for (const int point : points) {
    if (point <= before || point >= terms) {
      throw Error(fmt::format("{}: 'points' must rise from 0 to at most {}", kWhere, terms - 1));
    }
    before = point;
  }
  if (points.empty()) throw Error(fmt::format("{}: 'points' is empty", kWhere));
  return points;
}

}  // namespace

const AccumulatorTrace* Trace::accumulator(Method method) const {
  for (const AccumulatorTrace& a : accumulators) {
    if (a.method == method) return &a;
  }
  return nullptr;
}

std::string bits_text(numeric::FloatSpec format, float value) {
  const numeric::FloatFields f =
      numeric::fields(format, numeric::encode(format, static_cast<double>(value)));
  return fmt::format("{} {:0{}b} {:0{}b}", f.sign, f.exponent, format.exponent_bits, f.mantissa,
                     format.mantissa_bits);
}

StepView step_view(const Trace& trace, const AccumulatorTrace& accumulator, std::size_t point) {
  const Step& step = accumulator.steps.at(point);
  const int term = trace.points.at(point);
  StepView view;
  view.before_bits = bits_text(accumulator.format, step.before);
  view.after_bits = bits_text(accumulator.format, step.after);
  view.single_addition = accumulator.method != Method::pairwise;
  view.unrounded = static_cast<double>(step.before) + static_cast<double>(step.added);
  view.spacing = numeric::ulp(accumulator.format, view.unrounded);
  const double near = numeric::round_to(accumulator.format, view.unrounded, Rounding::truncate,
                                        numeric::Overflow::saturate);
  const double far = near + std::copysign(view.spacing, view.unrounded);
  view.below = std::min(near, far);
  view.above = std::max(near, far);
  view.past_end = std::abs(view.unrounded) > numeric::max_finite(accumulator.format);
  view.rounding_error = static_cast<double>(step.after) - view.unrounded;
  if (view.single_addition && view.rounding_error != 0) {
    view.direction = view.rounding_error > 0 ? Direction::up : Direction::down;
  }
  view.lost = view.single_addition && trace.term.at(point) != 0 && step.after == step.before;
  view.promotes = accumulator.method == Method::promoted && (term + 1) % trace.promote_every == 0;
  return view;
}

int source_line(Method method) {
  const bool own =
      method == Method::promoted || method == Method::kahan || method == Method::pairwise;
  return lab::source_marks(kSourcePath).line(own ? to_text(method) : "rounded");
}

json to_json(const Trace& trace) {
  json accumulators = json::array();
  for (const AccumulatorTrace& a : trace.accumulators) {
    accumulators.push_back(accumulator_to_json(a));
  }
  return {{"terms", trace.terms},
          {"distribution", to_text(trace.distribution)},
          {"rounding", to_text(trace.rounding)},
          {"promote_every", trace.promote_every},
          {"small_format", to_text(trace.small_format)},
          {"source", kSourcePath},
          {"points", trace.points},
          {"term", numbers(trace.term)},
          {"exact", numbers(trace.exact)},
          {"exact_sum", number(trace.exact_sum)},
          {"accumulators", std::move(accumulators)}};
}

Trace trace_from_json(const json& from) {
  Trace trace;
  trace.terms = lab::member<int>(from, "terms", kWhere);
  trace.distribution = named<Distribution>(from, "distribution", 5);
  trace.rounding = named<Rounding>(from, "rounding", 3);
  trace.promote_every = lab::member<int>(from, "promote_every", kWhere);
  if (trace.terms < 1 || trace.promote_every < 1) {
    throw Error(fmt::format("{}: 'terms' and 'promote_every' must be at least 1", kWhere));
  }
  trace.small_format = named<SmallFormat>(from, "small_format", 4);
  trace.points = read_points(from, trace.terms);
  trace.term = read_numbers<float>(from, "term", trace.points.size());
  trace.exact = read_numbers<double>(from, "exact", trace.points.size());
  trace.exact_sum = read_number(from, "exact_sum");
  for (const json& a : lab::array_of(from, "accumulators", kWhere)) {
    trace.accumulators.push_back(accumulator_from_json(a, trace));
  }
  return trace;
}

}  // namespace tilestep::accumulator_precision
