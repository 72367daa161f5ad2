#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "app/shell/panes.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;

using ui::list;

/// "staging; a run ends after 60 seconds".
std::string with_deadline(std::string_view what) {
  return fmt::format(
      "{}{}a run ends after {} seconds", what, what.empty() ? "" : "; ",
      std::chrono::duration_cast<std::chrono::seconds>(ProcessLabOptions().run_deadline).count());
}

/// A thin line along the top of the panel: a share of it where the lab says how far it is, else a
/// piece that wanders.
void progress_line(const LessonState& lesson) {
  const ImVec2 min = ImGui::GetWindowPos();
  const float width = ImGui::GetWindowWidth() - 2 * px(ui::kCorner);
  const float left = min.x + px(ui::kCorner), y = min.y + 1;
  list().PushClipRect(min, {min.x + ImGui::GetWindowWidth(), min.y + ImGui::GetWindowHeight()},
                      false);
  float from = 0, to = static_cast<float>(std::clamp(lesson.progress.fraction, 0.0, 1.0));
  if (to <= 0) {
    const auto phase = static_cast<float>(std::fmod(ImGui::GetTime(), 1.4) / 1.4);
    from = std::max(0.0f, phase * 1.3f - 0.3f);
    to = std::min(1.0f, phase * 1.3f);
  }
  list().AddRectFilled({left + width * from, y}, {left + width * to, y + px(2)},
                       ui::color(Role::accent));
  list().PopClipRect();
  ui::map("progress", "Progress", lesson.progress.note, {left, y}, {left + width, y + px(2)});
  if (ImGui::IsMouseHoveringRect({left, y}, {left + width, y + px(8)})) {
    ui::show_tooltip(with_deadline(lesson.progress.note));
  }
}

struct Banner {
  const char* id;
  const char* label;
  std::string sentence;
  Role role = Role::muted;
  std::vector<std::pair<const char*, std::string>> buttons;  ///< id and label
};

/// A sentence over the upper part of the picture, with what can be done about it. Returns the index
/// of the button pressed, or −1.
int draw_banner(const Banner& banner) {
  const float width = ImGui::GetContentRegionAvail().x;
  const float text_width = width - px(16 + 24 + 16);
  const float text_height = ui::wrapped_size(banner.sentence, text_width).y;
  const float button_row = std::round(px(ui::kControlHeight));
  const float height = px(16) + text_height + px(12) + button_row + px(16);
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const ImVec2 max(min.x + width, min.y + height);
  list().AddRectFilled(min, max, ui::color(Role::raised), px(ui::kCorner));
  list().AddRectFilled(min, max, ui::color(banner.role, 0.08f), px(ui::kCorner));
  list().AddRect(min, max, ui::color(banner.role), px(ui::kCorner), 0, px(1));
  const ImVec2 sign(min.x + px(24), min.y + px(16) + ui::text_size("x").y / 2);
  if (banner.role == Role::wrong) {
    ui::cross(sign, px(6), banner.role);
  } else {
    list().AddCircle(sign, px(5), ui::color(banner.role), 0, px(1.5f));
  }
  ui::draw_wrapped({min.x + px(40), min.y + px(16)}, banner.sentence, text_width);
  ui::map(banner.id, banner.label, banner.sentence, min, max);
  ImGui::SetCursorScreenPos({min.x + px(40), max.y - px(16) - button_row});
  int pressed = -1;
  for (std::size_t i = 0; i < banner.buttons.size(); ++i) {
    if (i > 0) ImGui::SameLine();
    const auto& [id, label] = banner.buttons[i];
    if (ui::button(id, label, {.primary = i == 0})) pressed = static_cast<int>(i);
  }
  ImGui::SetCursorScreenPos({min.x, max.y + px(ui::kGapSmall)});
  ImGui::Dummy({1, 1});
  return pressed;
}

void failure_banner(ShellState& state, const LabFailure& failure) {
  Banner banner{"failure", "Failure", failure_sentence(failure), Role::wrong, {}};
  // What works comes first: the same knobs once more are refused once more.
  if (failure.fix) {
    banner.buttons.emplace_back("fix", failure.fix->label);
  } else {
    banner.buttons.emplace_back("run_again", "Run again");
  }
  const bool own = state.session.lesson().kernel.has_value();
  if (own) {
    banner.buttons.emplace_back("original_kernel", "Back to the original kernel");
  } else {
    banner.buttons.emplace_back("reset_knobs", "Reset knobs");
  }
  const bool elsewhere = state.session.offers()[state.session.lesson().lab].lab != 0;
  if (elsewhere && failure.worker_died) {
    banner.buttons.emplace_back("run_here", "Run on this machine");
  }
  const int pressed = draw_banner(banner);
  if (pressed == 2) return state.session.choose_lab(0, state.now_s());
  if (pressed == 1) return own ? state.leave_kernel() : state.session.reset(state.now_s());
  if (pressed != 0) return;
  if (!failure.fix) return state.session.run_again(state.now_s());
  // A copy: the first knob that is set may end the failure that it comes from.
  const lab::Settings fix = failure.fix->settings;
  for (const auto& [id, value] : fix) state.session.set_knob(id, value, state.now_s());
}

/// The lab that the lesson is asked of does not answer yet: another one would.
void absent_lab_banner(ShellState& state) {
  std::string sentence = state.session.lesson().progress.note;
  sentence[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence[0])));
  const Banner banner{
      "waiting", "Waiting", sentence + ".", Role::muted, {{"run_here", "Run on this machine"}}};
  if (draw_banner(banner) == 0) state.session.choose_lab(0, state.now_s());
}

