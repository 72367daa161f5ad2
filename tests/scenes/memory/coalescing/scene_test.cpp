#include "scenes/memory/coalescing/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "scenes/picture/parts.hpp"
#include "scenes/picture/placed.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using Shown = tests::Shown<scenes::CoalescingScene>;
using tests::mark_named;

namespace {

picture::Strip train_of(Shown& shown, scenes::Cursor cursor) {
  const picture::Picture picture = shown->picture(shown->extent(), {cursor});
  return mark_named<picture::Strip>(picture, "moved");
}

/// Every lane, link and sector against the addresses that the kernel recorded.
void check_request(Shown& shown, const coalescing::WarpRequest& request, scenes::Cursor cursor) {
  const int size = shown.trace().element_bytes;
  const auto parts = shown.picture(cursor);
  const picture::Picture picture = shown->picture(shown->extent(), {cursor});
  const auto& links = mark_named<picture::Links>(picture, "request");
  std::map<std::int64_t, std::set<int>> used;
  std::size_t link = 0;
  for (int lane = 0; lane < 32; ++lane) {
    const auto& part = parts.at("lane_" + std::to_string(lane));
    if (!request.active(lane)) {
      CHECK(part.value == "wasted");
      CHECK(shown->explain({cursor}, {"lane", lane}) == fmt::format("lane {}: idle", lane));
      continue;
    }
    const std::int64_t byte = request.byte_offset[lane];
    CHECK(part.value == fmt::format("{} B", byte));
    CHECK(
        tests::contains(shown->explain({cursor}, {"lane", lane}), fmt::format("byte {}\n", byte)));
    const picture::Anchor& to = links.to.at(link);
    const bool led = coalescing::request_stats(request, size).lines <= 2;
    CHECK((links.from.at(link).key == picture::Key{"lane", lane}) == led);
    CHECK(to.key.i * 32 + std::lround(to.from * 32) == byte);
    CHECK(std::lround((to.to - to.from) * 32) == size);
    CHECK(parts.count(fmt::format("request_{}", lane)) == 1);
    ++link;
    for (int b = 0; b < size; ++b) used[(byte + b) / 32].insert(static_cast<int>((byte + b) % 32));
  }
  CHECK(link == links.from.size());
  std::size_t on_screen = 0;
  for (const auto& [id, part] : parts) {
    on_screen += part.value.ends_with(" used") && id.starts_with("sector_") ? 1 : 0;
  }
  CHECK(on_screen == used.size());
  const auto& strip = mark_named<picture::Strip>(picture, "sector");
  for (std::size_t k = 0; k < strip.address.size(); ++k) {
    const std::int64_t sector = strip.items.key(static_cast<int>(k)).i;
    CHECK(strip.address[k] == 32 * sector);
    for (int b = 0; b < 32; ++b) CHECK((strip.used[k] >> b & 1) == used.at(sector).count(b));
    CHECK(parts.at(fmt::format("sector_{}", sector)).value ==
          fmt::format("{} of 32 bytes used", used.at(sector).size()));
  }
}

}  // namespace

TEST_CASE("lanes and sectors on screen are those of the trace", "[coalescing_scene]") {
  for (const char* pattern : {"sequential", "strided", "offset", "broadcast", "aos", "permuted"}) {
    Shown shown(lab::Settings{{"pattern", pattern}, {"elements", 100}});
    const auto& trace = shown.trace();
    const scenes::StepAxis axis = shown->steps();
    CHECK(axis.tiles == 3);
    const int warps = static_cast<int>(trace.requests.size()) / 2;
    CHECK(axis.places() == 2 * 3 + warps - 1);
    int seen = 0;  // both requests of the first warp, then the pattern's own of each
    for (int place = 1; place <= axis.places(); ++place) {
      const scenes::Cursor cursor = axis.at_place(place);
      CAPTURE(pattern, cursor.tile, cursor.phase);
      if (cursor.tile < axis.tiles && cursor.phase < 2) continue;
      const int row = shown->table_row("requests", {cursor});
      const auto& request = trace.requests.at(row);
      check_request(shown, request, cursor);
      if (cursor.tile < axis.tiles) CHECK(row == seen);
      if (cursor.tile == axis.tiles) CHECK(request.site == coalescing::Site::pattern);
      if (cursor.tile == axis.tiles) CHECK(row / 2 == seen - 1);
      ++seen;
    }
    CHECK(seen == warps + 1);
  }
}

