#include "scenes/attention/flash_attention/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/attention/flash_attention/run/ledger.hpp"
#include "kernels/attention/shared/problem.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using flash_attention::Break, flash_attention::Variant;
using words::number;

StepAxis FlashAttentionScene::loaded(const flash_attention::Trace&) {
  find_events();
  flash_attention::Params params = flash_attention::knob_table().params(report_.params);
  params.broken = Break::none;
  const std::vector<int> begins =
      attention::begins_of(attention::document_lengths(params.seq, params.seed));
  for (const Variant each : all_of<Variant>()) {
    Costs& costs = costs_[static_cast<std::size_t>(each)] = {};
    // Naive has no scores in 8 bits, nor has flash-1.
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
    params = flash_attention::knob_table().params(report_.params);
    params.broken = Break::none;
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

double FlashAttentionScene::progress(Cursor cursor) const {
  return Scene::progress(cursor) * trace_.plan.block_k;
}

// ---- tables -----------------------------------------------------------------------------------------

Cursor FlashAttentionScene::known(const lab::Table& table, int row, int column) const {
  // What follows from the knobs alone.
  if (table.id == "lengths") return {};
  return Scene::known(table, row, column);
}

std::vector<picture::Subject> FlashAttentionScene::subjects_of_row(std::string_view table_id,
                                                                   int row) const {
  if (table_id == "steps" && row >= 0 && row < steps_in_all()) {
    return {{"step", row}, {"k_tile", trace_.steps[static_cast<std::size_t>(row)].k_tile}};
  }
  if (table_id == "ledger" && row >= 0 && row < std::ssize(trace_.ledger)) {
    return {{"tensor", static_cast<int>(trace_.ledger[static_cast<std::size_t>(row)].tensor)}};
  }
  return Scene::subjects_of_row(table_id, row);
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

std::optional<Cursor> FlashAttentionScene::leads_to(const View&, const picture::Key& item) const {
  if (!item.is({"S"}) || item.i != trace_.chosen.q_tile) return std::nullopt;
  for (int step = 1; step <= steps_in_all(); ++step) {
    if (trace_.steps[static_cast<std::size_t>(step - 1)].k_tile == item.j) {
      return Cursor{step, steps().last_phase(step)};
    }
  }
  return std::nullopt;
}

/// A tile of queries that is clicked: its last query is followed.
std::optional<lab::Settings> FlashAttentionScene::dropped(const View&, const picture::Key& item,
                                                          const picture::Key&) const {
  if (!item.is({"Q"}) || item.i < 0 || item.i >= trace_.plan.q_tiles) return std::nullopt;
  const int last = std::min((item.i + 1) * trace_.plan.block_q, trace_.shape.length) - 1;
  return lab::Settings{{"query", std::int64_t{last}}};
}

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
  return {{"m",
           {"m", 0},
           4,
           "The largest score of the query so far. Weights are measured from it, so that none is "
           "larger than 1.",
           code("m_after")},
          {"ℓ",
           {"l", 0},
           5,
           "The sum of the query's weights so far, measured from the same maximum m. O is divided "
           "by it.",
           code("l_after")},
          {"O",
           {"o", 0},
           tone_of(flash_attention::Tensor::o),
           "The query's output so far: the sum of weight × value over the keys seen. A component "
           "of it is followed.",
           {"o"}}};
}

// ---- numbers ----------------------------------------------------------------------------------------

std::vector<Readout> FlashAttentionScene::readouts(const View& view) const {
  const FlashMoment now = moment(view.cursor);
  const std::string kernel = "recorded by the kernel while it ran on " + report_.device.name;
  std::vector<Readout> all;
  if (!is_naive()) {
    const bool softened = now.phase == FlashPhase::values;
    // ℓ and O of the tile are there when its values are added: before that those of the tile before.
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
  for (const flash_attention::LedgerRow& row : trace_.ledger) {
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
    const double got = static_cast<double>(trace_.answer.o[c]), exact = trace_.answer.exact[c];
    const double off = std::abs(got - exact);
    const bool wrong = (broken() && trace_.result.wrong > 0) ||
                       (fails(report_, "output") && !words::close(got, exact, 1e-2));
    all.push_back({"error", "off the exact O by", number(off, 4), "", lab::Provenance::derived,
                   fmt::format("|{} − {}|: component {} of the query, against double on the same "
                               "rounded inputs",
                               number(got, 5), number(exact, 5), trace_.chosen.component),
                   wrong ? Readout::wrong : Readout::good});
  }
  return all;
}

// ---- the kernel -------------------------------------------------------------------------------------

SourceMark FlashAttentionScene::source(const View& view) const {
  const FlashMoment now = moment(view.cursor);
  const auto at = [&](FlashPhase phase) {
    switch (phase) {
      case FlashPhase::scores:
        return flash_attention::Mark::scores;
      case FlashPhase::rescale:
        return variant() == Variant::flash_1 ? flash_attention::Mark::rescale
                                             : flash_attention::Mark::softmax;
      case FlashPhase::weights:
        return flash_attention::Mark::weights;
      default:
        return flash_attention::Mark::values;
    }
  };
  const int current = now.now == nullptr ? -1 : static_cast<int>(at(now.phase));
  SourceMark mark =
      source_mark(flash_attention::source_path(variant(), trace_.dtype), trace_.lines, current);
  if (now.now == nullptr) return mark;
  const auto say = [&](FlashPhase phase, std::string value) {
    const int line = trace_.lines[static_cast<std::size_t>(at(phase))];
    if (line > 0) mark.values[line] = std::move(value);
  };
  const flash_attention::Step& step = *now.now;
  const auto text = [](float value) { return number(static_cast<double>(value), 2); };
  say(FlashPhase::scores, fmt::format("tile = {}", step.k_tile));
  if (is_naive()) {
    if (now.phase >= FlashPhase::weights) say(FlashPhase::weights, "a row of P");
    if (now.phase == FlashPhase::values) say(FlashPhase::values, "O = P V");
    return mark;
  }
  if (now.phase >= FlashPhase::rescale) {
    say(FlashPhase::rescale, fmt::format("m = {}, rescale = {}", text(step.m_after),
                                         number(static_cast<double>(step.rescale), 3)));
  }
  if (now.phase == FlashPhase::values) {
    std::string value = fmt::format("l = {}", text(step.l));
    if (trace_.o_recorded) value += fmt::format(", o = {}", number(static_cast<double>(step.o), 3));
    say(FlashPhase::values, std::move(value));
  }
  return mark;
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(flash_attention, FlashAttentionScene)
