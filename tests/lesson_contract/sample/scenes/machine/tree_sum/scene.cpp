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

  picture::Picture picture(const picture::Extent&, const scenes::View& view) const override {
    const int n = trace_.threads(), adding = trace_.adding(view.cursor.tile);
    const auto first = trace_.sums.begin() + view.cursor.tile * n;
    picture::Cells cells{picture::items("cell", {first, first + n}, {picture::Format::integer})};
    cells.items.state.each.assign(n, picture::State::plain);
    std::fill_n(cells.items.state.each.begin(), adding, picture::State::current);
    return {picture::text(fmt::format("{} of {} threads add.", adding, n)),
            {},
            picture::box({"threads"}, {cells})};
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
