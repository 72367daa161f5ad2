#include "scenes/attention/attention_backward/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using attention::Tensor, attention::TileVisit;
using words::number;

StepAxis AttentionBackwardScene::loaded(const attention_backward::Trace&) {
  const int all = steps_in_all();
  if (all > 0) events_.push_back({{1, 1}, "dS: the first tile"});
  if (all > 1) events_.push_back({{all, 2}, "dQ has all its parts"});
  return {all, 3, "tile", {"P", "dS", "sums"}, "steps"};
}

double AttentionBackwardScene::progress(Cursor cursor) const {
  return Scene::progress(cursor) * trace_.plan.block_k;
}

// ---- what is known at a moment ------------------------------------------------------------------------

BackwardMoment AttentionBackwardScene::moment(Cursor cursor) const {
  BackwardMoment now;
  const int all = steps_in_all();
  now.step = std::clamp(cursor.tile, 0, all);
  if (now.step == 0) {
    now.through = all == 0;
    return now;
  }
  now.now = &trace_.steps[static_cast<std::size_t>(now.step - 1)];
  now.phase = cursor.phase <= 0  ? BackwardPhase::weights
              : cursor.phase > 1 ? BackwardPhase::sums
                                 : BackwardPhase::gradients;
  now.through = now.step == all && now.phase == BackwardPhase::sums;
  return now;
}

/// Blocks run side by side: a visit is known when the chosen query's blocks have come as far.
TileFate AttentionBackwardScene::fate(const BackwardMoment& now, int q_tile, int k_tile) const {
  const TileVisit& visit = trace_.visit(q_tile, k_tile);
  if (visit.order < 0) return TileFate::never;
  const int step = step_of(trace_.steps, visit);
  if (step == 0 || step > now.step) return TileFate::to_come;
  const bool chosen = q_tile == trace_.chosen.q_tile;
  // Two blocks may come to the chosen query at a time; the picture has one after the other.
  if (chosen && step_of_tile(k_tile) > now.step) return TileFate::to_come;
  if (now.through) return TileFate::gone;
  if (chosen) return k_tile == now.now->k_tile ? TileFate::now : TileFate::gone;
  return step == now.step && visit.order == now.now->order ? TileFate::now : TileFate::gone;
}

/// The chosen query's step at a tile of keys, from 1; 0: there is none.
int AttentionBackwardScene::step_of_tile(int k_tile) const {
  for (int step = 1; step <= steps_in_all(); ++step) {
    if (trace_.steps[static_cast<std::size_t>(step - 1)].k_tile == k_tile) return step;
  }
  return 0;
}

bool AttentionBackwardScene::row_begun(const BackwardMoment& now, int q_tile) const {
  for (int k = 0; k < trace_.plan.k_tiles; ++k) {
    const int step = step_of(trace_.steps, trace_.visit(q_tile, k));
    if (step > 0 && step <= now.step) return true;
  }
  return false;
}

bool AttentionBackwardScene::column_begun(const BackwardMoment& now, int k_tile) const {
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    const TileFate tile = fate(now, q, k_tile);
    if (tile != TileFate::never && tile != TileFate::to_come) return true;
  }
  return false;
}

/// dK and dV are written when their block has been through all heads that share them.
bool AttentionBackwardScene::column_through(const BackwardMoment& now, int k_tile) const {
  if (now.through) return true;
  const int group = trace_.shape.heads / trace_.shape.kv_heads;
  if (trace_.chosen.head % group != group - 1) return false;
  bool any = false;
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    const TileFate tile = fate(now, q, k_tile);
    if (tile == TileFate::never) continue;
    if (tile != TileFate::gone) return false;
    any = true;
  }
  return any;
}

/// Whether the chosen query's number of a key is there by now.
bool AttentionBackwardScene::key_known(const BackwardMoment& now, int key, bool weight) const {
  const int step = step_of_tile(key / trace_.plan.block_k);
  if (step == 0 || step > now.step) return false;
  return step < now.step || weight || now.phase >= BackwardPhase::gradients;
}

/// What the chosen component of dQ comes to before the step, and after it: recorded parts, added up and scaled.
std::pair<double, double> AttentionBackwardScene::sums_of_dq(const BackwardMoment& now) const {
  const double scale = 1 / std::sqrt(static_cast<double>(trace_.shape.head_dim));
  double before = 0, after = 0;
  for (int step = 0; step < now.step; ++step) {
    before = after;
    after += static_cast<double>(trace_.steps[static_cast<std::size_t>(step)].dq) * scale;
  }
  return {before, after};
}

