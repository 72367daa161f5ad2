#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/shell/panes.hpp"
#include "scenes/shared/questions.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;

using ui::list;

/// A right or wrong guess with the reason: one sentence, its beginning bold.
void draw_verdict(const scenes::Question& question, const scenes::Guess& guess) {
  const bool right = scenes::is_answer(question, guess);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float line = ui::text_size("x", Font::body_bold).y;
  const ImVec2 center(at.x + px(8), at.y + line / 2);
  if (right) {
    ui::check(center, px(6), Role::good);
  } else {
    ui::cross(center, px(5), Role::wrong);
  }
  const std::string text = scenes::verdict(question, guess) + ",";
  const float room = ImGui::GetContentRegionAvail().x - px(24);
  ImGui::Dummy({room, ui::draw_wrapped({at.x + px(24), at.y}, text, room, Font::body_bold,
                                       right ? Role::good : Role::wrong)
                          .y});
  const std::string because = "because " + question.because;
  ui::map("predict_verdict", text + " " + because, right ? "right" : "wrong", at,
          ImGui::GetItemRectMax());
  ImGui::Indent(px(24));
  ui::paragraph(because, Font::body, Role::text);
  ImGui::Unindent(px(24));
}

/// A choice with its letter; `hands`: of the class.
bool choice(int index, const std::string& words, bool chosen, int hands, float width) {
  const std::string id = fmt::format("predict_{}", index);
  const char letter[] = {static_cast<char>('A' + index), '\0'};
  const float height = std::round(px(ui::kControlHeight)), disc = px(11);
  const ImVec2 min = ImGui::GetCursorScreenPos(), max(min.x + width, min.y + height);
  bool pressed = ImGui::InvisibleButton(id.c_str(), {width, height});
  pressed = ui::Context::current().focus().control(id, min, max).pressed || pressed;
  const bool hovered = ImGui::IsItemHovered();
  if (hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  list().AddRectFilled(min, max, ui::color(hovered ? Role::border : Role::raised, 0.9f),
                       px(ui::kControlCorner));
  if (chosen) {
    ui::dashed_rect(min, max, Role::text, 1.5f);
  } else {
    list().AddRect(min, max, ui::color(Role::border), px(ui::kControlCorner));
  }
  const ImVec2 center(min.x + px(8) + disc, min.y + height / 2);
  list().AddCircle(center, disc, ui::color(chosen ? Role::text : Role::muted), 0, px(1.25f));
  const ImVec2 size = ui::text_size(letter, Font::note);
  ui::draw_text({center.x - size.x / 2, center.y - size.y / 2}, letter, Font::note);
  const std::string count = hands > 0 ? fmt::format("{}", hands) : std::string();
  const float count_width = count.empty() ? 0 : ui::text_size(count, Font::mono).x + px(8);
  const float left = min.x + px(16) + 2 * disc;
  const std::string shown = ui::fitted(words, Font::body, max.x - px(10) - count_width - left);
  ui::draw_text({left, min.y + (height - ui::text_size("x").y) / 2}, shown);
  if (!count.empty()) {
    ui::draw_text({max.x - px(10), min.y + (height - ui::text_size("x", Font::mono).y) / 2}, count,
                  Font::mono, Role::text, ui::Align::right);
  }
  if (shown != words) ui::tooltip(words);
  ui::map(id, words, chosen ? "selected" : "", min, max);
  return pressed;
}

/// The choices side by side as far as there is room: in columns, or each as wide as its words where that
/// takes fewer rows. Returns the one pressed, or −1.
int choices(const scenes::Question& question, int chosen, const std::vector<int>& hands,
            float room) {
  const float gap = px(8);
  std::vector<float> widths;
  for (const std::string& words : question.choices) {
    widths.push_back(std::min(std::ceil(ui::text_size(words).x) + px(70), room));
  }
  const auto rows_of = [&](const std::vector<float>& all) {
    int rows = 0;
    float right = room;
    for (const float width : all) {
      const bool fits = right + gap + width <= room;
      rows += fits ? 0 : 1;
      right = fits ? right + gap + width : width;
    }
    return rows;
  };
  const float widest = *std::max_element(widths.begin(), widths.end());
  const auto width_of = [&](std::size_t n) {
    return std::floor((room - gap * static_cast<float>(n - 1)) / static_cast<float>(n));
  };
  std::size_t columns = widths.size();
  while (columns > 1 && width_of(columns) < widest) columns = columns == 4 ? 2 : columns - 1;
  const std::vector<float> even(widths.size(),
                                std::min(width_of(columns), std::max(widest, px(200))));
  if (rows_of(even) <= rows_of(widths)) widths = even;
  int pressed = -1;
  float right = room;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {gap, gap});
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const bool fits = right + gap + widths[i] <= room;
    if (fits) ImGui::SameLine(0, gap);
    right = fits ? right + gap + widths[i] : widths[i];
    const int index = static_cast<int>(i), hand = index < std::ssize(hands) ? hands[i] : 0;
    if (choice(index, question.choices[i], index == chosen, hand, widths[i])) pressed = index;
  }
  ImGui::PopStyleVar();
  return pressed;
}

