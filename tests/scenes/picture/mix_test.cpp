#include "scenes/picture/mix.hpp"

#include <fmt/format.h>

#include <bit>

#include "tests/catch.hpp"

using namespace tilestep::picture;

namespace {

Piece cell(Key key, Area area, State state = State::plain) {
  Piece piece;
  piece.of = {key, 0, 0, std::max(key.i, 0)};
  piece.area = area;
  piece.state = state;
  return piece;
}
Words numeral(Key key, std::string text, Area area, int on = -1) {
  Words words;
  words.of = {key, 1, 0, std::max(key.i, 0)};
  words.text = std::move(text);
  words.area = area;
  words.on = on;
  return words;
}
Stroke line(Key key, std::vector<Point> points) {
  Stroke stroke;
  stroke.of = {key, 0, 0, -1};
  stroke.points = std::move(points);
  return stroke;
}

const Area kLeft{0, 0, 10, 10}, kRight{100, 0, 110, 10}, kBelow{0, 100, 20, 140};

/// The one thing of this key; the last where there are several.
template <class T>
const T* find(const std::vector<T>& all, const Key& key) {
  const T* found = nullptr;
  for (const T& one : all) {
    if (one.of.key == key) found = &one;
  }
  return found;
}
template <class T>
std::ptrdiff_t count(const std::vector<T>& all, const Key& key) {
  return std::count_if(all.begin(), all.end(), [&](const T& one) { return one.of.key == key; });
}
Placed mixed(const Placed& from, const Placed& to, float t) {
  return mix(from, to, Join(from, to), t);
}
const Piece& piece(const Placed& placed, const Key& key) {
  const Piece* found = find(placed.pieces, key);
  REQUIRE(found != nullptr);
  return *found;
}
const Words& words(const Placed& placed, const Key& key) {
  const Words* found = find(placed.words, key);
  REQUIRE(found != nullptr);
  return *found;
}

/// All of it, to the last bit.
std::string dump(const Placed& p) {
  std::string all;
  const auto bits = [&](float x) { all += fmt::format("{:08x} ", std::bit_cast<unsigned>(x)); };
  const auto thing = [&](const Identity& of) {
    all += fmt::format("\n{}.{} {} {} ", to_text(of.key), of.part, of.mark, of.item);
  };
  const auto area = [&](const Area& a) {
    for (const float x : {a.x0, a.y0, a.x1, a.y1}) bits(x);
  };
  area(p.area);
  for (const Piece& a : p.pieces) {
    thing(a.of);
    area(a.area);
    all += fmt::format("{} {} {} {} {} {} ", int(a.kind), int(a.state), a.tone, a.flags,
                       int(a.layer), int(a.entry));
    bits(a.heat);
    bits(a.alpha);
  }
  for (const Stroke& a : p.strokes) {
    thing(a.of);
    for (const Point at : a.points) area({at.x, at.y, a.width, a.alpha});
    all += fmt::format("{}{}{} {} {} {}", a.dashed, a.curved, a.arrow, int(a.state), a.tone,
                       int(a.layer));
  }
  for (const Words& a : p.words) {
    thing(a.of);
    area(a.area);
    bits(a.alpha);
    all += fmt::format("{} {} {} {} {} {} {}", a.text, int(a.face), int(a.ink), a.tone,
                       int(a.state), a.patch, a.on);
  }
  for (const Room& room : p.rooms) area(room.area);
  return all + fmt::format(" {} {} {}", p.folded.size(), p.short_of.size(), p.flights.size());
}

/// Two pictures in which everything happens that can.
std::pair<Placed, Placed> busy() {
  Placed from, to;
  from.area = to.area = {0, 0, 200, 200};
  from.pieces = {cell({"a", 0}, kLeft), cell({"a", 1}, kRight, State::current),
                 cell({"gone"}, kBelow)};
  to.pieces = {cell({"new"}, kBelow), cell({"a", 1}, kLeft), cell({"a", 0}, kRight, State::done)};
  from.words = {numeral({"a", 0}, "1.0", kLeft, 0), numeral({"gone"}, "x", kBelow, 2)};
  to.words = {numeral({"new"}, "7", kBelow, 0), numeral({"a", 0}, "3.0", kRight, 2)};
  from.strokes = {line({"curve"}, {{0, 0}, {10, 10}}), line({"old"}, {{0, 0}, {1, 1}})};
  to.strokes = {line({"curve"}, {{0, 0}, {10, 10}, {20, 5}}), line({"young"}, {{0, 0}, {1, 1}})};
  from.rooms = {{{"box"}, {0, 0, 200, 200}, {4, 1}, {0, 0, 200, 200}}};
  to.rooms = from.rooms;
  to.flights = {{{"new"}, {.from = {"a", 0}, .copy = true}}};
  to.folded = {{"chart"}};
  return {from, to};
}

}  // namespace

