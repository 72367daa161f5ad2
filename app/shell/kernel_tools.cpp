#include <algorithm>
#include <cmath>
#include <functional>

#include "app/shell/panes.hpp"

/// What can be done with a lesson's kernel, and what stands beside its source, to choose from.
namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;
using workbench::AssemblyForm;

const std::vector<std::string> kForms = {"Source", "PTX", "SASS"};

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
      {"run_kernel", "Run", "Compile and run the lesson with it  (Ctrl+Enter)", true,
       [](ShellState& s) { s.run_kernel(); }},
      {"original_kernel", "Original", "Back to the built-in kernel", false,
       [](ShellState& s) { s.leave_kernel(); }}};
  if (state.sheet(state.desk().path).has_draft) {
    tools.push_back({"own_draft", "Your draft", "Open your own draft of this source and run it",
                     false, [](ShellState& s) { s.show_own_draft(); }});
  }
  tools.push_back({"start_kernel_over", "Start over",
                   "Back to the capsule's source; Ctrl+Z brings your changes back", false,
                   [](ShellState& s) { s.start_kernel_over(s.desk().guest->edit.text); }});
  return tools;
}

/// The exercises of all lessons, this one's first, in the palette.
Tool exercises_of() {
  return {"exercises", "Exercises", "Kernels of this lesson with a hole to fill in", false,
          [](ShellState& s) { s.palette.open("Exercise: "); }};
}

/// Of a kernel with a hole.
std::vector<Tool> tools_of_exercise(ShellState& state, const lab::Exercise& exercise) {
  std::vector<Tool> tools = {
      {"run_kernel", "Run and check",
       "Run the lesson with it and check all cases, in several thread orders  "
       "(Ctrl+Enter)",
       true, [](ShellState& s) { s.run_kernel(); }},
      {"start_kernel_over", "Start over",
       "Back to the exercise as given; Ctrl+Z brings your text back", false,
       [&exercise](ShellState& s) { s.start_kernel_over(lab::starter(exercise)); }},
      {"original_kernel", "Original", "Back to the built-in kernel; your text is kept", false,
       [](ShellState& s) { s.leave_kernel(); }},
      exercises_of()};
  if (state.exercise_check.running()) {
    tools.insert(tools.begin() + 1, {"cancel_check", "Cancel", "Stop checking", false,
                                     [](ShellState& s) { s.exercise_check.cancel(); }});
  }
  return tools;
}