TEST_CASE("a run ends on the pattern's own request", "[coalescing_scene]") {
  for (const char* access : {"load", "store"}) {
    Shown shown(lab::Settings{{"access", std::string(access)}});
    const scenes::StepAxis axis = shown->steps();
    const std::string said = shown->sentence(axis.at_place(axis.places()));
    CAPTURE(said);
    CHECK(tests::contains(said, fmt::format("{}s: 8 sectors", access)));
  }
}

TEST_CASE("what is loaded flies to its lanes, what is stored comes from them",
          "[coalescing_scene]") {
  Shown shown;
  for (const int step : {1, 2}) {
    const bool load =
        shown.trace().requests[static_cast<std::size_t>(step) - 1].kind == coalescing::Access::load;
    CHECK(load == (step == 1));
    const picture::Picture picture = shown->picture(shown->extent(), {{step, 2}});
    const auto& items = mark_named<picture::Strip>(picture, "sector").items;
    REQUIRE(items.count > 1);
    for (int k = 0; k < items.count; ++k) {
      const picture::Way& way = items.ways[k];
      const int first =
          k * (load ? 4 : 8);  // the lanes of a sector, two elements apart or side by side
      CHECK((load ? way.to : way.from) == picture::Key{"lane", first});
    }
  }
}

TEST_CASE("a request shows one thing after the other", "[coalescing_scene]") {
  Shown shown;  // stride 2: 8 sectors of which half is used
  const auto value = [&](const char* id, int phase) {
    for (const scenes::Readout& one : shown->readouts({{1, phase}})) {
      if (one.id == id) return one.value;
    }
    return std::string("none");
  };
  CHECK(value("sectors", 0) == "–");
  CHECK(value("sectors", 1) == "8");
  CHECK(value("efficiency", 1) == "–");
  CHECK(value("efficiency", 2) == "50");
  const auto sectors = [&](int phase) {
    return mark_named<picture::Strip>(shown->picture(shown->extent(), {{1, phase}}), "sector")
        .items.state.all;
  };
  CHECK(sectors(0) == picture::State::to_come);
  CHECK(sectors(1) == picture::State::plain);
  CHECK(shown->steps().phase_name({1, 1}) == "sectors");
  CHECK(shown->steps().phase_name({3, 1}).empty());
  CHECK(train_of(shown, {1, 1}).items.count == 0);
  CHECK(train_of(shown, {1, 2}).items.count == 8);
}

TEST_CASE("the train is as long as the request costs", "[coalescing_scene]") {
  Shown shown(lab::Settings{{"stride", 1}});
  const auto length = [&](const std::string& last) {
    const auto parts = shown.picture({1, 2});
    return parts.at(last).max.x - parts.at("moved_0").min.x;
  };
  const float one = length("moved_3");
  shown.run({{"stride", 32}});
  CHECK(std::abs(length("moved_31") - 8 * one) < 4);
  // A store of a part of a sector has the rest read; one of whole sectors has not.
  shown.run({{"stride", 8}, {"access", "store"}});
  CHECK(train_of(shown, {2, 2}).names == std::vector<std::string>{"1024 B", "read"});
  CHECK(train_of(shown, {2, 2}).items.count == 2 * 32);
  CHECK(tests::contains(shown->explain({{2, 2}}, {"moved", 40}), "read before"));
  shown.run({{"stride", 1}, {"access", "store"}});
  CHECK(train_of(shown, {2, 2}).names == std::vector<std::string>{"128 B"});
}

