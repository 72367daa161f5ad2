// The trace as JSON, and what follows from it.

#include <algorithm>
#include <map>
#include <tuple>

#include "kernels/attention/flash_attention/lesson.hpp"
#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/source.hpp"

namespace tilestep::flash_attention {
namespace {

constexpr std::int64_t kMostClock = std::int64_t{1} << 50;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
constexpr int kMostColumns = 256;

lab::When at_end(const Trace& trace) {
  return {static_cast<int>(trace.steps.size()), 0};
}

lab::Fields<Shape> shape_fields() {
  return lab::Fields<Shape>()
      .whole("length", &Shape::length, 1, kMostLength)
      .whole("heads", &Shape::heads, 1, kMostHeads)
      .whole("kv_heads", &Shape::kv_heads, 1, kMostHeads)
      .whole("asked_length", &Shape::asked_length, &Shape::length, kMostLength)
      .whole("asked_heads", &Shape::asked_heads, &Shape::heads, kMostHeads)
      .whole("asked_kv_heads", &Shape::asked_kv_heads, &Shape::kv_heads, kMostHeads)
      .whole("head_dim", &Shape::head_dim, 1, kMostColumns)
      .whole("columns", &Shape::columns, &Shape::head_dim, kMostColumns);
}

lab::Fields<Dispatch> plan_fields(const Shape& shape) {
  const auto tiles = [length = shape.length](int block) { return (length - 1) / block + 1; };
  return lab::Fields<Dispatch>()
      .name("asked", &Dispatch::asked)
      .name("runs", &Dispatch::runs)
      .text("instead", &Dispatch::instead)
      .text("filled", &Dispatch::filled)
      .text("resized", &Dispatch::resized)
      .text("cut", &Dispatch::cut)
      .whole("block_q", &Dispatch::block_q, 16, 1024)
      .whole("block_k", &Dispatch::block_k, 16, 1024)
      .whole("q_tiles", &Dispatch::q_tiles, 1, kMostLength)
      .whole("k_tiles", &Dispatch::k_tiles, 1, kMostLength)
      .whole("threads", &Dispatch::threads, 1, 1024)
      .whole("shared_bytes", &Dispatch::shared_bytes, 0, lab::kMostCount)
      .whole("blocks", &Dispatch::blocks, 1, lab::kMostCount)
      .check([tiles](const Dispatch& c) -> std::string {
        const bool good = c.q_tiles == tiles(c.block_q) && c.k_tiles == tiles(c.block_k);
        return good ? "" : "the numbers of tiles do not follow from the length";
      });
}

lab::Fields<TileVisit> visit_fields() {
  return lab::Fields<TileVisit>()
      .name("kind", &TileVisit::kind)
      .from(lab::kAhead)
      .whole("block", &TileVisit::block, -1, lab::kMostCount)
      .from(lab::kAhead)
      .whole("order", &TileVisit::order, -1, lab::kMostCount)
      .from(lab::kAhead)
      .whole("rescaled", &TileVisit::rescaled, -1, kMostLength)
      .whole("o_reads", &TileVisit::o_reads, 0, kMostLength)
      .whole("o_writes", &TileVisit::o_writes, 0, kMostLength)
      .whole("begin", &TileVisit::begin, -1, kMostClock)
      .whole("end", &TileVisit::end, -1, kMostClock);
}

lab::Fields<BlockLane> block_fields() {
  return lab::Fields<BlockLane>()
      .whole("block", &BlockLane::block, 0, lab::kMostCount)
      .whole("head", &BlockLane::head, 0, kMostHeads - 1)
      .whole("q_tile", &BlockLane::q_tile, -1, kMostLength)
      .whole("k_tile", &BlockLane::k_tile, -1, kMostLength)
      .whole("visits", &BlockLane::visits, 0, lab::kMostCount)
      .whole("begin", &BlockLane::begin, -1, kMostClock)
      .whole("end", &BlockLane::end, -1, kMostClock);
}

lab::Fields<ChosenPlace> chosen_fields(const Trace& trace) {
  return lab::Fields<ChosenPlace>()
      .whole("head", &ChosenPlace::head, 0, trace.shape.heads - 1)
      .whole("query", &ChosenPlace::query, 0, trace.shape.length - 1)
      .whole("component", &ChosenPlace::component, 0, trace.shape.head_dim - 1)
      .whole("q_tile", &ChosenPlace::q_tile, 0, trace.plan.q_tiles - 1)
      .whole("block", &ChosenPlace::block, 0, lab::kMostCount);
}

/// Which tile comes when follows from the mask, and is known from the start.
lab::Fields<Step> step_fields(const Trace& trace) {
  return lab::Fields<Step>()
      .whole("k_tile", &Step::k_tile, 0, trace.plan.k_tiles - 1)
      .from(lab::kAhead)
      .whole("order", &Step::order, 0, lab::kMostCount)
      .from(lab::kAhead)
      .name("kind", &Step::kind)
      .from(lab::kAhead)
      .real("tile_max", &Step::tile_max)
      .real("m_before", &Step::m_before)
      .real("m_after", &Step::m_after)
      .real("rescale", &Step::rescale)
      .real("tile_sum", &Step::tile_sum)
      .real("l", &Step::l)
      .real("o", &Step::o)
      .real("dq", &Step::dq);
}

lab::Fields<Answer> answer_fields(const Trace& trace) {
  const lab::When end = at_end(trace);
  const auto at_the_end = [end](const Answer&) { return end; };
  return lab::Fields<Answer>()
      .reals("o", &Answer::o, trace.shape.head_dim)
      .known(at_the_end)
      .reals("exact", &Answer::exact, trace.shape.head_dim)
      .known(at_the_end)
      .real("lse", &Answer::lse)
      .known(at_the_end)
      .real("exact_lse", &Answer::exact_lse)
      .known(at_the_end)
      .reals("o_after", &Answer::o_after, trace.is_backward() ? 0 : trace.steps.size())
      .known_each(lab::kOneAStep);
}

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

lab::Fields<BackwardRow> backward_fields(const Trace& trace) {
  const auto each = [&](std::vector<lab::When> known) {
    return [known](const BackwardRow&, std::size_t key) { return known[key]; };
  };
  const lab::When end = at_end(trace);
  const auto at_the_end = [end](const BackwardRow&) { return end; };
  const int keys = trace.is_backward() ? trace.shape.length : 0;
  const int columns = trace.is_backward() ? trace.shape.head_dim : 0;
  return lab::Fields<BackwardRow>()
      .real("lse", &BackwardRow::lse)
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
      .reals("dq_after", &BackwardRow::dq_after, trace.is_backward() ? trace.steps.size() : 0)
      .known_each(lab::kOneAStep);
}

lab::Fields<LedgerRow> ledger_fields() {
  return lab::Fields<LedgerRow>()
      .name("tensor", &LedgerRow::tensor)
      .whole("loaded", &LedgerRow::loaded, 0, kMostBytes)
      .whole("stored", &LedgerRow::stored, 0, kMostBytes)
      .whole("formula_loaded", &LedgerRow::formula_loaded, 0, kMostBytes)
      .whole("formula_stored", &LedgerRow::formula_stored, 0, kMostBytes)
      .whole("whole_loaded", &LedgerRow::whole_loaded, 0, kMostBytes)
      .whole("whole_stored", &LedgerRow::whole_stored, 0, kMostBytes)
      .whole("held", &LedgerRow::held, 0, kMostBytes)
      .whole("kept", &LedgerRow::kept, 0, &LedgerRow::held);
}

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

lab::Fields<BrokenResult> result_fields(const Trace& trace) {
  const lab::When end = at_end(trace);
  const auto at_the_end = [end](const BrokenResult&) { return end; };
  return lab::Fields<BrokenResult>(lab::Digits::all)
      .text("outcome", &BrokenResult::outcome)
      .whole("wrong", &BrokenResult::wrong, 0, lab::kMostCount)
      .known(at_the_end)
      .whole("elements", &BrokenResult::elements, 0, lab::kMostCount)
      .name("tensor", &BrokenResult::tensor)
      .whole("head", &BrokenResult::head, -1, kMostHeads)
      .whole("query", &BrokenResult::query, -1, kMostLength)
      .whole("component", &BrokenResult::component, -1, kMostColumns)
      .real("got", &BrokenResult::got)
      .known(at_the_end)
      .real("want", &BrokenResult::want)
      .known(at_the_end)
      .real("largest", &BrokenResult::largest)
      .known(at_the_end)
      .whole("more_bytes", &BrokenResult::more_bytes, 0, kMostBytes);
}

lab::Fields<QuantizedRow> quantized_fields(const Trace& trace) {
  const lab::When end = at_end(trace);
  const auto at_the_end = [end](const QuantizedRow&) { return end; };
  return lab::Fields<QuantizedRow>(lab::Digits::all)
      .name("format", &QuantizedRow::format)
      .flag("smooth_k", &QuantizedRow::smooth_k)
      .real("score_rms", &QuantizedRow::score_rms)
      .known(at_the_end)
      .real("o_rms", &QuantizedRow::o_rms)
      .known(at_the_end)
      .real("o_largest", &QuantizedRow::o_largest)
      .known(at_the_end);
}

std::int64_t length_or_none(const Trace& trace, bool there) {
  return there ? trace.shape.length : 0;
}
bool has_scores(const Trace& trace) {
  if (trace.is_backward()) return false;
  return trace.plan.runs == Variant::naive || trace.broken == Break::materialize;
}

lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>()
      .name("pass", &Trace::pass)
      .object("shape", &Trace::shape, shape_fields())
      .object("plan", &Trace::plan, [](const Trace& t) { return plan_fields(t.shape); })
      .name("dtype", &Trace::dtype)
      .flag("smooth_k", &Trace::smooth_k)
      .name("data", &Trace::data)
      .name("mask", &Trace::mask)
      .whole("window", &Trace::window, 0, [](const Trace& t) { return t.shape.asked_length; })
      .whole("sinks", &Trace::sinks, 0, [](const Trace& t) { return t.shape.asked_length; })
      .name("score_mod", &Trace::score_mod)
      .wholes("documents", &Trace::documents, lab::kAnyCount, 1, kMostLength)
      .check([](const Trace& t) -> std::string {
        std::int64_t sum = 0;
        for (const int length : t.documents) sum += length;
        const int due = t.mask == Mask::document ? t.shape.asked_length : 0;
        return sum == due ? "" : "the documents do not fill the length";
      })
      .name("broken", &Trace::broken)
      .text("clock_unit", &Trace::clock_unit)
      .object("chosen", &Trace::chosen, chosen_fields)
      .columns("steps", &Trace::steps, step_fields, lab::kAnyCount)
      .known_each(lab::kOneAStep)
      .flag("o_recorded", &Trace::o_recorded)
      .columns("visits", &Trace::visits, visit_fields(),
               [](const Trace& t) { return std::int64_t{t.plan.q_tiles} * t.plan.k_tiles; })
      .known_each([](const Trace& t, std::size_t place) {
        return lab::When{t.step_of(t.visits[place]), 0};
      })
      .columns("blocks", &Trace::blocks, block_fields(), lab::kAnyCount)
      .reals("scores", &Trace::scores,
             [](const Trace& t) { return length_or_none(t, has_scores(t)); })
      .reals("weights", &Trace::weights,
             [](const Trace& t) {
               return length_or_none(t, has_scores(t) && t.plan.runs == Variant::naive);
             })
      .object("answer", &Trace::answer, answer_fields)
      .object("backward", &Trace::backward, backward_fields)
      .wholes(
          "wrong", &Trace::wrong, [](const Trace& t) { return t.plan.q_tiles; }, 0, lab::kMostCount)
      .known(at_end)
      .wholes(
          "wrong_dk", &Trace::wrong_dk,
          [](const Trace& t) { return t.is_backward() ? t.plan.k_tiles : 0; }, 0, lab::kMostCount)
      .known(at_end)
      .wholes(
          "wrong_dv", &Trace::wrong_dv,
          [](const Trace& t) { return t.is_backward() ? t.plan.k_tiles : 0; }, 0, lab::kMostCount)
      .known(at_end)
      .list("ledger", &Trace::ledger, ledger_fields())
      .columns("events", &Trace::events, event_fields, lab::kAnyCount)
      .list("quantized", &Trace::quantized, quantized_fields)
      .check([](const Trace& t) -> std::string {
        const std::size_t due = is_quantized(t.dtype) ? kQuantizedRows : 0;
        return t.quantized.size() == due ? "" : "there are not the formats that there should be";
      })
      .object("result", &Trace::result, result_fields)
      .lines("lines", &Trace::lines,
             [](const Trace& t) { return mark_lines(t.plan.runs, t.pass, t.dtype); });
}

MaskRule rule_of(const Trace& trace, int length) {
  MaskRule rule;
  rule.mask = trace.mask;
  rule.length = length;
  rule.window = std::min(trace.window, length);
  rule.sinks = std::min(trace.sinks, length);
  return rule;
}

// ---- lanes ------------------------------------------------------------------------------------------

bool is_wait(What what) {
  switch (what) {
    case What::waits_empty_q:
    case What::waits_empty_k:
    case What::waits_empty_v:
    case What::waits_k:
    case What::waits_v:
    case What::waits_turn:
      return true;
    default:
      return false;
  }
}

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

int Trace::step_of(const TileVisit& visit) const {
  if (visit.order < 0) return 0;
  const auto come = std::find_if(steps.begin(), steps.end(),
                                 [&](const Step& step) { return step.order >= visit.order; });
  const auto place = static_cast<int>(come - steps.begin());
  return std::min(place + 1, static_cast<int>(steps.size()));
}

MaskRule Trace::rule() const {
  return rule_of(*this, shape.length);
}
MaskRule Trace::asked_rule() const {
  return rule_of(*this, shape.asked_length);
}

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
    wait = is_wait(event.what) ? &event : nullptr;
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

std::string name_of_row(const QuantizedRow& row) {
  return std::string(name_of(row.format)) + (row.smooth_k ? " less K's mean" : "");
}

std::array<int, kMarks> mark_lines(Variant variant, Pass pass, DataType dtype) {
  const auto marks = lab::source_marks(source_path(variant, pass, dtype)).all();
  const auto names = names_of(Mark{});
  static_assert(names_of(Mark{}).size() == kMarks);
  std::array<int, kMarks> lines{};
  for (std::size_t i = 0; i < kMarks; ++i) {
    if (const auto found = marks.find(names[i]); found != marks.end()) lines[i] = found->second;
  }
  return lines;
}

TILESTEP_TRACE_JSON("flash-attention trace", trace_fields())

}  // namespace tilestep::flash_attention
