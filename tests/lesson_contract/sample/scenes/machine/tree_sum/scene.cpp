#include "kernels/machine/tree_sum/lesson.hpp"
#include "scenes/shared/cells.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/step_scene.hpp"

namespace tilestep::tree_sum {

/// A cell a thread, with the sum that it holds; those that have just added are lit.
class TreeSumScene final : public scenes::StepScene<Trace> {
 public:
  TreeSumScene()
      : StepScene({"round", "rounds", "kernels/machine/tree_sum/tree_sum.cu", {"add"}},
                  &Trace::rounds) {}

  void draw_picture(scenes::Cursor cursor) override {
    const int n = trace_.threads(), adding = trace_.adding(cursor.tile);
    scenes::Frame frame = scenes::picture_frame();
    frame.min.y += scenes::draw_sentence(frame, fmt::format("{} of {} threads add.", adding, n));
    scenes::draw_cells(frame, std::span(trace_.sums).subspan(cursor.tile * n, n), adding);
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
