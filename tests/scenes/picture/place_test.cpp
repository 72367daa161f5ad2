#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "scenes/picture/look.hpp"
#include "scenes/picture/paint.hpp"
#include "scenes/picture/parts.hpp"
#include "tests/catch.hpp"
#include "tests/scenes/picture/stubs.hpp"

using namespace tilestep;
using namespace tilestep::picture;
using tests::Typewriter;

namespace {

/// Whether the glyphs touch: lines of text have air above and below.
bool overlap(const Area& a, const Area& b) {
  const float x = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  const float y = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  return x > 1 && y > 0.34f * std::min(a.height(), b.height());
}

/// What is wrong with a placement, a sentence each.
std::vector<std::string> faults(const Placed& placed) {
  std::vector<std::string> found;
  const auto outside = [&](const Area& a) {
    const Area& all = placed.area;
    return !std::isfinite(a.x0 + a.x1 + a.y0 + a.y1) || a.x0 < all.x0 - 6 || a.y0 < all.y0 - 6 ||
           a.x1 > all.x1 + 6 || a.y1 > all.y1 + 6;
  };
  for (const Piece& piece : placed.pieces) {
    if (outside(piece.area)) found.push_back(to_text(piece.of.key) + " is outside");
    if (piece.area.x1 < piece.area.x0 || piece.area.y1 < piece.area.y0) {
      found.push_back(to_text(piece.of.key) + " is inside out");
    }
  }
  for (const Stroke& stroke : placed.strokes) {
    for (const Point& p : stroke.points) {
      if (outside({p.x, p.y, p.x, p.y})) found.push_back(to_text(stroke.of.key) + " leads outside");
    }
  }
  for (std::size_t i = 0; i < placed.words.size(); ++i) {
    const Words& words = placed.words[i];
    if (outside(words.area)) found.push_back("'" + words.text + "' is outside");
    for (std::size_t j = 0; j < i; ++j) {
      if (overlap(words.area, placed.words[j].area)) {
        found.push_back(fmt::format("'{}' lies on '{}'", words.text, placed.words[j].text));
      }
    }
  }
  for (const Room& room : placed.rooms) {
    if (room.area.width() + 1 < room.least.x || room.area.height() + 1 < room.least.y) {
      found.push_back(to_text(room.key) + " has collapsed");
    }
  }
  return found;
}

using Stub = std::pair<const char*, Picture>;
std::vector<Stub> stubs() {
  return {{"attention", tests::attention_grid(4, 5)}, {"ring", tests::copy_ring(4, 6)},
          {"warps", tests::warps_over_time(8, 90)},   {"pages", tests::page_table(3, 40)},
          {"ledger", tests::byte_ledger(2)},          {"gpus", tests::two_gpus(4, 2)}};
}

const Words* words_of(const Placed& placed, const Key& key) {
  for (const Words& words : placed.words) {
    if (words.of.key == key) return &words;
  }
  return nullptr;
}
const Piece* piece_of(const Placed& placed, const Key& key) {
  for (const Piece& piece : placed.pieces) {
    if (piece.of.key == key) return &piece;
  }
  return nullptr;
}

Picture two_rows() {
  Picture picture;
  picture.headline = text("What happens here in one sentence.");
  picture.axes = {{.name = "key",
                   .kind = Axis::band,
                   .count = 8,
                   .group = 4,
                   .group_name = "tile",
                   .current_group = 1},
                  {.name = "score", .low = -2, .high = 6},
                  {.name = "weight"}};
  Bars scores{items("score", {1, 3, 0.5f, 2, -1, 5, 4, 1}, {Format::fixed, 1}), "key", "score"};
  Bars weights{items("weight", std::vector<float>(8, 0.25f), {Format::fixed, 2}), "key", "weight"};
  Box upper = box({"scores"}, {scores, Rule{{"m"}, "score", 5, State::plain, text("m = 5.0")}},
                  text("score"));
  upper.left = 3;
  upper.right = 5;
  upper.least_height = 3;
  Box lower = box({"weights"}, {weights}, text("weight"));
  lower.least_height = 2;
  lower.rank = 1;
  picture.root = column({"all"}, {upper, lower});
  return picture;
}

}  // namespace

TEST_CASE("what is placed is in the picture, and no word lies on another", "[picture]") {
  for (const float scale : {1.0f, 1.5f}) {
    for (const auto& [width, height] :
         {std::pair{830.0f, 440.0f}, {1400.0f, 700.0f}, {700.0f, 380.0f}}) {
      for (const auto& [name, picture] : stubs()) {
        CAPTURE(name, scale, width);
        CHECK(problems(picture).empty());
        const Placed placed = place(picture, {10, 20, 10 + width, 20 + height}, Typewriter(scale));
        CHECK(faults(placed) == std::vector<std::string>{});
      }
      CHECK(faults(place(two_rows(), {0, 0, width, height}, Typewriter(scale))) ==
            std::vector<std::string>{});
    }
  }
}

