// A report as the window shows it, without a window.
#include "tests/fuzz/show.hpp"

#include <imgui.h>

#include <functional>
#include <memory>

#include "scenes/shared/scene.hpp"
#include "scenes/stage/scene_player.hpp"
#include "scenes/ui/context.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tilestep::fuzz {
namespace {

const ImVec2 kSize = {900, 600};

struct Screen {
  Screen() {
    IMGUI_CHECKVERSION();
    ImGui::CreateContext();
    ImGui::GetIO().IniFilename = nullptr;
    ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
    context.look().still = true;
  }
  ~Screen() { ImGui::DestroyContext(); }
  ui::Context context;
};

std::unique_ptr<scenes::Scene> scene_of(const lab::Report& report) {
  for (auto& scene : scenes::make_scenes()) {
    if (scene->lesson() == report.lesson) return std::move(scene);
  }
  throw Error("no scene of " + report.lesson);
}

/// All that is said at a place.
void say(const scenes::Scene& scene, const scenes::View& view) {
  scene.readouts(view);
  scene.symbols(view);
  scene.source(view);
  scene.question(view);
  scene.progress(view.cursor);
  for (const lab::Table& table : scene.report()->tables) {
    scene.table_row(table.id, view);
    const int rows = std::min<int>(8, static_cast<int>(table.rows.size()));
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < static_cast<int>(table.columns.size()); ++column) {
        scene.known(table, row, column);
        table.text(static_cast<std::size_t>(row), static_cast<std::size_t>(column));
      }
      scene.subjects_of_row(table.id, row);
    }
  }
}

}  // namespace

void in_a_frame(const std::function<void()>& draw) {
  static Screen screen;
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = kSize;
  io.DeltaTime = 1.0f / 60;
  const ui::Context::Current current(screen.context);
  if (screen.context.prepare_fonts(*io.Fonts)) {
    unsigned char* pixels = nullptr;
    int width = 0, height = 0;
    io.Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
  }
  ImGui::NewFrame();
  screen.context.begin_frame();
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(kSize);
  ImGui::Begin("fuzz", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoSavedSettings);
  try {
    draw();
  } catch (const Error&) {
    ImGui::End();
    ImGui::Render();
    throw;
  }
  ImGui::End();
  ImGui::Render();
}

void show(const lab::Report& report) {
  auto scene = scene_of(report);
  scene->load(report);
  const scenes::StepAxis axis = scene->steps();
  scene->events();
  scene->stage_knobs();
  const int places = axis.places();
  for (const int place : {0, places / 2, places}) {
    const scenes::View view{axis.at_place(place)};
    say(*scene, view);
    scene->picture(scene->extent(), view);
  }
  scenes::ScenePlayer player(std::move(scene));
  player.load(report);
  in_a_frame([&] { player.draw_picture({axis.at_place(places / 2)}); });
}

void show_bench(const lab::Report& bench) {
  scenes::ScenePlayer player(scene_of(bench));
  player.scene().measured_questions(bench);
  in_a_frame([&] { player.draw_measured(bench); });
}

}  // namespace tilestep::fuzz