TEST_CASE("the train of before is outlined below that of now", "[coalescing_scene]") {
  Shown shown(lab::Settings{{"stride", 8}});
  shown.player().keep_earlier({1, 2});
  shown.load({{"stride", 2}});
  CHECK(shown.picture({1, 2}).count("moved_1_0") == 1);  // its second row
  picture::Picture now = shown->picture(shown->extent(), {{1, 2}});
  picture::add_earlier(now, shown->picture(shown->extent(), {{2, 2}}), "the store");
  const picture::Strip& train = mark_named<picture::Strip>(now, "moved");
  REQUIRE(train.items.count == 8 + 4);
  for (int k = 0; k < train.items.count; ++k) {
    CHECK((train.items.flags[k] == picture::kWas) == (k >= 8));
    CHECK(train.address[k] == (k < 8 ? 32 * k : 1024 + 32 * (k - 8)));
  }
  CHECK(picture::problems(now).empty());
  // Beside another run it is that one's.
  Shown two(lab::Settings{{"stride", 8}});
  CHECK(two.picture({1, 2}).count("moved_1_0") == 0);
  two.player().pin();
  CHECK(two.picture({1, 2}, tests::kPictureSizes[2]).count("moved_1_0") == 1);
  two.player().unpin();
  CHECK(two.picture({1, 2}).count("moved_1_0") == 0);
}

TEST_CASE("the knob at hand is the one that the pattern uses", "[coalescing_scene]") {
  Shown shown(lab::Settings{{"pattern", std::string("offset")}});
  CHECK(shown->stage_knobs() == std::vector<std::string>{"pattern", "offset", "element_bytes"});
  shown.run({{"pattern", "broadcast"}});
  CHECK(shown->stage_knobs() == std::vector<std::string>{"pattern", "element_bytes", "access"});
}

TEST_CASE("the lane that was clicked is followed from request to request", "[coalescing_scene]") {
  Shown shown;
  shown.click("lane_9", {1, 2});
  for (const int step : {1, 2}) {
    const picture::Picture picture =
        shown->picture(shown->extent(), shown.player().view({step, 2}));
    const auto picked = [](const picture::Items& items) {
      std::vector<int> all;
      for (int k = 0; k < items.count; ++k) {
        if (items.flags[k] == picture::kPicked) all.push_back(items.key(k).i);
      }
      return all;
    };
    CHECK(picked(mark_named<picture::Cells>(picture, "lane").items) == std::vector<int>{9});
    CHECK(picked(mark_named<picture::Strip>(picture, "sector").items) ==
          std::vector<int>{step == 1 ? 2 : 1});
  }
}

TEST_CASE("the coalescing questions are answered by the addresses", "[coalescing_scene]") {
  Shown shown(lab::Settings{{"pattern", "offset"}, {"offset", 1}});
  CHECK(shown->question({{0, 0}})->values == std::vector<double>{5});
  CHECK(shown.answer({1, 2}) == "lane 8");
  CHECK(shown.answer({2, 2}) == "1");      // the fifth sector is the next warp's first
  CHECK_FALSE(shown->question({{1, 0}}));  // in the middle of a request
  CHECK_FALSE(shown->question({{3, 0}}));
  // At stride 4 the train is half as long as it can be.
  shown.run({{"pattern", "strided"}, {"stride", 4}});
  const auto share = shown->question({{0, 0}});
  REQUIRE(share);
  CHECK(share->values == std::vector<double>{16});
  CHECK(scenes::is_answer(*share, {{0, 0}, -1, 16.4}));
  CHECK_FALSE(scenes::is_answer(*share, {{0, 0}, -1, 15}));
  // A column of a matrix: the next warp finds all its sectors moved already.
  shown.run({{"pattern", "matrix-column"}});
  CHECK(shown.answer({2, 2}) == "32");
  // A store by pattern comes after a plain load.
  shown.run({{"access", "store"}});
  CHECK(shown->question({{0, 0}})->id == "next-sector");
  CHECK(shown->question({{1, 2}})->id == "length");
  // Nobody can know where a shuffle, or a hand, has put the lanes.
  for (const char* pattern : {"permuted", "custom"}) {
    shown.run({{"pattern", pattern}});
    CHECK_FALSE(shown->question({{0, 0}}));
  }
}

