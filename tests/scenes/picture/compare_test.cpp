#include "scenes/picture/compare.hpp"

#include <limits>

#include "scenes/picture/picture.hpp"
#include "tests/catch.hpp"

using namespace tilestep::picture;

namespace {

constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();

Picture of(std::vector<Mark> marks) {
  return {{}, {}, box({"all"}, std::move(marks))};
}
std::vector<bool> differing(const Picture& mine, const Picture& other) {
  const auto marks = marks_of(mine), others = marks_of(other);
  const Differences found(marks, others);
  std::vector<bool> all;
  for (int m = 0; m < static_cast<int>(marks.size()); ++m) {
    const Items* items = items_of(*marks[static_cast<std::size_t>(m)]);
    if (items == nullptr) all.push_back(found.differs({{}, 0, m, -1}));
    for (int k = 0; items != nullptr && k < items->count; ++k) {
      all.push_back(found.differs({{}, 0, m, k}));
    }
  }
  CHECK(found.total() == std::ssize(all));
  CHECK(found.count() == std::count(all.begin(), all.end(), true));
  CHECK_FALSE(found.differs({{}, 0, 7, 0}));
  CHECK_FALSE(found.differs({{}, 0, 0, 99}));
  return all;
}

}  // namespace

TEST_CASE("items differ by value, state, tone and name, or are not in the other", "[picture]") {
  Cells mine{items("cell", {1, 2, kNothing, 4})};
  Cells other = mine;
  CHECK(differing(of({mine}), of({other})) == std::vector{false, false, false, false});
  other.items.value.each[1] = 3;
  other.items.state.each = {State::plain, State::plain, State::plain, State::wrong};
  CHECK(differing(of({mine}), of({other})) == std::vector{false, true, false, true});
  other.items.tone.all = 2;
  CHECK(differing(of({mine}), of({other})) == std::vector{true, true, true, true});
  other = mine;
  other.items.count = 2;
  other.items.value.each.resize(2);
  CHECK(differing(of({mine}), of({other})) == std::vector{false, false, true, true});
  CHECK(differing(of({other}), of({mine})) == std::vector{false, false});
  mine.items.names = {"a", "b", "c", "d"};
  Cells named = mine;
  named.items.names[2] = "x";
  CHECK(differing(of({mine}), of({named})) == std::vector{false, false, true, false});
  CHECK(differing(of({mine}), of({})) == std::vector{true, true, true, true});
}

TEST_CASE("things with numbers of their own are compared by these", "[picture]") {
  Cells mine{items("sector", {10, 20})}, other{items("sector", {20, 30})};
  mine.items.ids = {4, 5};
  other.items.ids = {5, 6};
  CHECK(differing(of({mine}), of({other})) == std::vector{true, false});
}

TEST_CASE("marks without items differ by where they stand and what they say", "[picture]") {
  const Rule m{{"m"}, "score", 3, State::plain, text("m = 3")};
  Rule higher = m;
  higher.at = 5;
  Rule other_words = m;
  other_words.label = text("m = three");
  CHECK(differing(of({m}), of({m})) == std::vector{false});
  CHECK(differing(of({m}), of({higher})) == std::vector{true});
  CHECK(differing(of({m}), of({other_words})) == std::vector{true});
  const Curve curve{.key = {"sum"}, .x = {0, 1}, .y = {0, 2}, .ax = "x", .ay = "y"};
  Curve lower = curve;
  lower.y[1] = 1;
  CHECK(differing(of({m, curve}), of({m, lower})) == std::vector{false, true});
  Lines rows;
  rows.items = items("row", 2);
  rows.rows = {text("l = 2"), text("O = 3")};
  Lines others = rows;
  others.rows[1] = text("O = 4");
  CHECK(differing(of({rows}), of({others})) == std::vector{false, true});
}

TEST_CASE("two runs share their domains, not their counts", "[picture]") {
  const Extent mine{{{.name = "score", .low = 0, .high = 5},
                     {.name = "key", .kind = Axis::band, .count = 16},
                     {.name = "time", .kind = Axis::log, .low = 1, .high = 10}}};
  const Extent other{{{.name = "score", .low = -2, .high = 4},
                      {.name = "key", .kind = Axis::band, .count = 32},
                      {.name = "time", .low = 0, .high = 100}}};
  const Extent both = united(mine, other);
  CHECK(both.axes[0].low == -2);
  CHECK(both.axes[0].high == 5);
  CHECK(both.axes[1].count == 16);
  CHECK(both.axes[2].low == 1);  // of another kind
  CHECK(both.axes[2].high == 10);
}
