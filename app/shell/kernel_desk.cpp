#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/shell/panes.hpp"
#include "app/shell/steps.hpp"
#include "kernels/base/lab/assets.hpp"
#include "kernels/base/workbench/program.hpp"

/// What the user does with a lesson's kernel: edits it, runs it, goes back to the one that is built in.
namespace tilestep::app {
namespace {

constexpr double kLook_s = 0.5;  ///< between two looks at a file that another program may save

DraftOf draft_of(const LessonState& lesson, const std::string& path,
                 const KernelDesk::Sheet& sheet) {
  return {lesson.info.id, path, sheet.original};
}

/// Why a header that lessons share does not come into the editor, and how to go on.
std::string why_only_read(const std::string& path, const char* instead) {
  return fmt::format("{} is shared by the lessons' kernels and not edited: {}",
                     workbench::name_of_file(path), instead);
}

}  // namespace

KernelDesk::Sheet& ShellState::sheet(const std::string& path) {
  KernelDesk& desk = this->desk();
  const auto found = desk.sheets.find(path);
  if (found != desk.sheets.end()) return found->second;
  const std::string original(lab::asset(path));
  KernelDesk::Sheet& sheet = desk.sheets[path];
  sheet.original = original;
  const auto draft = drafts.load(draft_of(session.lesson(), path, sheet));
  sheet.editor = ui::CodeEditor(draft ? draft->text : original);
  sheet.has_draft = draft.has_value();
  sheet.of_other_build = draft && draft->of_other_build;
  sheet.kept = sheet.editor.buffer().revision();
  return sheet;
}

bool ShellState::has_source() {
  const KernelDesk& desk = this->desk();
  return session.lesson().report || (desk.edits && !desk.path.empty());
}

KernelDesk::Sheet& ShellState::sheet_in_editor() {
  KernelDesk& desk = this->desk();
  return desk.guest_in_editor ? desk.guest->sheet : sheet(desk.path);
}

KernelDesk::Sheet* ShellState::sheet_on_show() {
  if (home || tab != Tab::kernel || (staged() && !overlay)) return nullptr;
  KernelDesk& desk = this->desk();
  if (desk.edits && desk.guest_in_editor) return &desk.guest->sheet;
  const auto found = desk.sheets.find(desk.path);
  return desk.edits && found != desk.sheets.end() ? &found->second : nullptr;
}

ui::CodeEditor* ShellState::editor_with_keys() {
  // A field of another card may have them, where a key has opened it.
  const bool elsewhere =
      !layer().empty() || (ImGui::GetCurrentContext() != nullptr && ImGui::GetIO().WantTextInput);
  KernelDesk::Sheet* sheet = elsewhere ? nullptr : sheet_on_show();
  return sheet != nullptr && sheet->editor.has_keys() ? &sheet->editor : nullptr;
}

void ShellState::edit_kernel() {
  const LessonState& lesson = session.lesson();
  if (!lesson.report) return;
  KernelDesk& desk = this->desk();
  const std::string path = source_on_show();
  if (workbench::is_shared_header(path))
    return say(why_only_read(path, "Back to the step, then Edit"));
  desk.path = path;
  sheet(desk.path);
  desk.edits = true;
  desk.guest_in_editor = false;
  session.stop();
}

std::string ShellState::source_on_show() {
  KernelDesk& desk = this->desk();
  if (desk.edits && !desk.path.empty()) return desk.path;
  const LessonState& lesson = session.lesson();
  if (desk.opened && desk.opened->since != lesson.cursor) desk.opened.reset();
  return desk.opened ? desk.opened->path : lesson.scene().source(lesson.view()).path;
}

void ShellState::open_source(const std::string& path, int line) {
  KernelDesk& desk = this->desk();
  if (tab != Tab::kernel || (staged() && !overlay)) show_tab(Tab::kernel);
  if (!desk.edits) {
    desk.opened = KernelDesk::Opened{path, line, session.lesson().cursor};
    return;
  }
  if (workbench::is_shared_header(path)) return say(why_only_read(path, "Original, then open it"));
  desk.guest_in_editor = false;
  desk.path = path;
  sheet(path).placed = line == 0;
  if (line > 0) sheet(path).editor.go_to_line(line);
}

void ShellState::back_to_step() {
  desk().opened.reset();
}

void ShellState::show_editor() {
  if (!session.lesson().report) return;
  if (tab != Tab::kernel || (staged() && !overlay)) show_tab(Tab::kernel);
  edit_kernel();
  if (KernelDesk::Sheet* sheet = sheet_on_show()) sheet->editor.take_keys();
}

void ShellState::run_kernel() {
  const KernelDesk& desk = this->desk();
  if (!desk.edits || desk.path.empty()) return;
  const KernelOwner owner = desk.guest_in_editor ? desk.guest->owner : KernelOwner::user;
  session.run_kernel(OwnedKernel({desk.path, sheet_in_editor().editor.text()}, owner), now_s());
  if (shows_assembly()) ask_assembly_again();
  check_exercise();
}

void ShellState::go_to_trial() {
  KernelDesk& desk = this->desk();
  const LessonState& lesson = session.lesson();
  const auto wrong = session.wrong_trials();
  const auto here = std::find(wrong.begin(), wrong.end(), lesson.settings);
  const auto next = here == wrong.end() ? wrong.begin() : here + 1;
  if (next == wrong.end()) return leave_trial();
  if (!desk.before_trial) desk.before_trial = lesson.settings;
  turn_to(*next);
}

void ShellState::leave_trial() {
  KernelDesk& desk = this->desk();
  if (!desk.before_trial) return say("No setting is known to make your kernel wrong");
  turn_to(*std::exchange(desk.before_trial, std::nullopt));
}

void ShellState::turn_to(const lab::Settings& settings) {
  const auto stay = [at = session.lesson().cursor](const scenes::StepAxis& axis) {
    return inside(axis, at);
  };
  session.stand(settings, stay, now_s());
}

void ShellState::leave_kernel() {
  KernelDesk& desk = this->desk();
  desk.edits = desk.watches = desk.guest_in_editor = false;
  desk.before_trial.reset();
  for (auto& [path, sheet] : desk.sheets) sheet.editor.leave();
  if (desk.guest) desk.guest->sheet.editor.leave();
  if (session.lesson().kernel) session.run_kernel(std::nullopt, now_s());
}

void ShellState::start_kernel_over(std::string_view text) {
  KernelDesk& desk = this->desk();
  KernelDesk::Sheet& sheet = sheet_in_editor();
  sheet.editor.replace(text);
  if (desk.guest_in_editor) return;  // no draft of the user's
  sheet.kept = sheet.editor.buffer().revision();
  sheet.has_draft = sheet.editor.text() != sheet.original;
  sheet.of_other_build = false;
  drafts.start_over(draft_of(session.lesson(), desk.path, sheet), sheet.editor.text(), now_s());
}

void ShellState::open_own_editor() {
  KernelDesk& desk = this->desk();
  const KernelDesk::Sheet& sheet = this->sheet(desk.path);
  const DraftOf of = draft_of(session.lesson(), desk.path, sheet);
  const std::filesystem::path file = drafts.path(of);
  if (file.empty()) {
    return say("There is nowhere to keep drafts: set XDG_STATE_HOME or HOME to a folder");
  }
  drafts.keep(of, sheet.editor.text(), now_s());
  drafts.write();
  if (const std::string remark = drafts.take_remark(); !remark.empty()) return say(remark);
  desk.watches = true;
  desk.look_s = now_s() + kLook_s;
  try {
    own_editors.emplace_back(editor_command(editor_choice(), file, [](const std::string& program) {
      return !workbench::find_program(program).empty();
    }));
    say(fmt::format("Opened {}; it runs here whenever it is saved", file.string()));
  } catch (const Error& error) {
    say(error.what());
  }
}

bool ShellState::follow_drafts() {
  const double now = now_s();
  bool changed = false;
  for (auto& [index, desk] : desks) {
    const LessonState& lesson = session.lessons()[index];
    for (auto& [path, sheet] : desk.sheets) {
      const std::uint64_t revision = sheet.editor.buffer().revision();
      if (revision == sheet.kept) continue;
      sheet.kept = revision;
      if (index == session.chosen()) session.hold_trials();
      sheet.has_draft = sheet.editor.text() != sheet.original;
      drafts.keep(draft_of(lesson, path, sheet), sheet.editor.text(), now);
    }
    if (!desk.watches || desk.look_s > now) continue;
    desk.look_s = now + kLook_s;
    KernelDesk::Sheet& sheet = desk.sheets.at(desk.path);
    const auto saved = drafts.changed_outside(draft_of(lesson, desk.path, sheet));
    if (!saved) continue;
    sheet.editor.replace(*saved);
    sheet.kept = sheet.editor.buffer().revision();  // the file says it already
    sheet.has_draft = sheet.editor.text() != sheet.original;
    if (index == session.chosen()) run_kernel();
    changed = true;
  }
  drafts.write_due(now);
  own_editors.erase(std::remove_if(own_editors.begin(), own_editors.end(),
                                   [](DetachedProgram& each) { return each.ended(); }),
                    own_editors.end());
  const std::string remark = drafts.take_remark();
  if (!remark.empty()) say(remark);
  return changed || !remark.empty();
}

std::optional<double> ShellState::drafts_due_s() const {
  std::optional<double> due = drafts.due_s();
  for (const auto& [index, desk] : desks) {
    if (desk.watches) due = std::min(due.value_or(desk.look_s), desk.look_s);
  }
  return due;
}

void Shell::edit_kernel() {
  state_->show_editor();
}

std::optional<KernelRun> Shell::kernel_run() const {
  const LessonState& lesson = state_->session.lesson();
  if (lesson.coming() || !lesson.answered_kernel) return std::nullopt;
  KernelRun run{lesson.answered_kernel->path, "", std::nullopt, ""};
  if (lesson.failure) {
    run.failure = failure_sentence(*lesson.failure);
  } else if (lesson.report) {
    run.kernel = lesson.report->kernel;
    run.device = lesson.report->device.name;
  }
  return run;
}

void Shell::keep_drafts() {
  state_->drafts.write();
}

}  // namespace tilestep::app
