// The picture of the online-softmax lesson. From top to bottom: what happens in one sentence, the
// scores in tiles with the running maximum over them, the weights as they stand now, and below the
// step's formula beside the two running sums.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "scenes/attention/online_softmax/scene.hpp"
#include "scenes/shared/strokes.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using words::number;

namespace {

float mixed(double from, double to, float t) {
  return static_cast<float>(from + (to - from) * static_cast<double>(t));
}

constexpr float kSecondsToMove = 0.35f;
/// Below these heights (design pixels) bars are slivers that nobody can compare.
constexpr float kLeastScores = 44, kLeastWeights = 30;
constexpr float kScoresShare = 0.56f;

}  // namespace

struct OnlineSoftmaxScene::Layout : Frame {
  explicit Layout(const Frame& frame) : Frame(frame) {}

  ImVec2 overview_min, overview_max;  ///< empty unless the trace is wider than the picture
  ImVec2 scores_min, scores_max;
  ImVec2 weights_min, weights_max;
  float tile_label_y = 0;  ///< between scores and weights
  ImVec2 formulas_min, sums_min;
  float formula_width = 0, sum_width = 0;
  float formula_step = 0, sum_step = 0;
  /// 2: the current phase's, and no output; 0: none, nor the running sums.
  int formula_rows = 5;
  Font formula_font = Font::mono;
};

struct OnlineSoftmaxScene::KeyAxis {
  int first_key = 0, end_key = 0;  ///< what is visible
  float left = 0, slot = 1, gap = 0;
  int tile_width = 1, first_tile = 0;

  bool visible(int key) const { return key >= first_key && key < end_key; }
  bool aggregated() const { return slot < 2.0f; }
  /// Left edge of the key's slot.
  float x(int key) const {
    const int tile = key / tile_width;
    return left + slot * static_cast<float>(key - first_key) +
           gap * static_cast<float>(tile - first_tile);
  }
  float bar_width() const { return std::max(1.0f, std::min(slot * 0.72f, px(30))); }
  float center(int key) const { return x(key) + slot / 2; }
};

OnlineSoftmaxScene::Layout OnlineSoftmaxScene::layout() const {
  Layout to(picture_frame());
  const ImVec2 size = at(to.width(), to.height());
  to.formula_font = to.tight || size.x < px(640) ? Font::mono_note : Font::mono;
  to.formula_step = height_of(to.formula_font) + px(to.tight ? 2 : 7);
  const float sentence_height = height_of(to.heading) + px(to.tight ? 4 : 12);
  const bool overview = static_cast<float>(trace_.keys) * px(6) > size.x;
  const float overview_height = overview ? px(to.tight ? 16 : 24) : 0;
  const float label_height = height_of(Font::note) + px(to.tight ? 4 : 10);
  const float left = to.min.x + px(60);
  const float right = to.max.x - px(92);

  const float charts_top = to.min.y + sentence_height + overview_height;
  // Room above the highest bar for its value.
  const float headroom = height_of(Font::mono_note) + px(4);
  const float least_height = std::max((px(kLeastScores) + headroom) / kScoresShare,
                                      (px(kLeastWeights) + headroom) / (1 - kScoresShare));
  float bottom_height = 0, charts_bottom = 0, charts_height = 0;
  const auto leave_for_formulas = [&](float rows) {
    bottom_height = to.formula_step * rows + px(to.tight ? 4 : 12);
    charts_bottom = to.max.y - bottom_height - px(to.tight ? 6 : 16);
    charts_height = charts_bottom - charts_top - label_height;
  };
  // What the bars need is taken from the formulas; the readouts have their numbers too.
  for (const int rows : {5, 2, 0}) {
    to.formula_rows = rows;
    leave_for_formulas(static_cast<float>(rows));
    if (charts_height >= least_height) break;
  }
  charts_height = std::max(px(40), charts_height);
  to.overview_min = at(left, to.min.y + sentence_height);
  to.overview_max = at(right, to.overview_min.y + (overview ? px(to.tight ? 12 : 16) : 0));
  to.scores_min = at(left, charts_top + headroom);
  to.scores_max = at(right, charts_top + charts_height * kScoresShare);
  to.tile_label_y = to.scores_max.y + px(to.tight ? 2 : 5);
  to.weights_min = at(left, to.scores_max.y + label_height + headroom);
  to.weights_max = at(right, charts_bottom);
  const float bottom = to.max.y - bottom_height + px(to.tight ? 2 : 6);
  to.formula_width = size.x * 0.56f;
  to.formulas_min = at(to.min.x, bottom);
  to.sums_min = at(to.min.x + to.formula_width + px(24), bottom);
  to.sum_width = size.x - to.formula_width - px(24);
  to.sum_step = to.formula_rows < 5 ? to.formula_step : to.formula_step * 5 / 3;
  return to;
}

