// Below the columns: the blocks that ran the tiles, a row each, over time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/experts/moe_routing/layout.hpp"
#include "scenes/shared/words.hpp"
#include "scenes/ui/axis.hpp"

namespace tilestep::scenes {

using moe_routing::Step, moe_routing::TileTrace;

namespace {

constexpr float kMostHatchLines = 2000;

}  // namespace

/// From the recorded clock to the screen.
struct MoeRoutingScene::TimeAxis {
  ui::Axis axis;
  double unit = 1;  ///< clock ticks a unit shown
  double end = 0;   ///< of the last tile, in units shown
  float left = 0, right = 1;
  float hatch = 5;  ///< design pixels between hatch lines; 0: rows too thin for any
  float at_time(double clock) const { return left + (right - left) * axis.place(clock / unit); }
};

/// The blocks that ran a tile, at most `most`; a straggler is always among them.
std::vector<int> MoeRoutingScene::gantt_blocks(int most) const {
  std::vector<int> blocks;
  for (const TileTrace& each : trace_.tiles) blocks.push_back(each.block);
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  if (static_cast<int>(blocks.size()) <= most || most < 1) return blocks;
  blocks.resize(static_cast<std::size_t>(most));
  const std::vector<int> late = stragglers();
  if (!late.empty() && late.front() > blocks.back()) blocks.back() = late.front();
  return blocks;
}

void MoeRoutingScene::draw_gantt(const Layout& layout, Cursor cursor) const {
  const Rect& all = layout.gantt;
  if (all.height() < 3 * layout.note) return;
  if (!done(Step::multiply, cursor)) return draw_step_list(all, cursor);
  const bool gpu = trace_.clock_unit == "ns";
  const int blocks = static_cast<int>(gantt_blocks(1 << 30).size());
  const float head = layout.note + px(4);
  const float foot = layout.note + px(3);
  const float rows_top = all.min.y + head;
  const float room = all.max.y - foot - rows_top;
  const int most = std::max(1, static_cast<int>(room / std::max(px(3), 2.0f)));
  const std::vector<int> shown = gantt_blocks(most);
  const bool all_recorded = trace_.tiles_run == static_cast<std::int64_t>(trace_.tiles.size());
  std::string title = all_recorded && trace_.blocks > blocks
                          ? fmt::format("{} of {} blocks had a tile to run", blocks, trace_.blocks)
                          : words::counted(blocks, "block") + " over time";
  if (static_cast<int>(shown.size()) < blocks) title += fmt::format(", {} shown", shown.size());
  const ImVec2 size =
      ui::draw_text(all.min, ui::fitted(title, Font::note, all.width()), Font::note, Role::muted);
  ui::map("gantt", title, std::to_string(shown.size()), all.min, all.max, {px(80), px(32)});
  const float names =
      ui::text_size(fmt::format("block {}", std::max(trace_.blocks - 1, 0)), Font::note).x;
  TimeAxis axis;
  axis.unit = gpu ? 1000 : 1;
  for (const TileTrace& each : trace_.tiles) axis.end = std::max(axis.end, each.end / axis.unit);
  axis.axis.high = std::max(axis.end, 1e-9);
  axis.left = all.min.x + names + px(10);
  axis.right = all.max.x - px(2);
  const std::vector<int> late = stragglers();
  if (!late.empty()) {
    const std::string text = late.size() == 1
                                 ? fmt::format("straggler: block {}", late.front())
                                 : fmt::format("stragglers: {} of {} blocks", late.size(), blocks);
    if (ui::text_size(text, Font::note).x + size.x + px(20) < all.width()) {
      const ImVec2 extent =
          ui::draw_text(at(all.max.x, all.min.y), text, Font::note, Role::accent, Align::right);
      ui::map("stragglers", text, "", at(all.max.x - extent.x, all.min.y),
              at(all.max.x, all.min.y + extent.y));
    }
  }
  const float row =
      std::min(room / static_cast<float>(std::max<std::size_t>(shown.size(), 1)), px(22));
  // Many long rows have their hatch lines further apart: a draw list does not hold any number.
  const float length = static_cast<float>(shown.size()) * (axis.right - axis.left) / px(1);
  axis.hatch = row < px(6) ? 0 : std::max(5.0f, length / kMostHatchLines);
  int every = 1;
  while (static_cast<float>(every) * row < layout.note) every *= 2;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const float top = rows_top + row * static_cast<float>(i);
    const float seam = row > px(5) ? px(2) : row > 3 ? 1.0f : 0.0f;
    draw_gantt_row(axis, shown[i], at(all.min.x, top), at(axis.right, top + row - seam));
    if (static_cast<int>(i) % every != 0) continue;
    ui::draw_text(
        at(axis.left - px(8), top + std::max(0.0f, (row - layout.note) / 2)),
        fmt::format("block {}", shown[i]), Font::note,
        std::find(late.begin(), late.end(), shown[i]) == late.end() ? Role::muted : Role::accent,
        Align::right);
  }
  draw_ticks(axis, rows_top + row * static_cast<float>(shown.size()));
}

