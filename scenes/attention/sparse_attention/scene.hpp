#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/attention/sparse_attention/lesson.hpp"
#include "scenes/picture/role.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// Sparse attention. Of a mask: all pairs of queries and keys, tile by tile, with what is seen, what is computed in vain
/// and what is skipped. Of dsa: the indexer's scores, the best so far, the rows that are read, and their weights. Then
/// what it costs.
class SparseAttentionScene final : public SceneOf<sparse_attention::Trace> {
 public:
  static constexpr std::uint8_t kBestTone = 1;  ///< of what is chosen

  TILESTEP_PICTURE_SCENE(sparse_attention)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  Cursor known(const lab::Table& table, int row, int column) const override;
  int table_row(std::string_view table_id, const View& view) const override;

  /// What happens at `view`, in one plain sentence.
  std::string sentence(const View& view) const;
  /// Pairs up to the cursor that are seen, computed, and seen but not computed.
  struct Counts {
    int seen = 0, computed = 0, missed = 0;
  };
  Counts counted(Cursor cursor) const;
  /// The state of a pair at the cursor.
  picture::State state_of(Cursor cursor, int query, int key) const;
  /// Tokens that are kept at the cursor; empty before the first choice.
  std::vector<int> kept(Cursor cursor) const;
  /// The score that a token must be above: of the smallest kept one, once there are k.
  std::optional<double> floor(Cursor cursor) const;

 private:
  bool costs(Cursor cursor) const { return cursor.tile == trace_.costs(); }
  bool is_after(Cursor cursor) const { return cursor.tile == trace_.after(); }
  /// Rows of tiles, or tiles of tokens, whose first or last phase has been.
  int begun(Cursor cursor) const { return std::min(cursor.tile, trace_.tiles()); }
  int ended(Cursor cursor) const {
    return std::clamp(cursor.phase == 1 ? cursor.tile : cursor.tile - 1, 0, trace_.tiles());
  }
  double all_pairs() const { return static_cast<double>(trace_.length) * trace_.length; }
  std::string mask_sentence(Cursor cursor) const;
  std::string index_sentence(Cursor cursor) const;
  std::vector<Readout> cost_readouts() const;

  // The parts of the picture.
  picture::Box pairs(Cursor cursor) const;
  picture::Box tiles(Cursor cursor) const;
  picture::Box shares(Cursor cursor) const;
  picture::Box sizes() const;
  picture::Box methods() const;
  picture::Box index(Cursor cursor) const;
  picture::Box best(Cursor cursor) const;
  picture::Box cache(Cursor cursor) const;
  picture::Box weights(Cursor cursor) const;
  picture::Box ledger(bool bytes) const;

  // Questions and events, in questions.cpp.
  std::optional<Question> mask_question(int next) const;
  std::optional<Question> index_question(int next) const;
  void find_events();
};

}  // namespace tilestep::scenes
