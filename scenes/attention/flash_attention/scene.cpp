#include "scenes/attention/flash_attention/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/attention/flash_attention/run/explained.hpp"
#include "kernels/attention/shared/problem.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using flash_attention::Break, flash_attention::Variant;
using words::number;

StepAxis FlashAttentionScene::loaded(const flash_attention::Trace&) {
  find_events();
  flash_attention::Params asked = flash_attention::knob_table().params(report_.params).params();
  asked.broken = Break::none;
  const std::vector<int> begins =
      attention::begins_of(attention::document_lengths(asked.seq, asked.seed));
  for (const Variant each : all_of<Variant>()) {
    Costs& costs = costs_[static_cast<std::size_t>(each)] = {};
    flash_attention::Params params = asked;
    // Neither naive nor flash-1 has 8-bit scores.
    if (each != variant()) params.dtype = flash_attention::DataType::bf16;
    params.variant = each;
    const flash_attention::Plan plan = flash_attention::formula_plan_of(params);
    const auto task = flash_attention::task_of(params);
    const auto ledger = flash_attention::ledger_of(plan, task, params.broken, begins);
    for (std::size_t tensor = 0; tensor < ledger.size(); ++tensor) {
      const auto bytes = static_cast<double>(ledger[tensor].loaded + ledger[tensor].stored);
      if (bytes > 0) costs.bytes.emplace_back(static_cast<flash_attention::Tensor>(tensor), bytes);
      costs.total += bytes;
    }
    costs.flops = flash_attention::tile_flops(plan, task, begins);
  }
  StepAxis axis{steps_in_all(), 3, "tile", {"scores", "rescale", "values"}, "steps"};
  if (is_naive()) {
    // All tiles of scores, then the softmax of all rows, then the product with V.
    axis.phases = 1;
    axis.phase_names = {""};
    axis.folded = steps_in_all() > 0 ? 3 : 0;
  }
  return axis;
}

// ---- tables -----------------------------------------------------------------------------------------

Cursor FlashAttentionScene::known(const lab::Table& table, int row, int column) const {
  // It follows from the knobs alone.
  if (table.id == "lengths") return {};
  return Scene::known(table, row, column);
}

std::optional<picture::Subject> FlashAttentionScene::subject_of_column(
    std::string_view table_id, std::string_view column_id) const {
  if (table_id != "steps" || is_naive()) return std::nullopt;
  if (column_id == "m" || column_id == "l" || column_id == "o") {
    return picture::Subject{std::string(column_id), 0};
  }
  return std::nullopt;
}

int FlashAttentionScene::table_row(std::string_view table_id, const View& view) const {
  if (table_id == "visits" && view.cursor.tile > 0) {
    return trace_.chosen.q_tile;
  }
  return Scene::table_row(table_id, view);
}

// ---- hands on the picture ---------------------------------------------------------------------------

std::vector<std::string> FlashAttentionScene::stage_knobs() const {
  return {"variant", "mask", "seq"};
}

// ---- words that name things -------------------------------------------------------------------------

std::vector<picture::Symbol> FlashAttentionScene::symbols(const View&) const {
  if (is_naive()) return {};
  const bool own = variant() == Variant::flash_1;
  const auto code = [&](const char* word) {
    return own ? std::vector<std::string>{word} : std::vector<std::string>{};
  };
  return {
      {"m",
       {"m", 0},
       4,
       "The query's largest score so far. Weights are relative to it, so none is larger than 1.",
       code("m_after")},
      {"ℓ",
       {"l", 0},
       5,
       "The sum of the query's weights so far, relative to the same maximum m. O is divided by it.",
       code("l_after")},
      {"O",
       {"o", 0},
       tone_of(flash_attention::Tensor::o),
       "The query's output so far: the sum of weight × value over the keys seen. One component is "
       "followed.",
       {"o"}}};
}

// ---- numbers ----------------------------------------------------------------------------------------

std::vector<Readout> FlashAttentionScene::readouts(const View& view) const {
  const FlashMoment now = moment(view.cursor);
  const std::string kernel = kernel_words();
  std::vector<Readout> all;
  if (!is_naive()) {
    const bool softened = now.phase == FlashPhase::values;
    // The tile's ℓ and O exist once its values are added; until then, those of the previous tile.
    const flash_attention::Step* sums = softened ? now.now : now.before;
    const auto text = [](const flash_attention::Step* step, float flash_attention::Step::*field,
                         int digits) {
      return step == nullptr ? std::string("–") : number(static_cast<double>(step->*field), digits);
    };
    all = {{"m", "maximum m", text(now.now, &flash_attention::Step::m_after, 2), "",
            lab::Provenance::traced, kernel},
           {"l", "sum ℓ", text(sums, &flash_attention::Step::l, 2), "", lab::Provenance::traced,
            kernel}};
    all[0].about = {"m", 0};
    all[1].about = {"l", 0};
    if (trace_.o_recorded) {
      all.push_back({"o", fmt::format("O[{}] so far", trace_.chosen.component),
                     text(sums, &flash_attention::Step::o, 3), "", lab::Provenance::traced,
                     variant() == Variant::flash_1 ? kernel + ", divided by ℓ at every visit"
                                                   : kernel + ", not yet divided by ℓ",
                     Readout::accent});
      all.back().about = {"o", 0};
    }
  }
  all.push_back(tiles_readout(now));
  all.push_back(asked_readout(now, "requested from memory"));
  if (now.through && now.step > 0) {
    all.push_back(
        error_readout("error vs exact O", "output", trace_.answer.o, trace_.answer.exact));
  }
  return all;
}

// ---- the kernel -------------------------------------------------------------------------------------

SourceMark FlashAttentionScene::source(const View& view) const {
  using flash_attention::Mark;
  const FlashMoment now = moment(view.cursor);
  const std::string_view path = flash_attention::source_path(variant(), trace_.dtype);
  const flash_attention::Step step = now.now == nullptr ? flash_attention::Step{} : *now.now;
  const auto text = [](float value, int digits) {
    return number(static_cast<double>(value), digits);
  };
  const Said tile{FlashPhase::scores, static_cast<int>(Mark::scores),
                  fmt::format("tile = {}", step.k_tile)};
  if (is_naive()) {
    return lines_of(now, path,
                    {tile,
                     {FlashPhase::weights, static_cast<int>(Mark::weights), "a row of P"},
                     {FlashPhase::values, static_cast<int>(Mark::values), "O = P V"}});
  }
  std::string sums = fmt::format("l = {}", text(step.l, 2));
  if (trace_.o_recorded) sums += fmt::format(", o = {}", text(step.o, 3));
  const Mark softmax = variant() == Variant::flash_1 ? Mark::rescale : Mark::softmax;
  return lines_of(
      now, path,
      {tile,
       {FlashPhase::rescale, static_cast<int>(softmax),
        fmt::format("m = {}, rescale = {}", text(step.m_after, 2), text(step.rescale, 3))},
       {FlashPhase::values, static_cast<int>(Mark::values), std::move(sums)}});
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(flash_attention, FlashAttentionScene)
