#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/base/lab/report.hpp"

/// \file
/// What a lesson's picture is made of: boxes that hold marks, as plain data without pixels or colours.
/// Layout, motion, lighting, SVG, the map and comparisons read it; no mark draws itself.
///
///     Picture picture;
///     picture.axes = {{.name = "key", .kind = Axis::band, .count = 16, .group = 4}};
///     Cells scores;
///     scores.items = items("score", 16, trace.scores);
///     scores.x = "key";
///     picture.root = box("scores", {scores});
///     assert(problems(picture).empty());
///
/// Everything that can be pointed at has a key, which names the thing and never its place: `score_5`
/// stays `score_5` when it flies into a tile. What belongs together (a score, its weight, its row under
/// Data, its symbol in a formula) is *about* the same thing and lights up together.
namespace tilestep::picture {

/// A word of the program's own text, compared by what it says. Made of literals alone, so that it costs
/// no more than a pointer and never dangles.
class Name {
 public:
  constexpr Name() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a literal is meant wherever a Name is wanted.
  consteval Name(const char* literal) : text_(literal) {}
  constexpr std::string_view text() const { return text_; }
  constexpr bool empty() const { return text_.empty(); }
  friend constexpr auto operator<=>(const Name&, const Name&) = default;

 private:
  std::string_view text_;
};

/// Names a thing: a word and up to two numbers. Unique in a picture.
struct Key {
  Name name;
  int i = -1, j = -1;
  friend constexpr auto operator<=>(const Key&, const Key&) = default;
  /// Whether it is one of these things, whatever its numbers.
  constexpr bool is(std::initializer_list<Name> names) const {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
};
/// "sa_1_3", "score_5", "m"
std::string to_text(const Key& key);

/// What a mark is about: a symbol, lane, token, page, row of a table.
struct Ref {
  Name kind;
  int index = -1;
  friend constexpr auto operator<=>(const Ref&, const Ref&) = default;
};

/// What an item is at the cursor. Each has one look in all lessons; amber is `current` and nothing else.
enum class State : std::uint8_t { plain, done, current, to_come, wasted, wrong, predicted };

/// Set by the scene on items; what is lit, differs or was guessed is the renderer's.
enum Flags : std::uint8_t {
  kNone = 0,
  kPicked = 1,  ///< the one that the user follows: framed in the text's colour
  kWas = 2      ///< an outline of what shrank or went
};

/// How many items become one where there is no room for each. `current` and `wrong` survive it.
enum class Fold : std::uint8_t { most, mean, sum, share };

/// How an item's value is written. A numeral is dropped where it has no room, never cut.
struct Format {
  enum Kind : std::uint8_t { none, fixed, significant, integer, bytes } kind = none;
  int digits = 2;
  Name unit = {};
};

/// A stretch of text in one look.
struct Run {
  std::string text;
  Ref about = {};  ///< what it names: it lights up with that, wherever it stands
  State state = State::plain;
  std::uint8_t tone = 0;
};
/// What scenes copy and destroy all the time is copied and destroyed in picture.cpp: instantiated in each file that
/// draws, the copies of a Box alone take a compiler longer than most pictures.
#define TILESTEP_COPIED_ELSEWHERE(Type)   \
  Type(const Type& other);                \
  Type(Type&& other) noexcept;            \
  Type& operator=(const Type& other);     \
  Type& operator=(Type&& other) noexcept; \
  ~Type()

/// A text and its shorter forms; those of a group take the same form together. An empty form stands for
/// the one before it.
struct Text {
  std::vector<Run> full, brief, least;
  Name group;

  Text();
  Text(std::vector<Run> in_full, std::vector<Run> in_brief = {}, std::vector<Run> at_least = {},
       Name of_group = {});
  TILESTEP_COPIED_ELSEWHERE(Text);
};
Text text(std::string full, std::string brief = {}, std::string least = {});
std::string plain(const std::vector<Run>& runs);

/// A word that names a thing, in the tone that the thing has: a symbol, an expert.
struct Symbol {
  std::string word;
  Ref about;
  std::uint8_t tone = 0;
  std::string meaning = {};            ///< what it is, in a sentence
  std::vector<std::string> code = {};  ///< variables of the kernel that hold it
};
/// A text in runs, those of its words that are symbols apart; of two that begin at one place the longer.
std::vector<Run> marked(std::string_view text, const std::vector<Symbol>& symbols);

/// A property of n items: one value for all, or one for each.
template <class T>
struct Column {
  T all{};
  std::vector<T> each = {};

