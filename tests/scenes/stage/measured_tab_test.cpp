#include "scenes/stage/measured_tab.hpp"

#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/recording.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/scene.hpp"
#include "scenes/stage/measured_plots.hpp"
#include "tests/catch.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using namespace tilestep::scenes;
using tests::Parts;

namespace {

/// Eight rungs at two sizes with the library beside them, one of them unsteady, and errors of which
/// some are 0.
lab::Report bench() {
  lab::Report bench;
  bench.device.name = "a GPU of the test";
  lab::Table ladder{"ladder",
                    "The ladder",
                    {{"rung", "rung", "", -1},
                     {"size", "size", "", 0},
                     {"rate", "rate", "GB/s", 0},
                     {"p10", "p10", "", 0},
                     {"p90", "p90", "", 0},
                     {"fraction", "of copy", "", 3}},
                    {}};
  for (const double size : {8192.0, 1024.0}) {
    for (int i = 0; i < 8; ++i) {
      const double rate = size / 100 * (i + 1);
      const double spread = i == 3 ? 0.2 : 0.01;
      ladder.rows.push_back({"rung " + std::to_string(i), size, rate, rate * (1 - spread), rate,
                             static_cast<double>(i + 1) / 10});
    }
    ladder.rows.push_back(
        {std::string("cuBLAS 13"), size, size / 10, lab::Cell(), lab::Cell(), 1.0});
  }
  lab::Table errors{"errors",
                    "",
                    {{"k", "K", "", 0}, {"coarse", "", "", -1}, {"exact", "", "", -1}},
                    {{256.0, 0.1, 0.0}, {512.0, 0.2, 0.0}}};
  bench.tables = {ladder, errors};
  return bench;
}

measured::Spec spec() {
  using namespace measured;
  return {"ladder",
          {{.name = "Ladder",
            .how = "size {size}",
            .filters = {{"size", "size", "{}³"}},
            .plots = {Bars{.id = "bars",
                           .title = "Rungs of {size}",
                           .unit = "GB/s",
                           .rows = {.table = "ladder"},
                           .label = "rung",
                           .value = "rate",
                           .of = "copy"},
                      Lines{.id = "lines",
                            .x_label = "size",
                            .y_label = "GB/s",
                            .rows = {.table = "ladder"},
                            .x = "size",
                            .series = "rung",
                            .y = "rate"}}},
           {.name = "Errors",
            .plots = {Lines{.id = "errors",
                            .x_label = "K",
                            .y_label = "%",
                            .y_log = true,
                            .rows = {.table = "errors"},
                            .x = "k",
                            .curves = {{"coarse", "coarse"}, {"exact", "exact"}}}},
            .needs = "errors"},
           {.name = "Not yet recorded",
            .plots = {Bars{.id = "new", .rows = {.table = "new"}, .label = "k", .value = "k"}},
            .needs = "new"},
           {.name = "Counters",
            .plots = {Bars{.id = "counters", .rows = {.table = "counters"}}},
            .needs = "counters",
            .missing = kNoCounters}}};
}

class Shown {
 public:
  Parts draw(ImVec2 size) {
    return frame_.draw(size, [&] { tab_.draw(spec(), report, "no lesson"); });
  }
  Parts press(const std::string& id, ImVec2 size) {
    return frame_.click(id, size, [&] { tab_.draw(spec(), report, "no lesson"); });
  }
  tests::SceneFrame& frame() { return frame_; }

  lab::Report report = bench();

 private:
  tests::SceneFrame frame_;
  measured::Tab tab_;
};

}  // namespace

TEST_CASE("a filter holds for all plots, and keeps its choice", "[scenes_shared]") {
  Shown shown;
  const ImVec2 size(1200, 600);
  Parts parts = shown.draw(size);
  CHECK(parts.at("size_0").value == "selected");
  CHECK(parts.at("bars_0").value == "81.9 GB/s");
  CHECK(parts.at("where_measured").label == "measured on a GPU of the test; size 8192");
  parts = shown.press("size_1", size);
  CHECK(parts.at("bars_0").value == "10.2 GB/s");
  CHECK(parts.at("where_measured").label == "measured on a GPU of the test; size 1024");
  lab::Report quick = bench();
  lab::leave_out(quick, {"the rest"});
  CHECK(measured::where_measured(quick) == "measured on a GPU of the test, quick: one short round");
  shown.press("measured_view_1", size);
  CHECK(shown.press("measured_view_0", size).at("size_1").value == "selected");
}

TEST_CASE("a run's own table is no measurement, whatever it is called", "[scenes_shared]") {
  lab::Report run = bench();
  CHECK(measured::bench_of(run, "no lesson", "ladder") == &run);
  run.trace = nlohmann::json::object();
  CHECK(measured::bench_of(run, "no lesson", "ladder") == nullptr);
  CHECK(measured::bench_of(run, "no lesson", "ladder", true) == &run);
}

TEST_CASE("the library is a roof over the bars and a curve beside the lines", "[scenes_shared]") {
  Shown shown;
  const Parts parts = shown.draw({1200, 600});
  CHECK(parts.count("bars_7") == 1);
  CHECK(parts.count("bars_8") == 0);
  CHECK(parts.at("lines").value == "9 curves");
}

