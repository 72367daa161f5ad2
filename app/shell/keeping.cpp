#include <algorithm>
#include <utility>

#include "app/keep/capsule.hpp"
#include "app/keep/link.hpp"
#include "app/shell/panes.hpp"
#include "app/shell/shell.hpp"
#include "app/shell/steps.hpp"
#include "kernels/catalog.hpp"

/// What the window keeps, and how it comes back.
namespace tilestep::app {
namespace {

/// The phase inside a step; nothing where the step is complete.
std::optional<int> phase_inside(const scenes::StepAxis& axis, scenes::Cursor cursor) {
  if (cursor.tile == 0 || cursor.phase >= axis.last_phase(cursor.tile)) return std::nullopt;
  return cursor.phase;
}

const lab::Table& chosen_table(const LessonState& lesson) {
  if (!lesson.report || lesson.report->tables.empty()) {
    throw Error("there is no table yet: it comes with the first run", ExitCode::unavailable);
  }
  const auto& tables = lesson.report->tables;
  const auto chosen = static_cast<std::size_t>(std::max(lesson.table, 0));
  return tables[std::min(chosen, tables.size() - 1)];
}

}  // namespace

void ShellState::show(const Capsule& capsule, bool trusted) {
  std::size_t index = 0;
  while (index < session.lessons().size() && session.lessons()[index].info.id != capsule.lesson()) {
    ++index;
  }
  if (index == session.lessons().size()) tilestep::lesson(capsule.lesson());  // throws
  std::optional<OwnedKernel> kernel;
  if (capsule.kernel) {
    kernel.emplace(*capsule.kernel, trusted ? KernelOwner::trusted : KernelOwner::capsule);
  }
  session.show(index, capsule.report, capsule.made_at, std::move(kernel));
  take_kernel(capsule, trusted);
  if (!capsule.kernel_refused.empty()) say(capsule.kernel_refused);
  LessonState& lesson = session.lesson();
  lesson.bench = capsule.bench;
  lesson.notes = capsule.notes;
  if (!lesson.notes.empty()) open_note(false);
  session.go(cursor_of(capsule, session.axis()));
  for (const auto& [name, item] : picks_of(capsule, lesson.scene(), lesson.cursor)) {
    lesson.player->pick(name, item);
  }
  for (const scenes::Guess& guess : capsule.guesses) {  // what was said to the question on show
    if (guess.asked != lesson.cursor) continue;
    if (lesson.gate.open(lesson.scene(), lesson.view())) lesson.gate.answer(guess);
  }
}

Capsule Shell::capsule() const {
  const LessonState& lesson = state_->session.lesson();
  if (!lesson.report) {
    throw Error("there is nothing to save yet: the picture comes with the first run",
                ExitCode::unavailable);
  }
  Capsule capsule = capsule_of(*lesson.report, lesson.answered_kernel);
  const scenes::StepAxis axis = state_->session.axis();
  capsule.bench = lesson.bench;
  capsule.notes = lesson.notes;
  capsule.step = lesson.cursor.tile;
  capsule.phase = phase_inside(axis, lesson.cursor).value_or(-1);
  for (const auto& [name, item] : lesson.view().picks) {
    capsule.picks[std::string(name.text())] = item;
  }
  const auto& card = lesson.gate.card();
  if (card && card->guess && !card->revealed) capsule.guesses.push_back(*card->guess);
  return capsule;
}

void Shell::open(const Capsule& capsule) {
  state_->show(capsule);
}

std::string Shell::table_on_show(TableForm form) const {
  const LessonState& lesson = state_->session.lesson();
  const lab::Table& table = chosen_table(lesson);
  return table_text(table, table_look(*lesson.player, table, lesson.cursor).hidden, form);
}

std::string Shell::table_id() const {
  return chosen_table(state_->session.lesson()).id;
}

std::string Shell::lesson() const {
  return state_->session.lesson().info.id;
}

std::string Shell::link() const {
  const LessonState& lesson = state_->session.lesson();
  return link_of(lesson.info.id, lesson.settings, lesson.cursor.tile,
                 phase_inside(state_->session.axis(), lesson.cursor));
}

KeptSettings Shell::settings() const {
  KeptSettings settings = state_->kept;
  const ui::Look& look = state_->ui.look();
  if (look.theme != state_->first_theme) settings.light = look.theme == ui::ThemeKind::light;
  if (look.text_scale != state_->first_text_scale) {
    settings.text_scale = static_cast<double>(look.text_scale);
  }
  settings.speed = state_->session.speed();
  settings.predictions = state_->session.predicts();
  settings.reduce_motion = look.calm;
  settings.tour_seen = settings.tour_seen || state_->has_place;
  const LessonState& lesson = state_->session.lesson();
  if (state_->has_place) {
    settings.last = KeptSettings::Place{lesson.info.id, lesson.settings, state_->session.step()};
  }
  return settings;
}

void Shell::keep(Keep what, int times) {
  state_->asked_to_keep = {what, std::clamp(times, 1, 4)};
}

std::optional<KeepRequest> Shell::take_keep() {
  return std::exchange(state_->asked_to_keep, std::nullopt);
}

void Shell::say(std::string sentence) {
  state_->say(std::move(sentence));
}

std::string Shell::complaint() const {
  return state_->session.lesson().complaint;
}

}  // namespace tilestep::app
