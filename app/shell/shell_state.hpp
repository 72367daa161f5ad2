#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/keep/drafts.hpp"
#include "app/keep/own_editor.hpp"
#include "app/keep/progress.hpp"
#include "app/shell/coach.hpp"
#include "app/shell/exercise_desk.hpp"
#include "app/shell/inspection.hpp"
#include "app/shell/layout.hpp"
#include "app/shell/owned_kernel.hpp"
#include "app/shell/palette.hpp"
#include "app/shell/profiling.hpp"
#include "app/shell/session.hpp"
#include "app/shell/shell.hpp"
#include "kernels/base/workbench/exercise.hpp"
#include "kernels/base/workbench/sources.hpp"
#include "scenes/shared/guide.hpp"
#include "scenes/ui/context.hpp"
#include "scenes/ui/line_links.hpp"

/// What the parts of the window share. Each part is one function in a file of its own.
namespace tilestep::app {

/// Where the reader of a lesson's text is.
struct Reading {
  std::optional<scenes::Guide> guide;  ///< once a run has said the names of the phases
  std::string problem;                 ///< why there is none
  /// Terms of the glossary that stretch `i` of the text uses first: the introduction, the stops, more.
  std::vector<std::vector<ui::MarkdownTerm>> terms;
  int stop = -1;        ///< among the guide's; −1: before the first
  bool tries = false;   ///< an experiment has taken the scene away from the stop
  bool scrolls = true;  ///< brings the stop into sight
  float width = 0;      ///< of the text when it was drawn last, in its own units
  bool tells = false;   ///< figures too that are still asked about
  bool asks = false;    ///< the question of the stop comes first
  bool shot = false;    ///< the picture shows what the stop is about, not the step
  bool whole = false;   ///< it shows everything
  /// What a stretch of the text took of room, and how it was set then.
  struct Stretch {
    float height = 0, width = 0, scale = 0;
    bool waits = false;
  };
  std::set<int> asked;             ///< stops whose question has been dealt with
  std::vector<Stretch> stretches;  ///< as `terms`
};

/// Questions of earlier lessons before one begins, each in its own scene.
struct Recall {
  struct Visit {
    std::size_t lesson = 0;
    lab::Settings settings;  ///< complete
  };
  std::vector<Visit> visits;
  std::size_t target = 0;  ///< the lesson that is to begin
  std::size_t now = 0;     ///< of the visits
  bool asks = false;       ///< once its run is there
  /// How the lesson that is visited stood before.
  lab::Settings before = {};
  int step = 0;
};
/// One of the lesson before `target` and one from further back, where there is one, at settings that their paths do not
/// go to; the same for the same seed.
std::vector<Recall::Visit> recall_before(const std::vector<LessonState>& lessons,
                                         std::size_t target, std::int64_t seed);

/// What stands beside a lesson's source under Kernel.
struct AssemblyDesk {
  std::optional<workbench::AssemblyForm> form;  ///< nothing: the source alone
  int capability = 0;       ///< that was chosen; 0: the lab's GPU's, else kDefaultCapability
  std::string symbol = {};  ///< of the kernel on show; empty: the one that the line is of
  int line = 0;       ///< of the source, that was chosen in either; 0: the step's, or the caret's
  int seen_line = 0;  ///< the step's or the caret's in the frame before
  /// The lines of the instruction that the pointer was on in the frame before, the innermost first.
  std::vector<int> hovered = {};
  int source_goes = 0;        ///< the source brings this line into sight
  int listing_goes = 0;       ///< the listing its first instruction
  bool resources_fit = true;  ///< in the head, in this frame; else they stand below the listing
  bool asks = false;          ///< what is on show is to be compiled
};

/// What the user makes of a lesson's kernel.
struct KernelDesk {
  /// A source as the user changes it.
  struct Sheet {
    ui::CodeEditor editor;
    std::uint64_t kept = 0;       ///< the revision of its text that the draft has
    bool has_draft = false;       ///< from another time, or of this one
    bool of_other_build = false;  ///< made from another text of the source
    std::string original;         ///< as built in
    bool placed = false;          ///< the editor has shown the line of the step
  };
  bool edits = false;                   ///< the editor is on show under Kernel
  std::string path;                     ///< of the sheet in it
  std::map<std::string, Sheet> sheets;  ///< by path
  /// A source that is read in place of the one that the step is in, until the next step.
  struct Opened {
    std::string path;
    int line = 0;          ///< that was asked for; 0: its beginning
    scenes::Cursor since;  ///< where the lesson stood
    bool fresh = true;     ///< it has not been brought into sight
  };
  std::optional<Opened> opened;
  std::vector<std::string> sources;  ///< that can be opened, once they were looked for
  std::map<std::string, workbench::Definitions> functions;  ///< in reach of a source
  /// What a capsule brought. No draft is kept of it, and the user's own sheet of that source is left alone.
  struct Guest {
    lab::KernelEdit edit;  ///< as it came
    KernelOwner owner = KernelOwner::capsule;
    Sheet sheet;
  };
  std::optional<Guest> guest;
  bool guest_in_editor = false;  ///< the editor has that, in place of the user's own sheet
  /// The user's own editor has the draft of `path`: what it saves is run.
  bool watches = false;
  double look_s = 0;                   ///< when to look for that
  std::optional<Ticket> running = {};  ///< the run whose seconds are counted
  double running_since_s = 0;
  std::optional<lab::Settings> before_trial =
      {};  ///< where one came from when one went to a trial setting
  AssemblyDesk assembly = {};
};

struct ShellState {
  ShellState(LabClient& lab, const ShellOptions& options);

