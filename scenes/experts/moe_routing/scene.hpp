#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/experts/moe_routing/lesson.hpp"
#include "scenes/picture/role.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// MoE routing: the tokens as a grid; the experts as columns that fill with them, tile by tile; under the
/// columns the router's and the counting kernels' output for each expert; then the tiles of every scheme on
/// the same multiprocessors, and each token's result.
class MoeRoutingScene final : public SceneOf<moe_routing::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(moe_routing)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  std::optional<lab::Settings> dropped(const View& view, const picture::Key& item,
                                       const picture::Key& onto) const override;
  std::vector<picture::Subject> subjects_of_row(std::string_view table_id, int row) const override;
  int table_row(std::string_view table_id, const View& view) const override;
  Cursor known(const lab::Table& table, int row, int column) const override;

  /// What happens at `cursor`, in one plain sentence.
  std::string sentence(Cursor cursor) const;
  /// What the step did with a token, with its numbers: a row per choice.
  bool gate_is_off(const moe_routing::TokenTrace& of, std::size_t choice) const;
  std::vector<std::string> formula(int token, Cursor cursor) const;
  /// The followed token: the picked one.
  int followed(const View& view) const;
  /// The text of the knob `custom` that keeps the shown routing and sends `token` to `expert` first.
  std::string moved(int token, int expert) const;
  /// The tile of `expert` numbered `number` as recorded; null if it was not kept in the trace.
  const moe_routing::TileTrace* tile(int expert, int number) const;

 private:
  using Assignment = moe_routing::Trace::Assignment;

  // The parts of the picture.
  picture::Items of_experts(picture::Name name, std::vector<float> values = {},
                            picture::Format format = {}) const;
  std::vector<float> counts(int moe_routing::ExpertTrace::*count) const;
  picture::Box tokens(Cursor cursor, int followed, picture::Key key) const;
  int grid_columns() const { return static_cast<int>(std::ceil(std::sqrt(2 * shown_tokens()))); }
  void on_grid(picture::Cells& cells) const;
  picture::Box outputs(Cursor cursor, int followed) const;
  picture::Box details(Cursor cursor, int followed) const;
  picture::Box columns(Cursor cursor, int followed) const;
  picture::Links ways(Cursor cursor, int followed) const;
  picture::Stacks piles(Cursor cursor, int followed) const;
  std::vector<picture::Box> rows(Cursor cursor, int followed, int place) const;
  static int end_of(const moe_routing::SchemeTrace& scheme);
  picture::Box schemes() const;
  picture::Box scheme(const moe_routing::SchemeTrace& of) const;
  std::string explain_token(Cursor cursor, int number) const;
  std::string explain_expert(Cursor cursor, int number) const;

  // Questions and events, in questions.cpp.
  std::optional<Question> busiest_question() const;
  Question dropped_question() const;
  Question slots_question() const;
  std::optional<Question> gate_question(int token) const;
  Question wanted_question(int expert) const;
  std::optional<Question> schemes_question() const;
  void find_events();

  /// How busy the tensor pipe was, counted; says why where it is unknown.
  struct TensorPipe {
    std::optional<double> percent;
    lab::Provenance provenance = lab::Provenance::counted;
    std::string how;
  };
  TensorPipe tensor_pipe() const;

  int experts() const { return trace_.experts; }
  std::uint8_t tone_of(int expert) const { return picture::category_tone(expert, experts()); }
  int shown_tokens() const { return static_cast<int>(trace_.token.size()); }
  const moe_routing::TokenTrace& token(int number) const { return trace_.token[number]; }
  const moe_routing::ExpertTrace& expert(int number) const { return trace_.expert[number]; }
  static bool done(moe_routing::Step step, Cursor cursor) {
    return cursor.tile > static_cast<int>(step);
  }
  static bool now(moe_routing::Step step, Cursor cursor) {
    return cursor.tile == static_cast<int>(step) + 1;
  }
  /// Every token has a cell of its own.
  bool all_shown() const { return trace_.tokens == shown_tokens(); }
  moe_routing::Params params_;
  std::vector<std::vector<Assignment>> kept_;     ///< by expert, by place in its column
  std::vector<std::vector<Assignment>> dropped_;  ///< by expert, in order
  std::vector<moe_routing::SchemeTrace>
      schemes_;  ///< the trace's; for an older one made from its tiles
  std::map<std::pair<int, int>, std::size_t> tile_at_;  ///< in trace_.tiles, by expert and number
};

}  // namespace tilestep::scenes
