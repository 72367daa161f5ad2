#include "scenes/matmul/hopper_gemm/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernels/base/simt/hopper.hpp"
#include "tests/scenes/shown.hpp"

using namespace tilestep;
using hopper_gemm::Event, hopper_gemm::What;
using picture::Cells, picture::Picture, picture::Spans, picture::State;
using scenes::Cursor, scenes::HopperGemmScene, scenes::HopperMoment, scenes::StageNow;

namespace {

lab::Settings of(const char* variant, lab::Settings more = {}) {
  more["variant"] = std::string(variant);
  return more;
}
const std::vector<lab::Settings> kRuns = {of("mma-sync"),
                                          of("wgmma"),
                                          of("tma"),
                                          of("pipelined"),
                                          of("warp-specialized"),
                                          of("warp-specialized", {{"stages", std::int64_t{2}}}),
                                          of("multicast"),
                                          of("persistent", {{"k", std::int64_t{1000}}})};

HopperGemmScene scene_of(const lab::Settings& settings) {
  HopperGemmScene scene;
  scene.load(tests::report_of("hopper-gemm", settings));
  return scene;
}

Picture picture_at(const HopperGemmScene& scene, int step) {
  return scene.picture(scene.extent(), {Cursor{step, 0}});
}

template <class Mark>
const Mark* mark_of(const Picture& picture, std::string_view name) {
  for (const picture::Mark* mark : picture::marks_of(picture)) {
    const auto* found = std::get_if<Mark>(mark);
    if (found != nullptr && found->items.name.text() == name) return found;
  }
  return nullptr;
}

/// When something happened until a step; by kind, lane and number.
class Clocks {
 public:
  Clocks(const hopper_gemm::Trace& trace, int step) {
    for (int e = 0; e < step; ++e) {
      const Event& event = trace.events[e];
      at_.try_emplace({event.what, event.lane, event.number}, event.clock);
    }
  }
  std::optional<double> at(What what, int lane, int number) const {
    const auto found = at_.find({what, lane, number});
    return found == at_.end() ? std::nullopt : std::optional(static_cast<double>(found->second));
  }

 private:
  std::map<std::tuple<What, int, int>, std::int64_t> at_;
};

/// The bars of one kind: what each begins with, what it ends with, and of whom.
struct Kind {
  const char* name;
  What begin, end;
  int lane;  ///< 1: of both consumers
};
constexpr Kind kKinds[] = {{"wait_empty", What::waits_empty, What::expects, 0},
                           {"issue", What::expects, What::copies, 0},
                           {"wait_full", What::waits_full, What::issues, 1},
                           {"storing", What::stores, What::stored, 1}};

void check_bars(const HopperGemmScene& scene, int step) {
  const hopper_gemm::Trace& trace = scene.trace();
  const double now = static_cast<double>(trace.events[step - 1].clock);
  const Clocks clocks(trace, step);
  const Picture picture = picture_at(scene, step);
  for (const Kind& kind : kKinds) {
    CAPTURE(kind.name);
    const Spans* spans = mark_of<Spans>(picture, kind.name);
    REQUIRE(spans != nullptr);
    CHECK(spans->now == now);
    for (int i = 0; i < spans->items.count; ++i) {
      const int id = spans->items.ids[i];
      const int number = kind.lane > 0 ? id / 2 : id, lane = kind.lane > 0 ? 1 + id % 2 : 0;
      CHECK(spans->begin[i] == clocks.at(kind.begin, lane, number));
      CHECK(spans->end[i] == clocks.at(kind.end, lane, number).value_or(now));
    }
  }
  for (const char* name : {"copy", "landing", "held", "product", "issuing"}) {
    const Spans* spans = mark_of<Spans>(picture, name);
    for (int i = 0; spans != nullptr && i < spans->items.count; ++i) {
      CHECK(spans->begin[i] <= spans->end[i]);
      CHECK(spans->end[i] <= now);
    }
  }
}

void check_ring(const HopperGemmScene& scene, int step) {
  const hopper_gemm::Trace& trace = scene.trace();
  const HopperMoment now = scene.moment({step, 0});
  const Clocks clocks(trace, step);
  std::set<int> held;
  for (const StageNow& stage : now.stages) {
    CHECK_FALSE(stage.read_early);
    CHECK_FALSE(stage.overwritten);
    if (stage.k_tile < 0) continue;
    CHECK(held.insert(stage.k_tile).second);
    CHECK((clocks.at(What::expects, 0, stage.k_tile) || clocks.at(What::copies, 0, stage.k_tile)));
    if (stage.state == StageNow::released) {
      for (int c = 1; c <= trace.consumers; ++c) CHECK(clocks.at(What::releases, c, stage.k_tile));
    }
  }
  CHECK(now.copied - now.released <= trace.stages);
  CHECK(now.copied >= now.released);
  for (int c = 0; c < trace.consumers; ++c) {
    const auto issued = std::count_if(
        trace.events.begin(), trace.events.begin() + step,
        [&](const Event& event) { return event.what == What::issues && event.lane == c + 1; });
    CHECK(std::ssize(now.consumers[c].under_way) <= 2);
    CHECK(now.consumers[c].added + std::ssize(now.consumers[c].under_way) <= issued);
    CHECK(now.consumers[c].added <= trace.k_tiles());
  }
}

std::string text_of(const HopperGemmScene& scene, const char* id, int step) {
  for (const scenes::Readout& readout : scene.readouts({Cursor{step, 0}})) {
    if (readout.id == id) return readout.value;
  }
  return "none";
}

}  // namespace