  const T& operator[](std::size_t item) const { return each.empty() ? all : each[item]; }
};

/// From where an entering item flies, to where a leaving one does. A key that is not in the picture
/// before (after) means nothing: the item appears (goes) where it stands.
struct Way {
  Key from = {}, to = {};
  int wave = 0;       ///< the waves of a phase move one after the other
  bool copy = false;  ///< what it comes from stays
};

/// What a click on an item does, or a drag of it: onto another thing (set), or along an axis (drag).
struct Act {
  enum Kind : std::uint8_t { none, go, pick, set, drag } kind = none;
  Name what = {};  ///< pick: of what; set: a knob; drag: the axis
};

/// n things as columns, without a string for any of them: a grid of 65,536 cells is one of these. The
/// key of item k is {name, k}, or {name, k / per_row, k % per_row}, or {name, ids[k]}.
struct Items {
  Name name;
  int count = 0;
  int per_row = 0;            ///< 0: one index
  std::vector<int> ids = {};  ///< of things that have numbers of their own: sectors of a memory
  Column<float> value = {}, base = {};
  Column<State> state = {};
  Column<std::uint8_t> flags = {}, tone = {}, glyph = {};
  std::vector<std::string> names = {};  ///< of a few items: what is written in place of the value
  std::vector<std::pair<Name, Column<int>>> about = {};
  int first_way = 0;           ///< the item that `ways` begin at
  std::vector<Way> ways = {};  ///< empty, or one for each
  Format format = {};
  Fold fold = Fold::most;
  Act act = {};
  bool heat = false;  ///< the value is also the depth of the item's tone, or of a scale of its own

