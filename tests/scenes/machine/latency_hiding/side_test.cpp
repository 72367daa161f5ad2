// What stands beside the bars of the lesson on latency hiding, its questions and its words.
#include "scenes/shared/words.hpp"
#include "tests/scenes/machine/latency_hiding/clocked.hpp"

using namespace tilestep;
using namespace tilestep::tests;

TEST_CASE("Latency hiding: results are the recording's, and stand beside no step before the fourth",
          "[latency_hiding_scene]") {
  const lab::Recording* recording = lab::recording("latency-hiding");
  if (recording == nullptr) return;
  const auto lengths = [](const LatencyHidingScene& scene, int step) {
    const Picture picture = picture_at(scene, step);
    const auto all = marks_named<Spans>(picture, "result");
    REQUIRE(all.size() == 1);
    return all[0]->end;
  };
  const auto recorded_mean = [](const char* ilp) {
    const lab::Report& report = tests::report_of(
        "latency-hiding", of("fma", {{"warps_per_sm", whole(4)}, {"ilp", whole(ilp[0] - '0')}}));
    const lab::Table& probes = *report.table("probes");
    double sum = 0;
    for (std::size_t row = 0; row < probes.rows.size(); ++row) {
      sum += *scenes::number_in(probes, row, "latency");
    }
    return sum / static_cast<double>(probes.rows.size());
  };
  const LatencyHidingScene fma =
      scene_of(of("fma", {{"warps_per_sm", whole(4)}, {"ilp", whole(1)}}));
  CHECK(lengths(fma, 3).empty());
  const std::vector<double> two = lengths(fma, 4);
  REQUIRE(two.size() == 2);
  CHECK(std::abs(two[0] - recorded_mean("1")) < 1);
  CHECK(std::abs(two[1] - recorded_mean("4")) < 1);
  CHECK(two[1] < 1.1 * two[0]);  // four times the multiply-adds
  const LatencyHidingScene spill =
      scene_of(of("spill", {{"warps_per_sm", whole(64)}, {"max_registers", std::string("32")}}));
  const lab::Table& registers = *recording->bench.table("registers");
  const std::vector<double> eight = lengths(spill, 16);
  REQUIRE(eight.size() == registers.rows.size());
  for (std::size_t row = 0; row < eight.size(); ++row) {
    CHECK(eight[row] == scenes::number_in(registers, row, "time"));
  }
}

TEST_CASE("Latency hiding: the dot on Little's curve is what was measured of these knobs",
          "[latency_hiding_scene]") {
  const lab::Recording* recording = lab::recording("latency-hiding");
  if (recording == nullptr) return;
  const lab::Table& table = *recording->bench.table("bytes_in_flight");
  const std::vector<std::pair<lab::Settings, std::array<const char*, 3>>> cases = {
      {{}, {"16", "4", "16"}},
      {{{"break", std::string("serialize-loads")}}, {"16", "1", "16"}},
      {{{"loads_in_flight", std::string("1")}, {"bytes_per_load", std::string("4")}},
       {"4", "1", "16"}},
      {of("bulk-copy"), {"bulk", "4", "16"}}};
  for (const auto& [settings, row] : cases) {
    const LatencyHidingScene scene = scene_of(settings);
    const Picture before = picture_at(scene, 0);
    CHECK(mark_of<Curve>(before, "here") == nullptr);  // it is asked there
    const Picture picture = picture_at(scene, 8);
    const Curve* here = mark_of<Curve>(picture, "here");
    REQUIRE(here != nullptr);
    const auto found =
        scenes::row_with(table, {{"kind", row[0]}, {"loads", row[1]}, {"warps_per_sm", row[2]}});
    REQUIRE(found);
    CHECK(here->x[0] == scenes::number_in(table, *found, "in_flight"));
    CHECK(here->y[0] == scenes::number_in(table, *found, "bandwidth"));
    // What a loaded memory needs is where the curve comes to nine tenths of its most; an idle one's is far below.
    const Curve *curve = mark_of<Curve>(picture, "bench_curve"),
                *idle = mark_of<Curve>(picture, "need_idle"),
                *loaded = mark_of<Curve>(picture, "need_loaded");
    const auto after = std::lower_bound(curve->x.begin(), curve->x.end(), loaded->x[0]);
    REQUIRE(after != curve->x.end());
    const auto place = static_cast<std::size_t>(after - curve->x.begin());
    CHECK(curve->y[place] > 0.95 * loaded->y[0]);
    CHECK(curve->y[place - 2] < loaded->y[0]);
    CHECK(idle->x[0] < 0.5 * loaded->x[0]);
  }
}

