#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "app/shell/shell_state.hpp"
#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/source.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;

/// The step that is shown says which source it is of; without a picture there is but the one that is edited.
bool has_source(ShellState& state) {
  const KernelDesk& desk = state.desk();
  return state.session.lesson().report || (desk.edits && !desk.path.empty());
}

// ---- what can be done ------------------------------------------------------------------------------

struct Tool {
  const char* id;
  const char* label;
  const char* tip;
  bool primary;
  std::function<void(ShellState&)> act;
};

/// Of a kernel that a capsule brought. The user's own editor would keep it among the user's drafts.
std::vector<Tool> tools_of_guest(ShellState& state) {
  std::vector<Tool> tools = {
      {"run_kernel", "Run", "Compiles it and runs the lesson with it  (Ctrl+Enter)", true,
       [](ShellState& s) { s.run_kernel(); }},
      {"original_kernel", "Original", "Back to the built-in kernel", false,
       [](ShellState& s) { s.leave_kernel(); }}};
  if (state.sheet(state.desk().path).has_draft) {
    tools.push_back({"own_draft", "Your draft",
                     "Your own draft of this source, as you left it, and runs it", false,
                     [](ShellState& s) { s.show_own_draft(); }});
  }
  tools.push_back({"start_kernel_over", "Start over",
                   "The capsule's source as it came; Ctrl+Z brings your changes back", false,
                   [](ShellState& s) { s.start_kernel_over(s.desk().guest->edit.text); }});
  return tools;
}

std::vector<Tool> tools_of(ShellState& state) {
  const LessonState& lesson = state.session.lesson();
  const KernelDesk& desk = state.desk();
  const Tool guest{"show_capsule_kernel", "Capsule's kernel",
                   "Back to the kernel that the capsule brought, and runs it", false,
                   [](ShellState& s) { s.show_guest(); }};
  if (!desk.edits) {
    const std::string path = lesson.scene().source(lesson.view()).path;
    const bool draft = state.sheet(path).has_draft;
    std::vector<Tool> tools = {{"edit_kernel", draft ? "Edit your draft" : "Edit",
                                "Change this source and run the lesson with it", false,
                                [](ShellState& s) { s.show_editor(); }}};
    if (desk.guest) tools.push_back(guest);
    return tools;
  }
  if (desk.guest_in_editor) return tools_of_guest(state);
  std::vector<Tool> tools = {
      {"run_kernel", "Run", "Compiles it and runs the lesson with it  (Ctrl+Enter)", true,
       [](ShellState& s) { s.run_kernel(); }},
      {"original_kernel", "Original", "Back to the built-in kernel; your draft is kept", false,
       [](ShellState& s) { s.leave_kernel(); }},
      {"start_kernel_over", "Start over",
       "The built-in source in the editor; Ctrl+Z brings yours back", false,
       [](ShellState& s) { s.start_kernel_over(s.sheet(s.desk().path).original); }},
      {"own_editor", "Open in $EDITOR",
       "Opens the draft in your own editor; what you save there runs here", false,
       [](ShellState& s) { s.open_own_editor(); }}};
  if (desk.guest) tools.push_back(guest);
  return tools;
}

float width_of(const Tool& tool) {
  return std::round(std::ceil(ui::text_size(tool.label).x) + 2 * px(12));
}

float width_of(const std::vector<Tool>& tools) {
  float width = 0;
  for (const Tool& tool : tools) width += width_of(tool) + px(8);
  return std::max(0.0f, width - px(8));
}

/// Draws the tools from the cursor on, in rows that end at `right`. Returns the height of what was drawn.
float draw_tools(ShellState& state, const std::vector<Tool>& tools, float right) {
  const ImVec2 start = ImGui::GetCursorScreenPos();
  const float row = std::round(px(ui::kControlHeight));
  ImVec2 at = start;
  std::function<void(ShellState&)> act;
  for (const Tool& tool : tools) {
    const float width = std::min(width_of(tool), right - start.x);
    if (at.x > start.x && at.x + width > right) at = {start.x, at.y + row + px(4)};
    ImGui::SetCursorScreenPos(at);
    if (ui::button(tool.id, tool.label, {.primary = tool.primary, .width = width / px(1)})) {
      act = tool.act;
    }
    ui::tooltip(tool.tip);
    at.x += width + px(8);
  }
  if (act) act(state);
  return at.y + row - start.y;
}