  Items();
  TILESTEP_COPIED_ELSEWHERE(Items);
  Key key(int item) const;
};
Items items(Name name, std::vector<float> values, Format format = {});
Items items(Name name, int count);
/// 0, 1, 2, …: what so many things, each of its own number, are about.
std::vector<int> numbers(int count);

/// What a cell is filled with, whatever its state and tone: a kind that is told apart without colour.
enum Texture : std::uint8_t {
  kSolid,
  kStriped,  ///< a part of it: lines across
  kHollow    ///< nothing is there: its outline alone
};
/// Cells in rows, or along axes. Without an axis they are square.
struct Cells {
  Items items;          ///< a glyph is a Texture
  int columns = 0;      ///< of a grid; 0: one row
  int groups = 0;       ///< a gap after each so many columns and rows; 0: none
  int parts = 1;        ///< items side by side in each cell: a token's choices
  Name x = {}, y = {};  ///< band axes that the columns and the rows stand on
  Name scale = {};      ///< one size of cells in all its boxes; of units where an axis has `high`
};
/// Words one after the other, each as wide as it needs: what can be picked, the steps of a method.
/// Where not all have room, those round the current or picked one.
struct Chips {
  Items items;
  bool chain = false;  ///< with arrows between them
};
/// Stretches of memory: sectors within lines, and which of their bytes are used. What is only outlined
/// (kWas) was before.
struct Strip {
  Items items;
  std::vector<std::int64_t> address = {};
  std::vector<std::uint64_t> used = {};  ///< a bit for each byte of a stretch of up to 64
  int bytes = 32, line = 128;
  /// The number line that each line of memory fills, one below the other; none: they stand side by side.
  Name x = {};
  /// Lines that are there whatever is in them, from address 0 on, by name; empty: those of the stretches.
  std::vector<std::string> names = {};
};
/// Bars from `base` to `value`: upright on a band axis `x`, lying on a band axis `y`. Those of two marks
/// on the same axes stand in each other; a value is written where there is room for all.
struct Bars {
  Items items;
  Name x = {}, y = {};
};
/// What happened on which lane from when to when; never behind `now`.
struct Spans {
  Items items;  ///< a glyph: so many lanes that a bar fills, from its own on; 0: a thin bar
  std::vector<int> lane = {};
  std::vector<double> begin = {}, end = {};
  double now = 0;
  Name x = {}, lanes = {};
};
/// Stages that are filled and drained in turn.
struct Ring {
  Items stages;
  std::vector<int> phase = {}, bytes_expected = {};
  int fill = -1, drain = -1;
};
/// A line through the points known so far. It grows along x. A single point is a dot.
struct Curve {
  Key key;
  std::vector<double> x = {}, y = {}, low = {}, high = {};
  Name ax = {}, ay = {};  ///< on a band axis, 2.5 is the middle of item 2
  std::uint8_t tone = 0;
  State state = State::plain;
  bool dashed = false;
  std::uint8_t flags = 0;  ///< kPicked: bolder
  Ref about = {};          ///< whom it is of: lights up with it
  Act act = {};            ///< of a click on it, or on its end's words
  Text end = {};           ///< at its last point, in the box's right margin where it has one
  bool ends_free = false;  ///< `end` stands at the point itself unless that is near the margin
};
/// Events on an axis.
struct Ticks {
  Items items;
  std::vector<double> at = {};
  Name x = {};
};
/// A line across the box at a value: m, a capacity, a roof.
struct Rule {
  Key key;
  Name axis = {};
  double at = 0;
  State state = State::plain;
  Text label = {};
};
/// Piles of tiles: experts and their tokens, pools and their pages.
struct Stacks {
  Items items;
  std::vector<int> kept = {}, tiles = {}, dropped = {};
  int tile = 8;
  Name x = {};
  /// What is in the piles, of pile 0 first: what is kept, in the order of its places, then what is
  /// dropped. Empty: drawn as one bar a pile. Their numbers go on from those of `items`.
  Items held = {};
  /// No kept one stands above `limit.at` slots: a capacity. Without a key: none. Its axis is the piles'.
  Rule limit = {};
};
/// A move along a number line.
struct Arrow {
  Key key;
  Name axis = {};
  double from = 0, to = 0;
  State state = State::plain;
  Text label = {};
};
/// A barrier between boxes.
struct Wall {
  Key key;
  State state = State::plain;
  bool removed = false;
  Text label = {};
};
/// A part of an item: from 0 to 1 of its width.
struct Anchor {
  Key key;
  float from = 0, to = 1;
};
/// Lines from anchors to anchors, which they follow wherever these move. Where the items have names each also
/// marks the part at its end with its own; those from nowhere do that alone.
struct Links {
  Items items;  ///< a glyph: an arrow, something moves there
  std::vector<Anchor> from = {}, to = {};
};
/// A frame round things, also of several boxes: a tile, what the user follows.
struct Frame {
  Key key;
  std::vector<Key> round;
  State state = State::plain;
  Text label = {};
};
/// A few words beside a thing, with a leader to it.
struct Note {
  Key key;
  Anchor at;
  Text text;
};
/// Rows of words or formulas.
struct Lines {
  Items items;
  std::vector<Text> rows = {};
  enum Voice : std::uint8_t {
    words,    ///< sentences, which wrap
    formula,  ///< in one width, aligned at their first "="
    large     ///< the one number to look at
  } voice = formula;
};
Lines lines(Name name, std::vector<Text> rows, Lines::Voice voice = Lines::words);
/// A small table: values of `items` in rows and columns.
struct Ledger {
  Items items;
  std::vector<Text> rows, columns;
};

struct Mark : std::variant<Cells, Chips, Strip, Bars, Stacks, Spans, Ring, Curve, Ticks, Rule,
                           Arrow, Wall, Links, Frame, Note, Lines, Ledger> {
  using variant::variant;
  TILESTEP_COPIED_ELSEWHERE(Mark);
};
/// The items of a mark; nullptr for one that has none.
const Items* items_of(const Mark& mark);
/// Of a mark that is one thing; no name for one of items.
Key key_of(const Mark& mark);
/// Whether a mark is, or has, the thing of this key.
bool has(const Mark& mark, const Key& key);
/// Whose item `item` of a mark is, and which of it: those of a pile come after the piles themselves.
std::pair<const Items*, int> item_of(const Mark& mark, int item);

/// One name is one domain and one span of pixels in every box that uses it.
struct Axis {
  Name name;
  enum Kind : std::uint8_t { band, linear, log } kind = linear;
  double low = 0,
         high = 1;  ///< of a number line; rounded, so that they say nothing ahead of the cursor
  /// The lesson's own: the same ends in every run, and a unit as long at every stop, so that lengths compare.
  bool fixed = false;
  double step = 0;  ///< between the numbers along it; 0: as there is room
  int count = 0;    ///< of a band
  int group = 0;    ///< of a band: a gap after each so many; 0: none
  int focus = -1;   ///< of a band too long for its box: the item that the window stands round
  Text title = {};
  Name group_name = {};    ///< "tile": groups are keys of their own, with their name below the axis
  int current_group = -1;  ///< the one worked on: washed in every box with this axis; −1: none
  bool ticks = false;      ///< numbers along it in the box that shows it lowest (leftmost)
  std::vector<std::string> names =
      {};  ///< of a band: what its items are called in place of numbers
  float align =
      0.5f;  ///< of a band shorter than its room: 0 at the left or top, 1 at the other end
  float least_slot =
      5;  ///< of a band, design pixels: where there is less a window shows some items
};

/// Where things lie, from the farthest to the nearest to where numbers are multiplied: in a picture the farther stands
/// above the nearer, at its left or round it.
enum class Place : std::uint8_t {
  nowhere,
  device_memory,
  l2,
  shared_memory,
  registers,
  tensor_cores
};
/// "device memory"; where there is little room "memory".
std::string_view name_of(Place place, bool brief = false);

/// How a box stands among others, what room it needs, and where that is what it shows.
struct Layout {
  /// How boxes in it stand. `either`: below each other, and side by side where they have not the height.
  /// `wished`: below each other, and side by side where that, and only that, gives them what they wish for.
  enum Flow : std::uint8_t { row, column, over, either, wished } flow = column;
  /// Boxes in it share all its room by their weights, where each has its least: rows of a grid.
  bool even = false;
  bool close = false;  ///< boxes in it stand close together: rows of values
  int rank = 0;        ///< higher ones fold first where there is no room; 0 never does
  float weight = 1;    ///< its share of the room beyond the least
  float least_width = 4, least_height = 1;  ///< in heights of a line of text
  float most_height = 0;                    ///< grows no further; 0: as far as there is room
  float wish = 0;                           ///< so wide and high its numbers are drawn
  float left = 0, right = 0;                ///< margins for labels, in heights of a line of text
  Place place = Place::nowhere;             ///< where what it shows lies
};
/// A part of the picture. It keeps its place over a run.
struct Box : Layout {
  Key key;
  Text label = {};  ///< above, or in the left margin where there is one
  Text value = {};  ///< in the right margin: what the marks come to
  std::vector<Mark> marks = {};
  std::vector<Box> boxes = {};

