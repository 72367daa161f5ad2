#include "scenes/numbers/low_bit/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using low_bit::Break, low_bit::Format, low_bit::GroupTrace, low_bit::kMatrix, low_bit::Way;
using low_bit::Wronged;
using words::counted, words::number, words::significant;

StepAxis LowBitScene::loaded(const low_bit::Trace&) {
  plan_questions();
  find_strays();
  if (has_recipe()) return recipe_steps();
  int widest = 0, worst = 0;
  for (int i = 1; i < trace_.steps; ++i) {
    if (at(i).step > at(widest).step) widest = i;
    if (at(i).rms > at(worst).rms) worst = i;
  }
  events_ = {{{widest + 1, 1}, fmt::format("the largest scale, of group {}", widest + 1)},
             {{worst + 1, 2}, fmt::format("the largest error, in group {}", worst + 1)}};
  std::sort(events_.begin(), events_.end(),
            [](const Event& a, const Event& b) { return a.at < b.at; });
  StepAxis axis{trace_.steps, 3, "group", {"range", "scale", "codes"}, "groups"};
  if (trace_.has_product()) {
    events_.push_back({{trace_.steps + 1, 1}, "W is multiplied by x"});
    axis.noun = "step";
    ++axis.tiles;
    axis.folded = 2;
  }
  return axis;
}

StepAxis LowBitScene::recipe_steps() {
  const auto place = low_bit::best_of(trace_) - trace_.recipe_steps.data();
  const int last = static_cast<int>(trace_.recipe_steps.size());
  if (trace_.recipe == low_bit::Recipe::gptq) {
    events_ = {{{1, 0}, "the first column is rounded"}, {{last, 0}, "all columns are rounded"}};
  } else {
    events_ = {{{static_cast<int>(place) + 1, 0}, "the least error"}};
  }
  return {last, 1, "step", {""}, "recipe"};
}

void LowBitScene::find_strays() {
  astray_.assign(trace_.weights.size(), false);
  const std::vector<double> numbers = numbers_of(trace_.format);
  for (std::size_t i = 0; i < astray_.size() && trace_.is_wrong(); ++i) {
    const GroupTrace& g = at(trace_.group_at(static_cast<int>(i)));
    const auto step = static_cast<double>(g.step);
    const double line =
        numbers[static_cast<std::size_t>(trace_.codes[i])] * step + static_cast<double>(g.offset);
    astray_[i] = std::abs(static_cast<double>(trace_.values[i]) - line) > 1e-4 * step;
  }
}

