#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/shell/layout.hpp"
#include "app/shell/session.hpp"
#include "app/shell/shell.hpp"
#include "scenes/ui/context.hpp"

/// What the parts of the window share. Each part is one function in a file of its own.
namespace tilestep::app {

struct ShellState {
  ShellState(LabClient& lab, const ShellOptions& options);

  Session session;
  ui::Context ui;
  Tab tab = Tab::data;
  bool key_list = false;
  bool full_screen_toggle = false;
  bool drawn = false;
  std::optional<double> copied_s;  ///< when the table was copied
  int hovered_row = -1;
  KeptSettings kept;            ///< as they were at the start
  ui::ThemeKind first_theme{};  ///< at the start, perhaps by a flag, which is not kept
  float first_text_scale = 1;
  std::optional<KeepRequest> asked_to_keep;  ///< waits for the window
  struct Message {
    std::string sentence;
    double until_s = 0;
  };
  std::optional<Message> message;

  double now_s() const;
  void set_presenter(bool presenter);
  void toggle_theme();
  /// Keeps the run on show beside those to come, or no longer.
  void toggle_compare();
  void set_text_scale(float text_scale);
  /// Shows a sentence for a few seconds.
  void say(std::string sentence);
  void show(const Capsule& capsule);
};

struct Shell::State : ShellState {
  using ShellState::ShellState;
};

void draw_rail(ShellState& state, const Layout& layout);
void draw_header(ShellState& state, const Layout& layout);
/// The picture with what lies over it: progress, failure.
void draw_stage(ShellState& state, const Layout& layout);
void draw_transport(ShellState& state, const Layout& layout);
void draw_side_panel(ShellState& state, const Layout& layout);
void draw_tabs(ShellState& state, const Layout& layout);
/// How a table of the report stands under Data at a cursor.
ui::TableLook table_look(const scenes::ScenePlayer& player, const lab::Table& table,
                         scenes::Cursor now);
void draw_key_list(ShellState& state, ImVec2 size);
/// The sentence that was said last, over the lower edge.
void draw_message(const ShellState& state, ImVec2 size);

/// "Emulated on CPU · throughput recorded on NVIDIA H200, 2026-05-12".
std::string device_sentence(const lab::Report& report);

/// The whole of what a failure says, and what becomes of the worker.
std::string failure_sentence(const LabFailure& failure);

/// A panel: background, hairline, rounded corners, padding; its content is drawn between.
class PanelScope {
 public:
  PanelScope(const char* id, const Rect& place, ImGuiWindowFlags flags = 0,
             float padding = ui::kGap);
  ~PanelScope();
  PanelScope(const PanelScope&) = delete;
  PanelScope& operator=(const PanelScope&) = delete;
};

}  // namespace tilestep::app
