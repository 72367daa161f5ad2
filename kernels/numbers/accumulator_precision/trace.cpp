#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/source.hpp"
#include "kernels/numbers/accumulator_precision/lesson.hpp"

namespace tilestep::accumulator_precision {
namespace {

std::size_t points_of(const Trace& trace) {
  return trace.points.size();
}

/// A format's own accumulator is its own answer: then `sum` is `after`, `added` the term and
/// `extra` 0, and they are left out.
lab::Fields<Step> step_fields(const AccumulatorTrace& accumulator) {
  constexpr lab::When kRounded{0, 1};
  auto fields = lab::Fields<Step>();
  fields.real("before", &Step::before).real("after", &Step::after).from(kRounded);
  if (is_remedy(accumulator.method)) {
    fields.real("added", &Step::added)
        .real("sum", &Step::sum)
        .from(kRounded)
        .real("extra", &Step::extra)
        .from(kRounded);
  }
  return fields;
}

lab::Fields<numeric::FloatSpec> format_fields() {
  return lab::Fields<numeric::FloatSpec>()
      .whole("exponent_bits", &numeric::FloatSpec::exponent_bits, 2, 8)
      .whole("mantissa_bits", &numeric::FloatSpec::mantissa_bits, 1, 23)
      .custom(
          "infinity", [](const auto& format) { return format.specials == numeric::Specials::ieee; },
          [](const lab::Place& at, auto& format) {
            format.specials = at.flag() ? numeric::Specials::ieee : numeric::Specials::nan_only;
          });
}

lab::When at_end(const Trace& trace) {
  return {static_cast<int>(trace.points.size()), 1};
}

lab::Fields<AccumulatorTrace> accumulator_fields(const Trace& trace) {
  const auto at_end_of_all = [end = at_end(trace)](const AccumulatorTrace&) { return end; };
  const auto when_frozen = [points = trace.points](const AccumulatorTrace& one) -> lab::When {
    const auto point = one.frozen_at < 0
                           ? points.end()
                           : std::lower_bound(points.begin(), points.end(), one.frozen_at);
    return {static_cast<int>(std::min(point - points.begin() + 1, std::ssize(points))), 1};
  };
  // A term of the future, or none.
  const auto frozen_later = [terms = trace.terms, points = trace.points](const AccumulatorTrace&,
                                                                         const lab::Change& by) {
    const std::size_t now = static_cast<std::size_t>(std::max(by.now.step, 1)) - 1;
    const int term =
        points[std::min(now, points.size() - 1)] + 1 + static_cast<int>(by.random() % 30);
    return nlohmann::json(term < terms ? term : -1);
  };
  return lab::Fields<AccumulatorTrace>()
      .name("method", &AccumulatorTrace::method)
      .text("label", &AccumulatorTrace::label)
      .inlined(&AccumulatorTrace::format, format_fields())
      .real("final_sum", &AccumulatorTrace::final_sum)
      .known(when_frozen)
      .real("error_percent", &AccumulatorTrace::error_percent)
      .known(at_end_of_all)
      .whole("frozen_at", &AccumulatorTrace::frozen_at, -1, trace.terms - 1)
      .known(when_frozen, frozen_later)
      .real("frozen_spacing", &AccumulatorTrace::frozen_spacing)
      .known(when_frozen)
      .text("verdict", &AccumulatorTrace::verdict)
      .known(when_frozen)
      .whole("line", &AccumulatorTrace::line, 0, lab::kMostCount)
      // A recording may number another source.
      .derive(
          [](AccumulatorTrace& accumulator) { accumulator.line = source_line(accumulator.method); })
      .columns("steps", &AccumulatorTrace::steps, step_fields, points_of(trace))
      .known_each(lab::kOneAStep);
}

void set_plain_steps(Trace& trace) {
  for (AccumulatorTrace& accumulator : trace.accumulators) {
    if (is_remedy(accumulator.method)) continue;
    for (std::size_t p = 0; p < trace.points.size(); ++p) {
      accumulator.steps[p].added = trace.term[p];
      accumulator.steps[p].sum = accumulator.steps[p].after;
    }
  }
}

std::string points_rise(const Trace& trace) {
  const auto& points = trace.points;
  if (points.empty()) return "'points' is empty";
  const bool rise =
      std::adjacent_find(points.begin(), points.end(), std::greater_equal()) == points.end();
  return rise ? "" : "'points' must rise";
}

lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>()
      .whole("terms", &Trace::terms, 1, lab::kMostCount)
      .name(TILESTEP_MEMBERS(Trace, distribution, rounding))
      .whole("promote_every", &Trace::promote_every, 1, lab::kMostCount)
      .name("small_format", &Trace::small_format)
      .constant("source", kSourcePath)
      .wholes("points", &Trace::points, lab::kAnyCount, 0,
              [](const Trace& trace) { return trace.terms - 1; })
      .check(points_rise)
      .reals("term", &Trace::term, points_of)
      // What the terms add up to is no secret: it is what the sums are held against.
      .reals("exact", &Trace::exact, points_of)
      .real("exact_sum", &Trace::exact_sum)
      .list("accumulators", &Trace::accumulators, accumulator_fields)
      .check([](const Trace& trace) {
        return trace.accumulators.empty() ? "'accumulators' is empty" : "";
      })
      .derive(set_plain_steps);
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
  return lab::source_marks(kSourcePath).line(own ? name_of(method) : "rounded");
}

TILESTEP_TRACE_JSON("accumulator-precision trace", trace_fields())

}  // namespace tilestep::accumulator_precision