OnlineSoftmaxScene::KeyAxis OnlineSoftmaxScene::key_axis(const Layout& layout,
                                                         Cursor cursor) const {
  KeyAxis axis;
  axis.tile_width = trace_.tile_width;
  axis.left = layout.scores_min.x;
  const float width = layout.scores_max.x - layout.scores_min.x;
  const int room = std::max(1, static_cast<int>(width / px(6)));
  int visible_tiles = tiles();
  if (trace_.keys > room) visible_tiles = std::max(1, room / trace_.tile_width);
  visible_tiles = std::min(visible_tiles, tiles());
  const int current = std::max(0, cursor.tile - 1);
  axis.first_tile = std::clamp(current - visible_tiles / 2, 0, tiles() - visible_tiles);
  axis.first_key = axis.first_tile * trace_.tile_width;
  axis.end_key = std::min(trace_.keys, (axis.first_tile + visible_tiles) * trace_.tile_width);
  const int keys = std::max(1, axis.end_key - axis.first_key);
  axis.gap = std::min(px(14), width * 0.15f / static_cast<float>(visible_tiles));
  axis.slot = (width - axis.gap * static_cast<float>(visible_tiles - 1)) / static_cast<float>(keys);
  return axis;
}

float OnlineSoftmaxScene::progress(Cursor cursor) {
  if (!(cursor == shown_)) {
    before_ = shown_;
    shown_ = cursor;
    // Steps forth are shown as a movement; jumps and steps back are not, nor is the first picture.
    const bool forth =
        before_.tile >= 0 && (cursor.tile == before_.tile + 1 ||
                              (cursor.tile == before_.tile && cursor.phase > before_.phase));
    moved_ = forth && ui::animation_seconds() > 0 ? 0.0f : 1.0f;
  }
  if (moved_ < 1.0f) {
    moved_ = std::min(1.0f, moved_ + ui::animation_seconds() / kSecondsToMove);
    ui::request_redraw();
  }
  return moved_ * moved_ * (3 - 2 * moved_);
}

double OnlineSoftmaxScene::score_y(const Layout& layout, double score) const {
  const double share = (score - score_low_) / (score_high_ - score_low_);
  return layout.scores_max.y - share * (layout.scores_max.y - layout.scores_min.y);
}

void OnlineSoftmaxScene::draw_picture(Cursor cursor) {
  const Layout where = layout();
  if (trace_.keys == 0 || tiles() == 0) return;
  progress(cursor);
  const KeyAxis axis = key_axis(where, cursor);
  draw_sentence(where, sentence(cursor));
  const auto map_chart = [](const char* id, ImVec2 min, ImVec2 max, float least) {
    ui::map(id, id, "", min, max, {0, px(least)});
  };
  map_chart("scores", where.scores_min, where.scores_max, kLeastScores);
  map_chart("weights", where.weights_min, where.weights_max, kLeastWeights);
  draw_tiles(where, axis, cursor);
  if (where.overview_max.y > where.overview_min.y) draw_overview(where, axis, cursor);
  draw_scores(where, axis, cursor);
  draw_running_maximum(where, axis, cursor);
  draw_weights(where, axis, cursor);
  if (where.formula_rows > 0) draw_formulas(where, cursor);
  if (where.formula_rows > 0) draw_sums(where, cursor);
  draw_key_tooltip(where, axis, cursor);
}

