// What of a picture is on show while something in it is the subject.
#include "scenes/picture/shot.hpp"

#include <algorithm>
#include <cmath>

#include "tests/catch.hpp"
#include "tests/scenes/picture/stubs.hpp"

using namespace tilestep;
using namespace tilestep::picture;

namespace {

constexpr Area kArea{0, 0, 600, 400};

Box of_cells(Key key, Name cells, int columns) {
  Cells marks{items(cells, columns * columns)};
  marks.columns = columns;
  return box(key, {marks});
}

/// Two boxes of bars on one band, a square of cells, a line of words.
Picture four() {
  Picture made;
  made.axes = {{.name = "key", .kind = Axis::band, .count = 8},
               {.name = "score", .low = 0, .high = 8},
               {.name = "weight", .low = 0, .high = 8}};
  const auto bars = [](Name name, Name y) {
    Bars one;
    one.items = items(name, {1, 2, 3, 4, 5, 6, 7, 8});
    one.x = "key";
    one.y = y;
    return one;
  };
  made.root = column(
      {"root"},
      {row({"above"}, {box({"scores"}, {bars("score", "score")}), of_cells({"grid"}, "cell", 4)}),
       box({"weights"}, {bars("weight", "weight")}),
       box({"said"}, {lines("word", {text("m = 3")})}, {}, {.most_height = 1})});
  REQUIRE(problems(made).empty());
  return made;
}

std::vector<std::string> aside(const std::vector<std::string>& subject) {
  static const Picture picture = four();
  std::vector<std::string> names;
  for (const Box* box : beside(picture, subject, kArea, tests::Typewriter())) {
    names.push_back(to_text(box->key));
  }
  return names;
}

}  // namespace

TEST_CASE("a shot has the boxes of its subject and those on the same bands", "[picture]") {
  CHECK(aside({"score_3"}) == std::vector<std::string>{"grid", "said"});
  CHECK(aside({"weights"}) == std::vector<std::string>{"grid", "said"});
  CHECK(aside({"cell_3", "score_1"}) == std::vector<std::string>{"said"});
  CHECK(aside({}).empty());
  CHECK(aside({"nothing_of_the_picture"}).empty());
}

TEST_CASE("in a picture of three boxes none stands aside of a subject that is the largest",
          "[picture]") {
  Picture picture = four();
  picture.root.boxes.pop_back();
  const auto aside_of = [&](const std::vector<std::string>& subject) {
    return beside(picture, subject, kArea, tests::Typewriter()).size();
  };
  CHECK(aside_of({"score_3"}) == 0);
  CHECK(aside_of({"cell_3"}) > 0);  // a quarter of the picture
  CHECK(aside_of({"cell_3", "score_3"}) == 0);
}

TEST_CASE("a subject that fills nothing keeps what fills most beside it", "[picture]") {
  const auto left = aside({"word_0"});
  CHECK(left != std::vector<std::string>{"above", "weights"});
  CHECK(std::find(left.begin(), left.end(), "said") == left.end());
}

TEST_CASE("what stands aside gives its room to the others", "[picture]") {
  const Picture picture = four();
  const tests::Typewriter type;
  const Placed whole = place(picture, kArea, type),
               shot = place(picture, kArea, type, {{"above"}, {"said"}});
  const auto room = [](const Placed& placed, const Key& key) {
    const auto found = std::find_if(placed.rooms.begin(), placed.rooms.end(),
                                    [&](const Room& each) { return each.key == key; });
    return found == placed.rooms.end() ? 0.0f : found->area.height();
  };
  CHECK(room(shot, {"weights"}) > 1.5f * room(whole, {"weights"}));
  CHECK(room(shot, {"scores"}) == 0);
  CHECK(shot.folded.empty());
  CHECK(filled_by(picture, shot) > filled_by(picture, whole));
}

TEST_CASE("a box is framed where its marks are", "[picture]") {
  const Picture picture = four();
  const Placed placed = place(picture, kArea, tests::Typewriter());
  const Area cells = content_of({"grid"}, picture, placed);
  CHECK(std::abs(cells.width() - cells.height()) < 8);
  const Area all = content_of({"above"}, picture, placed);
  CHECK(all.x0 < cells.x0);
  CHECK(all.x1 == cells.x1);
}

TEST_CASE("the frame of a lit box goes round its label", "[picture]") {
  Picture picture = four();
  picture.root.boxes[1].label = text("weights by key");
  picture.root.boxes[2].label = text("in words");
  const Placed placed = place(picture, kArea, tests::Typewriter());
  const Lit lit = lit_by({"weights"}, picture, marks_of(picture), placed);
  REQUIRE(lit.boxes.size() == 1);
  for (const Words& words : placed.words) {
    const Area letters = {words.area.x0, words.area.center().y, words.area.x1, words.area.y1};
    if (words.text == "weights by key") CHECK(joined(letters, lit.boxes[0]) == lit.boxes[0]);
    if (words.text == "in words") CHECK_FALSE(meet(words.area, lit.boxes[0]));
  }
}

TEST_CASE("a box is bare until something is drawn in it", "[picture]") {
  Picture picture = four();
  CHECK_FALSE(is_bare(picture.root));
  CHECK(is_bare(box({"to_come"}, {Bars{items("nothing", 0), "key", "score"}, Curve{}})));
  CHECK(is_bare(column({"outer"}, {box({"inner"}, {})})));
  CHECK_FALSE(is_bare(column({"outer"}, {box({"inner"}, {Curve{.key = {}, .x = {1}, .y = {1}}})})));
}
