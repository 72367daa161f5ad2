// The trace as JSON, and what follows from it.

#include <algorithm>
#include <map>
#include <tuple>

#include "kernels/attention/flash_attention_3/lesson.hpp"
#include "kernels/attention/shared/matrix_fields.hpp"

namespace tilestep::flash_attention_3 {
namespace {

lab::Fields<Event> event_fields(const Trace& trace) {
  return lab::Fields<Event>()
      .name("what", &Event::what)
      .whole("lane", &Event::lane, -1, 3)
      .whole("turn", &Event::turn, 0, lab::kMostCount)
      .whole("q_tile", &Event::q_tile, 0, trace.plan.q_tiles - 1)
      .whole("head", &Event::head, 0, trace.shape.heads - 1)
      .whole("k_tile", &Event::k_tile, -1, trace.plan.k_tiles - 1)
      .whole("clock", &Event::clock, 0, kMostClock);
}

lab::Fields<Trace> trace_fields() {
  lab::Fields<Trace> fields = matrix_fields<Trace>();
  fields.name("runs", &Trace::runs)
      .columns("steps", &Trace::steps, softmax_fields<Step>, lab::kAnyCount)
      .known_each(lab::kOneAStep)
      .object("answer", &Trace::answer,
              [](const Trace& t) { return answer_fields<Answer>(t, at_end(t)); })
      .columns("events", &Trace::events, event_fields, lab::kAnyCount)
      .lines("lines", &Trace::lines, [](const Trace&) { return mark_lines(); });
  return std::move(with_visits(fields));
}

// ---- lanes ------------------------------------------------------------------------------------------

/// What begins with an event and ends with another of the same tile.
struct Pair {
  What begin, end;
  Activity activity;
  char tensor;
};
constexpr Pair kPairs[] = {{What::copies_k, What::full_k, Activity::copies, 'K'},
                           {What::copies_v, What::full_v, Activity::copies, 'V'},
                           {What::issues_s, What::done_s, Activity::scores, ' '},
                           {What::begins_softmax, What::ends_softmax, Activity::softmax, ' '},
                           {What::issues_o, What::done_o, Activity::values, ' '},
                           {What::stores, What::stored, Activity::stores, ' '}};

}  // namespace

std::vector<Span> spans_of(const Trace& trace) {
  std::vector<Span> spans;
  const auto add = [&](const Event& from, const Event& to, Activity what, char tensor) {
    spans.push_back({what, from.lane, from.turn, from.q_tile, from.head, from.k_tile, tensor,
                     from.clock, to.clock});
  };
  std::map<int, const Event*> waiting;  // of a lane
  std::map<std::tuple<What, int, int, int>, const Event*> begun;
  for (const Event& event : trace.events) {
    const Event*& wait = waiting[event.lane];
    if (wait != nullptr) add(*wait, event, Activity::waits, ' ');
    wait = name_of(event.what).starts_with("waits") ? &event : nullptr;
    for (const Pair& pair : kPairs) {
      // Who looks on has a lane of its own.
      const int lane = pair.activity == Activity::copies ? 0 : event.lane;
      const auto key = std::tuple(pair.begin, lane, event.turn, event.k_tile);
      if (event.what == pair.begin) begun[key] = &event;
      const auto found = event.what == pair.end ? begun.find(key) : begun.end();
      if (found != begun.end()) add(*found->second, event, pair.activity, pair.tensor);
    }
  }
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return std::tuple(a.lane, a.begin) < std::tuple(b.lane, b.begin);
  });
  return spans;
}

std::array<int, kMarks> mark_lines() {
  return lines_of<Mark, kMarks>(kSourcePath);
}

TILESTEP_TRACE_JSON("flash-attention-3 trace", trace_fields())

}  // namespace tilestep::flash_attention_3