TEST_CASE("boxes on one axis stand in line", "[picture]") {
  const Placed placed = place(two_rows(), {0, 0, 900, 500}, Typewriter());
  for (int k = 0; k < 8; ++k) {
    CHECK(piece_of(placed, {"score", k})->area.x0 == piece_of(placed, {"weight", k})->area.x0);
  }
  const Area tallest = piece_of(placed, {"score", 5})->area,
             hangs = piece_of(placed, {"score", 4})->area;
  CHECK(tallest.y0 < piece_of(placed, {"score", 6})->area.y0);
  CHECK(hangs.y0 == Approx(tallest.y1).margin(2));  // below zero
  // Between groups there is a gap.
  const auto left = [&](int k) { return piece_of(placed, {"score", k})->area.x0; };
  CHECK(left(4) - left(3) > left(3) - left(2) + 2);
  REQUIRE(words_of(placed, {"tile", 1}) != nullptr);
  CHECK(words_of(placed, {"tile", 1})->text == "tile 1");
}

TEST_CASE("where there is too little room boxes of a higher rank go, and none collapses",
          "[picture]") {
  CHECK(place(two_rows(), {0, 0, 900, 500}, Typewriter()).folded.empty());
  const Placed small = place(two_rows(), {0, 0, 500, 150}, Typewriter());
  CHECK(small.folded == std::vector<Key>{{"weights"}});
  CHECK(piece_of(small, {"weight", 0}) == nullptr);
  CHECK(faults(small) == std::vector<std::string>{});
}

TEST_CASE("boxes of an even one share its room by their weights alone", "[picture]") {
  Box wide = box({"wide"}, {}), narrow = box({"narrow"}, {}), thin = box({"thin"}, {});
  wide.least_width = 10;
  thin.weight = 0;
  const auto width_of = [&](bool even, const char* name, float width) {
    Picture picture;
    picture.root = row({"all"}, {wide, thin, narrow});
    picture.root.even = even;
    const Placed placed = place(picture, {0, 0, width, 200}, Typewriter());
    for (const Room& room : placed.rooms) {
      if (to_text(room.key) == name) return room.area.width();
    }
    return 0.0f;
  };
  CHECK(width_of(false, "wide", 600) > width_of(false, "narrow", 600) + 50);
  CHECK(width_of(true, "wide", 600) == Approx(width_of(true, "narrow", 600)));
  CHECK(width_of(true, "thin", 600) == Approx(width_of(false, "thin", 600)));
  // But none gets less than it needs.
  CHECK(width_of(true, "wide", 380) == Approx(190));
  CHECK(width_of(true, "narrow", 380) < 120);
}

TEST_CASE("what may stand side by side does where there is not the height", "[picture]") {
  Picture picture;
  picture.root = column({"all"}, {box({"upper"}, {}), box({"lower"}, {})});
  picture.root.flow = Box::either;
  for (Box& inner : picture.root.boxes) inner.least_height = 5;
  const auto stand_in_row = [&](float width, float height) {
    const Placed placed = place(picture, {0, 0, width, height}, Typewriter());
    CHECK(placed.folded.empty());
    REQUIRE(placed.rooms.size() == 3);
    return placed.rooms[2].area.x0 > placed.rooms[1].area.x1;
  };
  CHECK_FALSE(stand_in_row(400, 300));
  CHECK(stand_in_row(400, 120));
  CHECK_FALSE(stand_in_row(90, 120));  // there is not the width either
}

TEST_CASE("a box keeps its place whatever its values are", "[picture]") {
  Picture picture = two_rows();
  const Placed before = place(picture, {0, 0, 900, 500}, Typewriter());
  std::get<Bars>(picture.root.boxes[0].marks[0]).items.value.each = {6, 6, 6, 6, 6, 6, 6, 6};
  std::get<Rule>(picture.root.boxes[0].marks[1]).label = text("m = −12345.678");
  picture.headline = text("A word.");
  const Placed after = place(picture, {0, 0, 900, 500}, Typewriter());
  REQUIRE(before.rooms.size() == after.rooms.size());
  for (std::size_t i = 0; i < before.rooms.size(); ++i)
    CHECK(before.rooms[i].area == after.rooms[i].area);
}

