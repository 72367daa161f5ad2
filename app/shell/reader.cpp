#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "app/shell/panes.hpp"
#include "scenes/shared/glossary.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;

using ui::list;

/// The terms that each stretch of the text uses for the first time.
std::vector<std::vector<ui::MarkdownTerm>> first_uses(const scenes::Guide& guide,
                                                      const std::string& lesson) {
  std::vector<std::vector<ui::MarkdownTerm>> all;
  std::set<std::string> known;
  const auto add = [&](std::string_view text) {
    std::vector<ui::MarkdownTerm>& terms = all.emplace_back();
    for (const scenes::TermMention& mention : scenes::terms_in(text, lesson)) {
      if (!known.insert(mention.term->id).second) continue;
      terms.push_back(
          {std::string(text.substr(mention.begin, mention.size)), mention.term->first_sentence});
    }
  };
  add(guide.intro);
  for (const scenes::GuideStop& stop : guide.stops) add(stop.text);
  add(guide.more);
  return all;
}

}  // namespace

void read_guide(const LessonState& lesson, Reading& reading) {
  if (reading.guide || !reading.problem.empty()) return;
  try {
    reading.guide = scenes::parse_guide(scenes::lesson_text(lesson.info.id), lesson.knobs);
    reading.terms = first_uses(*reading.guide, lesson.info.id);
  } catch (const Error& error) {
    reading.problem = error.what();
  }
}

namespace {

void links(ShellState& state, const ui::MarkdownEvents& events,
           std::optional<std::string>& pointed_at) {
  constexpr std::string_view kTry = "try:", kLight = "light:";
  if (events.clicked.starts_with(kTry)) {
    state.try_out(scenes::try_settings(events.clicked, state.session.lesson().knobs));
  }
  constexpr std::string_view kTerm = "term:";
  if (events.clicked.starts_with(kTerm)) {
    const auto terms = scenes::find_terms(events.clicked.substr(kTerm.size()));
    if (!terms.empty()) state.show_term(terms.front()->id);
  }
  if (events.hovered.starts_with(kLight)) pointed_at = events.hovered.substr(kLight.size());
}

/// Far from what is in sight a stretch of text is left out once its height is known: a lesson's text is many
/// times as long as the column, and laying it out is most of what a frame costs. While the keyboard walks all
/// of it is there: what is not drawn takes no part.
class StretchScope {
 public:
  StretchScope(Reading& reading, std::size_t index, bool waits, bool wanted)
      : top_(ImGui::GetCursorPosY()) {
    reading.stretches.resize(std::max(reading.stretches.size(), index + 1));
    stretch_ = &reading.stretches[index];
    const float width = ImGui::GetContentRegionAvail().x, scale = px(1);
    const bool known = stretch_->height > 0 && stretch_->width == width &&
                       stretch_->scale == scale && stretch_->waits == waits;
    const float page = ImGui::GetWindowHeight(), above = top_ - ImGui::GetScrollY();
    const bool near = above < 2 * page && above + stretch_->height > -page;
    const bool walks = ui::Context::current().focus().shown();
    drawn_ = !known || wanted || near || walks;
    if (drawn_) *stretch_ = {0, width, scale, waits};
  }
  ~StretchScope() {
    if (drawn_) {
      stretch_->height = ImGui::GetCursorPosY() - top_;
    } else {
      ImGui::Dummy({1, stretch_->height - ImGui::GetStyle().ItemSpacing.y});
    }
  }
  StretchScope(const StretchScope&) = delete;
  StretchScope& operator=(const StretchScope&) = delete;
  bool drawn() const { return drawn_; }