void MoeRoutingScene::draw_ticks(const TimeAxis& axis, float bottom) const {
  const char* unit = axis.unit > 1 ? "µs" : "mma";
  const float unit_left = axis.right - ui::text_size(unit, Font::note).x - px(10);
  for (const double tick : axis.axis.ticks(6)) {
    const float x = std::round(axis.at_time(tick * axis.unit));
    line(at(x, bottom), at(x, bottom + px(3)), Role::border);
    const std::string text = ui::tick_text(tick);
    if (x + ui::text_size(text, Font::note).x / 2 > unit_left) continue;
    ui::draw_text(at(x, bottom + px(2)), text, Font::note, Role::muted, Align::center);
  }
  ui::draw_text(at(axis.right, bottom + px(2)), unit, Font::note, Role::muted, Align::right);
}

/// Before the product: the steps as a row, and what the current one does.
void MoeRoutingScene::draw_step_list(const Rect& area, Cursor cursor) const {
  const float note = height_of(Font::note);
  const float gap = px(18);
  float width = -gap;
  for (int i = 0; i < moe_routing::kSteps; ++i) {
    width += ui::text_size(name_of(static_cast<Step>(i)), Font::note).x + px(16) + gap;
  }
  float y = area.min.y;
  // Where not all have room, the transport bar says how far it is.
  if (width <= area.width()) {
    float x = area.min.x;
    for (int i = 0; i < moe_routing::kSteps; ++i) {
      const auto step = static_cast<Step>(i);
      const ImVec2 size = ui::text_size(name_of(step), Font::note);
      const ImVec2 max = at(x + size.x + px(16), y + note + px(8));
      const bool current = now(step, cursor);
      if (current) fill(at(x, y), max, Role::accent);
      if (!current) outline(at(x, y), max, Role::border, 1);
      const Role role = current ? Role::on_accent : done(step, cursor) ? Role::muted : Role::faint;
      ui::draw_text(at(x + px(8), y + px(4)), name_of(step), Font::note, role);
      if (i + 1 < moe_routing::kSteps) {
        const float middle = y + note / 2 + px(4);
        ui::arrow(at(max.x + px(3), middle), at(max.x + gap - px(3), middle), Role::faint, 1);
      }
      ui::map(fmt::format("step_{}", i), name_of(step),
              current              ? "current"
              : done(step, cursor) ? "done"
                                   : "to come",
              at(x, y), max);
      x = max.x + gap;
    }
    y += note + px(18);
  }
  const std::string text = explanation(cursor);
  const float most = std::min(area.width(), px(620));
  if (y + ui::wrapped_size(text, most, Font::body).y <= area.max.y) {
    ui::draw_wrapped(at(area.min.x, y), text, most, Font::body, Role::muted);
  } else if (y + ui::wrapped_size(text, area.width(), Font::note).y <= area.max.y) {
    ui::draw_wrapped(at(area.min.x, y), text, area.width(), Font::note, Role::muted);
  }
}

