// The MoE picture's left half and what the router wrote: the tokens as a grid, the logits as a
// contest of the experts, the rows of values under the columns, and the followed token's numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/experts/moe_routing/layout.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using moe_routing::Step, moe_routing::TokenTrace;
using words::number;

// ---- the tokens ---------------------------------------------------------------------------------

void MoeRoutingScene::draw_tokens(const Layout& layout, Cursor cursor) const {
  const std::string all = words::counted(trace_.tokens, "token");
  const std::string first =
      all_shown() ? all : fmt::format("the first {} of {}", shown_tokens(), all);
  const bool chosen = done(Step::top_k, cursor);
  const char* means = chosen ? ": the best expert's number" : ": waiting";
  const float width = layout.left_end - layout.caption.x;
  const bool fits = ui::text_size(first + means, Font::note).x <= width;
  ui::draw_text(layout.caption, ui::fitted(fits ? first + means : first, Font::note, width),
                Font::note, Role::muted);
  for (int t = 0; t < shown_tokens(); ++t) draw_token(layout, t, cursor);
}

/// A cell, split into as many bands as the token has choices.
void MoeRoutingScene::draw_token(const Layout& layout, int number, Cursor cursor) const {
  const Rect cell = layout.tokens.at_token(number);
  const TokenTrace& each = token(number);
  std::string value = "waiting";
  if (!done(Step::top_k, cursor)) {
    area(cell.min, cell.max, Role::raised);
    draw_inside(cell.min, cell.max, std::to_string(number), ui::color(Role::muted));
  } else {
    value.clear();
    const auto count = static_cast<float>(each.expert.size());
    for (std::size_t c = 0; c < each.expert.size(); ++c) {
      const float left = cell.min.x + cell.width() * static_cast<float>(c) / count;
      const float right = cell.min.x + cell.width() * static_cast<float>(c + 1) / count;
      const bool is_dropped = done(Step::offset, cursor) && each.slot[c] < 0;
      value +=
          fmt::format("{}E{}{}", c == 0 ? "" : " ", each.expert[c], is_dropped ? " dropped" : "");
      const ImVec2 min = at(left, cell.min.y);
      const ImVec2 max = at(right, cell.max.y);
      if (!is_dropped) {
        area(min, max, expert_role(each.expert[c]));
        continue;
      }
      // A band too thin for a cross is red as a whole.
      const bool thin = right - left < px(6);
      area(min, max, Role::wrong, thin ? 0.8f : 0.22f);
      if (thin) continue;
      if (shown_tokens() <= 64) outline(min, max, Role::wrong, 1);
      ui::cross(at((left + right) / 2, (min.y + max.y) / 2),
                std::min(right - left, cell.height()) * 0.26f, Role::wrong);
    }
    const bool first_dropped = done(Step::offset, cursor) && each.slot.front() < 0;
    const int best = each.expert.front();
    // With several choices the number stands in the best one's band, where it fits.
    const float band = std::max(cell.width() / count, std::min(cell.width(), px(14)));
    if (!first_dropped) {
      draw_inside(cell.min, at(cell.min.x + band, cell.max.y), std::to_string(best),
                  ui::readable_on(ui::color(expert_role(best))));
    }
  }
  ui::map(fmt::format("token_{}", number), fmt::format("token {}", number), value, cell.min,
          cell.max);
}

// ---- the router ---------------------------------------------------------------------------------

/// The followed token's logits as bars over the experts: the highest win.
void MoeRoutingScene::draw_contest(const Layout& layout, Cursor cursor) const {
  if (!done(Step::score, cursor)) return;
  const Columns& columns = layout.columns;
  const TokenTrace& each = token(followed());
  const bool chosen = done(Step::top_k, cursor);
  if (each.logits.empty()) {
    const std::string text =
        fmt::format("{} logits a token; they are kept in the trace for up to {} experts", experts(),
                    moe_routing::kMostLogits);
    const float width = columns.max.x - columns.min.x;
    ui::draw_text(at((columns.min.x + columns.max.x) / 2, (columns.min.y + columns.max.y) / 2),
                  ui::fitted(text, Font::note, width), Font::note, Role::muted, Align::center);
    return;
  }
  const auto [low, high] = std::minmax_element(each.logits.begin(), each.logits.end());
  const float range = std::max(*high - *low, 1e-6f);
  const float room = columns.max.y - columns.min.y - px(2);
  for (int e = 0; e < experts(); ++e) {
    const float share = (each.logits[static_cast<std::size_t>(e)] - *low) / range;
    const float tall = room * (0.06f + 0.9f * share);
    const bool wins =
        chosen && std::find(each.expert.begin(), each.expert.end(), e) != each.expert.end();
    const ImVec2 min = at(columns.left(e), columns.max.y - tall);
    const ImVec2 max = at(columns.left(e) + columns.width, columns.max.y);
    const ImU32 color = wins     ? ui::color(expert_role(e))
                        : chosen ? ui::color(Role::raised)
                                 : ui::heat(0.12f + 0.7f * share);
    draw_list()->AddRectFilled(min, max, color, px(2));
    if (chosen && !wins && columns.width > px(6)) outline(min, max, Role::border, 1);
    ui::map(fmt::format("contest_{}", e), fmt::format("E{}", e), wins ? "chosen" : "", min, max);
  }
}