TEST_CASE("where a box lies is painted under it and named, and moves nothing", "[picture]") {
  Picture picture = two_rows();
  picture.root.boxes[1].left = 0;
  const Area area{0, 0, 900, 500};
  const Placed plain = place(picture, area, Typewriter());
  picture.root.boxes[0].place = Place::device_memory;
  picture.root.boxes[1].place = Place::registers;
  const Placed lying = place(picture, area, Typewriter());
  CHECK(faults(lying) == std::vector<std::string>{});
  for (std::size_t k = 0; k < plain.rooms.size(); ++k)
    CHECK(plain.rooms[k].area == lying.rooms[k].area);
  std::vector<Piece> slabs, others;
  for (const Piece& piece : lying.pieces) {
    (piece.kind == Piece::slab ? slabs : others).push_back(piece);
  }
  REQUIRE(others.size() == plain.pieces.size());
  for (std::size_t k = 0; k < others.size(); ++k) CHECK(others[k].area == plain.pieces[k].area);
  REQUIRE(slabs.size() == 2);
  CHECK(slabs[0].heat > slabs[1].heat);  // nearer, and lighter
  for (const auto& [slab, room] : {std::pair{0, 1}, {1, 2}}) {
    const Area &out = slabs[slab].area, &in = lying.rooms[room].whole;
    CHECK((out.x0 < in.x0 && out.y0 < in.y0 && out.x1 > in.x1 && out.y1 > in.y1));
  }
  CHECK_FALSE(meet(slabs[0].area, slabs[1].area));
  // Below a label in the margin a word a line; else at the end of the label's row.
  std::map<std::string, Area> named;
  for (const Words& words : lying.words) {
    if (words.of.part >= kPlacePart && words.of.part < 255) named[words.text] = words.area;
  }
  REQUIRE(named.size() == 3);
  CHECK(named["device"].y0 >= words_of(lying, {"scores"})->area.y1);
  CHECK(named["memory"].y0 >= named["device"].y1);
  CHECK(named["registers"].x1 == Approx(900).margin(1));
  CHECK(named["registers"].y0 == words_of(lying, {"weights"})->area.y0);
  std::map<std::string, std::string> values;
  for (const Part& part : parts_of(lying, marks_of(picture))) values[part.id] = part.value;
  CHECK(values["scores"] == "device memory");
  CHECK(values["weights"] == "registers");
  CHECK(values["all"].empty());
}

TEST_CASE("the name of a place makes way for what a box says", "[picture]") {
  const auto named = [](float width, const char* label) {
    Picture picture;
    picture.root = column({"all"}, {box({"box"}, {Cells{items("cell", 4)}}, text(label),
                                        {.place = Place::device_memory})});
    std::string name;
    for (const Words& words : place(picture, {0, 0, width, 200}, Typewriter()).words) {
      if (words.of.part == kPlacePart) name = words.text;
    }
    return name;
  };
  CHECK(named(300, "cells") == "device memory");
  CHECK(named(120, "cells") == "memory");
  CHECK(named(120, "cells, and more").empty());
}

TEST_CASE("a thing lies where the box says that is nearest round it, and an outline nowhere",
          "[picture]") {
  Cells cells{items("cell", 2)};
  cells.items.glyph.each = {kSolid, kHollow};
  Picture picture;
  picture.root = column({"outer"}, {box({"inner"}, {cells}, {}, {.place = Place::registers}),
                                    box({"other"}, {Cells{items("beside", 1)}})});
  picture.root.place = Place::device_memory;
  const Placed placed = place(picture, {0, 0, 300, 200}, Typewriter());
  const auto lies = [&](const Key& key) {
    const Piece* piece = piece_of(placed, key);
    return place_of(placed, marks_of(picture), piece->of, piece->area.center());
  };
  CHECK(lies({"cell", 0}) == Place::registers);
  CHECK(lies({"cell", 1}) == Place::nowhere);
  CHECK(lies({"beside", 0}) == Place::device_memory);
}

TEST_CASE("a long band becomes a window round what is worked on", "[picture]") {
  Picture picture = two_rows();
  picture.axes[0].count = 4096;
  picture.axes[0].focus = 2000;
  picture.axes[0].current_group = 500;
  for (Box& box : picture.root.boxes) {
    std::get<Bars>(box.marks[0]).items.count = 4096;
    std::get<Bars>(box.marks[0]).items.value = {1, std::vector<float>(4096, 1.0f)};
  }
  const Placed placed = place(picture, {0, 0, 900, 500}, Typewriter());
  CHECK(piece_of(placed, {"score", 2000}) != nullptr);
  CHECK(piece_of(placed, {"score", 0}) == nullptr);
  CHECK(placed.pieces.size() < 1600);
  // All of it in small, the window framed.
  const Piece* window = piece_of(placed, {"overview"});
  REQUIRE(window != nullptr);
  CHECK(window->area.width() < 0.1f * 900);
  float left = 1e9f, right = 0;
  for (const Piece& piece : placed.pieces) {
    if (piece.of.key.name != Name("overview") || piece.of.key.i < 0) continue;
    left = std::min(left, piece.area.x0);
    right = std::max(right, piece.area.x1);
  }
  CHECK(window->area.center().x == Approx(left + (right - left) * 2000 / 4096).margin(20));
  CHECK(faults(placed) == std::vector<std::string>{});
}