TEST_CASE("a mix begins and ends as the two pictures are, to the bit", "[picture]") {
  const auto [from, to] = busy();
  CHECK(dump(mixed(from, to, 0)) == dump(from));
  CHECK(dump(mixed(from, to, -1)) == dump(from));
  CHECK(dump(mixed(from, to, 1)) == dump(to));
  CHECK(dump(mixed(from, to, 2)) == dump(to));
  CHECK(dump(mixed(from, to, 0.5f)) != dump(from));
  Placed used = mixed(from, to, 0.25f);
  mix(from, to, Join(from, to), 0.75f, used);  // memory that held something else
  CHECK(dump(used) == dump(mixed(from, to, 0.75f)));
}

TEST_CASE("what is in both moves, in the state that it will have", "[picture]") {
  Placed from, to;
  from.pieces = {cell({"a", 0}, kLeft), cell({"a", 1}, kLeft)};
  to.pieces = {cell({"a", 1}, kRight), cell({"a", 0}, kRight, State::current)};
  from.pieces[0].heat = 0.25f;
  to.pieces[1].heat = 0.75f;
  from.pieces[1].heat = -1;
  to.pieces[0].heat = 0.5f;
  const Placed half = mixed(from, to, 0.5f);
  CHECK(half.pieces.size() == 2);
  const Piece& moved = piece(half, {"a", 0});
  CHECK(moved.area == Area{50, 0, 60, 10});
  CHECK(moved.heat == 0.5f);
  CHECK(piece(half, {"a", 1}).heat == 0.5f);  // from none there is no way
  CHECK(piece(mixed(from, to, 0.001f), {"a", 0}).state == State::current);
  CHECK(piece(mixed(from, to, 0.25f), {"a", 0}).area.x0 == Approx(15.625));  // eased
}

TEST_CASE("parts of one thing are told apart", "[picture]") {
  Placed from, to;
  from.pieces = {cell({"a"}, kLeft), cell({"a"}, kBelow)};
  from.pieces[1].of.part = 7;
  to.pieces = {from.pieces[1], from.pieces[0]};
  const Placed half = mixed(from, to, 0.5f);
  REQUIRE(half.pieces.size() == 2);
  CHECK(half.pieces[0].area == kBelow);
  CHECK(half.pieces[1].area == kLeft);
}

