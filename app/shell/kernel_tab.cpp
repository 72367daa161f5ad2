#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "app/shell/panes.hpp"
#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/source.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;

// ---- the source as it is built in ------------------------------------------------------------------

void no_source_yet() {
  ui::empty_state("No source yet", "It appears after the first run of the kernel.");
}

/// The functions in reach of a source, whose bodies a click on their names opens.
const workbench::Definitions& functions_of(ShellState& state, const std::string& path) {
  const auto [found, fresh] = state.desk().functions.try_emplace(path);
  if (fresh) {
    found->second = workbench::functions_in_reach(state.session.lesson().info.id, path);
  }
  return found->second;
}

SourceSpot draw_source(ShellState& state, const scenes::SourceMark& mark) {
  LessonState& lesson = state.session.lesson();
  const std::string path = state.source_on_show();
  KernelDesk& desk = state.desk();
  ui::SourceLook look;
  if (path == mark.path) look = {mark.current, mark.step_lines, mark.values};
  std::vector<picture::Subject> subjects;
  const bool shared = workbench::is_shared_header(path);  // its names are not the picture's
  for (const picture::Symbol& symbol : lesson.player->symbols()) {
    if (shared) break;
    const picture::Subject subject = picture::subject_of(symbol.about);
    for (const std::string& word : symbol.code) {
      look.words.push_back({word, symbol.tone > 0 ? picture::tone_role(symbol.tone) : Role::text,
                            lesson.player->is_lit(subject)});
      subjects.push_back(subject);
    }
  }
  std::vector<const workbench::Definition*> bodies;
  for (const auto& [name, definition] : functions_of(state, path)) {
    const bool known =
        std::any_of(look.words.begin(), look.words.end(),
                    [&name = name](const ui::SourceWord& word) { return word.word == name; });
    if (known) continue;
    look.words.push_back(
        {name, Role::sky, false, true, definition.path == path ? definition.line : 0});
    bodies.push_back(&definition);
  }
  const std::string_view text = lab::asset(path);
  AssemblyDesk& assembly = desk.assembly;
  ui::LineLinks links;
  if (desk.opened) look.current = 0;  // it is brought into sight again afterwards
  if (desk.opened) {
    if (desk.opened->line > 0) links.lit = {desk.opened->line};
    if (std::exchange(desk.opened->fresh, false)) links.go_to = std::max(1, desk.opened->line);
  }
  if (assembly.form && !shared) {
    links.lit = assembly.hovered;
    if (links.lit.empty() && assembly.line > 0) links.lit = {assembly.line};
    if (const int to = std::exchange(assembly.source_goes, 0); to > 0) links.go_to = to;
  }
  const int word = ui::source_view("kernel", text, look, links);
  if (links.clicked > 0 && !shared) assembly.line = assembly.listing_goes = links.clicked;
  // Of a shared header there is no listing: it stays the step's.
  const SourceSpot spot = shared ? SourceSpot{lab::asset(mark.path), mark.current}
                                 : SourceSpot{text, look.current, links.hovered};
  if (word < 0) return spot;
  if (word >= std::ssize(subjects)) {
    const workbench::Definition& body = *bodies[static_cast<std::size_t>(word) - subjects.size()];
    ui::show_tooltip(
        fmt::format("{}, line {}: click to open", workbench::name_of_file(body.path), body.line));
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) state.open_source(body.path, body.line);
    return spot;
  }
  const picture::Subject& subject = subjects[static_cast<std::size_t>(word)];
  state.point_at({subject});
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    state.define(subject, ImGui::GetIO().MousePos);
  }
  return spot;
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

/// The same by the GPU's compiler, where it was asked for assembly of this text.
Said said_for_assembly(const AssemblyRecord& record, const std::string& path) {
  const bool of_it = record.asked() && record.failure() && record.asked()->kernel.path == path;
  return of_it ? Said{&record.failure()->diagnostics, record.asked()->kernel.text} : Said{};
}
bool says_something(const Said& said) {
  return said.all != nullptr && !said.all->empty();
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
  Said said = said_for_assembly(lesson.assembly, path);
  if (!says_something(said) || said.text != text) {
    if (const Said by_run = said_about(lesson, path, guest); says_something(by_run)) said = by_run;
  }
  if (!says_something(said)) return look;
  const ui::LineMap lines(said.text, text);
  for (lab::Diagnostic each : *said.all) {
    each.line = lines.now(each.line).value_or(0);
    look.diagnostics.push_back(std::move(each));
  }
  return look;
}

/// One sentence below the editor, with where it leads.
struct Status {
  struct Lead {
    const char* id;
    const char* words;
    std::function<void(ShellState&)> go;
  };
  std::string sentence;
  Role role = Role::muted;
  std::vector<Lead> leads = {};
};

std::string place_words(const scenes::StepAxis& axis, scenes::Cursor at) {
  const std::string phase = axis.phase_name(at);
  return fmt::format("{} {}{}", axis.noun, at.tile, phase.empty() ? "" : ", " + phase);
}

constexpr const char* kIdle = "With these knobs none of this source runs";

