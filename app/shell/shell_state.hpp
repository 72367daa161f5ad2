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
#include "app/shell/kernel_desk.hpp"
#include "app/shell/layout.hpp"
#include "app/shell/palette.hpp"
#include "app/shell/profiling.hpp"
#include "app/shell/reading.hpp"
#include "app/shell/session.hpp"
#include "app/shell/shell.hpp"
#include "kernels/base/workbench/exercise.hpp"
#include "kernels/base/workbench/sources.hpp"
#include "scenes/shared/guide.hpp"
#include "scenes/ui/context.hpp"
#include "scenes/ui/line_links.hpp"

/// What the panes of the window share (panes.hpp).
namespace tilestep::app {

/// A file of the user's, or the choice of one, in place of a lesson.
struct FilePage {
  bool on_show = false;
  bool types = false;  ///< the field for its path takes the keys in the next frame
  std::array<char, 1024> path{};
};

struct GlossaryPane {
  std::string term;  ///< the one on show, by its id
  std::array<char, 96> query{};
  bool scrolls = false;  ///< brings the term into sight in the list
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
  FilePage profile_page, inspect_page;
  int inspect_tab = 0;
  std::string inspect_refused;  ///< why no file could be written
  std::optional<Recall> recall;
  std::int64_t recall_seed = 0;
  ProgressFile progress_file;
  Progress progress;  ///< of this and other windows, as far as known
  GlossaryPane glossary;
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
  bool shows_lesson() const { return !home && !inspect_page.on_show && !profile_page.on_show; }
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

}  // namespace tilestep::app
