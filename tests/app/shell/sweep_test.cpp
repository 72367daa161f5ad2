// What lies over the window, and its rarer states, at every size and look: nothing leaves its panel, nothing
// overprints, text stands out from what it is drawn on.
#include <fmt/format.h>

#include <functional>
#include <span>

#include "app/shell/profiling.hpp"
#include "kernels/catalog.hpp"
#include "tests/app/shell/inspected.hpp"
#include "tests/app/shell/stage.hpp"
#include "tests/lesson_contract/contrast.hpp"
#include "tests/lesson_contract/layout.hpp"
#include "tests/part.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using namespace tilestep::app;
using tests::Stage;

namespace {

const ImVec2 kWindows[] = {{1024, 640},  {1440, 900}, {1280, 720},
                           {3840, 2160}, {1366, 768}, {1920, 1080}};
/// Memory is no other at the third one, under a sanitizer.
const std::span<const ImVec2> kSwept(kWindows, tests::kSweptSizes.size() < 3 ? 2 : 6);

/// A state that the window can be in, on the first frame after it was set up.
struct Scenario {
  const char* name;
  std::function<void(ShellOptions&)> options;
  std::function<void(Stage&)> enter;
  bool reads = true;  ///< its text is meant to be read: not what is dimmed as out of date
};

void type(const char* words) {
  ImGui::GetIO().AddInputCharactersUTF8(words);
}
void press(Stage& stage, std::initializer_list<Key> keys) {
  for (const Key key : keys) stage.shell.key(key, false);
}

/// What a compiler may have made of a lesson's source: long names, long lines, lines of a header.
void answer_assembly(Stage& stage) {
  const auto& request = stage.lab.assembly_requests.back();
  workbench::Assembly assembly;
  assembly.info = {request.kernel.path, "0123456789abcdef", "nvcc 13.0.88", 1, false, {}};
  for (const char* name :
       {"online_softmax<Fp32, NoTape>", "a_kernel<ConfigOfTiles<128, 256>, 4>"}) {
    workbench::AssemblyKernel kernel;
    kernel.symbol = kernel.name = name;
    kernel.registers = 168;
    kernel.spill_store_bytes = 1024;
    kernel.spill_load_bytes = 2048;
    kernel.stack_bytes = 512;
    kernel.shared_bytes = 49152;
    for (int i = 0; i < 40; ++i) {
      kernel.lines.push_back({"@%p1 ld.global.nc.v4.f32 \t{%f1, %f2, %f3, %f4}, [%rd12+1024];",
                              i % 3 == 0 ? 0 : 10 + i});
      kernel.lines.push_back({"$L__BB0_" + std::to_string(i) + ":", 0});
    }
    assembly.kernels.push_back(std::move(kernel));
  }
  stage.lab.updates.push_back({stage.lab.assembly_ticket(),
                               std::make_shared<const workbench::Assembly>(std::move(assembly))});
}

const std::vector<Scenario>& scenarios() {
  const auto nothing = [](ShellOptions&) {};
  const auto asked = [](ShellOptions& options) { options.asked = true; };
  const auto reader = [](ShellOptions& options) { options.reader = true; };
  static const std::vector<Scenario> all = {
      {"palette", nothing, [](Stage& stage) { press(stage, {Key::find}); }},
      {"palette, searched", nothing,
       [](Stage& stage) {
         press(stage, {Key::find});
         stage.draw({1440, 900});
         type("tensor");
       }},
      {"palette, in vain", nothing,
       [](Stage& stage) {
         press(stage, {Key::find});
         stage.draw({1440, 900});
         type("no such thing");
       }},
      {"a CUDA file",
       [](ShellOptions& options) {
         options.inspected = std::make_shared<const Inspected>(tests::inspected());
       },
       [](Stage&) {}},
      {"a profiler's trace",
       [](ShellOptions& options) {
         options.profiled = open_profile_example("decode");
         options.profile_question = 2;
       },
       [](Stage&) {}},
      {"choice of a trace", [](ShellOptions& options) { options.profile_page = true; },
       [](Stage&) {}},
      {"choice of a CUDA file", nothing, [](Stage& stage) { press(stage, {Key::open}); }},
      {"a CUDA file that is not there", nothing,
       [](Stage& stage) { stage.shell.inspect("/no/such/program.cu"); }},
      {"list of keys", nothing, [](Stage& stage) { press(stage, {Key::question}); }},
      {"question", asked, [](Stage&) {}},
      {"question beside the text",
       [](ShellOptions& options) { options.asked = options.reader = true; }, [](Stage&) {}},
      {"answer", asked,
       [](Stage& stage) {
         press(stage, {Key::b, Key::right});
       }},
      {"measured question",
       [](ShellOptions& options) {
         options.predict = true;
         options.tab = Tab::measured;
       },
       [](Stage& stage) { press(stage, {Key::m}); }},
      {"reader with data over the picture", reader, [](Stage& stage) { press(stage, {Key::d}); }},
      {"reader with measurements", reader, [](Stage& stage) { press(stage, {Key::m}); }},
      {"reader with the kernel", reader, [](Stage& stage) { press(stage, {Key::k}); }},
      {"assembly beside the kernel", nothing,
       [](Stage& stage) {
         press(stage, {Key::s});
         answer_assembly(stage);
       }},
      {"assembly that is out of date, beside the editor",
       [](ShellOptions& options) {
         options.edits = options.overlay = true;
         options.assembly = workbench::AssemblyForm::sass;
         options.tab = Tab::kernel;
       },
       [](Stage& stage) {
         answer_assembly(stage);
         stage.draw({1440, 900});
         press(stage, {Key::find_text, Key::escape});
         stage.shell.press({ui::EditorKey::escape});
         stage.shell.type(U'x');
       },
       false},
      {"assembly that is not to be had", nothing,
       [](Stage& stage) {
         press(stage, {Key::s});
         stage.lab.updates.push_back(
             {stage.lab.assembly_ticket(),
              LabFailure{
                  "there is no nvcc here, which makes PTX and SASS; install the CUDA Toolkit "
                  "(Debian: apt-get install nvidia-cuda-toolkit), or name its nvcc by "
                  "TILESTEP_NVCC",
                  ExitCode::unavailable}});
       }},
      {"reader at a stop", reader,
       [](Stage& stage) {
         press(stage, {Key::bracket_right, Key::bracket_right});
       },
       false},
      {"glossary", nothing, [](Stage& stage) { press(stage, {Key::g}); }},
      {"glossary beside the text", reader, [](Stage& stage) { press(stage, {Key::g}); }},
      {"message", nothing,
       [](Stage& stage) {
         stage.shell.say(
             "Saved to /home/somebody/Documents/online-softmax-2026-05-12.tilestep.json");
       }},
      {"failure", nothing,
       [](Stage& stage) {
         stage.lab.updates.push_back(
             {stage.lab.requests.size(), LabFailure{"the worker stopped while it ran the kernel",
                                                    ExitCode::unavailable, true}});
       },
       false},
      {"refused", nothing,
       [](Stage& stage) {
         LabFailure refused{"query is 9, but with queries = 8 the allowed values are 0–7"};
         refused.fix = lab::Fix{"Set query to 0", {{"query", std::int64_t{0}}}};
         stage.lab.updates.push_back({stage.lab.requests.size(), refused});
       },
       false},
      {"the focus with what it says", nothing,
       [](Stage& stage) {
         stage.draw({1440, 900});
         for (int i = 0; i < 12; ++i) stage.shell.key(Key::tab, false);
       }},
  };
  return all;
}

void check_frame(Stage& stage, ImVec2 size, bool reads) {
  const float scale = design_scale(static_cast<int>(size.x), static_cast<int>(size.y), 1);
  stage.shell.context().record_texts(true);
  stage.draw(size, scale);
  stage.draw(size, scale);  // what scrolls has learnt its length
  stage.draw(size, scale);  // and what has scrolled into sight is laid out
  const std::string faults = contract::layout_faults(stage.shell.context());
  INFO(faults);
  CHECK(faults.empty());
  if (!reads) return;
  int checked = 0;
  const std::string faint = contract::contrast_faults(stage.shell.context(), checked);
  INFO(faint);
  CHECK(faint.empty());
  CHECK(checked > 0);
}

/// Each scenario in each look; lessons, sizes and themes take turns where `all` says so.
void sweep(const Scenario& scenario, const std::string& lesson) {
  int turn = 0;
  for (const float text_scale : {1.0f, 1.5f, 2.0f}) {
    for (const bool presenter : {false, true}) {
      for (const ImVec2 size : kSwept) {
        ShellOptions options;
        options.lesson = lesson;
        options.presenter = presenter;
        options.text_scale = text_scale;
        options.theme = turn++ % 2 == 0 ? ui::ThemeKind::dark : ui::ThemeKind::light;
        scenario.options(options);
        Stage stage(options);
        const bool fails = std::string_view(scenario.name) == "failure";
        if (!fails) stage.lab.answer();
        stage.draw(size, design_scale(static_cast<int>(size.x), static_cast<int>(size.y), 1));
        scenario.enter(stage);
        INFO(fmt::format("{}: {}, {}x{}, text {}, {}, {}", lesson, scenario.name, size.x, size.y,
                         text_scale, presenter ? "presenter" : "window",
                         options.theme == ui::ThemeKind::dark ? "dark" : "light"));
        check_frame(stage, size, scenario.reads);
      }
    }
  }
}

/// The share of a screen that a part has.
float share_of(const nlohmann::json& part, ImVec2 screen) {
  const auto raw = part["raw"].get<std::vector<float>>();
  return raw[2] * raw[3] / (screen.x * screen.y);
}

}  // namespace