TEST_CASE("a lane is dragged to another sector or lane", "[coalescing_scene]") {
  const scenes::View first{{1, 2}};
  Shown shown(lab::Settings{{"pattern", std::string("sequential")}});
  // Lane 0 goes to the sector of lanes 24–31: all its elements are taken, so it shares the first.
  auto asked = shown->dropped(first, {"lane", 0}, {"sector", 3});
  REQUIRE(asked);
  CHECK(std::get<std::string>(asked->at("lanes")) == "0:24");
  shown.load(*asked);
  CHECK(shown.trace().requests[0].byte_offset[0] == 24 * 4);
  CHECK(shown.trace().requests[2].byte_offset[0] == (256 + 24) * 4);
  // The next one starts from there; an element that became free is taken.
  asked = shown->dropped(first, {"lane", 9}, {"sector", 0});
  REQUIRE(asked);
  CHECK(std::get<std::string>(asked->at("lanes")) == "0:24,9:0");
  asked = shown->dropped(first, {"lane", 9}, {"lane", 31});
  REQUIRE(asked);
  CHECK(std::get<std::string>(asked->at("lanes")) == "0:24,9:31");
  // From any pattern whose lanes are near enough; none from the plain request, nor onto itself.
  CHECK_FALSE(shown->dropped({{2, 2}}, {"lane", 9}, {"sector", 0}));
  CHECK_FALSE(shown->dropped({{0, 0}}, {"lane", 9}, {"sector", 0}));
  CHECK_FALSE(shown->dropped(first, {"lane", 9}, {"lane", 9}));
  // On what another lane has of a sector is on that sector.
  CHECK(shown->dropped(first, {"lane", 9}, {"request", 25}) ==
        shown->dropped(first, {"lane", 9}, {"sector", 3}));
  shown.run({{"pattern", "strided"}, {"stride", 4}});
  CHECK(shown->dropped(first, {"lane", 1}, {"lane", 0}));
  shown.run({{"pattern", "strided"}, {"stride", 64}});
  CHECK_FALSE(shown->dropped(first, {"lane", 1}, {"lane", 0}));
  // Stores change places, so that the kernel takes them.
  shown.run({{"pattern", "sequential"}, {"access", "store"}});
  asked = shown->dropped({{2, 2}}, {"lane", 0}, {"lane", 5});
  REQUIRE(asked);
  CHECK(std::get<std::string>(asked->at("lanes")) == "0:5,5:0");
  (*asked)["access"] = std::string("store");
  shown.load(*asked);
  CHECK(shown.report().ok());
}

TEST_CASE("events of requests", "[coalescing_scene]") {
  Shown shown(lab::Settings{{"pattern", std::string("permuted")}});
  const auto events = shown->events();
  REQUIRE(events.size() >= 3);
  CHECK(events[0].text.starts_with("the first load: "));
  CHECK(events[1].text == "the first store: 4 sectors");
  CHECK(std::any_of(events.begin(), events.end(),
                    [](const auto& each) { return each.text.ends_with("most so far"); }));
}