void OnlineSoftmaxScene::draw_overview(const Layout& layout, const KeyAxis& axis,
                                       Cursor cursor) const {
  const float width = layout.overview_max.x - layout.overview_min.x;
  const int columns = std::max(1, static_cast<int>(width / px(2)));
  const double per_column = static_cast<double>(trace_.keys) / columns;
  const float height = layout.overview_max.y - layout.overview_min.y;
  const auto x_of = [&](double key) {
    return layout.overview_min.x + width * static_cast<float>(key / trace_.keys);
  };
  const int done_keys = std::min(trace_.keys, cursor.tile * trace_.tile_width);
  for (int column = 0; column < columns; ++column) {
    const int from = static_cast<int>(column * per_column);
    const int to = std::max(from + 1, static_cast<int>((column + 1) * per_column));
    double most = -INFINITY;
    for (int key = from; key < to && key < trace_.keys; ++key) {
      most = std::max<double>(most, trace_.scores[static_cast<std::size_t>(key)]);
    }
    if (!std::isfinite(most)) continue;
    const float share = static_cast<float>((most - score_low_) / (score_high_ - score_low_));
    line(at(x_of(from), layout.overview_max.y),
         at(x_of(from), layout.overview_max.y - std::max(1.0f, share * height)),
         from < done_keys ? Role::muted : Role::faint);
  }
  draw_list()->AddRect(at(x_of(axis.first_key) - 1, layout.overview_min.y - px(1)),
                       at(x_of(axis.end_key) + 1, layout.overview_max.y + px(1)),
                       ui::color(Role::accent), px(2), 0, px(1.5f));
  ui::draw_text(at(layout.min.x, layout.overview_min.y - px(2)), "all", Font::note, Role::muted);
}

void OnlineSoftmaxScene::draw_tiles(const Layout& layout, const KeyAxis& axis, Cursor cursor) {
  const int last_tile = tile_of(axis.end_key - 1);
  const float label_height = height_of(Font::note);
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  float last_label_end = -1e9f;
  int hovered = -1;
  for (int tile = axis.first_tile; tile <= last_tile; ++tile) {
    const int first = tile * trace_.tile_width;
    const int end = std::min(first + trace_.tile_width, axis.end_key);
    const float pad = axis.gap * 0.35f;
    const ImVec2 min(axis.x(first) - pad, layout.scores_min.y - px(20));
    const ImVec2 max(axis.x(end - 1) + axis.slot + pad, layout.weights_max.y + px(2));
    const bool current = tile == cursor.tile - 1;
    const bool done = tile < cursor.tile - 1;
    if (current) fill(min, max, Role::accent, 0.13f);
    if (tile == lit_step_) {
      draw_list()->AddRect(min, max, ui::color(Role::text, 0.7f), px(3), 0, px(1.5f));
    }
    if (mouse.x >= min.x && mouse.x < max.x && mouse.y >= min.y && mouse.y < max.y) hovered = tile;
    const std::string label = fmt::format("tile {}", tile);
    const float center = (min.x + max.x) / 2;
    const float half = ui::text_size(label, Font::note).x / 2;
    if (center - half > last_label_end + px(6) || current) {
      if (center - half > last_label_end + px(2)) {
        ui::draw_text(at(center, layout.tile_label_y), label, Font::note,
                      current ? Role::accent : (done ? Role::muted : Role::faint), Align::center);
        last_label_end = center + half;
      }
    }
    ui::map(fmt::format("tile_{}", tile), label, current ? "current" : (done ? "done" : "to come"),
            min, at(max.x, std::max(max.y, layout.tile_label_y + label_height)));
  }
  if (hovered >= 0 || lit_step_ >= 0) {
    // A row hovered in the table lights its tile until the mouse comes here.
    if (hovered >= 0) lit_step_ = hovered;
  }
}