TEST_CASE("Latency hiding: limits are the calculator's, and the one that binds is framed",
          "[latency_hiding_scene]") {
  for (const char* block : {"32", "128", "512"}) {
    for (const int warps : {16, 32}) {
      const LatencyHidingScene scene =
          scene_of({{"block", std::string(block)}, {"warps_per_sm", whole(warps)}}, true);
      const latency_hiding::Occupancy all = scene.trace().occupancy();
      const Picture picture = picture_at(scene, 0);
      const auto bars = marks_named<Bars>(picture, "limit");
      REQUIRE(bars.size() == 1);
      for (std::size_t i = 0; i < latency_hiding::kLimits; ++i) {
        CAPTURE(block, warps, i);
        CHECK(bars[0]->items.value[i] ==
              static_cast<float>(
                  std::min<std::int64_t>(std::int64_t{all.blocks[i]} * all.warps_allocated, 64)));
        CHECK(((bars[0]->items.flags[i] & picture::kPicked) != 0) ==
              (i == static_cast<std::size_t>(all.binding)));
      }
      CHECK(readout(scene, "occupancy", 0) == fmt::format("{:.0f} %", 100.0 * all.warps / 64));
    }
  }
}

TEST_CASE("Latency hiding: of a kernel that no GPU ran, its compiler's limit is said or nothing",
          "[latency_hiding_scene]") {
  LatencyHidingScene spilling;
  spilling.load(
      tests::report_of("latency-hiding", {{"seed", whole(7)}, {"kernel", std::string("spill")}}));
  CHECK(readout(spilling, "registers", 0) == "128");
  CHECK(readout(spilling, "occupancy", 0) == "25 %");
  lab::Report report = tests::report_of("latency-hiding",
                                        {{"seed", whole(7)}, {"kernel", std::string("bulk-copy")}});
  Trace trace = latency_hiding::trace_from_json(report.trace);
  trace.machine.compiled = {};
  report.trace = latency_hiding::to_json(trace);
  LatencyHidingScene scene;
  scene.load(report);
  const Picture picture = picture_at(scene, 0);
  const auto bars = marks_named<Bars>(picture, "limit");
  REQUIRE(bars.size() == 1);
  CHECK(std::isnan(bars[0]->items.value[1]));
  CHECK(scene.explain({Cursor{0, 0}}, {"limit", 1}).find("known once") != std::string::npos);
  CHECK(readout(scene, "registers", 0) == "–");
}

TEST_CASE("Latency hiding: lanes that voted run, and no arm is shown ahead",
          "[latency_hiding_scene]") {
  const LatencyHidingScene scene =
      scene_of(of("diverge", {{"divergence", std::string("8")}}), true);
  const Trace& trace = scene.trace();
  REQUIRE(trace.arms.size() == 8);
  for (int step = 0; step <= trace.steps(); ++step) {
    const auto known = known_at(trace, step);
    const Picture picture = picture_at(scene, step);
    const auto cells = marks_named<Cells>(picture, "vote");
    REQUIRE(cells.size() == 1);
    for (int arm = 0; arm < 8; ++arm) {
      for (int lane = 0; lane < 32; ++lane) {
        const bool votes = (trace.arms[static_cast<std::size_t>(arm)].voted >> lane & 1u) != 0;
        const bool shown = known.count({0, arm}) > 0;
        const auto at = static_cast<std::size_t>(arm * 32 + lane);
        CHECK((cells[0]->items.glyph[at] == picture::kSolid) == (votes && shown));
      }
    }
  }
}

TEST_CASE("Latency hiding: questions have their answers from the trace", "[latency_hiding_scene]") {
  const LatencyHidingScene copy = scene_of({}, true);
  const auto bytes = asked(copy, "bytes-asked");
  REQUIRE(bytes);
  CHECK(scenes::answer_text(*bytes) == "32");
  const auto use = asked(copy, "first-use");
  REQUIRE(use);
  for (const Event& event : copy.trace().machine.events) {
    if (event.row == 0 && event.number == 0 && event.what == What::use) {
      const auto after = event.clock - zero_of(copy.trace(), 4, {0, 0});
      CHECK(use->values == std::vector<double>{static_cast<double>(after)});
    }
  }
  const auto twice = asked(copy, "twice-the-registers");
  REQUIRE(twice);
  latency_hiding::Demand demand = copy.trace().demand();
  demand.registers *= 2;
  const latency_hiding::Occupancy all = latency_hiding::occupancy_of(demand);
  CHECK(scenes::answer_text(*twice) ==
        std::to_string(std::min(64, all.blocks[1] * all.warps_allocated)));
  const auto limit = asked(copy, "block-limit");
  REQUIRE(limit);
  CHECK(scenes::answer_text(*limit) == "32");
  const LatencyHidingScene chain =
      scene_of(of("fma", {{"warps_per_sm", whole(4)}, {"ilp", whole(1)}}));
  if (const auto chains = asked(chain, "four-chains")) {
    CHECK(scenes::answer_text(*chains) == "About as long");
  }
  const auto eligible = asked(copy, "eligible");
  REQUIRE(eligible);

  const LatencyHidingScene serialized = scene_of({{"break", std::string("serialize-loads")}}, true);
  CHECK(scenes::answer_text(*asked(serialized, "bytes-asked")) == "8");
  const LatencyHidingScene branch =
      scene_of(of("diverge", {{"divergence", std::string("4")}}), true);
  CHECK(scenes::answer_text(*asked(branch, "arm-lanes")) == "8");
  const LatencyHidingScene tail = scene_of(of("tail", {{"block", std::string("256")}}), true);
  const Trace& trace = tail.trace();
  const int fit = trace.multiprocessors * std::max(trace.occupancy().resident, 1);
  CHECK(scenes::answer_text(*asked(tail, "waves")) ==
        std::to_string((trace.blocks + fit - 1) / fit));
}

