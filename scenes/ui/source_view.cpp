#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <set>

#include "kernels/base/lab/source.hpp"
#include "scenes/ui/code_lines.hpp"
#include "scenes/ui/context.hpp"
#include "scenes/ui/control_parts.hpp"
#include "scenes/ui/line_links.hpp"
#include "scenes/ui/syntax.hpp"
#include "scenes/ui/theme.hpp"

namespace tilestep::ui {
namespace {

/// A line of the view: a line of the source, or a fold in place of some.
struct Row {
  int line = 0;   ///< 1-based; of a fold the first
  int fold = -1;  ///< which, and whether it is open; −1: none begins here
  bool open = false;
};

struct KeptSource {
  const char* data = nullptr;
  std::size_t size = 0;
  std::vector<SyntaxLine> lines;
  std::vector<lab::LineRange> folds;
  std::set<int> open;  ///< folds
  std::vector<Row> rows;
  int current = 0;
  float scroll_target = -1;
};

std::vector<Row> rows_of(const KeptSource& kept) {
  std::vector<Row> rows;
  int fold = 0;
  for (int line = 1; line <= std::ssize(kept.lines); ++line) {
    const bool begins =
        fold < std::ssize(kept.folds) && kept.folds[static_cast<std::size_t>(fold)].first == line;
    if (begins) {
      const bool open = kept.open.count(fold) > 0;
      rows.push_back({line, fold, open});
      if (!open) line = kept.folds[static_cast<std::size_t>(fold)].last;
      ++fold;
      if (!open) continue;
    }
    rows.push_back({line});
  }
  return rows;
}

class SourceRows {
 public:
  SourceRows(std::string_view source, const SourceLook& look, const KeptSource& kept)
      : source_(source),
        look_(look),
        kept_(kept),
        height_(std::round(px(20))),
        advance_(text_size("0", Font::mono_note).x),
        costs_(look.costs.empty() ? 0 : px(56)),
        gutter_(costs_ + px(32) +
                advance_ * static_cast<float>(std::to_string(kept.lines.size()).size())) {}

  float line_height() const { return height_; }
  /// The word that the pointer is on; −1: none.
  int hovered() const { return hovered_; }
  float width_of(int number) const {
    const SyntaxLine& line = kept_.lines[static_cast<std::size_t>(number) - 1];
    const auto value = look_.values.find(number);
    const float besides = value == look_.values.end() ? 0 : value_width(value->second) + px(24);
    return gutter_ + px(24) + advance_ * static_cast<float>(line.columns) + besides;
  }

  void draw(int number, ImVec2 at, float width, bool lit) {
    const SyntaxLine& line = kept_.lines[static_cast<std::size_t>(number) - 1];
    const float left = ImGui::GetWindowPos().x;
    const bool now = number == look_.current;
    if (now) {
      list().AddRectFilled({left, at.y}, {left + width, at.y + height_}, color(Role::accent, 0.17f),
                           px(4));
      list().AddRectFilled({left, at.y}, {left + px(3), at.y + height_}, color(Role::accent),
                           px(2));
      const std::string_view text = source_.substr(line.begin, line.end - line.begin);
      map("source_line", text.substr(0, text.find(lab::kStepMark)), std::to_string(number),
          {left, at.y}, {left + width, at.y + height_});
    }
    if (lit) {
      draw_lit_line({left, at.y}, {left + width, at.y + height_});
      map("lit_line", std::to_string(number), "", {left, at.y}, {left + width, at.y + height_});
    }
    const float y = at.y + (height_ - font_pixels(Font::mono_note)) / 2;
    draw_text({at.x + gutter_ - px(20), y}, std::to_string(number), Font::mono_note,
              now || lit ? Role::text : Role::faint, Align::right);
    draw_cost(number, {at.x + px(6), at.y});
    draw_step(number, {at.x + gutter_ - px(6), at.y + height_ / 2});
    float x = at.x + gutter_ + px(8);
    for (const SyntaxSpan& span : line.spans) {
      const std::string_view piece = source_.substr(span.begin, span.end - span.begin);
      if (piece.starts_with(lab::kStepMark)) continue;  // it is for the program, not for readers
      if (span.kind == Syntax::plain) {
        x = draw_words(piece, number, x, y);
      } else {
        draw_text({x, y}, piece, Font::mono_note, role_of(span.kind));
        x += advance_ * static_cast<float>(span.columns);
      }
    }
    const auto value = look_.values.find(number);
    if (value != look_.values.end()) draw_value(number, value->second, {x + px(16), at.y});
  }