TEST_CASE("numbers that are none, and no room at all, are drawn as far as they can be",
          "[picture]") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(),
                  inf = std::numeric_limits<float>::infinity();
  Picture picture = two_rows();
  std::get<Bars>(picture.root.boxes[0].marks[0]).items.value.each = {nan,    inf, -inf, 1e30f,
                                                                     -1e30f, 0,   1,    2};
  std::get<Rule>(picture.root.boxes[0].marks[1]).at = -std::numeric_limits<double>::infinity();
  CHECK(faults(place(picture, {0, 0, 900, 500}, Typewriter())) == std::vector<std::string>{});
  for (const auto& [name, stub] : stubs()) {
    CAPTURE(name);
    CHECK_NOTHROW(place(stub, {0, 0, 0, 0}, Typewriter()));
    CHECK_NOTHROW(place(stub, {5, 5, 60, 40}, Typewriter(3)));
  }
}

TEST_CASE("a value is written as far as it has room, and never as 0 if it is none", "[picture]") {
  const auto say = [](float value, Format format) {
    return written(items("x", {value}, format), 0);
  };
  CHECK(say(4, {Format::fixed, 1}) == "4.0");
  CHECK(say(-4.25f, {Format::fixed, 2}) == "−4.25");
  CHECK(say(0.0001f, {Format::fixed, 2}) == "≈0");
  CHECK(say(0, {Format::fixed, 2}) == "0.00");
  CHECK(say(-std::numeric_limits<float>::infinity(), {Format::fixed, 1}) == "−∞");
  CHECK(say(12, {Format::bytes, 0, "MB"}) == "12 MB");
  CHECK(say(12, {}).empty());
  Items named = items("step", 1);
  named.names = {"load"};
  CHECK(written(named, 0) == "load");
}

TEST_CASE("a bar that has no room for its number has no other number", "[picture]") {
  const auto said = [](std::vector<float> values, float wide) {
    Picture picture;
    picture.axes = {{.name = "key", .kind = Axis::band, .count = 4}, {.name = "score", .high = 6}};
    picture.root = box(
        {"scores"}, {Bars{items("score", std::move(values), {Format::fixed, 1}), "key", "score"}});
    std::vector<std::string> all;
    for (const Words& words : place(picture, {0, 0, wide, 200}, Typewriter()).words) {
      all.push_back(words.text);
    }
    return all;
  };
  using Said = std::vector<std::string>;
  const std::vector<float> fine = {0.5f, 2.5f, 4, 5}, whole = {1, 2, 4, 5};
  int shortened = 0;
  for (float wide = 20; wide < 400; wide += 10) {
    CAPTURE(wide);
    const Said of_fine = said(fine, wide), of_whole = said(whole, wide);
    CHECK((of_fine == Said{} || of_fine == Said{"0.5", "2.5", "4.0", "5.0"}));
    shortened += of_whole == Said{"1", "2", "4", "5"} ? 1 : 0;
  }
  CHECK(shortened > 0);
}