/// What the trial settings say of a kernel that is right here.
void add_trials(Status& status, const LessonState& lesson, std::string_view here) {
  const TrialRecord* trials = lesson.trials_of_report();
  if (trials == nullptr) return;
  if (trials->ticket) {
    status.sentence =
        fmt::format("{}; trying {} … ", here,
                    trials->progress.note.empty() ? "other settings" : trials->progress.note);
  } else if (workbench::first_wrong(trials->all) != nullptr) {
    status.sentence = fmt::format("{}; w{} ", here, trials->sentence.substr(1));
    status.role = Role::wrong;
    status.leads.push_back(
        {"go_to_trial", "That setting (F8)", [](ShellState& state) { state.go_to_trial(); }});
  } else {
    status.sentence = trials->sentence + " ";
  }
}

/// How the run of the user's kernel went.
Status status_of_report(const LessonState& lesson, const lab::Report& report) {
  std::string failed;
  for (const lab::Check& check : report.checks) {
    if (!check.ok) failed += (failed.empty() ? "" : ", ") + check.id;
  }
  std::string sentence = failed.empty() ? "" : fmt::format("Wrong by the checks: {}. ", failed);
  Status status{sentence, failed.empty() ? Role::muted : Role::wrong};
  const lab::Report* original = lesson.original_of_report();
  if (failed.empty()) {
    add_trials(status, lesson, report.kernel->idle ? kIdle : "Right here");
    if (report.kernel->idle) {
      if (status.sentence.empty()) status.sentence = fmt::format("{}. ", kIdle);
      return status;
    }
    const std::string cost = original == nullptr ? "" : workbench::cost_of(report, *original);
    if (!cost.empty()) status.sentence += fmt::format("Here it takes {}. ", cost);
  }
  if (lesson.difference) {
    status.sentence += fmt::format("First differs from the original at {}: {}.",
                                   place_words(lesson.scene().steps(), lesson.difference->at),
                                   lesson.difference->what);
    status.leads.push_back(
        {"go_to_difference", "Go there", [at = lesson.difference->at](ShellState& state) {
           state.session.stop();
           state.session.go(at);
         }});
  } else if (original != nullptr) {
    status.sentence += "Its trace is the original's, step by step.";
  } else {
    status.sentence += "The original has not run with these knobs: nothing to compare with.";
  }
  return status;
}

Status status_of(const LessonState& lesson, const std::string& path, const KernelDesk::Sheet& sheet,
                 const ui::EditorLook& look, bool is_kept, bool guest, double running_s) {
  if (lesson.run && lesson.asked_kernel) {
    const std::string& note = lesson.progress.note;
    constexpr double kLong = 8;
    return {fmt::format("{} … {:.0f} s{}",
                        note.empty() ? "Compiling and running" : fmt::format("Running: {}", note),
                        running_s, running_s < kLong ? "" : "; the first compile is slowest"),
            Role::muted,
            {{"cancel_run", "Cancel", [](ShellState& state) { state.session.stop_run(); }}}};
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
    return {guest ? "Changed since it ran; only a capsule saves it. Ctrl+Enter runs it."
                  : "Changed since it ran: Ctrl+Enter runs it."};
  }
  if (ran && !lesson.capsule_day.empty()) {
    return {fmt::format("Showing the run of {} that the capsule holds.", lesson.capsule_day)};
  }
  if (ran && lesson.report && lesson.report->kernel) {
    return status_of_report(lesson, *lesson.report);
  }
  if (guest) return {"Ctrl+Enter compiles it and runs the lesson with it."};
  if (sheet.of_other_build) {
    return {"Your draft is based on an older source: Start over loads the current one.",
            Role::text};
  }
  if (sheet.has_draft && is_kept) {
    return {"This is your draft, saved as you type. Ctrl+Enter runs it."};
  }
  if (sheet.has_draft) {
    return {"This is your draft, unsaved: there is no folder to keep it in. Ctrl+Enter runs it."};
  }
  return {"Change a line; Ctrl+Enter compiles it and runs the lesson with it."};
}

void draw_status(ShellState& state, Status status, const ui::CodeEditor& editor, float height) {
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float y = min.y + std::round(height - ui::text_size("x", Font::note).y - px(1));
  if (state.desk().before_trial) {
    status.leads.push_back(
        {"back_from_trial", "Back (F8)", [](ShellState& its) { its.leave_trial(); }});
  }
  const ui::TextSpot spot = editor.buffer().spot();
  const std::string place = fmt::format("{}:{}", spot.line + 1, spot.column + 1);
  const float place_y = min.y + std::floor(height - ui::text_size(place, Font::mono_note).y);
  ui::draw_text({min.x + width - px(2), place_y}, place, Font::mono_note, Role::muted,
                ui::Align::right);
  float leads = 0;
  for (const auto& lead : status.leads) leads += ui::text_size(lead.words, Font::note).x + px(12);
  const float room = width - ui::text_size("9999:999", Font::mono_note).x - px(16) - leads;
  const std::string shown = ui::fitted(status.sentence, Font::note, room);
  ImGui::SetCursorScreenPos({min.x, y});
  const ImVec2 size = ui::draw_text({min.x, y}, shown, Font::note, status.role);
  ImGui::Dummy(size);
  ui::map("kernel_status", status.sentence, "", {min.x, y}, {min.x + size.x, y + size.y});
  if (shown != status.sentence) ui::tooltip(status.sentence);
  float x = min.x + size.x;
  for (const auto& lead : status.leads) {
    x += px(12);
    if (note_link(lead.id, lead.words, {x, y})) lead.go(state);
    x += ui::text_size(lead.words, Font::note).x;
  }
}