  Box();
  TILESTEP_COPIED_ELSEWHERE(Box);
};
Box box(Key key, std::vector<Mark> marks, Text label = {}, const Layout& layout = {});
/// Boxes side by side.
Box row(Key key, std::vector<Box> boxes, Layout layout = {});
/// Boxes below each other, or as `layout` has them.
Box column(Key key, std::vector<Box> boxes, const Layout& layout = {});

/// What is known of a picture before its first step, and stays: domains, rounded, so that they say
/// nothing ahead of the cursor.
struct Extent {
  std::vector<Axis> axes = {};
};
/// A domain around these two whose ends are multiples of 1, 2 or 5 times a power of ten. Finite and
/// apart whatever it is given.
std::pair<double, double> rounded(double low, double high);

struct Picture {
  Text headline;
  std::vector<Axis> axes;
  Box root;

  Picture();
  Picture(Text its_headline, std::vector<Axis> its_axes, Box its_root = {});
  TILESTEP_COPIED_ELSEWHERE(Picture);
};
#undef TILESTEP_COPIED_ELSEWHERE

/// What is not as this file says, a sentence each: keys that stand twice, columns of another length
/// than their items, axes, anchors and frames of what is not there, values that are no numbers where a
/// place is needed, boxes without size, short texts longer than long ones. Nothing if all is well.
std::vector<std::string> problems(const Picture& picture);

}  // namespace tilestep::picture