/// The key of the step's tile whose weight is largest; none where the chosen query sees none of them.
std::optional<int> AttentionBackwardScene::heaviest_key(const BackwardMoment& now) const {
  if (now.now == nullptr) return std::nullopt;
  const std::vector<float>& p = trace_.row.p;
  const int first = now.now->k_tile * trace_.plan.block_k;
  const int end = std::min(first + trace_.plan.block_k, trace_.shape.length);
  const auto most = std::max_element(p.begin() + first, p.begin() + end);
  if (!(*most > 0)) return std::nullopt;
  return static_cast<int>(most - p.begin());
}

double AttentionBackwardScene::share_of_visits(const BackwardMoment& now) const {
  int all = 0, known = 0;
  for (const TileVisit& visit : trace_.visits) {
    if (visit.order < 0) continue;
    const int step = step_of(trace_.steps, visit);
    ++all;
    known += step > 0 && step <= now.step ? 1 : 0;
  }
  return all == 0 || now.through ? 1.0 : static_cast<double>(known) / all;
}

Bytes AttentionBackwardScene::asked_by(const BackwardMoment& now,
                                       const attention::LedgerRow& row) const {
  const auto of = [&](double loads, double stores) {
    return Bytes{loads * static_cast<double>(row.loaded), stores * static_cast<double>(row.stored)};
  };
  if (now.through) return of(1, 1);
  if (now.step == 0) return {};
  int begun = 0, written = 0;
  for (int k = 0; k < trace_.plan.k_tiles; ++k) {
    begun += column_begun(now, k) ? 1 : 0;
    written += column_through(now, k) ? 1 : 0;
  }
  const double tiles = trace_.plan.k_tiles;
  switch (row.tensor) {
    case Tensor::o:
    case Tensor::lse:
      return of(1, 0);  // D's kernel comes first
    case Tensor::k:
    case Tensor::v:
      return of(begun / tiles, 0);
    case Tensor::dk:
    case Tensor::dv:
      return of(0, written / tiles);
    case Tensor::dq:
      return {};  // made of its sums at the end
    default:
      return of(share_of_visits(now), share_of_visits(now));
  }
}

// ---- tables -----------------------------------------------------------------------------------------

Cursor AttentionBackwardScene::known(const lab::Table& table, int row, int column) const {
  if (table.id == "passes") return {};  // it follows from the knobs alone
  return Scene::known(table, row, column);
}

std::vector<picture::Subject> AttentionBackwardScene::subjects_of_row(std::string_view table_id,
                                                                      int row) const {
  if (table_id == "steps" && row >= 0 && row < steps_in_all()) {
    return {{"step", row}, {"k_tile", trace_.steps[static_cast<std::size_t>(row)].k_tile}};
  }
  if (table_id == "ledger" && row >= 0 && row < std::ssize(trace_.ledger)) {
    return {{"tensor", static_cast<int>(trace_.ledger[static_cast<std::size_t>(row)].tensor)}};
  }
  return Scene::subjects_of_row(table_id, row);
}

std::optional<picture::Subject> AttentionBackwardScene::subject_of_column(
    std::string_view table_id, std::string_view column_id) const {
  if (table_id != "steps" || column_id != "dq") return std::nullopt;
  return picture::Subject{"tensor", static_cast<int>(Tensor::dq)};
}

int AttentionBackwardScene::table_row(std::string_view table_id, const View& view) const {
  if (table_id == "visits" && view.cursor.tile > 0) {
    const BackwardMoment now = moment(view.cursor);
    return now.now != nullptr ? now.now->k_tile : trace_.chosen.q_tile;
  }
  return Scene::table_row(table_id, view);
}

// ---- hands on the picture ---------------------------------------------------------------------------

std::optional<Cursor> AttentionBackwardScene::leads_to(const View&,
                                                       const picture::Key& item) const {
  if (!item.is({"S"}) || item.i != trace_.chosen.q_tile) return std::nullopt;
  const int step = step_of_tile(item.j);
  if (step == 0) return std::nullopt;
  return Cursor{step, steps().last_phase(step)};
}

/// A tile of queries that is clicked: its last query is followed.
std::optional<lab::Settings> AttentionBackwardScene::dropped(const View&, const picture::Key& item,
                                                             const picture::Key&) const {
  if (!item.is({"Q"}) || item.i < 0 || item.i >= trace_.plan.q_tiles) return std::nullopt;
  const int last = std::min((item.i + 1) * trace_.plan.block_q, trace_.shape.length) - 1;
  return lab::Settings{{"query", std::int64_t{last}}};
}

std::vector<std::string> AttentionBackwardScene::stage_knobs() const {
  return {"mask", "heads", "seq"};
}