/// Where an exercise is in the editor, how it stands with it comes first.
void add_exercise(Status& status, ShellState& state) {
  if (state.exercise_in_editor() == nullptr) return;
  const std::string& text = state.sheet(state.desk().path).editor.text();
  if (const auto seconds = state.exercise_check.seconds(text, state.now_s())) {
    status = {fmt::format("Checking all cases in several orders of threads … {:.0f} s{}", *seconds,
                          *seconds < 8 ? "" : "; the first compile is slowest")};
  } else if (const ExerciseFinding* finding = state.exercise_check.finding(text)) {
    const std::string hint = finding->hint.empty() ? "" : fmt::format(" {}", finding->hint);
    status = {finding->sentence + hint, finding->ok ? Role::good : Role::wrong};
  } else if (!state.session.lesson().failure) {
    status = {"The task is above the code. Fill in the hole; Ctrl+Enter runs and checks it."};
  }
}

SourceSpot draw_editor(ShellState& state) {
  const std::string& path = state.desk().path;
  const bool guest = state.desk().guest_in_editor;
  KernelDesk::Sheet& sheet = state.sheet_in_editor();
  const LessonState& lesson = state.session.lesson();
  AssemblyDesk& assembly = state.desk().assembly;
  ui::EditorLook look = look_of(lesson, path, sheet, guest);
  if (assembly.form) look.lit = assembly.hovered;
  if (const ExerciseFinding* finding = state.exercise_check.finding(sheet.editor.text());
      finding != nullptr && finding->line > 0 && !guest) {
    look.diagnostics.push_back({finding->line, 0, lab::Severity::error,
                                finding->hint.empty() ? finding->sentence : finding->hint});
  }
  if (const int to = std::exchange(assembly.source_goes, 0); to > 0) {
    sheet.editor.go_to_line(to);
    assembly.seen_line = to;  // the listing stands where it was pressed
  }
  if (look.current > 0 && !std::exchange(sheet.placed, true)) sheet.editor.go_to_line(look.current);
  KernelDesk& desk = state.desk();
  if (std::exchange(desk.running, lesson.run) != lesson.run) desk.running_since_s = state.now_s();
  Status status = status_of(lesson, path, sheet, look, state.drafts.keeps(), guest,
                            state.now_s() - desk.running_since_s);
  add_exercise(status, state);
  const float note =
      std::max(ui::text_size("x", Font::note).y, ui::text_size("9", Font::mono_note).y);
  const float below = std::ceil(px(4) + note);
  ui::space(4);
  draw_guest_banner(state);
  sheet.editor.draw("kernel_editor", look, below);
  draw_status(state, status, sheet.editor, below);
  return {sheet.editor.text(), sheet.editor.buffer().spot().line + 1, sheet.editor.hovered_line()};
}

SourceSpot draw_either(ShellState& state) {
  if (state.desk().edits) return draw_editor(state);
  const LessonState& lesson = state.session.lesson();
  return draw_source(state, lesson.scene().source(lesson.view()));
}

/// Source and listing side by side, or the listing below where the tab is narrow and high.
void draw_both(ShellState& state) {
  constexpr float kSideBySide = 600, kEnoughHeight = 280;
  draw_assembly_head(state);
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const bool beside = room.x >= px(kSideBySide) || room.y < px(kEnoughHeight);
  const float gap = px(12);
  const ImVec2 half(beside ? std::floor((room.x - gap) / 2) : room.x,
                    beside ? room.y : std::floor((room.y - gap) / 2));
  constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoNavInputs | ImGuiWindowFlags_NoScrollbar |
                                      ImGuiWindowFlags_NoScrollWithMouse;
  ImGui::BeginChild("source_half", half, false, kFlags);
  const SourceSpot spot = draw_either(state);
  ImGui::EndChild();
  ImGui::SetCursorScreenPos(beside ? ImVec2(at.x + room.x - half.x, at.y)
                                   : ImVec2(at.x, at.y + room.y - half.y));
  ImGui::BeginChild("listing_half", half, false, kFlags);
  draw_assembly_pane(state, spot);
  ImGui::EndChild();
}

}  // namespace

void draw_kernel_tab(ShellState& state) {
  if (!state.has_source()) return no_source_yet();
  try {
    KernelDesk& desk = state.desk();
    if (desk.edits && desk.path.empty()) state.edit_kernel();
    draw_kernel_tool_rows(state);
    if (desk.assembly.form) {
      draw_both(state);
    } else {
      draw_either(state);
    }
  } catch (const Error& error) {
    ui::empty_state("No source", error.what());
  }
}

}  // namespace tilestep::app
