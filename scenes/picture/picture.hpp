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
/// A lesson's picture: boxes that hold marks, as plain data without pixels or colours.
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
/// Everything the user can point at has a key, which names the thing and never its place: `score_5`
/// stays `score_5` when it flies into a tile. Related marks (a score, its weight, its row under Data,
/// its symbol in a formula) are *about* the same thing and light up together.
namespace tilestep::picture {

/// A word from the program's own source, compared by content. Only literals convert to it, so it costs
/// no more than a string_view and never dangles.
class Name {
 public:
  constexpr Name() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a literal works wherever a Name is expected.
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
  /// Whether its name is one of these; the numbers do not matter.
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

/// The state of an item at the cursor. Each looks the same in all lessons; only `current` is amber.
enum class State : std::uint8_t { plain, done, current, to_come, wasted, wrong, predicted };

/// Set by the scene on items. The renderer marks items that are lit, differ or were guessed.
enum Flags : std::uint8_t {
  kNone = 0,
  kPicked = 1,  ///< the one the user follows: framed in the text colour
  kWas = 2      ///< an outline of something that shrank or left
};

/// How items are merged where there is no room for each. `current` and `wrong` survive the merge.
enum class Fold : std::uint8_t { most, mean, sum, share };

/// How an item's value is written. A number that does not fit is dropped, never truncated.
struct Format {
  enum Kind : std::uint8_t { none, fixed, significant, integer, bytes } kind = none;
  int digits = 2;
  Name unit = {};
};

/// A stretch of text in one look.
struct Run {
  std::string text;
  Ref about = {};  ///< the thing it names: it lights up with that thing, wherever it is
  State state = State::plain;
  std::uint8_t tone = 0;
};
/// Copying and destruction of these types is defined in picture.cpp: instantiated in every file that draws, the copies
/// of Box alone would take longer to compile than most pictures.
#define TILESTEP_COPIED_ELSEWHERE(Type)   \
  Type(const Type& other);                \
  Type(Type&& other) noexcept;            \
  Type& operator=(const Type& other);     \
  Type& operator=(Type&& other) noexcept; \
  ~Type()

/// A text and its shorter forms; texts of a group switch form together. An empty form means the same as
/// the form before it.
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

/// A word that names a thing, in the tone of that thing: a symbol, an expert.
struct Symbol {
  std::string word;
  Ref about;
  std::uint8_t tone = 0;
  std::string meaning = {};            ///< what it is, in a sentence
  std::vector<std::string> code = {};  ///< variables of the kernel that hold it
};
/// Splits a text into runs, one for each symbol in it; where two symbols start at one place the longer wins.
std::vector<Run> marked(std::string_view text, const std::vector<Symbol>& symbols);

/// A property of n items: one value for all, or one for each.
template <class T>
struct Column {
  T all{};
  std::vector<T> each = {};

  const T& operator[](std::size_t item) const { return each.empty() ? all : each[item]; }
};

/// The source of an entering item's flight, and the target of a leaving one's. A key that is not in the
/// picture before (after) is ignored: the item appears (vanishes) in place.
struct Way {
  Key from = {}, to = {};
  int wave = 0;       ///< waves of a phase move one after another
  bool copy = false;  ///< the source stays
};

/// The effect of clicking an item, or of dragging it onto another thing (set) or along an axis (drag).
struct Act {
  enum Kind : std::uint8_t { none, go, pick, set, drag } kind = none;
  Name what = {};  ///< pick: of what; set: a knob; drag: the axis
};

/// n things as columns, with no string per item: a grid of 65,536 cells is one of these. The
/// key of item k is {name, k}, or {name, k / per_row, k % per_row}, or {name, ids[k]}.
struct Items {
  Name name;
  int count = 0;
  int per_row = 0;            ///< 0: one index
  std::vector<int> ids = {};  ///< for things with their own numbers: memory sectors
  Column<float> value = {}, base = {};
  Column<State> state = {};
  Column<std::uint8_t> flags = {}, tone = {}, glyph = {};
  std::vector<std::string> names = {};  ///< for a few items: text shown instead of the value
  std::vector<std::pair<Name, Column<int>>> about = {};
  int first_way = 0;           ///< the item of `ways[0]`
  std::vector<Way> ways = {};  ///< empty, or one for each
  Format format = {};
  Fold fold = Fold::most;
  Act act = {};
  bool heat = false;  ///< the value also sets the depth of the item's tone, or of its own scale