TEST_CASE("piles hold what is kept below their limit and what is dropped above", "[picture]") {
  Stacks stacks;
  stacks.items = items("expert", 3);
  stacks.kept = {6, 3, 0};
  stacks.tiles = {2, 1, 0};
  stacks.dropped = {2, 0, 0};
  stacks.tile = 4;
  stacks.limit = {{"capacity"}, {}, 6, State::plain, text("6")};
  stacks.held = items("slot", std::vector<float>(11, 12), {Format::integer});
  stacks.held.ways.resize(11);
  stacks.held.ways[3].from = {"token", 1};
  Picture picture;
  picture.root = box({"experts"}, {stacks});
  picture.root.left = 3;
  CHECK(problems(picture).empty());
  const auto area = [](const Placed& placed, const Key& key) {
    return piece_of(placed, key) == nullptr ? Area{} : piece_of(placed, key)->area;
  };
  for (const float tall : {300.0f, 90.0f}) {
    const Placed placed = place(picture, {0, 0, 400, tall}, Typewriter());
    CAPTURE(tall);
    CHECK(faults(placed) == std::vector<std::string>{});
    float lowest = 0, highest = tall;  // of the limit
    for (const Stroke& stroke : placed.strokes) {
      for (const Point& point : stroke.points) {
        lowest = std::max(lowest, point.y);
        highest = std::min(highest, point.y);
      }
    }
    for (int n = 0; n < 6; ++n) CHECK(area(placed, {"slot", n}).y0 >= highest);
    for (int n = 6; n < 8; ++n) CHECK(area(placed, {"slot", n}).y1 <= highest);
    CHECK(area(placed, {"slot", 8}).x0 > area(placed, {"slot", 0}).x1);
    CHECK(placed.flights.size() == 1);
    REQUIRE(words_of(placed, {"capacity"}) != nullptr);
  }
  CHECK(words_of(place(picture, {0, 0, 400, 300}, Typewriter()), {"slot", 0})->text == "12");
  // Without room for slots there are bars as long as the counts.
  std::get<Stacks>(picture.root.marks[0]).kept = {6000, 3000, 0};
  std::get<Stacks>(picture.root.marks[0]).tiles = {1500, 750, 0};
  std::get<Stacks>(picture.root.marks[0]).held.count = 0;
  const Placed bars = place(picture, {0, 0, 400, 300}, Typewriter());
  const auto high = [&](int pile) {
    float least = 300;
    for (const Piece& piece : bars.pieces) {
      if (piece.of.key == Key{"expert", pile} && piece.of.part == 240) least = piece.area.y0;
    }
    return bars.rooms[0].area.y1 - least;
  };
  CHECK(high(0) == Approx(2 * high(1)).margin(1));
}

TEST_CASE("a cell has parts, a band names, and a point is a dot", "[picture]") {
  Picture picture;
  picture.axes = {
      {.name = "expert", .kind = Axis::band, .count = 3, .ticks = true, .names = {"a", "b", "c"}},
      {.name = "x", .high = 2},
      {.name = "y"}};
  Cells tokens, loads;
  tokens.items = items("token", 8);
  tokens.columns = 2;
  tokens.parts = 2;
  loads.items = items("load", 3);
  loads.x = "expert";
  Curve dot;
  dot.key = {"dot"};
  dot.x = {1};
  dot.y = {0.5};
  dot.ax = "x";
  dot.ay = "y";
  picture.root =
      row({"all"}, {box({"tokens"}, {tokens}), box({"loads"}, {loads}), box({"plot"}, {dot})});
  CHECK(problems(picture).empty());
  const Placed placed = place(picture, {0, 0, 600, 200}, Typewriter());
  CHECK(faults(placed) == std::vector<std::string>{});
  const auto area = [&](int token) { return piece_of(placed, {"token", token})->area; };
  CHECK(area(0).x1 == Approx(area(1).x0));
  CHECK(area(1).x1 < area(2).x0);
  CHECK(area(4).y0 > area(0).y1);
  REQUIRE(words_of(placed, {"expert", 2}) != nullptr);
  CHECK(words_of(placed, {"expert", 2})->text == "c");
  REQUIRE(piece_of(placed, {"dot"}) != nullptr);
  CHECK(piece_of(placed, {"dot"})->kind == Piece::dot);
}

TEST_CASE("a cell is filled, striped or hollow; what is current is filled", "[picture]") {
  Cells cells{items("cell", 4)};
  cells.items.glyph.each = {kSolid, kStriped, kHollow, kHollow};
  cells.items.state.each = {State::plain, State::plain, State::plain, State::current};
  Picture picture;
  picture.root = box({"cells"}, {cells});
  const Placed placed = place(picture, {0, 0, 400, 100}, Typewriter());
  const auto kinds_of = [&](int item) {
    std::vector<Piece::Kind> kinds;
    for (const Piece& piece : placed.pieces) {
      if (piece.of.key == Key{"cell", item}) kinds.push_back(piece.kind);
    }
    return kinds;
  };
  using Kinds = std::vector<Piece::Kind>;
  CHECK(kinds_of(0) == Kinds{Piece::fill});
  CHECK(kinds_of(1) == Kinds{Piece::fill, Piece::stripes});
  CHECK(kinds_of(2) == Kinds{Piece::outline});
  CHECK(kinds_of(3) == Kinds{Piece::fill});
}