  /// Returns true if it was clicked.
  bool draw_fold(const Row& row, ImVec2 at) const {
    const lab::LineRange& lines = kept_.folds[static_cast<std::size_t>(row.fold)];
    const int count = lines.last - lines.first + 1;
    const std::string text =
        fmt::format("{} {} that {} the picture", count, count == 1 ? "line" : "lines",
                    count == 1 ? "records" : "record");
    const float x = at.x + gutter_ + px(8), middle = at.y + height_ / 2;
    const float y = at.y + (height_ - text_size(text, Font::note).y) / 2;
    const ImVec2 center(x + px(5), middle);
    const float r = px(4);
    ImGui::PushID(row.fold);
    const float width = px(18) + text_size(text, Font::note).x;
    ImGui::SetCursorScreenPos({x, at.y});
    bool clicked = ImGui::InvisibleButton("fold", {width, height_});
    const std::string id = fmt::format("fold_{}", row.line);
    clicked =
        Context::current().focus().control(id, {x, at.y}, {x + width, at.y + height_}).pressed ||
        clicked;
    const Role role = ImGui::IsItemHovered() ? Role::text : Role::muted;
    use_hand();
    ImGui::PopID();
    ImGui::SetCursorScreenPos(at);
    if (row.open) {
      list().AddTriangleFilled({center.x - r, center.y - r / 2}, {center.x + r, center.y - r / 2},
                               {center.x, center.y + r}, color(role));
    } else {
      list().AddTriangleFilled({center.x - r / 2, center.y - r}, {center.x + r, center.y},
                               {center.x - r / 2, center.y + r}, color(role));
    }
    draw_text({x + px(18), y}, text, Font::note, role);
    map(id, text, row.open ? "open" : "folded", {x, at.y}, {x + width, at.y + height_});
    return clicked;
  }

 private:
  float value_width(const std::string& value) const {
    return text_size(value, Font::mono_note).x + px(12);
  }

  /// A text of code with those of its words that name things in their colours. Returns where it ends.
  float draw_words(std::string_view text, int number, float x, float y) {
    std::size_t begin = 0;  // of what was not drawn yet
    const auto put = [&](std::size_t end, Role role) {
      const std::string_view piece = text.substr(begin, end - begin);
      if (!piece.empty()) draw_text({x, y}, piece, Font::mono_note, role);
      x += advance_ * static_cast<float>(characters(piece));
      begin = end;
    };
    const auto is_part = [&](std::size_t at) {
      return std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_';
    };
    for (std::size_t at = 0; at < text.size();) {
      if (!is_part(at)) {
        ++at;
        continue;
      }
      std::size_t end = at;
      while (end < text.size() && is_part(end)) ++end;
      const bool called = end < text.size() && (text[end] == '(' || text[end] == '<') &&
                          !is_declared(line_before(text.substr(at)));
      const int word = word_at(text.substr(at, end - at), number, called);
      if (word >= 0) {
        put(at, Role::text);
        const float left = x;
        put(end, look_.words[static_cast<std::size_t>(word)].role);
        light(word, number, {left, y}, x);
      }
      at = end;
    }
    put(text.size(), Role::text);
    return x;
  }

  /// The line of a part of the source up to it.
  std::string_view line_before(std::string_view part) const {
    const auto at = static_cast<std::size_t>(part.data() - source_.data());
    const std::string_view all = source_.substr(0, at);
    return all.substr(all.rfind('\n') + 1);
  }

