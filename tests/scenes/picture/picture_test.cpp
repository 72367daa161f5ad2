#include "scenes/picture/picture.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/catch.hpp"
#include "tests/scenes/picture/stubs.hpp"

using namespace tilestep;
using namespace tilestep::picture;

namespace {

/// A picture with every mark that has rules of its own.
Picture whole() {
  Picture picture;
  picture.headline = text("A sentence about it.", "A word.", "A");
  picture.axes = {{.name = "key", .kind = Axis::band, .count = 3, .group = 2, .group_name = "pair"},
                  {.name = "value", .high = 10},
                  {.name = "bytes", .kind = Axis::log, .low = 1, .high = 1e6}};
  Cells cells;
  cells.items = items("score", {1, 2, 3}, {Format::fixed, 1});
  cells.items.about = {{"key", {0, {0, 1, 2}}}};
  cells.items.ways = {Way{}, Way{}, Way{}};
  cells.x = "key";
  Chips chips;
  chips.items = items("step", 2);
  chips.items.names = {"load", "add"};
  Strip strip;
  strip.items = items("sector", 2);
  strip.address = {0, 32};
  strip.used = {1, 2};
  Bars bars{items("weight", {1, 2, 3}), "key", "value"};
  Stacks stacks{items("expert", 2), {1, 2}, {1, 1}, {0, 1}};
  Spans spans{items("span", 1), {0}, {0.0}, {1.0}, 1, "value", "key"};
  Ring ring{items("stage", 2), {0, 1}, {0, 0}, 0, 1};
  Curve curve{{"rate"}, {1, 2}, {3, 4}, {}, {}, "bytes", "value"};
  Ticks ticks{items("event", 1), {2.0}, "value"};
  Rule rule{{"m"}, "value", 3};
  Arrow arrow{{"rise"}, "value", 1, 3};
  Links links{items("load", 1), {{{"sector", 0}}}, {{{"score", 1}, 0.5f, 1}}};
  Frame frame{{"tile"}, {{"score", 0}, {"score", 1}}};
  Note note{{"remark"}, {{"score", 2}}, text("Look.")};
  Lines lines{items("formula", 1), {text("l = 1", "l")}};
  Ledger ledger{items("moved", {1, 2}), {text("kernel")}, {text("read"), text("written")}};
  picture.root = row({"all"}, {box({"data"}, {cells, strip, bars, stacks, spans, ring}),
                               box({"more"}, {curve, ticks, rule, arrow, links, frame, note}),
                               box({"words"}, {lines, ledger, chips, Wall{{"barrier"}}})});
  return picture;
}

template <class M>
M& mark(Picture& picture) {
  for (Box& box : picture.root.boxes) {
    for (Mark& mark : box.marks) {
      if (M* found = std::get_if<M>(&mark)) return *found;
    }
  }
  throw std::logic_error("no such mark");
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("keys say what they name", "[picture]") {
  CHECK(to_text(Key{"m"}) == "m");
  CHECK(to_text(Key{"score", 5}) == "score_5");
  CHECK(to_text(Key{"sa", 1, 3}) == "sa_1_3");
  Items grid = items("sa", 6);
  grid.per_row = 3;
  CHECK(grid.key(5) == Key{"sa", 1, 2});
  Items some = items("sector", 2);
  some.ids = {4, 9};
  CHECK(some.key(1) == Key{"sector", 9});
  CHECK(items("score", 6).key(5) == Key{"score", 5});
}

TEST_CASE("a picture that keeps the rules has no problems", "[picture]") {
  CHECK(problems(whole()) == std::vector<std::string>{});
}

TEST_CASE("each broken rule is named", "[picture]") {
  struct Damage {
    std::string problem;
    std::function<void(Picture&)> damage;
  };
  const Damage all[] = {
      {"a thing has no key", [](Picture& p) { p.root.key = {}; }},
      {"score_1 stands twice",
       [](Picture& p) {
         mark<Rule>(p).key = {"score", 1};
       }},
      {"data stands twice", [](Picture& p) { p.root.boxes[1].key = {"data"}; }},
      {"axis value stands twice", [](Picture& p) { p.axes.push_back(p.axes[1]); }},
      {"an axis has no name", [](Picture& p) { p.axes.push_back({}); }},
      {"axis key stands round 3", [](Picture& p) { p.axes[0].focus = 3; }},
      {"axis key has 3 items and 1 names", [](Picture& p) { p.axes[0].names = {"one"}; }},
      {"score has 3 items in cells of 2", [](Picture& p) { mark<Cells>(p).parts = 2; }},
      {"score_0 stands twice",
       [](Picture& p) {
         mark<Stacks>(p).limit.key = {"score", 0};
       }},
      {"axis key has a negative count", [](Picture& p) { p.axes[0].group = -1; }},
      {"axis value goes from 0 to 0", [](Picture& p) { p.axes[1].high = 0; }},
      {"axis bytes goes from 0 to", [](Picture& p) { p.axes[2].low = 0; }},
      {"headline: 'A long word.'",
       [](Picture& p) { p.headline.least = text("A long word.").full; }},
      {"all has rank -1", [](Picture& p) { p.root.rank = -1; }},
      {"all has weight -1", [](Picture& p) { p.root.weight = -1; }},
      {"all has no least size", [](Picture& p) { p.root.least_height = 0; }},
      {"all has marks and boxes", [](Picture& p) { p.root.marks.push_back(Wall{{"x"}}); }},
      {"score has 3 items and 2 values",
       [](Picture& p) { mark<Cells>(p).items.value.each.pop_back(); }},
      {"weight has 3 items and 2 numbers of their own",
       [](Picture& p) {
         mark<Bars>(p).items.ids = {0, 1};
       }},
      {"weight_7 stands twice",
       [](Picture& p) {
         mark<Bars>(p).items.ids = {7, 8, 7};
       }},
      {"score has 3 items and 1 states",
       [](Picture& p) { mark<Cells>(p).items.state.each = {State::done}; }},
      {"score has 3 items and ways from 1 to 4",
       [](Picture& p) { mark<Cells>(p).items.first_way = 1; }},
      {"score has 3 items and 2 indices",
       [](Picture& p) { mark<Cells>(p).items.about[0].second.each.pop_back(); }},
      {"score is about nothing named",
       [](Picture& p) { mark<Cells>(p).items.about[0].first = {}; }},
      {"pair_1 stands twice",
       [](Picture& p) {
         mark<Rule>(p).key = {"pair", 1};
       }},
      {"axis key has no group 2", [](Picture& p) { p.axes[0].current_group = 2; }},
      {"step has no words", [](Picture& p) { mark<Chips>(p).items.names.clear(); }},
      {"step has 2 items and 1 names", [](Picture& p) { mark<Chips>(p).items.names.pop_back(); }},
      {"data grows from 1 to 0.5", [](Picture& p) { p.root.boxes[0].most_height = 0.5f; }},
      {"data has a negative margin", [](Picture& p) { p.root.boxes[0].left = -1; }},
      {"score stands on axis 'rank'", [](Picture& p) { mark<Cells>(p).y = "rank"; }},
      {"score stands on axis 'time'", [](Picture& p) { mark<Cells>(p).x = "time"; }},
      {"sector has 2 items and 1 addresses", [](Picture& p) { mark<Strip>(p).address.pop_back(); }},
      {"sector stands on axis 'byte', which there is not",
       [](Picture& p) { mark<Strip>(p).x = "byte"; }},
      {"sector has byte 32 in 1 lines",
       [](Picture& p) {
         mark<Strip>(p).names = {"all"};
         mark<Strip>(p).line = 32;
       }},
      {"sector has 65 bytes", [](Picture& p) { mark<Strip>(p).bytes = 65; }},
      {"weight stands on axis ''", [](Picture& p) { mark<Bars>(p).y = {}; }},
      {"expert has 2 items and 1 numbers of tiles",
       [](Picture& p) { mark<Stacks>(p).tiles.pop_back(); }},
      {"expert hold 4 and there are 3",
       [](Picture& p) { mark<Stacks>(p).held = items("slot", 3); }},
      {"slot has 4 items and ways from 4 to 5",
       [](Picture& p) {
         mark<Stacks>(p).held = items("slot", 4);
         mark<Stacks>(p).held.first_way = 4;
         mark<Stacks>(p).held.ways.resize(1);
       }},
      {"expert has tiles of 0", [](Picture& p) { mark<Stacks>(p).tile = 0; }},
      {"span_0 begins after now", [](Picture& p) { mark<Spans>(p).now = -1; }},
      {"span_0 ends before it begins", [](Picture& p) { mark<Spans>(p).end[0] = -1; }},
      {"stage fills stage 2", [](Picture& p) { mark<Ring>(p).fill = 2; }},
      {"rate has columns of two lengths", [](Picture& p) { mark<Curve>(p).low = {1}; }},
      {"event stands at a place that is no number",
       [](Picture& p) { mark<Ticks>(p).at[0] = kNan; }},
      {"m stands at a place that is no number", [](Picture& p) { mark<Rule>(p).at = kNan; }},
      {"rise stands at a place that is no number", [](Picture& p) { mark<Arrow>(p).to = kNan; }},
      {"rise stands on axis 'time'", [](Picture& p) { mark<Arrow>(p).axis = "time"; }},
      {"load holds on to score_7",
       [](Picture& p) {
         mark<Links>(p).to[0].key = {"score", 7};
       }},
      {"load holds on to the part 0.5–0.25", [](Picture& p) { mark<Links>(p).to[0].to = 0.25f; }},
      {"load has 1 items and 0 ends", [](Picture& p) { mark<Links>(p).to.clear(); }},
      {"tile is round nothing", [](Picture& p) { mark<Frame>(p).round.clear(); }},
      {"tile holds on to score_3", [](Picture& p) { mark<Frame>(p).round[1].i = 3; }},
      {"remark holds on to score_9", [](Picture& p) { mark<Note>(p).at.key.i = 9; }},
      {"formula has 1 items and 2 rows", [](Picture& p) { mark<Lines>(p).rows.resize(2); }},
      {"moved has 4 cells and 2 items", [](Picture& p) { mark<Ledger>(p).rows.resize(2); }},
  };
  for (const Damage& one : all) {
    Picture picture = whole();
    one.damage(picture);
    const std::vector<std::string> found = problems(picture);
    CAPTURE(one.problem, found);
    REQUIRE(found.size() == 1);
    CHECK(found[0].find(one.problem) == 0);
  }
}

TEST_CASE("a domain says only its round ends", "[picture]") {
  using Domain = std::pair<double, double>;
  CHECK(rounded(0, 6) == Domain{0, 6});
  CHECK(rounded(0, 6.3) == Domain{0, 7});
  CHECK(rounded(-1.2, 63.9) == Domain{-10, 70});
  CHECK(rounded(0, 0) == Domain{0, 1});
  CHECK(rounded(5, -5) == Domain{-5, 5});
  CHECK(rounded(kNan, kNan) == Domain{0, 1});
  CHECK(rounded(0, std::numeric_limits<double>::infinity()) == Domain{0, 1});
}

TEST_CASE("lessons to come can be said with what there is", "[picture]") {
  const auto check = [](const Picture& picture) {
    CHECK(problems(picture) == std::vector<std::string>{});
  };
  for (int now = 0; now <= 8; ++now) {
    check(tests::attention_grid(3, now));
    check(tests::copy_ring(4, now));
    check(tests::warps_over_time(1 + now, 11 * now));
    check(tests::page_table(3, 1 + 15 * now));
    check(tests::byte_ledger(now % 4));
    check(tests::two_gpus(4, now));
  }
}