TEST_CASE("what lies over the window holds together at every size and look", "[ui_sweep]") {
  const auto& lessons = tilestep::lessons();
  tests::Part part("scenarios", 5);
  std::size_t turn = 0;  // of what is left out too: a scenario keeps its lesson
  for (const Scenario& scenario : scenarios()) {
    const lab::Lesson* lesson = lessons[turn++ % lessons.size()];
    if (!part.skips()) sweep(scenario, lesson->info().id);
  }
}

TEST_CASE("the questions of every lesson hold together at every size and look", "[ui_sweep]") {
  for (const Scenario& scenario : scenarios()) {
    if (std::string_view(scenario.name) != "question") continue;
    tests::Part part("questions", 5);
    for (const lab::Lesson* lesson : tilestep::lessons()) {
      if (!part.skips()) sweep(scenario, lesson->info().id);
    }
  }
}

TEST_CASE("the tour of the window holds together at every size and look", "[ui_sweep]") {
  for (const float text_scale : {1.0f, 1.5f, 2.0f}) {
    for (const ImVec2 size : kSwept) {
      ShellOptions options;
      options.first_start = true;
      options.text_scale = text_scale;
      options.theme = text_scale > 1 ? ui::ThemeKind::light : ui::ThemeKind::dark;
      Stage stage(options);
      stage.lab.answer();
      {
        INFO(fmt::format("home, {}x{}, text {}", size.x, size.y, text_scale));
        check_frame(stage, size, true);
      }
      stage.frame();
      stage.click("coach_begin");
      for (int stop = 0; stop < 7; ++stop) {
        INFO(fmt::format("stop {}, {}x{}, text {}", stop, size.x, size.y, text_scale));
        check_frame(stage, size, true);
        stage.shell.key(Key::enter, false);
      }
    }
  }
}

