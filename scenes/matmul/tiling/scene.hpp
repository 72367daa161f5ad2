#pragma once

#include <cstdint>
#include <string>

#include "kernels/matmul/tiling/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// What is on screen at one cursor, read off the trace alone.
struct TilingMoment {
  int k_tile = -1;  ///< the k-tile worked on; −1 before the first
  tiling::Phase phase = tiling::Phase::barrier_after_multiply;
  bool loaded = false;           ///< this k-tile is in shared memory
  bool multiplied = false;       ///< and its products are in the sums
  std::int64_t loads = 0;        ///< global loads of the block so far
  std::int64_t naive_loads = 0;  ///< the same block in `naive`, which loads as it multiplies
};

/// Tiling: A, B and C as grids with the chosen block lit; beside them the two tiles in shared
/// memory around the block, with the barriers as walls between those that load and those that read;
/// below, the block's global loads beside those of `naive`, and the sum of one thread.
class TilingScene final : public SceneOf<tiling::Trace> {
 public:
  StepAxis loaded(const tiling::Trace& before) override;
  void draw_picture(Cursor cursor) override;
  void draw_readouts(Cursor cursor) override;
  measured::Spec measured_spec() const override;
  SourceMark source(Cursor cursor) const override;
  std::optional<Question> question(Cursor cursor) const override;

  picture::Extent extent() const;
  picture::Picture picture(const picture::Extent& extent, const View& view) const;
  std::string explain(const View& view, const picture::Key& key) const;
  std::vector<Readout> readouts(const View& view) const;

  /// The numbers shown at `cursor`; public so that a test holds the picture to the trace.
  TilingMoment moment(Cursor cursor) const;
  /// What happens at `cursor` in one plain sentence.
  std::string sentence(Cursor cursor) const;
  /// The partial sum of an element of C's block (row·tile + column) as the kernel recorded it.
  float sum(int element, Cursor cursor) const;
  /// The element of C's block whose thread is followed.
  int picked() const { return picked_; }
  /// The linear thread that computes `element`.
  int thread_of(int element) const;
  /// The same of a view: the thread that the user follows, in C's block.
  int picked(const View& view) const;
  std::vector<picture::Run> formula(const View& view, int terms) const;
  /// The picked thread's sum with its numbers; the first `terms` products are written out.
  std::string formula(Cursor cursor, int terms) const;

 private:
  struct Grid;
  struct Layout;

  // The picture's parts, in picture.cpp.
  int unit() const;
  picture::Box matrices(const TilingMoment& now) const;
  picture::Box naive(const TilingMoment& now) const;
  picture::Box tile(const TilingMoment& now, const View& view, bool is_a) const;
  picture::Box block(const TilingMoment& now, const View& view) const;
  picture::Box corner(const TilingMoment& now) const;
  picture::Box tiles(const TilingMoment& now, const View& view) const;
  picture::Box walled(const TilingMoment& now, const View& view) const;
  picture::Box bars(const TilingMoment& now) const;
  picture::Box formula_box(const View& view) const;
  std::string explain_sum(int element, const View& view) const;
  std::string explain_element(const TilingMoment& now, bool is_a, int element) const;

  // Questions, in tiling_questions.cpp.
  Question load_question(int k_tile) const;
  Question reuse_question() const;
  Question race_question() const;

  // The picture: where everything stands, and the matrices, in tiling_picture.cpp.
  static float bar_height(const Layout& layout);
  Layout layout() const;
  void place_tiles(Layout& to, float top, float bottom) const;
  void place_matrices(Layout& to, float right, float top, float bottom) const;
  void draw_matrices(const Layout& layout, Cursor cursor) const;
  void draw_bands(const Layout& layout, const TilingMoment& now) const;
  void draw_bars(const Layout& layout, const TilingMoment& now) const;
  void draw_formula(const Layout& layout, Cursor cursor) const;

  // The same block in `naive`, in tiling_naive.cpp; the tiles and C's block, in tiling_tiles.cpp.
  void place_naive(Layout& to, float top) const;
  std::string naive_note(const TilingMoment& now) const;
  void draw_naive(const Layout& layout, const TilingMoment& now) const;
  void draw_tiles(const Layout& layout, const TilingMoment& now) const;
  void draw_tile(const Grid& grid, bool is_a, const TilingMoment& now) const;
  static void hatch_outside(const Grid& grid, int rows, int columns);
  void draw_block(const Layout& layout, Cursor cursor);
  void draw_picked(const Layout& layout, const TilingMoment& now) const;
  void draw_barriers(const Layout& layout, const TilingMoment& now) const;
  void draw_phases(const Layout& layout, const TilingMoment& now) const;
  std::string phase_note(const TilingMoment& now) const;
  void draw_tile_labels(const Layout& layout, const TilingMoment& now) const;
  void draw_tooltip(const Layout& layout, Cursor cursor) const;

  bool shared() const { return trace_.block.variant == tiling::Variant::shared_tile; }
  int k_tiles() const { return trace_.k_tiles(); }
  const tiling::KTile& k_tile(int number) const {
    return trace_.block.k_tiles[static_cast<std::size_t>(number)];
  }
  /// How many of the k-tile's columns of A lie inside.
  int depth(int number) const {
    return trace_.k - number * trace_.tile < trace_.tile ? trace_.k - number * trace_.tile
                                                         : trace_.tile;
  }
  bool removed(tiling::Phase barrier) const;
  bool finished(const TilingMoment& now) const {
    return now.multiplied && now.k_tile == k_tiles() - 1;
  }
  /// The element's numbers in C.
  std::string name_in_c(int element) const;

  tiling::Params params_;
  int picked_ = 0;
};

}  // namespace tilestep::scenes
