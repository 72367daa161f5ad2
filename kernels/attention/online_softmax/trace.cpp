#include <limits>
#include <nlohmann/json.hpp>

#include "kernels/attention/online_softmax/lesson.hpp"
#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/source.hpp"

namespace tilestep::online_softmax {
namespace {

/// A tile starts from the previous tile's final state.
void set_starts(Trace& trace) {
  TraceStep before;
  before.m = -std::numeric_limits<float>::infinity();
  for (TraceStep& step : trace.steps) {
    step.m_old = before.m;
    step.l_old = before.l;
    step.o_old = before.o;
    before = step;
  }
}

std::int64_t tiles_of(const Trace& trace) {
  return (trace.keys - 1) / trace.tile_width + 1;
}

/// A tile's starting state is not among them (the lesson checks it when it records).
lab::Fields<TraceStep> step_fields() {
  return lab::Fields<TraceStep>()
      .real(TILESTEP_MEMBERS(TraceStep, tile_max, m))
      .from_here({0, 1})
      .real("rescale", &TraceStep::rescale)
      .from_here({0, 2})
      .real("tile_sum", &TraceStep::tile_sum)
      .from_here({0, 3})
      .real(TILESTEP_MEMBERS(TraceStep, l, o, output));
}

lab::When at_end(const Trace& trace) {
  return {static_cast<int>(tiles_of(trace)), 3};
}

/// A later tile, or none.
nlohmann::json other_wrong_tile(const Trace& trace, const lab::Change& by) {
  const int tile = by.now.step + static_cast<int>(by.random() % 7);
  return tile < tiles_of(trace) ? tile : -1;
}

lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>()
      .whole(TILESTEP_MEMBERS(Trace, keys, tile_width), 1, lab::kMostCount)
      .whole(TILESTEP_MEMBERS(Trace, query, component), 0, lab::kMostCount)
      .flag("skip_rescale", &Trace::skip_rescale)
      .constant("source", kSourcePath)
      .lines("lines", &Trace::lines, [](const Trace&) { return phase_lines(); })
      .reals(TILESTEP_MEMBERS(Trace, scores, values), &Trace::keys)
      .reals("weights", &Trace::weights, &Trace::keys)
      .known_each([](const Trace& trace, std::size_t key) -> lab::When {
        return {static_cast<int>(key) / trace.tile_width + 1, 2};
      })
      .columns("steps", &Trace::steps, step_fields(), tiles_of)
      .known_each(lab::kOneAStep)
      .derive(set_starts)
      .group("exact", lab::Fields<Trace>()
                          .reals("outputs", &Trace::exact_outputs, tiles_of)
                          .known_each(lab::kOneAStep)
                          .real("max", &Trace::exact_max)
                          .known(at_end)
                          .real("l", &Trace::exact_l)
                          .known(at_end)
                          .real("output", &Trace::exact_output)
                          .known(at_end))
      .group("naive", lab::Fields<Trace>()
                          .real("numerator", &Trace::naive_numerator)
                          .known(at_end)
                          .real("denominator", &Trace::naive_denominator)
                          .known(at_end))
      .whole("first_wrong_tile", &Trace::first_wrong_tile, -1,
             [](const Trace& trace) { return trace.tiles() - 1; })
      .known(
          [](const Trace& trace) -> lab::When {
            return trace.first_wrong_tile < 0 ? at_end(trace)
                                              : lab::When{trace.first_wrong_tile + 1, 3};
          },
          other_wrong_tile);
}

}  // namespace

std::array<int, kPhases> phase_lines() {
  return lab::source_marks(kSourcePath).lines({"maximum", "rescale", "weights", "sums"});
}

TILESTEP_TRACE_JSON("online-softmax trace", trace_fields())

}  // namespace tilestep::online_softmax