TEST_CASE("Hopper GEMM: bars and ring are those of the events so far", "[hopper_gemm_scene]") {
  for (const lab::Settings& settings : kRuns) {
    const HopperGemmScene scene = scene_of(settings);
    const int steps = scene.trace().steps();
    CAPTURE(std::get<std::string>(settings.at("variant")), steps);
    for (int step = 1; step <= steps; step += steps > 150 ? 7 : 1) {
      CAPTURE(step);
      check_bars(scene, step);
      check_ring(scene, step);
    }
    const HopperMoment end = scene.moment({steps, 0});
    const Clocks clocks(scene.trace(), steps);
    int released = 0;
    for (const auto& [number, life] : end.lives) {
      bool all = true;
      for (int c = 1; c <= scene.trace().consumers; ++c) {
        all = all && clocks.at(What::releases, c, number).has_value();
      }
      released += all ? 1 : 0;
    }
    CHECK(end.released == released);
    CHECK(std::ssize(end.lives) == scene.trace().k_tiles() * std::ssize(scene.trace().tiles));
    for (const scenes::ConsumerNow& consumer : end.consumers) {
      CHECK(consumer.added == scene.trace().k_tiles());
      CHECK(consumer.under_way.empty());
      CHECK(consumer.doing == scenes::ConsumerNow::is_done);
    }
  }
}

TEST_CASE("Hopper GEMM: at the end the readouts say what the report does", "[hopper_gemm_scene]") {
  for (const char* variant : {"tma", "warp-specialized", "multicast"}) {
    const HopperGemmScene scene = scene_of(of(variant));
    const int steps = scene.trace().steps();
    int compared = 0;
    for (const char* id : {"producer_waiting", "consumer_waiting"}) {
      const lab::Measurement* measured = scene.report()->measurement(id);
      CAPTURE(variant, id);
      CHECK((text_of(scene, id, steps) == "none") == (measured == nullptr));
      if (measured == nullptr) continue;
      CHECK(text_of(scene, id, steps) == fmt::format("{:.0f}", measured->value));
      ++compared;
    }
    CHECK(compared >= 1);
    CHECK(text_of(scene, "in_use", steps) == "0");
    CHECK(text_of(scene, "pending", steps) == "0");
  }
}

TEST_CASE("Hopper GEMM: pending bytes fall from what was announced to none",
          "[hopper_gemm_scene]") {
  const HopperGemmScene scene = scene_of({});
  int landings = 0;
  for (int step = 1; step <= scene.trace().steps(); ++step) {
    const Event& event = scene.trace().events[step - 1];
    if (event.what == What::lands) {
      ++landings;
      CHECK(text_of(scene, "pending", step) == std::to_string(event.pending));
    }
    if (event.what == What::flips) CHECK(text_of(scene, "pending", step) == "0");
    if (event.what == What::expects) {
      CHECK(text_of(scene, "announced", step) == std::to_string(scene.trace().stage_bytes));
    }
  }
  CHECK(landings > 0);
}

TEST_CASE("Hopper GEMM: a wait has the parity that the kernel calls it with",
          "[hopper_gemm_scene]") {
  const HopperGemmScene scene = scene_of({});
  const hopper_gemm::Trace& trace = scene.trace();
  int waits = 0;
  for (const Event& event : trace.events) {
    const int turn = event.number / trace.stages;  // of the ring
    if (event.what == What::waits_full) CHECK(event.parity == turn % 2);
    // A producer that begins a ring waits for the phase before the first, which has ended.
    if (event.what == What::waits_empty) CHECK(event.parity == 1 - turn % 2);
    waits += event.what == What::waits_empty ? 1 : 0;
  }
  CHECK(waits > trace.stages);
}