  Session session;
  ui::Context ui;
  Tab tab = Tab::data;
  std::optional<Tab> tab_before;  ///< that a question took the place of
  bool reader = false;
  std::map<std::size_t, Reading> readings;  ///< by the lesson's place in the list
  /// The subject of the picture, in place of the stop's or the step's; nothing named: the whole picture.
  std::optional<std::vector<std::string>> shot_of;
  std::map<std::size_t, KernelDesk> desks;  ///< the same
  Drafts drafts;
  ExerciseCheck exercise_check;
  std::vector<DetachedProgram> own_editors;  ///< that were started
  bool kernel_tools_fit = true;              ///< beside the tabs, in this frame
  bool form_choice_fits = true;              ///< the same, of source, PTX or SASS
  bool overlay = false;                      ///< on a stage: the tab lies over the picture
  bool question_open = false;                ///< in the frame before
  float card_height = 0;   ///< of the question or the stop in the frame before, real pixels
  int measured_item = -1;  ///< the question that hides the view on show
  bool key_list = false;
  int key_list_scrolls = 0;  ///< by ↑ and ↓ since the last frame
  Palette palette;
  /// What the palette finds, while it is open, in the lesson of this place in the list.
  std::optional<std::pair<std::size_t, std::vector<Find>>> finds;
  Coach coach;
  bool home = false;       ///< the course is on show in place of a lesson
  bool has_place = false;  ///< there is a lesson to continue
  Inspection inspection;
  Profiling profiling;
  bool profiles =
      false;  ///< a profiler's trace, or the choice of one, is on show in place of a lesson
  bool profile_types = false;  ///< as inspect_types
  std::array<char, 1024> profile_path{};
  bool inspects = false;  ///< a CUDA file, or the choice of one, is on show in place of a lesson
  int inspect_tab = 0;
  std::string inspect_refused;  ///< why no file could be written
  bool inspect_types = false;   ///< the field for its path takes the keys in the next frame
  std::array<char, 1024> inspect_path{};
  std::optional<Recall> recall;
  std::int64_t recall_seed = 0;
  ProgressFile progress_file;
  Progress progress;          ///< of this and other windows, as far as known
  std::string glossary_term;  ///< the one on show, by its id
  std::array<char, 96> glossary_query{};
  bool glossary_scrolls = false;  ///< brings the term into sight in the list
  bool full_screen_toggle = false;
  bool drawn = false;
  std::optional<double> copied_s;  ///< when the table was copied
  /// What the pointer is on beside the picture: a row, a readout, a word of the kernel.
  std::vector<picture::Subject> points_at;
  /// A symbol's meaning, pinned where it was clicked.
  struct Definition {
    picture::Subject subject;
    ImVec2 at;
  };
  std::optional<Definition> definition;
  /// What the user notes about the run on show: kept with a capsule.
  struct NoteCard {
    bool edits = false, grabs = false;  ///< it takes the keys in the next frame
    std::array<char, 4096> text{};
  };
  std::optional<NoteCard> note;
  /// Where kernels run, to choose from, below the button that opened it.
  struct LabCard {
    ImVec2 at;
    bool opened = true;  ///< in this frame
  };
  std::optional<LabCard> lab_card;
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
  void toggle_motion();
  const std::vector<LessonState>& lessons() const { return session.lessons(); }
  /// The pointer is on a word for these in this frame.
  void point_at(const std::vector<picture::Subject>& subjects);
  void open_note(bool to_edit);
  /// Pins what a symbol means, at a place of the window; nothing for what is no symbol.
  void define(const picture::Subject& subject, ImVec2 at);
  /// Opens the glossary at a term.
  void show_term(const std::string& id);
  bool staged() const { return reader || ui.look().presenter; }
  /// Brings a tab to the front; on a stage it comes and goes.
  void show_tab(Tab tab);
  void set_reader(bool reader);
  void escape();
  /// Of the lesson on show.
  Reading& reading() { return readings[session.chosen()]; }
  /// Goes to a stop of the guided path; beyond the ends: nothing.
  void go_to_stop(int stop);
  void try_out(const lab::Settings& settings);
  void show_home(bool wanted);
  /// Runs a CUDA file and shows what it does.
  void inspect(const std::filesystem::path& file, std::vector<std::string> words = {});
  /// Writes a program of *First steps* to the documents folder, unless it is there, and inspects it.
  void open_step(const lab::Exercise& exercise);
  /// Reads a trace of another profiler and shows it.
  void profile(const std::filesystem::path& file);
  /// Shows the page of traces, with the field for a path.
  void choose_profile();
  void show_profile();
  /// A lesson is on show, and neither Home nor a file of the user's.
  bool shows_lesson() const { return !home && !inspects && !profiles; }
  /// Shows the page of CUDA files, with the field for a path.
  void choose_inspected();
  void show_inspection();
  /// Opens a lesson with its text, at the first stop that was not read; before the first of all come questions of earlier
  /// lessons, where questions are on.
  void begin_lesson(std::size_t index);
  void open_lesson(std::size_t index);
  /// False: there is nothing to be asked.
  bool start_recall(std::size_t target);
  void visit();
  void put_back();
  /// To the next question, or the lesson that they come before.
  void go_on_recalling();
  void follow_recall();
  /// "1 of 2 before Tiling and roofline: from Memory coalescing, with other settings"; empty: none is asked.
  std::string recall_words() const;
  /// Keeps what was read and answered since the last call.
  void follow_progress();
  void has_done(const Progress& news);
  LayoutMode layout_mode() const;
  /// What lies over the window and takes the keys: "palette", "keys"; empty: nothing does.
  std::string layer() const;
  /// A table under Data is what one looks at.
  bool shows_table() const;
  /// A question on show has its answer, and the next thing is to go on.
  bool answered() const;
  /// → or a clicker: the next question or step; at the end what is asked of the measurements; from an answer there on to
  /// what was measured.
  void go_on();
  /// A clicker: on a presenter's path to the stop before or after, where no question is open; else as ← and →.
  void click(bool on);
  /// For a class, while the text is not on show: the stop's title and first sentence stand below the picture.
  bool shows_stop() const;
  /// What key A–D says to the question that is open. False: none is.
  bool answer_by_key(int choice, bool shift);
  /// Once the question of a stop has been dealt with, the scene stands where the stop does.
  void follow_asking();
  /// A question brings its tab to the front, and leaves it when it has been dealt with.
  void follow_question();
  void set_text_scale(float text_scale);
  /// Shows a sentence for a few seconds.
  void say(std::string sentence);
  /// `trusted`: its kernel, if it has one, runs as the user's own does.
  void show(const Capsule& capsule, bool trusted = false);