void OnlineSoftmaxScene::draw_scores(const Layout& layout, const KeyAxis& axis,
                                     Cursor cursor) const {
  const float zero = static_cast<float>(score_y(layout, std::max(score_low_, 0.0)));
  const float base = score_low_ < 0 ? zero : layout.scores_max.y;
  ui::draw_text(at(layout.min.x, layout.scores_min.y - px(2)), "score s", Font::note, Role::muted);
  line(at(layout.scores_min.x - px(4), base), at(layout.scores_max.x, base), Role::grid);
  float widest = 0;
  if (axis.slot > px(16)) {
    for (int key = axis.first_key; key < axis.end_key; ++key) {
      const std::string text = score_text(trace_.scores[static_cast<std::size_t>(key)]);
      widest = std::max(widest, ui::text_size(text, Font::mono_note).x);
    }
  }
  const bool tall = layout.scores_max.y - layout.scores_min.y > px(64);
  const bool values = tall && widest > 0 && axis.slot > widest + px(3);
  const float half = axis.bar_width() / 2;
  for (int key = axis.first_key; key < axis.end_key; ++key) {
    const double score = trace_.scores[static_cast<std::size_t>(key)];
    const int tile = tile_of(key);
    const bool to_come = tile >= cursor.tile;
    const Role role =
        to_come ? Role::faint : (tile == cursor.tile - 1 ? Role::accent : Role::muted);
    const float x = axis.center(key);
    const std::string text = score_text(score);
    if (!std::isfinite(score)) {
      // A masked key has no height; its place says so.
      const ImVec2 min(x - half, layout.scores_max.y - px(14)), max(x + half, layout.scores_max.y);
      ui::hatch(min, max, to_come ? Role::faint : Role::wasted);
      if (values) {
        ui::draw_text(at(x, min.y - px(18)), text, Font::mono_note,
                      to_come ? Role::faint : Role::muted, Align::center);
      }
      if (axis.slot >= px(5)) ui::map(fmt::format("score_{}", key), "masked", text, min, max);
      continue;
    }
    const float y = static_cast<float>(score_y(layout, score));
    const ImVec2 min(x - half, std::min(y, base - px(1)));
    const ImVec2 max(x + half, std::max(y, base));
    fill(min, max, role, to_come ? 0.45f : 1.0f);
    if (values) {
      // Over the bar; over the base where the bar hangs down, for the tiles' names stand below.
      const float text_y = min.y - height_of(Font::mono_note) - px(1);
      ui::draw_text(at(x, text_y), text, Font::mono_note, to_come ? Role::faint : Role::text,
                    Align::center);
    }
    if (axis.slot >= px(5)) ui::map(fmt::format("score_{}", key), "score", text, min, max);
  }
}

void OnlineSoftmaxScene::draw_running_maximum(const Layout& layout, const KeyAxis& axis,
                                              Cursor cursor) const {
  const int current = std::min(cursor.tile - 1, tiles() - 1);
  float last_y = -1;
  float last_x = 0;
  for (int tile = axis.first_tile; tile <= current; ++tile) {
    const double m = trace_.steps[static_cast<std::size_t>(tile)].m;
    const int first = tile * trace_.tile_width;
    const int end = std::min(first + trace_.tile_width, axis.end_key);
    if (first >= axis.end_key) break;
    if (!std::isfinite(m)) continue;
    const float y = static_cast<float>(score_y(layout, m));
    const float from = axis.x(first) - axis.gap / 2;
    const float to = axis.x(end - 1) + axis.slot + axis.gap / 2;
    if (last_y >= 0) line(at(last_x, last_y), at(from, y), Role::purple, 2.5f);
    line(at(from, y), at(to, y), Role::purple, 2.5f);
    last_y = y;
    last_x = to;
  }
  if (last_y < 0) return;
  const SoftmaxMoment now = moment(cursor);
  // The label stands in the right margin, where no bar is; a dashed line leads to it.
  ui::dashed_line(at(last_x, last_y), at(layout.scores_max.x + px(10), last_y), Role::purple, 1.0f);
  const std::string label = "m = " + score_text(now.m);
  const Font font = layout.formula_font;
  const float x =
      std::min(layout.scores_max.x + px(16), layout.max.x - ui::text_size(label, font).x);
  ui::draw_text(at(x, last_y - ui::text_size(label, font).y / 2), label, font, Role::purple);
}

