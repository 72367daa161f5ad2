#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "app/cli/bench_parts.hpp"
#include "app/window/canvas.hpp"
#include "app/window/window.hpp"
#include "kernels/catalog.hpp"
#include "scenes/stage/scene_player.hpp"
#include "scenes/ui/context.hpp"

namespace tilestep::app {
namespace {

constexpr int kRepeats = 100, kFramesInMotion = 200;
/// Of the picture in a window of 1440 × 900.
constexpr picture::Area kArea{248, 96, 1080, 545};

/// Of all repeats, the middle and what all but a hundredth stay below.
struct Cost {
  double p50_ms = 0, p99_ms = 0;
};
Cost cost_of(const std::function<void()>& act) {
  std::vector<double> all;
  for (int turn = 0; turn < kRepeats; ++turn) {
    const double start_ms = processor_ms();
    act();
    all.push_back(processor_ms() - start_ms);
  }
  std::sort(all.begin(), all.end());
  return {all[all.size() / 2], all[all.size() * 99 / 100]};
}

/// An ImGui frame to draw in, without a display.
class Paper {
 public:
  Paper() : current_(context_) {
    context_.look().still = true;
    context_.prepare_fonts(*ImGui::GetIO().Fonts);
    unsigned char* pixels = nullptr;
    int width = 0, height = 0;
    ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
    ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
  }
  void frame(const std::function<void()>& draw) {
    ImGui::GetIO().DisplaySize = {1440, 900};
    ImGui::GetIO().DeltaTime = 1.0f / 60;
    ImGui::NewFrame();
    context_.begin_frame();
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize({1440, 900});
    ImGui::Begin("paper", nullptr, ImGuiWindowFlags_NoDecoration);
    draw();
    ImGui::End();
    ImGui::Render();
  }

 private:
  const ImGuiScope imgui_;
  ui::Context context_;
  const ui::Context::Current current_;
};

nlohmann::json picture_costs(const scenes::Scene& scene, lab::Table& table,
                             const std::string& knobs) {
  Paper paper;
  const ui::PictureMetrics metrics;
  const scenes::StepAxis axis = scene.steps();
  const int tile = std::min(2, axis.tiles), phases = axis.phases_in(tile);
  const scenes::View before{{tile, phases - 1}};
  const scenes::View after{{std::min(tile + 1, axis.tiles), 0}};
  const picture::Extent extent = scene.extent();
  const picture::Picture from = scene.picture(extent, before), to = scene.picture(extent, after);
  const picture::Placed a = place(from, kArea, metrics), b = place(to, kArea, metrics);
  const picture::Join join(a, b);
  picture::Placed mixed;
  Cost draw;
  paper.frame([&] { draw = cost_of([&] { ui::draw(a); }); });
  const std::pair<const char*, Cost> parts[] = {
      {"build", cost_of([&] { scene.picture(extent, before); })},
      {"place", cost_of([&] { place(from, kArea, metrics); })},
      {"join", cost_of([&] { picture::Join(a, b); })},
      {"mix", cost_of([&] { mix(a, b, join, 0.5f, mixed); })},
      {"draw", draw}};
  nlohmann::json json = {{"lesson", scene.lesson()},
                         {"knobs", knobs},
                         {"primitives", a.pieces.size() + a.words.size() + a.strokes.size()}};
  for (const auto& [name, cost] : parts) {
    json[name] = {{"p50_ms", cost.p50_ms}, {"p99_ms", cost.p99_ms}};
    table.rows.push_back({std::string(scene.lesson()), knobs, name, cost.p50_ms, cost.p99_ms});
  }
  return json;
}

nlohmann::json frames_costs(const scenes::Scene& scene, const BenchCase& one, lab::Table& table) {
  nlohmann::json json = {{"lesson", scene.lesson()}, {"knobs", one.knobs}};
  constexpr std::pair<Action, const char*> kActions[] = {{Action::still, "frame, still"},
                                                         {Action::moving, "frame, moving"},
                                                         {Action::hovering, "frame, hovering"},
                                                         {Action::comparing, "frame, comparing"}};
  FrameBench bench(shell_at(one, kBusyStep), kBenchWidth, kBenchHeight);
  for (const auto& [action, name] : kActions) {
    const FrameCosts costs = bench.measure(kFramesInMotion, action);
    json[name] = {{"p50_ms", costs.p50_ms}, {"p99_ms", costs.p99_ms}};
    table.rows.push_back(
        {std::string(scene.lesson()), one.knobs, name, costs.p50_ms, costs.p99_ms});
  }
  return json;
}

}  // namespace

BenchPart bench_pictures(const BenchCases& cases) {
  BenchPart part;
  part.table = {"pictures",
                fmt::format("Processor time of pictures of {} × {}, {} times, and of frames",
                            kArea.width(), kArea.height(), kRepeats),
                {{"lesson", "lesson", "", -1},
                 {"knobs", "knobs", "", -1},
                 {"part", "part", "", -1},
                 {"p50", "median", "ms", 3},
                 {"p99", "99 % below", "ms", 3}},
                {}};
  part.json = {{"pictures", nlohmann::json::array()}, {"motions", nlohmann::json::array()}};
  for (auto& scene : scenes::make_scenes()) {
    for (const BenchCase& one : cases.at(std::string(scene->lesson()))) {
      scene->load(one.report);
      part.json["pictures"].push_back(picture_costs(*scene, part.table, one.knobs));
      part.json["motions"].push_back(frames_costs(*scene, one, part.table));
    }
  }
  return part;
}

}  // namespace tilestep::app