TEST_CASE("the ends of curves are told apart, and a note covers none", "[picture]") {
  Picture picture;
  picture.axes = {{.name = "x", .high = 10}, {.name = "y", .high = 10}};
  Box plot = box({"plot"}, {});
  plot.right = 8;
  for (int n = 0; n < 9; ++n) {
    Curve curve;
    curve.key = {"sum", n};
    curve.x = {0, n < 8 ? 5.0 : 10.0};
    curve.y = {0, n < 5 ? 4.0 : 4.1};
    curve.ax = "x";
    curve.ay = "y";
    curve.end = text(fmt::format("sum number {}", n));
    curve.ends_free = true;
    plot.marks.emplace_back(curve);
  }
  plot.marks.emplace_back(Note{{"note"}, {{"sum", 0}}, text("a remark")});
  picture.root = plot;
  CHECK(problems(picture).empty());
  for (const float tall : {400.0f, 200.0f}) {
    const Placed placed = place(picture, {0, 0, 800, tall}, Typewriter());
    CHECK(faults(placed) == std::vector<std::string>{});
    const auto left = [&](int n) { return words_of(placed, {"sum", n})->area.x0; };
    for (int n = 0; n < 9; ++n) REQUIRE(words_of(placed, {"sum", n}) != nullptr);
    CHECK(left(0) == left(7));
    CHECK(left(8) > left(0) + 100);  // in the margin, the others where their curves end
    REQUIRE(words_of(placed, {"note"}) != nullptr);
  }
}

TEST_CASE("above a pile stands what it keeps, and what is dropped of it", "[picture]") {
  Stacks stacks{items("expert", {6, 4}, {Format::integer})};
  stacks.kept = {6, 4};
  stacks.tiles = {2, 1};
  stacks.dropped = {2, 0};
  stacks.tile = 4;
  Picture picture;
  picture.root = box({"experts"}, {stacks});
  const Placed placed = place(picture, {0, 0, 400, 300}, Typewriter());
  std::vector<std::string> said;
  for (const Words& words : placed.words) {
    said.push_back(words.text);
    CHECK((words.ink == Ink::wrong) == (words.text == " −2"));
  }
  CHECK(said == std::vector<std::string>{"6", " −2", "4"});
}

TEST_CASE("a value stands clear of a curve of its box", "[picture]") {
  Bars bars{items("score", {2, 9.5f}, {Format::integer}), "key", "score"};
  const Curve most{.key = {"m"}, .x = {0, 1}, .y = {2.5, 2.5}, .ax = "key", .ay = "score"};
  Picture picture;
  picture.axes = {{.name = "key", .kind = Axis::band, .count = 2}, {.name = "score", .high = 10}};
  picture.root = box({"scores"}, {bars, most});
  const Placed placed = place(picture, {0, 0, 200, 200}, Typewriter());
  const auto value = std::find_if(placed.words.begin(), placed.words.end(),
                                  [](const Words& words) { return words.text == "2"; });
  const auto line = std::find_if(placed.strokes.begin(), placed.strokes.end(),
                                 [&](const Stroke& stroke) { return stroke.of.key == most.key; });
  REQUIRE(value != placed.words.end());
  REQUIRE(line != placed.strokes.end());
  CHECK(value->area.y1 <= line->points[0].y);
}

TEST_CASE("a curve lights up with whom it is of, and a click on it picks them", "[picture]") {
  const Curve sum{.key = {"sum", 4},
                  .x = {0, 1},
                  .y = {0, 1},
                  .ax = "x",
                  .ay = "y",
                  .about = {"who", 4},
                  .act = {Act::pick, "who"}};
  Picture picture;
  picture.root = box({"plot"}, {sum});
  const auto marks = marks_of(picture);
  const Identity its_end{sum.key, 6, 0, -1};
  CHECK(subjects_of(marks, its_end) == std::vector<Subject>{{"who", 4}});
  CHECK(act_of(marks, its_end).kind == Act::pick);
  CHECK(Lighting(marks, {{"who", 4}}).lights(its_end));
  CHECK_FALSE(Lighting(marks, {{"who", 3}}).lights(its_end));
}

/// Keeps what was drawn.
struct Drawn final : Canvas {
  std::vector<std::pair<Area, float>> outlines;  ///< and half of their thickness
  std::map<std::string, Color> fills;            ///< by key, the last of each
  std::map<float, float> below;                  ///< height of the tinted area by x
  Color tint = {};
  std::string now;
  void begin(const Identity& of) override { now = to_text(of.key); }
  void fill(const Area&, Color color, float) override { fills[now] = color; }
  void outline(const Area& area, const Pen& pen, float) override {
    outlines.emplace_back(area, pen.thickness / 2);
  }
  void hatch(const Area&, Color) override {}
  void dot(Point, float, Color) override {}
  void triangle(Point, Point, Point, Color) override {}
  void line(std::span<const Point>, const Pen&) override {}
  void under(std::span<const Point> points, std::span<const float> feet, Color color) override {
    tint = color;
    for (std::size_t k = 0; k < points.size(); ++k) below[points[k].x] = feet[k] - points[k].y;
  }
  void text(const Words&, Color) override {}
};

