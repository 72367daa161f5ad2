#include "scenes/stage/measured_tab.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"
#include "scenes/stage/measured_plots.hpp"

namespace tilestep::scenes::measured {

using ui::Font;
using ui::px;

/// The line of controls above the plots.
class Controls {
 public:
  bool any() const { return any_; }

  /// A choice among words: side by side, or from a list where they do not fit the line.
  int choose(std::string_view id, const std::vector<std::string>& words, int selected,
             const std::string& label = {}) {
    const float width = ui::segmented_width(words);
    if (!label.empty()) draw_label(label, width);
    const float line = ImGui::GetWindowContentRegionMax().x - ImGui::GetWindowContentRegionMin().x;
    if (width <= line) {
      place(width);
      return ui::segmented(id, words, selected).value_or(selected);
    }
    float longest = 0;
    for (const std::string& each : words) longest = std::max(longest, ui::text_size(each).x);
    const float list = std::min(longest + px(56), line);
    place(list);
    return ui::dropdown(id, id, words, selected, list).value_or(selected);
  }

 private:
  /// Before its choices, which are `width` wide and follow on the same line.
  void draw_label(const std::string& label, float width) {
    const ImVec2 size = ui::text_size(label, Font::note);
    place(size.x + px(16) + width);
    const ImVec2 here = ImGui::GetCursorScreenPos();
    ui::draw_text({here.x, here.y + px(8)}, label, Font::note, Role::muted);
    ImGui::Dummy({size.x - px(4), px(24)});
  }

  /// Beside the last one if `width` fits there, else on the next line.
  void place(float width) {
    if (!std::exchange(any_, true)) return;
    ImGui::SameLine(0, px(16));
    if (width > ImGui::GetContentRegionAvail().x) ImGui::NewLine();
  }

  bool any_ = false;
};

namespace {

constexpr float kGap = 24;           // between plots
constexpr float kNarrowest = 360;    // a plot beside others is not narrower
constexpr float kLeastHeight = 200;  // with less below the controls no line is given to words
constexpr float kLeastWords = 160;   // a cut sentence is at least this wide

/// What solid, dashed and grey mean, where more than one of them is on show: on the line of `where`, at its
/// right end. Returns how much of the line it takes.
class Legend {
 public:
  explicit Legend(const std::vector<Drawable>& parts) {
    Looks all;
    for (const Drawable& part : parts) {
      all.measured = all.measured || part.looks.measured;
      all.expected = all.expected || part.looks.expected;
      all.peer = all.peer || part.looks.peer;
      all.reference = all.reference || part.looks.reference;
    }
    if (!all.measured || !(all.expected || all.peer || all.reference)) return;
    items_ = {{"measured", Role::sky, false}};
    if (all.reference) items_.push_back({"reference", Role::text, false});
    if (all.expected) items_.push_back({"expected", Role::muted, true});
    if (all.peer) items_.push_back({"peer", Role::muted, false});
  }
  float width() const {
    float width = 0;
    for (const Item& item : items_) width += px(kStroke + 6 + 16) + word(item);
    return width;
  }
  /// Its right end at `right`, its words on the line of `y`.
  void draw(float right, float y) const {
    float x = right - width() + px(16);
    const float left = x, height = ui::text_size("x", Font::note).y;
    for (const Item& item : items_) {
      const ImVec2 from(x, y + height / 2), to(x + px(kStroke), y + height / 2);
      ui::stroke(from, to, item.role, item.dashed);
      x = to.x + px(6);
      ui::draw_text({x, y}, item.name, Font::note, Role::muted);
      x += word(item) + px(16);
    }
    if (!items_.empty()) ui::map("legend", "Legend", names(), {left, y}, {right, y + height});
  }

