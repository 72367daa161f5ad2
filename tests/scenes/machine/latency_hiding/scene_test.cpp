// The picture of the lesson on latency hiding against its trace.
#include "scenes/machine/latency_hiding/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "kernels/base/lab/recording.hpp"
#include "scenes/picture/compare.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"
#include "scenes/ui/picture_view.hpp"
#include "tests/scenes/marks.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using latency_hiding::Event, latency_hiding::Moment, latency_hiding::Trace, latency_hiding::What;
using picture::Bars, picture::Cells, picture::Curve, picture::Picture, picture::Spans,
    picture::State;
using scenes::Cursor, scenes::LatencyHidingScene, scenes::Question;
using tests::mark_of, tests::marks_named, tests::picture_at;

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

/// Loads of a round: what a warp has in the picture at a time.
int group_of(const Trace& trace) {
  using latency_hiding::Break, latency_hiding::Kernel;
  if (trace.kernel == Kernel::diverge) return trace.divergence;
  if (!latency_hiding::is_copy(trace.kernel)) return 4;
  return std::max(
      4, trace.loads_in_flight * (trace.broken == Break::divergent_branch ? trace.divergence : 1));
}

/// The clock that bars count from at a step: the first issue of the followed warp's round, or of a hop's level.
std::int64_t zero_of(const Trace& trace, int step, std::pair<int, int> probe) {
  using latency_hiding::Kernel;
  std::int64_t zero = 0;
  for (const Event& event : trace.machine.events) {
    if (event.what != What::issue || event.step > step) continue;
    if (trace.kernel == Kernel::chase) {
      if (event.row == probe.first && event.number == probe.second / 4 * 4) zero = event.clock;
    } else if (trace.kernel != Kernel::tail) {
      if (event.row == 0 && event.number % group_of(trace) == 0) zero = event.clock;
    }
  }
  return zero;
}

/// The end of the axis that bars of time stand on.
double high_of(const LatencyHidingScene& scene) {
  return scene.extent().axes.front().high;
}

/// Each probe of the round that was issued by now is one bar, from its clock to that of its use, or as long as now.
void check_bars(const LatencyHidingScene& scene, int step) {
  const Trace& trace = scene.trace();
  const auto known = known_at(trace, step);
  const auto now = step == 0 ? 0 : trace.machine.moments[static_cast<std::size_t>(step) - 1].clock;
  const double high = high_of(scene);
  const Picture picture = picture_at(scene, step);
  const auto visible = [&](std::pair<int, int> probe) {
    const auto zero = zero_of(trace, step, probe);
    const Known& one = known.at(probe);
    return (one.use < 0 || one.use > zero) && static_cast<double>(one.issue - zero) < high;
  };
  const auto check = [&](const Spans& spans, std::size_t i, std::pair<int, int> probe) {
    CAPTURE(probe.first, probe.second);
    REQUIRE(known.count(probe) == 1);
    CHECK(visible(probe));
    const Known& one = known.at(probe);
    const auto zero = zero_of(trace, step, probe);
    CHECK(spans.begin[i] == std::max(0.0, static_cast<double>(one.issue - zero)));
    CHECK(spans.end[i] ==
          std::min(high, static_cast<double>((one.use < 0 ? now : one.use) - zero)));
    const State state = spans.items.state[i];
    if (state != State::current) CHECK(state == (one.use < 0 ? State::plain : State::done));
  };
  std::set<std::pair<int, int>> drawn, of_first;
  for (const char* name : {"load", "stage", "block"}) {
    for (const Spans* spans : marks_named<Spans>(picture, name)) {
      std::map<int, int> row_on;  // a lane belongs to one warp
      for (std::size_t i = 0; i < spans->lane.size(); ++i) {
        const auto probe = probe_of(trace, *spans, i);
        check(*spans, i, probe);
        CHECK(drawn.insert(probe).second);
        CHECK(row_on.try_emplace(spans->lane[i], probe.first).first->second == probe.first);
      }
    }
  }
  for (const Spans* spans : marks_named<Spans>(picture, "followed")) {
    for (std::size_t i = 0; i < spans->lane.size(); ++i) {
      check(*spans, i, {0, spans->items.ids[i]});
      of_first.insert({0, spans->items.ids[i]});
    }
  }
  const bool tails = trace.kernel == latency_hiding::Kernel::tail;
  const bool all =
      tails || (latency_hiding::is_copy(trace.kernel) && trace.machine.rows.size() > 1);
  const auto wanted = [&](bool first) {
    return std::count_if(known.begin(), known.end(), [&](const auto& each) {
      return (!first || each.first.first == 0) && visible(each.first);
    });
  };
  CHECK(std::ssize(drawn) == (all ? wanted(false) : 0));
  CHECK(std::ssize(of_first) == (tails ? 0 : wanted(true)));
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

/// How many pixels the followed warp's last round is long.
float drawn_round(const LatencyHidingScene& scene, const picture::Extent& extent) {
  const picture::Placed placed =
      picture::place(scene.picture(extent, {Cursor{scene.trace().steps(), 0}}), {0, 0, 766, 560},
                     ui::PictureMetrics());
  float from = 1e9f, to = 0;
  for (const picture::Piece& piece : placed.pieces) {
    if (piece.of.key.name != picture::Name("followed")) continue;
    from = std::min(from, piece.area.x0);
    to = std::max(to, piece.area.x1);
  }
  return to - from;
}

/// Cycles of the last four loads of the first warp, from the report's table of probes.
double last_round(const lab::Report& report) {
  const lab::Table* probes = report.table("probes");
  REQUIRE(probes != nullptr);
  const std::size_t rows = probes->rows.size();
  return *scenes::number_in(*probes, rows - 1, "use") -
         *scenes::number_in(*probes, rows - 4, "issue");
}

TEST_CASE("Latency hiding: two orders of the same loads are as long as what was recorded of them",
          "[latency_hiding_scene]") {
  const lab::Recording* recording = lab::recording("latency-hiding");
  if (recording == nullptr) return;
  // One warp: four loads at a time are 4 / (rate ratio) of four times one.
  const auto rate = [&](double loads) {
    const lab::Table& table = *recording->bench.table("bytes_in_flight");
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      if (scenes::text_in(table, row, "kind") == "16" &&
          scenes::number_in(table, row, "loads") == loads &&
          scenes::number_in(table, row, "warps_per_sm") == 1) {
        return *scenes::number_in(table, row, "bandwidth");
      }
    }
    return 0.0;
  };
  const lab::Settings alone = {{"warps_per_sm", whole(1)}, {"block", std::string("32")}};
  for (lab::Settings settings : {alone, lab::Settings{}}) {
    CAPTURE(settings.size());
    const LatencyHidingScene together = scene_of(settings);
    settings["break"] = std::string("serialize-loads");
    const LatencyHidingScene apart = scene_of(settings);
    REQUIRE(together.trace().machine.has_clocks());
    REQUIRE(apart.trace().machine.has_clocks());
    const bool derived = settings.size() > 1;
    CHECK(together.trace().machine.derived == derived);
    const double want =
        derived ? rate(4) / rate(1) : last_round(*apart.report()) / last_round(*together.report());
    tests::SceneFrame frame;
    frame.show({860, 480}, [&] {
      const picture::Extent mine = together.extent(), theirs = apart.extent();
      const double drawn =
          static_cast<double>(drawn_round(apart, picture::united(theirs, mine))) /
          static_cast<double>(drawn_round(together, picture::united(mine, theirs)));
      CAPTURE(want, drawn);
      CHECK(std::abs(drawn / want - 1) < 0.15);
    });
    // Once the loads at once have ended, the first round one at a time stands below them, to the cycle.
    const Picture before = picture_at(together, 7), after = picture_at(together, 8),
                  alone_in_it = picture_at(apart, 8);
    CHECK(marks_named<Spans>(before, "other_order")[0]->end.empty());
    CHECK(marks_named<Spans>(alone_in_it, "other_order").empty());
    const auto other = marks_named<Spans>(after, "other_order");
    REQUIRE(other.size() == 1);
    REQUIRE(other[0]->end.size() == 4);
    for (const Event& event : apart.trace().machine.events) {
      if (event.row != 0 || event.number > 3) continue;
      const auto k = static_cast<std::size_t>(event.number);
      const bool issues = event.what == What::issue;
      CHECK((issues ? other[0]->begin[k] : other[0]->end[k]) ==
            static_cast<double>(event.clock - zero_of(apart.trace(), 1, {0, 0})));
    }
  }
}

