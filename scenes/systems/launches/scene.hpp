#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/systems/launches/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// Launches: the host's calls and the device's work beat by beat, one decode step at a time, beside the step's kernels
/// and the rows that are computed; then a product's tiles, its waves, and the kernel that a dispatcher chooses.
class LaunchesScene final : public SceneOf<launches::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(launches)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  Cursor known(const lab::Table& table, int row, int column) const override;
  int table_row(std::string_view table_id, const View& view) const override;

  /// What happens at `cursor`, in one plain sentence.
  std::string sentence(Cursor cursor) const;

 private:
  // Where the cursor is. Before the first beat it is on the first step.
  bool in_steps(Cursor cursor) const { return cursor.tile <= trace_.beats; }
  int step(Cursor cursor) const { return trace_.step_of(std::max(cursor.tile, 1)); }
  const launches::StepTrace& step_at(Cursor cursor) const {
    return trace_.steps[static_cast<std::size_t>(step(cursor))];
  }
  /// Whether a beat is of the step on show.
  bool in_step(int beat, Cursor cursor) const {
    return beat >= step_at(cursor).first_beat && beat <= step_at(cursor).last_beat;
  }
  const launches::CallTrace* call_at(int beat) const;
  /// What the device does at a beat, the first stream's first.
  std::vector<const launches::WorkTrace*> works_at(int beat) const;
  int most_beats() const;
  /// How far a launch of the step on show has come.
  enum class Reached { nowhere, in_graph, submitted, working, done };
  struct Launched {
    Reached reached = Reached::nowhere;
    bool wrong = false;
  };
  Launched launched(int place, Cursor cursor) const;
  int ahead(Cursor cursor) const;  ///< submitted and not done

  // The parts of the picture.
  picture::Box lanes(Cursor cursor) const;
  picture::Box kernels(Cursor cursor) const;
  picture::Box rows(Cursor cursor) const;
  picture::Box steps_ledger(Cursor cursor) const;
  picture::Box tiles(Cursor cursor) const;
  picture::Box staircase(Cursor cursor) const;
  picture::Box choices() const;
  picture::Box slowdowns() const;

  // Questions and events, in questions.cpp.
  std::optional<Question> step_question(int step) const;
  std::optional<Question> work_question(int beat) const;
  std::optional<Question> shape_question(int next) const;
  void find_events();
};

}  // namespace tilestep::scenes