  /// Whether the name after `before` is declared there: a type stands before it.
  static bool is_declared(std::string_view before) {
    const std::size_t last = before.find_last_not_of(' ');
    if (last == before.npos || last + 1 == before.size()) return false;
    const auto is_part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    };
    std::size_t first = last + 1;
    while (first > 0 && is_part(before[first - 1])) --first;
    const std::string_view word = before.substr(first, last + 1 - first);
    return !word.empty() && word != "return" && word != "else" && word != "do";
  }

  int word_at(std::string_view text, int line, bool called) const {
    for (std::size_t i = 0; i < look_.words.size(); ++i) {
      const SourceWord& word = look_.words[i];
      if (word.word == text && word.not_in != line && (called || !word.call))
        return static_cast<int>(i);
    }
    return -1;
  }

  void light(int word, int number, ImVec2 min, float right) {
    const ImVec2 low(min.x - px(2), min.y - px(1)),
        high(right + px(2), min.y + font_pixels(Font::mono_note) + px(2));
    if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(low, high)) hovered_ = word;
    const std::string& name = look_.words[static_cast<std::size_t>(word)].word;
    map(fmt::format("word_{}_{}", number, name), name, "", low, high);
    if (look_.words[static_cast<std::size_t>(word)].lit) {
      list().AddRect(low, high, color(Role::text), px(3), 0, px(1));
    }
  }

  void draw_value(int number, const std::string& value, ImVec2 at) const {
    const bool now = number == look_.current;
    const ImVec2 max(at.x + value_width(value), at.y + height_ - px(1));
    list().AddRectFilled({at.x, at.y + px(1)}, max, color(Role::raised), px(4));
    draw_text({at.x + px(6), at.y + (height_ - font_pixels(Font::mono_note)) / 2}, value,
              Font::mono_note, now ? Role::text : Role::muted);
    map(fmt::format("value_{}", number), value, now ? "current" : "", at, max);
  }

  void draw_cost(int number, ImVec2 at) const {
    const auto found = look_.costs.find(number);
    if (found == look_.costs.end()) return;
    const SourceCost& cost = found->second;
    const ImVec2 min(at.x, at.y + px(1)), max(at.x + costs_ - px(6), at.y + height_ - px(1));
    const ImU32 ground = cost.heat > 0 ? heat(cost.heat) : color(Role::raised);
    list().AddRectFilled(min, max, ground, px(4));
    const FontScope font(Font::mono_note);
    const float width = text_size(cost.text, Font::mono_note).x;
    list().AddText(
        {(min.x + max.x - width) / 2, at.y + (height_ - font_pixels(Font::mono_note)) / 2},
        cost.heat > 0 ? readable_on(ground) : color(Role::text), cost.text.c_str());
    map(fmt::format("cost_{}", number), cost.text, "", min, max);
  }

  /// A small numbered disc at the lines of this step.
  void draw_step(int number, ImVec2 center) const {
    const std::vector<int>& steps = look_.step_lines;
    const auto found = std::find(steps.begin(), steps.end(), number);
    if (found == steps.end()) return;
    draw_step_disc(static_cast<int>(found - steps.begin()) + 1, number == look_.current, center);
  }

  std::string_view source_;
  const SourceLook& look_;
  const KeptSource& kept_;
  float height_, advance_, costs_, gutter_;
  int hovered_ = -1;
};

/// A line comes to about a third of the view; one that is folded away: its fold.
void aim_at(KeptSource& kept, int line, float line_height) {
  auto row = std::find_if(kept.rows.begin(), kept.rows.end(),
                          [&](const Row& each) { return each.fold < 0 && each.line == line; });
  if (row == kept.rows.end()) {
    const auto later = std::find_if(kept.rows.begin(), kept.rows.end(),
                                    [&](const Row& each) { return each.line > line; });
    if (later == kept.rows.begin()) return;
    row = later - 1;
  }
  const float top = static_cast<float>(row - kept.rows.begin()) * line_height;
  kept.scroll_target =
      std::max(0.0f, std::floor((top - ImGui::GetWindowHeight() / 3) / line_height) * line_height);
}

