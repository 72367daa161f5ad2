#pragma once

#include <array>
#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/workbench/program.hpp"
#include "scenes/inspect/paths.hpp"
#include "scenes/inspect/request.hpp"
#include "scenes/inspect/timeline.hpp"

namespace tilestep::app {

/// The tabs of the page of a CUDA file, by their labels in lower case; the picture is one where it has no room of
/// its own.
inline constexpr std::array<std::string_view, 6> kInspectTabs = {"found",   "accesses", "launches",
                                                                 "program", "printed",  "picture"};

/// The verdict on a file that is an exercise of the chapter *First steps*.
struct StepVerdict {
  bool ok = false;
  std::string sentence, hint;
};

/// A CUDA file and what was found in it.
struct Inspected {
  std::filesystem::path file;
  std::string source;
  lab::Report report;
};

/// The CUDA file that the window inspects, in another process (`tilestep inspect`): once it is opened, and each time that it
/// is saved.
class Inspection {
 public:
  /// `program`: path of tilestep itself.
  explicit Inspection(std::string program) : program_(std::move(program)) {}
  ~Inspection() { stop(); }
  Inspection(const Inspection&) = delete;
  Inspection& operator=(const Inspection&) = delete;

  /// `words`: what `tilestep inspect` is given beside it.
  void open(std::filesystem::path file, std::vector<std::string> words = {});
  void close();
  /// One that has run already.
  void show(Inspected inspected);
  /// The program runs outside of the sandbox from now on.
  void trust();
  void run();
  /// Looks for the end of the run, and whether the file was saved. Returns whether something changed.
  bool update(double now_s);
  /// When to look again; nothing: there is no file.
  std::optional<double> due_s(double now_s) const;

  const std::filesystem::path& file() const { return now_.file; }
  const std::string& source() const { return now_.source; }
  bool running() const { return ran_.valid(); }
  /// Nothing: it runs for the first time, or failed.
  const lab::Report* report() const { return has_report_ ? &now_.report : nullptr; }
  const std::string& failure() const { return failure_; }
  /// The exercise that the file's first comment names; empty: none of *First steps*.
  const std::string& exercise() const { return exercise_; }
  /// Null: it is no exercise, or was not judged.
  const StepVerdict* verdict() const { return verdict_ ? &*verdict_ : nullptr; }
  bool needs_trust() const;

  /// The costliest requests of each line, by line.
  const std::vector<scenes::InspectedRequest>& requests() const { return requests_; }
  /// The most divergent warp of each kernel.
  const std::vector<scenes::InspectedPaths>& paths() const { return paths_; }
  const scenes::InspectedTimeline& timeline() const { return timeline_; }
  /// The pictures: requests, then warps, last the program's calls.
  int pictures() const {
    return static_cast<int>(requests_.size() + paths_.size()) + (timeline_.events.empty() ? 0 : 1);
  }
  /// The picture on show; −1: none.
  int chosen() const { return chosen_; }
  const scenes::InspectedRequest* chosen_request() const;
  const scenes::InspectedPaths* chosen_paths() const;
  void choose(int picture);
  /// A picture of this line, if there is one; the line is marked in the source in any case.
  void choose_line(int line);
  int line() const { return line_; }

 private:
  void take(lab::Report report);
  void stop();

  std::string program_;
  std::vector<std::string> words_;
  Inspected now_;
  bool has_report_ = false, trusted_ = false;
  std::string failure_;
  std::shared_ptr<std::atomic<bool>> stops_;
  struct Answers {
    workbench::Ran inspected, checked;  ///< the second only of an exercise
  };
  std::future<Answers> ran_;
  std::string exercise_;
  std::optional<StepVerdict> verdict_;
  std::filesystem::file_time_type saved_{};
  double looked_s_ = -1;
  std::vector<scenes::InspectedRequest> requests_;
  std::vector<scenes::InspectedPaths> paths_;
  scenes::InspectedTimeline timeline_;
  int chosen_ = -1, line_ = 0;
};

}  // namespace tilestep::app