TEST_CASE("the area between a curve and its base is tinted, and light", "[picture]") {
  Picture picture{{}, {{.name = "x", .high = 4}, {.name = "y", .high = 10}}, {}};
  Curve curve{.key = {"sum"}, .x = {0, 2, 4}, .y = {2, 4, 5}, .ax = "x", .ay = "y"};
  curve.base = {2, 6, 5};
  picture.root = box({"plot"}, {curve});
  const Area area{0, 0, 400, 200};
  const auto drawn = [&] {
    CHECK(problems(picture) == std::vector<std::string>{});
    Drawn canvas;
    paint(place(picture, area, Typewriter()), {}, Typewriter(), {}, area, canvas);
    return canvas;
  };
  const Drawn between = drawn();
  REQUIRE(between.below.size() == 3);
  CHECK(between.tint.alpha < 0.5f);
  std::vector<float> heights;
  for (const auto& [x, height] : between.below) heights.push_back(height);
  CHECK(heights[0] == Approx(0).margin(0.01));
  CHECK(heights[1] < -10);  // the base is above the line
  CHECK(heights[2] == Approx(0).margin(0.01));
  std::get<Curve>(picture.root.marks[0]).base = {0};
  const Drawn down = drawn();
  REQUIRE(down.below.size() == 3);
  for (const auto& [x, height] : down.below) CHECK(height > 10);
  std::get<Curve>(picture.root.marks[0]).base = {0, 1};
  CHECK(problems(picture).size() == 1);
}

TEST_CASE("where a stop lights something the rest fades, and what is lit keeps its colour",
          "[picture]") {
  Picture picture;
  picture.root.boxes = {box({"left_box"}, {Cells{items("left", 2)}}),
                        box({"right_box"}, {Cells{items("right", 2)}})};
  const auto marks = marks_of(picture);
  const Area area{0, 0, 400, 200};
  const Placed placed = place(picture, area, Typewriter());
  const Lighting one(marks, {}, {{"left", 1}}), none(marks, {}, {});
  const auto right = std::find_if(placed.rooms.begin(), placed.rooms.end(), [](const Room& room) {
    return to_text(room.key) == "right_box";
  });
  REQUIRE(right != placed.rooms.end());
  const std::vector<Area> nothing, box_of_right = {right->area};
  const auto alphas = [&](const Emphasis& emphasis) {
    Drawn canvas;
    paint(placed, {}, Typewriter(), emphasis, area, canvas);
    std::map<std::string, bool> whole;
    for (const auto& [key, color] : canvas.fills) whole[key] = color.alpha > 0.9f;
    return whole;
  };
  using Whole = std::map<std::string, bool>;
  const Whole all = {{"left_0", true}, {"left_1", true}, {"right_0", true}, {"right_1", true}};
  CHECK(alphas({}) == all);
  CHECK(alphas({.lit = &one}) == all);  // pointed at: the rest stays
  CHECK(alphas({.lit = &none, .lit_boxes = &nothing}) == all);
  CHECK(alphas({.lit = &one, .lit_boxes = &nothing}) ==
        Whole{{"left_0", false}, {"left_1", true}, {"right_0", false}, {"right_1", false}});
  CHECK(alphas({.lit = &none, .lit_boxes = &box_of_right}) ==
        Whole{{"left_0", false}, {"left_1", false}, {"right_0", true}, {"right_1", true}});
}

TEST_CASE("the frame of a lit box stands on the slab of its place", "[picture]") {
  Picture picture;
  picture.root = box({"cells"}, {Cells{items("cell", 4)}}, {}, {.place = Place::device_memory});
  const Area area{0, 0, 200, 200};
  const Placed placed = place(picture, area, Typewriter());
  const std::vector<Area> lit = {{40, 40, 90, 90}};
  Drawn canvas;
  paint(placed, {}, Typewriter(), {.lit_boxes = &lit}, area, canvas);
  REQUIRE(canvas.outlines.size() == 2);
  CHECK(canvas.outlines[0].first == piece_of(placed, {"cells"})->area);
  CHECK(canvas.outlines[1].first == Area{36, 36, 94, 94});
}

TEST_CASE("a frame's words stand inside where others are in the way outside", "[picture]") {
  const auto guess_of = [](const char* label) {
    Picture picture;
    picture.root = column({"all"}, {box({"upper"}, {Cells{items("above", 4)}}, text(label)),
                                    box({"lower"}, {Cells{items("below", 4)}}, text(label))});
    picture.root.boxes[1].marks.emplace_back(
        Frame{{"guess"}, {{"upper"}}, State::predicted, text("your guess: 64")});
    const Placed placed = place(picture, {0, 0, 240, 300}, Typewriter());
    CHECK(faults(placed).empty());
    REQUIRE(words_of(placed, {"guess"}) != nullptr);
    const Area words = words_of(placed, {"guess"})->area, frame = piece_of(placed, {"guess"})->area;
    return words.y0 >= frame.y0 && words.y1 <= frame.y1;
  };
  CHECK(guess_of("all of the keys up to now"));
  CHECK_FALSE(guess_of("keys"));
}

