#pragma once

#include <array>
#include <span>
#include <vector>

#include "scenes/picture/compare.hpp"
#include "scenes/picture/look.hpp"

/// \file
/// Turns placed primitives into coloured shapes, the same for all renderers.
namespace tilestep::picture {

/// The colours of a drawing: 0xRRGGBB.
struct Palette {
  std::array<std::uint32_t, kRoleCount> paints{};  ///< by role
  std::array<std::uint32_t, kRoleCount> inks{};    ///< the same, for words: readable on the panel
  std::array<std::uint32_t, 65> heat{};            ///< from little to much
};
struct Color {
  std::uint32_t rgb = 0;
  float alpha = 1;
};

/// How a line is drawn; `curved`: through four points, a cubic Bézier curve.
struct Pen {
  Color color;
  float thickness = 1;
  enum Kind : std::uint8_t { solid, dashed, curved } kind = solid;
};

/// Receives shapes, in real pixels.
class Canvas {
 public:
  virtual ~Canvas() = default;
  /// The next shape shows this thing; further shapes belong to it.
  virtual void begin(const Identity& /*of*/) {}
  virtual void fill(const Area& area, Color color, float corner) = 0;
  virtual void outline(const Area& area, const Pen& pen, float corner) = 0;
  virtual void hatch(const Area& area, Color color) = 0;
  virtual void dot(Point center, float radius, Color color) = 0;
  virtual void triangle(Point a, Point b, Point c, Color color) = 0;
  virtual void line(std::span<const Point> points, const Pen& pen) = 0;
  /// The area between the line and `feet`, the y below or above each of its points.
  virtual void under(std::span<const Point> points, std::span<const float> feet, Color color) = 0;
  virtual void text(const Words& words, Color color) = 0;
};

/// The things emphasized now; nullptr: none.
struct Emphasis {
  const Lighting* lit = nullptr;             ///< gets an outline in the text's colour
  const Differences* differences = nullptr;  ///< gets a line below it
  /// Areas of lit boxes, which get a frame. Everything unlit fades, except inside these areas or inside something lit;
  /// null: nothing fades.
  const std::vector<Area>* lit_boxes = nullptr;
};
/// Draws everything within `seen`.
void paint(const Placed& placed, const Palette& palette, const Metrics& metrics,
           const Emphasis& emphasis, const Area& seen, Canvas& canvas);

}  // namespace tilestep::picture