TEST_CASE("a curve that a log axis cannot show is named", "[scenes_shared]") {
  Shown shown;
  const Parts parts = shown.press("measured_view_1", {1200, 600});
  CHECK(parts.at("errors").value == "1 curves");
  CHECK(parts.at("where_measured").label.find("0 throughout: exact") != std::string::npos);
}

TEST_CASE("bars are legible in a small window and with large text", "[scenes_shared]") {
  for (const float scale : {1.0f, 2.0f}) {
    Shown shown;
    shown.frame().look().text_scale = scale;
    const Parts parts = shown.draw({900, 300});
    REQUIRE(parts.count("bars_0") == 1);
    REQUIRE(parts.count("bars_1") == 1);
    CHECK(parts.at("bars_1").min.y - parts.at("bars_0").min.y >= 20 * scale - 1);
  }
}

TEST_CASE("a view whose table is missing is not there, or says what to do", "[scenes_shared]") {
  Shown shown;
  Parts parts = shown.press("measured_view_2", {800, 400});
  CHECK(parts.at("measured_view_2").label == "Counters");
  CHECK(parts.at("measured_view_2").value == "selected");
  CHECK(parts.count("measured_view_3") == 0);
  CHECK(parts.count("counters_0") == 0);

  // With its table the view is there, and the chosen one stays chosen.
  shown.report.tables.push_back({"new", "New", {{"k", "K", "", 0}}, {{1.0}}});
  parts = shown.draw({800, 400});
  CHECK(parts.at("measured_view_2").label == "Not yet recorded");
  CHECK(parts.at("measured_view_3").value == "selected");
  CHECK(shown.press("measured_view_2", {800, 400}).count("new_0") == 1);
  // Without it again, the first is chosen.
  shown.report.tables.pop_back();
  CHECK(shown.draw({800, 400}).at("measured_view_0").value == "selected");
  // Where nothing was measured at all, the tab says so, and no view is lost.
  shown.report.tables.clear();
  parts = shown.draw({800, 400});
  CHECK(parts.at("measured_view_1").label == "Counters");
}

TEST_CASE("words are filled in from a row", "[scenes_shared]") {
  const lab::Report report = bench();
  CHECK(filled_in("{rung} at {size}³", report.tables[0], 1) == "rung 1 at 8192³");
  CHECK(filled_in("{size|row}", report.tables[0]) == "8192 rows");
  CHECK(filled_in("{k|read} an element", {"", "", {{"k", "", "", 0}}, {{1.0}}}) ==
        "1 read an element");
  CHECK(filled_in("{rung|row}", report.tables[0]) == "rung 0");
  CHECK(filled_in("no braces", report.tables[0]) == "no braces");
  CHECK(filled_in("{unknown}.", report.tables[0]) == ".");
}

TEST_CASE("every lesson's recorded bench has what its views need", "[scenes_shared]") {
  for (const auto& scene : make_scenes()) {
    const lab::Recording* recording = lab::recording(scene->lesson());
    if (recording == nullptr) continue;
    scene->load(recording->run);
    CAPTURE(std::string(scene->lesson()));
    for (const measured::View& view : scene->measured_spec().views) {
      CAPTURE(view.name);
      const bool there = recording->bench.table(view.needs) != nullptr ||
                         (view.computed && recording->run.table(view.needs) != nullptr);
      CHECK((view.needs.empty() || there));
    }
  }
}

TEST_CASE("what another GPU reached stands beside what was measured here", "[scenes_shared]") {
  using namespace measured;
  const lab::Report here = bench();
  lab::Report there = bench();
  for (auto& row : there.tables[0].rows) row[2] = 2 * std::get<double>(row[2]);
  there.tables[0].rows.erase(there.tables[0].rows.begin());  // it has no "rung 0" of 8192
  const Spec all = spec();
  const Plot& bars = all.views[0].plots[0];
  const Plot& lines = all.views[0].plots[1];
  const auto of_size = [](const lab::Report& report) {
    return rows_where(report.tables[0], "size", "8192");
  };
  const Reference reference{of_size(there), "NVIDIA H200"};
  tests::SceneFrame frame;
  frame.draw({1200, 600}, [&] {
    const auto drawn = drawables(bars, of_size(here), here, &reference);
    REQUIRE(drawn.size() == 1);
    CHECK(drawn[0].looks.reference);
    CHECK(drawn[0].bars.reference == "NVIDIA H200");
    for (const ui::Bar& bar : drawn[0].bars.bars) {
      CAPTURE(bar.label);
      if (bar.label == "rung 0") {
        CHECK(!bar.reference);
      } else {
        CHECK(bar.reference == 2 * bar.value);
      }
    }
    CHECK(drawables(lines, of_size(here), here, &reference)[0].looks.reference);
    CHECK(!drawables(bars, of_size(here), here)[0].looks.reference);
  });
  // A recording has nothing beside it: it would be itself.
  const lab::Recording* recording = lab::recording("tiling");
  REQUIRE(recording != nullptr);
  CHECK(reference_of(recording->bench) == nullptr);
  lab::Report measured_here = recording->bench;
  measured_here.recorded_at.clear();
  CHECK(reference_of(measured_here) == &recording->bench);
}
