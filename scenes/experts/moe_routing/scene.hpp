#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/experts/moe_routing/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// MoE routing: the tokens as a grid; the experts as columns that fill with them, tile by tile;
/// under the columns what the router and the counting kernels wrote for each expert; below, the
/// blocks that ran the tiles, over time.
class MoeRoutingScene final : public SceneOf<moe_routing::Trace> {
 public:
  StepAxis loaded(const moe_routing::Trace& before) override;
  void draw_picture(Cursor cursor) override;
  void draw_readouts(Cursor cursor) override;
  measured::Spec measured_spec() const override;
  int table_row(std::string_view table_id, Cursor cursor) const override;
  void hover_row(std::string_view table_id, int row) override;
  SourceMark source(Cursor cursor) const override;
  std::optional<Question> question(Cursor cursor) const override;
  /// The knob `custom`, after a token was dragged to another expert.
  std::optional<lab::Settings> take_request() override;

  picture::Extent extent() const;
  picture::Picture picture(const picture::Extent& extent, const View& view) const;
  std::string explain(const View& view, const picture::Key& key) const;
  std::vector<Readout> readouts(const View& view) const;
  std::optional<lab::Settings> dropped(const View& view, const picture::Key& item,
                                       const picture::Key& onto) const;
  int followed(const View& view) const;
  std::vector<std::string> formula_of(int token, Cursor cursor) const;

  /// What happens at `cursor` in one plain sentence.
  std::string sentence(Cursor cursor) const;
  /// What the step did with the followed token, with its numbers; the first `choices` of its
  /// choices are written out.
  std::string formula(Cursor cursor, int choices) const;
  /// The token that is followed: the one under the pointer, else the one clicked last.
  int followed() const { return lit_token_ >= 0 ? lit_token_ : picked_; }
  /// The text of the knob `custom` that also sends `token` to `expert` first.
  std::string moved(int token, int expert) const;
  /// The tile of `expert` numbered `number` as recorded; null if it was not kept in the trace.
  const moe_routing::TileTrace* tile(int expert, int number) const;

 private:
  struct Grid;
  struct Rect;
  struct Columns;
  struct Layout;
  struct Row;
  struct TimeAxis;
  struct Hit;
  using Assignment = moe_routing::Trace::Assignment;

  // The parts of the picture.
  picture::Items of_experts(picture::Name name) const;
  picture::Box tokens(Cursor cursor, int followed) const;
  picture::Box details(Cursor cursor, int followed) const;
  picture::Box columns(Cursor cursor, int followed) const;
  picture::Links ways(Cursor cursor, int followed) const;
  picture::Stacks piles(Cursor cursor, int followed) const;
  std::vector<picture::Box> rows(Cursor cursor, int followed) const;
  picture::Box steps_box(Cursor cursor, int followed) const;
  picture::Box blocks(const picture::Axis& lanes) const;
  std::string blocks_text() const;
  std::string explanation(Cursor cursor, int followed) const;
  /// Clock ticks in a unit of the picture's time.
  double clock() const { return trace_.clock_unit == "ns" ? 1000 : 1; }
  std::string explain_token(Cursor cursor, int number) const;
  std::string explain_expert(Cursor cursor, int number) const;

  // Where everything stands, and what the pointer is on, in moe_routing_picture.cpp.
  Layout layout(Cursor cursor) const;
  void place_tokens(Grid& grid, float width, float height) const;
  Columns columns(ImVec2 min, ImVec2 max) const;
  void follow_pointer(const Layout& layout, Cursor cursor);
  Hit hit(const Layout& layout, Cursor cursor) const;
  void draw_tooltip(const Layout& layout, Cursor cursor) const;

  // The experts' columns, in moe_routing_columns.cpp.
  void draw_lanes(const Layout& layout) const;
  void draw_columns(const Layout& layout, Cursor cursor) const;
  void draw_column_cells(const Layout& layout, int expert, Cursor cursor) const;
  static void draw_padding(const Columns& columns, int expert, int from, int to);
  void draw_pile(const Columns& columns, int expert) const;
  void draw_column_bar(const Layout& layout, int expert, Cursor cursor) const;
  void draw_tiles(const Layout& layout, int expert, Cursor cursor) const;
  void draw_demand(const Layout& layout, Cursor cursor) const;
  void draw_capacity(const Layout& layout, Cursor cursor) const;
  void draw_busiest(const Layout& layout, Cursor cursor) const;