TEST_CASE("texts say until the end what they said", "[picture]") {
  Placed from, to;
  from.words = {numeral({"m"}, "1.0", {0, 0, 20, 10}), numeral({"k"}, "key", {0, 0, 20, 10})};
  to.words = {numeral({"m"}, "13.0", {100, 0, 130, 10}), numeral({"k"}, "key", {40, 0, 60, 10})};
  for (Words& each : to.words) each.state = State::current;
  const Placed half = mixed(from, to, 0.5f), late = mixed(from, to, 0.99f);
  CHECK(words(half, {"m"}).text == "1.0");
  CHECK(words(late, {"m"}).text == "1.0");
  CHECK(words(half, {"m"}).state == State::current);
  CHECK(words(half, {"m"}).area == Area{52.5, 0, 72.5, 10});  // its own size, half way
  CHECK(words(half, {"k"}).area == Area{20, 0, 40, 10});
  CHECK(words(mixed(from, to, 1), {"m"}).text == "13.0");
  // What stands at an edge stays there, however long it gets.
  to.words[0].area = {0, 50, 30, 60};
  CHECK(words(mixed(from, to, 0.5f), {"m"}).area == Area{0, 25, 20, 35});
  to.words[0].area = {-10, 0, 20, 10};
  CHECK(words(mixed(from, to, 0.5f), {"m"}).area == Area{0, 0, 20, 10});
}

TEST_CASE("the sentence above the picture says at once what happens", "[picture]") {
  Placed from, to;
  from.words = {numeral(kHeadline, "Load.", kLeft), numeral(kHeadline, "Now.", kRight)};
  from.words[1].of.part = 2;
  to.words = {numeral(kHeadline, "Add 3.0.", kBelow)};
  const Placed half = mixed(from, to, 0.1f);
  CHECK(half.words.at(0).text == "Add 3.0.");
  CHECK(half.words.at(0).area == kBelow);
  CHECK(half.words.at(1).alpha == 0);
}

TEST_CASE("words keep to their pieces when the order changes", "[picture]") {
  const auto [from, to] = busy();
  const Placed half = mixed(from, to, 0.5f);
  const auto under = [&](const Key& key) {
    const int on = words(half, key).on;
    REQUIRE(on >= 0);
    return half.pieces.at(static_cast<std::size_t>(on)).of.key;
  };
  for (const Key& key : {Key{"a", 0}, Key{"new"}, Key{"gone"}}) CHECK(under(key) == key);
}

TEST_CASE("what enters grows as its entry says, or fades in", "[picture]") {
  const Placed from;
  const std::pair<Entry, Area> all[] = {{Entry::fades, {0, 100, 20, 140}},
                                        {Entry::rises, {0, 120, 20, 140}},
                                        {Entry::falls, {0, 100, 20, 120}},
                                        {Entry::from_left, {0, 100, 10, 140}},
                                        {Entry::from_right, {10, 100, 20, 140}}};
  for (const auto& [entry, area] : all) {
    Placed to;
    to.pieces = {cell({"a"}, kBelow)};
    to.pieces[0].entry = entry;
    const Placed half = mixed(from, to, 0.5f);
    CHECK(half.pieces[0].area == area);
    CHECK(half.pieces[0].alpha == (entry == Entry::fades ? 0.5f : 1.0f));
  }
}

TEST_CASE("what leaves fades where it stood, behind what it stood behind", "[picture]") {
  Placed from, to;
  from.pieces = {cell({"ground"}, kLeft), cell({"gone"}, kLeft), cell({"top"}, kLeft)};
  to.pieces = {from.pieces[0], from.pieces[2]};
  from.words = {numeral({"gone"}, "1", kLeft)};
  const Placed half = mixed(from, to, 0.5f);
  REQUIRE(half.pieces.size() == 3);
  CHECK(half.pieces[1].of.key == Key{"gone"});
  CHECK(half.pieces[1].alpha == 0.5f);
  CHECK(half.pieces[0].alpha == 1);
  CHECK(words(mixed(from, to, 0.25f), {"gone"}).alpha > 0);
  CHECK(words(half, {"gone"}).alpha == 0);  // before other words come to its place
}