  // ---- the kernel's editor ----
  /// The step that is shown says which source it is of; without a picture there is but the one that is edited.
  bool has_source();
  /// Of the lesson on show.
  KernelDesk& desk() { return desks[session.chosen()]; }
  /// A source of the lesson on show with what the user has made of it. Throws Error (unavailable) if it is not built in.
  KernelDesk::Sheet& sheet(const std::string& path);
  /// The one that the editor has: the user's own of `desk().path`, or the capsule's.
  KernelDesk::Sheet& sheet_in_editor();
  /// The sheet whose editor is on screen; nullptr: none is.
  KernelDesk::Sheet* sheet_on_show();
  /// The editor that has the keyboard; nullptr: none has.
  ui::CodeEditor* editor_with_keys();
  void edit_kernel();
  /// Shows a source of the lesson under Kernel, at a line of it, or has it in the editor where that is open.
  void open_source(const std::string& path, int line = 0);
  void back_to_step();
  /// The source on show under Kernel. Throws Error where the scene has none.
  std::string source_on_show();
  /// Brings it to the front as well, with the keyboard in it.
  void show_editor();
  /// Runs what is in the editor.
  void run_kernel();
  /// To the trial settings at which the kernel on show is wrong, one after the other, and then back to where one came from.
  void go_to_trial();
  void leave_trial();
  /// Turns all knobs, and stays at the step.
  void turn_to(const lab::Settings& settings);
  /// Closes the editor, and runs the lesson with its own kernel.
  void leave_kernel();
  /// Another text in the editor; what was there before can be undone, and is kept beside the draft.
  void start_kernel_over(std::string_view text);
  void open_own_editor();
  // ---- exercises ----
  /// The one that the text in the editor names; nullptr: none.
  const lab::Exercise* exercise_in_editor();
  /// Has it in the editor, as the user left it or as it begins, with the lesson at its first case. What was in the editor
  /// can be undone, and is kept beside the draft.
  void open_exercise(const lab::Exercise& exercise);
  void check_exercise();
  /// Takes in what came of a check. True while one is under way, or if it has ended.
  bool follow_exercise();
  // ---- what a capsule brought ----
  /// Puts the capsule's kernel into the editor, if it has one; the one before goes.
  void take_kernel(const Capsule& capsule, bool trusted);
  /// Back to it, and runs it.
  void show_guest();
  void trust_guest();
  /// From it to the user's own draft of that source, and runs that.
  void show_own_draft();

  // ---- assembly beside the source ----
  /// The Kernel tab is in front, with assembly in it.
  bool shows_assembly() const;
  /// What is to be on show there; nothing: there is no source yet, or no assembly is to be.
  std::optional<workbench::AssemblyRequest> assembly_wanted();
  /// The source is somebody else's: the GPU's compiler, which has no sandbox, does not get it.
  bool assembly_needs_trust();
  /// The compute capability of the GPU that the lesson runs on; 0: it runs on none.
  int lab_capability() const;
  /// Brings the Kernel tab to the front with this beside the source, or with the source alone, and compiles what is
  /// not there yet.
  void show_assembly(std::optional<workbench::AssemblyForm> form);
  /// Source alone, PTX, SASS, round and round; from elsewhere the Kernel tab as it is.
  void turn_assembly(bool back);
  /// Compiles the text as it stands now.
  void ask_assembly_again();
  /// Asks for what is on show and was not asked yet. True if it did.
  bool follow_assembly();

  /// Writes the drafts that are due and runs what the user's own editor has saved. True if something changed.
  bool follow_drafts();
  /// When `follow_drafts` has something to do.
  std::optional<double> drafts_due_s() const;
};

struct Shell::State : ShellState {
  using ShellState::ShellState;
};

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
