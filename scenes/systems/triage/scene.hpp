#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/systems/triage/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// Triage: what each probe's instrument shows, beside the checklist with the probes that are left and the diagnosis; then what
/// the suspect can give back at most, and what the fix brought.
class TriageScene final : public SceneOf<triage::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(triage)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  Cursor known(const lab::Table& table, int row, int column) const override;
  int table_row(std::string_view table_id, const View& view) const override;
  /// A click on an instrument of the checklist spends a probe on it.
  std::optional<lab::Settings> dropped(const View& view, const picture::Key& item,
                                       const picture::Key& onto) const override;

  /// What is seen at `cursor`, in one plain sentence.
  std::string sentence(Cursor cursor) const;

 private:
  /// The probe on show; −1: none.
  int look(Cursor cursor) const {
    return cursor.tile >= 1 && cursor.tile < trace_.diagnosis_step() ? cursor.tile - 1 : -1;
  }
  const triage::Probe& probe(int look) const {
    return trace_.looks[static_cast<std::size_t>(look)];
  }
  std::vector<const triage::Row*> rows_of(int look) const;
  std::vector<const triage::Row*> barred_rows(int look) const;
  /// Probes of an instrument that are spent by now, in order.
  std::vector<triage::Probe> spent(triage::Instrument instrument, Cursor cursor) const;
  bool timed() const { return !trace_.times_from.empty(); }
  std::string headline_of(int look) const;

  // The parts of the picture.
  picture::Box complaint() const;
  picture::Box instrument(int look) const;
  picture::Box timeline(int look) const;
  picture::Box bars(int look) const;
  picture::Box ledger(int look) const;
  picture::Box queue(int look) const;
  picture::Box checklist(Cursor cursor) const;
  picture::Box diagnosis(Cursor cursor) const;
  picture::Box bound(Cursor cursor) const;
  picture::Box outcome() const;

  // Questions and events, in questions.cpp.
  std::optional<Question> look_question(int look) const;
  void find_events();
};

/// What a line of an instrument says, in full.
std::string triage_row_text(triage::Instrument instrument, const triage::Row& row, bool timed);

}  // namespace tilestep::scenes