  Items();
  TILESTEP_COPIED_ELSEWHERE(Items);
  Key key(int item) const;
};
Items items(Name name, std::vector<float> values, Format format = {});
Items items(Name name, int count);
/// 0, 1, …, count − 1: the `about` indices of items that are each about their own number.
std::vector<int> numbers(int count);

/// The fill pattern of a cell, independent of state and tone: distinguishes kinds without colour.
enum Texture : std::uint8_t {
  kSolid,
  kStriped,  ///< partly filled: lines across
  kHollow    ///< nothing there: only an outline
};
/// Cells in rows, or along axes. Without an axis they are square, and those of a scale are by `widest`.
struct Cells {
  Items items;          ///< a glyph is a Texture
  int columns = 0;      ///< of a grid; 0: one row
  int groups = 0;       ///< a gap after every `groups` columns and rows; 0: none
  int parts = 1;        ///< items side by side in each cell: a token's choices
  Name x = {}, y = {};  ///< band axes of the columns and the rows
  Name scale =
      {};  ///< cells have one size in all boxes with this scale; units where an axis has `high`
  float widest =
      1;  ///< how much wider than tall cells of a scale may be, in a wide and low picture
};
/// Words in a row, each as wide as it needs: choices to pick from, the steps of a method.
/// If they do not all fit, those around the current or picked one are shown.
struct Chips {
  Items items;
  bool chain = false;  ///< with arrows between them
};
/// Stretches of memory: sectors within lines, and which of their bytes are used. An outline alone
/// (kWas) shows a previous stretch.
struct Strip {
  Items items;
  std::vector<std::int64_t> address = {};
  std::vector<std::uint64_t> used = {};  ///< one bit per byte, for stretches of up to 64 bytes
  int bytes = 32, line = 128;
  /// The number line that each memory line spans, one below the other; none: lines are side by side.
  Name x = {};
  /// Names of lines that are always shown, from address 0; empty: only the lines of the stretches.
  std::vector<std::string> names = {};
};
/// Bars from `base` to `value`: vertical on a band axis `x`, horizontal on a band axis `y`. Bars of two
/// marks on the same axes overlap; values are written if there is room for all of them.
struct Bars {
  Items items;
  Name x = {}, y = {};
};
/// Intervals on lanes, with begin and end times; none extends past `now`.
struct Spans {
  Items items;  ///< glyph: how many lanes a bar spans, from its own on; 0: a thin bar
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
/// A line through the points known so far, growing along x. A single point is a dot.
struct Curve {
  Key key;
  std::vector<double> x = {}, y = {}, low = {}, high = {};
  Name ax = {}, ay = {};  ///< on a band axis, 2.5 is the middle of item 2
  std::uint8_t tone = 0;
  State state = State::plain;
  bool dashed = false;
  std::uint8_t flags = 0;  ///< kPicked: bolder
  Ref about = {};          ///< the thing it belongs to: lights up with it
  Act act = {};            ///< on a click on it or its end label
  Text end = {};           ///< label at its last point, in the box's right margin if it has one
  bool ends_free = false;  ///< `end` is drawn at the point unless that is near the margin
  std::vector<double> base = {};  ///< the tinted area's other edge: one value, or one per point
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
  /// The contents of the piles, pile 0 first: kept ones in slot order, then dropped ones.
  /// Empty: each pile is one bar. Their indices continue after those of `items`.
  Items held = {};
  /// A capacity: no kept one is above `limit.at` slots. Without a key: none. Its axis is the piles'.
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
/// Part of an item: a range of its width, from 0 to 1.
struct Anchor {
  Key key;
  float from = 0, to = 1;
};
/// Lines between anchors that follow the anchors as they move. If the items have names, each line also labels
/// the part at its end; a line without a start only labels.
struct Links {
  Items items;  ///< glyph: an arrow, since something moves there
  std::vector<Anchor> from = {}, to = {};
};
/// A frame around things, possibly in several boxes: a tile, the thing the user follows.
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
    formula,  ///< monospaced, aligned at the first "="
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
/// The key of a mark that is one thing; an empty name for a mark with items.
Key key_of(const Mark& mark);
/// Whether a mark is, or contains, the thing with this key.
bool has(const Mark& mark, const Key& key);
/// The Items that item `item` of a mark is in, and its index there: pile contents come after the piles.
std::pair<const Items*, int> item_of(const Mark& mark, int item);

/// One name is one domain and one span of pixels in every box that uses it.
struct Axis {
  Name name;
  enum Kind : std::uint8_t { band, linear, log } kind = linear;
  double low = 0,
         high = 1;  ///< of a number line; rounded, so they reveal nothing ahead of the cursor
  /// Set by the lesson: the same ends in every run and one unit length at every stop, so lengths compare.
  bool fixed = false;
  double step = 0;  ///< between the numbers along it; 0: as room allows
  int count = 0;    ///< of a band
  int group = 0;    ///< of a band: a gap after every `group` items; 0: none
  int focus = -1;   ///< of a band too long for its box: the item the visible window is centred on
  Text title = {};
  Name group_name = {};  ///< "tile": groups are keys of their own, with their name below the axis
  int current_group =
      -1;              ///< the one being processed: shaded in every box with this axis; −1: none
  bool ticks = false;  ///< numbers along it, in the lowest (leftmost) box that shows it
  std::vector<std::string> names = {};  ///< of a band: names of its items instead of numbers
  float align = 0.5f;    ///< of a band shorter than its space: 0 left or top, 1 the other end
  float least_slot = 5;  ///< of a band, design pixels: with less, a window shows some of the items
};

/// Where data lives, from farthest from the multipliers to nearest: in a picture the farther place is above the
/// nearer, left of it or around it.
enum class Place : std::uint8_t {
  nowhere,
  device_memory,
  l2,
  shared_memory,
  registers,
  tensor_cores
};
/// "device memory"; `brief`: "memory".
std::string_view name_of(Place place, bool brief = false);

/// How a box is placed among others, the room it needs, and where the data it shows lives.
struct Layout {
  /// How its boxes are arranged. `either`: stacked, or side by side if the height does not suffice.
  /// `wished`: stacked, or side by side if only that grants their wishes; with a wish of its own, also if neither does.
  /// `tall`: stacked, or side by side if type would have to be smaller for it.
  enum Flow : std::uint8_t { row, column, over, either, wished, tall } flow = column;
  /// Its boxes share all its room by weight if each gets its least size: rows of a grid.
  bool even = false;
  bool close = false;  ///< its boxes are close together: rows of values
  int rank = 0;        ///< higher ranks fold first where room runs out; 0 never folds
  float weight = 1;    ///< its share of the room beyond the least size
  float least_width = 4, least_height = 1;  ///< in heights of a line of text
  float most_height = 0;                    ///< upper limit of its height; 0: as room allows
  float wish = 0;                ///< width and height its numbers need to be drawn, if `wished`
  float aspect = 0;              ///< width over height of the room its marks get; 0: any
  float left = 0, right = 0;     ///< margins for labels, in heights of a line of text
  Place place = Place::nowhere;  ///< where its data lives
};
/// Part of the picture. It keeps its place for the whole run.
struct Box : Layout {
  Key key;
  Text label = {};  ///< above, or in the left margin if there is one
  Text value = {};  ///< in the right margin: the total of its marks
  std::vector<Mark> marks = {};
  std::vector<Box> boxes = {};