// ---- numbers ----------------------------------------------------------------------------------------

std::vector<picture::Symbol> AttentionBackwardScene::symbols(const View&) const {
  return {{"D",
           {"d", 0},
           4,
           "The sum of dO ∘ O over the columns of the query: how much its weights would pull "
           "together. It is taken from each dP, since weights of a softmax add up to 1.",
           {}}};
}

std::vector<Readout> AttentionBackwardScene::readouts(const View& view) const {
  const BackwardMoment now = moment(view.cursor);
  const std::string kernel = "recorded by the kernel while it ran on " + report_.device.name;
  std::vector<Readout> all = {
      {"lse", "log-sum-exp", number(static_cast<double>(trace_.row.lse), 2), "",
       lab::Provenance::traced, "of the chosen query, " + kernel + " of the forward pass"},
      {"d", "D", number(static_cast<double>(trace_.row.d), 2), "", lab::Provenance::traced,
       "sum of dO ∘ O of the chosen query, " + kernel}};
  all[1].about = {"d", 0};
  const auto [before, after] = sums_of_dq(now);
  const double so_far = now.phase == BackwardPhase::sums ? after : before;
  all.push_back({"dq", fmt::format("dQ[{}] so far", trace_.chosen.component),
                 now.step == 0 ? "–" : number(so_far, 4), "", lab::Provenance::derived,
                 "parts that blocks added, recorded; their sum, times 1/√d", Readout::accent});
  all.back().about = {"tensor", static_cast<int>(Tensor::dq)};
  int tiles = 0;
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    for (int k = 0; k < trace_.plan.k_tiles; ++k) {
      const TileFate tile = fate(now, q, k);
      tiles += tile != TileFate::never && tile != TileFate::to_come ? 1 : 0;
    }
  }
  all.push_back({"tiles", "tiles of scores", std::to_string(tiles),
                 fmt::format("of {}", trace_.visits.size()), lab::Provenance::traced,
                 fmt::format("computed by now, of head {}; {} are at the end", trace_.chosen.head,
                             visited(trace_))});
  double asked = 0;
  for (const attention::LedgerRow& row : trace_.ledger) {
    const Bytes bytes = asked_by(now, row);
    asked += bytes.loaded + bytes.stored;
  }
  all.push_back({"asked", "asked of memory", bytes_text(asked), "",
                 now.through ? lab::Provenance::traced : lab::Provenance::derived,
                 now.through ? kernel
                             : "the traced bytes of each tensor, times the share of its tiles that "
                               "are through"});
  if (now.through && now.step > 0) {
    const auto c = static_cast<std::size_t>(trace_.chosen.component);
    const double got = static_cast<double>(trace_.row.dq[c]), exact = trace_.row.exact_dq[c];
    const bool wrong = (broken() && trace_.result.wrong > 0) ||
                       (fails(report_, "dq") && !words::close(got, exact, 1e-2));
    all.push_back({"error", "off the exact dQ by", number(std::abs(got - exact), 4), "",
                   lab::Provenance::derived,
                   fmt::format("|{} − {}|: component {} of the query, against double on the same "
                               "rounded inputs",
                               number(got, 5), number(exact, 5), trace_.chosen.component),
                   wrong ? Readout::wrong : Readout::good});
  }
  return all;
}

SourceMark AttentionBackwardScene::source(const View& view) const {
  using attention_backward::Mark;
  const BackwardMoment now = moment(view.cursor);
  const auto at = [](BackwardPhase phase) {
    return static_cast<int>(phase == BackwardPhase::weights     ? Mark::scores
                            : phase == BackwardPhase::gradients ? Mark::d_s
                                                                : Mark::d_q);
  };
  SourceMark mark = source_mark(attention_backward::kSourcePath, trace_.lines,
                                now.now == nullptr ? -1 : at(now.phase));
  if (now.now == nullptr) return mark;
  const auto say = [&](BackwardPhase phase, std::string value) {
    const int line = trace_.lines[static_cast<std::size_t>(at(phase))];
    if (line > 0) mark.values[line] = std::move(value);
  };
  say(BackwardPhase::weights, fmt::format("tile = {}", now.now->k_tile));
  if (now.phase >= BackwardPhase::gradients) {
    say(BackwardPhase::gradients,
        fmt::format("D = {}", number(static_cast<double>(trace_.row.d), 2)));
  }
  if (now.phase == BackwardPhase::sums) {
    say(BackwardPhase::sums, fmt::format("adds {}", number(static_cast<double>(now.now->dq), 3)));
  }
  return mark;
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(attention_backward, AttentionBackwardScene)