void OnlineSoftmaxScene::draw_weights(const Layout& layout, const KeyAxis& axis,
                                      Cursor cursor) const {
  const float height = layout.weights_max.y - layout.weights_min.y;
  ui::draw_text(at(layout.min.x, layout.weights_min.y - px(4)), "weight", Font::note, Role::muted);
  line(at(layout.scores_min.x - px(4), layout.weights_max.y),
       at(layout.scores_max.x, layout.weights_max.y), Role::grid);
  line(at(layout.scores_min.x - px(4), layout.weights_min.y),
       at(layout.scores_max.x, layout.weights_min.y), Role::grid, 1.0f, 0.6f);
  ui::draw_text(at(layout.scores_max.x + px(6), layout.weights_min.y - px(8)), "1", Font::mono_note,
                Role::muted);
  ui::draw_text(at(layout.scores_max.x + px(6), layout.weights_max.y - px(12)), "0",
                Font::mono_note, Role::muted);
  const SoftmaxMoment now = moment(cursor);
  const float eased = moved_ * moved_ * (3 - 2 * moved_);
  const bool rescaled = now.phase >= SoftmaxPhase::rescale && now.rescale < 1 && now.tile > 0;
  const bool fine = axis.slot > ui::text_size("0.000", Font::mono_note).x + px(2);
  const bool values = fine || axis.slot > ui::text_size("0.00", Font::mono_note).x + px(1);
  const float half = axis.bar_width() / 2;
  const Cursor previous{cursor.tile, 0};  // the weights before this tile's rescale
  for (int key = axis.first_key; key < axis.end_key; ++key) {
    const int tile = tile_of(key);
    if (tile > now.tile) break;
    const bool fresh = tile == now.tile;
    if (fresh && now.phase < SoftmaxPhase::weights) break;
    const double was = fresh ? 0.0 : weight(key, previous);
    const double is = weight(key, cursor);
    const double shown = mixed(before_.tile >= 0 && moved_ < 1 ? was : is, is, eased);
    const auto top = [&](double value) {
      return layout.weights_max.y - height * static_cast<float>(std::min(value, 1.15));
    };
    const float x = axis.center(key);
    const bool stale = !fresh && wrong_at(now);
    if (rescaled && !fresh && was - is > 0.004) {
      ui::dashed_rect(at(x - half, top(was)), at(x + half, layout.weights_max.y), Role::muted,
                      1.0f);
    }
    const ImVec2 min(x - half, top(shown)), max(x + half, layout.weights_max.y);
    fill(min, max, stale ? Role::wrong : (fresh ? Role::accent : Role::sky), fresh ? 1.0f : 0.9f);
    if (values) {
      const int digits = fine ? 3 : 2;
      const bool tiny = is > 0 && is < 0.5 * std::pow(10.0, -digits);
      const std::string text = tiny ? "≈0" : number(is, digits);
      const ImVec2 size = ui::text_size(text, Font::mono_note);
      const float y = min.y - size.y - px(1);
      // The outline of what was must not run through the number.
      if (rescaled && !fresh) {
        fill(at(x - size.x / 2, y), at(x + size.x / 2, y + size.y), Role::panel);
      }
      ui::draw_text(at(x, y), text, Font::mono_note, fresh ? Role::text : Role::muted,
                    Align::center);
    }
    if (axis.slot >= px(5)) {
      ui::map(fmt::format("weight_{}", key), "weight", number(is, 3), min, max);
    }
  }
}

