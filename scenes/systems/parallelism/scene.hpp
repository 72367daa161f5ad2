#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/systems/parallelism/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// Many GPUs: what each rank holds of an all-reduce, chunk by chunk, with arrows for what is sent; then the memory of the
/// ranks and the collectives of a cut model; then a pipeline's slots; then a planned step of all cuts.
class ParallelismScene final : public SceneOf<parallelism::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(parallelism)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  Cursor known(const lab::Table& table, int row, int column) const override;
  int table_row(std::string_view table_id, const View& view) const override;

  /// What happens at `view`, in one plain sentence.
  std::string sentence(Cursor cursor) const;
  /// Bytes that a rank has sent by a cursor, and in all.
  double sent_by(int rank, Cursor cursor) const;
  double sent_in_all() const;

 private:
  bool in_beats(Cursor cursor) const { return cursor.tile <= trace_.beats(); }
  bool arrived(Cursor cursor) const {
    return cursor.phase == static_cast<int>(parallelism::Phase::arrive);
  }
  /// Beats whose sums are there, and those that have sent.
  int done(Cursor cursor) const;
  int sent(Cursor cursor) const;
  int marks_at(Cursor cursor, int rank, int chunk) const;
  double chunk_bytes(int chunk) const;
  double memory_of(parallelism::Kind kind, int rank) const;
  std::string beat_words(Cursor cursor) const;
  /// The part of the model that a rank holds: "1/4", "all".
  std::string part_words(parallelism::Kind kind) const;

  parallelism::CutPlan alone() const;

  // The parts of the picture.
  void add_arrows(Cursor cursor, std::vector<picture::Mark>& marks) const;
  picture::Box rank_box(Cursor cursor, int rank) const;
  picture::Box ranks(Cursor cursor) const;
  picture::Box bytes(Cursor cursor) const;
  picture::Box memory(Cursor cursor) const;
  picture::Box calls(Cursor cursor) const;
  picture::Box slots(Cursor cursor) const;
  picture::Box bubbles(Cursor cursor) const;
  picture::Box planned_memory() const;
  picture::Box planned_time(Cursor cursor) const;

  // Questions and events, in questions.cpp.
  std::optional<Question> beat_question(int next) const;
  std::optional<Question> cut_question() const;
  Question bubble_question() const;
  Question plan_question() const;
  void find_events();
};

}  // namespace tilestep::scenes