// ---- the source as it is built in ------------------------------------------------------------------

void nothing_yet() {
  ui::empty_state("Nothing here yet", "The source comes with the first run of the kernel.");
}

void draw_source(ShellState& state, const scenes::SourceMark& mark) {
  LessonState& lesson = state.session.lesson();
  ui::SourceLook look{mark.current, mark.step_lines, mark.values};
  std::vector<picture::Subject> subjects;
  for (const picture::Symbol& symbol : lesson.player->symbols()) {
    const picture::Subject subject = picture::subject_of(symbol.about);
    for (const std::string& word : symbol.code) {
      look.words.push_back({word, symbol.tone > 0 ? picture::tone_role(symbol.tone) : Role::text,
                            lesson.player->is_lit(subject)});
      subjects.push_back(subject);
    }
  }
  const int word = ui::source_view("kernel", lab::asset(mark.path), look);
  if (word < 0) return;
  const picture::Subject& subject = subjects[static_cast<std::size_t>(word)];
  state.point_at({subject});
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    state.define(subject, ImGui::GetIO().MousePos);
  }
}

// ---- the editor ------------------------------------------------------------------------------------

/// Lines of the built-in source as they stand in the user's: by their marks, or where nothing has changed round them.
class MarkedLines {
 public:
  MarkedLines(const std::string& path, std::string_view original, std::string_view text)
      : map_(original, text) {
    try {
      before_ = lab::SourceMarks(path, original).all();
      now_ = lab::SourceMarks(path, text).all();
    } catch (const Error&) {  // a mark that stands twice is no mark
      now_.clear();
    }
  }
  int of(int line) const {
    for (const auto& [name, at] : before_) {
      if (at != line) continue;
      const auto found = now_.find(name);
      if (found != now_.end()) return found->second;
    }
    return map_.now(line).value_or(0);
  }

 private:
  std::map<std::string, int, std::less<>> before_, now_;
  ui::LineMap map_;
};

/// What is on show came of the sheet of this source, the capsule's or the user's own.
bool is_of(const LessonState& lesson, const std::string& path, bool guest) {
  const auto& kernel = lesson.answered_kernel;
  return kernel && kernel->path == path && kernel->from_capsule() == guest;
}

/// What is said about lines of the source `path`, and the text that it is said about.
struct Said {
  const std::vector<lab::Diagnostic>* all = nullptr;
  std::string_view text;
};
Said said_about(const LessonState& lesson, const std::string& path, bool guest) {
  const auto& kernel = lesson.answered_kernel;
  if (!is_of(lesson, path, guest)) return {};
  if (lesson.failure) return {&lesson.failure->diagnostics, kernel->text};
  const bool own = lesson.report && lesson.report->kernel;
  return own ? Said{&lesson.report->kernel->diagnostics, kernel->text} : Said{};
}

ui::EditorLook look_of(const LessonState& lesson, const std::string& path,
                       const KernelDesk::Sheet& sheet, bool guest) {
  scenes::SourceMark mark;
  if (lesson.report) mark = lesson.scene().source(lesson.view());
  const std::string& text = sheet.editor.text();
  ui::EditorLook look{.label = path};
  if (mark.path == path) {
    const MarkedLines lines(path, sheet.original, text);
    look.current = lines.of(mark.current);
    for (const int line : mark.step_lines) look.step_lines.push_back(lines.of(line));
    for (const auto& [line, value] : mark.values) {
      if (const int now = lines.of(line); now > 0) look.values[now] = value;
    }
  }
  const Said said = said_about(lesson, path, guest);
  if (said.all == nullptr || said.all->empty()) return look;
  const ui::LineMap lines(said.text, text);
  for (lab::Diagnostic each : *said.all) {
    each.line = lines.now(each.line).value_or(0);
    look.diagnostics.push_back(std::move(each));
  }
  return look;
}

