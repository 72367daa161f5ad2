#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/shell/shell.hpp"
#include "kernels/base/lab/lesson.hpp"

/// The arguments that several commands share. Every function throws Error naming the allowed
/// values.
namespace tilestep::app {

/// A lesson and its knobs, as written: `LESSON --set k=v --set k=v`, in any order.
struct LessonArguments {
  std::string lesson;
  std::vector<std::string> assignments;

  /// The file of a capsule that is named in place of a lesson; empty: none is.
  std::string capsule_file();
  /// The lesson. Where none is named: kOpeningLesson, or an Error if the command needs one.
  const lab::Lesson& chosen(bool needed = true);
  lab::Settings settings();

 private:
  /// `--set a=1 b=2 LESSON` gives all three to --set: what is no assignment is the lesson.
  void sort_out();
};
void add_lesson(CLI::App& command, LessonArguments& lesson);

/// Adds `--lab`, which says where kernels run, to `command`.
void add_lab(CLI::App& command, std::string& lab);
void add_labs(CLI::App& command, std::vector<std::string>& labs, bool several);
/// Those that are elsewhere.
std::vector<LabAddress> parse_labs(const std::vector<std::string>& labs);

/// Adds `--kernel`, a file with a source that was edited.
void add_kernel(CLI::App& command, std::string& kernel);
/// Reads it. Throws Error for a file that cannot be read or is no source of the lesson.
lab::KernelEdit read_kernel_edit(std::string_view lesson, const std::string& file);

/// Adds `--force`, for write_output.
void add_force(CLI::App& command, bool& force);

/// How a picture or window looks, as written.
struct LookArguments {
  LessonArguments lesson;
  std::string size = "1440x900";
  std::string step = "0";
  bool step_given = false;
  std::string phase;
  bool stop_given = false;
  std::string stop;  ///< of the guided path, from 1
  std::string theme = "dark";
  std::string tab = "data";
  std::string view;      ///< of the Measured tab
  std::string kernel;    ///< a file with an edited source
  std::string assembly;  ///< beside the source: ptx or sass; empty: nothing
  std::string text_scale = "1";
  std::string backend = "auto";
  std::vector<std::string> labs;
  bool home = false, presenter = false, reader = false, ask = false, edit = false;
  bool tab_given = false;
  std::string questions = "on";  ///< of `open`
  bool trust = false;            ///< of `open`: the capsule's kernel is as good as the user's own
  std::vector<std::string> compared;  ///< assignments of another run beside it

  ShellOptions shell(bool lesson_needed);

 private:
  ShellOptions of_capsule(const std::string& file);
  void go_to_stop(ShellOptions& options);
  void set_look(ShellOptions& options) const;
};
void add_look(CLI::App& command, LookArguments& look);

struct Size {
  int width = 0, height = 0;
};
/// "1440x900"; 640x400–7680x4320.
Size parse_size(std::string_view text);
int parse_step(std::string_view text);
/// A stop of a guided path, from 1.
int parse_stop(std::string_view text);
float parse_text_scale(std::string_view text);
ui::ThemeKind parse_theme(std::string_view text);
struct TabChoice {
  Tab tab = Tab::data;
  bool reader = false;  ///< the lesson's text, which is no tab
};
TabChoice parse_tab(std::string_view text);
/// The name of a view of that lesson's Measured tab, as its button reads, whatever its case and hyphens.
std::string parse_view(std::string_view lesson, std::string_view text);
/// Checks that `text` is auto, cuda, emulated or recorded, and returns it.
std::string parse_backend(std::string_view text);

/// The form in which a command prints its result: at most one may be chosen.
struct FormatArguments {
  bool json = false, csv = false, markdown = false;
  bool any() const { return json || csv || markdown; }
  void check() const;
};

/// Lesson ids of `names`, or of all lessons if it is empty.
std::vector<const lab::Lesson*> parse_lessons(const std::vector<std::string>& names);

std::string joined(std::span<const std::string> words, std::string_view separator = ", ");

}  // namespace tilestep::app