/// A number to be set, between the ends of its axis.
std::optional<double> number(const LessonState& lesson, const scenes::Question& question,
                             const std::optional<scenes::Guess>& guess) {
  const auto ends = lesson.player->axis_ends(lesson.cursor, question.axis);
  const double low = ends ? ends->first : 0;
  const double high = ends ? ends->second : 2 * question.values.front() + 1;
  const double now = guess ? guess->value : (low + high) / 2;
  const float width = std::min(ImGui::GetContentRegionAvail().x - px(120), px(420));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const auto moved =
      ui::range_slider("predict_number", static_cast<float>((now - low) / (high - low)), width);
  ui::map("predict_number", "Your guess", fmt::format("{:g}", now), at, ImGui::GetItemRectMax());
  ImGui::SameLine(0, px(12));
  ui::text(guess ? fmt::format("{:g}", now) : std::string("drag it"), Font::mono,
           guess ? Role::text : Role::muted);
  if (!moved) return std::nullopt;
  const double exact = low + (high - low) * static_cast<double>(*moved);
  const double grain = std::pow(10.0, std::floor(std::log10(high - low)) - 2);
  return std::round(exact / grain) * grain;
}

/// A dot a question: filled right, crossed wrong, hollow skipped.
void score(const std::vector<Outcome>& outcomes) {
  if (outcomes.empty()) return;
  constexpr std::size_t kMost = 24;
  const float radius = px(5), pitch = px(16), line = ui::text_size("x", Font::note).y;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const auto fits = static_cast<std::size_t>(
      std::max(1.0f, std::floor(ImGui::GetContentRegionAvail().x / pitch)));
  const std::size_t shown = std::min({outcomes.size(), kMost, fits});
  int right = 0, asked = 0;
  for (const Outcome outcome : outcomes) {
    asked += outcome == Outcome::skipped ? 0 : 1;
    right += outcome == Outcome::right ? 1 : 0;
  }
  for (std::size_t i = 0; i < shown; ++i) {
    const ImVec2 center(at.x + radius + static_cast<float>(i) * pitch, at.y + line / 2);
    switch (outcomes[outcomes.size() - shown + i]) {
      case Outcome::right:
        list().AddCircleFilled(center, radius, ui::color(Role::good));
        break;
      case Outcome::wrong:
        ui::cross(center, radius * 0.8f, Role::wrong);
        break;
      case Outcome::skipped:
        list().AddCircle(center, radius, ui::color(Role::muted), 0, px(1.25f));
        break;
    }
  }
  ImGui::InvisibleButton("score", {static_cast<float>(shown) * pitch, line});
  const std::string words = fmt::format("{} of {} right", right, asked);
  ui::tooltip(words);
  ui::map("score", "Score", words, at, ImGui::GetItemRectMax());
}

std::vector<Outcome> score_of(const LessonState& lesson) {
  std::vector<Outcome> all = lesson.gate.score();
  for (const Outcome outcome : lesson.measured_gate.score()) all.push_back(outcome);
  return all;
}

void hint(std::string_view words) {
  ui::paragraph(words, Font::note, Role::muted);
}

/// Nothing is asked now: what a question is for, and the switch.
void idle(ShellState& state) {
  LessonState& lesson = state.session.lesson();
  const bool on = state.session.predicts();
  hint(!on ? "Questions are off: → shows each step at once."
           : "Where the lesson has a question, → asks it before showing the step. Press → again to "
             "skip it.");
  ui::space(4);
  if (ui::button("predictions", on ? "Turn questions off" : "Turn questions on")) {
    state.session.set_predicts(!on);
  }
  if (on && lesson.report && !lesson.outdated() &&
      lesson.scene().question(lesson.view()).has_value() && !state.session.moving()) {
    ImGui::SameLine(0, px(8));
    if (ui::button("ask_now", "Ask now", {.primary = true})) state.session.ask();
  }
}