 private:
  float top_;
  Reading::Stretch* stretch_;
  bool drawn_;
};

/// What keeps a stop's text back until it is answered or skipped.
enum class Waits { no, for_question, for_measured, for_earlier };

Waits waits(const ShellState& state, const Reading& reading, int index) {
  const scenes::GuideStop& stop = reading.guide->stops[static_cast<std::size_t>(index)];
  if (index == reading.stop && reading.asks) return Waits::for_question;
  // What comes after may tell the answer.
  if (index > reading.stop && reading.asks) return Waits::for_earlier;
  if (stop.tab != "measured" || !state.session.predicts() || reading.tells) return Waits::no;
  const MeasuredGate& gate = state.session.lesson().measured_gate;
  const int item = stop.view.empty() ? gate.waiting() : gate.masks(stop.view);
  const bool open = item >= 0 && gate.items()[static_cast<std::size_t>(item)].waits();
  return open ? Waits::for_measured : Waits::no;
}

/// A stretch of text with its number in the margin; the one that the scene stands at has a bar.
bool draw_stop(ShellState& state, int index, std::optional<std::string>& pointed_at) {
  Reading& reading = state.reading();
  const scenes::GuideStop& stop = reading.guide->stops[static_cast<std::size_t>(index)];
  const bool current = index == reading.stop;
  const float gutter = px(36);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::Indent(gutter);
  ImGui::BeginGroup();
  ui::paragraph(stop.title, Font::section, current || reading.stop < 0 ? Role::text : Role::muted);
  const float heading_bottom = ImGui::GetItemRectMax().y;
  ui::space(4);
  ImGui::PushID(index);
  const Waits wait = waits(state, reading, index);
  if (wait == Waits::for_question) {
    ui::paragraph("First a question. Answer it, then press → to see the step and read on.",
                  Font::body, Role::muted);
    const auto& card = state.session.lesson().gate.card();
    if (card && card->guess) {
      if (ui::button("show_asked", "Show the step", {.primary = true})) state.session.step_on();
    } else if (ui::button("skip_asking", "Skip the question")) {
      state.session.skip();
    }
  } else if (wait == Waits::for_measured) {
    ui::paragraph("A question under Measured (M) asks about these figures.", Font::body,
                  Role::muted);
    if (ui::button("tell", "Show them anyway")) reading.tells = true;
  } else if (wait == Waits::no) {
    links(state,
          ui::markdown(stop.text, {.id = fmt::format("s{}_", index + 1),
                                   .max_characters = 68,
                                   .terms = reading.terms[static_cast<std::size_t>(index) + 1]}),
          pointed_at);
  }
  ImGui::PopID();
  ImGui::EndGroup();
  ImGui::Unindent(gutter);
  const ImVec2 end = ImGui::GetItemRectMax();
  const ImVec2 center(at.x + px(13), at.y + ui::text_size("x", Font::section).y / 2);
  const std::string number = std::to_string(index + 1);
  const ImVec2 size = ui::text_size(number, Font::note);
  list().AddCircleFilled(center, px(12), ui::color(current ? Role::accent : Role::raised));
  ui::draw_text({center.x - size.x / 2, center.y - size.y / 2}, number, Font::note,
                current ? Role::on_accent : Role::muted);
  if (current) {
    list().AddRectFilled({at.x + px(12), heading_bottom + px(4)}, {at.x + px(14), end.y},
                         ui::color(Role::accent), px(1));
  }
  ui::map(fmt::format("stop_{}", index + 1), stop.title, current ? "selected" : "", at, end);
  const bool pressed =
      !current && ui::Context::current()
                      .focus()
                      .control(fmt::format("stop_{}", index + 1), at, {end.x, heading_bottom})
                      .pressed;
  const bool here = ImGui::IsWindowHovered() &&
                    ImGui::IsMouseHoveringRect(at, {end.x, heading_bottom}) && !current;
  if (here) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  if (current && reading.scrolls) {
    ImGui::SetScrollFromPosY(at.y - ImGui::GetWindowPos().y, 0.12f);
    reading.scrolls = false;
  }
  ui::space(20);
  return pressed || (here && ImGui::IsMouseClicked(ImGuiMouseButton_Left));
}

}  // namespace

void draw_stop_card(ShellState& state) {
  const Reading& reading = state.reading();
  const scenes::GuideStop& stop = reading.guide->stops[static_cast<std::size_t>(reading.stop)];
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string title =
      fmt::format("{}/{}  {}", reading.stop + 1, reading.guide->stops.size(), stop.title);
  std::string sentence;
  if (waits(state, reading, reading.stop) == Waits::no) {
    sentence = scenes::first_sentence(stop.text);
    if (!stop.rescales.empty()) sentence += " " + stop.says_new_ranges();
  }
  const ImVec2 bold = ui::text_size(title, Font::body_bold),
               note = ui::text_size(sentence, Font::note);
  const bool beside = bold.x + px(16) + note.x <= ImGui::GetContentRegionAvail().x;
  ui::paragraph(title, Font::body_bold);
  if (beside) ImGui::SetCursorScreenPos({at.x + bold.x + px(16), at.y + bold.y - note.y});
  if (!sentence.empty()) ui::paragraph(sentence, Font::note);
  ui::map("stop_told", stop.title, sentence, at, ImGui::GetItemRectMax());
  state.card_height = ImGui::GetItemRectMax().y - at.y;
}

