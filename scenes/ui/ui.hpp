#pragma once

#include <imgui.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/knob.hpp"
#include "kernels/base/lab/report.hpp"
#include "scenes/picture/role.hpp"

/// Everything a scene draws with. There is one ui::Context per window; like ImGui's, it is current
/// while a frame is drawn, so that a scene names roles and never colours or pixels.
namespace tilestep::ui {

/// The draw list of the current window.
inline ImDrawList& list() {
  return *ImGui::GetWindowDrawList();
}

using picture::Role;

enum class Font { note, body, body_bold, section, title, mono_note, mono, mono_large };

enum class ThemeKind { dark, light };

// ---- the current context --------------------------------------------------------------------

ImU32 color(Role role, float alpha = 1.0f);
/// A viridis-like heat colour for t in 0–1, light enough on dark and dark enough on light.
ImU32 heat(float t);
/// Black or white, whichever reads better on `background`.
ImU32 readable_on(ImU32 background);
/// Design pixels (at 100 %) to real ones.
float px(float design_pixels);
ImFont* font(Font font);
ThemeKind theme();
bool presenter();
/// The time step of animations; 0 in pictures and tests, where everything is in its end state.
float animation_seconds();
/// Requests another frame soon (an animation is running).
void request_redraw();

/// A value that moves to `target` in about `seconds` and stays there; `id` names it within the
/// current ImGui window. In pictures and tests it is always `target`.
float animate(std::string_view id, float target, float seconds = 0.25f);

/// Uses a font until the end of the scope.
class FontScope {
 public:
  explicit FontScope(Font font);
  ~FontScope();
  FontScope(const FontScope&) = delete;
  FontScope& operator=(const FontScope&) = delete;
};

// ---- the map of what is on screen -----------------------------------------------------------

/// One control or labelled part, so that a test finds "Next tile" by name. Framebuffer pixels.
struct MapEntry {
  std::string id;
  std::string label;
  std::string value;
  ImVec2 min, max;          ///< its visible part
  ImVec2 raw_min, raw_max;  ///< where it was drawn, before any window clipped it
  ImVec2 least;             ///< below this size it cannot be read; 0: any size will do
  bool cut = false;         ///< part of it can neither be seen nor scrolled to

