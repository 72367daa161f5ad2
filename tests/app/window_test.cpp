#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "kernels/base/workbench/exercise.hpp"
#include "tests/app/display_window.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace tilestep::tests;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

/// Sets a display's X resources, as a desktop does at its start. Xlib is loaded and not linked: GLFW brings it.
bool set_resources(const std::string& display, const std::string& resources) {
  void* xlib = ::dlopen("libX11.so.6", RTLD_NOW);
  if (xlib == nullptr) return false;
  const auto function = [xlib]<class F>(F*& into, const char* name) {
    into = reinterpret_cast<F*>(::dlsym(xlib, name));
    return into != nullptr;
  };
  void* (*open)(const char*) = nullptr;
  int (*close)(void*) = nullptr;
  unsigned long (*root)(void*) = nullptr;
  unsigned long (*atom)(void*, const char*, int) = nullptr;
  int (*change)(void*, unsigned long, unsigned long, unsigned long, int, int, const unsigned char*,
                int) = nullptr;
  const bool known = function(open, "XOpenDisplay") && function(close, "XCloseDisplay") &&
                     function(root, "XDefaultRootWindow") && function(atom, "XInternAtom") &&
                     function(change, "XChangeProperty");
  void* server = known ? open(display.c_str()) : nullptr;
  if (server == nullptr) return false;
  constexpr int kReplace = 0, kBytes = 8;
  constexpr unsigned long kString = 31;  // XA_STRING
  change(server, root(server), atom(server, "RESOURCE_MANAGER", 0), kString, kBytes, kReplace,
         reinterpret_cast<const unsigned char*>(resources.data()),
         static_cast<int>(resources.size()));
  close(server);
  return true;
}

void wait_until_ready(Window& window) {
  const bool ready = eventually(
      [&] { return !window.program().alive() || window.part("next tile").has_value(); }, 60s);
  INFO("the last map: " << window.map().dump());
  REQUIRE(ready);
  REQUIRE(window.program().alive());
  window.focus();
}

/// The first key may come before the report is drawn; only the ones after that must each count.
bool goes_to_end(Window& window) {
  return eventually([&] {
    window.press("End");
    return window.step() == 4;
  });
}

}  // namespace

TEST_CASE("keys move the step in a real window", "[window]") {
  const auto display = make_display();
  if (!display) return;
  Window window(*display, {"--backend", "emulated"});
  wait_until_ready(window);
  CHECK(eventually([&] { return window.step() == 0; }));
  REQUIRE(goes_to_end(window));
  window.press("Home");
  CHECK(eventually([&] { return window.step() == 0; }));
  window.press("Right");
  CHECK(eventually([&] { return window.step() == 1; }));
  window.press("Next");  // a clicker's PageDown
  CHECK(eventually([&] { return window.step() == 2; }));
  window.press("Left");
  CHECK(eventually([&] { return window.step() == 1; }));
}

TEST_CASE("the display's own scale is honoured: at 192 dpi all is twice as large", "[window]") {
  const auto display = make_display("3000x1900x24");
  if (!display) return;
  // Only what is drawn after a key: in the first frame of all, lists have no scroll bar yet.
  const auto opened = [](Window& window) {
    wait_until_ready(window);
    return goes_to_end(window);
  };
  const auto width_of = [](const Window& window, const char* id) {
    return window.part(id)->at("raw")[2].get<double>();
  };
  double button = 0, lesson = 0;
  {
    Window window(*display, {"--backend", "emulated"});
    REQUIRE(opened(window));
    button = width_of(window, "next tile");
    lesson = width_of(window, "lesson_coalescing");
  }
  REQUIRE(set_resources(display->name(), "Xft.dpi:\t192\n"));
  Window window(*display, {"--backend", "emulated"});
  REQUIRE(opened(window));
  CHECK(width_of(window, "next tile") == 2 * button);
  CHECK(width_of(window, "lesson_coalescing") == 2 * lesson);
}

TEST_CASE("a click on Next tile moves the step", "[window]") {
  const auto display = make_display();
  if (!display) return;
  Window window(*display, {"--backend", "emulated"});
  wait_until_ready(window);
  REQUIRE(eventually([&] { return window.part("score_0").has_value(); }));  // the report is there
  for (int step = 1; step <= 2; ++step) {
    const auto next = window.part("next tile");
    REQUIRE(next.has_value());
    window.click(*next);
    CHECK(eventually([&] { return window.step() == step; }));
  }
}

