#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <system_error>

#include "kernels/attention/online_softmax/lesson.hpp"
#include "kernels/base/lab/json.hpp"
#include "kernels/base/lab/report.hpp"
#include "kernels/base/lab/source.hpp"

namespace tilestep::online_softmax {
namespace {

using nlohmann::json;

constexpr std::string_view kWhere = "online-softmax trace";

json number(double value) {
  return lab::number_to_json(value);
}

/// The shortest decimal that names this float, as a double: 0.1f travels as 0.1 and not as
/// 0.10000000149011612. Reading it back gives the same float.
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

json column(const std::vector<TraceStep>& steps, float TraceStep::*member) {
  json array = json::array();
  array.get_ref<json::array_t&>().reserve(steps.size());
  for (const TraceStep& step : steps) array.push_back(number(step.*member));
  return array;
}

double read_number(const json& from, std::string_view name) {
  if (!from.is_object()) throw Error(fmt::format("{}: expected a JSON object", kWhere));
  const auto found = from.find(name);
  if (found == from.end()) throw Error(fmt::format("{}: member '{}' is missing", kWhere, name));
  try {
    return lab::number_from_json(*found);
  } catch (const Error&) {
    throw Error(fmt::format("{}: member '{}' is no number", kWhere, name));
  }
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

void read_column(const json& from, std::string_view name, float TraceStep::*member,
                 std::vector<TraceStep>& steps) {
  const std::vector<float> values = read_numbers<float>(from, name, steps.size());
  for (std::size_t t = 0; t < steps.size(); ++t) steps[t].*member = values[t];
}

struct StepColumn {
  const char* name;
  float TraceStep::*member;
};
// What a tile starts from is not among them: it is what the tile before ended with (the lesson
// checks that when it records).
constexpr StepColumn kStepColumns[] = {
    {"tile_max", &TraceStep::tile_max}, {"m", &TraceStep::m}, {"rescale", &TraceStep::rescale},
    {"tile_sum", &TraceStep::tile_sum}, {"l", &TraceStep::l}, {"o", &TraceStep::o},
    {"output", &TraceStep::output}};

}  // namespace

std::array<int, kPhases> phase_lines() {
  return lab::source_marks(kSourcePath).lines({"maximum", "rescale", "weights", "sums"});
}

json to_json(const Trace& trace) {
  json steps = json::object();
  for (const StepColumn& c : kStepColumns) steps[c.name] = column(trace.steps, c.member);
  return {{"keys", trace.keys},
          {"tile_width", trace.tile_width},
          {"query", trace.query},
          {"component", trace.component},
          {"skip_rescale", trace.skip_rescale},
          {"source", kSourcePath},
          {"lines", trace.lines},
          {"scores", numbers(trace.scores)},
          {"values", numbers(trace.values)},
          {"weights", numbers(trace.weights)},
          {"steps", std::move(steps)},
          {"exact",
           {{"outputs", numbers(trace.exact_outputs)},
            {"max", number(trace.exact_max)},
            {"l", number(trace.exact_l)},
            {"output", number(trace.exact_output)}}},
          {"naive",
           {{"numerator", number(trace.naive_numerator)},
            {"denominator", number(trace.naive_denominator)}}},
          {"first_wrong_tile", trace.first_wrong_tile}};
}

Trace trace_from_json(const json& from) {
  Trace trace;
  trace.keys = lab::member<int>(from, "keys", kWhere);
  trace.tile_width = lab::member<int>(from, "tile_width", kWhere);
  if (trace.keys < 1 || trace.tile_width < 1) {
    throw Error(fmt::format("{}: 'keys' and 'tile_width' must be at least 1", kWhere));
  }
  trace.query = lab::member<int>(from, "query", kWhere);
  trace.component = lab::member<int>(from, "component", kWhere);
  trace.skip_rescale = lab::member<bool>(from, "skip_rescale", kWhere);
  const auto keys = static_cast<std::size_t>(trace.keys);
  const std::size_t tiles = (keys - 1) / static_cast<std::size_t>(trace.tile_width) + 1;
  trace.scores = read_numbers<float>(from, "scores", keys);
  trace.values = read_numbers<float>(from, "values", keys);
  trace.weights = read_numbers<float>(from, "weights", keys);
  const json steps = lab::member<json>(from, "steps", kWhere);
  trace.steps.resize(tiles);
  for (const StepColumn& c : kStepColumns) read_column(steps, c.name, c.member, trace.steps);
  TraceStep before;
  before.m = -std::numeric_limits<float>::infinity();
  for (TraceStep& step : trace.steps) {
    step.m_old = before.m;
    step.l_old = before.l;
    step.o_old = before.o;
    before = step;
  }
  const json exact = lab::member<json>(from, "exact", kWhere);
  trace.exact_outputs = read_numbers<double>(exact, "outputs", tiles);
  trace.exact_max = read_number(exact, "max");
  trace.exact_l = read_number(exact, "l");
  trace.exact_output = read_number(exact, "output");
  const json naive = lab::member<json>(from, "naive", kWhere);
  trace.naive_numerator = static_cast<float>(read_number(naive, "numerator"));
  trace.naive_denominator = static_cast<float>(read_number(naive, "denominator"));
  trace.first_wrong_tile = lab::member<int>(from, "first_wrong_tile", kWhere);
  return trace;
}

}  // namespace tilestep::online_softmax