  bool too_small() const {
    return raw_max.x - raw_min.x < least.x || raw_max.y - raw_min.y < least.y;
  }
};
/// Adds a part to this frame's map. `least` is the smallest size at which it can still be read.
void map(std::string_view id, std::string_view label, std::string_view value, ImVec2 min,
         ImVec2 max, ImVec2 least = {0, 0});
const std::vector<MapEntry>& map_entries();

// ---- drawing on the current window's draw list ------------------------------------------------

enum class Align { left, center, right };

/// Draws text at `position` (its top edge; x is its left edge, centre or right edge as `align`).
/// Returns its size.
ImVec2 draw_text(ImVec2 position, std::string_view text, Font font = Font::body,
                 Role role = Role::text, Align align = Align::left, float alpha = 1.0f);
ImVec2 text_size(std::string_view text, Font font = Font::body);
/// Cuts `text` with an ellipsis so that it fits `width`.
std::string fitted(std::string_view text, Font font, float width);
/// Diagonal lines inside a rectangle: marks waste.
void hatch(ImVec2 min, ImVec2 max, Role role, float spacing = 6.0f);
void dashed_rect(ImVec2 min, ImVec2 max, Role role, float thickness = 1.5f);
void dashed_line(ImVec2 from, ImVec2 to, Role role, float thickness = 1.5f);
void arrow(ImVec2 from, ImVec2 to, Role role, float thickness = 1.5f);
void cross(ImVec2 center, float radius, Role role);
void check(ImVec2 center, float radius, Role role);
/// Draws text that wraps at `width`; returns its size.
ImVec2 draw_wrapped(ImVec2 position, std::string_view text, float width, Font font = Font::body,
                    Role role = Role::text);
ImVec2 wrapped_size(std::string_view text, float width, Font font = Font::body);
/// One line of text as an ImGui item, cut with an ellipsis where the window ends.
void text(std::string_view text, Font font = Font::body, Role role = Role::text);
/// Text as an ImGui item that wraps at the window's right edge.
void paragraph(std::string_view text, Font font = Font::body, Role role = Role::text);
/// Vertical room in design pixels.
void space(float design_pixels);
/// A wrapped tooltip for the last item while the pointer is on it.
void tooltip(std::string_view sentence);
/// A wrapped tooltip at the pointer.
void show_tooltip(std::string_view sentence);

// ---- controls (each adds itself to the map) ----------------------------------------------------

enum class Icon {
  none,
  first,
  back,
  play,
  pause,
  forward,
  last,
  line,
  reset,
  sun,
  moon,
  screen,
  compare,
  help,
  copy,
  check,
  cross,
  book,
  search,
  event,
  chip,
};
/// Draws an icon in a square of `size` real pixels.
void draw_icon(Icon icon, ImVec2 center, float size, ImU32 color);

struct ButtonLook {
  Icon icon = Icon::none;
  bool primary = false;   ///< accent, filled
  bool selected = false;  ///< a chosen one of several
  bool enabled = true;
  /// Design pixels. 0: as wide as the label, or a square with the icon alone; negative: icon and
  /// label side by side, as wide as they need.
  float width = 0;
};
/// A button with `label` (for an icon alone the label is its tooltip and its name in the map).
bool button(std::string_view id, std::string_view label, const ButtonLook& look = {});
/// One of a few choices side by side; returns the newly chosen index, if any.
std::optional<int> segmented(std::string_view id, const std::vector<std::string>& labels,
                             int selected, float width = 0);
/// How wide `segmented` is where nothing limits it, in real pixels.
float segmented_width(const std::vector<std::string>& labels);
/// One of several choices from a list that opens; `width` in real pixels. The map names each open
/// choice `id_index`.
std::optional<int> dropdown(std::string_view id, std::string_view label,
                            const std::vector<std::string>& choices, int selected, float width);
/// The fitting control for a knob, with its label above, full width. Returns the new value on
/// change.
std::optional<lab::KnobValue> knob(const lab::Knob& knob, const lab::KnobValue& value);
/// The same on one line of `width` real pixels, for a bar: label and control side by side.
std::optional<lab::KnobValue> knob_line(const lab::Knob& knob, const lab::KnobValue& value,
                                        float width);

/// Makes the text field that was just drawn a stop of the keyboard's focus, where Enter begins to type.
void begin_typing(std::string_view id);

/// A slider over 0–1 of `width` real pixels; returns the new place while it is dragged.
std::optional<float> range_slider(std::string_view id, float share, float width);

/// A named place on a scrubber.
struct ScrubberMark {
  double at = 0;
  std::string label;
};
struct ScrubberMove {
  double to = 0;
  bool released = false;  ///< the handle was let go
};
/// A slider over 0…count steps, for the transport bar. The handle may stop between two steps.
std::optional<ScrubberMove> scrubber(std::string_view id, double value, int count, float width,
                                     const std::vector<ScrubberMark>& marks = {});

// ---- numbers, tables, text ----------------------------------------------------------------------

/// A number at a glance: large value, small unit, and a small provenance mark whose tooltip is the
/// whole sentence.
struct Readout {
  std::string id;
  std::string label;
  std::string value;
  std::string unit;
  lab::Provenance provenance = lab::Provenance::traced;
  std::string detail;
  Role role = Role::text;
  std::string beside = {};  ///< its value in the compared run: "A 4.0"
  Role sign = Role::muted;  ///< of a number that has a colour of its own in the picture
  bool lit = false;         ///< its thing is pointed at elsewhere
};
/// The effect of the pointer or the focus on one of several things.
struct Pointed {
  int which = -1;  ///< −1: none
  bool pressed = false;
  ImVec2 at = {};  ///< where something may be said about it
};
/// Returns whether the pointer is on it (`which` 0), and, if it has a sign, whether it was pressed.
Pointed readout(const Readout& readout);
/// Readouts side by side on one line, as many as fit in `width` real pixels, first ones first; marks
/// are shapes only.
Pointed readout_line(const std::vector<Readout>& readouts, float width);
/// The small mark alone, after the last item on the same line.
void provenance_mark(lab::Provenance provenance, std::string_view sentence);

struct TableLook {
  int current_row = -1;  ///< accent
  int lit_row = -1;      ///< its thing is pointed at elsewhere
  /// Cells still to come: dim, without numbers. Empty: none.
  std::function<bool(int row, int column)> hidden = {};
  /// The colour of a column head whose things have one in the picture. Empty: none has.
  std::function<Role(int column)> sign = {};
  /// A column whose thing is pointed at elsewhere. Empty: none is.
  std::function<bool(int column)> lit_column = {};
};
/// The part of a table under the pointer; −1: none.
struct TableHover {
  int row = -1, head = -1;
};
/// Draws the table, filling the width.
TableHover data_table(const lab::Table& table, const TableLook& look = {});

/// A word of a source that names a thing of the picture, in the thing's colour.
struct SourceWord {
  std::string word;
  Role role = Role::text;
  bool lit = false;   ///< its thing is pointed at elsewhere
  bool call = false;  ///< a function: where it is not called it is a word like any other
  int not_in = 0;     ///< nor in this line, 1-based
};
/// What a line costs, in a column of its own before the numbers.
struct SourceCost {
  std::string text;
  float heat = 0;  ///< 0–1: none to much
};
struct SourceLook {
  int current = 0;  ///< 1-based line that is marked with the accent and scrolled to; 0: none
  std::vector<int> step_lines;             ///< marked quietly
  std::map<int, std::string> values = {};  ///< at line ends: the values they computed
  std::vector<SourceWord> words = {};
  std::map<int, SourceCost> costs = {};  ///< empty: there is no such column
};
/// Source text with line numbers. Statements that record the picture are folded into a line, which unfolds
/// on a click. Returns the word of `look.words` that the pointer is on, or −1.
int source_view(std::string_view id, std::string_view source, const SourceLook& look);
/// A word that explains itself: its first use in a text is underlined and shows the sentence.
struct MarkdownTerm {
  std::string phrase, sentence;
  bool operator==(const MarkdownTerm&) const = default;
};
struct MarkdownLook {
  std::string id =
      {};  ///< of a text among several in one window: begins the ids of its links in the map
  int max_characters = 68;  ///< of a line; tables and code may fill the width
  std::string active = {};  ///< the target of the chip that is chosen
  std::vector<MarkdownTerm> terms = {};
};
/// Targets of links, as written: "try:stride=32", "light:m", "https://…"; "term:" and the phrase of a term.
/// Empty: none.
struct MarkdownEvents {
  std::string clicked, hovered;
};
/// CommonMark with tables, wrapped to the width. Comments are not shown; `try:` links are chips, `light:`
/// links words with dots below. In the map they are try_0, light_0, link_0 and term_0 and on, each with its
/// words and its target.
MarkdownEvents markdown(std::string_view text, const MarkdownLook& look = {});
/// Empty states such as "No source yet": a title and a sentence on what to do, centred.
void empty_state(std::string_view title, std::string_view sentence);
/// A small filled pill with a text.
void badge(std::string_view id, std::string_view text, Role role);

// ---- plots ------------------------------------------------------------------------------------

struct Bar {
  std::string label;
  double value = 0;
  std::optional<double> p10, p90;  ///< drawn as a whisker
  Role role = Role::sky;
  std::string note;        ///< after the value
  bool name_shown = true;  ///< false: the label stands beside the same bar of the plot to the left
  std::optional<double> expected = {};   ///< drawn as a dashed outline
  std::optional<double> reference = {};  ///< of another device: a mark across the row
};
struct BarPlot {
  std::string id;
  std::string title;
  std::string unit;
  std::vector<Bar> bars;
  std::optional<double> roof;  ///< a labelled line that no bar should pass
  std::string roof_label;
  bool roof_room = false;  ///< leaves room for a roof's name, to line up with a plot that has one
  std::string reference = {};  ///< the device of the bars' references
};
/// Horizontal bars, their values in a column of their own, filling the width; the axis carries the
/// unit. Bars are as thick as `height` (real pixels) allows, within limits.
void bar_plot(const BarPlot& plot, float height = 0);
/// The least height at which `plot` is legible, in real pixels.
float bar_plot_height(const BarPlot& plot);

/// A line of a plot: solid if measured, dashed if expected.
void stroke(ImVec2 from, ImVec2 to, Role role, bool dashed);

struct Curve {
  std::string label;
  std::vector<double> x, y;
  std::vector<double> low, high;  ///< a band; empty if none
  Role role = Role::accent;
  bool dashed = false;
  bool thin = false;  ///< of another device
};
struct LinePlot {
  std::string id;
  std::string title;
  std::string x_label, y_label;  ///< with units
  bool x_log = false, y_log = false;
  std::vector<Curve> curves;
  std::optional<double> roof;
  std::string roof_label;
  std::optional<double> marked_x;  ///< "you are here"
};
/// Fills `size`; curves are labelled at their ends.
void line_plot(const LinePlot& plot, ImVec2 size);

}  // namespace tilestep::ui