TEST_CASE("Tab walks through a real window, Enter and Space press", "[window]") {
  const auto display = make_display();
  if (!display) return;
  Window window(*display, {"--backend", "emulated"});
  wait_until_ready(window);
  REQUIRE(eventually([&] { return window.part("score_0").has_value(); }));
  const auto ring = [&]() -> std::string {
    const auto part = window.part("focus");
    return part ? part->at("label").get<std::string>() : "";
  };
  const auto go_to = [&](const std::string& id) {
    for (int i = 0; i < 60 && ring() != id; ++i) {
      const std::string before = ring();
      window.press("Tab");
      REQUIRE(eventually([&] { return ring() != before; }));
    }
    REQUIRE(ring() == id);
  };
  CHECK(ring().empty());
  go_to("next");
  window.press("Return");
  CHECK(eventually([&] { return window.step() == 1; }));
  window.press("space");
  CHECK(eventually([&] { return window.step() == 2; }));
  window.press("shift+Tab");
  CHECK(eventually([&] { return ring() == "play"; }));
  go_to("knob_preset");
  window.press("Return");
  REQUIRE(eventually([&] { return window.part("knob_preset_2").has_value(); }));
  window.press("Down");
  window.press("Escape");
  CHECK(eventually([&] { return !window.part("knob_preset_2").has_value(); }));
  CHECK(window.part("knob_preset")->at("value") == "worked-example");
  window.press("Return");
  REQUIRE(eventually([&] { return window.part("knob_preset_2").has_value(); }));
  window.press("Down");
  window.press("Return");
  CHECK(eventually([&] {
    const auto preset = window.part("knob_preset");
    return preset && preset->at("value") != "worked-example";
  }));
  window.press("Escape");
  CHECK(eventually([&] { return ring().empty(); }));
  CHECK(window.program().alive());
}

TEST_CASE("the window survives a worker killed in the middle of a run, and says so", "[window]") {
  const auto display = make_display();
  if (!display) return;
  ::setenv("TILESTEP_WORKER_FAULT", "hang", 1);
  Window window(*display, {"--backend", "emulated"});
  ::unsetenv("TILESTEP_WORKER_FAULT");
  REQUIRE(eventually([&] { return children_of(window.program().pid()).size() == 1; }, 60s));
  ::kill(children_of(window.program().pid()).front(), SIGKILL);
  CHECK(eventually([&] { return window.says("worker"); }));
  CHECK(window.program().alive());
}

TEST_CASE("the window survives a worker killed between two runs and goes on", "[window]") {
  const auto display = make_display();
  if (!display) return;
  Window window(*display, {"--backend", "emulated", "--set", "preset=rising"});
  wait_until_ready(window);
  REQUIRE(goes_to_end(window));
  const auto workers = children_of(window.program().pid());
  REQUIRE(workers.size() == 1);
  ::kill(workers.front(), SIGKILL);
  CHECK(eventually([&] { return children_of(window.program().pid()).empty(); }));
  // R sets the knobs back, which needs a run and with it another worker.
  window.press("r");
  CHECK(eventually([&] { return children_of(window.program().pid()).size() == 1; }));
  CHECK(eventually([&] {
    const auto preset = window.part("preset");
    return preset && preset->at("value") == "worked-example";
  }));
  CHECK(goes_to_end(window));
  CHECK(window.program().alive());
}

TEST_CASE("a window's worker is its own program, not what a build has put in its place",
          "[window]") {
  const auto display = make_display();
  if (!display) return;
  const TemporaryFolder folder;
  const std::filesystem::path program = folder.path() / "tilestep";
  std::filesystem::copy_file(tilestep::tests::paths::kProgram, program);
  Window window(*display, {"--backend", "emulated", "--set", "preset=rising"}, program.string());
  wait_until_ready(window);
  const auto workers = children_of(window.program().pid());
  REQUIRE(workers.size() == 1);
  CHECK(file_text("/proc/" + std::to_string(workers.front()) + "/comm") == "tilestep\n");
  ::kill(workers.front(), SIGKILL);
  std::filesystem::remove(program);
  std::ofstream(program) << "#!/bin/sh\nexit 9\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  // A run that is asked of a worker before its end is seen fails, and says so.
  REQUIRE(eventually([&] { return children_of(window.program().pid()).empty(); }));
  window.press("r");
  CHECK(eventually([&] {
    const auto preset = window.part("preset");
    return preset && preset->at("value") == "worked-example";
  }));
  CHECK(eventually([&] { return children_of(window.program().pid()).size() == 1; }));
  CHECK(goes_to_end(window));
  CHECK_FALSE(window.says("failure"));
}

