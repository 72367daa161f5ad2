#include "app/shell/shell_state.hpp"
#include "kernels/base/lab/assets.hpp"

/// What the user asks of the assembly beside a lesson's source.
namespace tilestep::app {

using workbench::AssemblyForm;

bool ShellState::shows_assembly() const {
  const auto desk = desks.find(session.chosen());
  return tab == Tab::kernel && (!staged() || overlay) && desk != desks.end() &&
         desk->second.assembly.form.has_value();
}

int ShellState::lab_capability() const {
  const LessonState& lesson = session.lesson();
  const bool gpu = lesson.report && lesson.report->device.backend == "cuda";
  return gpu ? lesson.report->device.compute_capability : 0;
}

std::optional<workbench::AssemblyRequest> ShellState::assembly_wanted() {
  if (!shows_assembly()) return std::nullopt;
  KernelDesk& desk = this->desk();
  const LessonState& lesson = session.lesson();
  const bool opened = desk.edits && !desk.path.empty();
  if (!opened && !lesson.report) return std::nullopt;
  if (assembly_needs_trust()) return std::nullopt;
  std::string path = opened ? desk.path : source_on_show();
  // A shared header has no kernel of its own.
  if (workbench::is_shared_header(path)) path = lesson.scene().source(lesson.view()).path;
  try {
    workbench::AssemblyRequest wanted{lesson.info.id, {path, {}}, *desk.assembly.form};
    wanted.kernel.text = opened ? sheet_in_editor().editor.text() : std::string(lab::asset(path));
    const int lab = lab_capability();
    wanted.capability = desk.assembly.capability > 0 ? desk.assembly.capability
                        : lab > 0                    ? lab
                                                     : workbench::kDefaultCapability;
    return wanted;
  } catch (const Error&) {  // no such source: the tab says so
    return std::nullopt;
  }
}

bool ShellState::assembly_needs_trust() {
  const KernelDesk& desk = this->desk();
  return desk.edits && desk.guest_in_editor && desk.guest->owner == KernelOwner::capsule;
}

void ShellState::show_assembly(std::optional<AssemblyForm> form) {
  if (tab != Tab::kernel || (staged() && !overlay)) show_tab(Tab::kernel);
  AssemblyDesk& now = desk().assembly;
  now.form = form;
  now.listing_goes = now.line > 0 ? now.line : now.seen_line;
  if (form) ask_assembly_again();
}

void ShellState::turn_assembly(bool back) {
  const auto& form = desk().assembly.form;
  if (tab != Tab::kernel || (staged() && !overlay)) {
    return show_assembly(form ? form : AssemblyForm::ptx);
  }
  const int now = form ? static_cast<int>(*form) + 1 : 0;
  const int next = (now + (back ? 2 : 1)) % 3;
  show_assembly(next == 0 ? std::nullopt : std::optional(static_cast<AssemblyForm>(next - 1)));
}

void ShellState::ask_assembly_again() {
  AssemblyDesk& now = desk().assembly;
  if (tab != Tab::kernel || (staged() && !overlay)) show_tab(Tab::kernel);
  if (!now.form) now.form = AssemblyForm::ptx;
  now.asks = true;
  follow_assembly();
}

bool ShellState::follow_assembly() {
  const auto wanted = assembly_wanted();
  if (!wanted) return false;  // a question that waits for a source stays
  using Stand = AssemblyRecord::Stand;
  const AssemblyRecord& record = session.lesson().assembly;
  const bool asks = std::exchange(desk().assembly.asks, false);
  const std::size_t lab = session.lab_of_lesson();
  if (record.answer(*wanted, lab) != nullptr) return false;
  const Stand stand = record.stand(*wanted, lab);
  if (stand == Stand::under_way) return false;
  // The built-in text changes by a step into another source alone; a draft by every letter, and is asked for by hand.
  const bool built_in = wanted->kernel.text == lab::asset(wanted->kernel.path);
  if (!asks && (!built_in || stand != Stand::none)) return false;
  session.ask_assembly(*wanted);
  return true;
}

}  // namespace tilestep::app
