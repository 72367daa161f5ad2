#include "scenes/attention/flash_attention_3/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using attention::Tensor, attention::TileVisit;
using flash_attention_3::Activity, flash_attention_3::Span, flash_attention_3::What;
using words::number;

StepAxis FlashAttention3Scene::loaded(const flash_attention_3::Trace&) {
  clock_steps();
  find_beats();
  const int all = steps_in_all();
  if (all > 0) events_.push_back({{1, 1}, "the first exponentials"});
  if (all > 1) events_.push_back({{all, 2}, "O is divided by ℓ and written"});
  return {all, 3, "tile", {"scores", "softmax", "values"}, "steps"};
}

// ---- what is known at a moment ------------------------------------------------------------------------

TileFate FlashAttention3Scene::fate(const LaneMoment& now, int q_tile, int k_tile) const {
  const TileVisit& visit = trace_.visit(q_tile, k_tile);
  if (visit.order < 0) return TileFate::never;
  if (!seen(now, visit)) return TileFate::to_come;
  const bool here = q_tile == trace_.chosen.q_tile && !now.through && k_tile == now.now->k_tile;
  return here ? TileFate::now : TileFate::gone;
}

Bytes FlashAttention3Scene::shares_by(const LaneMoment& now, Tensor tensor) const {
  switch (tensor) {
    case Tensor::q:
      return {share_of_rows(now, true), 0};
    case Tensor::o:
    case Tensor::lse:
      return {0, share_of_rows(now, false)};
    default:
      return {share_of_visits(now, trace_.chosen.block), 0};
  }
}

// ---- clocks -----------------------------------------------------------------------------------------

/// When the chosen query's warpgroup had each step's scores, weights, and products with V. Never goes back: the next
/// tile's scores come before this tile's products.
void FlashAttention3Scene::clock_steps() {
  clocks_.clear();
  const int rows = trace_.chosen.query - trace_.chosen.q_tile * trace_.plan.block_q;
  const int lane = 1 + rows / 64;
  double last = 0;
  for (const flash_attention_3::Step& step : trace_.steps) {
    for (const What what : {What::done_s, What::ends_softmax, What::done_o}) {
      for (const flash_attention_3::Event& event : trace_.events) {
        const bool mine = event.what == what && event.lane == lane &&
                          event.head == trace_.chosen.head &&
                          event.q_tile == trace_.chosen.q_tile && event.k_tile == step.k_tile;
        if (mine) last = std::max(last, static_cast<double>(event.clock));
      }
      clocks_.push_back(last);
    }
  }
  if (!clocks_.empty()) clocks_.back() = clocked_until();
}

double FlashAttention3Scene::clocked_until() const {
  std::int64_t last = 1;
  for (const flash_attention_3::Event& event : trace_.events) last = std::max(last, event.clock);
  return static_cast<double>(last);
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
    all.push_back({span, static_cast<double>(span.begin), static_cast<double>(span.end)});
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
      // Seen to be done only after a later one: in their order, it is over when that is issued.
      const bool late = product(other) && other.span.lane == each.span.lane &&
                        each.span.begin < other.span.begin && other.span.end <= each.span.end;
      if (emulated() && late) each.end = std::min(each.end, static_cast<double>(other.span.begin));
    }
  }
  return all;
}

/// Without times, in beats: waits end none, since they only wait for the others.
void FlashAttention3Scene::find_beats() {
  std::vector<std::pair<double, double>> things;
  for (const LaneSpan& each : lane_spans()) {
    if (each.span.what != Activity::waits) things.emplace_back(each.begin, each.end);
  }
  if (!emulated()) things.clear();
  beats_ = picture::Beats(things);
}

// ---- tables and hands -------------------------------------------------------------------------------

std::optional<picture::Subject> FlashAttention3Scene::subject_of_column(
    std::string_view table_id, std::string_view column_id) const {
  if (table_id != "steps" || (column_id != "m" && column_id != "l")) return std::nullopt;
  return picture::Subject{std::string(column_id), 0};
}

std::vector<std::string> FlashAttention3Scene::stage_knobs() const {
  return {"variant", "head_dim", "mask"};
}

// ---- numbers ----------------------------------------------------------------------------------------

std::vector<picture::Symbol> FlashAttention3Scene::symbols(const View&) const {
  return {
      {"m",
       {"m", 0},
       4,
       "The query's largest score so far. Weights are relative to it, so none is larger than 1.",
       {}},
      {"ℓ",
       {"l", 0},
       5,
       "The sum of the query's weights so far, on the scale of m. O is divided by it at the end.",
       {}}};
}

std::vector<Readout> FlashAttention3Scene::readouts(const View& view) const {
  using flash_attention_3::Step;
  const LaneMoment now = moment(view.cursor);
  // The tile's ℓ exists with its weights; until then, that of the previous tile.
  const Step* sums = now.phase >= LanePhase::softmax ? now.now : now.before;
  const auto text = [](const Step* step, float Step::*field) {
    return step == nullptr ? std::string("–") : number(static_cast<double>(step->*field), 2);
  };
  std::vector<Readout> all = {
      {"m", "maximum m", text(now.now, &Step::m_after), "", lab::Provenance::traced,
       kernel_words()},
      {"l", "sum ℓ", text(sums, &Step::l), "", lab::Provenance::traced, kernel_words()}};
  all[0].about = {"m", 0};
  all[1].about = {"l", 0};
  all.push_back(asked_readout(now, "requested by block"));
  if (now.through && now.step > 0) {
    all.push_back(
        error_readout("error vs exact O", "output", trace_.answer.o, trace_.answer.exact));
  }
  return all;
}

SourceMark FlashAttention3Scene::source(const View& view) const {
  using flash_attention_3::Mark;
  const LaneMoment now = moment(view.cursor);
  const flash_attention_3::Step step = now.now == nullptr ? flash_attention_3::Step{} : *now.now;
  const auto text = [](float value, int digits) {
    return number(static_cast<double>(value), digits);
  };
  return lines_of(
      now, flash_attention_3::kSourcePath,
      {{LanePhase::scores, static_cast<int>(Mark::issues_s), fmt::format("tile = {}", step.k_tile)},
       {LanePhase::softmax, static_cast<int>(Mark::weights),
        fmt::format("m = {}, rescale = {}", text(step.m_after, 2), text(step.rescale, 3))},
       {LanePhase::values, static_cast<int>(Mark::issues_o),
        fmt::format("l = {}", text(step.l, 2))}});
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(flash_attention_3, FlashAttention3Scene)
