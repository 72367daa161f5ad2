// The trace as JSON.

#include <nlohmann/json.hpp>

#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/source.hpp"
#include "kernels/systems/launches/lesson.hpp"

namespace tilestep::launches {
namespace {

constexpr int kMostBeats = 4096;

lab::Fields<CallTrace> call_fields() {
  return lab::Fields<CallTrace>()
      .whole("beat", &CallTrace::beat, 1, kMostBeats)
      .from(lab::kAhead)
      .name("kind", &CallTrace::kind)
      .whole("stream", &CallTrace::stream, 0, 1)
      .text("what", &CallTrace::what)
      .flag("captured", &CallTrace::captured)
      .real(TILESTEP_MEMBERS(CallTrace, begin_us, end_us));
}
lab::Fields<WorkTrace> work_fields(const Trace& trace) {
  return lab::Fields<WorkTrace>()
      .whole("beat", &WorkTrace::beat, 1, kMostBeats)
      .from(lab::kAhead)
      .whole("call", &WorkTrace::call, 0, static_cast<int>(trace.calls.size()) - 1)
      .whole("stream", &WorkTrace::stream, 0, 1)
      .whole("place", &WorkTrace::place, -1, launches_of(trace.layers) - 1)
      .text(TILESTEP_MEMBERS(WorkTrace, what, kernel))
      .wholes("after", &WorkTrace::after, lab::kAnyCount, 0, lab::kMostCount)
      .flag("wrong", &WorkTrace::wrong)
      .real(TILESTEP_MEMBERS(WorkTrace, begin_us, end_us));
}
lab::Fields<NodeTrace> node_fields(const Trace& trace) {
  return lab::Fields<NodeTrace>()
      .whole("beat", &NodeTrace::beat, 1, kMostBeats)
      .from(lab::kAhead)
      .whole("graph", &NodeTrace::graph, 0, lab::kMostCount)
      .whole("place", &NodeTrace::place, 0, launches_of(trace.layers) - 1)
      .whole("stream", &NodeTrace::stream, 0, 1)
      .text(TILESTEP_MEMBERS(NodeTrace, what, uses));
}
lab::Fields<FindingTrace> finding_fields() {
  return lab::Fields<FindingTrace>()
      .whole("beat", &FindingTrace::beat, 1, kMostBeats)
      .from(lab::kAhead)
      .text("text", &FindingTrace::text);
}
lab::Fields<StepTrace> step_fields() {
  return lab::Fields<StepTrace>()
      .from_here(lab::kAhead)
      .whole(TILESTEP_MEMBERS(StepTrace, batch, rows), 1, kMostBatch)
      .name("how", &StepTrace::how)
      .whole(TILESTEP_MEMBERS(StepTrace, first_beat, last_beat), 1, kMostBeats)
      .from_here({})
      .whole(TILESTEP_MEMBERS(StepTrace, calls, kernels, wrong), 0, lab::kMostCount);
}
lab::Fields<ShapeTrace> shape_fields() {
  return lab::Fields<ShapeTrace>()
      .whole(TILESTEP_MEMBERS(ShapeTrace, m, n, k), 1, kMostSide)
      .name("kernel", &ShapeTrace::kernel)
      .text("why", &ShapeTrace::why);
}

lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>()
      .name("mode", &Trace::mode)
      .name("broken", &Trace::broken)
      .whole("layers", &Trace::layers, 1, kMostLayers)
      .whole("fallback", &Trace::fallback, 0, kMostLayers)
      .whole("beats", &Trace::beats, 1, kMostBeats)
      .flag("timed", &Trace::timed)
      .real(TILESTEP_MEMBERS(Trace, clocks_us, span_us))
      .constant("source", kStepSource)
      .lines("lines", &Trace::lines, [](const Trace&) { return op_lines(); })
      .lines("persistent_lines", &Trace::persistent_lines,
             [](const Trace&) { return phase_lines(); })
      .list("calls", &Trace::calls, call_fields())
      .known_each([](const Trace& trace, std::size_t i) {
        return lab::When{trace.calls[i].beat, 0};
      })
      .list("works", &Trace::works, work_fields)
      .known_each([](const Trace& trace, std::size_t i) {
        return lab::When{trace.works[i].beat, 0};
      })
      .list("nodes", &Trace::nodes, node_fields)
      .known_each([](const Trace& trace, std::size_t i) {
        return lab::When{trace.nodes[i].beat, 0};
      })
      .list("steps", &Trace::steps, step_fields())
      .known_each([](const Trace& trace, std::size_t i) {
        return lab::When{trace.steps[i].last_beat, 0};
      })
      .list("findings", &Trace::findings, finding_fields())
      .known_each([](const Trace& trace, std::size_t i) {
        return lab::When{trace.findings[i].beat, 0};
      })
      .reals("phases", &Trace::phases, lab::kAnyCount)
      .known([](const Trace& trace) {
        return lab::When{trace.beats, 0};
      })
      .object("shape", &Trace::shape, shape_fields());
}

}  // namespace

std::array<int, 7> op_lines() {
  const auto marks = lab::source_marks(kStepSource);
  const int product = marks.line("vectors");
  return {marks.line("embed"), marks.line("norm"), product, product, marks.line("act"), product,
          marks.line("add")};
}
std::array<int, kPhases> phase_lines() {
  return lab::source_marks(kPersistentSource).lines({"first", "second"});
}

TILESTEP_TRACE_JSON("launches trace", trace_fields())

}  // namespace tilestep::launches
