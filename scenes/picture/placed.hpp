#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scenes/picture/picture.hpp"

/// \file
/// A picture laid out: flat, keyed primitives in real pixels, still without colours. Drawing, motion,
/// SVG, the map and comparisons read these and nothing else.
namespace tilestep::picture {

struct Point {
  float x = 0, y = 0;
};
struct Area {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  float width() const { return x1 - x0; }
  float height() const { return y1 - y0; }
  Point center() const { return {(x0 + x1) / 2, (y0 + y1) / 2}; }
  bool is_finite() const { return std::isfinite(x0 + y0 + x1 + y1); }
  bool holds(Point p) const { return p.x >= x0 && p.x < x1 && p.y >= y0 && p.y < y1; }
  friend bool operator==(const Area&, const Area&) = default;
};
inline bool meet(const Area& a, const Area& b) {
  return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1;
}
inline Area joined(const Area& a, const Area& b) {
  return {a.x0 < b.x0 ? a.x0 : b.x0, a.y0 < b.y0 ? a.y0 : b.y0, a.x1 > b.x1 ? a.x1 : b.x1,
          a.y1 > b.y1 ? a.y1 : b.y1};
}

enum class Face : std::uint8_t { note, body, bold, section, mono_note, mono, mono_large };

/// Font metrics of the picture's renderer, in real pixels.
class Metrics {
 public:
  virtual ~Metrics() = default;
  virtual float width(std::string_view text, Face face) const = 0;
  virtual float height(Face face) const = 0;  ///< of a line
  /// A design length (at 100 %) in real pixels.
  virtual float px(float design) const = 0;
};

/// Drawn in this order; within a layer in the order of the vectors, rectangles before lines.
enum class Layer : std::uint8_t { ground, body, over };

/// How a primitive with a new key appears, if it does not fly from another.
enum class Entry : std::uint8_t { fades, rises, falls, from_left, from_right };

/// The thing a primitive belongs to. A thing can have several primitives, distinguished by `part`.
struct Identity {
  Key key;
  std::uint8_t part = 0;
  int mark = -1,
      item = -1;  ///< in the picture: index of the mark, in box order, and of its item
};

/// A rectangle, or a sign that fills one.
struct Piece {
  enum Kind : std::uint8_t {
    fill,
    outline,
    dashed,
    wash,
    hatch,
    chip,
    dot,
    up,
    down,
    cross,
    frame,
    stripes,  ///< in the panel's colour, over a fill
    slab      ///< under everything in a Place: the nearer to the tensor cores, the less heat
  };
  Identity of;
  Area area;
  Kind kind = fill;
  State state = State::plain;
  std::uint8_t tone = 0;   ///< a category; 0: coloured by state only
  std::uint8_t flags = 0;  ///< of Flags
  Layer layer = Layer::body;
  Entry entry = Entry::fades;
  float heat = -1;  ///< 0–1: depth of colour; below 0: none
  float alpha = 1;
};

/// A line through points; `curved`: through four, a cubic Bézier curve.
struct Stroke {
  Identity of;
  std::vector<Point> points = {};
  std::vector<float> feet =
      {};           ///< y below (or above) each point, down to which the area is tinted
  float width = 1;  ///< design pixels
  bool dashed = false, curved = false, arrow = false;
  State state = State::plain;
  std::uint8_t tone = 0;
  Layer layer = Layer::body;
  float alpha = 1;
};

/// The purpose of a text; the renderer chooses its colour.
enum class Ink : std::uint8_t { text, muted, faint, accent, wrong, tone, on_piece };

/// The key of the sentence above the picture.
inline constexpr Key kHeadline{"sentence"};

/// Identity::part of a box's place slab, and of the first line of its name.
inline constexpr std::uint8_t kPlacePart = 252;

/// A line of text.
struct Words {
  Identity of;
  std::string text = {};
  Area area = {};  ///< its full extent, by Metrics
  Face face = Face::note;
  Ink ink = Ink::muted;
  std::uint8_t tone = 0;
  State state = State::plain;
  bool patch = false;  ///< on a patch of the panel's colour, since lines may run under it
  int on = -1;         ///< Ink::on_piece: the index of the piece it stands on
  Ref about = {};      ///< the symbol it is
  float alpha = 1;
};

/// A box that was not folded, and the room it has.
struct Room {
  Key key;
  Area area;
  Point least;  ///< below this it cannot be read
  Area whole;   ///< including its margins' contents
  Place place = Place::nowhere;
};

/// The text of a thing that is not an item with a value: a row of words, a group, a box with its value.
struct Said {
  Key key;
  std::string label, value;
  Area area;
};

/// Where a thing flies from or to, by its Way.
struct Flight {
  Key key;
  Way way;
};

/// A number line on screen: maps a point to its value.
struct Scale {
  Name axis;
  bool upright = false;
  float at_low = 0, at_high = 1;  ///< real pixels
  double low = 0, high = 1;
  double value_at(Point at) const {
    const double way = (upright ? at.y : at.x) - at_low, all = at_high - at_low;
    return all != 0 ? low + (high - low) * way / all : low;
  }
};

struct Placed {
  Area area;
  std::vector<Piece> pieces;
  std::vector<Stroke> strokes;
  std::vector<Words> words;
  std::vector<Room> rooms;
  std::vector<Said> said;
  std::vector<Key> folded;            ///< boxes that had no room
  std::vector<std::string> short_of;  ///< texts that did not fit in full, one sentence each
  std::vector<Flight> flights;
  std::vector<Scale> scales;  ///< of linear axes
};

/// Lays out `picture` in `area`, whatever it holds: a size of zero, values that are not numbers, no
/// items or a million of them. The same input gives the same output.
Placed place(const Picture& picture, Area area, const Metrics& metrics);

/// An item's value as written: "4.0", "≈0", "−∞", "12 MB"; its name if it has one; empty if it has
/// neither.
std::string written(const Items& items, int item);
std::string written(float value, const Format& format);
/// All marks of a picture in box order, as indexed by Identity::mark.
std::vector<const Mark*> marks_of(const Picture& picture);

}  // namespace tilestep::picture
