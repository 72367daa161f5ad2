#include "scenes/attention/online_softmax/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using words::number;

StepAxis OnlineSoftmaxScene::loaded(const online_softmax::Trace&) {
  score_decimals_ = 1;
  for (const float score : trace_.scores) {
    if (std::isfinite(score) && std::abs(score * 10 - std::round(score * 10)) > 1e-3)
      score_decimals_ = 2;
  }
  asked_ = asked_before(tiles(), occasions(), report_);
  find_events();
  return {tiles(), 4, "tile", {"maximum", "rescale", "weights", "accumulate"}, "tiles"};
}

double OnlineSoftmaxScene::progress(Cursor cursor) const {
  return std::min<double>(Scene::progress(cursor) * trace_.tile_width, trace_.keys);
}

SoftmaxMoment OnlineSoftmaxScene::moment(Cursor cursor) const {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  if (cursor.tile <= 0 || cursor.tile > tiles()) {
    return {{.tile_max = kNone, .m_old = kNone, .m = kNone, .rescale = 1}};
  }
  const int tile = cursor.tile - 1;
  SoftmaxMoment now{trace_.steps[tile], tile,
                    static_cast<SoftmaxPhase>(std::clamp(cursor.phase, 0, 3))};
  if (now.phase < SoftmaxPhase::rescale) now.rescale = 1;
  if (now.phase < SoftmaxPhase::accumulate) {
    now.l = now.l_old * now.rescale;
    now.o = now.o_old * now.rescale;
    now.output = tile > 0 ? trace_.steps[tile - 1].output : 0;
  }
  return now;
}

std::vector<float> OnlineSoftmaxScene::weights(Cursor cursor) const {
  const SoftmaxMoment now = moment(cursor);
  const bool added = now.phase >= SoftmaxPhase::weights;
  const int end = std::max(trace_.first_key(now.tile + (added ? 1 : 0)), 0);
  std::vector<float> all(static_cast<std::size_t>(end));
  double since = 1;  // every rescale after the tile of the key
  int tile = now.tile;
  for (int key = end - 1; key >= 0; --key) {
    for (; tile > trace_.tile_of(key); --tile) {
      since *= tile < now.tile ? trace_.steps[tile].rescale : now.rescale;
    }
    const double weight = trace_.weights[key];
    all[key] = static_cast<float>(weight > 0 ? weight * since : weight);
  }
  return all;
}

std::string OnlineSoftmaxScene::score_text(double score) const {
  return number(score, score_decimals_);
}

std::optional<double> OnlineSoftmaxScene::exact_at(const SoftmaxMoment& now) const {
  const int tile = now.phase == SoftmaxPhase::accumulate ? now.tile : now.tile - 1;
  return tile < 0 ? std::nullopt : std::optional(trace_.exact_outputs[tile]);
}

bool OnlineSoftmaxScene::wrong_at(const SoftmaxMoment& now) const {
  const std::optional<double> exact = exact_at(now);
  return exact && !(std::abs(now.output - *exact) <= 1e-2 * std::max(1.0, std::abs(*exact)));
}

/// What the maximum does, from the kernel's own numbers.
std::string OnlineSoftmaxScene::rise(const SoftmaxMoment& now) const {
  const std::string tile = fmt::format("Tile {}", now.tile), m = score_text(now.m);
  const std::string peak = score_text(now.tile_max), old = score_text(now.m_old);
  if (now.m != std::max(now.m_old, now.tile_max)) {
    return fmt::format("{} peaks at {} after {}, but the kernel's maximum is {}.", tile, peak, old,
                       m);
  }
  if (std::isinf(now.m)) return tile + " is fully masked: it adds nothing.";
  if (std::isinf(now.m_old)) {
    return fmt::format("{} sets the first maximum, {}: nothing to rescale yet.", tile, m);
  }
  if (std::isinf(now.tile_max)) return tile + " is masked: m, ℓ and O stay as they are.";
  if (now.tile_max <= now.m_old) {
    return fmt::format("{} peaks at {}, not above {}: nothing to rescale.", tile, peak, old);
  }
  return fmt::format("{} brings {}, above {}: the maximum rises.", tile, peak, old);
}