TEST_CASE("a window whose worker crashes at every run stays and says so", "[window]") {
  const auto display = make_display();
  if (!display) return;
  ::setenv("TILESTEP_WORKER_FAULT", "crash", 1);
  Window window(*display, {"--backend", "emulated"});
  ::unsetenv("TILESTEP_WORKER_FAULT");
  CHECK(eventually([&] { return window.says("worker"); }, 60s));
  CHECK(window.program().alive());
}

TEST_CASE("the window ends with its worker", "[window]") {
  const auto display = make_display();
  if (!display) return;
  pid_t worker = 0;
  {
    Window window(*display, {"--backend", "emulated"});
    wait_until_ready(window);
    REQUIRE(eventually([&] { return !children_of(window.program().pid()).empty(); }));
    worker = children_of(window.program().pid()).front();
  }
  // Even a window that was killed takes its worker along: nobody is left to read.
  CHECK(eventually([&] { return ::kill(worker, 0) != 0; }));
}

TEST_CASE("a display that goes away ends the window with a sentence, and the settings are kept",
          "[window]") {
  auto display = make_display();
  if (!display) return;
  const TemporaryFolder home;
  Window window(*display, {"--backend", "emulated"}, tilestep::tests::paths::kProgram, home.path());
  wait_until_ready(window);
  window.press("t");
  CHECK(eventually([&] { return window.part("Dark theme").has_value(); }));
  display.reset();
  CHECK(window.program().finish(30s) == 3);
  check_contains(window.program().err(), "the display is gone");
  const auto settings = home.path() / ".config" / "tilestep" / "settings.json";
  CHECK(json::parse(file_text(settings)).at("theme") == "light");
}

TEST_CASE("Ctrl+S keeps what is on show, and another window opens it", "[window]") {
  const auto display = make_display();
  if (!display) return;
  const TemporaryFolder home;
  std::filesystem::create_directory(home.path() / "Documents");
  const auto first_saved = [&home]() -> std::string {
    for (const auto& entry : std::filesystem::directory_iterator(home.path() / "Documents")) {
      if (entry.path().string().ends_with(".tilestep.json")) return entry.path().string();
    }
    return {};
  };
  {
    Window window(*display, {"--backend", "emulated", "--set", "preset=rising", "--step", "2"},
                  tilestep::tests::paths::kProgram, home.path());
    wait_until_ready(window);
    REQUIRE(eventually([&] { return window.step() == 2; }));
    window.focus();
    window.press("ctrl+s");
    CHECK(eventually([&] { return window.says("saved to " + lower(home.path().string())); }));
    REQUIRE(eventually([&] { return !first_saved().empty(); }));
    window.press("ctrl+c");
    CHECK(eventually([&] { return window.says("copied the table 'tiles'"); }));
    // The picture has an OpenGL context of its own, and the window goes on with its own after it.
    window.press("ctrl+shift+s");
    CHECK(eventually([&] { return window.says("-1.png"); }));
    window.press("Right");
    CHECK(eventually([&] { return window.step() == 3; }));
  }
  Window window(*display, {"open", first_saved(), "--backend", "cuda"},
                tilestep::tests::paths::kProgram,
                home.path());  // no GPU is asked for
  REQUIRE(eventually([&] { return window.step() == 2; }));
  const auto preset = window.part("preset");
  REQUIRE(preset);
  CHECK(preset->at("value") == "rising");
  CHECK(window.says("capsule of"));
  CHECK_FALSE(window.says("failure"));
  CHECK(children_of(window.program().pid()).empty());
  bool picture = false;
  for (const auto& entry : std::filesystem::directory_iterator(home.path() / "Documents")) {
    picture = picture || file_text(entry.path()).starts_with("\x89PNG");
  }
  CHECK(picture);
}

