// The trace as JSON, and what follows from it.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/attention/decode/lesson.hpp"
#include "kernels/base/lab/fields.hpp"

namespace tilestep::decode {
namespace {

constexpr std::int64_t kMostClock = std::int64_t{1} << 50;
constexpr int kMostParts = 1 << 16;
constexpr int kMostTokens = 1 << 20;
constexpr int kMostColumns = 1024;

lab::Fields<Shape> shape_fields() {
  return lab::Fields<Shape>()
      .name("scheme", &Shape::scheme)
      .whole("heads", &Shape::heads, 1, kMostHeads)
      .whole("cached_heads", &Shape::cached_heads, 1, &Shape::heads)
      .whole(TILESTEP_MEMBERS(Shape, key, value), 1, kMostColumns)
      .name(TILESTEP_MEMBERS(Shape, kv_dtype, scales))
      .whole("tile", &Shape::tile, 1, 256)
      .text("cut", &Shape::cut)
      .check([](const Shape& shape) -> std::string {
        return shape.heads % shape.cached_heads == 0 ? "" : "the K/V heads do not divide the heads";
      });
}

lab::Fields<ItemTrace> item_fields(const Trace& trace) {
  return lab::Fields<ItemTrace>()
      .whole(TILESTEP_MEMBERS(ItemTrace, begin, end), 0, kMostClock)
      .from_here(lab::kAhead)
      .whole("request", &ItemTrace::request, 0, static_cast<std::int64_t>(trace.tokens.size()) - 1)
      .whole("kv_head", &ItemTrace::kv_head, 0, trace.shape.cached_heads - 1)
      .whole("first_head", &ItemTrace::first_head, 0, trace.shape.heads - 1)
      .whole("heads", &ItemTrace::heads, 1, trace.shape.heads)
      .whole(TILESTEP_MEMBERS(ItemTrace, first, tokens, tiles, first_round), 0, kMostTokens)
      .whole(TILESTEP_MEMBERS(ItemTrace, split, order), 0, kMostParts)
      .whole("splits", &ItemTrace::splits, 1, kMostParts)
      .whole("block", &ItemTrace::block, 0, trace.blocks - 1);
}

lab::Fields<StepTrace> step_fields(const Trace& trace) {
  return lab::Fields<StepTrace>()
      .real(TILESTEP_MEMBERS(StepTrace, tile_max, m_before, m_after, rescale, tile_sum, l, o))
      .from_here(lab::kAhead)
      .whole("item", &StepTrace::item, 0, static_cast<std::int64_t>(trace.items.size()) - 1)
      .whole("tile", &StepTrace::tile, 0, kMostTokens)
      .whole("tokens", &StepTrace::tokens, 0, trace.shape.tile);
}

lab::Fields<PartTrace> part_fields(const Trace& trace) {
  return lab::Fields<PartTrace>()
      .whole("item", &PartTrace::item, 0, static_cast<std::int64_t>(trace.items.size()) - 1)
      .from(lab::kAhead)
      .real(TILESTEP_MEMBERS(PartTrace, m, l, o))
      .real("weight", &PartTrace::weight)
      .from({trace.answered(), 0});
}

lab::Fields<LedgerRow> ledger_fields() {
  return lab::Fields<LedgerRow>()
      .text("tensor", &LedgerRow::tensor)
      .from(lab::kAhead)
      .whole(TILESTEP_MEMBERS(LedgerRow, loaded, stored, formula), 0);
}

lab::Fields<BrokenResult> result_fields() {
  return lab::Fields<BrokenResult>()
      .text("outcome", &BrokenResult::outcome)
      .whole(TILESTEP_MEMBERS(BrokenResult, wrong, elements), 0, lab::kMostCount)
      .whole("more_bytes", &BrokenResult::more_bytes);
}

lab::When at_end(const Trace& trace) {
  return {trace.answered(), 0};
}
lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>()
      .object("shape", &Trace::shape, shape_fields())
      .name("broken", &Trace::broken)
      .wholes("tokens", &Trace::tokens, lab::kAnyCount, 0, kMostTokens)
      .whole("blocks", &Trace::blocks, 1, lab::kMostCount)
      .list("items", &Trace::items, item_fields)
      .known_each([](const Trace& trace, std::size_t) {
        return lab::When{trace.length(), 0};
      })
      .text("clock_unit", &Trace::clock_unit)
      .whole("request", &Trace::request, 0,
             [](const Trace& t) { return static_cast<std::int64_t>(t.tokens.size()) - 1; })
      .whole("head", &Trace::head, 0, [](const Trace& t) { return t.shape.heads - 1; })
      .whole("component", &Trace::component, 0, [](const Trace& t) { return t.shape.value - 1; })
      .list("steps", &Trace::steps, step_fields)
      .known_each([](const Trace& trace, std::size_t place) {
        const StepTrace& step = trace.steps[place];
        return lab::When{trace.step_of(trace.item_of(step), step.tile), 0};
      })
      .flag("merged", &Trace::merged)
      .list("parts", &Trace::parts, part_fields)
      .known_each([](const Trace& trace, std::size_t place) {
        return lab::When{trace.end_of(trace.item_of(trace.parts[place])), 0};
      })
      .real("o", &Trace::o)
      .known(at_end)
      .real("lse", &Trace::lse)
      .known(at_end)
      .real("exact_o", &Trace::exact_o)
      .known(at_end)
      .real("exact_lse", &Trace::exact_lse)
      .known(at_end)
      .list("ledger", &Trace::ledger, ledger_fields())
      .known_each([](const Trace& trace, std::size_t) { return at_end(trace); })
      .object("result", &Trace::result, result_fields())
      .known(at_end, [](const Trace&, const lab::Change&) {
        return result_fields().to_json(BrokenResult{"something else", 1, 2, 3});
      });
}

}  // namespace

int Trace::rounds() const {
  int most = 0;
  for (const ItemTrace& item : items) most = std::max(most, item.first_round + item.tiles);
  return most;
}

int Trace::answered() const {
  return rounds() + (merged ? 1 : 0);
}

Act Trace::act_of(int step) const {
  if (step <= rounds()) return Act::read;
  return step <= answered() ? Act::merge : Act::time;
}

Trace::Worked Trace::worked(const ItemTrace& item) const {
  if (!clocked()) {
    return {static_cast<double>(item.first_round),
            static_cast<double>(item.first_round + item.tiles)};
  }
  return {static_cast<double>(item.begin), static_cast<double>(item.end)};
}

double Trace::launch_end() const {
  double end = 0;
  for (const ItemTrace& item : items) end = std::max(end, worked(item).end);
  return end;
}

double Trace::mean_at_work() const {
  const double end = launch_end();
  double sum = 0;
  for (const ItemTrace& item : items) sum += worked(item).end - worked(item).begin;
  return end > 0 ? sum / end : 0;
}

int Trace::step_of(const ItemTrace& item, int tile) const {
  return item.first_round + tile + 1;
}

std::int64_t Trace::asked() const {
  std::int64_t sum = 0;
  for (const LedgerRow& row : ledger) sum += row.loaded + row.stored;
  return sum;
}

TILESTEP_TRACE_JSON("decode trace", trace_fields())

}  // namespace tilestep::decode