std::vector<MoeRoutingScene::Row> MoeRoutingScene::value_rows(Cursor cursor) const {
  const TokenTrace& each = token(followed());
  const auto count = static_cast<std::size_t>(experts());
  const auto row = [&](const char* id, const char* label, Step step) {
    Row made{id, label, done(step, cursor), now(step, cursor), "", {}};
    made.values.resize(count);
    return made;
  };
  std::vector<Row> rows = {row("logit", "logit", Step::score), row("gate", "gate", Step::top_k),
                           row("wanted", "wanted", Step::count),
                           row("first", "first slot", Step::offset)};
  if (each.logits.empty()) {
    rows[0].missing = fmt::format("not kept for more than {} experts", moe_routing::kMostLogits);
  } else {
    const auto [low, high] = std::minmax_element(each.logits.begin(), each.logits.end());
    const float range = std::max(*high - *low, 1e-6f);
    for (std::size_t e = 0; e < count; ++e) {
      rows[0].values[e] = {number(static_cast<double>(each.logits[e]), 1),
                           0.1f + 0.75f * (each.logits[e] - *low) / range, false};
    }
  }
  for (std::size_t c = 0; c < each.expert.size(); ++c) {
    rows[1].values[static_cast<std::size_t>(each.expert[c])] = {
        number(static_cast<double>(each.gate[c]), 2), -1, true};
  }
  int most = 1;
  for (const auto& one : trace_.expert) most = std::max(most, one.wanted);
  for (std::size_t e = 0; e < count; ++e) {
    const auto& one = trace_.expert[e];
    rows[2].values[e] = {std::to_string(one.wanted),
                         static_cast<float>(one.wanted) / static_cast<float>(most), false};
    rows[3].values[e] = {std::to_string(one.first_slot), -1, false};
  }
  return rows;
}

void MoeRoutingScene::draw_rows(const Layout& layout, Cursor cursor) const {
  if (layout.rows == 0) return;
  const std::vector<Row> rows = value_rows(cursor);
  if (layout.rows == 1) {
    // Where there is room for one, it is that of the step, or the last that there was.
    const int wanted = std::clamp(cursor.tile - 1, 0, static_cast<int>(rows.size()) - 1);
    draw_row(layout, rows[static_cast<std::size_t>(wanted)], layout.rows_top, layout.labels);
    return;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    draw_row(layout, rows[i], layout.rows_top + static_cast<float>(i) * layout.row_height,
             layout.labels);
  }
}