TEST_CASE("what enters flies from the thing that it comes from", "[picture]") {
  Placed from, to;
  from.pieces = {cell({"a", 3}, kLeft)};
  from.words = {numeral({"a", 3}, "2.5", {2, 2, 8, 8}, 0)};
  to.pieces = {cell({"tile"}, kBelow)};
  to.words = {numeral({"tile"}, "9", {7, 117, 13, 123}, 0)};
  const bool copy = GENERATE(true, false), stands_on = GENERATE(true, false);
  if (stands_on) to.pieces.push_back(from.pieces[0]);
  to.flights = {{{"tile"}, {.from = {"a", 3}, .copy = copy}}};
  const Placed half = mixed(from, to, 0.5f), early = mixed(from, to, 1e-4f);
  CHECK(piece(half, {"tile"}).area == Area{0, 50, 15, 75});
  CHECK(piece(half, {"tile"}).alpha == 1);
  CHECK(piece(half, {"tile"}).layer == Layer::over);
  CHECK(piece(early, {"tile"}).area.x1 == Approx(10).margin(0.01));
  // An original carries what stood there; what is made of it says what it is.
  CHECK(words(half, {"tile"}).text == (copy ? "9" : "2.5"));
  CHECK(words(half, {"tile"}).area.center().y == Approx(62.5));
  // An original is gone from where it was; of a copy, it stays or goes as it would.
  CHECK(count(early.pieces, {"a", 3}) == (stands_on || copy ? 1 : 0));
}

TEST_CASE("a thing that is nowhere before appears where it stands", "[picture]") {
  Placed from, to;
  to.pieces = {cell({"tile"}, kBelow)};
  to.flights = {{{"tile"}, {.from = {"b", 3}}}};
  CHECK(piece(mixed(from, to, 0.5f), {"tile"}).area == kBelow);
  CHECK(piece(mixed(from, to, 0.5f), {"tile"}).alpha == 0.5f);
  from.rooms = {{{"b", 3}, kLeft, {}, kLeft}};  // a box is a thing as well
  CHECK(piece(mixed(from, to, 0.5f), {"tile"}).area == Area{0, 50, 15, 75});
}

TEST_CASE("a place keeps what it held until the new content lands", "[picture]") {
  Placed from, to;
  from.pieces = {cell({"a"}, kLeft), cell({"slot"}, kBelow, State::to_come)};
  to.pieces = {cell({"a"}, kLeft), cell({"slot"}, kBelow, State::current)};
  to.flights = {{{"slot"}, {.from = {"a"}, .copy = true}}};
  const Placed half = mixed(from, to, 0.5f);
  REQUIRE(count(half.pieces, {"slot"}) == 2);
  CHECK(piece(half, {"slot"}).area == Area{0, 50, 15, 75});
  CHECK(half.pieces[1].state == State::to_come);
  CHECK(half.pieces[1].area == kBelow);
  CHECK(half.pieces[1].alpha == 1);
  // A Way that was already gone moves nothing.
  from.pieces[1] = to.pieces[1];
  CHECK(count(mixed(from, to, 0.5f).pieces, {"slot"}) == 1);
  from.words = {numeral({"slot"}, "1", kBelow)};
  to.words = {numeral({"slot"}, "2", kBelow)};
  CHECK(count(mixed(from, to, 0.5f).pieces, {"slot"}) == 2);  // it brings another number
}

TEST_CASE("what leaves flies to the thing that it goes to", "[picture]") {
  Placed from, to;
  from.pieces = {cell({"token"}, kLeft)};
  from.words = {numeral({"token"}, "4", kLeft, 0)};
  from.flights = {{{"token"}, {.to = {"slot"}}}};
  to.pieces = {cell({"slot"}, kBelow)};
  const Placed half = mixed(from, to, 0.5f);
  CHECK(piece(half, {"token"}).area == Area{0, 50, 15, 75});
  CHECK(piece(half, {"token"}).alpha == 1);
  CHECK(words(half, {"token"}).area.center().y == Approx(62.5));
  to.pieces.clear();
  CHECK(piece(mixed(from, to, 0.5f), {"token"}).area == kLeft);
  CHECK(piece(mixed(from, to, 0.5f), {"token"}).alpha == 0.5f);
}