TEST_CASE("text stands out from what it is drawn on, in every lesson and both themes",
          "[ui_sweep]") {
  tests::Part part("contrast", 9);
  for (const lab::Lesson* lesson : tilestep::lessons()) {
    for (const ui::ThemeKind theme : {ui::ThemeKind::dark, ui::ThemeKind::light}) {
      for (const bool presenter : {false, true}) {
        if (part.skips()) continue;
        ShellOptions options;
        options.lesson = lesson->info().id;
        options.theme = theme;
        options.presenter = presenter;
        Stage stage(options);
        stage.lab.answer();
        stage.draw({1440, 900});
        for (const Key step : {Key::home, Key::right, Key::right, Key::end}) {
          stage.shell.key(step, false);
          for (const Key tab : {Key::d, Key::m, Key::k, Key::l}) {
            stage.shell.key(tab, false);
            INFO(fmt::format("{}, {}, {}, step {}, tab {}", lesson->info().id,
                             theme == ui::ThemeKind::dark ? "dark" : "light",
                             presenter ? "presenter" : "desk", stage.shell.step(),
                             static_cast<int>(tab)));
            stage.shell.context().record_texts(true);
            stage.draw({1440, 900});
            stage.draw({1440, 900});
            int checked = 0;
            const std::string faint = contract::contrast_faults(stage.shell.context(), checked);
            INFO(faint);
            CHECK(faint.empty());
            CHECK(checked > 10);
            if (tab == Key::l) stage.shell.key(Key::l, false);
          }
        }
      }
    }
  }
}

TEST_CASE("on a stage the picture has 70 % of the screen", "[ui_sweep]") {
  for (const lab::Lesson* lesson : tilestep::lessons()) {
    for (const ImVec2 size : {ImVec2(1280, 720), ImVec2(1920, 1080)}) {
      ShellOptions options;
      options.lesson = lesson->info().id;
      options.presenter = true;
      Stage stage(options);
      stage.lab.answer();
      stage.draw(size, design_scale(static_cast<int>(size.x), static_cast<int>(size.y), 1));
      CAPTURE(options.lesson, size.x, size.y);
      CHECK(share_of(stage.part("picture"), size) >= 0.7f);
      CHECK(stage.shell.context().fonts().pixels(ui::Font::note) >= 20);
    }
  }
}