  Box();
  TILESTEP_COPIED_ELSEWHERE(Box);
};
Box box(Key key, std::vector<Mark> marks, Text label = {}, const Layout& layout = {});
/// Boxes side by side.
Box row(Key key, std::vector<Box> boxes, Layout layout = {});
/// Boxes below each other, or as `layout` says.
Box column(Key key, std::vector<Box> boxes, const Layout& layout = {});

/// Facts about a picture known before its first step and fixed from then on: domains, rounded so that they
/// reveal nothing ahead of the cursor.
struct Extent {
  std::vector<Axis> axes = {};
};
/// A domain around these two whose ends are multiples of 1, 2 or 5 times a power of ten. The ends are
/// finite and distinct for any input.
std::pair<double, double> rounded(double low, double high);

struct Picture {
  Text headline;
  std::vector<Axis> axes;
  Box root;
  /// What it is about, as a stop's light names it: that is on show while one steps freely, and the rest stands aside.
  /// One for all phases of a step and all steps of a kind, so that there only data move. Empty: everything.
  std::vector<std::string> subject;

  Picture();
  Picture(Text its_headline, std::vector<Axis> its_axes, Box its_root = {},
          std::vector<std::string> its_subject = {});
  TILESTEP_COPIED_ELSEWHERE(Picture);
};
#undef TILESTEP_COPIED_ELSEWHERE

/// Violations of this file's rules, one sentence each: duplicate keys, columns whose length differs from
/// their items', references to missing axes, anchors or frames, non-numbers where a position is needed,
/// boxes without size, short texts longer than long ones. Empty if the picture is valid.
std::vector<std::string> problems(const Picture& picture);

}  // namespace tilestep::picture
