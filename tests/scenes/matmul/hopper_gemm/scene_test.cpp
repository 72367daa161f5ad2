#include "scenes/matmul/hopper_gemm/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "kernels/base/simt/hopper.hpp"
#include "kernels/matmul/hopper_gemm/kernels.hpp"
#include "scenes/picture/compare.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/ui/picture_view.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using hopper_gemm::Event, hopper_gemm::What;
using picture::Cells, picture::Key, picture::Picture, picture::Spans, picture::State;
using scenes::Cursor, scenes::HopperGemmScene, scenes::HopperMoment, scenes::StageNow;
using tests::mark_of, tests::picture_at;

namespace {

lab::Settings of(const char* variant, lab::Settings more = {}) {
  more["variant"] = std::string(variant);
  return more;
}
/// No bench timed a ring with this swizzle: the lanes are those of the trace.
const std::pair<const std::string, lab::KnobValue> kNotTimed = {"swizzle", std::string("64")};
const std::vector<lab::Settings> kRuns = {
    of("mma-sync"),
    of("wgmma"),
    of("tma", {kNotTimed}),
    of("pipelined", {kNotTimed}),
    of("warp-specialized", {kNotTimed}),
    of("warp-specialized", {kNotTimed, {"stages", std::int64_t{2}}}),
    of("multicast"),
    of("persistent", {{"k", std::int64_t{1000}}})};

HopperGemmScene scene_of(const lab::Settings& settings) {
  HopperGemmScene scene;
  scene.load(tests::report_of("hopper-gemm", settings));
  return scene;
}
/// As if the run of these settings had had this trace; `broken`: by this kernel.
HopperGemmScene scene_with(const hopper_gemm::Trace& trace, const lab::Settings& settings = {},
                           const char* broken = "none") {
  lab::Report report = tests::report_of("hopper-gemm", settings);
  report.trace = hopper_gemm::to_json(trace);
  report.params["break"] = std::string(broken);
  HopperGemmScene scene;
  scene.load(report);
  return scene;
}

/// As which event something happened until a step; by kind, lane and number.
class Order {
 public:
  Order(const hopper_gemm::Trace& trace, int step) {
    for (int e = 0; e < step; ++e) {
      const Event& event = trace.events[e];
      at_.try_emplace({event.what, event.lane, event.number}, e + 1);
    }
  }
  std::optional<double> at(What what, int lane, int number) const {
    const auto found = at_.find({what, lane, number});
    return found == at_.end() ? std::nullopt : std::optional<double>(found->second);
  }

