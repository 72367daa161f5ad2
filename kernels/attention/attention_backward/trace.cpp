// The trace as JSON.

#include "kernels/attention/attention_backward/lesson.hpp"
#include "kernels/attention/shared/matrix_fields.hpp"

namespace tilestep::attention_backward {
namespace {

/// From when on a key of the chosen query is known: its weight when its tile is visited, what comes of it a phase later.
std::vector<lab::When> keys_known(const Trace& trace, bool weights) {
  std::vector<lab::When> known(static_cast<std::size_t>(trace.shape.length));
  int number = 0;
  for (const Step& step : trace.steps) {
    ++number;
    const int first = step.k_tile * trace.plan.block_k;
    const int end = std::min(first + trace.plan.block_k, trace.shape.length);
    for (int key = first; key < end; ++key) {
      known[static_cast<std::size_t>(key)] = {number, weights ? 0 : 1};
    }
  }
  return known;
}

lab::Fields<BackwardRow> row_fields(const Trace& trace) {
  const auto each = [&](std::vector<lab::When> known) {
    return [known](const BackwardRow&, std::size_t key) { return known[key]; };
  };
  const lab::When end = at_end(trace);
  const auto at_the_end = [end](const BackwardRow&) { return end; };
  const int keys = trace.shape.length, columns = trace.shape.head_dim;
  return lab::Fields<BackwardRow>()
      .real("lse", &BackwardRow::lse)
      .real("exact_lse", &BackwardRow::exact_lse)
      .known(at_the_end)
      .real("d", &BackwardRow::d)
      .reals("p", &BackwardRow::p, keys)
      .known_each(each(keys_known(trace, true)))
      .reals("dp", &BackwardRow::dp, keys)
      .known_each(each(keys_known(trace, false)))
      .reals("ds", &BackwardRow::ds, keys)
      .known_each(each(keys_known(trace, false)))
      .reals("dq", &BackwardRow::dq, columns)
      .known(at_the_end)
      .reals("dk", &BackwardRow::dk, columns)
      .known(at_the_end)
      .reals("dv", &BackwardRow::dv, columns)
      .known(at_the_end)
      .reals("exact_dq", &BackwardRow::exact_dq, columns)
      .known(at_the_end)
      .reals("exact_dk", &BackwardRow::exact_dk, columns)
      .known(at_the_end)
      .reals("exact_dv", &BackwardRow::exact_dv, columns)
      .known(at_the_end)
      .reals("dq_after", &BackwardRow::dq_after, trace.steps.size())
      .known_each(lab::kOneAStep);
}

lab::Fields<Trace> trace_fields() {
  const auto tiles = [](const Trace& t) { return t.plan.k_tiles; };
  lab::Fields<Trace> fields = matrix_fields<Trace>();
  fields
      .columns(
          "steps", &Trace::steps,
          [](const Trace& t) { return tile_fields<Step>(t).real("dq", &Step::dq); }, lab::kAnyCount)
      .known_each(lab::kOneAStep)
      .object("row", &Trace::row, row_fields)
      .wholes("wrong_dk", &Trace::wrong_dk, tiles, 0, lab::kMostCount)
      .known(at_end<Trace>)
      .wholes("wrong_dv", &Trace::wrong_dv, tiles, 0, lab::kMostCount)
      .known(at_end<Trace>)
      .lines("lines", &Trace::lines, [](const Trace&) { return mark_lines(); });
  return std::move(with_visits(fields));
}

}  // namespace

std::array<int, kMarks> mark_lines() {
  return lines_of<Mark, kMarks>(kSourcePath);
}

TILESTEP_TRACE_JSON("attention-backward trace", trace_fields())

}  // namespace tilestep::attention_backward