std::vector<Tool> tools_of(ShellState& state) {
  const KernelDesk& desk = state.desk();
  const Tool guest{"show_capsule_kernel", "Capsule's kernel",
                   "Go back to the capsule's kernel and run it", false,
                   [](ShellState& s) { s.show_guest(); }};
  if (!desk.edits) {
    const std::string path = state.source_on_show();
    std::vector<Tool> tools = {exercises_of()};
    if (!workbench::is_shared_header(path)) {
      tools.insert(tools.begin(),
                   {"edit_kernel", state.sheet(path).has_draft ? "Edit your draft" : "Edit",
                    "Change this source and run the lesson with it", false,
                    [](ShellState& s) { s.show_editor(); }});
    }
    if (desk.opened) {
      tools.insert(tools.begin(),
                   {"back_to_step", "Back to the step", "The kernel line that the picture shows",
                    true, [](ShellState& s) { s.back_to_step(); }});
    }
    if (desk.guest) tools.push_back(guest);
    return tools;
  }
  if (desk.guest_in_editor) return tools_of_guest(state);
  if (const lab::Exercise* exercise = state.exercise_in_editor()) {
    return tools_of_exercise(state, *exercise);
  }
  std::vector<Tool> tools = {
      {"run_kernel", "Run", "Compile and run the lesson with it  (Ctrl+Enter)", true,
       [](ShellState& s) { s.run_kernel(); }},
      {"original_kernel", "Original", "Back to the built-in kernel; your draft is kept", false,
       [](ShellState& s) { s.leave_kernel(); }},
      {"start_kernel_over", "Start over",
       "Put the built-in source in the editor; Ctrl+Z brings yours back", false,
       [](ShellState& s) { s.start_kernel_over(s.sheet(s.desk().path).original); }},
      {"own_editor", "Open in $EDITOR",
       "Open the draft in your own editor; what you save there runs here", false,
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

/// Draws the tools from the cursor on, in rows that end at `right`. Returns the height of what was drawn; the next thing of
/// the last row stands at `next`.
float draw_tools(ShellState& state, const std::vector<Tool>& tools, float right, float& next) {
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
  next = at.x;
  if (act) act(state);
  return at.y + row - start.y;
}

}  // namespace

bool note_link(const char* id, std::string_view words, ImVec2 at) {
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

float form_choice_width(bool brief) {
  return brief ? std::ceil(ui::text_size(kForms[1]).x) + 2 * px(12) : ui::segmented_width(kForms);
}

void draw_form_choice(ShellState& state, bool brief) {
  const auto form = state.desk().assembly.form;
  if (brief) {
    if (ui::button("assembly_ptx", kForms[1])) state.show_assembly(AssemblyForm::ptx);
    ui::tooltip("PTX and SASS beside the source  (S)");
    return;
  }
  const int now = form ? static_cast<int>(*form) + 1 : 0;
  const auto chosen = ui::segmented("assembly_form", kForms, now);
  if (!chosen) return;
  state.show_assembly(*chosen == 0 ? std::nullopt
                                   : std::optional(static_cast<AssemblyForm>(*chosen - 1)));
}

namespace {

/// The lesson's sources to choose from, right-aligned in `left` real pixels. False where there is one, or no room.
bool draw_source_choice(ShellState& state, const std::string& path, ImVec2 at, float left) {
  constexpr float kLeast = 130, kMost = 220;
  std::vector<std::string>& sources = state.desk().sources;
  if (sources.empty()) sources = workbench::editable_sources(state.session.lesson().info.id);
  const auto now = std::find(sources.begin(), sources.end(), path);
  const bool guest = state.desk().edits && state.desk().guest_in_editor;
  if (sources.size() < 2 || now == sources.end() || guest || left < px(kLeast)) return false;
  std::vector<std::string> names;
  for (const std::string& source : sources) names.emplace_back(workbench::name_of_file(source));
  const float width = std::min(left, px(kMost));
  ImGui::SetCursorScreenPos({at.x + left - width, at.y});
  const auto chosen = ui::dropdown("kernel_source", "Source", names,
                                   static_cast<int>(now - sources.begin()), width);
  ui::tooltip("The sources of this lesson's kernels");
  if (chosen) state.open_source(sources[static_cast<std::size_t>(*chosen)]);
  return true;
}

}  // namespace

bool draw_kernel_tools(ShellState& state, float room) {
  if (!state.has_source()) return true;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  try {
    const std::vector<Tool> tools = tools_of(state);
    const float gap = px(16), wanted = width_of(tools);
    const bool fits = wanted <= room;
    float left = fits ? room - wanted - gap : room;
    if (fits) {
      float next = 0;
      ImGui::SetCursorScreenPos({at.x + left + gap, at.y});
      draw_tools(state, tools, at.x + room + px(1), next);
    }
    // A button in place of the choice, where that would push the tools into the tab.
    const bool brief = fits && !state.desk().assembly.form && form_choice_width(false) > left;
    const float choice = form_choice_width(brief);
    state.form_choice_fits = choice <= left;
    if (state.form_choice_fits) {
      ImGui::SetCursorScreenPos({at.x + left - choice, at.y});
      draw_form_choice(state, brief);
      left -= choice + gap;
    }
    if (left < px(80)) return fits;
    std::string path = state.source_on_show();
    if (draw_source_choice(state, path, {at.x, at.y}, left)) return fits;
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

void draw_kernel_tool_rows(ShellState& state) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  // While a listing is open, its head has the choice.
  const bool chooses = !state.form_choice_fits && !state.desk().assembly.form;
  if (state.kernel_tools_fit && !chooses) return;
  const float right = at.x + ImGui::GetContentRegionAvail().x;
  const float row = std::round(px(ui::kControlHeight));
  float x = at.x, y = at.y;
  if (!state.kernel_tools_fit) y += draw_tools(state, tools_of(state), right, x) - row;
  if (chooses) {
    const float width = form_choice_width(false);
    if (x > at.x && x + width > right) {
      x = at.x;
      y += row + px(4);
    }
    ImGui::SetCursorScreenPos({x, y});
    draw_form_choice(state, false);
  }
  ImGui::SetCursorScreenPos({at.x, y + row + px(8)});
}

}  // namespace tilestep::app