TEST_CASE("Hopper GEMM: a GPU has no clock for what lands, and the picture none either",
          "[hopper_gemm_scene]") {
  lab::Report report = tests::report_of("hopper-gemm");
  hopper_gemm::Trace trace = scene_of({}).trace();
  std::erase_if(trace.events, [](const Event& event) { return event.what == What::lands; });
  trace.clock_unit = "cycles";
  report.trace = hopper_gemm::to_json(trace);
  HopperGemmScene scene;
  scene.load(report);
  CHECK(picture::plain(scene.extent().axes.front().title.full) == "cycles");
  for (int step = 1; step <= trace.steps(); ++step) {
    const Event& event = trace.events[step - 1];
    if (event.what == What::copies) CHECK(text_of(scene, "pending", step) == "—");
    if (event.what == What::flips) CHECK(text_of(scene, "pending", step) == "0");
    CHECK(mark_of<Spans>(picture_at(scene, step), "landing")->items.count == 0);
  }
}

TEST_CASE("Hopper GEMM: what is overwritten or read too early is marked", "[hopper_gemm_scene]") {
  lab::Report report = tests::report_of("hopper-gemm");
  hopper_gemm::Trace trace = scene_of({}).trace();
  const auto is = [](What what, int number) {
    return [=](const Event& event) { return event.what == what && event.number == number; };
  };
  // The copies of k-tile 4 come when k-tile 0 is not given back yet.
  const auto late = std::find_if(trace.events.begin(), trace.events.end(), is(What::copies, 4));
  Event early = *late;
  trace.events.erase(late);
  const auto issued = std::find_if(trace.events.begin(), trace.events.end(), is(What::issues, 0));
  early.clock = issued->clock;
  const auto step = static_cast<int>(trace.events.insert(issued, early) - trace.events.begin()) + 1;
  report.trace = hopper_gemm::to_json(trace);
  report.params["break"] = std::string("skip-empty-wait");
  HopperGemmScene scene;
  scene.load(report);
  CHECK_FALSE(scene.moment({step - 1, 0}).stages[0].overwritten);
  CHECK(scene.moment({step, 0}).stages[0].overwritten);
  CHECK(scene.moment({trace.steps(), 0}).stages[0].overwritten);
  CHECK(mark_of<Cells>(picture_at(scene, step), "part")->items.state[0] == State::wrong);

  const HopperGemmScene skipped = scene_of({{"break", std::string("skip-full-wait")}});
  bool any = false;
  for (const StageNow& stage : skipped.moment({skipped.trace().steps(), 0}).stages) {
    any = any || stage.read_early;
  }
  CHECK(any);
}

TEST_CASE("Hopper GEMM: the chunks lie where the swizzle puts them", "[hopper_gemm_scene]") {
  for (const int swizzle : {0, 32, 64, 128}) {
    CAPTURE(swizzle);
    const HopperGemmScene scene = scene_of({{"swizzle", std::to_string(swizzle)}});
    const Picture picture = picture_at(scene, 0);
    const Cells* chunks = mark_of<Cells>(picture, "chunk");
    REQUIRE(chunks != nullptr);
    REQUIRE(chunks->items.count == 64);
    const int width = swizzle == 0 ? 16 : swizzle;
    for (int row = 0; row < 8; ++row) {
      for (int chunk = 0; chunk < 8; ++chunk) {
        const int in_panel = row * width + chunk * 16 % width;
        const unsigned at =
            simt::hopper::swizzled_address(static_cast<unsigned>(in_panel), swizzle);
        const int place = chunk * 16 / width * (width / 2) + static_cast<int>(at) / 16;
        CHECK(chunks->items.names[place] == std::to_string(chunk));
      }
    }
    // Those framed are in eight groups of banks.
    std::set<int> groups;
    for (int place = 0; place < 64; ++place) {
      if ((chunks->items.flags[place] & picture::kPicked) != 0) groups.insert(place % 8);
    }
    CHECK(groups.size() == 8);
    // Below them: how many meet in each group, as they lie and without the swizzle.
    const auto counts = [&](const char* name) {
      std::string all;
      const Cells* turns = mark_of<Cells>(picture, name);
      for (int g = 0; turns != nullptr && g < 8; ++g) {
        all += turns->items.names[g].empty() ? "." : turns->items.names[g];
        const bool waits = !turns->items.names[g].empty() && turns->items.names[g] != "1";
        CHECK((turns->items.state[g] == State::wasted) == waits);
      }
      return all;
    };
    const std::map<int, std::string> plain = {
        {0, "11111111"}, {32, "2.2.2.2."}, {64, "4...4..."}, {128, "8......."}};
    CHECK(counts("plain_turn") == plain.at(swizzle));
    CHECK(counts("swizzled_turn") == (swizzle == 0 ? "" : "11111111"));
  }
}