TEST_CASE("waves move one after the other", "[picture]") {
  Placed from, to;
  from.pieces = {cell({"a"}, kLeft), cell({"still"}, kLeft)};
  to.pieces = {cell({"a"}, kLeft), cell({"still"}, kRight), cell({"t", 0}, kBelow),
               cell({"t", 1}, kBelow)};
  to.flights = {{{"t", 0}, {.from = {"a"}, .wave = 2, .copy = true}},
                {{"t", 1}, {.from = {"a"}, .wave = 5, .copy = true}}};
  const auto x1 = [&](float t, int i) { return piece(mixed(from, to, t), {"t", i}).area.x1; };
  CHECK(x1(0.25f, 0) == 15);
  CHECK(x1(0.25f, 1) == 10);
  CHECK(x1(0.5f, 0) == 20);
  CHECK(x1(0.5f, 1) == 10);
  CHECK(x1(0.75f, 1) == 15);
  CHECK(piece(mixed(from, to, 0.5f), {"still"}).area.x0 == 50);  // the rest takes all the time
}

TEST_CASE("lines follow, grow along x and are taken back", "[picture]") {
  Placed from, to;
  from.strokes = {line({"link"}, {{0, 0}, {10, 0}})};
  to.strokes = {line({"link"}, {{0, 20}, {30, 0}})};
  const auto points = [&](const Placed& a, const Placed& b, float t, const Key& key) {
    const Placed mix = mixed(a, b, t);
    const Stroke* found = find(mix.strokes, key);
    REQUIRE(found != nullptr);
    std::string all;
    for (const Point p : found->points) all += fmt::format("({:.2f},{:.2f})", p.x, p.y);
    return all + fmt::format(" {:.2f}", found->alpha);
  };
  CHECK(points(from, to, 0.5f, {"link"}) == "(0.00,10.00)(20.00,0.00) 1.00");
  from.strokes = {line({"curve"}, {{0, 0}, {10, 4}})};
  to.strokes = {line({"curve"}, {{0, 0}, {10, 8}, {20, 0}, {30, 6}})};
  CHECK(points(from, to, 0.5f, {"curve"}) == "(0.00,0.00)(10.00,6.00)(20.00,0.00) 1.00");
  CHECK(points(to, from, 0.5f, {"curve"}) == "(0.00,0.00)(10.00,6.00)(20.00,0.00) 1.00");
  const Placed nothing;
  CHECK(points(nothing, to, 0.5f, {"curve"}) == "(0.00,0.00)(10.00,8.00)(15.00,4.00) 1.00");
  CHECK(points(to, nothing, 0.5f, {"curve"}).ends_with("(30.00,6.00) 0.50"));
  to.strokes = {line({"arrow"}, {{0, 0}, {0, 10}}), line({"grid"}, {{0, 0}, {0, 10}})};
  to.strokes[0].arrow = true;
  CHECK(points(nothing, to, 0.5f, {"arrow"}) == "(0.00,0.00)(0.00,5.00) 1.00");
  CHECK(points(nothing, to, 0.5f, {"grid"}) == "(0.00,0.00)(0.00,10.00) 0.50");
}

TEST_CASE("tens of thousands of pieces are joined at once", "[picture]") {
  Placed from, to;
  constexpr int kMany = 65536;
  for (int k = 0; k < kMany; ++k) {
    const Area area{float(k % 256), float(k / 256), float(k % 256 + 1), float(k / 256 + 1)};
    from.pieces.push_back(cell({"cell", k / 256, k % 256}, area));
    to.pieces.push_back(cell({"cell", k % 256, k / 256}, area));
  }
  Placed out;
  mix(from, to, Join(from, to), 0.5f, out);
  CHECK(piece(out, {"cell", 0, 200}).area == Area{100, 100, 101, 101});
}
