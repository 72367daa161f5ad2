#pragma once

#include <imgui.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/keep/saves.hpp"
#include "app/keep/settings.hpp"
#include "app/worker/lab_client.hpp"
#include "kernels/base/lab/edit.hpp"
#include "kernels/base/lab/knob.hpp"
#include "kernels/base/workbench/assembly.hpp"
#include "scenes/picture/picture.hpp"
#include "scenes/ui/code_editor.hpp"
#include "scenes/ui/ui.hpp"

namespace tilestep::ui {
class Context;
}

namespace tilestep::app {

struct Capsule;

enum class Tab { predict, data, measured, kernel, glossary };

struct Inspected;
struct Profiled;

struct ShellOptions {
  std::string lesson;      ///< empty: kOpeningLesson
  lab::Settings settings;  ///< knobs that differ from the defaults
  /// Knobs of another run, which is kept as A beside that of `settings`.
  std::optional<lab::Settings> compared = {};
  std::string backend = "auto";
  std::vector<LabAddress> labs = {};  ///< elsewhere; runs are asked of the first, if there is one
  /// Checks exercises; nothing: `program` does.
  std::function<std::string(const std::string& id, const std::string& text,
                            const std::function<bool()>& stop)>
      run_exercise = {};
  std::string program = {};  ///< path of tilestep itself, for workers
  int step = 0;              ///< completed coarse steps; beyond the last: the last
  std::string phase = {};    ///< inside step `step`, by name or number from 0; empty: its last
  /// A saved file, shown as it is instead of a run of `lesson`.
  std::shared_ptr<const Capsule> capsule = {};
  bool trust = false;         ///< the capsule's kernel runs as the user's own does
  KeptSettings kept = {};     ///< from the last session; the members above take precedence
  std::string greeting = {};  ///< said on screen at first; empty: nothing
  Tab tab = Tab::data;
  std::string view = {};  ///< of the Measured tab; empty: its first
  std::string filter = {},
              filtered = {};  ///< one of its filters by id, and its value; empty: as they begin
  ui::ThemeKind theme = ui::ThemeKind::dark;
  bool presenter = false;
  bool reader = false;       ///< the lesson's text is beside the picture
  int stop = -1;             ///< of the guided path, that `settings` and `step` are of; −1: none
  bool overlay = false;      ///< on a stage: the tab lies over the picture
  bool stop_asks = false;    ///< with `asked`: it is the stop's question, and its text is to come
  bool predict = false;      ///< steps are asked about before they are shown
  bool asked = false;        ///< the question at `step` is open
  float text_scale = 1.0f;   ///< 1.0–2.0
  bool still = false;        ///< no animation: pictures and tests
  bool calm = false;         ///< reduced motion: nothing moves by itself
  bool home = false;         ///< begins at Home
  bool first_start = false;  ///< begins at Home, without a place to continue
  bool edits = false;        ///< the kernel's editor is open under Kernel
  /// The listing beside the source under Kernel; nothing: only the source.
  std::optional<workbench::AssemblyForm> assembly = {};
  /// A kernel of the lesson: opened in the editor, and run instead of the built-in one.
  std::optional<lab::KernelEdit> kernel = {};
  /// A CUDA file to inspect at the start; empty: none.
  std::filesystem::path inspects = {};
  std::vector<std::string> inspect_words = {};  ///< what `tilestep inspect` is given beside it
  bool inspect_page = false;                    ///< begins at the page of CUDA files, without one
  int inspect_tab = 0;                          ///< of its page, in the order of kInspectTabs
  /// One that was run already, to be shown.
  std::shared_ptr<const Inspected> inspected = {};
  /// A trace of another profiler to show at the start; empty: none.
  std::filesystem::path profiles = {};
  bool profile_page = false;  ///< begins at the page of traces, without one
  /// One that was read already, at one of its questions; −1: at none.
  std::shared_ptr<const Profiled> profiled = {};
  int profile_question = -1;
  /// Where drafts of kernels are kept; nothing: they are not.
  std::optional<std::filesystem::path> drafts = {};
  /// Where progress is kept; nothing: it is not.
  std::optional<std::filesystem::path> progress = {};
};

/// How a run with the user's kernel went.
struct KernelRun {
  std::string path;                         ///< of the source
  std::string failure;                      ///< one sentence; empty: it ran
  std::optional<lab::EditedKernel> kernel;  ///< once it ran
  std::string device;                       ///< that it ran on
};

/// Keys the shell knows; the window translates.
enum class Key {
  left,
  right,
  up,
  down,
  home,
  end,
  page_up,
  page_down,
  space,
  a,
  b,
  c,
  d,
  g,
  h,
  k,
  l,
  m,
  n,
  p,
  r,
  s,
  t,
  v,
  f8,
  f11,
  question,
  escape,
  enter,
  tab,
  find,       ///< Ctrl+K
  find_text,  ///< Ctrl+F
  run,        ///< Ctrl+Enter
  copy,       ///< Ctrl+C
  open,       ///< Ctrl+O
  save,       ///< Ctrl+S
  comma,
  period,
  bracket_left,
  bracket_right,
  digit_1,
  digit_2,
  digit_3,
  digit_4,
  digit_5,
  digit_6,
  digit_7,
  digit_8,
  digit_9,
};

/// The things a user can save or copy.
enum class Keep {
  capsule,
  table_csv,
  table_json,
  table_copy,  ///< as TSV, to the clipboard
  picture_png,
  picture_svg,
  link,  ///< the command line that comes back here, to the clipboard
};

struct KeepRequest {
  Keep what = Keep::capsule;
  int times = 2;
};

/// The window's content: rail, header, picture, transport, side panel, tabs. Draws into the current
/// ImGui frame; owns the scenes and asks `lab` for reports.
class Shell {
 public:
  Shell(LabClient& lab, ShellOptions options);
  ~Shell();