TEST_CASE("Latency hiding: without clocks nobody is asked for a time", "[latency_hiding_scene]") {
  for (const lab::Settings& settings : kRuns) {
    const LatencyHidingScene scene = scene_of(settings);
    if (scene.trace().machine.has_clocks()) continue;
    CHECK_FALSE(asked(scene, "first-use"));
    CHECK(readout(scene, "latency", scene.trace().steps()) == "–");
    for (int step = 0; step <= scene.trace().steps(); ++step) {
      const Picture picture = picture_at(scene, step);
      CHECK(picture::plain(picture.headline.full).find("cycles") == std::string::npos);
    }
  }
}

TEST_CASE("Latency hiding: the picture says whose clocks it shows", "[latency_hiding_scene]") {
  const auto label = [](const LatencyHidingScene& scene) {
    const Picture picture = picture_at(scene, 1);
    for (const picture::Box& box : picture.root.boxes[0].boxes) {
      if (box.key.name == picture::Name("one_warp")) return picture::plain(box.label.full);
    }
    return std::string();
  };
  lab::Report report = with_clocks(tests::report_of("latency-hiding"));
  Trace trace = latency_hiding::trace_from_json(report.trace);
  trace.machine.recorded_at = "2026-11-24";
  report.trace = latency_hiding::to_json(trace);
  LatencyHidingScene scene;
  scene.load(report);
  CHECK(label(scene).find("recorded on NVIDIA H200, 2026-11-24") != std::string::npos);
  for (const scenes::Readout& each : scene.readouts({Cursor{1, 0}})) {
    if (each.id != "latency") continue;
    CHECK(each.detail.find("recorded on NVIDIA H200, 2026-11-24") != std::string::npos);
  }
  trace.machine.recorded_at.clear();
  report.trace = latency_hiding::to_json(trace);
  scene.load(report);
  CHECK(label(scene).find("clocks of NVIDIA H200") != std::string::npos);
  trace.machine.unit = "turns";
  report.trace = latency_hiding::to_json(trace);
  scene.load(report);
  CHECK(label(scene).find("no clocks") != std::string::npos);
}

TEST_CASE("Latency hiding: what was counted is shown at the end, not before",
          "[latency_hiding_scene]") {
  const LatencyHidingScene scene = scene_of({}, true);
  const int steps = scene.trace().steps();
  const auto counted = [&](int step) {
    std::map<std::string, double> all;
    const picture::Extent extent = scene.extent();
    const auto lanes = std::find_if(extent.axes.begin(), extent.axes.end(), [](const auto& axis) {
      return axis.name == picture::Name("count_lane");
    });
    const Picture picture = picture_at(scene, step);
    for (const Spans* spans : marks_named<Spans>(picture, "count")) {
      for (std::size_t k = 0; k < spans->end.size(); ++k) all[lanes->names[k]] = spans->end[k];
    }
    return all;
  };
  CHECK(counted(steps - 1).empty());
  const auto& all = scene.trace().machine.counted;
  REQUIRE_FALSE(all.empty());
  for (const auto& [metric, name] :
       {std::pair("smsp__warps_active", "active"), std::pair("smsp__warps_eligible", "eligible")}) {
    const auto one = std::find_if(all.begin(), all.end(),
                                  [prefix = metric](const latency_hiding::Counted& each) {
                                    return each.metric.starts_with(prefix);
                                  });
    REQUIRE(one != all.end());
    CAPTURE(metric);
    CHECK(counted(steps).at(name) == one->value);
  }
  CHECK(scene.explain({Cursor{steps, 0}}, {"count", 0}).find("smsp__warps_eligible") !=
        std::string::npos);
}
