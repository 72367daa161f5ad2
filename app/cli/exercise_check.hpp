#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/workbench/judge.hpp"

namespace tilestep::app {

/// How students' files are checked.
struct ExercisePlan {
  std::string program;  ///< path of tilestep itself
  std::string backend = "emulated";
  bool sandboxed = false;  ///< in bubblewrap; else with all that the user may do
  lab::JudgeUntil until = lab::JudgeUntil::failure;
};

/// The result of a file.
struct CheckedFile {
  std::string file;
  std::string exercise;  ///< its id; empty: the file names none
  lab::ExerciseVerdict verdict;
  double seconds = 0;     ///< to compile, run and check it
  std::string text = {};  ///< the submitted text; empty: it cannot be read
};

/// Judges `kernel`, a student's whole file, which runs in a worker process of its own; under emulation its checks are made
/// in a second one as well, of its outputs alone. A run that takes longer than 10 s is ended;
/// compiling has more. Throws Error (unavailable) where it cannot be run at all, Cancelled on Ctrl-C.
lab::ExerciseVerdict check_kernel(const lab::Exercise& exercise, const std::string& kernel,
                                  const ExercisePlan& plan);

/// Judges `text`, a student's whole program, always under emulation; each run of it is a process of its own. Throws as
/// check_kernel does.
lab::ExerciseVerdict check_program(const lab::Exercise& exercise, const std::string& text,
                                   const ExercisePlan& plan);

/// The sources (.cu) of a folder and of those below it, by path; no links, and no folders that cannot be read. Throws Error
/// if there are none.
std::vector<std::filesystem::path> kernels_in(const std::filesystem::path& folder);

/// Checks one file against `exercise`; empty: the one that its first line names. A file that names none, or that
/// cannot be read, fails with a sentence that says so. Throws as check_kernel does.
CheckedFile check_file(const std::filesystem::path& file, const std::string& exercise,
                       const ExercisePlan& plan);

/// Checks the files of a class, several at a time, and calls `take` with each in their order. Whatever one of them does is
/// its own verdict and no other's; those of equal text are checked once. Throws Cancelled on Ctrl-C.
void check_class(const std::vector<std::filesystem::path>& files, const std::string& exercise,
                 const ExercisePlan& plan, const std::function<void(const CheckedFile&)>& take);

nlohmann::json to_json(const CheckedFile& checked);

/// Null for an id that a file has made up.
const lab::Exercise* known_exercise(const std::string& id);

/// Students × exercises: a row for each student and each exercise that somebody has handed in, with nothing in `points`
/// where the student has not. A student is a folder in `folder`, or a file there; of several files the best one counts.
/// `same_text` names the students who have handed in the same, white space aside, unless it is the exercise as it was given.
lab::Table class_table(const std::filesystem::path& folder, const std::vector<CheckedFile>& checked,
                       bool timed);

}  // namespace tilestep::app