  /// Before ImGui::NewFrame: (re)builds the fonts if theme or scale asks for it; `size` of the window. Returns true if
  /// the font atlas changed and the renderer must upload it again.
  bool prepare_fonts(float display_scale, ImVec2 size);
  /// Draws one frame that fills `size` (framebuffer pixels).
  void draw(ImVec2 size);
  void key(Key key, bool shift);
  /// A typed character, or a key as editors have it. False: no editor has the keyboard, and `key` may have it.
  bool type(char32_t character);
  bool press(const ui::EditorPress& press);
  /// Opens the editor of the source on show with the keyboard in it, as its button does.
  void edit_kernel();
  /// The run with the user's kernel that is on show; nothing: it is of the built-in ones, or another answer is coming.
  std::optional<KernelRun> kernel_run() const;
  /// Writes the drafts that wait to be written.
  void keep_drafts();
  /// As if these knobs of the lesson on show had been turned. Throws Error for what they do not take.
  void set_knobs(const lab::Settings& settings);
  /// As if a thing of the picture had been clicked that can be followed: a token, a thread.
  void pick(picture::Name what, int index);
  /// Shows of the picture what these things need (scenes::ScenePlayer::shoot), without a stop.
  void shoot(std::vector<std::string> subject);
  /// Processes messages from the lab. Returns true if something changed.
  bool update();
  /// True while an animation or playback needs frames without events.
  bool animating() const;
  /// True while the lab runs or measures: frames take the processor and the GPU that it needs.
  bool working() const;
  /// True while it times this machine's GPU, which may be the one that draws.
  bool timing() const;
  /// Seconds until `update` has something to send, even if nothing happens before.
  std::optional<double> update_due_s() const;
  /// True once after F11.
  bool take_full_screen_toggle();
  /// The first run is through: there is a picture.
  bool has_report() const;
  /// At a stop as the text has it, in a picture that outlines what the stop before moved.
  bool follows_stop();
  /// The user's position, for tests: completed coarse steps.
  int step() const;
  std::string window_title() const;
  /// The map of the last frame as JSON: {"lesson", "step", "frame", "idle", "parts": [{"id", "label", "value",
  /// "rect": [x, y, w, h], "raw": […], "least": [w, h], "cut"}], "lost": […]}. `rect` is what can be
  /// seen, `raw` where it was drawn, `least` the size below which it cannot be read; `cut` parts and
  /// the `lost` ones (nothing of which is in sight) cannot be scrolled to either. `frame` counts what a window
  /// drew, `idle`: no further frame is due.
  std::string ui_map_json(int frame = 1, bool idle = true) const;
  /// The picture of the last frame as SVG. Throws Error (unavailable) where there is none.
  std::string picture_svg();
  /// All that is on show, to be kept. Throws Error (unavailable) before there is a report.
  Capsule capsule() const;
  /// Runs a CUDA file, in another process, and shows what it does.
  void inspect(const std::filesystem::path& file);
  /// While that runs.
  bool inspecting() const;
  /// Reads a trace of another profiler and shows it.
  void profile(const std::filesystem::path& file);
  /// Shows a capsule as it was kept; nothing runs until a knob is turned.
  void open(const Capsule& capsule);
  /// The table that is chosen under Data, as far as it is on show. Throws Error (unavailable) if there is none.
  std::string table_on_show(TableForm form) const;
  std::string table_id() const;
  /// Id of the lesson on show.
  std::string lesson() const;
  /// The command line that returns to the user's position.
  std::string link() const;
  /// The settings to keep between sessions, except the window's size, which the window keeps.
  KeptSettings settings() const;
  /// Asks for something to be kept, as a key or the palette does. A PNG has so many pixels for one of the
  /// window's, 1–4.
  void keep(Keep what, int times = 2);
  /// Requests since the last call: the window writes files and pictures.
  std::optional<KeepRequest> take_keep();
  /// Says a short sentence on screen for a few seconds.
  void say(std::string sentence);
  /// Why the requested starting place does not exist; empty: it does.
  std::string complaint() const;
  /// The window's drawing context, for tests.
  ui::Context& context();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilestep::app
