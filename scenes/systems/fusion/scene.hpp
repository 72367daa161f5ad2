#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/systems/fusion/lesson.hpp"
#include "scenes/picture/role.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// Kernel fusion: first a chain of three steps on a row, unfused beside fused, with the bytes of both on one scale;
/// then the ledger of a decoder block, kernel by kernel, whose seams are clicked.
class FusionScene final : public SceneOf<fusion::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(fusion)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  Cursor known(const lab::Table& table, int row, int column) const override;
  int table_row(std::string_view table_id, const View& view) const override;
  std::optional<lab::Settings> dropped(const View& view, const picture::Key& item,
                                       const picture::Key& onto) const override;

  /// What happens at `cursor`, in one plain sentence.
  std::string sentence(Cursor cursor) const;

 private:
  // Where the cursor is.
  bool in_chain(Cursor cursor) const { return cursor.tile <= fusion::kChain; }
  int step(Cursor cursor) const { return cursor.tile - 1; }  ///< of the chain
  fusion::Phase phase(Cursor cursor) const { return static_cast<fusion::Phase>(cursor.phase); }
  int kernel(Cursor cursor) const { return cursor.tile - fusion::kChain - 1; }
  /// Whether a move of the chain has happened by now, and whether it is happening.
  bool moved(const fusion::Move& move, Cursor cursor) const;
  bool moves_now(const fusion::Move& move, Cursor cursor) const;
  /// Bytes per number that a lane has moved by now.
  double moved_by(const fusion::Lane& lane, Cursor cursor) const;
  int first_op(int kernel) const;
  /// The operations of a kernel, "residual + RMSNorm".
  std::string operations(int kernel) const;
  /// Bytes per number of a kernel: read, written, saved.
  struct Sums {
    double read = 0, written = 0, saved = 0;
  };
  Sums sums_of(int kernel) const;

  // The parts of the picture.
  picture::Cells memory(const fusion::Lane& lane, bool is_fused, Cursor cursor) const;
  picture::Cells registers(const fusion::Lane& lane, bool is_fused, Cursor cursor) const;
  picture::Box lane_box(bool is_fused, Cursor cursor) const;
  picture::Box traffic(Cursor cursor) const;
  picture::Box operations_box(Cursor cursor) const;
  picture::Box seams_box() const;
  picture::Box bands(Cursor cursor) const;
  picture::Box score(Cursor cursor) const;

  // Questions and events, in questions.cpp.
  std::optional<Question> chain_question(int next) const;
  std::optional<Question> kernel_question(int kernel) const;
  void find_events();
};

}  // namespace tilestep::scenes