/// The run for these knobs waits until a measurement at its lab, perhaps of another lesson, has ended; or
/// for the lab.
void waiting_banner(ShellState& state) {
  const LessonState* benched = state.session.benched();
  const auto lab_of = [&](const LessonState& each) { return state.session.offers()[each.lab].lab; };
  if (benched == nullptr || lab_of(*benched) != lab_of(state.session.lesson())) {
    const bool elsewhere = lab_of(state.session.lesson()) != 0;
    if (elsewhere && !state.session.lesson().progress.note.empty()) absent_lab_banner(state);
    return;
  }
  const std::string sentence = fmt::format(
      "This run waits for the measurement of {} ({:.0f} %): running both would distort the times.",
      benched->info.title, std::floor(100 * benched->bench_progress.fraction));
  if (draw_banner({"waiting",
                   "Waiting",
                   sentence,
                   Role::muted,
                   {{"stop_measurement", "Stop the measurement"}}}) == 0) {
    state.session.stop_bench();
  }
}

/// The letters of the choices, at the things in the picture that they are; a press answers.
void choice_letters(ShellState& state) {
  LessonState& lesson = state.session.lesson();
  const auto& card = lesson.gate.card();
  if (!card || card->revealed || state.session.moving() || lesson.player->compares()) return;
  const scenes::Question& question = card->question;
  if (question.where.size() < 2 || question.where.size() != question.choices.size()) return;
  for (std::size_t i = 0; i < question.where.size(); ++i) {
    const auto area = lesson.player->area_of(lesson.cursor, question.where[i]);
    if (!area) continue;
    const bool chosen = card->guess && card->guess->choice == static_cast<int>(i);
    const float radius = px(10);
    const ImVec2 center(std::max(area->x0, ImGui::GetWindowPos().x + radius),
                        std::max(area->y0, ImGui::GetWindowPos().y + radius));
    const char letter[] = {static_cast<char>('A' + i), '\0'};
    list().AddCircleFilled(center, radius, ui::color(chosen ? Role::text : Role::raised));
    list().AddCircle(center, radius, ui::color(Role::text), 0, px(1.25f));
    const ImVec2 size = ui::text_size(letter, Font::note);
    ui::draw_text({center.x - size.x / 2, center.y - size.y / 2}, letter, Font::note,
                  chosen ? Role::background : Role::text);
    const ImVec2 low(area->x0, area->y0), high(area->x1, area->y1);
    if (!ImGui::IsWindowHovered() || !ImGui::IsMouseHoveringRect(low, high)) continue;
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
      state.answer_by_key(static_cast<int>(i), false);
    }
  }
}

/// What the stop is about, or else the step; and what the question is about.
scenes::Shot shot_of(ShellState& state) {
  using scenes::Shot;
  if (state.shot_of) return {state.shot_of->empty() ? Shot::all : Shot::named, *state.shot_of};
  Reading& reading = state.reading();
  if (reading.whole) return {};
  Shot shot{Shot::step};
  if (reading.shot && reading.stop >= 0) {
    if (state.session.lesson().report) read_guide(state.session.lesson(), reading);
    if (!reading.guide) return {};
    shot.names = reading.guide->stops[static_cast<std::size_t>(reading.stop)].subject();
    if (!shot.names.empty()) shot.of = Shot::named;
  }
  if (const auto& card = state.session.lesson().gate.card()) {
    for (const picture::Key& key : card->question.where) {
      shot.names.push_back(picture::to_text(key));
    }
  }
  return shot;
}

void picture(ShellState& state) {
  LessonState& lesson = state.session.lesson();
  lesson.player->shoot(shot_of(state));
  lesson.player->guess(lesson.gate.guess());
  // A picture that no longer belongs to the knobs stays, a little dimmer.
  state.ui.set_opacity(ui::animate("outdated", lesson.outdated() || lesson.failure ? 0.5f : 1.0f));
  ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
  ImGui::BeginChild("scene", {0, 0}, false,
                    ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  lesson.player->draw_picture(lesson.moment());
  choice_letters(state);
  ImGui::EndChild();
  ImGui::PopStyleColor();
  state.ui.set_opacity(1);
}

}  // namespace

std::string failure_sentence(const LabFailure& failure) {
  std::string sentence = failure.sentence;
  if (!sentence.empty() && sentence.back() != '.') sentence += '.';
  if (!failure.next.empty()) sentence += ' ' + failure.next;
  if (!sentence.empty() && sentence[0] >= 'a' && sentence[0] <= 'z') {
    sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
  }
  return sentence;
}

void draw_stage(ShellState& state, const Layout& layout) {
  const LessonState& lesson = state.session.lesson();
  const bool waiting = lesson.run && lesson.progress.waiting;
  const PanelScope panel("picture", layout.picture,
                         ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  panel.name("picture", "Picture");
  if (lesson.failure && !lesson.coming()) failure_banner(state, *lesson.failure);
  if (waiting) waiting_banner(state);
  if (lesson.report) {
    picture(state);
  } else if (!lesson.failure) {
    ui::empty_state(waiting ? "Nothing has run yet" : "Running the kernel …",
                    waiting ? "The picture is drawn from the kernel's recording."
                            : with_deadline(lesson.progress.note));
  }
  if (lesson.coming() && !waiting) progress_line(lesson);
}

void draw_card(ShellState& state, const Layout& layout) {
  const PanelScope panel("card", layout.card, 0, 12);
  const bool asks = state.session.lesson().gate.card().has_value();
  panel.name("card", asks ? "Question" : "Stop");
  asks ? draw_predict_card(state) : draw_stop_card(state);
}

}  // namespace tilestep::app