namespace {

/// The exercises of the lesson, and the lesson after it.
void what_next(ShellState& state) {
  const std::string lesson = state.session.lesson().info.id;
  std::function<void()> act;
  ui::paragraph("What next", Font::section);
  ui::space(4);
  const auto& solved = state.progress.lessons[lesson].exercises;
  for (const lab::Exercise& each : lab::exercises()) {
    if (each.lesson != lesson) continue;
    const std::string words =
        fmt::format("Exercise: {}{}", each.title, solved.count(each.id()) > 0 ? "  (solved)" : "");
    if (ui::button("next_" + each.name, words)) act = [&] { state.open_exercise(each); };
  }
  const std::size_t next = state.session.chosen() + 1;
  if (next < state.session.lessons().size()) {
    const std::string words =
        fmt::format("Next lesson: {}", state.session.lessons()[next].info.title);
    if (ui::button("next_lesson", words, {.primary = true})) {
      act = [&state, next] { state.begin_lesson(next); };
    }
  }
  ui::space(20);
  if (act) act();
}

void draw_text(ShellState& state, std::optional<std::string>& pointed_at) {
  Reading& reading = state.reading();
  const scenes::Guide& guide = *reading.guide;
  if (const StretchScope intro(reading, 0, false, false); intro.drawn()) {
    links(state,
          ui::markdown(guide.intro,
                       {.id = "intro_", .max_characters = 68, .terms = reading.terms.front()}),
          pointed_at);
    ui::space(20);
  }
  int wanted = -1;
  for (int i = 0; i < std::ssize(guide.stops); ++i) {
    const auto index = static_cast<std::size_t>(i);
    const bool comes = i == reading.stop && reading.scrolls;
    const StretchScope stop(reading, index + 1, waits(state, reading, i) != Waits::no, comes);
    if (stop.drawn() && draw_stop(state, i, pointed_at)) wanted = i;
  }
  if (const StretchScope end(reading, guide.stops.size() + 2, false, false); end.drawn()) {
    what_next(state);
  }
  const StretchScope more(reading, guide.stops.size() + 1, false, false);
  if (more.drawn() && !guide.more.empty()) {
    ImGui::PushID("more");
    links(state,
          ui::markdown(guide.more,
                       {.id = "more_", .max_characters = 68, .terms = reading.terms.back()}),
          pointed_at);
    ImGui::PopID();
  }
  if (wanted >= 0) state.go_to_stop(wanted);
}

/// To the stop before and the next one; back from an experiment.
void draw_foot(ShellState& state, float width) {
  const Reading& reading = state.reading();
  const int count = static_cast<int>(reading.guide->stops.size());
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float row = std::round(px(ui::kControlHeight));
  list().AddLine({at.x, at.y - px(8)}, {at.x + width, at.y - px(8)}, ui::color(Role::border));
  if (ui::button("stop_back", "Previous stop  [",
                 {.icon = ui::Icon::back, .enabled = reading.stop > 0})) {
    state.go_to_stop(reading.stop - 1);
  }
  const std::string place = reading.stop < 0
                                ? fmt::format("{} stops", count)
                                : fmt::format("Stop {} of {}", reading.stop + 1, count);
  const std::size_t lesson = state.session.chosen() + 1;
  const bool ends = reading.stop + 1 == count && lesson < state.session.lessons().size();
  const std::string next = reading.tries      ? "Back to the stop"
                           : reading.stop < 0 ? "Start"
                           : ends             ? "Next lesson"
                                              : "Next stop";
  const float button = ui::text_size("Back to the stop").x + px(46);
  ui::draw_text({at.x + row + px(12), at.y + (row - ui::text_size("x").y) / 2}, place, Font::body,
                Role::muted);
  ui::map("reader_place", place, "", {at.x + row + px(12), at.y},
          {at.x + width - button, at.y + row});
  ImGui::SetCursorScreenPos({at.x + width - button, at.y});
  const bool enabled = reading.tries || reading.stop + 1 < count || ends;
  if (ui::button("stop_next", next,
                 {.primary = true, .enabled = enabled, .width = button / px(1)})) {
    if (ends && !reading.tries) {
      state.begin_lesson(lesson);
    } else {
      state.go_to_stop(reading.tries ? reading.stop : reading.stop + 1);
    }
  }
  ui::tooltip(reading.tries ? "Esc" : "]");
}

}  // namespace

void draw_reader(ShellState& state, const Layout& layout) {
  const PanelScope panel("reader", layout.reader,
                         ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  panel.name("lesson_text", "Lesson text");
  const LessonState& lesson = state.session.lesson();
  Reading& reading = state.reading();
  if (lesson.report) read_guide(lesson, reading);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  if (!reading.guide) {
    ui::empty_state(reading.problem.empty() ? "The text appears after the first run" : "No text",
                    reading.problem);
    return;
  }
  // Set anew its lines break elsewhere, and the stop would be out of sight.
  if (const float width = room.x / px(1); std::exchange(reading.width, width) != width) {
    reading.scrolls = true;
  }
  const bool path = !reading.guide->stops.empty();
  const float foot = path ? std::round(px(ui::kControlHeight)) + px(20) : 0;
  ImGui::SetCursorScreenPos(at);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
  const std::string name = fmt::format("text_{}", state.session.chosen());
  ImGui::BeginChild(name.c_str(), {room.x, room.y - foot});
  ui::scroll_stop("lesson_text");
  std::optional<std::string> pointed_at;
  draw_text(state, pointed_at);
  ImGui::EndChild();
  ImGui::PopStyleColor();
  if (!reading.tries && !reading.asks && reading.stop >= 0) {
    std::vector<std::string> lit =
        reading.guide->stops[static_cast<std::size_t>(reading.stop)].light;
    if (pointed_at) lit = {*pointed_at};
    state.session.lesson().player->light(std::move(lit));
  }
  if (!path) return;
  ImGui::SetCursorScreenPos({at.x, at.y + room.y - foot + px(20)});
  draw_foot(state, room.x);
}

}  // namespace tilestep::app
