#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/shell/shell_state.hpp"
#include "app/shell/steps.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;

ImDrawList& list() {
  return *ImGui::GetWindowDrawList();
}

void divider() {
  ui::space(12);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  list().AddLine(at, {at.x + width, at.y}, ui::color(Role::border));
  ui::space(12);
}

/// A right or wrong guess, with the reason.
void verdict(const scenes::Question& question, int guess) {
  const bool right = guess == question.answer;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float line = ui::text_size("x", Font::body_bold).y;
  const ImVec2 center(at.x + px(8), at.y + line / 2);
  if (right) {
    ui::check(center, px(6), Role::good);
  } else {
    ui::cross(center, px(5), Role::wrong);
  }
  const auto answer = static_cast<std::size_t>(question.answer);
  const std::string text =
      right ? "Right." : fmt::format("Not so: {}.", question.choices.at(answer));
  const float room = ImGui::GetContentRegionAvail().x - px(24);
  ImGui::Dummy({room, ui::draw_wrapped({at.x + px(24), at.y}, text, room, Font::body_bold,
                                       right ? Role::good : Role::wrong)
                          .y});
  ui::map("predict_verdict", "Verdict", right ? "right" : "wrong", at, ImGui::GetItemRectMax());
  ui::paragraph(question.because, Font::body, Role::muted);
}

struct Score {
  int right = 0, asked = 0;
};

/// Of the guesses whose step has been shown.
Score score_of(const LessonState& lesson, const scenes::StepAxis& axis, int step) {
  Score score;
  for (const auto& [asked_at, guess] : lesson.guesses) {
    if (asked_at >= step) continue;
    const auto question = lesson.scene().question(lesson.player->view(at_step(axis, asked_at)));
    if (!question) continue;
    ++score.asked;
    if (question->answer == guess) ++score.right;
  }
  return score;
}

void ask(LessonState& lesson, const scenes::Question& question, int step) {
  ui::paragraph(question.text);
  const auto guess = lesson.guesses.find(step);
  const float width = ImGui::GetContentRegionAvail().x / ui::px(1);
  for (std::size_t i = 0; i < question.choices.size(); ++i) {
    const int index = static_cast<int>(i);
    const bool chosen = guess != lesson.guesses.end() && guess->second == index;
    if (ui::button(fmt::format("predict_{}", i), question.choices[i],
                   {.selected = chosen, .width = width})) {
      lesson.guesses[step] = index;
    }
  }
  if (guess != lesson.guesses.end()) {
    ui::paragraph("Step on to see.", Font::note, Role::muted);
  }
}

void heading(std::string_view title, std::string_view note) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ui::draw_text(at, title, Font::body_bold);
  const float lower = ui::text_size("x", Font::body_bold).y - ui::text_size("x", Font::note).y;
  ui::draw_text({at.x + width, at.y + lower * 0.7f}, note, Font::note, Role::muted,
                ui::Align::right);
  ImGui::Dummy({width, ui::text_size("x", Font::body_bold).y});
}

/// The guess for the step before, if its step is on show now, and the question for the next one.
void predict_card(ShellState& state) {
  LessonState& lesson = state.session.lesson();
  const scenes::StepAxis axis = state.session.axis();
  const int step = state.session.step();
  // Inside a step the question would be answered by the picture.
  const bool whole = lesson.cursor == at_step(axis, step);
  const auto question =
      whole ? lesson.scene().question(lesson.view()) : std::optional<scenes::Question>();
  const auto before = lesson.guesses.find(step - 1);
  const auto judged = before == lesson.guesses.end()
                          ? std::optional<scenes::Question>()
                          : lesson.scene().question(lesson.player->view(at_step(axis, step - 1)));
  if (!question && !judged) return;
  divider();
  const Score score = score_of(lesson, axis, step);
  heading("Predict", score.asked == 0 ? std::string()
                                      : fmt::format("{} of {} right", score.right, score.asked));
  if (judged) {
    verdict(*judged, before->second);
    if (question) ui::space(16);
  }
  if (question) ask(lesson, *question, step);
}

void knobs(ShellState& state) {
  LessonState& lesson = state.session.lesson();
  divider();
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool changed = lesson.settings != lesson.knobs.defaults();
  heading("Knobs", "");
  const ImVec2 after = ImGui::GetCursorScreenPos();
  const float reset_width = ui::text_size("Reset").x + px(46);
  ImGui::SetCursorScreenPos({at.x + width - reset_width, at.y - px(6)});
  if (ui::button("reset", "Reset", {.icon = ui::Icon::reset, .enabled = changed, .width = -1})) {
    state.session.reset(state.now_s());
  }
  const bool compares = lesson.player->compares();
  const std::string label = compares ? "Stop comparing" : "Compare";
  const float left = ui::text_size("Knobs", Font::body_bold).x + px(8);
  const float worded = ui::text_size(label).x + px(46), square = std::round(px(ui::kControlHeight));
  const bool fits = left + worded + px(8) + reset_width <= width;
  ImGui::SetCursorScreenPos(
      {at.x + width - reset_width - (fits ? worded : square) - px(8), at.y - px(6)});
  if (ui::button("compare", label,
                 {.icon = ui::Icon::compare,
                  .selected = compares,
                  .enabled = lesson.report.has_value(),
                  .width = fits ? -1.0f : 0.0f})) {
    state.toggle_compare();
  }
  if (!compares) ui::tooltip("Keeps this run as A; the next one is drawn beside it");
  ImGui::SetCursorScreenPos({after.x, after.y + px(6)});
  if (lesson.player->lacks_room()) {
    ui::paragraph("A needs a larger window, or smaller text.", Font::note, Role::muted);
  }
  for (const lab::Knob& knob : lesson.knobs) {
    if (const auto value = ui::knob(knob, lesson.settings.at(knob.id))) {
      state.session.set_knob(knob.id, *value, state.now_s());
    }
    ui::space(8);
  }
}

}  // namespace

void draw_side_panel(ShellState& state, const Layout& layout) {
  const PanelScope panel("side", layout.side);
  LessonState& lesson = state.session.lesson();
  if (lesson.report) {
    state.ui.set_opacity(ui::animate("outdated", lesson.outdated() ? 0.5f : 1.0f));
    lesson.player->draw_readouts(lesson.cursor);
    state.ui.set_opacity(1);
    predict_card(state);
  } else {
    ui::text("Numbers appear with the first run.", Font::note, Role::muted);
  }
  if (!ui::presenter()) knobs(state);
}

}  // namespace tilestep::app
