#include "kernels/machine/tree_sum/lesson.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/step_scene.hpp"

namespace tilestep::tree_sum {

/// A cell a thread, with the sum that it holds; those that have just added are lit.
class TreeSumScene final : public scenes::StepScene<Trace> {
 public:
  TreeSumScene()
      : StepScene({"round", "rounds", "kernels/machine/tree_sum/tree_sum.cu", {"add"}},
                  &Trace::rounds) {}

  picture::Extent extent() const override { return {}; }
  picture::Picture picture(const picture::Extent&, const scenes::View& view) const override {
    const int n = trace_.threads(), round = view.cursor.tile, adding = trace_.adding(round);
    const auto first = trace_.sums.begin() + round * n;
    picture::Cells cells{picture::items("cell", {first, first + n}, {picture::Format::integer})};
    for (int i = 0; i < n; ++i) {
      cells.items.state.each.push_back(i < adding ? picture::State::current
                                                  : picture::State::plain);
    }
    return {.headline = picture::text(fmt::format("{} of {} threads add.", adding, n)),
            .axes = {},
            .root = picture::box({"threads"}, {cells})};
  }
  std::string explain(const scenes::View& view, const picture::Key& key) const override {
    if (key.i < 0) return {};
    return fmt::format("thread {} holds {}", key.i, trace_.sum(view.cursor.tile, key.i));
  }

  std::optional<scenes::Question> question(scenes::Cursor cursor) const override {
    if (cursor.tile >= trace_.rounds) return std::nullopt;
    const int adding = trace_.adding(cursor.tile + 1);
    return scenes::ask_count(fmt::format("Round {}: how many threads add?", cursor.tile + 1),
                             adding, {2 * adding, 3 * adding, 1}, "Each adds another thread's.");
  }
};

std::unique_ptr<scenes::Scene> make_scene() {
  return std::make_unique<TreeSumScene>();
}

}  // namespace tilestep::tree_sum
