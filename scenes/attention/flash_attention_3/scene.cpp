#include "scenes/attention/flash_attention_3/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using attention::LedgerRow, attention::Tensor, attention::TileVisit;
using flash_attention_3::Activity, flash_attention_3::Span, flash_attention_3::What;
using words::number;

StepAxis FlashAttention3Scene::loaded(const flash_attention_3::Trace&) {
  clock_steps();
  const int all = steps_in_all();
  if (all > 0) events_.push_back({{1, 1}, "the first exponentials"});
  if (all > 1) events_.push_back({{all, 2}, "O is divided by ℓ and written"});
  return {all, 3, "tile", {"scores", "softmax", "values"}, "steps"};
}

double FlashAttention3Scene::progress(Cursor cursor) const {
  return Scene::progress(cursor) * trace_.plan.block_k;
}

// ---- what is known at a moment ------------------------------------------------------------------------

LaneMoment FlashAttention3Scene::moment(Cursor cursor) const {
  LaneMoment now;
  const int all = steps_in_all();
  now.step = std::clamp(cursor.tile, 0, all);
  if (now.step == 0) {
    now.through = all == 0;
    return now;
  }
  const auto at = static_cast<std::size_t>(now.step - 1);
  now.now = &trace_.steps[at];
  if (at > 0) now.before = &trace_.steps[at - 1];
  now.phase = cursor.phase <= 0  ? LanePhase::scores
              : cursor.phase > 1 ? LanePhase::values
                                 : LanePhase::softmax;
  now.through = now.step == all && now.phase == LanePhase::values;
  return now;
}

/// Blocks run side by side: a visit is known when the chosen query's block has come as far.
bool FlashAttention3Scene::seen(const LaneMoment& now, const TileVisit& visit) const {
  const int step = step_of(trace_.steps, visit);
  return step > 0 && step <= now.step;
}

TileFate FlashAttention3Scene::fate(const LaneMoment& now, int q_tile, int k_tile) const {
  const TileVisit& visit = trace_.visit(q_tile, k_tile);
  if (visit.order < 0) return TileFate::never;
  if (!seen(now, visit)) return TileFate::to_come;
  const bool here = q_tile == trace_.chosen.q_tile && !now.through && k_tile == now.now->k_tile;
  return here ? TileFate::now : TileFate::gone;
}

bool FlashAttention3Scene::row_begun(const LaneMoment& now, int q_tile) const {
  for (int k = 0; k < trace_.plan.k_tiles; ++k) {
    if (seen(now, trace_.visit(q_tile, k))) return true;
  }
  return false;
}

bool FlashAttention3Scene::row_through(const LaneMoment& now, int q_tile) const {
  if (now.through) return true;
  bool any = false;
  for (int k = 0; k < trace_.plan.k_tiles; ++k) {
    const TileVisit& visit = trace_.visit(q_tile, k);
    if (visit.order < 0) continue;
    any = true;
    if (!seen(now, visit)) return false;
    if (step_of(trace_.steps, visit) == now.step && now.phase != LanePhase::values) return false;
  }
  return any;
}

Bytes FlashAttention3Scene::asked_by(const LaneMoment& now, const LedgerRow& row) const {
  const auto of = [&](double loads, double stores) {
    return Bytes{loads * static_cast<double>(row.loaded), stores * static_cast<double>(row.stored)};
  };
  if (now.through) return of(1, 1);
  if (now.step == 0) return {};
  int visits = 0, known = 0, begun = 0, through = 0;
  for (const TileVisit& visit : trace_.visits) {
    if (visit.order < 0 || visit.block != trace_.chosen.block) continue;
    ++visits;
    known += seen(now, visit) ? 1 : 0;
  }
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    begun += row_begun(now, q) ? 1 : 0;
    through += row_through(now, q) ? 1 : 0;
  }
  const double rows = trace_.plan.q_tiles;
  switch (row.tensor) {
    case Tensor::q:
      return of(begun / rows, 0);
    case Tensor::o:
    case Tensor::lse:
      return of(0, through / rows);
    default:
      return of(visits == 0 ? 1 : static_cast<double>(known) / visits, 0);
  }
}

// ---- clocks -----------------------------------------------------------------------------------------

