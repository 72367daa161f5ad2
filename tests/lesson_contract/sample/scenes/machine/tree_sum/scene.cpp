#include "scenes/scene.hpp"

#include <fmt/format.h>

#include "kernels/machine/tree_sum/lesson.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/strokes.hpp"

namespace tilestep::tree_sum {
namespace {

using ui::px;
using ui::Role;

/// A cell a thread, with the partial sum that it holds; the threads that add are lit.
class TreeSumScene final : public scenes::Scene {
 public:
  std::string_view lesson() const override { return kLessonId; }
  void load(const lab::Report& report) override { trace_ = trace_from_json(report.trace); }
  scenes::StepAxis steps() const override {
    return {trace_.rounds(), 1, "round", {"add"}, "rounds"};
  }

  void draw_picture(scenes::Cursor cursor) override {
    const ImVec2 min = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
    const int adding = trace_.count >> cursor.tile;
    const std::string text =
        ui::fitted(cursor.tile == 0 ? fmt::format("{} threads hold a number each.", trace_.count)
                                    : fmt::format("Round {}: {} threads add.", cursor.tile, adding),
                   ui::Font::section, room.x);
    const ImVec2 size = ui::draw_text(min, text, ui::Font::section);
    ui::map("sentence", text, "", min, {min.x + size.x, min.y + size.y});
    const float top = min.y + size.y + px(8), width = room.x / static_cast<float>(trace_.count);
    for (int i = 0; i < trace_.count; ++i) {
      const ImVec2 from(min.x + width * static_cast<float>(i), top),
          to(from.x + width - 1, min.y + room.y);
      scenes::fill(from, to, cursor.tile > 0 && i < adding ? Role::accent : Role::raised);
      const std::string sum = fmt::format("{}", sum_of(i, cursor.tile));
      ui::draw_text({(from.x + to.x) / 2, top}, ui::fitted(sum, ui::Font::mono_note, width - 2),
                    ui::Font::mono_note, Role::text, ui::Align::center);
      ui::map(fmt::format("cell_{}", i), "partial sum", sum, from, to, {0, px(20)});
    }
  }
  void draw_readouts(scenes::Cursor cursor) override {
    ui::readout({"first", "first sum", fmt::format("{}", sum_of(0, cursor.tile)), "",
                 lab::Provenance::traced, ""});
  }
  scenes::SourceMark source(scenes::Cursor cursor) const override {
    return {
        "kernels/machine/tree_sum/tree_sum.cu", cursor.tile > 0 ? trace_.line : 0, {trace_.line}};
  }
  std::optional<scenes::Question> question(scenes::Cursor cursor) const override {
    if (cursor.tile >= trace_.rounds()) return std::nullopt;
    const int adding = trace_.count >> (cursor.tile + 1);
    return scenes::ask_count("How many threads add in the next round?", adding,
                             {2 * adding, adding / 2, 1},
                             "Each thread that adds takes the number of one that does not.");
  }

 private:
  float sum_of(int i, int round) const {
    const auto at = static_cast<std::size_t>(i);
    return round == 0 ? trace_.in[at]
                      : trace_.sums[static_cast<std::size_t>((round - 1) * trace_.count) + at];
  }
  Trace trace_;
};

}  // namespace

std::unique_ptr<scenes::Scene> make_scene() {
  return std::make_unique<TreeSumScene>();
}

}  // namespace tilestep::tree_sum