/// One sentence below the editor, with where it leads.
struct Status {
  std::string sentence;
  Role role = Role::muted;
  std::optional<scenes::Cursor> at = {};
};

std::string place_words(const scenes::StepAxis& axis, scenes::Cursor at) {
  const std::string phase = axis.phase_name(at);
  return fmt::format("{} {}{}", axis.noun, at.tile, phase.empty() ? "" : ", " + phase);
}

/// How the run of the user's kernel went.
Status status_of_report(const LessonState& lesson, const lab::Report& report) {
  std::string failed;
  for (const lab::Check& check : report.checks) {
    if (!check.ok) failed += (failed.empty() ? "" : ", ") + check.id;
  }
  std::string sentence = failed.empty() ? "" : fmt::format("Wrong by the checks: {}. ", failed);
  const Role role = failed.empty() ? Role::muted : Role::wrong;
  if (lesson.difference) {
    sentence += fmt::format("First differs from the original at {}: {}.",
                            place_words(lesson.scene().steps(), lesson.difference->at),
                            lesson.difference->what);
    return {sentence, role, lesson.difference->at};
  }
  if (lesson.original_of_report() != nullptr) {
    sentence += "Its trace is the original's, step by step.";
  } else {
    sentence += "The original has not run with these knobs, so there is nothing to compare with.";
  }
  return {sentence, role};
}

Status status_of(const LessonState& lesson, const std::string& path, const KernelDesk::Sheet& sheet,
                 const ui::EditorLook& look, bool is_kept, bool guest) {
  if (lesson.run && lesson.asked_kernel) {
    const std::string& note = lesson.progress.note;
    return {note.empty() ? "Compiling and running …" : fmt::format("Running: {}", note)};
  }
  const int line = sheet.editor.buffer().spot().line + 1;
  for (const lab::Diagnostic& each : look.diagnostics) {
    if (each.line == line) {
      return {each.text, each.severity == lab::Severity::error ? Role::wrong : Role::text};
    }
  }
  const bool ran = is_of(lesson, path, guest);
  if (ran && lesson.failure) return {failure_sentence(*lesson.failure), Role::wrong};
  if (ran && lesson.answered_kernel->text != sheet.editor.text()) {
    return {guest ? "Changed since it ran, and kept by a capsule alone: Ctrl+Enter runs it."
                  : "Changed since it ran: Ctrl+Enter runs it."};
  }
  if (ran && !lesson.capsule_day.empty()) {
    return {fmt::format("What is on show is what it did on {}, as the capsule has it.",
                        lesson.capsule_day)};
  }
  if (ran && lesson.report && lesson.report->kernel) {
    return status_of_report(lesson, *lesson.report);
  }
  if (guest) return {"Ctrl+Enter compiles it and runs the lesson with it."};
  if (sheet.of_other_build) {
    return {
        "Your draft was made from another build's source, which has changed since: Start over has "
        "the new one.",
        Role::text};
  }
  if (sheet.has_draft && is_kept) {
    return {"This is your draft; it is kept as you type. Ctrl+Enter runs it."};
  }
  if (sheet.has_draft) {
    return {"This is your draft; nothing keeps it here. Ctrl+Enter runs it."};
  }
  return {"Change a line; Ctrl+Enter compiles it and runs the lesson with it."};
}