void OnlineSoftmaxScene::draw_formulas(const Layout& layout, Cursor cursor) const {
  const SoftmaxMoment now = moment(cursor);
  const std::string tile_sum = number(now.tile_sum, 2);
  std::array<std::string, 5> rows;
  if (now.tile < 0) {
    rows = {"m       = −∞", "rescale = exp(m_old − m)", "p       = exp(s − m)", "l       = 0",
            "O       = 0"};
  } else {
    const auto& step = trace_.steps[static_cast<std::size_t>(now.tile)];
    const std::string factor = number(step.rescale, 3);
    rows[0] = fmt::format("m       = max({}, {}) = {}", score_text(step.m_old),
                          score_text(step.tile_max), score_text(step.m));
    rows[1] = std::isinf(step.m)
                  ? fmt::format("rescale = {}   (no maximum yet)", factor)
                  : (skips_rescale_ && step.m > step.m_old
                         ? fmt::format("rescale = {}   (skipped; it should be {})", factor,
                                       number(std::exp(step.m_old - step.m), 3))
                         : fmt::format("rescale = exp({} − {}) = {}", score_text(step.m_old),
                                       score_text(step.m), factor));
    rows[2] = fmt::format("Σp      = Σ exp(s − {}) = {}",
                          std::isinf(step.m) ? "0" : score_text(step.m), number(step.tile_sum, 2));
    rows[3] = fmt::format("l       = {} × {} + {} = {}", number(step.l_old, 2), factor,
                          number(step.tile_sum, 2), number(step.l, 2));
    rows[4] = fmt::format("O       = {} × {} + Σp·v = {}", number(step.o_old, 2), factor,
                          number(step.o, 2));
  }
  const int phase_of_row[] = {0, 1, 2, 3, 3};
  int place = 0;
  for (int row = 0; row < 5; ++row) {
    const auto index = static_cast<std::size_t>(row);
    const int phase = phase_of_row[row];
    if (layout.formula_rows < 5 && phase != (now.tile < 0 ? 3 : static_cast<int>(now.phase)))
      continue;
    const float y = layout.formulas_min.y + layout.formula_step * static_cast<float>(place++);
    const bool current = now.tile >= 0 && phase == static_cast<int>(now.phase);
    const bool to_come = now.tile < 0 || phase > static_cast<int>(now.phase);
    const float height = height_of(layout.formula_font);
    std::string text = rows[index];
    // What is to come is named, not given away.
    if (to_come && now.tile >= 0) text = text.substr(0, text.find('=') + 1) + " …";
    text = ui::fitted(text, layout.formula_font, layout.formula_width - px(36));
    const ImVec2 min(layout.formulas_min.x, y - px(2));
    const ImVec2 max(layout.formulas_min.x + layout.formula_width, y + height + px(2));
    if (current) {
      fill(min, max, Role::accent, 0.13f);
      fill(min, at(min.x + px(3), max.y), Role::accent);
    }
    ui::draw_text(at(layout.formulas_min.x + px(12), y), text, layout.formula_font,
                  to_come ? Role::faint : (current ? Role::text : Role::muted));
    ui::map(fmt::format("formula_{}", row), text,
            to_come ? "to come" : (current ? "current" : "done"), min, max);
  }
}