TEST_CASE("Ctrl+O takes a CUDA file, names its mistake, and a click leads to its lesson",
          "[window]") {
  const auto display = make_display();
  if (!display) return;
  const auto file = std::filesystem::path(tilestep::tests::paths::kSource) /
                    "tests/inspect/wrong/bounds_missing_guard.cu";
  Window window(*display, {});
  REQUIRE(eventually([&] { return window.has("next"); }));
  window.focus();
  window.press("ctrl+o");
  REQUIRE(window.steady("inspect_path"));
  window.type(file.string());
  REQUIRE(eventually([&] { return window.value("inspect_path") == file.string(); }));
  window.hold("Return");
  // Without a sandbox it asks first.
  const auto found = [&] { return window.has("finding_1") || window.has("inspect_trust"); };
  const bool there = eventually(found, std::chrono::seconds(60));
  window.let_go("Return");
  INFO("the last map: " << window.map().dump());
  REQUIRE(there);
  if (window.has("inspect_trust")) {
    REQUIRE(window.click_on("inspect_trust"));
    REQUIRE(eventually([&] { return window.has("finding_1"); }, std::chrono::seconds(60)));
  }
  CHECK(window.label("finding_1") == "bounds, line 7");
  CHECK(window.says("line 7, launch 1"));
  REQUIRE(window.click_on("finding_1_lesson"));
  CHECK(eventually([&] { return window.has("next") && !window.has("inspect"); }));
}

TEST_CASE("a window that is told to end keeps where its user was", "[window]") {
  const auto display = make_display();
  if (!display) return;
  for (const int signal : {SIGTERM, SIGHUP}) {
    const TemporaryFolder home;
    const auto settings = home.path() / ".config" / "tilestep" / "settings.json";
    Window window(*display, {"open", "coalescing", "--backend", "emulated", "--questions", "off"},
                  tilestep::tests::paths::kProgram, home.path());
    REQUIRE(eventually([&] { return window.part("lane_0").has_value(); }));
    window.focus();
    window.press("Right");
    REQUIRE(eventually([&] { return window.step() == 1; }));
    REQUIRE(::kill(window.program().pid(), signal) == 0);
    CHECK(window.program().finish(std::chrono::seconds(30)) == 128 + signal);
    CHECK(json::parse(file_text(settings)).at("last").at("step") == 1);
  }
}

namespace {

/// Answers what is asked at a stop, and goes on from each answer by Enter. Returns how many questions there were.
int answer_all(Window& window) {
  for (int asked = 0;; ++asked) {
    REQUIRE(eventually([&] { return window.has("question") || !window.has("skip_asking"); }));
    REQUIRE(window.steady("reader_place"));
    if (!window.has("question") || window.has("predict_verdict")) return asked;
    const bool measured = window.has("skip_question");
    if (const auto slider = window.steady("predict_number")) {
      window.take_hold(inside(*slider, 0.2));
      window.point_at(inside(*slider, 0.4));
      window.let_go();
    } else {
      window.press("a");
    }
    if (!measured) {
      REQUIRE(eventually([&] { return window.label("question_on").starts_with("Show the step"); }));
      window.press("Return");
    }
    REQUIRE(eventually([&] { return window.has("predict_verdict"); }));
    const std::string said = window.label("predict_verdict");
    CHECK((said.starts_with("Right: ") || said.starts_with("No: ")));
    if (!measured) continue;
    window.press("Return");
    REQUIRE(eventually([&] { return !window.has("predict_verdict"); }));
  }
}

}  // namespace