int LowBitScene::table_row(std::string_view table_id, const View& view) const {
  if (has_recipe()) return table_id == "recipe" ? view.cursor.tile - 1 : -1;
  return table_id == "groups" ? group(view.cursor) : -1;
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

bool LowBitScene::has_own_range(int group) const {
  const auto begin = trace_.weights.begin() + group * trace_.size();
  const auto [low, high] = std::minmax_element(begin, begin + trace_.size());
  return at(group).low == *low && at(group).high == *high;
}

std::string LowBitScene::weight_text(int weight) const {
  return significant(static_cast<double>(trace_.weights[static_cast<std::size_t>(weight)]), 3);
}

// ---- sentences -----------------------------------------------------------------------------------

std::string LowBitScene::scale_sentence(int group) const {
  const GroupTrace& g = at(group);
  if (trace_.is_wrong() && wronged(group).own_step != g.step) {
    return fmt::format("Group {} is given the scale {}; by its own weights it would have {}.",
                       group + 1, significant(static_cast<double>(g.step), 3),
                       significant(static_cast<double>(wronged(group).own_step), 3));
  }
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
  if (trace_.is_wrong()) {
    if (std::string wrong = wronged_sentence(group); !wrong.empty()) return wrong;
  }
  if (g.nothing == 0) return fmt::format("Each weight takes the nearest code: {} off (RMS).", off);
  return fmt::format("Each weight takes the nearest code: {} of {} became 0, {} off (RMS).",
                     g.nothing, trace_.size(), off);
}

/// What the product made of the codes, where that is not what they stand for.
std::string LowBitScene::wronged_sentence(int group) const {
  const GroupTrace& g = at(group);
  const Wronged& w = wronged(group);
  const std::string off = significant(g.rms, 2), own = significant(w.own_rms, 2);
  if (w.step != g.step) {
    return fmt::format(
        "The product multiplies these codes by {}, not by their scale {}: {} off (RMS), not {}.",
        significant(static_cast<double>(w.step), 3), significant(static_cast<double>(g.step), 3),
        off, own);
  }
  if (w.offset != g.offset && trace_.format == Format::int4_zero) {
    const double read = std::round(-static_cast<double>(w.offset) / static_cast<double>(w.step));
    const auto apart = static_cast<std::int64_t>(read) - g.zero;
    return fmt::format(
        "The product reads zero point {} where {} is stored: every weight is {} too {}.", read,
        g.zero, counted(std::abs(apart), "step"), apart > 0 ? "low" : "high");
  }
  if (w.offset != g.offset) {
    return fmt::format("The product adds {} to each weight, not the minimum {}.",
                       significant(static_cast<double>(w.offset), 3),
                       significant(static_cast<double>(g.offset), 3));
  }
  if (w.own_step == g.step) return {};
  return fmt::format(
      "Each weight takes the nearest code, {} off (RMS); with the group's own scale it is {}.", off,
      own);
}

std::string LowBitScene::way_sentence() const {
  const Way& way = trace_.ways[0];
  if (trace_.ways.size() > 1) {
    return fmt::format("Numbers are written to memory and read back: W moves {} bytes, fused {}.",
                       way.moved(), trace_.ways[1].moved());
  }
  return fmt::format("{} bytes of W are read; {} bytes of numbers exist in registers alone.",
                     way.moved(), way.numbers);
}

std::string LowBitScene::product_sentence() const {
  const low_bit::Ledger& own = trace_.formats[static_cast<std::size_t>(trace_.format)];
  const std::string off = significant(product_error(), 3);
  if (trace_.is_wrong()) {
    const auto rows = std::count_if(trace_.y.begin(), trace_.y.end(), [&](const float& y) {
      return is_wrong_row(static_cast<int>(&y - trace_.y.data()));
    });
    return fmt::format("{} of {} rows are wrong: W · x is {} % off, and {} % with nothing broken.",
                       rows, trace_.y.size(), off, significant(own.product_error, 3));
  }
  if (trace_.broken == Break::unfused) {
    return fmt::format("The same W · x as fused, {} % off, by {} times the bytes.", off,
                       significant(double(trace_.ways[0].moved()) / trace_.ways[1].moved(), 3));
  }
  return fmt::format("A row adds up {} products: W · x is {} % off, and the weights are {} %.",
                     kMatrix.columns, off, significant(own.weight_error, 3));
}

bool LowBitScene::is_wrong_row(int row) const {
  const auto i = static_cast<std::size_t>(row);
  return trace_.is_wrong() && trace_.y[i] != trace_.sound_y[i];
}

std::string LowBitScene::sentence(Cursor cursor) const {
  if (has_recipe()) return recipe_sentence(cursor);
  if (multiplied(cursor)) return product_sentence();
  if (multiplies(cursor)) return way_sentence();
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
  if (trace_.is_wrong() && !has_own_range(group)) {
    return fmt::format(
        "Group {} is given the range of all weights, {} to {}; its own largest is {}.", group + 1,
        significant(static_cast<double>(at(group).low), 3),
        significant(static_cast<double>(at(group).high), 3), weight_text(weight));
  }
  return fmt::format("Group {} reaches from {} to {}: weight {} is the largest.", group + 1,
                     significant(static_cast<double>(at(group).low), 3),
                     significant(static_cast<double>(at(group).high), 3), weight);
}

std::string LowBitScene::explain(const View& view, const picture::Key& key) const {
  if (has_recipe()) return explain_recipe(view.cursor, key);
  const bool of_weight =
      key.is({"weight", "value", "gap", "error"}) && key.i >= 0 && key.i < low_bit::kWeightCount;
  if (of_weight && key.i >= known_codes(view.cursor)) {
    return fmt::format("weight {}: {}", key.i, weight_text(key.i));
  }
  if (of_weight) {
    const auto i = static_cast<std::size_t>(key.i);
    const double weight = static_cast<double>(trace_.weights[i]);
    const double value = static_cast<double>(trace_.values[i]);
    return fmt::format("weight {}: {}\ncode {} {} {}, {} off", key.i, weight_text(key.i),
                       trace_.codes[i], astray_[i] ? "was multiplied as" : "stands for",
                       significant(value, 3), significant(std::abs(value - weight), 2));
  }
  if (multiplies(view.cursor)) return explain_way(view.cursor, key);
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

std::string LowBitScene::explain_way(Cursor cursor, const picture::Key& key) const {
  if (key.is({"codes", "scales", "written", "read"}) && key.i < std::ssize(trace_.ways)) {
    const Way& way = trace_.ways[static_cast<std::size_t>(std::max(key.i, 0))];
    if (key.is({"codes"})) return fmt::format("{} bytes of codes are read", way.codes);
    if (key.is({"scales"})) return fmt::format("{} bytes of scales are read", way.scales);
    return fmt::format("{} bytes of numbers are {}",
                       key.is({"written"}) ? way.written : way.read_back,
                       key.is({"written"}) ? "written by the first kernel" : "read by the second");
  }
  if (key.is({"numbers", "fmas"})) {
    return fmt::format("{} FMAs take {} bytes of FP32 numbers from registers", trace_.ways[0].fmas,
                       trace_.ways[0].numbers);
  }
  const bool of_row = key.is({"exact", "y", "y_gap"}) && key.i >= 0 && key.i < std::ssize(trace_.y);
  if (!of_row || !multiplied(cursor)) return {};
  const auto row = static_cast<std::size_t>(key.i);
  return fmt::format("row {} of W · x: {}, with weights in BF16 {}", key.i + 1,
                     significant(static_cast<double>(trace_.y[row]), 3),
                     significant(trace_.exact[row], 3));
}

std::vector<Readout> LowBitScene::readouts(const View& view) const {
  if (has_recipe()) return recipe_readouts(view.cursor);
  const int group = this->group(view.cursor);
  const std::string traced = "recorded by the kernel while it ran on " + report_.device.name;
  std::vector<Readout> all;
  if (multiplies(view.cursor)) {
    const Way& way = trace_.ways[0];
    all.push_back({"moved", "W's bytes moved", fmt::format("{}", way.moved()), "B",
                   lab::Provenance::traced, traced, Readout::accent});
    all.push_back({"numbers", "in registers", fmt::format("{}", way.numbers), "B",
                   lab::Provenance::traced, traced});
    all.push_back(
        {"fmas", "FMAs", fmt::format("{}", way.fmas), "", lab::Provenance::traced, traced});
    if (multiplied(view.cursor)) add_results(all);
    return all;
  }
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
  if (!trace_.has_product() && view.cursor.tile == trace_.steps && coded(view.cursor)) {
    add_results(all);
  }
  return all;
}

/// What the whole of W comes to.
void LowBitScene::add_results(std::vector<Readout>& all) const {
  const low_bit::Ledger& own = trace_.formats[static_cast<std::size_t>(trace_.format)];
  const double off = trace_.has_product() ? product_error() : own.product_error;
  all.push_back({"bits", "bits a weight", significant(own.bits, 4), "", lab::Provenance::derived,
                 "bits of a code, and of the group's scale over its weights"});
  all.push_back({"product_error", "error of W · x", significant(off, 3), "%",
                 lab::Provenance::derived,
                 "RMS of the difference from the product of the BF16 weights, over its RMS",
                 trace_.is_wrong() ? Readout::wrong : Readout::plain});
}

std::vector<picture::Symbol> LowBitScene::symbols(const View& view) const {
  if (has_recipe() || multiplies(view.cursor)) return {};
  std::vector<picture::Symbol> all = {
      {"weight", {"weight_of", 0}, 1, "A number of W in BF16.", {"w"}}};
  if (!scaled(view.cursor)) return all;
  all.push_back(
      {"code", {"code_of", 0}, 9, "A weight's few bits: the number of a value.", {"code"}});
  return all;
}

SourceMark LowBitScene::source(const View& view) const {
  if (has_recipe()) return source_mark(low_bit::kSourcePath, {}, -1);  // it runs on the host
  if (multiplies(view.cursor)) {
    const auto lines = low_bit::product_lines(trace_.broken != Break::unfused);
    return source_mark(low_bit::kProductPath, lines, view.cursor.phase);
  }
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
