#pragma once

#include <optional>
#include <string>

#include "tests/reports.hpp"
#include "tests/scenes/scene_frame.hpp"

namespace tilestep::tests {

/// A lesson's scene with a report in it, and frames to draw it in:
///
///     Shown<scenes::TilingScene> shown({{"tile", std::int64_t{8}}});
///     const Parts parts = shown.picture({1, 2});
///     CHECK(parts.at("sentence").label == shown->sentence({1, 2}));
template <class Scene>
class Shown {
 public:
  explicit Shown(const lab::Settings& settings = {}) { run(settings); }

  /// A new scene that shows what a run with `settings` gave.
  void run(const lab::Settings& settings) {
    player_.emplace(std::make_unique<Scene>());
    load(settings);
  }
  /// The same scene, as after a change of the knobs.
  void load(const lab::Settings& settings) {
    report_ = &report_of(scene().lesson(), settings);
    player_->load(*report_);
  }
  Scene* operator->() { return &scene(); }
  Scene& operator*() { return scene(); }
  scenes::ScenePlayer& player() { return *player_; }
  const lab::Report& report() const { return *report_; }
  const auto& trace() { return scene().trace(); }

  /// What is on screen, by id.
  Parts picture(scenes::Cursor cursor, ImVec2 size = kPictureSizes[0]) {
    return frame_.draw(size, [&] { player_->draw_picture(cursor); });
  }
  Parts click(const std::string& id, scenes::Cursor cursor, ImVec2 size = kPictureSizes[0]) {
    return frame_.click(id, size, [&] { player_->draw_picture(cursor); });
  }
  Parts readouts(scenes::Cursor cursor) {
    return frame_.draw({300, 700}, [&] {
      for (const ui::Readout& one : player_->readouts(cursor)) ui::readout(one);
    });
  }
  /// The Measured tab after `button` was pressed, of `bench`.
  Parts measured(const std::string& button, ImVec2 size, const lab::Report& bench) {
    return frame_.click(button, size, [&] { player_->draw_measured(bench); });
  }
  Parts measured(const std::string& button, ImVec2 size) {
    return measured(button, size, recorded_bench(scene().lesson()));
  }

  /// Where the pointer is in the next frames, and whether its button is down.
  static void point_at(const ui::MapEntry& part) { ImGui::GetIO().MousePos = center(part); }
  static void point_away() { ImGui::GetIO().MousePos = {-100, -100}; }
  static void press(bool down) { ImGui::GetIO().MouseDown[0] = down; }

  /// The right answer to the question at `cursor`, which must be asked.
  std::string answer(scenes::Cursor cursor) {
    const auto question = scene().question(player_->view(cursor));
    REQUIRE(question);
    return question->choices.at(static_cast<std::size_t>(question->answer));
  }

 private:
  Scene& scene() { return static_cast<Scene&>(player_->scene()); }

  SceneFrame frame_;
  std::optional<scenes::ScenePlayer> player_;
  const lab::Report* report_ = nullptr;
};

}  // namespace tilestep::tests