/// The question of the card, its choices or what came of it. Returns the height that this takes.
float asked(ShellState& state, float room) {
  const LessonState& lesson = state.session.lesson();
  const auto& card = lesson.gate.card();
  const scenes::Question& question = card->question;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (const std::string words = state.recall_words(); !words.empty()) {
    hint(words);
    ui::map("recall", words, "", at, ImGui::GetItemRectMax());
  }
  ui::paragraph(question.text, Font::body_bold);
  ui::map("question", question.text, "", at, ImGui::GetItemRectMax());
  ui::space(8);
  if (card->revealed) {
    draw_verdict(question, *card->guess);
  } else if (question.choices.empty()) {
    const auto value = number(lesson, question, card->guess);
    if (value && !state.session.moving()) state.session.answer({lesson.cursor, -1, *value});
  } else {
    const int chosen = card->guess ? card->guess->choice : -1;
    const int pressed = choices(question, chosen, card->hands, room);
    if (pressed >= 0 && pressed == chosen && !ui::presenter()) {
      state.go_on();  // Enter again, where the keyboard stands
    } else if (pressed >= 0) {
      state.answer_by_key(pressed, false);
    }
  }
  return ImGui::GetCursorScreenPos().y - ImGui::GetStyle().ItemSpacing.y - at.y;
}

}  // namespace

void draw_predict_card(ShellState& state) {
  LessonState& lesson = state.session.lesson();
  const auto& card = lesson.gate.card();
  if (!card) {
    idle(state);
    ui::space(8);
    score(score_of(lesson));
    return;
  }
  // What is asked scrolls where the card is small; what goes on from it stays in sight, beside it.
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const bool answered = card->guess.has_value();
  const bool beside = ui::presenter() || state.card_height > room.y + px(2);
  const std::string ways[] = {"Skip  (Esc)", ui::presenter() ? "Show  (→)" : "Show the step  (→)",
                              "Go on  (→)"};
  const std::string& on = ways[card->revealed ? 2 : answered ? 1 : 0];
  float width = 0;  // the same for all of them: what stands beside it stays where it is
  for (const std::string& way : ways) width = std::max(width, std::ceil(ui::text_size(way).x));
  width += 2 * px(12);
  const float button = std::round(px(ui::kControlHeight));
  float left = room.x;
  if (beside) {
    ImGui::BeginChild("asked", {std::max(room.x - width - px(8), 1.0f), std::max(room.y, 1.0f)},
                      false, ImGuiWindowFlags_NoNavInputs);
    ui::scroll_stop("asked");
    // The same with a scrollbar and without one, which a row more or less would bring and take away.
    left = ImGui::GetWindowWidth() - ImGui::GetStyle().ScrollbarSize;
  }
  const float height = asked(state, left);
  if (!beside) ui::space(6);
  ImVec2 foot = ImGui::GetCursorScreenPos();
  if (beside) {
    ImGui::EndChild();
    foot = {at.x + room.x - width, at.y};
  }
  ImGui::SetCursorScreenPos(foot);
  if (ui::button("question_on", on, {.primary = answered, .width = beside ? width / px(1) : 0})) {
    answered ? state.go_on() : state.session.skip();
  }
  const float line = ui::text_size("x", Font::note).y;
  ImGui::SetCursorScreenPos(beside ? ImVec2(foot.x, foot.y + button + px(6))
                                   : ImVec2(foot.x + room.x * 0.6f, foot.y + (button - line) / 2));
  if (!beside || button + px(6) + line <= room.y) score(score_of(lesson));
  state.card_height = ui::presenter() ? std::max(height, button) : height + px(14) + button;
}

void draw_measured_card(ShellState& state, int item) {
  LessonState& lesson = state.session.lesson();
  MeasuredGate& gate = lesson.measured_gate;
  const MeasuredGate::Item& one = gate.items().at(static_cast<std::size_t>(item));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ui::space(4);
  ui::paragraph(one.question.text, Font::body_bold);
  ui::map("question", one.question.text, "", at, ImGui::GetItemRectMax());
  ui::space(8);
  if (one.waits()) {
    const int pressed = choices(one.question, -1, {}, ImGui::GetContentRegionAvail().x);
    ui::space(6);
    if (ui::button("skip_question", "Skip the question")) {
      gate.skip(item);
    } else if (pressed >= 0) {
      gate.answer(item, {{}, pressed, 0});
    }
  } else {
    draw_verdict(one.question, *one.guess);
    ui::space(6);
    if (ui::button("see_measurement", "See the measurements  (→)", {.primary = true}))
      gate.see(item);
  }
}

}  // namespace tilestep::app
