#include "scenes/numbers/low_bit/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using low_bit::Format, low_bit::GroupTrace, low_bit::kMatrix;
using words::counted, words::number, words::significant;

StepAxis LowBitScene::loaded(const low_bit::Trace&) {
  plan_questions();
  int widest = 0, worst = 0;
  for (int i = 1; i < trace_.steps; ++i) {
    if (at(i).step > at(widest).step) widest = i;
    if (at(i).rms > at(worst).rms) worst = i;
  }
  events_ = {{{widest + 1, 1}, fmt::format("the largest scale, of group {}", widest + 1)},
             {{worst + 1, 2}, fmt::format("the largest error, in group {}", worst + 1)}};
  std::sort(events_.begin(), events_.end(),
            [](const Event& a, const Event& b) { return a.at < b.at; });
  return {trace_.steps, 3, "group", {"range", "scale", "codes"}, "groups"};
}

int LowBitScene::first(Cursor cursor) const {
  return std::max(group(cursor), 0) * trace_.size();
}

int LowBitScene::largest(int group) const {
  const auto begin = trace_.weights.begin() + group * trace_.size();
  const auto most = std::max_element(begin, begin + trace_.size(),
                                     [](float a, float b) { return std::abs(a) < std::abs(b); });
  return static_cast<int>(most - trace_.weights.begin());
}

std::string LowBitScene::weight_text(int weight) const {
  return significant(static_cast<double>(trace_.weights[static_cast<std::size_t>(weight)]), 3);
}

// ---- sentences -----------------------------------------------------------------------------------

std::string LowBitScene::scale_sentence(int group) const {
  const GroupTrace& g = at(group);
  const std::string wanted = significant(static_cast<double>(g.wanted), 3);
  const std::string step = significant(static_cast<double>(g.step), 3);
  switch (trace_.format) {
    case Format::mxfp4:
      return fmt::format("A scale is a power of two: {}, where {} would fit the largest weight.",
                         step, wanted);
    case Format::nvfp4:
      return fmt::format("The scale {} is stored in E4M3, in units of one number for all: {}.",
                         wanted, step);
    case Format::ternary:
      return fmt::format("The scale is the mean magnitude, {}: a weight is −1, 0 or 1 of it.",
                         step);
    case Format::int4_zero:
      return fmt::format("Sixteen codes from lowest to highest, {} apart; code {} is 0.", step,
                         g.zero);
    case Format::q4_k:
      return fmt::format("Sixteen codes {} apart from {} up: scale and minimum have 6 bits each.",
                         step, significant(static_cast<double>(g.offset), 3));
    default:
      return fmt::format("The largest weight gets the largest code: the scale is {}.", step);
  }
}

std::string LowBitScene::codes_sentence(int group) const {
  const GroupTrace& g = at(group);
  const std::string off = significant(g.rms, 2);
  if (g.nothing == 0) return fmt::format("Each weight takes the nearest code: {} off (RMS).", off);
  return fmt::format("Each weight takes the nearest code: {} of {} became 0, {} off (RMS).",
                     g.nothing, trace_.size(), off);
}

std::string LowBitScene::sentence(Cursor cursor) const {
  const int group = this->group(cursor);
  if (group < 0) {
    return fmt::format("{} in BF16. As {} each group of {} shares a scale.",
                       counted(low_bit::kWeightCount, "weight"), label_of(trace_.format),
                       trace_.size());
  }
  const auto phase = static_cast<LowBitPhase>(std::clamp(cursor.phase, 0, 2));
  if (phase == LowBitPhase::scale) return scale_sentence(group);
  if (phase == LowBitPhase::codes) return codes_sentence(group);
  const int weight = largest(group);
  return fmt::format("Group {} reaches from {} to {}: weight {} is the largest.", group + 1,
                     significant(static_cast<double>(at(group).low), 3),
                     significant(static_cast<double>(at(group).high), 3), weight);
}