TEST_CASE("what is lit at the edge of a picture has its outline in it", "[picture]") {
  Drawn canvas;
  Cells cells{items("cell", 4)};
  cells.columns = 2;
  Picture picture;
  picture.root = box({"cells"}, {cells});
  const auto marks = marks_of(picture);
  const Area area{0, 0, 200, 200};
  const Placed placed = place(picture, area, Typewriter());
  const Lighting lit(marks, {}, {{"cell", 0}, {"cell", 3}});
  // Nothing but what is lit has an outline here.
  Placed at_edge = placed;
  for (Piece& piece : at_edge.pieces) piece.area = area;
  paint(at_edge, {}, Typewriter(), {.lit = &lit}, area, canvas);
  REQUIRE(canvas.outlines.size() >= 2);
  for (const auto& [outline, half] : canvas.outlines) {
    CHECK(outline.x0 - half >= area.x0);
    CHECK(outline.y0 - half >= area.y0);
    CHECK(outline.x1 + half <= area.x1);
    CHECK(outline.y1 + half <= area.y1);
  }
}

TEST_CASE("beats: things share one if they overlapped, and one that takes no time has its own",
          "[picture]") {
  // 0 and 1 overlap; 2 follows both; 3 takes no time after 2; 4 begins when 3 is over and does not end.
  const Beats beats({{1, 4}, {2, 5}, {5, 6}, {6, 6}, {6, INFINITY}}, 5);
  const auto of = [&](double begin, double end) { return beats.of(begin, end, 9); };
  CHECK(of(1, 4) == std::pair(0.0, 1.0));
  CHECK(of(2, 5) == std::pair(0.0, 1.0));
  CHECK(of(5, 6) == std::pair(1.0, 2.0));
  CHECK(of(6, 6) == std::pair(2.0, 3.0));
  CHECK(of(6, INFINITY) == std::pair(3.0, 4.0));
  CHECK(beats.of(1, 4, 3) == std::pair(0.0, 1.0));
  CHECK(beats.at(0) == 0);
  CHECK(beats.at(5) == 1);

  // On screen each beat is a cell, all of one width, and the number is on one in the middle.
  Picture picture;
  picture.axes = {beats.axis("order", 2), {.name = "lane", .kind = Axis::band, .count = 1}};
  Spans spans{items("bar", 1), {0}, {0}, {3}, 3, "order", "lane"};
  spans.items.names = {"7"};
  picture.root = box({"lanes"}, {spans});
  CHECK(problems(picture) == std::vector<std::string>{});
  const Typewriter metrics;
  const Placed placed = place(picture, {0, 0, 400, 100}, metrics);
  std::vector<Area> cells;
  for (const Piece& piece : placed.pieces) {
    if (piece.of.key.name == "bar") cells.push_back(piece.area);
  }
  REQUIRE(cells.size() == 3);
  for (const Area& cell : cells) CHECK(std::abs(cell.width() - cells[0].width()) < 0.1f);
  CHECK(cells[0].x1 < cells[1].x0);
  const auto number = std::find_if(placed.words.begin(), placed.words.end(),
                                   [](const Words& words) { return words.text == "7"; });
  REQUIRE(number != placed.words.end());
  CHECK(cells[1].holds(number->area.center()));
}

TEST_CASE("a box with an aspect keeps it, centred in whatever room there is", "[picture]") {
  for (const float aspect : {1.0f, 2.5f}) {
    for (const Area area : {Area{0, 0, 600, 200}, Area{0, 0, 200, 600}, Area{10, 20, 410, 420}}) {
      Picture made;
      made.axes = {{.name = "across", .low = -1}, {.name = "along", .low = -1}};
      Curve curve{.key = {"rim"}, .x = {-1, 1}, .y = {-1, 1}, .ax = "across", .ay = "along"};
      made.root = box({"wheel"}, {curve}, {}, {.aspect = aspect});
      const Placed placed = place(made, area, Typewriter());
      CHECK(faults(placed).empty());
      const Stroke& stroke = placed.strokes.front();
      const Point from = stroke.points.front(), to = stroke.points.back();
      CHECK((to.x - from.x) == Approx(aspect * (from.y - to.y)).epsilon(1e-4));
      // As large as one of the two sides allows.
      CHECK((to.x - from.x > area.width() - 1 || from.y - to.y > area.height() - 1));
      CHECK((from.x + to.x) / 2 == Approx((area.x0 + area.x1) / 2));
      CHECK((from.y + to.y) / 2 == Approx((area.y0 + area.y1) / 2));
    }
  }
}
