#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/shell/shell_state.hpp"

/// The panes of the window. Each is one function in a file of its own.
namespace tilestep::app {

void draw_rail(ShellState& state, const Layout& layout);
/// The course with what was done of it, over all of the window beside the rail.
void draw_home(ShellState& state, const Layout& layout, ImVec2 size);
void draw_inspection(ShellState& state, const Layout& layout, ImVec2 size);
void draw_profile(ShellState& state, const Layout& layout, ImVec2 size);
/// Reads a lesson's text, once.
void read_guide(const LessonState& lesson, Reading& reading);
void draw_header(ShellState& state, const Layout& layout);
/// The picture with what lies over it: progress, failure.
void draw_stage(ShellState& state, const Layout& layout);
/// On a stage: the question that is open, or the stop, below the picture.
void draw_card(ShellState& state, const Layout& layout);
void draw_transport(ShellState& state, const Layout& layout);
void draw_side_panel(ShellState& state, const Layout& layout);
void draw_tabs(ShellState& state, const Layout& layout);
/// Those that the stop on show turns, then those that the lesson names for a presenter.
std::vector<const lab::Knob*> wanted_knobs(const LessonState& lesson, const Reading& reading);
/// Numbers and the most wanted knobs on one line.
void draw_bar(ShellState& state, const Layout& layout);
/// The numbers at the cursor in a row of controls, as many as `width` holds.
void draw_stage_numbers(ShellState& state, float width);
/// Show the lesson's text beside the picture.
void draw_reader(ShellState& state, const Layout& layout);
/// The title of the stop and the first sentence of its text, where that does not tell what is still asked.
void draw_stop_card(ShellState& state);
/// What is asked, the choices, and how it ended; fills the current window.
void draw_predict_card(ShellState& state);
/// The question that hides the view `item` of the measurements, or what became of it.
void draw_measured_card(ShellState& state, int item);
void draw_glossary(ShellState& state);
/// The kernel's source, or its editor with what is said of it.
void draw_kernel_tab(ShellState& state);
/// Over the editor, while it has a capsule's kernel: whose that is, how it runs, and the button that trusts it.
void draw_guest_banner(ShellState& state);
/// The kernel on show and what it takes, over source and listing.
void draw_assembly_head(ShellState& state);
/// Where one is in the source beside a listing; lines from 1, 0: none.
struct SourceSpot {
  std::string_view text;
  int line = 0;     ///< the step's, or the caret's
  int hovered = 0;  ///< by the pointer
};
/// The listing with what is said about it.
void draw_assembly_pane(ShellState& state, const SourceSpot& spot);
/// Source, PTX, SASS. `brief`: while the source stands alone, a button that ends that.
void draw_form_choice(ShellState& state, bool brief);
float form_choice_width(bool brief);
/// What of the kernel's tools did not fit beside the tabs, in rows from the cursor on.
void draw_kernel_tool_rows(ShellState& state);
/// Words that lead somewhere, at a place of the window. True if they were pressed.
bool note_link(const char* id, std::string_view words, ImVec2 at);
/// What can be done with the kernel, beside the tabs. False: it does not fit there, in `room` real pixels.
bool draw_kernel_tools(ShellState& state, float room);
/// How a table of the report stands under Data at a cursor.
ui::TableLook table_look(const scenes::ScenePlayer& player, const lab::Table& table,
                         scenes::Cursor now);
/// What a symbol means, where it was clicked, until Esc or another click.
void draw_definition(ShellState& state, ImVec2 size);
/// The note, over a corner of the picture, while it is open.
void draw_note(ShellState& state, const Layout& layout);
/// The labs that the lesson may be run at, while they are open.
void draw_lab_card(ShellState& state, ImVec2 size);
/// Tells the picture what the pointer was on in this frame.
void follow_pointer(ShellState& state);
void draw_key_list(ShellState& state, ImVec2 size);
/// The sentence that was said last, over the lower edge.
void draw_message(const ShellState& state, ImVec2 size);

/// Whose kernel and which device: "Your kernel · Emulated on CPU · throughput recorded on NVIDIA H200, 2026-05-12". There
/// has to be a report.
std::string device_sentence(const LessonState& lesson);

/// The whole of what a failure says, and what becomes of the worker.
std::string failure_sentence(const LabFailure& failure);

/// A panel: background, hairline, rounded corners, padding; its content is drawn between.
class PanelScope {
 public:
  PanelScope(const char* id, const Rect& place, ImGuiWindowFlags flags = 0,
             float padding = ui::kGap);
  ~PanelScope();
  /// Adds the panel to the map, where it stands now: the column around it may have been scrolled.
  void name(const char* id, const char* label) const;
  PanelScope(const PanelScope&) = delete;
  PanelScope& operator=(const PanelScope&) = delete;
};

/// A card that lies over the window, with a border: title row and content are drawn between.
class CardScope {
 public:
  /// `size` of 0 in height: as high as its content.
  CardScope(const char* id, ImVec2 place, ImVec2 size);
  ~CardScope();
  CardScope(const CardScope&) = delete;
  CardScope& operator=(const CardScope&) = delete;
};

}  // namespace tilestep::app