std::string MoeRoutingScene::explanation(Cursor cursor) const {
  return explanation(cursor, followed());
}

std::string MoeRoutingScene::explanation(Cursor cursor, int followed) const {
  if (cursor.tile <= 0) {
    return fmt::format(
        "A token is a row of {} numbers, an expert a matrix of its own. Only a few experts work on "
        "each token, so that a model can have many.",
        moe_routing::kHidden);
  }
  switch (static_cast<Step>(cursor.tile - 1)) {
    case Step::score:
      return fmt::format(
          "A logit says how well an expert suits a token. The bars are the logits of token {}: the "
          "highest win.",
          followed);
    case Step::top_k:
      return fmt::format(
          "Softmax makes probabilities of a token's logits. The {} stays; the gate is its share "
          "among what stays. Of equal logits the lower index wins.",
          trace_.top_k == 1 ? "largest" : fmt::format("largest {} of them", trace_.top_k));
    case Step::count:
      return "A histogram of the choices. What one expert has more than another is decided here: "
             "all that follows can only deal with it.";
    case Step::offset:
      return trace_.capacity < 0
                 ? "An exclusive scan over the counts: an expert's rows begin where those before "
                   "it "
                   "end. Hatched slots fill up its last tile."
                 : "An exclusive scan over the kept counts. What stands above the capacity line is "
                   "dropped: the expert never sees it.";
    case Step::permute:
      return "The tokens of an expert are copied side by side: its work is now one dense matrix "
             "product, in tiles that the tensor cores take whole.";
    default:
      return {};
  }
}

/// One block's tiles in their experts' colours, the padded part of each hatched; then the time that
/// it has nothing left to do while others still work.
void MoeRoutingScene::draw_gantt_row(const TimeAxis& axis, int block, ImVec2 min,
                                     ImVec2 max) const {
  area(at(axis.left, min.y), at(axis.right, max.y), Role::raised, 0.5f);
  double free_from = 0;
  for (std::size_t i = 0; i < trace_.tiles.size(); ++i) {
    const TileTrace& each = trace_.tiles[i];
    if (each.block != block) continue;
    free_from = std::max(free_from, each.end);
    const float left = axis.at_time(each.begin);
    const float right = std::max(axis.at_time(each.end), left + 1);
    const float seam = right - left > px(5) ? px(1) : 0;
    const float real = left + (right - seam - left) * static_cast<float>(each.kept) /
                                  static_cast<float>(std::max(1, trace_.tile));
    const Role role = expert_role(each.expert);
    area(at(left, min.y), at(real, max.y), role);
    if (real < right - seam - 0.5f) {
      area(at(real, min.y), at(right - seam, max.y), role, 0.25f);
      if (axis.hatch > 0) {
        ui::hatch(at(real, min.y), at(right - seam, max.y), Role::wasted, axis.hatch);
      }
    }
    if (!draw_inside(at(left, min.y), at(real, max.y), fmt::format("E{}", each.expert),
                     ui::readable_on(ui::color(role)))) {
      draw_inside(at(left, min.y), at(real, max.y), std::to_string(each.expert),
                  ui::readable_on(ui::color(role)));
    }
    if (static_cast<int>(i) == lit_tile_ || each.expert == lit_expert_) {
      outline(at(left, min.y), at(right - seam, max.y), Role::text, 2);
    }
    ui::map(fmt::format("gantt_{}", i), fmt::format("E{} tile {}", each.expert, each.number),
            fmt::format("block {}, {} of {} real", each.block, each.kept, trace_.tile),
            at(left, min.y), at(right, max.y));
  }
  const float idle = axis.at_time(free_from);
  if (axis.right - idle < px(4) || free_from / axis.unit >= axis.end) return;
  const float end = axis.at_time(axis.end * axis.unit);
  outline(at(idle + px(1), min.y), at(end, max.y), Role::wasted, 1, 0.6f);
  draw_inside(at(idle, min.y), at(end, max.y), "idle", ui::color(Role::muted));
}

}  // namespace tilestep::scenes