/// When the warpgroup of the chosen query had the scores of each step, its weights, and its products with V; it
/// never goes back, since the scores of the next tile come before the products of this one.
void FlashAttention3Scene::clock_steps() {
  clocks_.clear();
  event_clocks_.clear();
  for (const flash_attention_3::Event& event : trace_.events) event_clocks_.push_back(event.clock);
  std::sort(event_clocks_.begin(), event_clocks_.end());
  event_clocks_.erase(std::unique(event_clocks_.begin(), event_clocks_.end()), event_clocks_.end());
  const int rows = trace_.chosen.query - trace_.chosen.q_tile * trace_.plan.block_q;
  const int lane = 1 + rows / 64;
  double last = 0;
  for (const flash_attention_3::Step& step : trace_.steps) {
    for (const What what : {What::done_s, What::ends_softmax, What::done_o}) {
      for (const flash_attention_3::Event& event : trace_.events) {
        const bool mine = event.what == what && event.lane == lane &&
                          event.head == trace_.chosen.head &&
                          event.q_tile == trace_.chosen.q_tile && event.k_tile == step.k_tile;
        if (mine) last = std::max(last, shown_clock(event.clock));
      }
      clocks_.push_back(last);
    }
  }
  if (!clocks_.empty()) clocks_.back() = clocked_until();
}

double FlashAttention3Scene::shown_clock(std::int64_t clock) const {
  if (!emulated()) return static_cast<double>(clock);
  const auto place = std::lower_bound(event_clocks_.begin(), event_clocks_.end(), clock);
  return static_cast<double>(place - event_clocks_.begin());
}

double FlashAttention3Scene::clocked_until() const {
  return event_clocks_.empty() ? 1 : std::max(shown_clock(event_clocks_.back()), 1.0);
}

double FlashAttention3Scene::clock_at(const LaneMoment& now) const {
  if (now.step == 0 || clocks_.empty()) return 0;
  const int phase = static_cast<int>(now.phase) - static_cast<int>(LanePhase::scores);
  return clocks_[static_cast<std::size_t>(3 * (now.step - 1) + phase)];
}

/// Those that are drawn: the producer's waits would lie over the copies. The tensor cores take one product after the
/// other: what is queued behind another begins when that is done. Two that are done at one clock share their lane.
std::vector<FlashAttention3Scene::LaneSpan> FlashAttention3Scene::lane_spans() const {
  std::vector<LaneSpan> all;
  for (const Span& span : spans_of(trace_)) {
    if (span.lane < 0 || (span.lane == 0 && span.what == Activity::waits)) continue;
    all.push_back({span, shown_clock(span.begin), shown_clock(span.end)});
  }
  const auto product = [](const LaneSpan& each) {
    return each.span.what == Activity::scores || each.span.what == Activity::values;
  };
  for (LaneSpan& each : all) {
    if (!product(each)) continue;
    for (const LaneSpan& other : all) {
      const bool ahead = product(other) && other.span.lane == each.span.lane &&
                         other.span.begin < each.span.begin && other.end > each.begin &&
                         other.end < each.end;
      if (ahead) each.begin = other.end;
    }
  }
  return all;
}

// ---- tables and hands -------------------------------------------------------------------------------

std::vector<picture::Subject> FlashAttention3Scene::subjects_of_row(std::string_view table_id,
                                                                    int row) const {
  if (table_id == "steps" && row >= 0 && row < steps_in_all()) {
    return {{"step", row}, {"k_tile", trace_.steps[static_cast<std::size_t>(row)].k_tile}};
  }
  if (table_id == "ledger" && row >= 0 && row < std::ssize(trace_.ledger)) {
    return {{"tensor", static_cast<int>(trace_.ledger[static_cast<std::size_t>(row)].tensor)}};
  }
  return Scene::subjects_of_row(table_id, row);
}

std::optional<picture::Subject> FlashAttention3Scene::subject_of_column(
    std::string_view table_id, std::string_view column_id) const {
  if (table_id != "steps" || (column_id != "m" && column_id != "l")) return std::nullopt;
  return picture::Subject{std::string(column_id), 0};
}

std::optional<Cursor> FlashAttention3Scene::leads_to(const View&, const picture::Key& item) const {
  if (!item.is({"S"}) || item.i != trace_.chosen.q_tile) return std::nullopt;
  for (int step = 1; step <= steps_in_all(); ++step) {
    if (trace_.steps[static_cast<std::size_t>(step - 1)].k_tile == item.j) {
      return Cursor{step, steps().last_phase(step)};
    }
  }
  return std::nullopt;
}