/// Words that lead somewhere. True if they were pressed.
bool link(const char* id, std::string_view words, ImVec2 at) {
  const ImVec2 size = ui::text_size(words, Font::note);
  ImGui::SetCursorScreenPos(at);
  bool pressed = ImGui::InvisibleButton(id, size);
  const bool hovered = ImGui::IsItemHovered();
  if (hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  const ImVec2 max(at.x + size.x, at.y + size.y);
  pressed = ui::Context::current().focus().control(id, at, max).pressed || pressed;
  ui::draw_text(at, words, Font::note, hovered ? Role::text : Role::sky);
  ImGui::GetWindowDrawList()->AddLine({at.x, max.y}, {max.x, max.y}, ui::color(Role::sky), px(1));
  ui::map(id, words, "", at, max);
  return pressed;
}

void draw_status(ShellState& state, const Status& status, const ui::CodeEditor& editor,
                 float height) {
  constexpr std::string_view kGo = "Go there";
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float y = min.y + std::round(height - ui::text_size("x", Font::note).y - px(1));
  const ui::TextSpot spot = editor.buffer().spot();
  const std::string place = fmt::format("{}:{}", spot.line + 1, spot.column + 1);
  ui::draw_text({min.x + width - px(2), y}, place, Font::mono_note, Role::muted, ui::Align::right);
  const float leads = status.at ? ui::text_size(kGo, Font::note).x + px(12) : 0;
  const float room = width - ui::text_size("9999:999", Font::mono_note).x - px(16) - leads;
  const std::string shown = ui::fitted(status.sentence, Font::note, room);
  ImGui::SetCursorScreenPos({min.x, y});
  const ImVec2 size = ui::draw_text({min.x, y}, shown, Font::note, status.role);
  ImGui::Dummy(size);
  ui::map("kernel_status", status.sentence, "", {min.x, y}, {min.x + size.x, y + size.y});
  if (shown != status.sentence) ui::tooltip(status.sentence);
  if (status.at && link("go_to_difference", kGo, {min.x + size.x + px(12), y})) {
    state.session.stop();
    state.session.go(*status.at);
  }
}

void draw_editor(ShellState& state) {
  const std::string& path = state.desk().path;
  const bool guest = state.desk().guest_in_editor;
  KernelDesk::Sheet& sheet = state.sheet_in_editor();
  const LessonState& lesson = state.session.lesson();
  const ui::EditorLook look = look_of(lesson, path, sheet, guest);
  if (look.current > 0 && !std::exchange(sheet.placed, true)) sheet.editor.go_to_line(look.current);
  const Status status = status_of(lesson, path, sheet, look, state.drafts.keeps(), guest);
  const float note = ui::text_size("x", Font::note).y;
  const float below = std::ceil(px(4) + note);
  ui::space(4);
  draw_guest_banner(state);
  sheet.editor.draw("kernel_editor", look, below);
  draw_status(state, status, sheet.editor, below);
}

}  // namespace

bool draw_kernel_tools(ShellState& state, float room) {
  const LessonState& lesson = state.session.lesson();
  if (!has_source(state)) return true;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  try {
    const std::vector<Tool> tools = tools_of(state);
    float left = room;
    const bool fits = width_of(tools) <= room;
    if (fits) {
      left = room - width_of(tools) - px(16);
      ImGui::SetCursorScreenPos({at.x + left + px(16), at.y});
      draw_tools(state, tools, at.x + room + px(1));
    }
    if (left < px(80)) return fits;
    const std::string& own = state.desk().path;
    std::string path =
        state.desk().edits && !own.empty() ? own : lesson.scene().source(lesson.view()).path;
    if (ui::text_size(path, Font::mono_note).x > left) {  // the file's name says most
      path = ui::fitted(path.substr(path.rfind('/') + 1), Font::mono_note, left);
    }
    const float y = at.y + (px(32) - ui::text_size(path, Font::mono_note).y) / 2;
    ui::draw_text({at.x + left, y}, path, Font::mono_note, Role::muted, ui::Align::right);
    return fits;
  } catch (const Error&) {  // no such source: the tab says so
    return true;
  }
}

void draw_kernel_tab(ShellState& state) {
  const LessonState& lesson = state.session.lesson();
  if (!has_source(state)) return nothing_yet();
  try {
    KernelDesk& desk = state.desk();
    if (desk.edits && desk.path.empty()) state.edit_kernel();
    const std::vector<Tool> tools = tools_of(state);
    if (!state.kernel_tools_fit) {
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const float high = draw_tools(state, tools, at.x + ImGui::GetContentRegionAvail().x);
      ImGui::SetCursorScreenPos({at.x, at.y + high + px(8)});
    }
    desk.edits ? draw_editor(state) : draw_source(state, lesson.scene().source(lesson.view()));
  } catch (const Error& error) {
    ui::empty_state("No source", error.what());
  }
}

}  // namespace tilestep::app
