// The bars of the lesson on latency hiding against its trace.
#include "scenes/picture/compare.hpp"
#include "scenes/ui/picture_view.hpp"
#include "tests/scenes/machine/latency_hiding/clocked.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using namespace tilestep::tests;

namespace {

/// Row and number of the probe that a bar of all warps is about.
std::pair<int, int> probe_of(const Trace& trace, const Spans& spans, std::size_t i) {
  int a_row = 1;
  for (const Event& event : trace.machine.events) a_row = std::max(a_row, event.number + 1);
  const int id = spans.items.ids[i], row = spans.items.about[0].second[i];
  return {row, trace.kernel == latency_hiding::Kernel::tail ? id : id - row * a_row};
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
