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
  if (all > 1) events_.push_back({{all, 2}, "dQ is complete"});
  return {all, 3, "tile", {"P", "dS", "sums"}, "steps"};
}

// ---- what is known at a moment ------------------------------------------------------------------------

/// Blocks run side by side: a visit is known once the chosen query's blocks have got that far.
TileFate AttentionBackwardScene::fate(const BackwardMoment& now, int q_tile, int k_tile) const {
  const TileVisit& visit = trace_.visit(q_tile, k_tile);
  if (visit.order < 0) return TileFate::never;
  const int step = step_of(trace_.steps, visit);
  if (step == 0 || step > now.step) return TileFate::to_come;
  const bool chosen = q_tile == trace_.chosen.q_tile;
  // Two blocks may reach the chosen query at the same time; the picture shows one after the other.
  if (chosen && step_of_tile(k_tile) > now.step) return TileFate::to_come;
  if (now.through) return TileFate::gone;
  if (chosen) return k_tile == now.now->k_tile ? TileFate::now : TileFate::gone;
  return step == now.step && visit.order == now.now->order ? TileFate::now : TileFate::gone;
}

bool AttentionBackwardScene::column_begun(const BackwardMoment& now, int k_tile) const {
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    const TileFate tile = fate(now, q, k_tile);
    if (tile != TileFate::never && tile != TileFate::to_come) return true;
  }
  return false;
}

/// dK and dV are written once their block has processed all heads that share them.
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

/// Whether the chosen query's number for a key is known yet.
bool AttentionBackwardScene::key_known(const BackwardMoment& now, int key, bool weight) const {
  const int step = step_of_tile(key / trace_.plan.block_k);
  if (step == 0 || step > now.step) return false;
  return step < now.step || weight || now.phase >= BackwardPhase::gradients;
}

/// The chosen component of dQ before the step, and after it: recorded parts, summed and scaled.
std::pair<double, double> AttentionBackwardScene::sums_of_dq(const BackwardMoment& now) const {
  const double scale = 1 / std::sqrt(static_cast<double>(trace_.shape.head_dim));
  double before = 0, after = 0;
  for (int step = 0; step < now.step; ++step) {
    before = after;
    after += static_cast<double>(trace_.steps[static_cast<std::size_t>(step)].dq) * scale;
  }
  return {before, after};
}

/// The key of the step's tile with the largest weight; none if the chosen query sees no key there.
std::optional<int> AttentionBackwardScene::heaviest_key(const BackwardMoment& now) const {
  if (now.now == nullptr) return std::nullopt;
  const std::vector<float>& p = trace_.row.p;
  const int first = now.now->k_tile * trace_.plan.block_k;
  const int end = std::min(first + trace_.plan.block_k, trace_.shape.length);
  const auto most = std::max_element(p.begin() + first, p.begin() + end);
  if (!(*most > 0)) return std::nullopt;
  return static_cast<int>(most - p.begin());
}

Bytes AttentionBackwardScene::shares_by(const BackwardMoment& now, Tensor tensor) const {
  int begun = 0, written = 0;
  for (int k = 0; k < trace_.plan.k_tiles; ++k) {
    begun += column_begun(now, k) ? 1 : 0;
    written += column_through(now, k) ? 1 : 0;
  }
  const double tiles = trace_.plan.k_tiles;
  switch (tensor) {
    case Tensor::o:
    case Tensor::lse:
      return {1, 0};  // D's kernel comes first
    case Tensor::k:
    case Tensor::v:
      return {begun / tiles, 0};
    case Tensor::dk:
    case Tensor::dv:
      return {0, written / tiles};
    case Tensor::dq:
      return {};  // made from its sums at the end
    default:
      return {share_of_visits(now), share_of_visits(now)};
  }
}

// ---- tables -----------------------------------------------------------------------------------------

Cursor AttentionBackwardScene::known(const lab::Table& table, int row, int column) const {
  if (table.id == "passes") return {};  // it follows from the knobs alone
  return Scene::known(table, row, column);
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

std::vector<std::string> AttentionBackwardScene::stage_knobs() const {
  return {"mask", "heads", "seq"};
}

// ---- numbers ----------------------------------------------------------------------------------------

std::vector<picture::Symbol> AttentionBackwardScene::symbols(const View&) const {
  return {{"D",
           {"d", 0},
           4,
           "The sum of dO ∘ O over the query's columns: the pull common to all its weights. It is "
           "subtracted from each dP, since softmax weights add up to 1.",
           {}}};
}

std::vector<Readout> AttentionBackwardScene::readouts(const View& view) const {
  const BackwardMoment now = moment(view.cursor);
  const std::string kernel = kernel_words();
  std::vector<Readout> all = {
      {"lse", "log-sum-exp", number(static_cast<double>(trace_.row.lse), 2), "",
       lab::Provenance::traced, "of the chosen query, " + kernel + ", forward pass"},
      {"d", "D", number(static_cast<double>(trace_.row.d), 2), "", lab::Provenance::traced,
       "sum of dO ∘ O of the chosen query, " + kernel}};
  all[1].about = {"d", 0};
  const auto [before, after] = sums_of_dq(now);
  const double so_far = now.phase == BackwardPhase::sums ? after : before;
  all.push_back({"dq", fmt::format("dQ[{}] so far", trace_.chosen.component),
                 now.step == 0 ? "–" : number(so_far, 4), "", lab::Provenance::derived,
                 "recorded parts from the blocks, summed, times 1/√d", Readout::accent});
  all.back().about = {"tensor", static_cast<int>(Tensor::dq)};
  all.push_back(tiles_readout(now));
  all.push_back(asked_readout(now, "requested from memory"));
  Readout error = error_readout("error vs exact dQ", "dq", trace_.row.dq, trace_.row.exact_dq);
  // It has its place from the start, so that the readouts below do not move under the pointer.
  if (!now.through || now.step == 0) {
    error.value = "–";
    error.detail = "Known when the pass ends.";
    error.look = Readout::plain;
  }
  all.push_back(std::move(error));
  return all;
}

SourceMark AttentionBackwardScene::source(const View& view) const {
  using attention_backward::Mark;
  const BackwardMoment now = moment(view.cursor);
  const attention_backward::Step step = now.now == nullptr ? attention_backward::Step{} : *now.now;
  return lines_of(now, attention_backward::kSourcePath,
                  {{BackwardPhase::weights, static_cast<int>(Mark::scores),
                    fmt::format("tile = {}", step.k_tile)},
                   {BackwardPhase::gradients, static_cast<int>(Mark::d_s),
                    fmt::format("D = {}", number(static_cast<double>(trace_.row.d), 2))},
                   {BackwardPhase::sums, static_cast<int>(Mark::d_q),
                    fmt::format("adds {}", number(static_cast<double>(step.dq), 3))}});
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(attention_backward, AttentionBackwardScene)
