#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "kernels/matmul/tiling/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

inline int total(const std::vector<int>& values) {
  return std::accumulate(values.begin(), values.end(), 0);
}
inline int most(const std::vector<int>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

/// "3", "3–7"
inline std::string range(int first, int count) {
  return std::to_string(first) + (count == 1 ? "" : "–" + std::to_string(first + count - 1));
}

/// What is on screen at one cursor, read off the trace alone.
struct TilingMoment {
  int k_tile = -1;  ///< the k-tile worked on; −1 before the first
  tiling::Phase phase = tiling::Phase::barrier_after_multiply;
  bool multiplied = false;       ///< its products are in the accumulators
  std::int64_t loads = 0;        ///< global loads of the block so far
  std::int64_t naive_loads = 0;  ///< the same block in `naive`, which loads as it multiplies
};

/// Tiling: A, B and C as grids with the chosen block lit; beside them the two tiles in shared
/// memory around the block, with the barriers as walls between loads and reads, and the sum of one
/// thread; below the matrices the block's global loads beside those of `naive`. For a rung above
/// shared-tile: which thread has which elements of C in a block (rungs.cpp).
class TilingScene final : public SceneOf<tiling::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(tiling)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  std::optional<picture::Subject> subject_of_column(std::string_view table_id,
                                                    std::string_view column_id) const override;
  /// In elements of k.
  double progress(Cursor cursor) const override;
  /// The numbers shown at `cursor`; public so that a test holds the picture to the trace.
  TilingMoment moment(Cursor cursor) const;
  /// What happens at `cursor` in one plain sentence.
  std::string sentence(Cursor cursor) const;
  /// The partial sum of an element of C's block (row·tile + column) as the kernel recorded it.
  float sum(int element, Cursor cursor) const;
  /// The element of C's block whose thread is followed.
  int picked(const View& view) const;
  /// The linear thread that computes `element`, and vice versa.
  int thread_of(int element) const;

 private:
  // Questions, in questions.cpp.
  Question load_question(int k_tile) const;
  std::optional<Question> loader_question(int k_tile, int thread) const;
  Question end_question() const;
  Question launch_question() const;
  Question race_question() const;
  void find_events();

  // The picture's parts.
  std::string brief(const TilingMoment& now) const;
  int unit() const;
  int lanes() const;
  picture::Box matrices(const TilingMoment& now) const;
  picture::Box naive(const TilingMoment& now) const;
  picture::Box bars(const TilingMoment& now) const;
  std::vector<picture::Run> formula(const View& view, int terms) const;
  bool contradicted(Cursor cursor, int element) const;
  picture::Box the_sum(const View& view) const;
  picture::Box tile(const TilingMoment& now, const View& view, bool is_a) const;
  picture::Box block(const TilingMoment& now, const View& view) const;
  picture::Box corner(const TilingMoment& now) const;
  picture::Box tiles(const TilingMoment& now, const View& view) const;
  std::string explain_element(const TilingMoment& now, bool is_a, int element) const;

  // The picture of a rung above shared-tile, in rungs.cpp.
  bool is_rung() const { return !trace_.rungs.empty(); }
  void measure_shares();
  int followed(const View& view) const;
  bool shows(Cursor cursor, tiling::Share share) const;
  std::string rung_sentence(Cursor cursor) const;
  std::vector<picture::Axis> rung_axes() const;
  std::vector<picture::Symbol> rung_symbols(const View& view) const;
  picture::Picture rung_picture(const picture::Extent& extent, const View& view) const;
  picture::Box owners(const View& view) const;
  picture::Box fragment(const View& view) const;
  picture::Box products(const View& view) const;
  picture::Box reads(const View& view) const;
  std::string rung_explain(const View& view, const picture::Key& key) const;
  Question reads_question() const;

  bool shared() const { return trace_.block.variant == tiling::Variant::shared_tile; }
  int k_tiles() const { return trace_.k_tiles(); }
  const tiling::KTile& k_tile(int number) const { return trace_.block.k_tiles[number]; }
  /// How many of the k-tile's columns of A are inside the matrix.
  int depth(int number) const { return std::min(trace_.k - number * trace_.tile, trace_.tile); }
  bool within(int element) const {
    return element / trace_.tile < trace_.rows() && element % trace_.tile < trace_.columns();
  }
  bool removed(tiling::Phase barrier) const;
  bool finished(const TilingMoment& now) const {
    return now.multiplied && now.k_tile == k_tiles() - 1;
  }
  /// The last k-tile is done, and a thread order gave a wrong C.
  bool judged(const TilingMoment& now) const { return finished(now) && trace_.races.order >= 0; }
  /// The element's indices in C.
  std::string name_in_c(int element) const;

  tiling::Params params_;
  int warp_rows_ = 1, warp_columns_ = 1;  ///< of the largest rectangles of C that are one warp's
  int own_rows_ = 1, own_columns_ = 1;    ///< in which a thread has elements
};

}  // namespace tilestep::scenes