 private:
  static constexpr float kStroke = 20;
  struct Item {
    std::string name;
    Role role;
    bool dashed;
  };
  static float word(const Item& item) { return ui::text_size(item.name, Font::note).x; }
  std::string names() const {
    std::vector<std::string> all;
    for (const Item& item : items_) all.push_back(item.name);
    return words::joined(all);
  }
  std::vector<Item> items_;
};

/// Where and how: beside the controls if it fits or height is short, else below them.
void draw_where(const std::string& where, bool controls, const Legend& legend) {
  const float left = ImGui::GetContentRegionAvail().y;
  ImVec2 here = ImGui::GetCursorScreenPos();
  float room = ImGui::GetContentRegionAvail().x;
  if (controls) {
    ImGui::SameLine(0, px(16));
    const float rest = ImGui::GetContentRegionAvail().x;
    const bool beside = ui::text_size(where, Font::note).x <= rest ||
                        (left < px(kLeastHeight) && rest >= px(kLeastWords));
    if (beside) {
      here = ImGui::GetCursorScreenPos();
      here.y += px(8);
      room = rest;
    }
    ImGui::NewLine();
  }
  const float full = room;
  if (room - legend.width() >= px(kLeastWords)) {
    room -= legend.width();
    legend.draw(here.x + full, here.y);
  }
  const std::string shown = ui::fitted(where, Font::note, room);
  const ImVec2 size = ui::draw_text(here, shown, Font::note, Role::muted);
  const ImVec2 end(here.x + size.x, here.y + size.y);
  ui::map("where_measured", where, "", here, end);
  if (here.y >= ImGui::GetCursorScreenPos().y) ImGui::Dummy(size);
  if (shown != where && ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(here, end)) {
    ImGui::SetTooltip("%s", where.c_str());
  }
  ui::space(4);
}

std::string text_of(const Sentence& sentence, const lab::Report& bench) {
  return sentence.text ? sentence.text(bench) : std::string();
}

void draw_sentence(const Sentence& sentence, const std::string& text, Font font) {
  if (text.empty()) return;
  ui::paragraph(text, font);
  ui::map(sentence.id, text, "", ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
}

/// Bars of the same things beside each other: their names stand once.
void share_names(std::vector<Drawable>& parts) {
  const auto same = [](const ui::Bar& a, const ui::Bar& b) { return a.label == b.label; };
  for (std::size_t i = parts.size(); i-- > 1;) {
    std::vector<ui::Bar>& bars = parts[i].bars.bars;
    const std::vector<ui::Bar>& before = parts[i - 1].bars.bars;
    if (bars.empty() || !std::equal(bars.begin(), bars.end(), before.begin(), before.end(), same)) {
      continue;
    }
    for (ui::Bar& bar : bars) bar.name_shown = false;
  }
  const bool roofs = std::any_of(parts.begin(), parts.end(),
                                 [](const Drawable& part) { return part.bars.roof.has_value(); });
  for (Drawable& part : parts) part.bars.roof_room = roofs;
}

void draw_part(const Drawable& part, ImVec2 size) {
  ImGui::BeginChild(part.id.c_str(), size, false,
                    ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  if (part.draw) {
    part.draw(size);
  } else {
    ui::bar_plot(part.bars, size.y);
  }
  ImGui::EndChild();
}

/// Side by side where each has room enough, else one below the other. Never lower than legible: the
/// tab scrolls instead. `below` is left free for what follows.
void draw_parts(std::vector<Drawable> parts, float below) {
  ImVec2 room = ImGui::GetContentRegionAvail();
  room.y -= below + px(4);
  const auto count = static_cast<float>(parts.size());
  float least = 0;
  for (const Drawable& part : parts) least = std::max(least, part.least_height);
  if (room.x >= count * px(kNarrowest)) {
    share_names(parts);
    const float width = (room.x - px(kGap) * (count - 1)) / count;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) ImGui::SameLine(0, px(kGap));
      draw_part(parts[i], {width, std::max(room.y, least)});
    }
    return;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool alone = parts.size() == 1;
    const float height = alone ? std::max(room.y, least) : parts[i].least_height;
    draw_part(parts[i], {room.x, height});
    if (!alone) ui::space(8);
  }
}

void draw_missing(const View& view, std::string_view lesson) {
  const std::string again = fmt::format("Press Measure, or run tilestep bench {}.", lesson);
  ui::empty_state("Not in this measurement", view.missing.empty() ? again : view.missing);
}

}  // namespace

void Tab::show(std::string_view view) {
  view_ = view;
}

void Tab::draw(const Spec& spec, const lab::Report& report, std::string_view lesson,
               const Mask& mask) {
  if (spec.views.empty()) {
    return ui::empty_state("Nothing to measure",
                           "This lesson is about what its kernel does, not its speed.");
  }
  Controls controls;
  const auto needs_of = [&](const View& view) {
    return view.needs.empty() ? spec.needs : view.needs;
  };
  std::vector<const View*> views;
  std::vector<std::string> names;
  int chosen = 0;
  for (const View& view : spec.views) {
    const bool first = views.empty();  // which says what to do where nothing was measured at all
    if (!first && view.missing.empty() &&
        bench_of(report, lesson, needs_of(view), view.computed) == nullptr) {
      continue;
    }
    if (view.name == view_) chosen = static_cast<int>(views.size());
    views.push_back(&view);
    names.push_back(view.name);
  }
  if (names.size() > 1) chosen = controls.choose("measured_view", names, chosen);
  const View& view = *views.at(static_cast<std::size_t>(chosen));
  view_ = view.name;
  if (mask && mask(view.name)) return;
  const std::string needs = needs_of(view);
  if (const lab::Report* bench = bench_of(report, lesson, needs, view.computed)) {
    if (!draw_view(view, *bench, controls)) draw_missing(view, lesson);
  } else if (bench_of(report, lesson, spec.needs) != nullptr) {
    draw_missing(view, lesson);
  } else {
    ui::empty_state("Nothing measured yet",
                    fmt::format("On a machine with an NVIDIA GPU, press Measure here or run "
                                "tilestep bench {}.",
                                lesson));
  }
}

std::optional<std::string> Tab::choice(const Filter& filter, const std::vector<std::string>& values,
                                       Controls& controls) {
  if (values.empty()) return std::nullopt;
  const auto place_of = [&](const std::string& value) {
    return static_cast<int>(std::find(values.begin(), values.end(), value) - values.begin());
  };
  const int count = static_cast<int>(values.size());
  int selected = place_of(chosen_[filter.id]);
  if (selected == count) selected = place_of(filter.first) % count;
  if (count > 1) {
    std::vector<std::string> labels;
    for (const std::string& value : values) {
      labels.push_back(fmt::format(fmt::runtime(filter.words), value));
    }
    const int now = controls.choose(filter.id, labels, selected, filter.label);
    if (now != selected) chosen_[filter.id] = values[static_cast<std::size_t>(now)];
    selected = now;
  }
  return values[static_cast<std::size_t>(selected)];
}

void Tab::filter(const View& view, std::vector<Shown>& shown, Controls& controls) {
  for (const Filter& each : view.filters) {
    std::vector<std::string> values;
    for (const Shown& one : shown) {
      for (std::string& value : distinct(one.rows, each.column)) {
        if (std::find(values.begin(), values.end(), value) == values.end()) {
          values.push_back(std::move(value));
        }
      }
    }
    const auto chosen = choice(each, values, controls);
    if (!chosen) continue;
    for (Shown& one : shown) {
      one.rows = rows_where(one.rows, each.column, *chosen);
      one.reference = rows_where(one.reference, each.column, *chosen);
    }
  }
}

bool Tab::draw_view(const View& view, const lab::Report& bench, Controls& controls) {
  std::vector<Shown> shown;
  const lab::Report* recorded = view.computed ? nullptr : reference_of(bench);
  for (const Plot& plot : view.plots) {
    shown.push_back({&plot, rows_of(rows_of(plot), bench),
                     recorded == nullptr ? lab::Table() : rows_of(rows_of(plot), *recorded)});
  }
  filter(view, shown, controls);

  std::vector<Drawable> parts;
  std::vector<std::string> zero;
  for (const Shown& one : shown) {
    const Reference reference{one.reference, recorded == nullptr ? "" : recorded->device.name};
    for (Drawable& part :
         drawables(*one.plot, one.rows, bench, recorded == nullptr ? nullptr : &reference)) {
      parts.push_back(std::move(part));
    }
    for (std::string& name : zero_curves(*one.plot, one.rows)) zero.push_back(std::move(name));
  }
  const std::string how =
      view.how.empty() ? shown.front().rows.title : filled_in(view.how, shown.front().rows);
  std::string where = view.computed ? "computed on " + bench.device.name : where_measured(bench);
  const bool beside = std::any_of(parts.begin(), parts.end(),
                                  [](const Drawable& part) { return part.looks.reference; });
  if (beside) where += fmt::format("; thin: {}", where_measured(*recorded));
  if (!how.empty()) where += "; " + how;
  if (!zero.empty()) where += "; 0 throughout: " + words::joined(zero);
  draw_where(where, controls.any(), Legend(parts));
  if (parts.empty()) return false;
  draw_sentence(view.headline, text_of(view.headline, bench), Font::body_bold);
  const std::string footnote = text_of(view.footnote, bench);
  const float width = ImGui::GetContentRegionAvail().x;
  draw_parts(std::move(parts), footnote.empty() ? 0 : ui::wrapped_size(footnote, width).y + px(8));
  draw_sentence(view.footnote, footnote, Font::body);
  return true;
}

}  // namespace tilestep::scenes::measured
