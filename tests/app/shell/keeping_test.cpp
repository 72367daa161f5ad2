// What the window keeps, and how it comes back: without a window, with the real lessons.
#include <stdlib.h>

#include <cstdlib>
#include <fstream>

#include "app/keep/capsule.hpp"
#include "app/keep/place.hpp"
#include "app/window/keeper.hpp"
#include "kernels/catalog.hpp"
#include "scenes/ui/context.hpp"
#include "tests/app/child.hpp"
#include "tests/app/shell/stage.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::app;
using tests::Stage;

namespace {

ShellOptions opening(std::string_view lesson, lab::Settings settings = {}, int step = 0) {
  ShellOptions options;
  options.lesson = lesson;
  options.settings = std::move(settings);
  options.step = step;
  return options;
}

ShellOptions showing(Capsule capsule) {
  ShellOptions options;
  options.capsule = std::make_shared<const Capsule>(std::move(capsule));
  return options;
}

}  // namespace

TEST_CASE("a capsule brings back what was on show, and runs nothing", "[ui_shell]") {
  tests::Part part("capsules", 3);
  for (const lab::Lesson* lesson : lessons()) {
    if (part.skips()) continue;
    INFO(lesson->info().id);
    Stage first(opening(lesson->info().id, {}, 2));
    first.lab.answer();
    first.frame();
    first.shell.key(Key::left, false);
    first.frame();
    const Capsule capsule = first.shell.capsule();

    Stage second(showing(capsule_from_text(capsule_text(capsule), "it")));
    second.frame();
    CHECK(second.lab.requests.empty());
    CHECK(second.map()["lesson"] == first.map()["lesson"]);
    CHECK(second.map()["step"] == first.map()["step"]);
    CHECK_FALSE(second.has("progress"));
    CHECK(second.part("device")["label"].get<std::string>().starts_with("Capsule of "));
    CHECK((second.shell.picture_svg() == first.shell.picture_svg()));
    CHECK(second.shell.link() == first.shell.link());
    // Dropped on a window that shows something else.
    Stage third(opening(lesson->info().id == "tiling" ? "coalescing" : "tiling"));
    third.lab.answer();
    third.frame();
    third.shell.open(capsule);
    const std::size_t asked = third.lab.requests.size();
    third.frame();
    CHECK(third.lab.requests.size() == asked);
    CHECK((third.shell.picture_svg() == first.shell.picture_svg()));
  }
}

TEST_CASE("a turned knob runs the lesson, and the capsule is left behind", "[ui_shell]") {
  Capsule capsule = capsule_of(tests::report_of("coalescing", {{"stride", std::int64_t{4}}}));
  capsule.report.device.backend = "cuda";
  capsule.report.device.name = "Some GPU";
  ShellOptions options = showing(std::move(capsule));
  options.tab = Tab::measured;
  Stage stage(options);
  stage.frame();
  CHECK(stage.lab.requests.empty());
  CHECK(stage.part("device")["label"].get<std::string>().ends_with("· Some GPU"));
  CHECK_FALSE(stage.has("measure"));  // that GPU is not here
  stage.shell.set_knobs({{"stride", std::int64_t{8}}});
  stage.frame();
  REQUIRE(stage.lab.requests.size() == 1);
  CHECK(stage.lab.requests[0].params.at("stride") == lab::KnobValue(std::int64_t{8}));
  stage.lab.answer();
  stage.frame();
  CHECK_FALSE(stage.part("device")["label"].get<std::string>().starts_with("Capsule"));
}

TEST_CASE("before the first report there is nothing to keep, and a sentence says so",
          "[ui_shell]") {
  const Stage stage;
  CHECK_THROWS_AS(stage.shell.capsule(), Error);
  CHECK_THROWS_AS(stage.shell.table_on_show(TableForm::csv), Error);
}

TEST_CASE("a phase is found by name and by number, and one that is none is a complaint",
          "[ui_shell]") {
  const auto svg_at = [](const char* phase) {
    ShellOptions options = opening("online-softmax", {}, 2);
    options.phase = phase;
    Stage stage(options);
    stage.lab.answer();
    stage.frame();
    return std::pair{stage.shell.picture_svg(), stage.shell.complaint()};
  };
  CHECK((svg_at("rescale") == svg_at("1")));
  CHECK((svg_at("rescale").first != svg_at("").first));
  CHECK((svg_at("accumulate") == svg_at("")));
  CHECK(svg_at("rescale").second.empty());
  for (const char* none : {"4", "-1", "Rescale", "x"}) {
    INFO(none);
    CHECK(svg_at(none).second.find("maximum, rescale, weights, accumulate") != std::string::npos);
    CHECK((svg_at(none).first == svg_at("").first));
  }
}

TEST_CASE("what is said stands on screen and goes again", "[ui_shell]") {
  Stage stage;
  stage.lab.answer();
  stage.frame();
  CHECK_FALSE(stage.shell.update_due_s());
  stage.shell.say("Saved to /somewhere/a.json");
  stage.frame();
  CHECK(stage.part("message")["value"] == "Saved to /somewhere/a.json");
  REQUIRE(stage.shell.update_due_s());
  CHECK(*stage.shell.update_due_s() > 1);
  CHECK(*stage.shell.update_due_s() < 10);
}