void MoeRoutingScene::draw_row(const Layout& layout, const Row& row, float top, bool label) const {
  const Columns& columns = layout.columns;
  const float bottom = top + layout.row_height;
  if (row.current) {
    draw_list()->AddRectFilled(at(columns.min.x - px(4), top), at(columns.max.x, bottom),
                               ui::color(Role::accent, 0.13f), px(3));
  }
  if (label) {
    const Role role = row.current ? Role::accent : row.known ? Role::muted : Role::faint;
    ui::draw_text(at(columns.min.x - px(10), top + (layout.row_height - layout.note) / 2),
                  row.label, Font::note, role, Align::right);
  }
  float widest = 0;
  for (const Row::Value& value : row.values) {
    widest = std::max(widest, ui::text_size(value.text, Font::mono_note).x);
  }
  // Numbers that are wider than a column stand at every second one, or fourth, …
  int every = 1;
  while (static_cast<float>(every) * columns.pitch < widest + px(6)) every *= 2;
  if (row.known && !row.missing.empty()) {
    ui::draw_text(at(columns.min.x, top),
                  ui::fitted(row.missing, Font::note, columns.max.x - columns.min.x), Font::note,
                  Role::muted);
  }
  for (int e = 0; e < experts(); ++e) {
    const Row::Value& value = row.values[static_cast<std::size_t>(e)];
    const Rect lane = columns.lane(e);
    const float seam = columns.pitch >= px(6) ? px(1) : 0;
    const ImVec2 min = at(lane.min.x + seam, top + seam);
    const ImVec2 max = at(lane.max.x - seam, bottom - seam);
    const std::string shown = !row.known ? "to come" : value.text.empty() ? "–" : value.text;
    ui::map(fmt::format("{}_{}", row.id, e), row.label, shown, min, max);
    if (!row.known || value.text.empty()) continue;
    ImU32 ink = ui::color(row.current ? Role::text : Role::muted);
    // Chosen experts have their colour, logits a heat colour; counts too where no number fits.
    const bool heat = value.share >= 0 && (row.id == "logit" || every > 1);
    if (value.chosen || heat) {
      const ImU32 color = value.chosen ? ui::color(expert_role(e)) : ui::heat(value.share);
      draw_list()->AddRectFilled(min, max, color, px(2));
      ink = ui::readable_on(color);
    }
    if (every == 1) {
      draw_inside(min, max, value.text, ink);
    } else if (value.share < 0 && !value.chosen && e % every == 0) {
      ui::draw_text(at(min.x, top), value.text, Font::mono_note,
                    row.current ? Role::text : Role::muted);
    }
  }
}

/// The experts' names, each over a strip of its colour.
void MoeRoutingScene::draw_names(const Layout& layout, Cursor) const {
  const Columns& columns = layout.columns;
  const std::string widest = fmt::format("E{}", experts() - 1);
  int every = 1;
  while (static_cast<float>(every) * columns.pitch < ui::text_size(widest, Font::note).x + px(4)) {
    every *= 2;
  }
  for (int e = 0; e < experts(); ++e) {
    const Rect lane = columns.lane(e);
    const float seam = columns.pitch >= px(6) ? px(1) : 0;
    area(at(lane.min.x + seam, layout.names_top), at(lane.max.x - seam, layout.names_top + px(3)),
         expert_role(e));
    if (e % every != 0 && e != lit_expert_) continue;
    if (lit_expert_ >= 0 && every > 1 && e != lit_expert_ && std::abs(e - lit_expert_) < every) {
      continue;  // its name would touch that of the expert under the pointer
    }
    const std::string name = fmt::format("E{}", e);
    const float half = ui::text_size(name, Font::note).x / 2;
    const float middle = std::clamp(lane.center().x, columns.min.x + half,
                                    std::max(columns.max.x - half, columns.min.x + half));
    ui::draw_text(at(middle, layout.names_top + px(3)), name, Font::note,
                  e == lit_expert_ ? Role::accent : Role::text, Align::center);
  }
}

// ---- the followed token -------------------------------------------------------------------------

/// Where a choice of the followed token is: at the foot of its expert's column, then in its slot.
MoeRoutingScene::Rect MoeRoutingScene::followed_place(const Layout& layout, int choice,
                                                      Cursor cursor) const {
  const Columns& columns = layout.columns;
  const TokenTrace& each = token(followed());
  const auto c = static_cast<std::size_t>(choice);
  const int e = each.expert[c];
  const auto& here = expert(e);
  const bool is_dropped = each.slot[c] < 0;
  if (!done(is_dropped ? Step::offset : Step::permute, cursor)) {
    return {at(columns.left(e), columns.max.y - px(3)),
            at(columns.left(e) + columns.width, columns.max.y)};
  }
  const int place = is_dropped ? each.rank[c] - here.kept : each.slot[c] - here.first_slot;
  if (columns.cells) {
    return is_dropped ? columns.dropped(e, here.tiles, place) : columns.slot(e, place);
  }
  const float y = is_dropped
                      ? columns.pile_foot(here.tiles) - columns.scale * static_cast<float>(place)
                      : columns.max.y - columns.height(place);
  const float top = std::clamp(y - px(2), columns.min.y, columns.max.y - px(3));
  return {at(columns.left(e), top), at(columns.left(e) + columns.width, top + px(3))};
}