TEST_CASE("Hopper GEMM: a chunk that is picked says where it lies", "[hopper_gemm_scene]") {
  const HopperGemmScene scene = scene_of({{"swizzle", std::string("64")}});
  // The second panel's rows 2 and 3 are in its second line; chunk 5 of row 2 has changed places with chunk 4.
  const int place = 4 * 8 + 8;
  scenes::View view{{1, 0}};
  view.picks[picture::Name("place")] = place;
  const Picture picture = scene.picture(scene.extent(), view);
  const Cells* chunks = mark_of<Cells>(picture, "chunk");
  CHECK(chunks->items.names[place] == "5");
  CHECK(chunks->items.state[place] == State::current);
  CHECK((chunks->items.flags[place] & picture::kPicked) != 0);
  const picture::Lines* words = mark_of<picture::Lines>(picture, "swizzle_line");
  REQUIRE(words != nullptr);
  // 128 rows of 64 bytes lie before the second panel.
  const int byte = 128 * 64 + 2 * 64;
  CHECK(picture::plain(words->rows[0].full) ==
        fmt::format("row 2, k 40–47: byte {}, banks 0–3", byte));
  const std::string said = scene.explain(view, {"chunk", place});
  CHECK(said.find("Sw<2,4,3> o (128,(32,2)):(32,(1,4096))") != std::string::npos);
  CHECK(said.find("2·32 + 8 + 1·4096 = 4168, byte 8336, swizzled 8320") != std::string::npos);
  CHECK(scene.explain(view, {"plain_turn", 1}) == "4 rows have chunk 5 in banks 4–7: 4 turns");
  CHECK(scene.explain(view, {"plain_turn", 2}) == "no row has chunk 5 in banks 8–11");
  CHECK(scene.explain(view, {"swizzled_turn", 7}) == "1 row has chunk 5 in banks 28–31");
  CHECK(scene.explain(view, {"part", 0}).find("B Sw<2,4,3>") != std::string::npos);
}

TEST_CASE("Hopper GEMM: C's tiles have the numbers of the launch's order", "[hopper_gemm_scene]") {
  const std::int64_t edge = 384;
  for (const char* raster : {"rows", "columns", "grouped"}) {
    for (const char* variant : {"warp-specialized", "persistent"}) {
      CAPTURE(raster, variant);
      const HopperGemmScene scene = scene_of(
          of(variant,
             {{"raster", std::string(raster)}, {"m", edge}, {"n", edge}, {"k", std::int64_t{64}}}));
      const hopper_gemm::Trace& trace = scene.trace();
      const Picture picture = picture_at(scene, trace.steps());
      const Cells* tiles = mark_of<Cells>(picture, "C");
      REQUIRE(tiles != nullptr);
      for (const hopper_gemm::BlockTile& tile : trace.tiles) {
        const int place = tile.row * trace.tiles_across + tile.column;
        CHECK(tiles->items.names[place] == std::to_string(tile.number));
      }
      const auto current = std::count(tiles->items.state.each.begin(),
                                      tiles->items.state.each.end(), State::current);
      CHECK(current == 1);
    }
  }
}

TEST_CASE("Hopper GEMM: the page of the time that is shown holds the cursor",
          "[hopper_gemm_scene]") {
  const HopperGemmScene scene = scene_of(of("persistent", {{"k", std::int64_t{1000}}}));
  double before = 0;
  std::set<double> pages;
  for (int step = 0; step <= scene.trace().steps(); step += 5) {
    const picture::Axis time = picture_at(scene, step).axes.front();
    const double now = static_cast<double>(scene.moment({step, 0}).now);
    CHECK(time.low <= now);
    CHECK(now <= time.high);
    CHECK(time.low >= before);
    before = time.low;
    pages.insert(time.low);
  }
  CHECK(pages.size() > 1);
}

TEST_CASE("Hopper GEMM: without a clock nothing is said about what overlapped",
          "[hopper_gemm_scene]") {
  lab::Report report = tests::report_of("hopper-gemm");
  hopper_gemm::Trace trace = scene_of({}).trace();
  const int step = trace.steps() / 2;
  const auto ahead_is_asked = [](const HopperGemmScene& scene) {
    for (int at = 0; at < scene.trace().steps(); ++at) {
      const auto question = scene.question({Cursor{at, 0}});
      if (question && question->id == "ahead") return true;
    }
    return false;
  };
  CHECK(text_of(scene_of({}), "in_use", step) != "—");
  CHECK(ahead_is_asked(scene_of({})));
  for (Event& event : trace.events) event.clock = 0;
  report.trace = hopper_gemm::to_json(trace);
  HopperGemmScene scene;
  scene.load(report);
  CHECK(text_of(scene, "in_use", step) == "—");
  CHECK(text_of(scene, "ahead", step) == "—");
  CHECK(ahead_is_asked(scene));  // how far it may run is no matter of clocks
}