 private:
  std::map<std::tuple<What, int, int>, int> at_;
};

/// A bar on screen: its lane and beats, and the events that it begins and ends with; infinite: not ended.
struct Bar {
  int lane;
  double from, to, begins, ends;
};

/// All bars but waits, with their events by another way than the scene's.
std::vector<Bar> bars_of(const HopperGemmScene& scene, int step) {
  const auto& trace = scene.trace();
  const Picture picture = picture_at(scene, step);
  const Order order(trace, step);
  const auto event = [&](What what, int lane, int number) {
    return order.at(what, lane, number).value_or(INFINITY);
  };
  const auto landed = [&](int k) {
    if (!hopper_gemm::has_tma(trace.variant)) return event(What::copies, 0, k);
    return std::min({event(What::flips, 0, k), event(What::flips, -1, k), event(What::issues, 1, k),
                     event(What::issues, 2, k)});
  };
  const auto released = [&](int k) {
    const double one = event(What::releases, 1, k), two = event(What::releases, 2, k);
    return trace.readers() > 1 ? std::max(one, two) : std::min(one, two);
  };
  const auto multiplied_from = [&](int k, int lane) {
    const bool queued = trace.variant != hopper_gemm::Variant::mma_sync &&
                        order.at(What::issues, lane, k - 1).has_value();
    return std::max(event(What::issues, lane, k), queued ? event(What::waited, lane, k - 1) : 0);
  };
  std::vector<Bar> bars;
  for (const char* name : {"copy", "held", "product", "storing"}) {
    const Spans* spans = mark_of<Spans>(picture, name);
    for (int i = 0; spans != nullptr && i < spans->items.count; ++i) {
      const int id = spans->items.ids[i], half = id / 2, lane = 1 + id % 2;
      Bar bar{spans->lane[i], spans->begin[i], spans->end[i], event(What::copies, 0, id),
              landed(id)};
      if (name[0] == 'h') bar.begins = landed(id), bar.ends = released(id);
      if (name[0] == 'p') bar.begins = multiplied_from(half, lane);
      if (name[0] == 'p') bar.ends = event(What::waited, lane, half);
      if (name[0] == 's') bar.begins = event(What::stores, lane, half);
      if (name[0] == 's') bar.ends = event(What::stored, lane, half);
      CHECK((bar.begins <= step && (bar.to == spans->now || !std::isinf(bar.ends))));
      bars.push_back(bar);
    }
  }
  return bars;
}

/// Beats say what ended before what began, and nothing else.
void check_bars(const HopperGemmScene& scene, int step) {
  const std::vector<Bar> bars = bars_of(scene, step);
  for (const Bar& one : bars) {
    for (const Bar& other : bars) {
      const bool known = (one.to <= other.from) == (one.ends <= other.begins);
      const bool apart =
          &one == &other || one.lane != other.lane || one.to <= other.from || other.to <= one.from;
      if (known && apart) continue;
      FAIL_CHECK(step << ": " << one.lane << " at " << one.begins << ", " << other.lane << " at "
                      << other.begins);
    }
  }
}

void check_ring(const HopperGemmScene& scene, int step) {
  const hopper_gemm::Trace& trace = scene.trace();
  const HopperMoment now = scene.moment({step, 0});
  const Order order(trace, step);
  std::set<int> held;
  for (const StageNow& stage : now.stages) {
    CHECK_FALSE(stage.read_early);
    CHECK_FALSE(stage.overwritten);
    if (stage.k_tile < 0) continue;
    CHECK(held.insert(stage.k_tile).second);
    CHECK((order.at(What::expects, 0, stage.k_tile) || order.at(What::copies, 0, stage.k_tile)));
    if (stage.state == StageNow::released) {
      for (int c = 1; c <= trace.consumers; ++c) CHECK(order.at(What::releases, c, stage.k_tile));
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
    for (int step = 1; step <= steps; step += steps > 150 ? 7 : 2) {
      CAPTURE(step);
      check_bars(scene, step);
      check_ring(scene, step);
    }
    const HopperMoment end = scene.moment({steps, 0});
    const Order order(scene.trace(), steps);
    int released = 0;
    for (const auto& [number, life] : end.lives) {
      bool all = true;
      for (int c = 1; c <= scene.trace().consumers; ++c) {
        all = all && order.at(What::releases, c, number).has_value();
      }
      released += all ? 1 : 0;
    }
    CHECK(end.released == released);
    CHECK(std::ssize(end.lives) == scene.trace().k_tiles() * std::ssize(scene.trace().tiles));
    for (const scenes::ConsumerNow& consumer : end.consumers) {
      CHECK(consumer.added == scene.trace().k_tiles());
      CHECK(consumer.under_way.empty());
    }
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
    if (step == scene.trace().steps()) CHECK(text_of(scene, "in_use", step) == "0");
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
  hopper_gemm::Trace trace = scene_of({}).trace();
  std::erase_if(trace.events, [](const Event& event) { return event.what == What::lands; });
  trace.clock_unit = "cycles";
  const HopperGemmScene scene = scene_with(trace);
  for (int step = 1; step <= trace.steps(); ++step) {
    const Event& event = trace.events[step - 1];
    if (event.what == What::copies) CHECK(text_of(scene, "pending", step) == "—");
    if (event.what == What::flips) CHECK(text_of(scene, "pending", step) == "0");
    CHECK(scene.explain({Cursor{step, 0}}, {"copy", 0}).find("landed") == std::string::npos);
  }
}

TEST_CASE("Hopper GEMM: what is overwritten or read too early is marked", "[hopper_gemm_scene]") {
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
  const HopperGemmScene scene = scene_with(trace, {}, "skip-empty-wait");
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
    // Rows as they come have one chunk in one group of banks, each in the tone of its banks; rows in a stage in
    // all eight.
    const auto framed = [&](const Cells& cells) {
      std::set<int> groups, tones;
      for (int place = 0; place < 64; ++place) {
        if ((cells.items.flags[place] & picture::kPicked) == 0) continue;
        CHECK(cells.items.names[place] == "0");
        groups.insert(place % 8);
        tones.insert(cells.items.tone[place]);
      }
      CHECK(tones.size() == groups.size());
      return groups.size();
    };
    const Cells* plain = mark_of<Cells>(picture, "plain_chunk");
    REQUIRE(plain != nullptr);
    CHECK(framed(*plain) == 1);
    CHECK(framed(*chunks) == 8);
    CHECK(picture::plain(mark_of<picture::Lines>(picture, "plain_turn")->rows[0].full) ==
          "8 turns");
    CHECK(picture::plain(mark_of<picture::Lines>(picture, "swizzled_turn")->rows[0].full) ==
          "1 turn");
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
  CHECK((chunks->items.flags[place] & picture::kPicked) != 0);
  const std::string said = scene.explain(view, {"chunk", place});
  CHECK(said.find("Sw<2,4,3> o (128,(32,2)):(32,(1,4096))") != std::string::npos);
  // 128 rows of 64 bytes lie before the second panel.
  CHECK(said.find("row 2, k 40–47 of A in a stage\nbyte 8320, plain 8336\nbanks 0–3") !=
        std::string::npos);
  CHECK(scene.explain(view, {"part", 0}).find("B Sw<2,4,3>") != std::string::npos);
}

TEST_CASE("Hopper GEMM: C's tiles have the numbers of the launch's order", "[hopper_gemm_scene]") {
  const std::int64_t edge = 384;
  for (const auto raster : all_of<hopper_gemm::Raster>()) {
    for (const char* variant : {"warp-specialized", "persistent"}) {
      CAPTURE(std::string(name_of(raster)), variant);
      const lab::Settings settings =
          of(variant, {{"m", edge}, {"n", edge}, {"k", std::int64_t{64}}});
      hopper_gemm::Trace trace = scene_of(settings).trace();
      // As if the launch had taken its tiles in this order.
      trace.raster = raster;
      const auto order = hopper_gemm::tiles_of({trace.m, trace.n, trace.k},
                                               trace.rows * trace.cluster, trace.columns, raster);
      for (hopper_gemm::BlockTile& tile : trace.tiles) {
        const auto place = order.place(tile.number);
        tile.row = place.row * trace.cluster + trace.block % trace.cluster;
        tile.column = place.column;
      }
      const Picture picture = picture_at(scene_with(trace, settings), trace.steps());
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

TEST_CASE("Hopper GEMM: the current beat is shaded, and never goes back", "[hopper_gemm_scene]") {
  const HopperGemmScene scene = scene_of(of("persistent", {{"k", std::int64_t{1000}}}));
  int before = 0;
  for (int step = 1; step <= scene.trace().steps(); step += 5) {
    const picture::Axis order = picture_at(scene, step).axes.front();
    CHECK(order.current_group >= before);
    before = order.current_group;
  }
  CHECK(before > 40);
}

TEST_CASE("Hopper GEMM: without a clock nothing is said about what overlapped",
          "[hopper_gemm_scene]") {
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
  const HopperGemmScene scene = scene_with(trace);
  CHECK(text_of(scene, "in_use", step) == "—");
  CHECK(text_of(scene, "ahead", step) == "—");
  CHECK(ahead_is_asked(scene));  // how far it may run is no matter of clocks
}

// ---- in cycles ------------------------------------------------------------------------------------

namespace {

/// A picture at a step as it is on screen: where things lie, by key.
std::map<Key, picture::Area> areas_of(const HopperGemmScene& scene, const picture::Extent& extent,
                                      int step) {
  std::map<Key, picture::Area> all;
  const picture::Placed placed = picture::place(scene.picture(extent, {Cursor{step, 0}}),
                                                {0, 0, 832, 447}, ui::PictureMetrics());
  for (const picture::Piece& piece : placed.pieces) all.try_emplace(piece.of.key, piece.area);
  return all;
}
Key product_of(int stages, int k_tile) {
  return {"timed_product", stages * scenes::kTimed + k_tile};
}
double recorded(std::string_view table, scenes::CellTexts row, std::string_view column) {
  return scenes::number_with(tests::recorded_bench("hopper-gemm"), table, row, column).value();
}

}  // namespace

TEST_CASE("Hopper GEMM: beside each other tma and pipelined are as long as they were measured",
          "[hopper_gemm_scene]") {
  const HopperGemmScene one = scene_of(of("tma")), four = scene_of(of("pipelined"));
  tests::SceneFrame frame;
  frame.show({860, 480}, [&] {
    const auto slow =
        areas_of(one, picture::united(one.extent(), four.extent()), one.trace().steps());
    const auto fast =
        areas_of(four, picture::united(four.extent(), one.extent()), four.trace().steps());
    const auto pitch = [](const auto& areas, int stages) {
      return (areas.at(product_of(stages, 5)).x0 - areas.at(product_of(stages, 0)).x0) / 5;
    };
    const auto cycles = [](const char* stages) {
      return recorded("stages_measured", {{"stages", stages}}, "cycles");
    };
    const double longer = pitch(slow, 1) / pitch(fast, 4);
    CHECK(std::abs(longer / (cycles("1") / cycles("4")) - 1) < 0.02);
    CHECK(pitch(fast, 1) == pitch(slow, 1));
    CHECK(std::abs(pitch(fast, 2) / pitch(fast, 4) / (cycles("2") / cycles("4")) - 1) < 0.02);
    // The tensor cores are the thickest lane, and their products take what the instruction takes.
    const picture::Area product = fast.at(product_of(4, 3));
    CHECK(product.height() > 1.5f * fast.at({"timed_copy", 4 * scenes::kTimed + 3}).height());
    CHECK(std::abs(product.width() - pitch(fast, 4) * 1024 / static_cast<float>(cycles("4"))) < 2);
    // The clock falls under the load, so that rates differ less than cycles: as in the ladder, at the same k.
    const auto rate = [](const auto& areas) {
      float most = 0;
      for (const auto& [key, area] : areas) {
        if (key.is({"rate"})) most = std::max(most, area.width());
      }
      return most;
    };
    const auto rung = [](const char* name) {
      return recorded("ladder_measured", {{"rung", name}, {"size", "16384³"}}, "tflops");
    };
    CHECK(std::abs(rate(fast) / rate(slow) / (rung("pipelined") / rung("tma")) - 1) < 0.15);
  });
  const auto at_end = four.picture(four.extent(), {scenes::Cursor{four.steps().tiles, 0}});
  CHECK(at_end.subject == std::vector<std::string>{"lanes", "rates"});
}

TEST_CASE("Hopper GEMM: cycles are shown of what the trace has come to, and only of what was timed",
          "[hopper_gemm_scene]") {
  const HopperGemmScene scene = scene_of({});
  for (int step = 0; step <= scene.trace().steps(); ++step) {
    CAPTURE(step);
    const Order order(scene.trace(), step);
    const Picture picture = picture_at(scene, step);
    int issued = 0;
    while (issued < scenes::kTimed && order.at(What::issues, 1, issued)) ++issued;
    const Spans* products = mark_of<Spans>(picture, "timed_product");
    REQUIRE(products != nullptr);
    CHECK(products->items.count == 3 * issued);  // one stage, two and four
    const Spans* copies = mark_of<Spans>(picture, "timed_copy");
    for (const int id : copies->items.ids) {
      const int k = id % scenes::kTimed, stages = id / scenes::kTimed;
      CHECK(order.at(What::copies, 0, k));
      CHECK((k < stages || order.at(What::issues, 1, k - stages)));
    }
    CHECK(mark_of<Spans>(picture, "rate")->items.count == (issued > 0 ? 3 : 0));
  }
  for (const lab::Settings& settings :
       {of("wgmma"), of("tma", {kNotTimed}), of("persistent"), of("multicast"),
        of("pipelined", {{"dtype", std::string("fp8-e4m3")}}),
        of("pipelined", {{"consumers", std::int64_t{1}}}),
        of("pipelined", {{"stages", std::int64_t{5}}}),
        of("pipelined", {{"break", std::string("skip-full-wait")}})}) {
    const HopperGemmScene other = scene_of(settings);
    const Picture picture = picture_at(other, other.trace().steps());
    CHECK(mark_of<Spans>(picture, "timed_product") == nullptr);
    CHECK(mark_of<Spans>(picture, "product") != nullptr);
  }
}

TEST_CASE("Hopper GEMM: arrows lead from device memory to a stage while bytes are on their way",
          "[hopper_gemm_scene]") {
  for (const char* variant : {"wgmma", "warp-specialized", "multicast"}) {
    const HopperGemmScene scene = scene_of(of(variant));
    const int all = scene.trace().cluster > 1 ? 3 : 2;
    int drawn = 0;
    for (int step = 1; step <= scene.trace().steps(); ++step) {
      const Event& event = scene.trace().events[step - 1];
      const Picture picture = picture_at(scene, step);
      const auto* ways = mark_of<picture::Links>(picture, "tma");
      const int count = ways == nullptr ? 0 : ways->items.count;
      CAPTURE(variant, step);
      if (event.what == What::copies) CHECK(count == (ways == nullptr ? 0 : all));
      if (event.what == What::flips || event.what == What::issues) CHECK(count == 0);
      if (count > 0) CHECK(ways->to[0].key == Key{"part", event.stage, 0});
      if (count == 3) {
        // One read of B: the half that this block asks for goes into both blocks' stages, the other is not its own.
        const int half = scene.trace().tiles[0].row % 2;
        CHECK(ways->from[1].key == ways->from[2].key);
        CHECK(ways->to[1].key == Key{"part", event.stage, 1 + half});
        CHECK(ways->to[2].key == Key{"multicast", event.stage, 1 + half});
        const auto& parts = mark_of<Cells>(picture, "part")->items.state;
        if (event.what == What::copies) CHECK(parts[3 * event.stage + 2 - half] != State::current);
      }
      drawn += count;
    }
    CHECK((drawn > 0) == (std::string_view(variant) != "wgmma"));
  }
}

TEST_CASE("what a consumer has added is told of that consumer", "[hopper_gemm_scene]") {
  const HopperGemmScene scene = scene_of(of("warp-specialized", {kNotTimed}));
  std::map<int, int> added;
  const auto& events = scene.trace().events;
  for (std::size_t e = 0; e < events.size(); ++e) {
    if (events[e].what != What::waited) continue;
    const int count = ++added[events[e].lane];
    const std::string told =
        picture::plain(picture_at(scene, static_cast<int>(e) + 1).headline.full);
    INFO(told);
    CHECK(tests::contains(told, fmt::format("consumer {}: {} of ", events[e].lane - 1, count)));
  }
  CHECK(added.size() == 2);
}
