#pragma once

#include <string>

#include "scenes/numbers/accumulator_precision/scene.hpp"
#include "scenes/shared/strokes.hpp"
#include "scenes/shared/words.hpp"
#include "scenes/ui/axis.hpp"

/// Where the parts of the accumulator picture stand, and the few words and roles that the files
/// that draw it share.
namespace tilestep::scenes {

struct AccumulatorPrecisionScene::Layout : Frame {
  explicit Layout(const Frame& frame) : Frame(frame) {}

  ImVec2 plot_min, plot_max;  ///< where the lines are
  float rug_top = 0;          ///< the strip below the plot, down to rug_bottom
  float rug_bottom = 0;
  float ticks_top = 0;          ///< numbers of the horizontal axis
  ImVec2 chips_min, chips_max;  ///< which accumulator's bits
  ImVec2 bits_min, bits_max;    ///< the three rows of the addition
  float names_top = 0;          ///< sign, exponent, mantissa; not shown where it is tight
  float row = 0;                ///< height of a row of bits, its gap included
  float cells_left = 0;
  float cell = 0, group_gap = 0;
  ImVec2 line_min, line_max;  ///< the number line
};

struct AccumulatorPrecisionScene::PlotSpace {
  ImVec2 min, max;
  ui::Axis x, y;  ///< terms added, running sum

  float at_x(double terms) const { return min.x + (max.x - min.x) * x.place(terms); }
  float at_y(double sum) const { return max.y - (max.y - min.y) * y.place(sum); }
};

namespace accumulator_parts {

/// A spacing exactly: a power of two, written out where that is short.
std::string spacing_text(double spacing);
/// An accumulator's colour; remedies have a mark on their line besides.
ui::Role role_of(accumulator_precision::Method method);
/// A small filled shape for a remedy, nothing for a plain format.
void draw_mark(accumulator_precision::Method method, ImVec2 center, float radius);

}  // namespace accumulator_parts
}  // namespace tilestep::scenes