void OnlineSoftmaxScene::draw_sums(const Layout& layout, Cursor cursor) const {
  const SoftmaxMoment now = moment(cursor);
  struct Row {
    const char* name;
    double old, kept, now, most;
    int decimals;
  };
  const Row rows[] = {{"l", now.l_old, now.l_kept, now.l, l_most_, 2},
                      {"O", now.o_old, now.o_kept, now.o, o_most_, 2}};
  const float eased = moved_ * moved_ * (3 - 2 * moved_);
  const float left = layout.sums_min.x + px(28);
  const float value_width = ui::text_size("0000.00", Font::mono).x;
  const float width = std::max(px(30), layout.max.x - left - value_width - px(12));
  const float height = std::min(px(22), layout.sum_step * 0.55f);
  for (int index = 0; index < 2; ++index) {
    const Row& row = rows[index];
    const float y = layout.sums_min.y + layout.sum_step * static_cast<float>(index);
    const auto x_of = [&](double value) {
      const double share = std::isfinite(value) ? std::min(std::abs(value) / row.most, 1.0) : 1.0;
      return left + width * static_cast<float>(share);
    };
    ui::draw_text(at(layout.sums_min.x, y), row.name, Font::mono, Role::text);
    draw_list()->AddRectFilled(at(left, y), at(left + width, y + height), ui::color(Role::raised),
                               px(2));
    const bool growing = now.phase == SoftmaxPhase::accumulate;
    const double kept = mixed(moved_ < 1 ? row.old : row.kept, row.kept, eased);
    // Grey: what earlier tiles left after the rescale. Accent: what this tile added. Dashed: what
    // the sum was before.
    fill(at(left, y), at(x_of(kept), y + height), Role::sky, 0.9f);
    if (growing && row.now != row.kept) {
      const double total = mixed(moved_ < 1 ? kept : row.now, row.now, eased);
      fill(at(std::min(x_of(kept), x_of(total)), y),
           at(std::max(x_of(kept), x_of(total)), y + height), Role::accent);
    }
    if (now.rescale < 1 && row.old != 0) {
      ui::dashed_rect(at(left, y), at(x_of(row.old), y + height), Role::muted, 1.0f);
    }
    const std::string text = number(row.now, row.decimals);
    ui::draw_text(at(layout.max.x, y), text, Font::mono, Role::text, Align::right);
    ui::map(fmt::format("bar_{}", row.name), row.name, text, at(left, y),
            at(left + width, y + height));
  }
  if (layout.formula_rows < 5) return;
  const float y = layout.sums_min.y + layout.sum_step * 2;
  const bool wrong = wrong_at(now);
  const Font font = layout.tight ? Font::mono : Font::mono_large;
  const float middle = height_of(font) / 2;
  const ImVec2 label =
      ui::draw_text(at(layout.sums_min.x, y + middle - height_of(Font::mono) / 2),
                    now.tile < 0 ? "O / l   nothing yet" : "O / l =", Font::mono, Role::muted);
  if (now.tile >= 0) {
    const std::string text = number(now.output, 3);
    const float x = layout.sums_min.x + label.x + px(12);
    const ImVec2 size = ui::draw_text(at(x, y), text, font, wrong ? Role::wrong : Role::text);
    if (wrong) ui::cross(at(x + size.x + px(16), y + middle), px(7), Role::wrong);
  }
  ui::map("bar_output", "O / l", number(now.output, 3), at(layout.sums_min.x, y),
          at(layout.max.x, y + height_of(Font::mono)));
}

void OnlineSoftmaxScene::draw_key_tooltip(const Layout& layout, const KeyAxis& axis,
                                          Cursor cursor) const {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (!ImGui::IsWindowHovered() || mouse.y < layout.scores_min.y ||
      mouse.y > layout.weights_max.y) {
    return;
  }
  for (int key = axis.first_key; key < axis.end_key; ++key) {
    if (mouse.x < axis.x(key) || mouse.x >= axis.x(key) + axis.slot) continue;
    const auto index = static_cast<std::size_t>(key);
    std::string text =
        fmt::format("key {} of tile {}\nscore {}   value {}", key, tile_of(key),
                    number(trace_.scores[index], 3), number(trace_.values[index], 3));
    if (tile_of(key) < cursor.tile)
      text += fmt::format("\nweight now {}", number(weight(key, cursor), 4));
    ImGui::SetTooltip("%s", text.c_str());
    return;
  }
}

}  // namespace tilestep::scenes