std::string LowBitScene::explain(const View& view, const picture::Key& key) const {
  const bool of_weight =
      key.is({"weight", "value", "gap", "error"}) && key.i >= 0 && key.i < low_bit::kWeightCount;
  if (of_weight && key.i >= known_codes(view.cursor)) {
    return fmt::format("weight {}: {}", key.i, weight_text(key.i));
  }
  if (of_weight) {
    const auto i = static_cast<std::size_t>(key.i);
    const double weight = static_cast<double>(trace_.weights[i]);
    const double value = static_cast<double>(trace_.values[i]);
    return fmt::format("weight {}: {}\ncode {} stands for {}, {} off", key.i, weight_text(key.i),
                       trace_.codes[i], significant(value, 3),
                       significant(std::abs(value - weight), 2));
  }
  if (key.is({"zeros"}) && scaled(view.cursor)) return "a weight in here is nearest to 0";
  if (key.is({"code"}) && scaled(view.cursor)) {
    const GroupTrace& g = at(group(view.cursor));
    const double n = numbers_of(trace_.format)[static_cast<std::size_t>(key.i)];
    return fmt::format(
        "code {}: {} × {} = {}", key.i, significant(n, 4),
        significant(static_cast<double>(g.step), 3),
        significant(n * static_cast<double>(g.step) + static_cast<double>(g.offset), 3));
  }
  return {};
}

std::vector<Readout> LowBitScene::readouts(const View& view) const {
  const int group = this->group(view.cursor);
  const std::string traced = "recorded by the kernel while it ran on " + report_.device.name;
  std::vector<Readout> all;
  if (scaled(view.cursor)) {
    all.push_back({"scale", "scale", significant(static_cast<double>(at(group).step), 3), "",
                   lab::Provenance::traced, traced, Readout::accent});
  }
  if (coded(view.cursor)) {
    all.push_back({"rms", "RMS error", significant(at(group).rms, 2), "", lab::Provenance::derived,
                   "root of the mean square of value − weight in this group"});
    all.push_back({"nothing", "became 0", fmt::format("{} of {}", at(group).nothing, trace_.size()),
                   "", lab::Provenance::traced, traced});
  }
  if (view.cursor.tile == trace_.steps && coded(view.cursor)) {
    const low_bit::Ledger& own = trace_.formats[static_cast<std::size_t>(trace_.format)];
    all.push_back({"bits", "bits a weight", significant(own.bits, 4), "", lab::Provenance::derived,
                   "bits of a code, and of the group's scale over its weights"});
    all.push_back({"product_error", "error of W · x", significant(own.product_error, 3), "%",
                   lab::Provenance::derived,
                   "RMS of the difference from the product of the BF16 weights, over its RMS"});
  }
  return all;
}

std::vector<picture::Symbol> LowBitScene::symbols(const View& view) const {
  std::vector<picture::Symbol> all = {
      {"weight", {"weight_of", 0}, 1, "A number of W in BF16.", {"w"}}};
  if (!scaled(view.cursor)) return all;
  all.push_back(
      {"code", {"code_of", 0}, 9, "A weight's few bits: the number of a value.", {"code"}});
  return all;
}

SourceMark LowBitScene::source(const View& view) const {
  const int group = this->group(view.cursor);
  SourceMark mark =
      source_mark(low_bit::kSourcePath, trace_.lines, group >= 0 ? view.cursor.phase : -1);
  if (group < 0) return mark;
  const GroupTrace& g = at(group);
  mark.values[trace_.lines[0]] =
      fmt::format("range = {} … {}", significant(static_cast<double>(g.low), 3),
                  significant(static_cast<double>(g.high), 3));
  if (scaled(view.cursor)) {
    mark.values[trace_.lines[1]] =
        fmt::format("scale.step = {}", significant(static_cast<double>(g.step), 3));
  }
  if (coded(view.cursor)) {
    mark.values[trace_.lines[2]] =
        fmt::format("code[0] = {}", trace_.codes[static_cast<std::size_t>(first(view.cursor))]);
  }
  return mark;
}

std::optional<Cursor> LowBitScene::leads_to(const View&, const picture::Key& item) const {
  const bool of_weight = item.is({"error"}) && item.i >= 0 && item.i < low_bit::kWeightCount;
  return of_weight ? std::optional(Cursor{trace_.group_at(item.i) + 1, 2}) : std::nullopt;
}

std::optional<lab::Settings> LowBitScene::dragged(const View&, const picture::Key& item,
                                                  double value) const {
  if (!item.is({"weight"}) || item.i < 0 || item.i >= low_bit::kWeightCount ||
      !std::isfinite(value)) {
    return std::nullopt;
  }
  const double most = low_bit::kMostWeight / low_bit::kDeviation;
  return lab::Settings{{"outlier_at", std::int64_t{item.i}},
                       {"outlier", std::clamp(value / low_bit::kDeviation, -most, most)}};
}

Cursor LowBitScene::known(const lab::Table& table, int row, int column) const {
  if (table.id == "formats" && column <= 2) return {};  // what a format is
  return Scene::known(table, row, column);
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(low_bit, LowBitScene)