std::string OnlineSoftmaxScene::sentence(Cursor cursor) const {
  const SoftmaxMoment now = moment(cursor);
  if (now.tile < 0) {
    return fmt::format("Nothing is known yet: m = −∞, ℓ = 0, O = 0. {} of {} to go.",
                       words::counted(tiles(), "tile"), words::counted(trace_.tile_width, "key"));
  }
  const bool summed = std::isfinite(now.m_old) && std::isfinite(now.m);
  if (now.phase == SoftmaxPhase::maximum || !summed) return rise(now);
  const double factor = std::exp(double{now.m_old} - double{now.m});
  if (!words::close(now.rescale, factor)) {
    return fmt::format(
        "Tile {} moves the maximum from {} to {}, but ℓ and O are multiplied by {}, not by {}: "
        "scales mix.",
        now.tile, score_text(now.m_old), score_text(now.m), number(now.rescale, 3),
        number(factor, 3));
  }
  if (now.m <= now.m_old) return rise(now);
  return fmt::format("Tile {} brings {}, above {}: the sums so far shrink to {} %.", now.tile,
                     score_text(now.tile_max), score_text(now.m_old), number(100 * now.rescale, 1));
}

std::optional<lab::Settings> OnlineSoftmaxScene::dragged(const View&, const picture::Key& item,
                                                         double value) const {
  const std::size_t count = trace_.scores.size();
  if (item.name != picture::Name("score") || item.i < 0 || count > online_softmax::kMostScores ||
      static_cast<std::size_t>(item.i) >= count || !std::isfinite(value)) {
    return std::nullopt;
  }
  const double most = online_softmax::kMostScore;
  std::vector<float> row = trace_.scores;
  row[item.i] = static_cast<float>(std::clamp(value, -most, most));
  // Each query's row starts one key later.
  const auto shift = trace_.query % static_cast<std::ptrdiff_t>(count);
  std::rotate(row.begin(), row.end() - shift, row.end());
  return lab::Settings{{"preset", std::string(name_of(online_softmax::Preset::custom))},
                       {"scores", online_softmax::scores_text(row)}};
}

std::optional<Cursor> OnlineSoftmaxScene::leads_to(const View&, const picture::Key& item) const {
  const bool of_key = item.is({"score", "weight", "v"}) && item.i >= 0 && item.i < trace_.keys;
  return of_key ? std::optional(Cursor{trace_.tile_of(item.i) + 1, 3}) : std::nullopt;
}

std::optional<picture::Subject> OnlineSoftmaxScene::subject_of_column(
    std::string_view table_id, std::string_view column_id) const {
  if (table_id != "tiles") return std::nullopt;
  if (column_id == "m" || column_id == "l") return picture::Subject{std::string(column_id), 0};
  if (column_id == "output") return picture::Subject{"O", 0};
  return std::nullopt;
}

SourceMark OnlineSoftmaxScene::source(const View& view) const {
  SourceMark mark = source_mark(online_softmax::kSourcePath, trace_.lines,
                                view.cursor.tile > 0 ? view.cursor.phase : -1);
  const SoftmaxMoment now = moment(view.cursor);
  if (now.tile < 0) return mark;
  const std::string values[] = {
      fmt::format("m_new = {}", score_text(now.m)),
      fmt::format("rescale = {}", number(now.rescale, 3)),
      fmt::format("tile_sum = {}", number(now.tile_sum, 3)),
      fmt::format("l_new = {}, o_new = {}", number(now.l, 3), number(now.o, 3))};
  for (int phase = 0; phase <= view.cursor.phase; ++phase) {
    mark.values[trace_.lines[phase]] = values[phase];
  }
  return mark;
}

std::vector<Readout> OnlineSoftmaxScene::readouts(const View& view) const {
  const SoftmaxMoment now = moment(view.cursor);
  const std::string kernel = "recorded by the kernel while it ran on " + report_.device.name;
  std::vector<Readout> all = {
      {"m", "running maximum m", score_text(now.m), "", lab::Provenance::traced, kernel},
      {"l", "denominator ℓ", number(now.l, 2), "", lab::Provenance::traced, kernel},
      {"output", "output O / ℓ", number(now.output, 3), "", lab::Provenance::traced, kernel,
       wrong_at(now) ? Readout::wrong : Readout::accent}};
  all[0].about = {"m", 0};
  all[1].about = {"l", 0};
  all[2].about = {"O", 0};
  if (view.cursor.tile == tiles() && view.cursor.phase == 3) {
    const double difference = std::abs(now.output - trace_.exact_output);
    const bool off = difference > 1e-2 * std::max(1.0, std::abs(trace_.exact_output));
    all.push_back(
        {"difference", "error vs exact softmax", number(difference, 3), "",
         lab::Provenance::derived,
         fmt::format("|{} − {}|; the exact value is computed in double precision from the "
                     "whole row",
                     number(now.output, 6), number(trace_.exact_output, 6)),
         off ? Readout::wrong : Readout::good});
  }
  return all;
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(online_softmax, OnlineSoftmaxScene)