  // The tokens, the router's rows under the columns and the followed token's numbers, in
  // moe_routing_tokens.cpp.
  void draw_tokens(const Layout& layout, Cursor cursor) const;
  void draw_token(const Layout& layout, int token, Cursor cursor) const;
  void draw_contest(const Layout& layout, Cursor cursor) const;
  void draw_rows(const Layout& layout, Cursor cursor) const;
  void draw_row(const Layout& layout, const Row& row, float top, bool label) const;
  void draw_names(const Layout& layout, Cursor cursor) const;
  std::vector<Row> value_rows(Cursor cursor) const;
  Rect followed_place(const Layout& layout, int choice, Cursor cursor) const;
  void draw_ways(const Layout& layout, Cursor cursor) const;
  void draw_followed(const Layout& layout, Cursor cursor) const;
  void draw_details(const Layout& layout, Cursor cursor) const;
  void draw_dragged(const Layout& layout) const;

  // The blocks over time, and before they run what each step does, in moe_routing_gantt.cpp.
  void draw_gantt(const Layout& layout, Cursor cursor) const;
  void draw_ticks(const TimeAxis& axis, float bottom) const;
  void draw_step_list(const Rect& area, Cursor cursor) const;
  std::string explanation(Cursor cursor) const;
  void draw_gantt_row(const TimeAxis& axis, int block, ImVec2 min, ImVec2 max) const;
  std::vector<int> gantt_blocks(int most) const;

  // Questions, in moe_routing_questions.cpp.
  std::optional<Question> busiest_question() const;
  Question dropped_question() const;
  Question slots_question() const;

  /// How busy the tensor pipe was, counted; says why where it is not known.
  struct TensorPipe {
    std::optional<double> percent;
    lab::Provenance provenance = lab::Provenance::counted;
    std::string how;
  };
  TensorPipe tensor_pipe() const;
  void draw_utilization(Cursor cursor);

  int experts() const { return trace_.experts; }
  int shown_tokens() const { return static_cast<int>(trace_.token.size()); }
  const moe_routing::TokenTrace& token(int number) const {
    return trace_.token[static_cast<std::size_t>(number)];
  }
  const moe_routing::ExpertTrace& expert(int number) const {
    return trace_.expert[static_cast<std::size_t>(number)];
  }
  static bool done(moe_routing::Step step, Cursor cursor) {
    return cursor.tile > static_cast<int>(step);
  }
  static bool now(moe_routing::Step step, Cursor cursor) {
    return cursor.tile == static_cast<int>(step) + 1;
  }
  /// Every token has a cell of its own.
  bool all_shown() const { return trace_.tokens == shown_tokens(); }
  /// Those whom the others wait for: the blocks that end last, where some end well before.
  std::vector<int> stragglers() const;
  bool custom() const { return params_.routing == moe_routing::Routing::custom; }

  moe_routing::Params params_;
  std::vector<std::vector<Assignment>> kept_;     ///< by expert, by place in its column
  std::vector<std::vector<Assignment>> dropped_;  ///< by expert, in order
  std::vector<int> blocks_;                       ///< that ran a tile, rising
  std::vector<int> first_tile_;                   ///< of each expert, among all that ran
  std::vector<int> tile_at_;                      ///< index into trace_.tiles; −1: not kept
  int picked_ = 0;
  int lit_token_ = -1;   ///< under the pointer, in the picture or in a table
  int lit_expert_ = -1;  ///< the same
  int lit_tile_ = -1;    ///< the same, index into trace_.tiles
  int table_token_ = -1, table_expert_ = -1, table_tile_ = -1;  ///< hovered in a table
  int dragged_ = -1;                                            ///< token
  ImVec2 dragged_from_;
  std::optional<lab::Settings> request_;
};

}  // namespace tilestep::scenes