TEST_CASE("from an empty home: Begin, the path with its questions, SIGTERM, continue, an exercise",
          "[window]") {
  const auto display = make_display();
  if (!display) return;
  const TemporaryFolder home;
  const auto progress = home.path() / ".local" / "state" / "tilestep" / "progress.json";
  const std::vector<std::string> words = {"open", "--backend", "emulated"};
  int stops = 2;
  {
    Window window(*display, words, tilestep::tests::paths::kProgram, home.path());
    REQUIRE(eventually([&] { return window.has("begin"); }, 60s));
    CHECK_FALSE(window.has("continue"));
    window.focus();
    REQUIRE(window.click_on("begin"));
    REQUIRE(eventually([&] { return window.is_selected("stop_1"); }));
    REQUIRE(eventually([&] { return window.has("lane_0"); }, 60s));
    const std::string place = window.label("reader_place");  // "Stop 1 of 15"
    stops = std::stoi(place.substr(place.rfind(' ') + 1));
    int asked = 0;
    for (int stop = 2; stop <= stops; ++stop) {
      CAPTURE(stop);
      window.press("bracketright");
      REQUIRE(eventually([&] { return window.is_selected(fmt::format("stop_{}", stop)); }));
      asked += answer_all(window);
    }
    CHECK(asked >= 4);
    CHECK(eventually([&] { return window.value("done_coalescing") == "all"; }));
    REQUIRE(::kill(window.program().pid(), SIGTERM) == 0);
    CHECK(window.program().finish(std::chrono::seconds(30)) == 128 + SIGTERM);
  }
  const json read = json::parse(file_text(progress)).at("lessons").at("coalescing");
  CHECK(read.at("stops").size() == static_cast<std::size_t>(stops));
  CHECK(read.at("asked").size() >= 4);
  Window window(*display, words, tilestep::tests::paths::kProgram, home.path());
  REQUIRE(eventually([&] { return window.has("lane_0") && window.step() == 1; }, 60s));
  CHECK(window.map().at("lesson") == "coalescing");
  CHECK(window.value("done_coalescing") == "all");
  window.focus();
  window.press("h");
  REQUIRE(eventually([&] { return window.has("continue"); }));
  CHECK(window.value("course_coalescing").starts_with(fmt::format("{0} of {0}", stops)));
  REQUIRE(window.click_on("continue"));
  CHECK(eventually([&] { return window.has("lane_0") && window.step() == 1; }));

  // An exercise is solved where students are, and stays ticked.
  const tilestep::lab::Exercise& exercise =
      tilestep::lab::exercise("coalescing/structure-of-arrays");
  window.press("k");
  REQUIRE(window.click_on("exercises"));
  REQUIRE(window.click_on("find_exercise_" + exercise.id()));
  REQUIRE(eventually([&] { return window.has("editor_line_1"); }));
  const std::string text = tilestep::lab::starter(exercise), hole = "// TODO";
  REQUIRE(text.find(hole) != text.npos);
  const auto above =
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find(hole)), '\n');
  for (std::ptrdiff_t i = 0; i < above; ++i) window.press("Down");
  window.press("Home");
  window.press("shift+End");
  const std::string line = fmt::format("editor_line_{}", above + 1),
                    answer = "out[i] = in[1 * s.pitch + i];";
  window.type(answer);
  REQUIRE(eventually([&] {
    INFO(window.label(line));
    return window.label(line).find(answer) != std::string::npos;
  }));
  window.press("ctrl+Return");
  REQUIRE(eventually([&] { return window.says("Checking all cases"); }));
  REQUIRE(eventually([&] { return !window.says("Checking all cases"); }, 240s));
  INFO(window.label("kernel_status"));
  CHECK(eventually([&] {
    const json done = json::parse(file_text(progress)).at("lessons").at("coalescing");
    return done.value("exercises", json::array()) == json::array({exercise.id()});
  }));
}

TEST_CASE("the window comes back as it was left", "[window]") {
  const auto display = make_display();
  if (!display) return;
  const TemporaryFolder home;
  const auto settings = home.path() / ".config" / "tilestep" / "settings.json";
  {
    Window window(
        *display,
        {"open", "coalescing", "--backend", "emulated", "--set", "stride=4", "--questions", "off"},
        tilestep::tests::paths::kProgram, home.path());
    REQUIRE(eventually([&] { return window.part("lane_0").has_value(); }));
    window.focus();
    window.press("Right");
    window.press("t");
    REQUIRE(eventually([&] { return window.step() == 1; }));
    // It keeps them when it loses the focus, too.
    Window other(*display, {});
    wait_until_ready(other);
    CHECK(eventually([&] { return std::filesystem::exists(settings); }));
  }
  const json kept = json::parse(file_text(settings));
  CHECK(kept.at("theme") == "light");
  {
    Window window(*display, {"open", "--backend", "emulated"}, tilestep::tests::paths::kProgram,
                  home.path());
    CHECK(eventually([&] { return window.step() == 1; }));
    CHECK(window.map().at("lesson") == "coalescing");
    CHECK(window.part("Dark theme").has_value());  // what the button would change the light one to
    CHECK(window.says("in[i × 4]"));               // the stride that was set
  }
  std::ofstream(settings) << "{ broken";
  Window window(*display, {"open", "--backend", "emulated"}, tilestep::tests::paths::kProgram,
                home.path());
  CHECK(eventually([&] { return window.says("set aside as"); }));
  CHECK(std::filesystem::exists(settings.string() + ".damaged-1"));
}