/// The followed token's way from the grid to its experts, behind the cells.
void MoeRoutingScene::draw_ways(const Layout& layout, Cursor cursor) const {
  if (!done(Step::top_k, cursor)) return;
  const TokenTrace& each = token(followed());
  const Rect from = layout.tokens.at_token(followed());
  for (std::size_t c = 0; c < each.expert.size(); ++c) {
    const Rect to = followed_place(layout, static_cast<int>(c), cursor);
    const ImVec2 start = at(from.max.x, from.center().y);
    const ImVec2 end = at(to.min.x, to.center().y);
    const float bend = std::max((end.x - start.x) * 0.5f, px(8));
    const Role role = each.slot[c] < 0 && done(Step::offset, cursor) ? Role::wrong : Role::accent;
    draw_list()->AddBezierCubic(start, at(start.x + bend, start.y), at(end.x - bend, end.y), end,
                                ui::color(role, 0.8f), px(1.5f), 0);
  }
}

/// Frames round every cell of the followed token.
void MoeRoutingScene::draw_followed(const Layout& layout, Cursor cursor) const {
  const TokenTrace& each = token(followed());
  for (std::size_t c = 0; c < each.expert.size() && done(Step::top_k, cursor); ++c) {
    const Rect to = followed_place(layout, static_cast<int>(c), cursor);
    draw_frame(to.min, to.max);
    ui::map(fmt::format("followed_{}", c),
            fmt::format("token {} in E{}", followed(), each.expert[c]),
            number(static_cast<double>(each.gate[c]), 2), to.min, to.max);
  }
  const Rect from = layout.tokens.at_token(followed());
  draw_frame(from.min, from.max);
}

namespace {

/// Lines of whole words that fit `width`: a number is not broken at its point.
std::vector<std::string> lines_of(const std::string& text, float width, Font font) {
  std::vector<std::string> lines;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, end - from);
    from = end + 1;
    if (!lines.empty() && ui::text_size(lines.back() + " " + word, font).x <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

}  // namespace

void MoeRoutingScene::draw_details(const Layout& layout, Cursor cursor) const {
  const float width = layout.details.width();
  const float room = layout.details.height();
  if (room < layout.note) return;
  const std::string who = fmt::format("Token {}", followed());
  const bool large = room > 4 * layout.note;
  const Font who_font = large ? Font::body_bold : Font::note;
  float y = layout.details.min.y;
  std::string first = who;
  if (custom()) first += ": drag it";
  y += ui::draw_text(at(layout.details.min.x, y), ui::fitted(first, who_font, width), who_font).y;
  const Font font = Font::mono_note;
  const float line = height_of(font);
  const auto most = static_cast<std::size_t>(std::max(0.0f, (layout.max.y + 1 - y) / line));
  if (most == 0) return;
  // As many of its choices as there is room for.
  int choices = trace_.top_k;
  std::vector<std::string> lines = lines_of(formula(cursor, choices), width, font);
  while (choices > 1 && lines.size() > most) {
    lines = lines_of(formula(cursor, --choices), width, font);
  }
  if (lines.size() > most) {
    lines.resize(most);
    lines.back() = ui::fitted(lines.back() + " …", font, width);
  }
  float widest = 0;
  std::string shown;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const ImVec2 place = at(layout.details.min.x, y + line * static_cast<float>(i));
    const std::string text = ui::fitted(lines[i], font, width);
    widest = std::max(widest, ui::draw_text(place, text, font).x);
    shown += (i == 0 ? "" : " ") + text;
  }
  ui::map("formula", who, shown, at(layout.details.min.x, y),
          at(layout.details.min.x + widest, y + line * static_cast<float>(lines.size())));
}

/// The token under way from its expert to another.
void MoeRoutingScene::draw_dragged(const Layout& layout) const {
  if (dragged_ < 0) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const ImVec2 moved(mouse.x - dragged_from_.x, mouse.y - dragged_from_.y);
  if (moved.x * moved.x + moved.y * moved.y < px(4) * px(4)) return;
  const Columns& columns = layout.columns;
  if (lit_expert_ >= 0) {
    const Rect lane = columns.lane(lit_expert_);
    ui::dashed_rect(lane.min, lane.max, Role::accent, 2);
    ui::map("drop_target", fmt::format("E{}", lit_expert_), "", lane.min, lane.max);
  }
  const float half = std::max(layout.tokens.cell, px(20)) / 2;
  const ImVec2 min = at(mouse.x - half, mouse.y - half);
  const ImVec2 max = at(mouse.x + half, mouse.y + half);
  const Role role = expert_role(lit_expert_ >= 0 ? lit_expert_ : token(dragged_).expert.front());
  draw_list()->AddRectFilled(min, max, ui::color(role, 0.85f), px(3));
  draw_inside(min, max, std::to_string(dragged_), ui::readable_on(ui::color(role)));
  draw_frame(min, max);
}

}  // namespace tilestep::scenes
