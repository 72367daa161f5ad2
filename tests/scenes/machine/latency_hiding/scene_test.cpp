// The picture of the lesson on latency hiding against its trace.
#include "scenes/machine/latency_hiding/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "scenes/shared/questions.hpp"
#include "scenes/shared/words.hpp"
#include "tests/scenes/shown.hpp"

using namespace tilestep;
using latency_hiding::Event, latency_hiding::Moment, latency_hiding::Trace, latency_hiding::What;
using picture::Bars, picture::Cells, picture::Curve, picture::Picture, picture::Spans,
    picture::State;
using scenes::Cursor, scenes::LatencyHidingScene, scenes::Question;

namespace {

std::int64_t whole(int value) {
  return value;
}
lab::Settings of(const char* kernel, lab::Settings more = {}) {
  more["kernel"] = std::string(kernel);
  return more;
}
const std::vector<lab::Settings> kRuns = {
    {},
    {{"loads_in_flight", std::string("1")}, {"bytes_per_load", std::string("4")}},
    {{"break", std::string("serialize-loads")}},
    {{"break", std::string("divergent-branch")}},
    {{"warps_per_sm", whole(1)}, {"block", std::string("32")}},
    of("bulk-copy"),
    of("chase", {{"warps_per_sm", whole(1)}, {"block", std::string("32")}}),
    of("fma", {{"warps_per_sm", whole(4)}}),
    of("spill", {{"warps_per_sm", whole(12)}}),
    of("diverge", {{"divergence", std::string("4")}}),
    of("tail")};

/// A run with the clocks that a GPU might have had: each warp a little later than the one before, each use some
/// hundred cycles behind its turn, every third one twice as long.
lab::Report with_clocks(lab::Report report) {
  Trace trace = latency_hiding::trace_from_json(report.trace);
  latency_hiding::Machine& machine = trace.machine;
  if (machine.counted.empty()) {
    machine.counted = {
        {"smsp__warps_active.avg.per_cycle_active", "", 4, ""},
        {"smsp__warps_eligible.avg.per_cycle_active", "", 0.05, ""},
        {"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "", 70, ""},
        {"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", "", 2, ""}};
  }
  if (machine.has_clocks()) {
    report.trace = latency_hiding::to_json(trace);
    return report;
  }
  machine.unit = trace.kernel == latency_hiding::Kernel::tail ? "ns" : "cycles";
  machine.device = "NVIDIA H200";
  machine.probe_cost = 12;
  machine.compiled.registers = 40;
  constexpr int kTurn = 700, kWarp = 37, kUse = 90;
  for (Event& event : machine.events) {
    const bool use = event.what == What::use;
    event.clock = event.clock * kTurn + event.row * kWarp + (use ? kUse : 0) +
                  (use && event.number % 3 == 0 ? kTurn / 2 : 0);
  }
  std::sort(machine.events.begin(), machine.events.end(),
            [](const Event& a, const Event& b) { return a.clock < b.clock; });
  machine.span = machine.events.back().clock;
  if (trace.kernel != latency_hiding::Kernel::tail) {
    machine.moments.clear();
    for (const Event& event : machine.events) {
      if (event.row == 0) machine.moments.push_back({event.what, event.number, event.clock, 0});
    }
    machine.moments.push_back({What::use, -1, machine.span, 0});
  } else {
    for (std::size_t i = 0; i < machine.moments.size(); ++i) {
      machine.moments[i].clock =
          machine.span * static_cast<std::int64_t>(i + 1) / std::ssize(machine.moments);
    }
  }
  std::size_t step = 0;
  int in_flight = 0;
  for (Event& event : machine.events) {
    while (event.clock > machine.moments[step].clock) machine.moments[step++].in_flight = in_flight;
    event.step = static_cast<int>(step) + 1;
    in_flight += event.what == What::issue ? 1 : -1;
  }
  for (; step < machine.moments.size(); ++step) machine.moments[step].in_flight = in_flight;
  report.trace = latency_hiding::to_json(trace);
  for (lab::Table& table : latency_hiding::tables_of(trace)) {
    for (lab::Table& old : report.tables) {
      if (old.id == table.id) old = table;
    }
  }
  return report;
}

LatencyHidingScene scene_of(const lab::Settings& settings, bool clocks = false) {
  LatencyHidingScene scene;
  const lab::Report& report = tests::report_of("latency-hiding", settings);
  scene.load(clocks ? with_clocks(report) : report);
  return scene;
}

Picture picture_at(const LatencyHidingScene& scene, int step) {
  return scene.picture(scene.extent(), {Cursor{step, 0}});
}

template <class Mark>
std::vector<const Mark*> marks_of(const Picture& picture, std::string_view name) {
  std::vector<const Mark*> all;
  for (const picture::Mark* mark : picture::marks_of(picture)) {
    const auto* found = std::get_if<Mark>(mark);
    if (found != nullptr && found->items.name.text() == name) all.push_back(found);
  }
  return all;
}
const Curve* curve_of(const Picture& picture, std::string_view name) {
  for (const picture::Mark* mark : picture::marks_of(picture)) {
    const auto* found = std::get_if<Curve>(mark);
    if (found != nullptr && found->key.name.text() == name) return found;
  }
  return nullptr;
}

/// Issue and use of each probe, as far as they are known at a step.
struct Known {
  std::int64_t issue = -1, use = -1;
};
std::map<std::pair<int, int>, Known> known_at(const Trace& trace, int step) {
  std::map<std::pair<int, int>, Known> known;
  for (const Event& event : trace.machine.events) {
    if (event.step > step) continue;
    Known& one = known[{event.row, event.number}];
    (event.what == What::issue ? one.issue : one.use) = event.clock;
  }
  return known;
}

/// Row and number of the probe that a bar of all warps is about.
std::pair<int, int> probe_of(const Trace& trace, const Spans& spans, std::size_t i) {
  int a_row = 1;
  for (const Event& event : trace.machine.events) a_row = std::max(a_row, event.number + 1);
  const int id = spans.items.ids[i], row = spans.items.about[0].second[i];
  return {row, trace.kernel == latency_hiding::Kernel::tail ? id : id - row * a_row};
}

/// Each probe that was issued by now is one bar, from its clock to that of its use, or as long as now.
void check_bars(const LatencyHidingScene& scene, int step) {
  const Trace& trace = scene.trace();
  const auto known = known_at(trace, step);
  const auto now = step == 0 ? 0 : trace.machine.moments[static_cast<std::size_t>(step) - 1].clock;
  const Picture picture = picture_at(scene, step);
  const auto check = [&](const Spans& spans, std::size_t i, std::pair<int, int> probe) {
    CAPTURE(probe.first, probe.second);
    REQUIRE(known.count(probe) == 1);
    const Known& one = known.at(probe);
    CHECK(spans.begin[i] == static_cast<double>(one.issue));
    CHECK(spans.end[i] == static_cast<double>(one.use < 0 ? now : one.use));
    const State state = spans.items.state[i];
    if (state != State::current) CHECK(state == (one.use < 0 ? State::plain : State::done));
  };
  std::set<std::pair<int, int>> drawn, of_first;
  for (const char* name : {"load", "stage", "hop", "chains", "round", "arm", "block"}) {
    for (const Spans* spans : marks_of<Spans>(picture, name)) {
      std::map<int, int> row_on;  // a lane belongs to one warp
      for (std::size_t i = 0; i < spans->lane.size(); ++i) {
        const auto probe = probe_of(trace, *spans, i);
        check(*spans, i, probe);
        CHECK(drawn.insert(probe).second);
        CHECK(row_on.try_emplace(spans->lane[i], probe.first).first->second == probe.first);
      }
    }
  }
  CHECK(drawn.size() == known.size());
  for (const Spans* spans : marks_of<Spans>(picture, "followed")) {
    for (std::size_t i = 0; i < spans->lane.size(); ++i) {
      check(*spans, i, {0, spans->items.ids[i]});
      of_first.insert({0, spans->items.ids[i]});
    }
  }
  if (trace.kernel == latency_hiding::Kernel::tail) return;
  CHECK(std::ssize(of_first) == std::count_if(known.begin(), known.end(), [](const auto& each) {
          return each.first.first == 0;
        }));
}

/// What one probe adds to the curve of what is in flight.
double weight_of(const Trace& trace) {
  using latency_hiding::Kernel, latency_hiding::Break;
  if (trace.kernel == Kernel::bulk_copy) return trace.stage_bytes / 1024.0;
  if (trace.kernel != Kernel::copy) return 1;
  const int ways = trace.broken == Break::divergent_branch ? trace.divergence : 1;
  return 32.0 / ways * trace.bytes_per_load / 1024;
}

std::vector<Question> questions_of(const LatencyHidingScene& scene) {
  std::vector<Question> all;
  for (int step = 0; step < scene.steps().tiles; ++step) {
    if (const auto question = scene.question({Cursor{step, 0}})) all.push_back(*question);
  }
  return all;
}
std::optional<Question> asked(const LatencyHidingScene& scene, std::string_view kind) {
  for (const Question& question : questions_of(scene)) {
    if (question.id == kind) return question;
  }
  return std::nullopt;
}

std::string readout(const LatencyHidingScene& scene, std::string_view id, int step) {
  for (const scenes::Readout& each : scene.readouts({Cursor{step, 0}})) {
    if (each.id == id) return each.value;
  }
  return "none";
}

}  // namespace

TEST_CASE("Latency hiding: bars are those of the clocks so far", "[latency_hiding_scene]") {
  for (const lab::Settings& settings : kRuns) {
    for (const bool clocks : {false, true}) {
      const LatencyHidingScene scene = scene_of(settings, clocks);
      CAPTURE(name_of(scene.trace().kernel), clocks);
      if (clocks) CHECK(scene.trace().machine.has_clocks());
      const int steps = scene.trace().steps();
      for (int step = 0; step <= steps; step += step + 3 < steps ? 3 : 1) {
        CAPTURE(step);
        check_bars(scene, step);
      }
    }
  }
}

TEST_CASE("Latency hiding: the curve ends at what the trace has in flight",
          "[latency_hiding_scene]") {
  for (const lab::Settings& settings : kRuns) {
    const LatencyHidingScene scene = scene_of(settings, true);
    const Trace& trace = scene.trace();
    CAPTURE(name_of(trace.kernel));
    const Picture before = picture_at(scene, 0);
    REQUIRE(curve_of(before, "flight_curve") != nullptr);
    CHECK(curve_of(before, "flight_curve")->x.empty());
    double most = 0;
    for (int step = 1; step <= trace.steps(); ++step) {
      const Moment& moment = trace.machine.moments[static_cast<std::size_t>(step) - 1];
      const Picture picture = picture_at(scene, step);
      const Curve* curve = curve_of(picture, "flight_curve");
      REQUIRE(curve != nullptr);
      CHECK(curve->x.back() == static_cast<double>(moment.clock));
      CHECK(std::abs(curve->y.back() - moment.in_flight * weight_of(trace)) < 1e-9);
      CHECK(std::is_sorted(curve->x.begin(), curve->x.end()));
      // Steps so close that a line of some width is all corners would rise above what it says; the last may be short.
      std::vector<double> at = curve->x;
      at.erase(std::unique(at.begin(), at.end()), at.end());
      for (std::size_t i = 1; i + 1 < at.size(); ++i) {
        CHECK(at[i] - at[i - 1] >= static_cast<double>(trace.machine.span) / 200);
      }
      most = std::max(most, *std::max_element(curve->y.begin(), curve->y.end()));
    }
    CHECK(most > 0);
    if (latency_hiding::is_copy(trace.kernel)) {
      CHECK(most <= static_cast<double>(trace.asked_bytes()) / 1024 + 1e-9);
    }
  }
}

TEST_CASE("Latency hiding: a use without a clock of its own stays in flight to the end",
          "[latency_hiding_scene]") {
  lab::Report report = with_clocks(tests::report_of("latency-hiding"));
  Trace trace = latency_hiding::trace_from_json(report.trace);
  const auto last =
      std::find_if(trace.machine.events.rbegin(), trace.machine.events.rend(),
                   [](const Event& each) { return each.what == What::use && each.row != 0; });
  REQUIRE(last != trace.machine.events.rend());
  trace.machine.events.erase(std::next(last).base());
  report.trace = latency_hiding::to_json(trace);
  LatencyHidingScene scene;
  scene.load(report);
  check_bars(scene, trace.steps());
  CHECK(readout(scene, "in_flight", trace.steps()) != "0");
}

TEST_CASE("Latency hiding: limits are the calculator's, and the one that binds is framed",
          "[latency_hiding_scene]") {
  for (const char* block : {"32", "128", "512"}) {
    for (const int warps : {16, 32}) {
      const LatencyHidingScene scene =
          scene_of({{"block", std::string(block)}, {"warps_per_sm", whole(warps)}}, true);
      const latency_hiding::Occupancy all = scene.trace().occupancy();
      const Picture picture = picture_at(scene, 0);
      const auto bars = marks_of<Bars>(picture, "limit");
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
  lab::Report report =
      tests::report_of("latency-hiding", {{"seed", whole(7)}, {"kernel", std::string("fma")}});
  Trace trace = latency_hiding::trace_from_json(report.trace);
  trace.machine.compiled = {};
  report.trace = latency_hiding::to_json(trace);
  LatencyHidingScene scene;
  scene.load(report);
  const Picture picture = picture_at(scene, 0);
  const auto bars = marks_of<Bars>(picture, "limit");
  REQUIRE(bars.size() == 1);
  CHECK(std::isnan(bars[0]->items.value[1]));
  CHECK(scene.explain({Cursor{0, 0}}, {"limit", 1}).find("known where") != std::string::npos);
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
    const auto cells = marks_of<Cells>(picture, "vote");
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
  CHECK(bytes->values == std::vector<double>{32});
  const auto use = asked(copy, "first-use");
  REQUIRE(use);
  for (const Event& event : copy.trace().machine.events) {
    if (event.row == 0 && event.number == 0 && event.what == What::use) {
      CHECK(use->values == std::vector<double>{static_cast<double>(event.clock)});
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
  const auto next = asked(copy, "next-latency");
  REQUIRE(next);
  CHECK(next->because.find_first_of("0123456789") != std::string::npos);
  const auto eligible = asked(copy, "eligible");
  REQUIRE(eligible);

  const LatencyHidingScene serialized = scene_of({{"break", std::string("serialize-loads")}}, true);
  CHECK(asked(serialized, "bytes-asked")->values == std::vector<double>{8});
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
    CHECK_FALSE(asked(scene, "next-latency"));
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
      if (box.key.name == picture::Name("multiprocessor_box"))
        return picture::plain(box.label.full);
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
    std::string all;
    const Picture picture = picture_at(scene, step);
    for (const auto* lines : marks_of<picture::Lines>(picture, "count")) {
      for (const picture::Text& row : lines->rows) all += picture::plain(row.full) + "\n";
    }
    for (const auto* table : marks_of<picture::Ledger>(picture, "count")) {
      for (std::size_t row = 0; row < table->rows.size(); ++row) {
        all += picture::plain(table->rows[row].full) + " " + table->items.names[row] + "\n";
      }
    }
    return all;
  };
  CHECK(counted(steps - 1).find_first_of("0123456789") == std::string::npos);
  const auto& all = scene.trace().machine.counted;
  REQUIRE_FALSE(all.empty());
  for (const auto& [metric, name] : {std::pair("smsp__warps_active", "active warps "),
                                     std::pair("smsp__warps_eligible", "eligible warps ")}) {
    const auto one = std::find_if(all.begin(), all.end(),
                                  [prefix = metric](const latency_hiding::Counted& each) {
                                    return each.metric.starts_with(prefix);
                                  });
    REQUIRE(one != all.end());
    CAPTURE(metric, counted(steps));
    CHECK(counted(steps).find(name + scenes::words::significant(one->value, 3)) !=
          std::string::npos);
  }
  CHECK(counted(steps).find("stall: ") != std::string::npos);
  CHECK(scene.explain({Cursor{steps, 0}}, {"count", 0}).find("smsp__warps_eligible") !=
        std::string::npos);
}