TEST_CASE("the measured views of the coalescing lesson show the recording", "[coalescing_scene]") {
  Shown shown;
  const lab::Table& elements = *tests::recorded_bench("coalescing").table("bandwidth_by_element");
  const std::string one_byte = scenes::filled_in("{bandwidth} GB/s", elements);
  // In the smallest the views are a list to choose from.
  for (const ImVec2 size : {tests::kPictureSizes[0], tests::kPictureSizes[2]}) {
    auto parts = shown.measured("measured_view_0", size);
    CHECK(parts.at("bandwidth_by_stride").value == "4 curves");
    parts = shown.measured("measured_view_1", size);
    CHECK(parts.at("measured_view_1").label == "DRAM traffic");
    CHECK(parts.at("dram_bytes").value == "2 curves");
    // Loads and stores have their own; a store reads what it does not fill.
    CHECK(shown.measured("dram_access_1", size).at("dram_access_1").value == "selected");
    parts = shown.measured("measured_view_2", size);
    CHECK(parts.at("bandwidth_by_element_0").label == "1 byte");
    CHECK(parts.at("bandwidth_by_element_0").value == one_byte);
    CHECK(parts.at("bandwidth_by_element_4").label == "16 bytes");
  }
  const auto opened = [&](std::string_view name) {
    for (int view = 0;; ++view) {
      const std::string id = fmt::format("measured_view_{}", view);
      const auto parts = shown.measured(id, tests::kPictureSizes[2]);
      if (parts.at(id).label == name) return parts;
    }
  };
  // The copy of the device is the roof of the others, no rung.
  auto parts = opened("Copy ladder");
  CHECK(parts.count("copy_bandwidth_1") == 1);
  for (const auto& [id, part] : parts) CHECK(part.label != "device");
  parts = opened("Transpose");
  CHECK(parts.at("banks_0").value == "no conflict");
  CHECK(parts.at("banks_1").value == "32-way");
  CHECK(parts.at("bank_words_32").value == "32");
  CHECK(parts.at("bank_words_33").value == "0");
}

TEST_CASE("one load a thread: wide or side by side", "[coalescing_scene]") {
  lab::Table launches{
      "bandwidth_by_launch", "", {"stride", "element_bytes", "access", "launch", "bandwidth"}};
  launches.add({2, 16, "load", "1 load a thread", 2900.0});
  launches.add({1, 4, "load", "1 load a thread", 2700.0});
  const auto bench = [&] { return tests::MadeUpBench<scenes::CoalescingScene>({launches}); };
  CHECK(bench().answer("wide-or-sequential") == "not asked");  // nor what four loads change
  launches.add({1, 4, "load", "4 loads a thread", 4100.0});
  CHECK(bench().answer("wide-or-sequential") == "16 bytes at stride 2");
  CHECK(tests::contains(bench().asked("wide-or-sequential").because, "4100"));
  launches.rows[1][4] = 3000.0;
  CHECK(bench().answer("wide-or-sequential") == "4 bytes, sequential");
}

TEST_CASE("a plot under Measured says what the pointer is on", "[coalescing_scene]") {
  Shown shown;
  const scenes::measured::Spec spec = shown->measured_spec();
  const auto& banks = std::get<scenes::measured::Pictured>(spec.views.back().plots.back());
  const picture::Picture picture = banks.picture({});
  CHECK(picture::problems(picture).empty());
  std::size_t once = 0;
  for (const picture::Mark* mark : picture::marks_of(picture)) {
    const auto* words = std::get_if<picture::Cells>(mark);
    for (int bank = 0; words != nullptr && bank < words->items.count; ++bank) {
      const auto at = static_cast<std::size_t>(bank);
      const bool one = words->items.value[at] == 1;
      CHECK((words->items.tone.each[at] == 5) == one);  // stands out where it is the only word
      once += one;
    }
  }
  CHECK(once >= 32);
  CHECK(banks.explain({}, {"bank_words", 32}) ==
        "Bank 0 delivers 32 words to the warp, one after the other.");
  CHECK(banks.explain({}, {"bank_words", 1}) == "Bank 1 delivers 1 word to the warp.");
  CHECK(banks.explain({}, {"banks", 1}).empty());
}
