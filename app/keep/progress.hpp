#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace tilestep::app {

/// A learner's progress, by lesson. It only grows, so that the progress of two windows can be merged.
struct Progress {
  struct Lesson {
    std::set<std::string> stops = {};      ///< of the path, by title
    std::set<std::string> right = {};      ///< kinds of questions that were once answered right
    std::set<std::string> asked = {};      ///< kinds of questions that were answered
    std::set<std::string> exercises = {};  ///< solved, "coalescing/pad-the-tile"
    std::set<std::string> cases = {};  ///< fixes that were tried: "case-1: use-bf16 = 35" points
    bool operator==(const Lesson&) const = default;
  };
  std::map<std::string, Lesson> lessons;

  void add(const Progress& more);
  bool operator==(const Progress&) const = default;
};

/// What a learner's cases come to. Each try after the first costs a case 15 points.
struct CasePoints {
  int cases = 0, tries = 0, points = 0;  ///< `points`: of 100 for each case
};
CasePoints points_of_cases(const std::set<std::string>& cases);

/// The JSON of the file: {"tilestep_progress": 1, "lessons": {"coalescing": {"stops": […], …}}}.
std::string progress_text(const Progress& progress);
/// Throws Error for what is no such text.
Progress progress_from(std::string_view text);

/// state_folder() / "progress.json"; nothing without such a folder.
std::optional<std::filesystem::path> progress_path();

/// Where progress is kept: one file for all windows of a user.
class ProgressFile {
 public:
  explicit ProgressFile(std::optional<std::filesystem::path> path) : path_(std::move(path)) {}

  /// Never throws: what is damaged is set aside, one of a newer tilestep is left as it is; `remark` says so.
  Progress load();
  /// Adds to what is in the file by now, under a lock, and writes it whole or not at all. Returns all of it. Never throws.
  Progress add(const Progress& more);
  /// Removes the file. Throws Error (unavailable).
  void reset();
  std::string take_remark() { return std::exchange(remark_, {}); }

 private:
  std::optional<std::filesystem::path> path_;
  bool writable_ = true;
  std::string remark_;
};

}  // namespace tilestep::app