TEST_CASE("settings are those of the last time but for what was changed in the window",
          "[ui_shell]") {
  ShellOptions options = opening("coalescing", {{"stride", std::int64_t{4}}}, 1);
  options.kept.text_scale = 1.5;
  options.kept.tour_seen = true;
  options.kept.speed = 2;
  options.theme = ui::ThemeKind::light;  // by a flag, for once
  Stage stage(options);
  stage.lab.answer();
  stage.frame();
  KeptSettings kept = stage.shell.settings();
  CHECK_FALSE(kept.light);
  CHECK(kept.text_scale == 1.5);
  CHECK(kept.tour_seen);
  CHECK(kept.speed == 2);
  REQUIRE(kept.last);
  CHECK(kept.last->lesson == "coalescing");
  CHECK(kept.last->step == 1);
  CHECK(kept.last->settings.at("stride") == lab::KnobValue(std::int64_t{4}));
  stage.shell.key(Key::t, false);
  stage.shell.key(Key::t, false);
  stage.shell.key(Key::down, false);
  kept = stage.shell.settings();
  CHECK_FALSE(kept.light);
  CHECK(kept.last->lesson != "coalescing");
}

namespace {

/// A home of its own for what is saved.
struct Home {
  Home() {
    if (const char* home = std::getenv("HOME")) before = home;
    ::setenv("HOME", folder.path().c_str(), 1);
    std::filesystem::create_directory(folder.path() / "Documents");
  }
  ~Home() { ::setenv("HOME", before.c_str(), 1); }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  std::string file(const std::string& stem, const std::string& ending) const {
    return (folder.path() / "Documents" / (stem + "-" + day_of_today() + "-1" + ending)).string();
  }

  tests::TemporaryFolder folder;
  std::string before;
};

}  // namespace

TEST_CASE("what is asked to be kept is saved or copied, and said", "[ui_shell]") {
  const Home home;
  Stage stage(opening("online-softmax", {}, 1));
  stage.lab.answer();
  stage.frame();
  const auto said_of = [&](Keep what) {
    stage.shell.keep(what);
    const auto request = stage.shell.take_keep();
    REQUIRE(request);
    CHECK_FALSE(stage.shell.take_keep());
    keep(stage.shell, *request, {});
    stage.frame();
    return stage.part("message")["value"].get<std::string>();
  };
  const std::string capsule = home.file("online-softmax", ".tilestep.json");
  CHECK(said_of(Keep::capsule) == "Saved to " + capsule);
  CHECK(read_capsule(capsule).step == 1);
  const std::string csv = home.file("online-softmax-tiles", ".csv");
  CHECK(said_of(Keep::table_csv) == "Saved to " + csv);
  CHECK(tests::file_text(csv) == stage.shell.table_on_show(TableForm::csv));
  // Only the first of four rows is known after one step.
  CHECK(tests::file_text(csv).find("\n1,,") != std::string::npos);
  CHECK(said_of(Keep::table_json).ends_with(".json"));
  CHECK(said_of(Keep::table_copy).starts_with("Copied the table 'tiles'"));
  CHECK(ImGui::GetClipboardText() == stage.shell.table_on_show(TableForm::tsv));
  CHECK(said_of(Keep::link) == "Copied tilestep open online-softmax --step 1");
  CHECK(std::string(ImGui::GetClipboardText()) == "tilestep open online-softmax --step 1");
  const std::string svg = home.file("online-softmax", ".svg");
  CHECK(said_of(Keep::picture_svg) == "Saved to " + svg);
  CHECK(tests::file_text(svg).find("<svg") != std::string::npos);

  std::filesystem::remove_all(home.folder.path() / "Documents");
  std::ofstream(home.folder.path() / "Documents") << "no folder";
  // Then it is the folder that the program was started in, where tests write nothing.
  CHECK(documents_folder() == std::filesystem::current_path());
}

TEST_CASE("a dropped file is opened, or a sentence says why not", "[ui_shell]") {
  const Home home;
  Stage stage(opening("tiling"));
  stage.lab.answer();
  stage.frame();
  const std::string file = home.file("a", ".tilestep.json");
  const auto said_of_drop = [&] {
    open_capsule(stage.shell, file);
    stage.frame();
    return stage.part("message")["value"].get<std::string>();
  };
  CHECK(said_of_drop().starts_with("Not opened: the file '" + file + "' cannot be read"));
  CHECK(stage.map()["lesson"] == "tiling");
  std::ofstream(file) << "{";
  CHECK(said_of_drop().find("cut off") != std::string::npos);
  write_capsule(file, capsule_of(tests::report_of("coalescing")), true);
  CHECK(said_of_drop().starts_with("Opened " + file));
  CHECK(stage.map()["lesson"] == "coalescing");
}