TEST_CASE("Latency hiding: no round that was recorded leaves the axis", "[latency_hiding_scene]") {
  for (const lab::Settings& settings : kRuns) {
    const LatencyHidingScene scene = scene_of(settings);
    const Trace& trace = scene.trace();
    if (!trace.machine.has_clocks() || trace.kernel == latency_hiding::Kernel::tail) continue;
    CAPTURE(name_of(trace.kernel), trace.warps_per_sm);
    for (int step = 1; step < trace.steps(); ++step) {
      const Moment& moment = trace.machine.moments[static_cast<std::size_t>(step) - 1];
      CHECK(static_cast<double>(moment.clock - zero_of(trace, step, {0, moment.number})) <=
            high_of(scene));
    }
  }
}

TEST_CASE(
    "Latency hiding: the scheduler's lane has its warps' loads and stores, and is idle between",
    "[latency_hiding_scene]") {
  const LatencyHidingScene scene = scene_of({}, true);
  const Trace& trace = scene.trace();
  for (const int step : {4, 8, 20, trace.steps()}) {
    CAPTURE(step);
    const Picture picture = picture_at(scene, step);
    const auto slots = marks_named<Spans>(picture, "slot");
    REQUIRE(slots.size() == 1);
    const auto zero = zero_of(trace, step, {0, 0});
    const auto now = trace.machine.moments[static_cast<std::size_t>(step) - 1].clock;
    std::vector<double> want, issued;
    for (const Event& event : trace.machine.events) {
      const auto row = static_cast<std::size_t>(event.row);
      const auto at = static_cast<double>(event.clock - zero);
      const bool mine =
          trace.machine.rows[row].sub_partition == trace.machine.rows[0].sub_partition;
      if (mine && event.clock <= now && at >= 0 && at <= high_of(scene)) want.push_back(at);
    }
    std::sort(want.begin(), want.end());
    double idle = 0;
    for (std::size_t i = 0; i < slots[0]->begin.size(); ++i) {
      if (slots[0]->items.state[i] != State::to_come) {
        issued.push_back(slots[0]->begin[i]);
        continue;
      }
      idle += slots[0]->end[i] - slots[0]->begin[i];
      for (const double at : want) {
        CHECK_FALSE((at > slots[0]->begin[i] && at < slots[0]->end[i]));
      }
    }
    CHECK(issued == want);
    if (step == 8) CHECK(idle > 0.5 * std::min(high_of(scene), static_cast<double>(now - zero)));
  }
}

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