/// A tile of queries that is clicked: its last query is followed.
std::optional<lab::Settings> FlashAttention3Scene::dropped(const View&, const picture::Key& item,
                                                           const picture::Key&) const {
  if (!item.is({"Q"}) || item.i < 0 || item.i >= trace_.plan.q_tiles) return std::nullopt;
  const int last = std::min((item.i + 1) * trace_.plan.block_q, trace_.shape.length) - 1;
  return lab::Settings{{"query", std::int64_t{last}}};
}

std::vector<std::string> FlashAttention3Scene::stage_knobs() const {
  return {"variant", "head_dim", "mask"};
}

// ---- numbers ----------------------------------------------------------------------------------------

std::vector<picture::Symbol> FlashAttention3Scene::symbols(const View&) const {
  return {{"m",
           {"m", 0},
           4,
           "The largest score of the query so far. Weights are measured from it, so that none is "
           "larger than 1.",
           {}},
          {"ℓ",
           {"l", 0},
           5,
           "The sum of the query's weights so far, on the scale of m. In the end O is divided by "
           "it.",
           {}}};
}

std::vector<Readout> FlashAttention3Scene::readouts(const View& view) const {
  using flash_attention_3::Step;
  const LaneMoment now = moment(view.cursor);
  const std::string kernel = "recorded by the kernel while it ran on " + report_.device.name;
  // ℓ of the tile is there with its weights: before that it is that of the tile before.
  const Step* sums = now.phase >= LanePhase::softmax ? now.now : now.before;
  const auto text = [](const Step* step, float Step::*field) {
    return step == nullptr ? std::string("–") : number(static_cast<double>(step->*field), 2);
  };
  std::vector<Readout> all = {
      {"m", "maximum m", text(now.now, &Step::m_after), "", lab::Provenance::traced, kernel},
      {"l", "sum ℓ", text(sums, &Step::l), "", lab::Provenance::traced, kernel}};
  all[0].about = {"m", 0};
  all[1].about = {"l", 0};
  double asked = 0;
  for (const LedgerRow& row : trace_.ledger) {
    const Bytes bytes = asked_by(now, row);
    asked += bytes.loaded + bytes.stored;
  }
  all.push_back({"asked", "asked by the block", bytes_text(asked), "",
                 now.through ? lab::Provenance::traced : lab::Provenance::derived,
                 now.through ? kernel
                             : "the traced bytes of each tensor, times the share of its tiles that "
                               "are through"});
  if (now.through && now.step > 0) {
    const auto c = static_cast<std::size_t>(trace_.chosen.component);
    const double got = static_cast<double>(trace_.answer.o[c]), exact = trace_.answer.exact[c];
    const bool wrong = (broken() && trace_.result.wrong > 0) ||
                       (fails(report_, "output") && !words::close(got, exact, 1e-2));
    all.push_back({"error", "off the exact O by", number(std::abs(got - exact), 4), "",
                   lab::Provenance::derived,
                   fmt::format("|{} − {}|: component {} of the query, against double on the same "
                               "rounded inputs",
                               number(got, 5), number(exact, 5), trace_.chosen.component),
                   wrong ? Readout::wrong : Readout::good});
  }
  return all;
}

SourceMark FlashAttention3Scene::source(const View& view) const {
  using flash_attention_3::Mark;
  const LaneMoment now = moment(view.cursor);
  const auto at = [](LanePhase phase) {
    return static_cast<int>(phase == LanePhase::scores    ? Mark::issues_s
                            : phase == LanePhase::softmax ? Mark::weights
                                                          : Mark::issues_o);
  };
  SourceMark mark = source_mark(flash_attention_3::kSourcePath, trace_.lines,
                                now.now == nullptr ? -1 : at(now.phase));
  if (now.now == nullptr) return mark;
  const auto say = [&](LanePhase phase, std::string value) {
    const int line = trace_.lines[static_cast<std::size_t>(at(phase))];
    if (line > 0) mark.values[line] = std::move(value);
  };
  say(LanePhase::scores, fmt::format("tile = {}", now.now->k_tile));
  if (now.phase >= LanePhase::softmax) {
    say(LanePhase::softmax,
        fmt::format("m = {}, rescale = {}", number(static_cast<double>(now.now->m_after), 2),
                    number(static_cast<double>(now.now->rescale), 3)));
  }
  if (now.phase == LanePhase::values) {
    say(LanePhase::values, fmt::format("l = {}", number(static_cast<double>(now.now->l), 2)));
  }
  return mark;
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(flash_attention_3, FlashAttention3Scene)
