#include "kernels/systems/triage/lesson.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/step_scene.hpp"

namespace tilestep::scenes {

/// A cell a thread, with the sum that it holds; those that have just added are lit.
class TriageScene final : public StepScene<triage::Trace> {
 public:
  TriageScene()
      : StepScene({"round", "rounds", "kernels/systems/triage/tree_sum.cu", {"add"}},
                  &triage::Trace::rounds) {}

  picture::Picture picture(const picture::Extent&, const View& view) const override {
    const int n = trace_.threads(), adding = trace_.adding(view.cursor.tile);
    const auto first = trace_.sums.begin() + view.cursor.tile * n;
    picture::Cells cells{picture::items("cell", {first, first + n}, {picture::Format::integer})};
    cells.items.state.each.resize(n);
    std::fill_n(cells.items.state.each.begin(), adding, picture::State::current);
    const std::string sentence = fmt::format("{} of {} threads add.", adding, n);
    return {picture::text(sentence), {}, picture::box({"threads"}, {cells})};
  }

  std::optional<Question> question(const View& view) const override {
    if (view.cursor.tile >= trace_.rounds) return std::nullopt;
    return ask_count(fmt::format("Round {}: how many threads add?", view.cursor.tile + 1),
                     trace_.adding(view.cursor.tile + 1), {}, "each adds another thread's.");
  }
};

}  // namespace tilestep::scenes

TILESTEP_SCENE(triage, TriageScene)