/// Brings the current line to about a third of the view; before the first step the first line that one has.
void scroll_to(KeptSource& kept, const SourceLook& look, float line_height) {
  const int current =
      look.current > 0 || look.step_lines.empty() ? look.current : look.step_lines.front();
  if (kept.current != current) {
    kept.current = current;
    if (current > 0) aim_at(kept, current, line_height);
  }
  if (kept.scroll_target < 0) return;
  const float now = ImGui::GetScrollY();
  const float target = std::min(kept.scroll_target, std::max(ImGui::GetScrollMaxY(), now));
  const float seconds = animation_seconds();
  const float share = seconds > 0 ? 1 - std::exp(-12 * seconds) : 1;
  const float next = now + (target - now) * share;
  if (std::abs(target - next) < 1) {
    // Before the first layout ImGui does not know yet how far it can scroll.
    ImGui::SetScrollY(kept.scroll_target);
    if (ImGui::GetScrollMaxY() > 0) kept.scroll_target = -1;
  } else {
    ImGui::SetScrollY(next);
    request_redraw();
  }
}

}  // namespace

int source_view(std::string_view id, std::string_view source, const SourceLook& look) {
  LineLinks none;
  return source_view(id, source, look, none);
}

int source_view(std::string_view id, std::string_view source, const SourceLook& look,
                LineLinks& links) {
  KeptSource& kept = Context::current().kept<KeptSource>(kept_name("source", id));
  if (kept.data != source.data() || kept.size != source.size()) {
    kept = {
        source.data(), source.size(), tinted(source), lab::recorder_lines(source), {}, {}, 0, -1};
    kept.rows = rows_of(kept);
  }
  SourceRows view(source, look, kept);
  float width = 0;
  for (int line = 1; line <= std::ssize(kept.lines); ++line) {
    width = std::max(width, view.width_of(line));
  }
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
  ImGui::PushID(id.data(), id.data() + id.size());
  ImGui::BeginChild("source", {0, 0}, false, ImGuiWindowFlags_HorizontalScrollbar);
  scroll_stop("source");
  scroll_to(kept, look, view.line_height());
  if (links.go_to > 0) aim_at(kept, links.go_to, view.line_height());
  const bool over = ImGui::IsWindowHovered();
  const float marked = std::max(width, ImGui::GetContentRegionAvail().x);
  int turned = -1;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(kept.rows.size()), view.line_height());
  while (clipper.Step()) {
    for (int at = clipper.DisplayStart; at < clipper.DisplayEnd; ++at) {
      const Row& row = kept.rows[static_cast<std::size_t>(at)];
      const ImVec2 place = ImGui::GetCursorScreenPos();
      if (row.fold < 0) {
        view.draw(row.line, place, marked,
                  std::count(links.lit.begin(), links.lit.end(), row.line) > 0);
        const float left = ImGui::GetWindowPos().x;
        if (over && ImGui::IsMouseHoveringRect({left, place.y},
                                               {left + marked, place.y + view.line_height()})) {
          links.hovered = row.line;
        }
      } else if (view.draw_fold(row, place)) {
        turned = row.fold;
      }
      ImGui::SetCursorScreenPos(place);
      ImGui::Dummy({width, view.line_height()});
    }
  }
  // A click on a word is about what that names.
  if (view.hovered() < 0 && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    links.clicked = links.hovered;
  }
  ImGui::EndChild();
  ImGui::PopID();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  if (turned >= 0) {
    if (kept.open.erase(turned) == 0) kept.open.insert(turned);
    kept.rows = rows_of(kept);
    request_redraw();
  }
  return view.hovered();
}

}  // namespace tilestep::ui
